/* See kernel_spans.h. */
#include "kernel_spans.h"
#include "show.h"

#include <stdlib.h>

static d9_u64 ticks_of(const struct d9_trace_event *ev)
{
	return ev->id == D9_EV_block_io ? ((const struct d9_ev_block_io *)ev->rec)->dur
					: ((const struct d9_ev_syscall *)ev->rec)->dur;
}

static int longest_first(const void *a, const void *b)
{
	const struct d9_kernel_span *x = a, *y = b;
	if (x->dur != y->dur)
		return x->dur > y->dur ? -1 : 1;
	return x->t0 != y->t0 ? d9_by(x->t0, y->t0) : d9_by(x->thread, y->thread);
}

static void take(const struct d9_model *m, d9_u32 thread, const struct d9_trace_event *ev, struct d9_kernel_spans *ret)
{
	const struct d9_trace *t = m->t;
	d9_u64 ticks = ticks_of(ev), end = ev->rec->t;
	d9_u64 t0 = d9_trace_ns(t, ev->family, ev->clock, ticks < end ? end - ticks : 0);
	if (t0 > ev->t)
		t0 = ev->t;
	if (ev->t >= t->from && t0 <= t->to)
		d9_vec_push(&ret->of, (struct d9_kernel_span){t0, ev->t - t0, ev, thread});
}

void d9_kernel_spans_find(const struct d9_model *m, d9_u16 id, struct d9_kernel_spans *ret)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		for (size_t k = 0; k < th->events.n && th->shown; k++)
			if (th->events.v[k].id == id)
				take(m, i, &th->events.v[k], ret);
	}
	if (ret->of.n)
		qsort(ret->of.v, ret->of.n, sizeof(*ret->of.v), longest_first);
}

void d9_kernel_spans_fini(struct d9_kernel_spans *s) { d9_vec_free(&s->of); }

struct d9_kernel_row *d9_kernel_row(struct d9_kernel_rows *r, d9_u64 key)
{
	d9_u32 i = d9_map_get(&r->by_key, key);
	if (i == D9_MAP_EMPTY) {
		i = (d9_u32)r->of.n;
		d9_vec_push(&r->of, (struct d9_kernel_row){.key = key});
		d9_map_put(&r->by_key, key, i);
	}
	return &r->of.v[i];
}

static int most_first(const void *a, const void *b)
{
	const struct d9_kernel_row *x = a, *y = b;
	if (x->h.total != y->h.total)
		return x->h.total > y->h.total ? -1 : 1;
	return d9_by(x->key, y->key);
}

void d9_kernel_rows_sort(struct d9_kernel_rows *r)
{
	if (r->of.n)
		qsort(r->of.v, r->of.n, sizeof(*r->of.v), most_first);
}

void d9_kernel_rows_fini(struct d9_kernel_rows *r)
{
	for (size_t i = 0; i < r->of.n; i++)
		d9_hist_free(&r->of.v[i].h);
	d9_vec_free(&r->of);
	d9_map_free(&r->by_key);
}

int d9_cmd_of_kernel(const struct d9_cmd *self, int argc, char **argv, size_t worst,
		     int (*write)(const struct d9_model *m, size_t worst, bool json))
{
	struct d9_read_opts o;
	const char *text = NULL;
	const struct d9_opt extra[] = {{"--worst", true, &text}};
	int r = d9_read_opts_parse(self, argc, argv, 0, extra, 1, &o);
	if (r)
		return r - 1;
	if (text && d9_parse_count(text, &worst) < 0)
		return d9_fail(D9_EXIT_USAGE, "%s: --worst %s is no number", self->name, text);
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (r)
		return r;
	r = d9_trace_has_kernel(m->t) ? write(m, worst, o.json)
				      : d9_fail(D9_EXIT_DATA, "%s: " D9_NO_KERNEL_SIDE, self->name);
	d9_model_close(m);
	return r;
}
