/*
 * idle-stall: a task could run and nobody polled it for long, while all workers of its runtime were parked.  Nothing ran and nothing
 * was blocked, so no lock or call is blamed: a wake-up was lost, or went to where nobody looks.
 *
 * Of runtimes whose polls say which worker did them.  One that runs on the thread that asks it to may just not be asked.
 */
#include "findings.h"
#include "runtime_waits.h"

#define STALL_MIN_NS 400000000ull /* longer than a thread that was woken waits for a CPU */

static void gather_left(const struct d9_model *m, struct d9_runtime_waits *all)
{
	for (size_t i = 0; i < m->left.n; i++) {
		const struct d9_left *l = &m->left.v[i];
		const struct d9_trace_proc *p = l->proc == D9_NO_INDEX ? NULL : &m->t->procs.v[l->proc];
		d9_u64 end = p && p->end_how && p->end_t < m->t->to ? p->end_t : m->t->to;
		if (l->t0 + STALL_MIN_NS <= end)
			d9_vec_push(&all[d9_model_runtime(m, l->proc, l->module, l->runtime)].late,
				    (struct d9_late){l->thread, D9_NO_INDEX, l->module, l->task, l->t0, end});
	}
}

static bool was_parked(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	const struct d9_pending *p = &m->t->threads.v[thread].pending;
	d9_u64 parked = p->unfinished && d9_model_pending_parks(m, thread) ? d9_overlap(p->since, p->t, t0, t1) : 0;
	for (size_t i = D9_FIRST_AFTER(mt->parks.v, mt->parks.n, t1, t0); i < mt->parks.n && mt->parks.v[i].t0 < t1;
	     i++)
		parked += d9_overlap(mt->parks.v[i].t0, mt->parks.v[i].t1, t0, t1);
	d9_u64 no_cpu = d9_model_runq_in(m, thread, t0, t1); /* woken, and not run: that is no idleness */
	return (parked > no_cpu ? parked - no_cpu : 0) * 10 >= (t1 - t0) * 9;
}

static bool nobody_looked(const struct d9_model *m, d9_u32 proc, const struct d9_runtime_waits *g,
			  const struct d9_late *w)
{
	for (size_t i = 0; i < g->workers.n; i++)
		if (!was_parked(m, g->workers.v[i], w->t0, w->t1))
			return false;
	return g->workers.n && !d9_model_has_hole(m, proc, w->t0, w->t1);
}

static void report(struct d9_model *m, struct d9_findings *out, const struct d9_late *w, size_t workers, d9_u64 tasks)
{
	struct d9_finding *f = d9_finding_add(out, "idle-stall", w->thread);
	char dur[32];
	f->severity = D9_CRITICAL;
	f->from = w->t0;
	f->to = w->t1;
	f->count = tasks;
	f->harm = (w->t1 - w->t0) * tasks;
	d9_finding_title(f, "a task could run and was not polled for %s, while all %zu workers that polled were parked",
			 d9_format_duration(w->t1 - w->t0, dur), workers);
	d9_finding_task(f, m, w->thread, &(struct d9_rt_span){.module = w->module, .task = w->task});
	f->cause.kind = "queue";
	f->cause.proc = m->t->threads.v[w->thread].proc;
	d9_finding_n(f, "idle_ns", w->t1 - w->t0);
	d9_finding_n(f, "tasks", tasks);
	if (w->index != D9_NO_INDEX)
		d9_finding_span(f, (struct d9_ref){w->thread, D9_REF_QUEUE, w->index});
	f->try[0] =
		"`d9 task KEY` shows who woke it last: was it woken for the runtime, and the runtime's workers told?";
}

static void judge(struct d9_model *m, struct d9_findings *out, d9_u32 proc, const struct d9_runtime_waits *g)
{
	const struct d9_late *worst = NULL;
	d9_u64 tasks = 0;
	for (size_t i = 0; i < g->late.n && !g->untold; i++) {
		const struct d9_late *w = &g->late.v[i];
		if (!nobody_looked(m, proc, g, w))
			continue;
		tasks++;
		if (!worst || w->t1 - w->t0 > worst->t1 - worst->t0)
			worst = w;
	}
	if (worst)
		report(m, out, worst, g->workers.n, tasks);
}

void d9_find_idle_stall(struct d9_model *m, struct d9_findings *out)
{
	struct d9_runtime_waits *all = d9_runtime_waits(m, STALL_MIN_NS);
	gather_left(m, all);
	for (size_t i = 0; i < m->runtimes.n; i++)
		judge(m, out, m->runtimes.v[i].proc, &all[i]);
	d9_runtime_waits_free(m, all);
}
