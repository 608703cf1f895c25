/*
 * Polls, and where their time went.  What lies between two parks is split into hooked calls, time on a
 * CPU, time runnable without one, and what none of these explains.
 *
 * CPU time is known at the moments at which the recorder read the thread's clock.  Between two readings
 * it can only have grown as fast as time outside of parks passed: that bounds it at any moment, and
 * the lower bound is what a finding may rest on.
 */
#include "model_internal.h"

d9_u32 d9_model_first_span(const struct d9_model *m, d9_u32 thread, d9_u64 t)
{
	return (d9_u32)D9_FIRST_AFTER(m->t->threads.v[thread].spans.v, m->t->threads.v[thread].spans.n, t1, t);
}

/* ---- polls --------------------------------------------------------------------------------------- */

/* What is known of a poll: its beginning, its end, or the calls alone in it.  Neither is known beside a hole. */
struct known {
	bool begin, end;
};

/* Takes the spans that ended within p.  *span: where they are looked for from; moves on. */
static void add_poll(struct d9_model *m, d9_u32 thread, struct d9_poll p, struct known known, d9_u32 *span)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	struct d9_model_thread *mt = &m->threads[thread];
	while (*span < th->spans.n && th->spans.v[*span].t1 < p.t0)
		++*span;
	p.first = *span;
	while (*span < th->spans.n && th->spans.v[*span].t1 <= p.t1)
		++*span;
	p.n = *span - p.first;
	if (!p.n && !(known.begin && known.end))
		return;
	p.t0 = known.begin ? p.t0 : th->spans.v[p.first].t0;
	p.t1 = known.end ? p.t1 : th->spans.v[*span - 1].t1;
	if (p.t1 <= p.t0)
		return;
	if (p.ended && mt->role == D9_ROLE_POOL && p.t1 - p.t0 < D9_NULL_POLL_NS)
		mt->null_polls++;
	else
		d9_vec_push(&mt->polls, p);
}

/*
 * The thread was in no park that is known of from the end of `after` to t1.  In a hole in between it may have parked, and since its
 * last call before it, and until its first call after it: what is left are parts of polls.
 */
static void add_polls(struct d9_model *m, d9_u32 thread, const struct d9_park *after, d9_u64 t1, bool ended)
{
	d9_u64 t0 = after->t1;
	d9_u32 span = after->span + 1;
	bool begin = true;
	while (t0 < t1) {
		const struct d9_hole *h = d9_hole_in(&m->threads[thread].holes, t0, t1);
		struct d9_poll p = {.t0 = t0, .t1 = h ? h->t0 : t1, .ended = ended && !h};
		if (p.t1 > p.t0)
			add_poll(m, thread, p, (struct known){begin, !h}, &span);
		t0 = h ? h->t1 : t1;
		begin = false;
	}
}

/* Up to when a thread that parked no more was in its loop still: who waits for threads or children after that has left it. */
static d9_u64 left_loop_at(const struct d9_trace_thread *th, const struct d9_park *last)
{
	d9_u64 t = last->t1;
	for (size_t i = last->span + 1; i < th->spans.n; i++) {
		if (th->spans.v[i].kind == D9_FAMILY_join || th->spans.v[i].kind == D9_FAMILY_wait)
			break;
		t = th->spans.v[i].t1;
	}
	return t;
}

static void polls_between_parks(struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_model_thread *mt = &m->threads[thread];
	for (size_t i = 0; i + 1 < mt->parks.n; i++)
		add_polls(m, thread, &mt->parks.v[i], mt->parks.v[i + 1].t0, true);
	if (!mt->parks.n || (th->pending.unfinished && d9_model_pending_parks(m, thread)))
		return;
	/* It did not come back to a park: it sits in a call, or ended, or its process did. */
	const struct d9_park *last = &mt->parks.v[mt->parks.n - 1];
	add_polls(m, thread, last, th->pending.unfinished ? th->pending.t : left_loop_at(th, last), false);
}

static void reported_polls(struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (size_t i = 0; i < th->rt.n; i++) {
		const struct d9_rt_span *r = &th->rt.v[i];
		if (r->park)
			continue;
		d9_u32 first = d9_model_first_span(m, thread, r->t0), end = first;
		while (end < th->spans.n && th->spans.v[end].t1 <= r->t1)
			end++;
		d9_vec_push(&m->threads[thread].polls,
			    (struct d9_poll){r->t0, r->t1, first, end - first, (d9_u32)i + 1, !r->unfinished});
	}
}

/* ---- polls of no task ------------------------------------------------------------------------------ */

/*
 * Of a runtime that tells nobody the polls of tasks are seen, and not those of the future that block_on runs, nor what the
 * runtime does itself.  What is left between two parks when the tasks' polls are taken out is either; short pieces are the runtime's.
 */
#define REST_MIN_NS 1000000ull

typedef D9_VEC(struct d9_poll) polls_vec;

/* The thread's polls that are within no other, by time: an inner one ended before its outer one and stands before it. */
static void outermost(const struct d9_model_thread *mt, polls_vec *ret)
{
	for (size_t i = 0; i < mt->polls.n; i++) {
		while (ret->n && ret->v[ret->n - 1].t0 >= mt->polls.v[i].t0)
			ret->n--;
		d9_vec_push(ret, mt->polls.v[i]);
	}
}

static void add_rest(const struct d9_trace_thread *th, polls_vec *ret, const struct d9_poll *whole, d9_u64 t0,
		     d9_u64 t1)
{
	if (t1 < t0 + REST_MIN_NS)
		return;
	struct d9_poll p = {.t0 = t0, .t1 = t1, .ended = whole->ended || t1 < whole->t1};
	p.first = (d9_u32)D9_FIRST_AFTER(th->spans.v, th->spans.n, t1, t0);
	while (p.first + p.n < th->spans.n && th->spans.v[p.first + p.n].t1 <= t1)
		p.n++;
	d9_vec_push(ret, p);
}

/* What of these n stretches lies in none of the tasks' polls. */
static void find_rest(const struct d9_trace_thread *th, const struct d9_poll *stretches, size_t n,
		      const polls_vec *tasks, polls_vec *ret)
{
	size_t k = 0;
	for (const struct d9_poll *p = stretches; p < stretches + n; p++) {
		d9_u64 t = p->t0;
		while (k < tasks->n && tasks->v[k].t1 <= t)
			k++;
		for (; k < tasks->n && tasks->v[k].t0 < p->t1; k++) {
			add_rest(th, ret, p, t, tasks->v[k].t0);
			t = tasks->v[k].t1;
			if (t >= p->t1)
				break; /* it may reach into the next one */
		}
		add_rest(th, ret, p, t, p->t1);
	}
}

static void add_polls_of_no_task(struct d9_model *m, d9_u32 thread)
{
	struct d9_model_thread *mt = &m->threads[thread];
	polls_vec tasks = {0}, rest = {0};
	size_t n = mt->polls.n;
	outermost(mt, &tasks);
	polls_between_parks(m, thread);
	find_rest(&m->t->threads.v[thread], mt->polls.v + n, mt->polls.n - n, &tasks, &rest);
	mt->polls.n = n;
	for (size_t i = 0; i < rest.n; i++)
		d9_vec_push(&mt->polls, rest.v[i]);
	if (rest.n)
		qsort(mt->polls.v, mt->polls.n, sizeof(*mt->polls.v), d9_end_order);
	d9_vec_free(&tasks);
	d9_vec_free(&rest);
}

void d9_polls_find(struct d9_model *m)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		bool told = false, seen = false;
		for (size_t k = 0; k < th->rt.n; k++) {
			told |= !th->rt.v[k].park;
			seen |= !th->rt.v[k].park && th->rt.v[k].module;
		}
		if (told)
			reported_polls(m, i);
		if (m->threads[i].role != D9_ROLE_WORKER && m->threads[i].role != D9_ROLE_POOL)
			continue;
		if (seen)
			add_polls_of_no_task(m, i);
		else if (!told)
			polls_between_parks(m, i);
	}
}

/* ---- the CPU clock ------------------------------------------------------------------------------ */

/* Time outside of parks in a..b: as much as the CPU clock can have gained. */
static d9_u64 outside_parks(const struct d9_model_thread *mt, d9_u64 a, d9_u64 b)
{
	size_t i = D9_FIRST_AFTER(mt->parks.v, mt->parks.n, t1, a);
	d9_u64 parked = 0;
	for (unsigned steps = 0; i < mt->parks.n && mt->parks.v[i].t0 < b && steps < 4096; i++, steps++)
		parked += d9_overlap(mt->parks.v[i].t0, mt->parks.v[i].t1, a, b);
	return b > a + parked ? b - a - parked : 0;
}

/* Index of the last reading at or before t; -1 if there is none. */
static long reading_before(const struct d9_trace_thread *th, d9_u64 t)
{
	return (long)D9_FIRST_AFTER(th->cpu.v, th->cpu.n, t, t) - 1;
}

struct bound {
	d9_u64 least, most;
};

/* CPU time of the thread up to t.  False: no reading on one of the sides and the thread's beginning unseen. */
static bool cpu_at(const struct d9_model *m, d9_u32 thread, d9_u64 t, struct bound *ret)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_model_thread *mt = &m->threads[thread];
	long i = reading_before(th, t);
	if (i < 0 && !th->born)
		return false;
	struct d9_cpu a = i < 0 ? (struct d9_cpu){th->born, 0, 0} : th->cpu.v[i];
	if (a.t > t)
		return false;
	d9_u64 since = outside_parks(mt, a.t, t);
	*ret = (struct bound){a.run, a.run + since};
	if ((size_t)(i + 1) < th->cpu.n) {
		struct d9_cpu b = th->cpu.v[i + 1];
		d9_u64 until = outside_parks(mt, t, b.t);
		if (b.run < ret->most)
			ret->most = b.run;
		if (b.run > until && b.run - until > ret->least)
			ret->least = b.run - until;
	}
	if (ret->least > ret->most) /* the two clocks differ by a little */
		ret->least = ret->most;
	return true;
}

/* ---- the split ------------------------------------------------------------------------------------ */

bool d9_model_run_delay(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_u64 *ret_delay,
			d9_u64 *ret_window)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	if (d9_model_watched(m, thread, t0, t1)) {
		*ret_delay = d9_model_runq_in(m, thread, t0, t1);
		*ret_window = t1 - t0;
		return true;
	}
	long a = reading_before(th, t0), b = reading_before(th, t1);
	while (a >= 0 && th->cpu.v[a].delay == D9_NOT_KNOWN)
		a--;
	b = b < 0 ? 0 : b;
	while ((size_t)b < th->cpu.n && (th->cpu.v[b].t < t1 || th->cpu.v[b].delay == D9_NOT_KNOWN))
		b++;
	if ((size_t)b >= th->cpu.n || (a < 0 && !th->born))
		return false;
	d9_u64 from = a < 0 ? th->born : th->cpu.v[a].t, had = a < 0 ? 0 : th->cpu.v[a].delay;
	*ret_delay = th->cpu.v[b].delay > had ? th->cpu.v[b].delay - had : 0;
	*ret_window = th->cpu.v[b].t - from;
	return true;
}

static d9_u64 blocked_in(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u64 blocked = 0;
	D9_EACH_CALL (i, th, p, D9_SPAN_NO_CALL)
		blocked += d9_overlap(th->spans.v[i].t0, th->spans.v[i].t1, p->t0, p->t1);
	if (!p->ended && th->pending.unfinished)
		blocked += d9_overlap(th->pending.since, th->pending.t, p->t0, p->t1);
	return blocked;
}

struct d9_split d9_model_split(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p)
{
	d9_u64 dur = p->t1 - p->t0;
	struct d9_split s = {.blocked = blocked_in(m, thread, p),
			     .on_cpu = D9_NOT_KNOWN,
			     .runnable = D9_NOT_KNOWN,
			     .unexplained = D9_NOT_KNOWN};
	struct d9_kernel_time k;
	bool watched = d9_kernel_in_poll(m, thread, p, &k);
	if (watched) { /* who was woken in a call and not run is not blocked any more */
		s.runnable = k.runnable < dur ? k.runnable : dur;
		s.blocked = (s.blocked > k.in_calls ? s.blocked - k.in_calls : 0) + k.unhooked;
	}
	d9_u64 without = watched ? dur - s.runnable : dur;
	if (s.blocked > without)
		s.blocked = without;
	s.unhooked = !watched ? 0 : k.unhooked < s.blocked ? k.unhooked : s.blocked;
	d9_u64 rest = without - s.blocked;
	struct bound a, b;
	if (!cpu_at(m, thread, p->t0, &a) || !cpu_at(m, thread, p->t1, &b))
		return s;
	d9_u64 least = b.least > a.most ? b.least - a.most : 0, most = b.most > a.least ? b.most - a.least : 0;
	s.on_cpu_least = least < without ? least : without;
	most = most < rest ? most : rest;
	least = least < most ? least : most;
	if (most - least > dur / 8 + 1000000)
		return s;
	s.on_cpu = least + (most - least) / 2;
	d9_u64 off = rest - s.on_cpu, delay, window;
	if (!watched && d9_model_run_delay(m, thread, p->t0, p->t1, &delay, &window)) {
		s.runnable = delay < off ? delay : off;
		off -= s.runnable;
	}
	s.unexplained = off;
	return s;
}

d9_u32 d9_model_next_call(const struct d9_model *m, d9_u32 thread, d9_u32 from, d9_u64 t1)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (d9_u32 i = from; i < th->spans.n; i++) {
		const struct d9_span *s = &th->spans.v[i];
		if (s->flags & D9_SPAN_NESTED) /* may begin after its outer one, which comes later */
			continue;
		if (s->t0 >= t1)
			break;
		if (!(s->flags & D9_SPAN_PARK))
			return i;
	}
	return D9_NO_INDEX;
}

d9_u32 d9_model_busiest_span(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_u64 *ret_overlap)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u32 best = D9_NO_INDEX;
	*ret_overlap = 0;
	for (d9_u32 i = d9_model_first_span(m, thread, t0); (i = d9_model_next_call(m, thread, i, t1)) != D9_NO_INDEX;
	     i++) {
		d9_u64 o = d9_overlap(th->spans.v[i].t0, th->spans.v[i].t1, t0, t1);
		if (o > *ret_overlap) {
			*ret_overlap = o;
			best = i;
		}
	}
	return best;
}
