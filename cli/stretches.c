/* See stretches.h. */
#include "stretches.h"

static int by_begin(const void *a, const void *b)
{
	return d9_by(((const struct d9_stretch *)a)->t0, ((const struct d9_stretch *)b)->t0);
}

void d9_stretches_merge(d9_stretches *s)
{
	size_t n = 0;
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_begin);
	for (size_t i = 0; i < s->n; i++) {
		struct d9_stretch u = s->v[i];
		if (n && u.t0 <= s->v[n - 1].t1)
			s->v[n - 1].t1 = u.t1 > s->v[n - 1].t1 ? u.t1 : s->v[n - 1].t1;
		else
			s->v[n++] = u;
	}
	s->n = n;
}

void d9_stretches_append(d9_stretches *s, d9_u64 t0, d9_u64 t1)
{
	d9_u64 last = s->n ? s->v[s->n - 1].t1 : 0;
	if (t0 < last)
		t0 = last;
	if (t1 > t0)
		d9_vec_push(s, (struct d9_stretch){t0, t1});
}

void d9_stretches_add_rest(d9_stretches *s, d9_u64 t0, d9_u64 t1, const d9_stretches *without)
{
	for (size_t i = D9_FIRST_AFTER(without->v, without->n, t1, t0); i < without->n && without->v[i].t0 < t1; i++) {
		if (without->v[i].t0 > t0)
			d9_vec_push(s, (struct d9_stretch){t0, without->v[i].t0});
		t0 = without->v[i].t1;
	}
	if (t0 < t1)
		d9_vec_push(s, (struct d9_stretch){t0, t1});
}

bool d9_stretches_hold(const d9_stretches *s, d9_u64 t)
{
	size_t i = D9_FIRST_AFTER(s->v, s->n, t1, t - (t > 0));
	return i < s->n && s->v[i].t0 <= t;
}

d9_u64 d9_stretches_within(const d9_stretches *s, d9_u64 t0, d9_u64 t1)
{
	d9_u64 sum = 0;
	for (size_t i = D9_FIRST_AFTER(s->v, s->n, t1, t0); i < s->n && s->v[i].t0 < t1; i++)
		sum += (s->v[i].t1 < t1 ? s->v[i].t1 : t1) - (s->v[i].t0 > t0 ? s->v[i].t0 : t0);
	return sum;
}
