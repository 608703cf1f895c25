/*
 * lock-across-await: a task came back pending and kept a lock, for which others waited until it was polled again.
 *
 * Who takes a free lock is not seen, who lets the next one in is.  If nobody else was let in while a thread waited, the lock was
 * held by one all that time: by the task in whose poll it was let go.  If that poll began after the wait had, the task held the
 * lock before it too, which is since the poll before at the latest.
 */
#include "findings.h"

struct hold {
	const struct d9_lock *lock;
	const struct d9_moment *before,
		*then; /* the task's poll that kept the lock, and the one that let it go; of the longest */
	struct d9_wait worst;
	d9_u64 held, total, count;
	D9_VEC(struct d9_wait) waits;
};
typedef D9_VEC(struct hold) holds;

/* A lock that one has at a time.  A semaphore is given by others than those who took it, a lock for readers is held by several. */
static bool has_one_owner(const struct d9_lock *l)
{
	return l->like_lock && !l->gil && l->kind != D9_FAMILY_sem && l->kind != D9_FAMILY_rwlock;
}

/* Was anybody let in between t0 and t1? */
static bool somebody_got_in(const struct d9_model *m, const struct d9_lock *l, d9_u64 t0, d9_u64 t1)
{
	for (size_t i = 0; i < l->wait.n; i++) {
		const struct d9_span *s = d9_model_span(m, l->wait.v[i].thread, l->wait.v[i].span);
		if (s->t1 > t0 && s->t1 < t1)
			return true;
	}
	return false;
}

static const struct d9_moment *moment_of(const struct d9_model *m, d9_u32 thread, const struct d9_rt_span *poll)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	struct d9_moment wanted = {
		.what = D9_TASK_POLL, .proc = th->proc, .module = poll->module, .task = poll->task, .t = poll->t0};
	return bsearch(&wanted, m->moments.v, m->moments.n, sizeof(wanted), d9_moment_order);
}

/* The poll of the task before this one if it came back pending; else NULL. */
static const struct d9_moment *poll_before(const struct d9_model *m, const struct d9_moment *x)
{
	const struct d9_moment *p = x;
	while (p > m->moments.v && d9_same_task(p - 1, x)) {
		if ((--p)->what != D9_TASK_POLL)
			continue;
		d9_u32 outcome = m->t->threads.v[p->thread].rt.v[p->index].outcome;
		return outcome == D9_OUTCOME_PENDING || outcome == D9_OUTCOME_WOKEN ? p : NULL;
	}
	return NULL;
}

/* What is long for want of a CPU says little: who was woken, and did not run yet, may be passed by others that come and go. */
static bool is_long_wait(const struct d9_model *m, struct d9_wait w, const struct d9_span *s)
{
	d9_u64 delay, window;
	return !(s->flags & (D9_SPAN_CLAIMED | D9_SPAN_PARK)) && !d9_only_starved_of_cpu(m, w.thread, s) &&
	       (!d9_model_run_delay(m, w.thread, s->t0, s->t1, &delay, &window) || delay * 2 < d9_span_dur(s));
}

/* Finds the polls of the task that held the lock while this one waited.  False: none was seen to. */
static bool find_task(const struct d9_model *m, const struct d9_lock *l, struct d9_wait w, struct hold *ret)
{
	const struct d9_span *s = d9_model_span(m, w.thread, w.span);
	if (s->waker == D9_NO_INDEX || !d9_span_has_wake(s) || !is_long_wait(m, w, s) ||
	    (s->owner && s->owner != (d9_u32)d9_show_tid(m, s->waker)))
		return false;
	const struct d9_rt_span *poll = d9_model_task_poll(m, s->waker, s->waker_t, s->waker_t);
	if (!poll || !poll->task || d9_is_pool(poll) || poll->t0 <= s->t0)
		return false;
	ret->lock = l;
	ret->then = moment_of(m, s->waker, poll);
	ret->before = ret->then ? poll_before(m, ret->then) : NULL;
	if (!ret->before || somebody_got_in(m, l, s->t0, s->waker_t) ||
	    d9_model_has_hole(m, l->proc, ret->before->t, s->t1))
		return false;
	ret->held = s->waker_t - (ret->before->t1 < s->t0 ? ret->before->t1 : s->t0);
	return true;
}

static void add_wait(struct d9_model *m, holds *all, const struct hold *h, struct d9_wait w)
{
	size_t i = 0;
	while (i < all->n && (all->v[i].lock != h->lock || !d9_same_task(all->v[i].then, h->then)))
		i++;
	if (i == all->n)
		d9_vec_push(all, *h);
	struct hold *to = &all->v[i];
	to->count += !to->count || to->then != h->then;
	if (h->held > to->held || !to->waits.n) {
		to->held = h->held;
		to->before = h->before;
		to->then = h->then;
		to->worst = w;
	}
	to->total += d9_span_dur(d9_model_span(m, w.thread, w.span));
	d9_vec_push(&to->waits, w);
	d9_claim(m, w.thread, w.span);
}

/* The thread's poll as the model has it. */
static d9_u32 poll_index(const struct d9_model *m, const struct d9_moment *x)
{
	const struct d9_model_thread *mt = &m->threads[x->thread];
	d9_u32 i = 0;
	while (i < mt->polls.n && mt->polls.v[i].rt != x->index + 1)
		i++;
	return i;
}

static void report(struct d9_model *m, struct d9_findings *out, const struct hold *h)
{
	struct d9_finding *f = d9_finding_add(out, "lock-across-await", h->then->thread);
	const char *name = d9_show_lock_name(m, h->lock);
	char dur[32], lock[80];
	d9_u32 poll = poll_index(m, h->then);
	snprintf(lock, sizeof(lock), "%s 0x%llx", d9_kind_name(h->lock->kind), (unsigned long long)h->lock->object);
	f->severity = d9_severity_of(h->total);
	f->inferred = true; /* who took it was not seen */
	f->from = h->before->t1;
	f->to = h->then->t1;
	f->count = h->count;
	f->harm = h->total;
	for (size_t i = 0; i < h->waits.n; i++)
		d9_finding_victim(f, h->waits.v[i].thread,
				  d9_span_dur(d9_model_span(m, h->waits.v[i].thread, h->waits.v[i].span)));
	d9_finding_title(f, "a task kept %s across an await for %s; %zu thread%s waited", name ? name : lock,
			 d9_format_duration(h->held, dur), f->victims.n, f->victims.n == 1 ? "" : "s");
	d9_finding_task(f, m, h->then->thread, &m->t->threads.v[h->then->thread].rt.v[h->then->index]);
	d9_finding_cause(f, m, (struct d9_ref){h->worst.thread, D9_REF_SPAN, h->worst.span});
	f->cause.owner_tid = (d9_u32)d9_show_tid(m, h->then->thread);
	d9_finding_n(f, "held_ns", h->held);
	d9_finding_n(f, "waiters", f->victims.n);
	d9_finding_n(f, "wait_total_ns", h->total);
	if (poll < m->threads[h->then->thread].polls.n)
		d9_finding_span(f, (struct d9_ref){h->then->thread, D9_REF_POLL, poll});
	for (size_t i = 0; i < h->waits.n; i++)
		d9_finding_span(f, (struct d9_ref){h->waits.v[i].thread, D9_REF_SPAN, h->waits.v[i].span});
	f->try[0] = "Drop the guard before the await, or use a lock of the runtime.";
}

void d9_find_lock_across_await(struct d9_model *m, struct d9_findings *out)
{
	holds all = {0};
	for (size_t i = 0; i < m->locks.n && m->moments.n; i++) {
		const struct d9_lock *l = &m->locks.v[i];
		for (size_t k = 0; k < l->wait.n && has_one_owner(l); k++) {
			struct hold h = {0};
			if (find_task(m, l, l->wait.v[k], &h))
				add_wait(m, &all, &h, l->wait.v[k]);
		}
	}
	for (size_t i = 0; i < all.n; i++) {
		if (all.v[i].total >= D9_WARN_NS)
			report(m, out, &all.v[i]);
		d9_vec_free(&all.v[i].waits);
	}
	d9_vec_free(&all);
}
