/*
 * wake-delay: tasks that could run waited for a worker, for all workers of their runtime were busy with other tasks.
 *
 * Not where one poll took most of that time: then it is the cause, and found by what held it up.  Nor where a worker was parked
 * meanwhile, or where what the workers did not get was a CPU.
 */
#include "findings.h"
#include "runtime_waits.h"

#define JUDGED 256u /* of the longest waits of a runtime */

/*
 * Did the worker poll one task of the runtime after the other from t0 to t1?  *polls: adds how many.  What it did between them, for
 * no task, may have been anything.
 */
static bool is_busy(const struct d9_model *m, d9_u32 thread, const struct d9_runtime *of, d9_u64 t0, d9_u64 t1,
		    d9_u64 *polls)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u64 polled = 0, longest = 0, delay, window, until = t0;
	for (size_t i = D9_FIRST_AFTER(th->rt.v, th->rt.n, t1, t0); i < th->rt.n && until < t1; i++) {
		const struct d9_rt_span *r = &th->rt.v[i];
		bool inner = i + 1 < th->rt.n && th->rt.v[i + 1].t0 <= r->t0;
		if (r->park || inner || r->module != of->module || r->runtime != of->id)
			continue;
		d9_u64 o = d9_overlap(r->t0, r->t1, t0, t1);
		polled += o;
		longest = o > longest ? o : longest;
		*polls += o > 0;
		until = r->t1;
	}
	return polled * 10 >= (t1 - t0) * 7 && longest * 2 < t1 - t0 &&
	       d9_model_run_delay(m, thread, t0, t1, &delay, &window) && delay * 2 < t1 - t0;
}

static bool is_for_want_of_workers(const struct d9_model *m, const struct d9_runtime *of,
				   const struct d9_runtime_waits *g, const struct d9_late *w, d9_u64 *ret_polls)
{
	*ret_polls = 0;
	for (size_t i = 0; i < g->workers.n; i++)
		if (!is_busy(m, g->workers.v[i], of, w->t0, w->t1, ret_polls))
			return false;
	return g->workers.n && !d9_model_has_hole(m, of->proc, w->t0, w->t1);
}

static int longest_first(const void *a, const void *b)
{
	const struct d9_late *x = a, *y = b;
	d9_u64 p = x->t1 - x->t0, q = y->t1 - y->t0;
	return p != q ? (p > q ? -1 : 1) : x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

static void report(struct d9_findings *out, const struct d9_runtime *of, const struct d9_runtime_waits *g,
		   const struct d9_late *w, d9_u64 polls, d9_u64 count, d9_u64 total)
{
	struct d9_finding *f = d9_finding_add(out, "wake-delay", w->thread);
	char dur[32];
	f->severity = d9_severity_of(w->t1 - w->t0);
	f->from = w->t0;
	f->to = w->t1;
	f->count = count;
	f->harm = total;
	d9_finding_title(f, "a task that could run waited %s for one of %zu workers, which polled %llu times meanwhile",
			 d9_format_duration(w->t1 - w->t0, dur), g->workers.n, (unsigned long long)polls);
	f->cause.kind = "queue";
	f->cause.proc = of->proc;
	d9_finding_n(f, "wake_ns", w->t1 - w->t0);
	d9_finding_n(f, "count", count);
	f->try[0] = "`d9 tasks --most-polls` lists what the workers were busy with.";
	f->try[1] = "Give the runtime more workers if there are CPUs for them, or take in less at a time.";
}

static void judge(const struct d9_model *m, struct d9_findings *out, const struct d9_runtime *of,
		  struct d9_runtime_waits *g)
{
	const struct d9_late *worst = NULL;
	d9_u64 count = 0, total = 0, polls, polls_then = 0;
	if (g->late.n)
		qsort(g->late.v, g->late.n, sizeof(*g->late.v), longest_first);
	for (size_t i = 0; i < g->late.n && i < JUDGED; i++) {
		const struct d9_late *w = &g->late.v[i];
		if (!is_for_want_of_workers(m, of, g, w, &polls))
			continue;
		count++;
		total += w->t1 - w->t0;
		if (!worst) {
			worst = w;
			polls_then = polls;
		}
	}
	if (worst)
		report(out, of, g, worst, polls_then, count, total);
}

void d9_find_wake_delay(struct d9_model *m, struct d9_findings *out)
{
	struct d9_runtime_waits *all = d9_runtime_waits(m, D9_WARN_NS);
	for (size_t i = 0; i < m->runtimes.n; i++)
		judge(m, out, &m->runtimes.v[i], &all[i]);
	d9_runtime_waits_free(m, all);
}
