/*
 * Ticks to CLOCK_MONOTONIC: piecewise linear between the moments at which the recorder read both clocks.
 * Beyond the first and the last pair the slope is that of the whole recording: two neighbours may lie so
 * close that the width of one reading would bend the line.
 */
#include "trace_internal.h"

void d9_clock_add(struct d9_clock_map *m, d9_u64 tsc, d9_u64 mono, d9_u64 real)
{
	d9_vec_push(m, (struct d9_clock_point){tsc, mono, real, 0});
}

static int by_tsc(const void *a, const void *b)
{
	const struct d9_clock_point *x = a, *y = b;
	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

void d9_clock_finish(struct d9_clock_map *m)
{
	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_tsc);
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++)
		if (!n || (m->v[i].tsc > m->v[n - 1].tsc && m->v[i].mono > m->v[n - 1].mono))
			m->v[n++] = m->v[i];
	m->n = n;
	for (size_t i = 0; i + 1 < n; i++)
		m->v[i].slope = (double)(m->v[i + 1].mono - m->v[i].mono) / (double)(m->v[i + 1].tsc - m->v[i].tsc);
}

static double ns_per_cycle(const struct d9_clock_map *m)
{
	const struct d9_clock_point *a = &m->v[0], *b = &m->v[m->n - 1];
	if (m->n > 1 && b->mono - a->mono > 1000000)
		return (double)(b->mono - a->mono) / (double)(b->tsc - a->tsc);
	if (m->hz > 0)
		return 1e9 / m->hz;
	if (m->n > 1)
		return (double)(b->mono - a->mono) / (double)(b->tsc - a->tsc);
	/* One reading and no rate: on most machines the counter began when the clock did. */
	return a->tsc ? (double)a->mono / (double)a->tsc : 1;
}

static d9_u64 along(const struct d9_clock_point *from, d9_u64 tsc, double slope)
{
	double ns = (double)(d9_i64)(tsc - from->tsc) * slope;
	double mono = (double)from->mono;
	return ns < 0 && -ns > mono ? 0 : from->mono + (d9_u64)(d9_i64)(ns < 0 ? ns - 0.5 : ns + 0.5);
}

d9_u64 d9_clock_to_mono(const struct d9_clock_map *m, d9_u64 tsc, size_t *cursor)
{
	if (!m->n)
		return tsc;
	if (tsc <= m->v[0].tsc)
		return along(&m->v[0], tsc, ns_per_cycle(m));
	if (tsc >= m->v[m->n - 1].tsc)
		return along(&m->v[m->n - 1], tsc, ns_per_cycle(m));
	size_t i = *cursor < m->n - 1 && m->v[*cursor].tsc <= tsc ? *cursor : 0;
	while (m->v[i + 1].tsc < tsc)
		i++;
	*cursor = i;
	return along(&m->v[i], tsc, m->v[i].slope);
}

d9_u64 d9_clock_mono_to_real(const struct d9_clock_map *m, d9_u64 mono_ns)
{
	if (!m->n)
		return 0;
	const struct d9_clock_point *best = &m->v[0];
	for (size_t i = 1; i < m->n && m->v[i].mono <= mono_ns; i++)
		best = &m->v[i];
	return best->real + mono_ns - best->mono;
}

d9_u64 d9_clock_real_to_mono(const struct d9_clock_map *m, d9_u64 real_ns)
{
	if (!m->n)
		return 0;
	const struct d9_clock_point *first = &m->v[0];
	if (real_ns <= first->real)
		return first->mono > first->real - real_ns ? first->mono - (first->real - real_ns) : 0;
	for (size_t i = 0; i + 1 < m->n; i++) {
		const struct d9_clock_point *p = &m->v[i], *next = p + 1;
		d9_u64 shown = p->real + (next->mono - p->mono); /* just before the next reading */
		if (real_ns >= p->real && real_ns < shown)
			return p->mono + (real_ns - p->real);
		if (real_ns >= shown && real_ns < next->real)
			return next->mono;
	}
	const struct d9_clock_point *last = &m->v[m->n - 1];
	return real_ns > last->real ? last->mono + (real_ns - last->real) : last->mono;
}
