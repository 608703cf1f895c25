/*
 * wake-delay: tasks that could run waited for a worker, for all workers of their runtime were busy with other tasks.
 *
 * Not where one poll took most of that time: then it is the cause, and found by what held it up.  Nor where a worker was parked
 * meanwhile, or where what the workers did not get was a CPU.
 */
#include "findings.h"

#define TRIES 64u /* of the longest waits of a runtime */

struct wait {
	d9_u32 thread;
	d9_u64 t0, t1;
};
struct group {
	d9_u32 proc, module, runtime;
	D9_VEC(d9_u32) workers;   /* threads */
	D9_VEC(struct wait) late; /* of D9_WARN_NS and more */
};
typedef D9_VEC(struct group) groups;

static struct group *group_of(groups *all, d9_u32 proc, const struct d9_rt_span *r)
{
	for (size_t i = all->n; i-- > 0;) {
		struct group *g = &all->v[i];
		if (g->proc == proc && g->module == r->module && g->runtime == r->runtime)
			return g;
	}
	d9_vec_push(all, (struct group){.proc = proc, .module = r->module, .runtime = r->runtime});
	return &all->v[all->n - 1];
}

static void gather(const struct d9_model *m, d9_u32 thread, groups *all)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_model_thread *mt = &m->threads[thread];
	struct group *last = NULL;
	for (size_t i = 0; i < th->rt.n; i++) {
		const struct d9_rt_span *r = &th->rt.v[i];
		if (r->park || d9_is_pool(r))
			continue;
		if (!last || last->module != r->module || last->runtime != r->runtime)
			last = group_of(all, th->proc, r);
		if (!last->workers.n || last->workers.v[last->workers.n - 1] != thread)
			d9_vec_push(&last->workers, thread);
	}
	for (size_t i = 0; i < mt->queued.n; i++) {
		const struct d9_queued *q = &mt->queued.v[i];
		const struct d9_rt_span *r = &th->rt.v[q->rt];
		if (q->t1 - q->t0 < D9_WARN_NS || d9_is_pool(r))
			continue;
		struct group *g = group_of(all, th->proc, r);
		d9_vec_push(&g->late, (struct wait){thread, q->t0, q->t1});
	}
}

/* Did the worker poll one task after the other from t0 to t1?  *polls: adds how many. */
static bool is_busy(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_u64 *polls)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	d9_u64 parked = 0, longest = 0, delay, window;
	for (size_t i = D9_FIRST_AFTER(mt->parks.v, mt->parks.n, t1, t0); i < mt->parks.n && mt->parks.v[i].t0 < t1;
	     i++)
		parked += d9_overlap(mt->parks.v[i].t0, mt->parks.v[i].t1, t0, t1);
	for (size_t i = D9_FIRST_AFTER(mt->polls.v, mt->polls.n, t1, t0); i < mt->polls.n; i++) {
		d9_u64 o = d9_overlap(mt->polls.v[i].t0, mt->polls.v[i].t1, t0, t1);
		longest = o > longest ? o : longest;
		*polls += o > 0;
		if (mt->polls.v[i].t0 >= t1)
			break;
	}
	return parked * 10 < t1 - t0 && longest * 2 < t1 - t0 &&
	       d9_model_run_delay(m, thread, t0, t1, &delay, &window) && delay * 2 < t1 - t0;
}

static bool is_for_want_of_workers(const struct d9_model *m, const struct group *g, const struct wait *w,
				   d9_u64 *ret_polls)
{
	*ret_polls = 0;
	for (size_t i = 0; i < g->workers.n; i++)
		if (!is_busy(m, g->workers.v[i], w->t0, w->t1, ret_polls))
			return false;
	return g->workers.n && !d9_model_has_hole(m, g->proc, w->t0, w->t1);
}

static int longest_first(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;
	d9_u64 p = x->t1 - x->t0, q = y->t1 - y->t0;
	return p != q ? (p > q ? -1 : 1) : x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

static void judge(const struct d9_model *m, struct d9_findings *out, struct group *g)
{
	d9_u64 polls = 0, total = 0;
	size_t i = 0;
	if (!g->late.n)
		return;
	qsort(g->late.v, g->late.n, sizeof(*g->late.v), longest_first);
	while (i < g->late.n && i < TRIES && !is_for_want_of_workers(m, g, &g->late.v[i], &polls))
		i++;
	if (i == g->late.n || i == TRIES)
		return;
	const struct wait *w = &g->late.v[i];
	for (size_t k = i; k < g->late.n; k++)
		total += g->late.v[k].t1 - g->late.v[k].t0;
	struct d9_finding *f = d9_finding_add(out, "wake-delay", w->thread);
	char dur[32];
	f->severity = d9_severity_of(w->t1 - w->t0);
	f->from = w->t0;
	f->to = w->t1;
	f->count = g->late.n - i;
	f->harm = total;
	d9_finding_title(f,
			 "a task that could run waited %s for one of %zu workers, which polled %llu others meanwhile",
			 d9_format_duration(w->t1 - w->t0, dur), g->workers.n, (unsigned long long)polls);
	f->cause.kind = "queue";
	f->cause.proc = g->proc;
	d9_finding_n(f, "wake_ns", w->t1 - w->t0);
	d9_finding_n(f, "count", f->count);
	f->try[0] = "`d9 tasks --most-polls` lists what the workers were busy with.";
	f->try[1] = "Give the runtime more workers if there are CPUs for them, or take in less at a time.";
}

void d9_find_wake_delay(struct d9_model *m, struct d9_findings *out)
{
	groups all = {0};
	for (d9_u32 i = 0; m->runtimes.n && i < m->t->threads.n; i++)
		gather(m, i, &all);
	for (size_t i = 0; i < all.n; i++) {
		judge(m, out, &all.v[i]);
		d9_vec_free(&all.v[i].workers);
		d9_vec_free(&all.v[i].late);
	}
	d9_vec_free(&all);
}
