/* See task_dumps.h. */
#include "task_dumps.h"

static int order(const void *a, const void *b)
{
	const struct d9_task_dump *x = a, *y = b;
	return d9_by(x->proc, y->proc) ?: d9_by(x->module, y->module) ?: d9_by(x->task, y->task) ?: d9_by(x->t, y->t);
}

void d9_task_dumps_find(const struct d9_model *m, struct d9_task_dumps *ret)
{
	for (size_t i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		for (size_t k = 0; k < th->events.n; k++) {
			const struct d9_ev_task_dump *e = (const void *)th->events.v[k].rec;
			if (th->events.v[k].id != D9_EV_task_dump)
				continue;
			d9_u32 site = e->rec.site ? d9_trace_site_index(m->t, th->family, e->rec.site) : D9_NO_INDEX;
			d9_vec_push(&ret->of, (struct d9_task_dump){.task = e->task,
								    .t = th->events.v[k].t,
								    .proc = th->proc,
								    .module = e->module,
								    .site = site,
								    .flags = e->flags});
		}
	}
	if (ret->of.n)
		qsort(ret->of.v, ret->of.n, sizeof(*ret->of.v), order);
}

size_t d9_task_dumps_in(const struct d9_task_dumps *d, d9_u32 proc, d9_u32 module, d9_u64 task, d9_u64 from, d9_u64 to,
			const struct d9_task_dump **ret)
{
	struct d9_task_dump wanted = {.proc = proc, .module = module, .task = task, .t = from};
	size_t lo = d9_first_from(d->of.v, d->of.n, sizeof(wanted), &wanted, order);
	wanted.t = to + (to != D9_NOT_KNOWN);
	*ret = d->of.n ? d->of.v + lo : NULL;
	return d9_first_from(d->of.v, d->of.n, sizeof(wanted), &wanted, order) - lo;
}

const struct d9_stack *d9_task_dump_stack(const struct d9_model *m, struct d9_task_dumps *d,
					  const struct d9_task_dump *x)
{
	static const struct d9_stack none;
	if (x->site == D9_NO_INDEX)
		return &none;
	d9_u32 i = d9_map_get(&d->by_site, x->site);
	if (i == D9_MAP_EMPTY) {
		const struct d9_trace_site *s = &m->t->sites.v[x->site];
		struct d9_stack *stack = d9_must_alloc(1, sizeof(*stack));
		d9_show_resolve(m->t, x->proc, &s->stack, s->ra, stack);
		i = (d9_u32)d->stacks.n;
		d9_vec_push(&d->stacks, stack);
		d9_map_put(&d->by_site, x->site, i);
	}
	return d->stacks.v[i];
}

bool d9_same_stack(const struct d9_stack *a, const struct d9_stack *b)
{
	if (a->n != b->n)
		return false;
	for (d9_u32 i = 0; i < a->n; i++) {
		const struct d9_frame *x = &a->frames[i], *y = &b->frames[i];
		if (x->offset != y->offset ||
		    (x->module != y->module && (!x->module || !y->module || strcmp(x->module, y->module) != 0)))
			return false;
	}
	return true;
}

void d9_task_dumps_free(struct d9_task_dumps *d)
{
	for (size_t i = 0; i < d->stacks.n; i++)
		free(d->stacks.v[i]);
	d9_vec_free(&d->stacks);
	d9_vec_free(&d->of);
	d9_map_free(&d->by_site);
}
