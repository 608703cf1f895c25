#include "timeline.h"

/* One source: the spans or the events of a thread. */
struct source {
	d9_u64 t;
	d9_u32 thread;
	bool is_events;
	size_t i;
};

d9_u64 d9_timeline_begin(const struct d9_trace *t, const struct d9_trace_event *e)
{
	const struct d9_event_desc *d = &d9_events[e->id];
	if (e->id == D9_EV_gap) { /* since 0: the first one of the thread, nobody knows from when on */
		d9_u64 since = ((const struct d9_ev_gap *)e->rec)->since;
		return since ? d9_trace_ns(t, e->family, e->clock, since) : t->t_begin;
	}
	if (d->kind != D9_KIND_SPAN)
		return e->t;
	d9_u64 dur; /* the first field of every SPAN */
	memcpy(&dur, e->rec + 1, sizeof(dur));
	return d9_trace_ns(t, e->family, e->clock, e->rec->t - (dur < e->rec->t ? dur : e->rec->t));
}

static int span_by_begin(const void *a, const void *b)
{
	const struct d9_span *x = a, *y = b;
	return x->t0 != y->t0 ? (x->t0 < y->t0 ? -1 : 1) : x->t1 < y->t1 ? -1 : x->t1 > y->t1;
}
static int event_by_begin(const void *a, const void *b)
{
	const struct d9_trace_event *x = a, *y = b;
	return x->t != y->t ? (x->t < y->t ? -1 : 1) : x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void order(const struct d9_trace *t, struct d9_trace_thread *th)
{
	for (size_t i = 1; i < th->spans.n; i++)
		if (th->spans.v[i].t0 < th->spans.v[i - 1].t0) {
			qsort(th->spans.v, th->spans.n, sizeof(*th->spans.v), span_by_begin);
			break;
		}
	bool moved = false;
	for (size_t i = 0; i < th->events.n; i++) {
		struct d9_trace_event *e = &th->events.v[i];
		e->t = d9_timeline_begin(t, e);
		moved |= i && e->t < e[-1].t;
	}
	if (moved)
		qsort(th->events.v, th->events.n, sizeof(*th->events.v), event_by_begin);
}

static bool before(const struct source *a, const struct source *b)
{
	if (a->t != b->t)
		return a->t < b->t;
	return a->thread != b->thread ? a->thread < b->thread : a->is_events < b->is_events;
}

static void sink_down(struct source *heap, size_t n, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &heap[i]))
			return;
		struct source swap = heap[i];
		heap[i] = heap[child];
		heap[child] = swap;
	}
}

/* False when the source is exhausted. */
static bool advance(const struct d9_trace *t, struct source *s)
{
	const struct d9_trace_thread *th = &t->threads.v[s->thread];
	if (s->i == (s->is_events ? th->events.n : th->spans.n))
		return false;
	s->t = s->is_events ? th->events.v[s->i].t : th->spans.v[s->i].t0;
	return true;
}

static size_t gather(struct d9_trace *t, struct source *heap)
{
	size_t n = 0;
	for (d9_u32 i = 0; i < t->threads.n; i++) {
		if (!t->threads.v[i].shown)
			continue;
		order(t, &t->threads.v[i]);
		for (int events = 0; events < 2; events++) {
			struct source s = {.thread = i, .is_events = events};
			if (advance(t, &s))
				heap[n++] = s;
		}
	}
	return n;
}

int d9_timeline_walk(struct d9_trace *t, d9_timeline_fn *fn, void *ctx)
{
	struct source *heap = d9_must_alloc(t->threads.n * 2 + 1, sizeof(*heap));
	size_t n = gather(t, heap);
	for (size_t i = n; i-- > 0;)
		sink_down(heap, n, i);
	int r = 0;
	while (n && !r) {
		struct source *s = &heap[0];
		const struct d9_trace_thread *th = &t->threads.v[s->thread];
		r = fn(ctx, &(struct d9_timeline_item){.t = s->t,
						       .thread = th,
						       .span = s->is_events ? NULL : &th->spans.v[s->i],
						       .event = s->is_events ? &th->events.v[s->i] : NULL});
		s->i++;
		if (!advance(t, s))
			heap[0] = heap[--n];
		sink_down(heap, n, 0);
	}
	free(heap);
	return r;
}
