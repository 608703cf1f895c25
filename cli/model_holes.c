/*
 * When nothing, or not everything, of a thread was recorded: the recorder was off, or records were lost.  What did not happen in such
 * a time cannot be told from what was not seen, so no park's end, poll or CPU time reaches across it.
 */
#include "model_internal.h"

#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
	const struct d9_hole *x = a, *y = b;
	return x->t0 != y->t0 ? (x->t0 < y->t0 ? -1 : 1) : x->t1 < y->t1 ? -1 : x->t1 > y->t1;
}

/* Before the first switch that is known it was the other way round; who records from the start says so at the start. */
static void add_switches(const struct d9_trace_family *f, d9_holes *ret)
{
	d9_u64 off = f->switches.n && f->switches.v[0].on ? 1 : 0;
	for (size_t i = 0; i < f->switches.n; i++) {
		const struct d9_switched *s = &f->switches.v[i];
		if (s->on && off)
			d9_vec_push(ret, (struct d9_hole){off, s->t});
		if (!s->on && !off)
			off = s->t;
		if (s->on)
			off = 0;
	}
	if (off)
		d9_vec_push(ret, (struct d9_hole){off, D9_NOT_KNOWN});
}

static void merge(struct d9_model_thread *mt)
{
	size_t n = 0;
	if (mt->holes.n)
		qsort(mt->holes.v, mt->holes.n, sizeof(*mt->holes.v), by_begin);
	for (size_t i = 0; i < mt->holes.n; i++) {
		struct d9_hole u = mt->holes.v[i];
		if (n && u.t0 <= mt->holes.v[n - 1].t1) {
			if (u.t1 > mt->holes.v[n - 1].t1)
				mt->holes.v[n - 1].t1 = u.t1;
		} else if (u.t1 > u.t0) {
			mt->holes.v[n++] = u;
		}
	}
	mt->holes.n = n;
}

void d9_holes_find(struct d9_model *m)
{
	for (size_t i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		struct d9_model_thread *mt = &m->threads[i];
		add_switches(&m->t->families.v[th->family], &mt->holes);
		for (size_t k = 0; k < th->gaps.n; k++)
			d9_vec_push(&mt->holes, (struct d9_hole){th->gaps.v[k].since, th->gaps.v[k].t});
		merge(mt);
	}
}

/* The first that ends after t. */
static size_t first_after(const struct d9_model_thread *mt, d9_u64 t)
{
	size_t lo = 0, hi = mt->holes.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (mt->holes.v[mid].t1 > t)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

const struct d9_hole *d9_hole_in(const struct d9_model_thread *mt, d9_u64 t0, d9_u64 t1)
{
	size_t i = first_after(mt, t0);
	return i < mt->holes.n && mt->holes.v[i].t0 < t1 ? &mt->holes.v[i] : NULL;
}

d9_u64 d9_hole_time(const struct d9_model_thread *mt, d9_u64 t0, d9_u64 t1)
{
	d9_u64 sum = 0;
	for (size_t i = first_after(mt, t0); i < mt->holes.n && mt->holes.v[i].t0 < t1; i++)
		sum += d9_overlap(mt->holes.v[i].t0, mt->holes.v[i].t1, t0, t1);
	return sum;
}

bool d9_model_has_hole(const struct d9_model *m, d9_u32 proc, d9_u64 t0, d9_u64 t1)
{
	bool found = false;
	for (size_t i = 0; i < m->t->threads.n && !found; i++)
		found = m->t->threads.v[i].proc == proc && d9_hole_in(&m->threads[i], t0, t1);
	return found;
}

d9_u64 d9_model_off(const struct d9_model *m, const struct d9_trace_proc *p)
{
	d9_holes off = {0};
	d9_u64 sum = 0, end = p->end_how && p->end_t < m->t->to ? p->end_t : m->t->to;
	add_switches(&m->t->families.v[p->family], &off);
	for (size_t i = 0; i < off.n; i++)
		sum += d9_overlap(off.v[i].t0, off.v[i].t1, p->born > m->t->from ? p->born : m->t->from, end);
	d9_vec_free(&off);
	return sum;
}
