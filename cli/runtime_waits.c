/* See runtime_waits.h. */
#include "runtime_waits.h"

static void gather(const struct d9_model *m, d9_u32 thread, d9_u64 least, struct d9_runtime_waits *all)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_model_thread *mt = &m->threads[thread];
	for (size_t i = 0; i < th->rt.n; i++) {
		const struct d9_rt_span *r = &th->rt.v[i];
		if (r->park || d9_is_pool(r))
			continue;
		struct d9_runtime_waits *w = &all[d9_model_runtime(m, th->proc, r->module, r->runtime)];
		w->untold |= r->worker == D9_NO_INDEX;
		if (!w->workers.n || w->workers.v[w->workers.n - 1] != thread)
			d9_vec_push(&w->workers, thread);
	}
	for (d9_u32 i = 0; i < mt->queued.n; i++) {
		const struct d9_queued *q = &mt->queued.v[i];
		const struct d9_rt_span *r = &th->rt.v[q->rt];
		if (q->t1 - q->t0 >= least && !d9_is_pool(r))
			d9_vec_push(&all[d9_model_runtime(m, th->proc, r->module, r->runtime)].late,
				    (struct d9_late){thread, i, r->module, r->task, q->t0, q->t1});
	}
}

struct d9_runtime_waits *d9_runtime_waits(const struct d9_model *m, d9_u64 least)
{
	struct d9_runtime_waits *all = d9_must_alloc(m->runtimes.n + 1, sizeof(*all));
	for (d9_u32 i = 0; m->runtimes.n && i < m->t->threads.n; i++)
		gather(m, i, least, all);
	return all;
}

void d9_runtime_waits_free(const struct d9_model *m, struct d9_runtime_waits *all)
{
	for (size_t i = 0; i < m->runtimes.n; i++) {
		d9_vec_free(&all[i].workers);
		d9_vec_free(&all[i].late);
	}
	free(all);
}
