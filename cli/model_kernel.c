/*
 * What the kernel's side adds to the model where it watched a thread: when it waited for a CPU, and in the kernel where no hook looks.
 *
 * Waits for a CPU shorter than --runq-min, and others shorter than --offcpu-min, are not told one by one: what is said here of a stretch
 * is the least that is true.  How much the short waits for a CPU add up to over all of a thread's time is in its sums.
 */
#include "model_internal.h"

bool d9_model_watched(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1)
{
	const d9_stretches *w = &m->t->threads.v[thread].kernel.watched;
	size_t i = D9_FIRST_AFTER(w->v, w->n, t1, t0);
	return i < w->n && w->v[i].t0 <= t0 && w->v[i].t1 >= t1;
}

d9_u64 d9_model_runq_in(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1)
{
	const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
	d9_u64 sum = 0;
	for (size_t i = D9_FIRST_AFTER(k->runq.v, k->runq.n, t1, t0); i < k->runq.n && k->runq.v[i].t0 < t1; i++)
		sum += d9_overlap(k->runq.v[i].t0, k->runq.v[i].t1, t0, t1);
	return sum;
}

/* Where the kernel's waits of t0..t1 fall: parks and calls are known to the hooks already. */
static struct d9_kernel_time sum_up(const struct d9_kernel_side *k, const d9_stretches *parks,
				    const d9_stretches *calls, d9_u64 t0, d9_u64 t1)
{
	struct d9_kernel_time r = {0};
	for (size_t i = D9_FIRST_AFTER(k->runq.v, k->runq.n, t1, t0); i < k->runq.n && k->runq.v[i].t0 < t1; i++) {
		d9_u64 a = k->runq.v[i].t0 > t0 ? k->runq.v[i].t0 : t0, b = k->runq.v[i].t1 < t1 ? k->runq.v[i].t1 : t1;
		r.runnable += b - a;
		r.in_parks += d9_stretches_within(parks, a, b);
		r.in_calls += d9_stretches_within(calls, a, b);
	}
	for (size_t i = D9_FIRST_AFTER(k->offcpu.v, k->offcpu.n, t1, t0); i < k->offcpu.n && k->offcpu.v[i].t0 < t1;
	     i++) {
		d9_u64 a = k->offcpu.v[i].t0 > t0 ? k->offcpu.v[i].t0 : t0,
		       b = k->offcpu.v[i].woken < t1 ? k->offcpu.v[i].woken : t1;
		d9_u64 seen = b > a ? d9_stretches_within(parks, a, b) + d9_stretches_within(calls, a, b) : 0;
		r.unhooked += b > a + seen ? b - a - seen : 0;
	}
	return r;
}

bool d9_kernel_in_poll(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p, struct d9_kernel_time *ret)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_stretches calls = {0}, parks = {0};
	if (!d9_model_watched(m, thread, p->t0, p->t1))
		return false;
	D9_EACH_CALL (i, th, p, D9_SPAN_NO_CALL)
		d9_stretches_append(&calls, th->spans.v[i].t0, th->spans.v[i].t1);
	if (!p->ended && th->pending.unfinished)
		d9_stretches_append(&calls, th->pending.since, th->pending.t);
	*ret = sum_up(&th->kernel, &parks, &calls, p->t0, p->t1);
	d9_vec_free(&calls);
	return true;
}

/* The rest may be from before the helper had begun to look. */
#define WATCHED_PERCENT 99

static bool mostly_watched(const struct d9_trace_thread *th, const struct d9_model_thread *mt)
{
	return th->kernel.watched.n &&
	       d9_stretches_within(&th->kernel.watched, mt->begin, mt->end) >= mt->wall / 100 * WATCHED_PERCENT;
}

bool d9_kernel_in_thread(const struct d9_model *m, d9_u32 thread, struct d9_kernel_time *ret, bool *ret_all)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_model_thread *mt = &m->threads[thread];
	d9_stretches calls = {0}, parks = {0};
	*ret_all = mostly_watched(th, mt);
	if (!th->kernel.watched.n)
		return false;
	for (size_t i = 0; i < mt->parks.n; i++)
		d9_stretches_append(&parks, mt->parks.v[i].t0, mt->parks.v[i].t1);
	for (size_t i = 0; i < th->spans.n; i++)
		if (!(th->spans.v[i].flags & D9_SPAN_NO_CALL))
			d9_stretches_append(&calls, th->spans.v[i].t0, th->spans.v[i].t1);
	if (th->pending.unfinished)
		d9_stretches_append(d9_model_pending_parks(m, thread) ? &parks : &calls, th->pending.since,
				    th->pending.t);
	*ret = sum_up(&th->kernel, &parks, &calls, mt->begin, mt->end);
	if (*ret_all && th->kernel.sums && d9_model_is_whole(m)) {
		d9_u64 told = 0;
		for (size_t i = 0; i < th->kernel.runq.n; i++)
			told += th->kernel.runq.v[i].t1 - th->kernel.runq.v[i].t0;
		ret->untold = th->kernel.sums->total > told ? th->kernel.sums->total - told : 0;
	}
	d9_vec_free(&parks);
	d9_vec_free(&calls);
	return true;
}
