/*
 * lock-contention: one lock takes a large share of the time of the threads that use it.  Many waits, not
 * one long one: that has a holder to blame, who is looked for before.
 */
#include "findings.h"

#define SHARE_MIN 0.2
#define SHARE_CRITICAL 0.5
#define WAITS_MIN 20
#define TOTAL_MIN_NS 100000000ull

static d9_u64 unclaimed(struct d9_model *m, const struct d9_lock *l)
{
	d9_u64 total = 0;
	for (size_t i = 0; i < l->wait.n; i++) {
		const struct d9_span *s = d9_model_span(m, l->wait.v[i].thread, l->wait.v[i].span);
		total += s->flags & D9_SPAN_CLAIMED ? 0 : d9_span_dur(s);
	}
	return total;
}

/* Share of the waiters' time, between the first wait and the last: a lock that was hot for a second of an hour was hot. */
static double share_of(struct d9_model *m, const struct d9_lock *l, d9_u64 total, d9_u64 *ret_from, d9_u64 *ret_to)
{
	d9_u64 from = D9_NOT_KNOWN, to = 0, wall = 0;
	for (size_t i = 0; i < l->wait.n; i++) {
		const struct d9_span *s = d9_model_span(m, l->wait.v[i].thread, l->wait.v[i].span);
		from = s->t0 < from ? s->t0 : from;
		to = s->t1 > to ? s->t1 : to;
	}
	for (size_t i = 0; i < l->waiters.n; i++) {
		const struct d9_model_thread *mt = &m->threads[l->waiters.v[i].thread];
		wall += d9_overlap(mt->begin, mt->end, from, to);
	}
	*ret_from = from;
	*ret_to = to;
	return wall ? (double)total / (double)wall : 0;
}

static const struct d9_holder *main_holder(const struct d9_lock *l)
{
	const struct d9_holder *best = NULL;
	for (size_t i = 0; i < l->holders.n; i++)
		if (!best || l->holders.v[i].total > best->total)
			best = &l->holders.v[i];
	return best;
}

static void report(struct d9_model *m, struct d9_findings *out, const struct d9_lock *l, double share, d9_u64 total,
		   d9_u64 from, d9_u64 to)
{
	const struct d9_holder *h = main_holder(l);
	struct d9_finding *f = d9_finding_add(out, "lock-contention", l->worst.thread);
	char dur[32];
	f->severity = share > SHARE_CRITICAL ? D9_CRITICAL : D9_WARNING;
	f->from = from;
	f->to = to;
	f->count = l->waits;
	f->harm = total;
	d9_finding_title(f, "%s 0x%llx: %zu threads spent %.0f %% of their time (%s) waiting for it",
			 d9_kind_name(l->kind), (unsigned long long)l->object, l->waiters.n, share * 100,
			 d9_format_duration(total, dur));
	d9_finding_cause(f, m, (struct d9_ref){l->worst.thread, D9_REF_SPAN, l->worst.span});
	if (h && h->worst != D9_NO_INDEX) { /* what was done under the lock says more than where it was waited for */
		struct d9_ref_info r = d9_ref_info(m, (struct d9_ref){h->thread, D9_REF_SPAN, h->worst});
		f->cause.stack = r.stack;
		f->cause.own_stack = r.own_stack;
		f->cause.ra = m->t->sites.v[r.site].ra;
		f->cause.owner_tid = (d9_u32)d9_show_tid(m, h->thread);
	}
	d9_finding_real(f, "share", share);
	d9_finding_n(f, "wait_total_ns", total);
	d9_finding_n(f, "wait_max_ns", l->max);
	d9_finding_n(f, "waiters", l->waiters.n);
	for (size_t i = 0; i < l->waiters.n; i++)
		d9_finding_victim(f, l->waiters.v[i].thread, l->waiters.v[i].total);
	d9_finding_span(f, (struct d9_ref){l->worst.thread, D9_REF_SPAN, l->worst.span});
	for (size_t i = 0; i < l->wait.n; i++)
		d9_claim(m, l->wait.v[i].thread, l->wait.v[i].span);
	f->try[0] = "Hold it for less: do the work outside, keep only the exchange of data inside.";
	f->try[1] = "Split it (by key, by thread), or give readers a copy.";
}

void d9_find_lock_contention(struct d9_model *m, struct d9_findings *out)
{
	for (size_t i = 0; i < m->locks.n; i++) {
		const struct d9_lock *l = &m->locks.v[i];
		if (l->gil || l->waits < WAITS_MIN || l->waiters.n < 2 || !l->like_lock)
			continue;
		d9_u64 total = unclaimed(m, l), from, to;
		if (total < TOTAL_MIN_NS)
			continue;
		double share = share_of(m, l, total, &from, &to);
		if (share >= SHARE_MIN)
			report(m, out, l, share, total, from, to);
	}
}
