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

static void merge(d9_holes *h)
{
	size_t n = 0;
	if (h->n)
		qsort(h->v, h->n, sizeof(*h->v), by_begin);
	for (size_t i = 0; i < h->n; i++) {
		struct d9_hole u = h->v[i];
		if (n && u.t0 <= h->v[n - 1].t1) {
			if (u.t1 > h->v[n - 1].t1)
				h->v[n - 1].t1 = u.t1;
		} else if (u.t1 > u.t0) {
			h->v[n++] = u;
		}
	}
	h->n = n;
}

void d9_holes_find(struct d9_model *m)
{
	m->holes = d9_must_alloc(m->t->procs.n + 1, sizeof(*m->holes));
	for (size_t i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		d9_holes *h = &m->threads[i].holes;
		add_switches(&m->t->families.v[th->family], h);
		for (size_t k = 0; k < th->gaps.n; k++)
			d9_vec_push(h, (struct d9_hole){th->gaps.v[k].since, th->gaps.v[k].t});
		merge(h);
		for (size_t k = 0; k < h->n && th->proc != D9_NO_INDEX; k++)
			d9_vec_push(&m->holes[th->proc], h->v[k]);
	}
	for (size_t i = 0; i < m->t->procs.n; i++)
		merge(&m->holes[i]);
}

void d9_holes_free(struct d9_model *m)
{
	for (size_t i = 0; i < m->t->threads.n; i++)
		d9_vec_free(&m->threads[i].holes);
	for (size_t i = 0; m->holes && i < m->t->procs.n; i++)
		d9_vec_free(&m->holes[i]);
	free(m->holes);
}

const struct d9_hole *d9_hole_in(const d9_holes *h, d9_u64 t0, d9_u64 t1)
{
	size_t i = D9_FIRST_AFTER(h->v, h->n, t1, t0);
	return i < h->n && h->v[i].t0 < t1 ? &h->v[i] : NULL;
}

d9_u64 d9_hole_time(const d9_holes *h, d9_u64 t0, d9_u64 t1)
{
	d9_u64 sum = 0;
	for (size_t i = D9_FIRST_AFTER(h->v, h->n, t1, t0); i < h->n && h->v[i].t0 < t1; i++)
		sum += d9_overlap(h->v[i].t0, h->v[i].t1, t0, t1);
	return sum;
}

bool d9_model_has_hole(const struct d9_model *m, d9_u32 proc, d9_u64 t0, d9_u64 t1)
{
	return proc != D9_NO_INDEX && d9_hole_in(&m->holes[proc], t0, t1);
}

d9_u64 d9_model_off(const struct d9_model *m, const struct d9_trace_proc *p)
{
	d9_holes off = {0};
	d9_u64 end = p->end_how && p->end_t < m->t->to ? p->end_t : m->t->to;
	add_switches(&m->t->families.v[p->family], &off);
	d9_u64 sum = d9_hole_time(&off, p->born > m->t->from ? p->born : m->t->from, end);
	d9_vec_free(&off);
	return sum;
}
