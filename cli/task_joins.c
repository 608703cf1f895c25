/* See task_joins.h. */
#include "task_joins.h"

static int order(const void *a, const void *b)
{
	const struct d9_task_join *x = a, *y = b;
	return d9_by(x->proc, y->proc) ?: d9_by(x->module, y->module) ?: d9_by(x->by, y->by) ?: d9_by(x->t, y->t);
}

void d9_task_joins_find(const struct d9_model *m, struct d9_task_joins *ret)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		for (size_t k = 0; k < th->events.n; k++) {
			const struct d9_ev_task_join *e = (const void *)th->events.v[k].rec;
			if (th->events.v[k].id == D9_EV_task_join)
				d9_vec_push(&ret->of, (struct d9_task_join){.task = e->task,
									    .by = e->by,
									    .t = th->events.v[k].t,
									    .proc = th->proc,
									    .module = e->module,
									    .thread = i});
		}
	}
	if (ret->of.n)
		qsort(ret->of.v, ret->of.n, sizeof(*ret->of.v), order);
}

void d9_task_joins_free(struct d9_task_joins *j) { d9_vec_free(&j->of); }

const struct d9_task_join *d9_task_joins_last(const struct d9_task_joins *j, d9_u32 proc, d9_u32 module, d9_u64 by,
					      d9_u64 from, d9_u64 to)
{
	struct d9_task_join wanted = {.proc = proc, .module = module, .by = by, .t = to + (to != D9_NOT_KNOWN)};
	size_t i = d9_first_from(j->of.v, j->of.n, sizeof(wanted), &wanted, order);
	const struct d9_task_join *x = i ? &j->of.v[i - 1] : NULL;
	return x && x->proc == proc && x->module == module && x->by == by && x->t >= from ? x : NULL;
}
