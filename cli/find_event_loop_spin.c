/*
 * event-loop-spin: the event wait returns at once, hundreds of times in a millisecond's neighbourhood, and the
 * thread sends, accepts, opens and wakes nothing.  A busy server spins as fast, but it answers.
 */
#include "findings.h"

#define WINDOW_NS 100000000ull
#define PER_MS_MIN 20
#define INSTANT_NS 50000u

/* Calls of the thread that do something for somebody. */
static d9_u64 useful_calls(const struct d9_model *m, d9_u32 thread)
{
	static const d9_u32 useful[] = {D9_FAMILY_send,    D9_FAMILY_write, D9_FAMILY_accept,
					D9_FAMILY_connect, D9_FAMILY_open,  D9_FAMILY_path,
					D9_FAMILY_sync,    D9_FAMILY_stdio, D9_FAMILY_sleep};
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u64 n = 0;
	for (size_t u = 0; u < sizeof(useful) / sizeof(useful[0]); u++) {
		for (size_t i = 0; i < th->calls.n; i++)
			n += m->t->hooks.v[th->calls.v[i].hook].kind == useful[u]
				     ? th->calls.v[i].count - th->calls.v[i].errors
				     : 0;
	}
	for (size_t i = 0; i < th->spans.n; i++)
		for (size_t u = 0; u < sizeof(useful) / sizeof(useful[0]); u++)
			n += th->spans.v[i].kind == useful[u];
	return n;
}

struct run {
	d9_u64 t0, t1, n;
	d9_u32 first;
};

static bool is_instant(const struct d9_model *m, const struct d9_span *s)
{
	return s->result > 0 && d9_span_dur(s) < INSTANT_NS &&
	       d9_kind_class(m->t->sites.v[s->site].kind) == D9_CLASS_EVENT;
}

/* The longest stretch of instant returns, one short gap after the other. */
static struct run longest_run(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	struct run best = {0}, now = {0};
	for (d9_u32 i = 0; i < th->spans.n; i++) {
		const struct d9_span *s = &th->spans.v[i];
		if (!(s->flags & D9_SPAN_PARK))
			continue;
		bool again = now.n && is_instant(m, s) && s->t0 - now.t1 < 1000000;
		/* one slow return is preemption; the spin goes on if the next is instant again */
		if (!again && now.n && s->result > 0 && s->t0 - now.t1 < D9_CRITICAL_NS &&
		    d9_span_dur(s) < D9_CRITICAL_NS)
			again = true;
		if (!again)
			now = (struct run){.t0 = s->t0, .first = i};
		now.t1 = s->t1;
		now.n++;
		if (now.n > best.n)
			best = now;
	}
	return best;
}

/* A descriptor from which the thread read nothing, if one of those reads was long enough to be recorded. */
static d9_u64 dead_fd(const struct d9_model *m, d9_u32 thread, const struct run *r)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (d9_u32 i = r->first; i < th->spans.n && th->spans.v[i].t1 <= r->t1; i++) {
		const struct d9_span *s = &th->spans.v[i];
		if ((s->kind == D9_FAMILY_read || s->kind == D9_FAMILY_recv) && s->result == 0 && s->fd >= 0)
			return (d9_u64)s->fd;
	}
	return D9_NOT_KNOWN;
}

static void report(struct d9_model *m, struct d9_findings *out, d9_u32 thread, const struct run *r)
{
	struct d9_finding *f = d9_finding_add(out, "event-loop-spin", thread);
	char who[96], dur[32];
	d9_u64 ns = r->t1 - r->t0;
	f->severity = D9_CRITICAL;
	f->inferred = true;
	f->from = r->t0;
	f->to = r->t1;
	f->harm = ns;
	d9_finding_title(f, "%s returned from its event wait %llu times in %s and did nothing",
			 d9_show_thread(m, thread, who, sizeof(who)), (unsigned long long)r->n,
			 d9_format_duration(ns, dur));
	d9_finding_cause(f, m, (struct d9_ref){thread, D9_REF_SPAN, r->first});
	d9_finding_n(f, "wakeups", r->n);
	d9_finding_real(f, "per_ms", (double)r->n * 1e6 / (double)ns);
	d9_finding_n(f, "fd", dead_fd(m, thread, r));
	d9_finding_span(f, (struct d9_ref){thread, D9_REF_SPAN, r->first});
	f->try[0] = "Take a descriptor whose peer has closed out of the set: a read that returned 0 will be ready for "
		    "ever.";
}

void d9_find_event_loop_spin(struct d9_model *m, struct d9_findings *out)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (m->threads[i].role != D9_ROLE_WORKER)
			continue;
		struct run r = longest_run(m, i);
		d9_u64 ns = r.t1 - r.t0;
		if (ns < WINDOW_NS || r.n < PER_MS_MIN * (ns / 1000000) || useful_calls(m, i) * 100 > r.n)
			continue;
		report(m, out, i, &r);
	}
}
