/*
 * slow-call: name look-ups and connections that took long on threads that are no event loops.  Nobody stood
 * still for them but the thread itself; what it was to answer waited.  Told once for each process and function, by
 * the longest.  On an event loop such a call is a blocking-call, and one that filled a pool is its saturation.
 */
#include "findings.h"

#define CALL_MIN_NS 100000000ull
#define OUTWARD (D9_KIND_BIT(D9_FAMILY_dns) | D9_KIND_BIT(D9_FAMILY_connect))

struct slow {
	d9_u32 thread, span; /* the longest */
	d9_u64 count, total;
	D9_VEC(struct d9_ref) refs;
};
typedef D9_VEC(struct slow) slows;

static void add(struct d9_model *m, slows *all, struct d9_map *map, d9_u32 thread, d9_u32 span)
{
	const struct d9_span *s = d9_model_span(m, thread, span);
	d9_u64 key = (d9_u64)m->t->threads.v[thread].proc << 32 | s->hook;
	d9_u32 i = d9_map_get(map, key);
	if (i == D9_MAP_EMPTY) {
		i = (d9_u32)all->n;
		d9_vec_push(all, (struct slow){.thread = thread, .span = span});
		d9_map_put(map, key, i);
	}
	struct slow *w = &all->v[i];
	w->count++;
	w->total += d9_span_dur(s);
	if (d9_span_dur(s) > d9_span_dur(d9_model_span(m, w->thread, w->span))) {
		w->thread = thread;
		w->span = span;
	}
	d9_vec_push(&w->refs, (struct d9_ref){thread, D9_REF_SPAN, span});
	d9_claim(m, thread, span);
}

static void report(struct d9_model *m, struct d9_findings *out, const struct slow *w)
{
	const struct d9_span *s = d9_model_span(m, w->thread, w->span);
	struct d9_finding *f = d9_finding_add(out, "slow-call", w->thread);
	char who[96], dur[32], often[64] = "";
	f->severity = D9_WARNING;
	f->from = s->t0;
	f->to = s->t1;
	f->count = w->count;
	f->harm = w->total;
	if (w->count > 1)
		snprintf(often, sizeof(often), " (the longest of %llu)", (unsigned long long)w->count);
	d9_finding_title(f, "%s sat in %s for %s%s%s", d9_show_thread(m, w->thread, who, sizeof(who)),
			 m->t->hooks.v[s->hook].name, d9_format_duration(d9_span_dur(s), dur), often,
			 s->result < 0 ? ", and it failed" : "");
	d9_finding_cause(f, m, (struct d9_ref){w->thread, D9_REF_SPAN, w->span});
	d9_finding_n(f, "blocked_ns", d9_span_dur(s));
	d9_finding_n(f, "count", w->count);
	d9_finding_n(f, "total_ns", w->total);
	for (size_t i = 0; i < w->refs.n; i++)
		d9_finding_span(f, w->refs.v[i]);
	if (s->kind == D9_FAMILY_dns) {
		f->try[0] = "Look at the resolver: the first name server of resolv.conf may be dead, or the search "
			    "list long.";
		f->try[1] = "Cache answers, or ask through a resolver of the runtime's own.";
	} else {
		f->try[0] = "The other end does not answer: its queue of connections may be full, or a packet filter "
			    "drops.";
		f->try[1] = "Connect with a time limit, and keep connections for the next request.";
	}
}

void d9_find_slow_call(struct d9_model *m, struct d9_findings *out)
{
	slows all = {0};
	struct d9_map map = {0}; /* process and hook -> all */
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (m->threads[i].role == D9_ROLE_WORKER || !(th->kinds & OUTWARD))
			continue;
		for (d9_u32 k = 0; k < th->spans.n; k++) {
			const struct d9_span *s = &th->spans.v[k];
			if (D9_KIND_BIT(s->kind) & OUTWARD && d9_span_dur(s) >= CALL_MIN_NS &&
			    !(s->flags & (D9_SPAN_CLAIMED | D9_SPAN_NESTED)) && !d9_only_starved_of_cpu(m, i, s))
				add(m, &all, &map, i, k);
		}
	}
	for (size_t i = 0; i < all.n; i++) {
		report(m, out, &all.v[i]);
		d9_vec_free(&all.v[i].refs);
	}
	d9_vec_free(&all);
	d9_map_free(&map);
}
