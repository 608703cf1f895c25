/*
 * lock-holder-io and log-pipe-stall: threads waited for a lock, and its holder sat in a call all the while.
 * The lock is not to blame: the call is.  Whoever holds a lock while waiting for another one is passed
 * over to the holder of that one, so a convoy ends at its root.
 */
#include "findings.h"

#define CHAIN_MAX 16
#define WAIT_MIN_NS 1000000u

/* All waits that end at one call. */
struct root {
	d9_u32 thread, span;
	d9_u64 total;
	bool inferred;
	D9_VEC(struct d9_wait) waits;
	size_t finding; /* index + 1 of its group */
};
typedef D9_VEC(struct root) roots;

/* Roots that are calls of one place: one finding, told by the worst of them. */
struct group {
	size_t worst;
	d9_u64 count, harm;
	bool inferred;
};
typedef D9_VEC(struct group) groups;

static bool is_lock_wait(const struct d9_model *m, d9_u32 thread, const struct d9_span *s)
{
	const struct d9_lock *l = s->object ? d9_model_lock(m, m->t->threads.v[thread].proc, s->object) : NULL;
	if (!l || s->flags & D9_SPAN_NO_CALL)
		return false;
	return (l->maybe_lock && !l->gil) || d9_model_waits_behind(m, s->site);
}

static bool is_long_call(const struct d9_model *m, d9_u32 thread, const struct d9_span *s)
{
	enum d9_class c = d9_kind_class(s->kind);
	return (c == D9_CLASS_IO || c == D9_CLASS_SLEEP) && d9_span_dur(s) >= D9_WARN_NS &&
	       !d9_only_starved_of_cpu(m, thread, s);
}

/* The call at the end of the chain that begins with this wait.  False: none that explains half of it. */
static bool root_of(const struct d9_model *m, struct d9_wait wait, struct d9_wait *ret, bool *ret_inferred)
{
	const struct d9_span *w = d9_model_span(m, wait.thread, wait.span);
	d9_u64 t0 = w->t0, t1 = w->t1;
	*ret_inferred = false;
	for (unsigned hops = 0; hops < CHAIN_MAX; hops++) {
		enum d9_known_by by;
		d9_u32 holder = d9_model_holder_of(m, wait.thread, w, &by);
		if (holder == D9_NO_INDEX || holder == wait.thread)
			return false;
		*ret_inferred |= by == D9_KNOWN_WAKE;
		d9_u64 o;
		d9_u32 busy = d9_model_busiest_span(m, holder, t0, t1, &o);
		if (busy == D9_NO_INDEX || o * 2 < t1 - t0)
			return false;
		const struct d9_span *s = d9_model_span(m, holder, busy);
		*ret = (struct d9_wait){holder, busy};
		if (is_long_call(m, holder, s))
			return true;
		if (!is_lock_wait(m, holder, s))
			return false;
		wait = *ret;
		w = s;
	}
	return false;
}

static struct root *root_at(roots *all, struct d9_map *map, struct d9_wait call)
{
	d9_u64 key = (d9_u64)call.thread << 32 | call.span;
	d9_u32 i = d9_map_get(map, key);
	if (i == D9_MAP_EMPTY) {
		i = (d9_u32)all->n;
		d9_vec_push(all, (struct root){.thread = call.thread, .span = call.span});
		d9_map_put(map, key, i);
	}
	return &all->v[i];
}

static void add_lock(struct d9_model *m, const struct d9_lock *l, roots *all, struct d9_map *map)
{
	d9_u64 explained = 0, open = 0; /* open: of waits that nothing explains yet */
	for (size_t i = 0; i < l->wait.n; i++) {
		const struct d9_span *s = d9_model_span(m, l->wait.v[i].thread, l->wait.v[i].span);
		struct d9_wait call;
		bool inferred;
		if (s->flags & D9_SPAN_CLAIMED || !is_lock_wait(m, l->wait.v[i].thread, s))
			continue;
		open += d9_span_dur(s);
		if (d9_span_dur(s) >= WAIT_MIN_NS && root_of(m, l->wait.v[i], &call, &inferred))
			explained += d9_span_dur(s);
	}
	if (!open || explained * 10 < open * 6)
		return; /* a hot lock, some of whose holders happened to be in a call */
	for (size_t i = 0; i < l->wait.n; i++) {
		const struct d9_span *s = d9_model_span(m, l->wait.v[i].thread, l->wait.v[i].span);
		struct d9_wait call;
		bool inferred;
		if (d9_span_dur(s) < WAIT_MIN_NS || s->flags & D9_SPAN_CLAIMED ||
		    !is_lock_wait(m, l->wait.v[i].thread, s) || !root_of(m, l->wait.v[i], &call, &inferred))
			continue;
		struct root *r = root_at(all, map, call);
		r->total += d9_span_dur(s);
		r->inferred |= inferred;
		d9_vec_push(&r->waits, l->wait.v[i]);
	}
}

/* ---- log-pipe-stall ------------------------------------------------------------------------------ */

static bool is_log_write(const struct d9_span *s)
{
	return (s->kind == D9_FAMILY_write || s->kind == D9_FAMILY_stdio) && (s->fd == 1 || s->fd == 2);
}

/* A stalled write of a worker hurts without any lock. */
static void add_log_writes(struct d9_model *m, roots *all, struct d9_map *map)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (m->threads[i].role != D9_ROLE_WORKER ||
		    !(th->kinds & (D9_KIND_BIT(D9_FAMILY_write) | D9_KIND_BIT(D9_FAMILY_stdio))))
			continue;
		for (d9_u32 k = 0; k < th->spans.n; k++)
			if (is_log_write(&th->spans.v[k]) && is_long_call(m, i, &th->spans.v[k]))
				root_at(all, map, (struct d9_wait){i, k});
	}
}

/* Threads that were in a write to the same descriptor at the same time stand in the same queue. */
static void join_writers(struct d9_model *m, roots *all)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct d9_span *a = d9_model_span(m, all->v[i].thread, all->v[i].span);
		for (size_t k = 0; k < all->n && is_log_write(a); k++) {
			struct root *o = &all->v[k];
			const struct d9_span *b =
				o->thread == D9_NO_INDEX ? NULL : d9_model_span(m, o->thread, o->span);
			if (k == i || all->v[i].thread == D9_NO_INDEX || !b || !is_log_write(b) || b->fd != a->fd ||
			    m->t->threads.v[o->thread].proc != m->t->threads.v[all->v[i].thread].proc ||
			    d9_span_dur(b) > d9_span_dur(a) ||
			    d9_overlap(a->t0, a->t1, b->t0, b->t1) * 2 < d9_span_dur(b))
				continue;
			for (size_t w = 0; w < o->waits.n; w++)
				d9_vec_push(&all->v[i].waits, o->waits.v[w]);
			if (o->thread != all->v[i].thread) {
				d9_vec_push(&all->v[i].waits, (struct d9_wait){o->thread, o->span});
				all->v[i].total += d9_span_dur(b);
			}
			all->v[i].total += o->total;
			d9_claim(m, o->thread, o->span);
			d9_vec_free(&o->waits);
			o->thread = D9_NO_INDEX;
		}
	}
}

/* ---- report ---------------------------------------------------------------------------------------- */

static void add_root(struct d9_model *m, struct d9_finding *f, const struct root *r, bool evidence)
{
	d9_claim(m, r->thread, r->span);
	if (evidence)
		d9_finding_span(f, (struct d9_ref){r->thread, D9_REF_SPAN, r->span});
	for (size_t i = 0; i < r->waits.n; i++) {
		struct d9_wait w = r->waits.v[i];
		d9_finding_victim(f, w.thread, d9_span_dur(d9_model_span(m, w.thread, w.span)));
		if (evidence)
			d9_finding_span(f, (struct d9_ref){w.thread, D9_REF_SPAN, w.span});
		d9_claim(m, w.thread, w.span);
	}
}

/* What it did to others, or, of a worker's log, to itself. */
static d9_u64 harm_of(const struct d9_model *m, const struct root *r)
{
	const struct d9_span *s = d9_model_span(m, r->thread, r->span);
	return is_log_write(s) && d9_span_dur(s) > r->total ? d9_span_dur(s) : r->total;
}

static bool is_told(const struct d9_model *m, const struct root *r)
{
	const struct d9_span *s = r->thread == D9_NO_INDEX ? NULL : d9_model_span(m, r->thread, r->span);
	return s && harm_of(m, r) >= D9_WARN_NS && (is_log_write(s) || r->total * 2 >= d9_span_dur(s));
}

static void report(struct d9_model *m, struct d9_findings *out, const struct root *r, const struct group *g)
{
	const struct d9_span *s = d9_model_span(m, r->thread, r->span);
	bool log = is_log_write(s);
	d9_u64 dur = d9_span_dur(s);
	struct d9_finding *f = d9_finding_add(out, log ? "log-pipe-stall" : "lock-holder-io", r->thread);
	f->inferred = g->inferred;
	f->from = s->t0;
	f->to = s->t1;
	f->count = g->count;
	f->harm = g->harm;
	f->severity = d9_severity_of(harm_of(m, r));
	d9_finding_cause(f, m, (struct d9_ref){r->thread, D9_REF_SPAN, r->span});
	add_root(m, f, r, true);
	char who[96], a[32], b[32];
	d9_show_thread(m, r->thread, who, sizeof(who));
	d9_format_duration(dur, a);
	const char *plural = f->victims.n == 1 ? "" : "s";
	if (log) {
		d9_finding_title(f, "a write to fd %d (%s) took %s; %zu other thread%s waited", s->fd, who, a,
				 f->victims.n, plural);
		d9_finding_n(f, "blocked_ns", dur);
		d9_finding_n(f, "fd", (d9_u64)s->fd);
		f->try[0] = "Log through a writer of its own with a bounded queue that drops rather than blocks.";
		f->try[1] = "Look at who reads the other end: a log collector, a pager, a terminal.";
	} else {
		d9_finding_title(f, "%s held a lock while in %s for %s; %zu thread%s waited %s", who,
				 m->t->hooks.v[s->hook].name, a, f->victims.n, plural, d9_format_duration(r->total, b));
		d9_finding_n(f, "holder_ns", dur);
		d9_finding_n(f, "wait_total_ns", r->total);
		f->try[0] = "Do the call before taking the lock or after leaving it.";
	}
	d9_finding_n(f, "waiters", f->victims.n);
	d9_finding_task(f, m, r->thread, d9_model_task_poll(m, r->thread, s->t0, s->t1));
}

static void group_by_place(const struct d9_model *m, roots *all, groups *ret)
{
	struct d9_map places = {0}; /* site and descriptor -> group */
	for (size_t i = 0; i < all->n; i++) {
		struct root *r = &all->v[i];
		if (!is_told(m, r))
			continue;
		const struct d9_span *s = d9_model_span(m, r->thread, r->span);
		d9_u64 key = (d9_u64)s->site << 32 | (is_log_write(s) ? (d9_u32)s->fd + 1 : 0);
		d9_u32 g = d9_map_get(&places, key);
		if (g == D9_MAP_EMPTY) {
			g = (d9_u32)ret->n;
			d9_vec_push(ret, (struct group){.worst = i});
			d9_map_put(&places, key, g);
		}
		struct group *of = &ret->v[g];
		of->count++;
		of->harm += d9_span_dur(s) + r->total;
		of->inferred |= r->inferred;
		if (harm_of(m, r) > harm_of(m, &all->v[of->worst]))
			of->worst = i;
		r->finding = g + 1;
	}
	d9_map_free(&places);
}

static void report_all(struct d9_model *m, struct d9_findings *out, roots *all)
{
	groups places = {0};
	size_t first = out->of.n;
	group_by_place(m, all, &places);
	for (size_t i = 0; i < places.n; i++)
		report(m, out, &all->v[places.v[i].worst], &places.v[i]);
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].finding && places.v[all->v[i].finding - 1].worst != i)
			add_root(m, &out->of.v[first + all->v[i].finding - 1], &all->v[i], false);
	d9_vec_free(&places);
}

void d9_find_holder(struct d9_model *m, struct d9_findings *out)
{
	roots all = {0};
	struct d9_map map = {0};
	for (size_t i = 0; i < m->locks.n; i++)
		if (!m->locks.v[i].gil && m->locks.v[i].total >= WAIT_MIN_NS)
			add_lock(m, &m->locks.v[i], &all, &map);
	add_log_writes(m, &all, &map);
	join_writers(m, &all);
	report_all(m, out, &all);
	for (size_t i = 0; i < all.n; i++)
		d9_vec_free(&all.v[i].waits);
	d9_vec_free(&all);
	d9_map_free(&map);
}
