/* What can be made only when all segments are read: times in ns, orders, the ends of threads, calls and processes. */
#include "trace_internal.h"

/* ---- times -------------------------------------------------------------------------------------- */

struct convert {
	const struct d9_clock_map *map;
	size_t cursor;
};

static d9_u64 ns(struct convert *c, d9_u64 raw_t) { return raw_t ? d9_clock_to_mono(c->map, raw_t, &c->cursor) : 0; }

static int by_moment(const void *a, const void *b)
{
	const struct d9_switched *x = a, *y = b;
	return x->t < y->t ? -1 : x->t > y->t;
}

static void convert_family(struct d9_trace_family *f)
{
	struct convert c = {&f->clock, 0};
	d9_clock_finish(&f->clock);
	for (size_t i = 0; i < f->switches.n; i++)
		f->switches.v[i].t = ns(&c, f->switches.v[i].t);
	if (f->switches.n)
		qsort(f->switches.v, f->switches.n, sizeof(*f->switches.v), by_moment);
}

static void convert_thread(struct d9_trace *t, struct d9_trace_thread *th)
{
	struct convert c = {&t->families.v[th->family].clock, 0};
	for (size_t i = 0; i < th->spans.n; i++) {
		struct d9_span *s = &th->spans.v[i];
		s->t0 = ns(&c, s->t0);
		s->t1 = ns(&c, s->t1);
		s->waker_t = ns(&c, s->waker_t);
		th->kinds |= D9_KIND_BIT(s->kind);
	}
	for (size_t i = 0; i < th->cpu.n; i++)
		th->cpu.v[i].t = ns(&c, th->cpu.v[i].t);
	for (size_t i = 0; i < th->rt.n; i++) {
		th->rt.v[i].t0 = ns(&c, th->rt.v[i].t0);
		th->rt.v[i].t1 = ns(&c, th->rt.v[i].t1);
	}
	th->in_poll.t0 = ns(&c, th->in_poll.t0);
	th->in_poll.t1 = ns(&c, th->in_poll.t1);
	for (size_t i = 0; i < th->gaps.n; i++) {
		th->gaps.v[i].since = ns(&c, th->gaps.v[i].since);
		th->gaps.v[i].t = ns(&c, th->gaps.v[i].t);
	}
	for (size_t i = 0; i < th->held.n; i++) {
		th->held.v[i].since = ns(&c, th->held.v[i].since);
		th->held.v[i].t = ns(&c, th->held.v[i].t);
	}
	for (size_t i = 0; i < th->events.n; i++)
		th->events.v[i].t = ns(&c, th->events.v[i].t);
	d9_u64 base = ns(&c, c.map->n ? c.map->v[0].tsc : 1);
	for (size_t i = 0; i < th->calls.n; i++) { /* durations: through the slope at the first reading */
		d9_u64 origin = c.map->n ? c.map->v[0].tsc : 1;
		th->calls.v[i].total_ns = ns(&c, origin + th->calls.v[i].total_ns) - base;
		th->calls.v[i].max_ns = ns(&c, origin + th->calls.v[i].max_ns) - base;
	}
	th->born = ns(&c, th->born);
	th->pending.t = ns(&c, th->pending.t);
	th->pending.since = ns(&c, th->pending.since);
}

/* ---- orders ------------------------------------------------------------------------------------- */

#define IS_STRETCH(type) \
	_Static_assert(offsetof(struct type, t0) == 0 && offsetof(struct type, t1) == sizeof(d9_u64), #type)
IS_STRETCH(d9_span);
IS_STRETCH(d9_rt_span);
IS_STRETCH(d9_runq);
IS_STRETCH(d9_offcpu);

int d9_end_order(const void *a, const void *b)
{
	const struct d9_stretch *x = a, *y = b;
	return x->t1 != y->t1 ? (x->t1 < y->t1 ? -1 : 1) : x->t0 > y->t0 ? -1 : x->t0 < y->t0;
}

/*
 * Spans come in the order of their chunks, and two chunks that were full when the drainer came may have been written
 * the wrong way round: a few stretches, each in order, have to go back a little.  One after the other they are put
 * where they belong; should that cost more than sorting, all are sorted.
 */
static void order_spans(struct d9_trace_thread *th)
{
	struct d9_span *v = th->spans.v, *stretch = NULL;
	size_t n = th->spans.n, room = 0, moves = 0, end;
	for (size_t i = 1; i < n; i = end) {
		end = i + 1;
		if (v[i].t1 >= v[i - 1].t1)
			continue;
		size_t to = D9_FIRST_AFTER(v, i, t1, v[i].t1);
		while (end < n && v[end].t1 >= v[end - 1].t1 && v[end].t1 <= v[to].t1)
			end++;
		moves += end - to;
		if (moves > 8 * n) {
			qsort(v, n, sizeof(*v), d9_end_order);
			break;
		}
		if (end - i > room)
			stretch = d9_must_resize(stretch, room = end - i, sizeof(*stretch));
		memcpy(stretch, &v[i], (end - i) * sizeof(*v));
		memmove(&v[to + end - i], &v[to], (i - to) * sizeof(*v));
		memcpy(&v[to], stretch, (end - i) * sizeof(*v));
	}
	free(stretch);
}

static int cpu_order(const void *a, const void *b)
{
	const struct d9_cpu *x = a, *y = b;
	return x->t < y->t ? -1 : x->t > y->t;
}
static int event_order(const void *a, const void *b)
{
	const struct d9_trace_event *x = a, *y = b;
	return x->t != y->t ? (x->t < y->t ? -1 : 1) : x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Mostly they are in order: chunks are written as they are filled. */
#define ORDER(all, field, order)                                          \
	for (size_t i_ = 1; i_ < (all).n; i_++)                           \
		if ((all).v[i_].field < (all).v[i_ - 1].field) {          \
			qsort((all).v, (all).n, sizeof(*(all).v), order); \
			break;                                            \
		}

/* A poll that somebody saw the thread in is one of its polls, unless it ended after all. */
static void add_in_poll(struct d9_trace_thread *th)
{
	const struct d9_rt_span *p = &th->in_poll;
	bool over = !p->t1;
	for (size_t i = th->rt.n; i-- > 0 && !over && th->rt.v[i].t1 >= p->t0;)
		over = th->rt.v[i].t0 <= p->t0 && !th->rt.v[i].park;
	if (!over)
		d9_vec_push(&th->rt, *p);
}

void d9_trace_order_events(struct d9_trace_thread *th) { ORDER(th->events, t, event_order); }
void d9_trace_order_cpu(struct d9_trace_thread *th) { ORDER(th->cpu, t, cpu_order); }

static void order_thread(struct d9_trace_thread *th)
{
	order_spans(th);
	d9_trace_order_cpu(th);
	add_in_poll(th);
	ORDER(th->rt, t1, d9_end_order);
	d9_trace_order_events(th);
}

/* ---- ends --------------------------------------------------------------------------------------- */

/* What replaced itself by another program is over; its exec did not return because it worked. */
static void end_at_exec(const struct d9_trace *t, struct d9_trace_thread *th, d9_u64 *last)
{
	const struct d9_trace_proc *p = th->proc == D9_NO_INDEX ? NULL : &t->procs.v[th->proc];
	if (!p || p->end_how != 4 || !p->end_t)
		return;
	if (th->pending.unfinished && t->sites.v[th->pending.site].kind == D9_FAMILY_spawn)
		th->pending.unfinished = false;
	if (*last > p->end_t)
		*last = p->end_t;
}

static bool is_drainers(const struct d9_trace_event *e)
{
	switch (e->id) {
	case D9_EV_cpu:
		return ((const struct d9_ev_cpu *)e->rec)->source == 1;
	case D9_EV_pending:
	case D9_EV_in_poll:
	case D9_EV_held:
	case D9_EV_calls:
	case D9_EV_gap:
	case D9_EV_exit:
		return true;
	default:
		return false;
	}
}

static void first_and_last(const struct d9_trace *t, struct d9_trace_thread *th)
{
	d9_u64 first = th->born ? th->born : D9_NOT_KNOWN, last = 0;
	if (th->spans.n) {
		d9_u64 t0 = th->spans.v[0].t0;
		first = t0 < first ? t0 : first;
		last = th->spans.v[th->spans.n - 1].t1;
	}
	for (size_t i = 0; i < th->rt.n; i++) {
		first = th->rt.v[i].t0 < first ? th->rt.v[i].t0 : first;
		last = th->rt.v[i].t1 > last ? th->rt.v[i].t1 : last;
	}
	d9_u64 n_before = last, end = th->proc == D9_NO_INDEX ? 0 : t->procs.v[th->proc].end_t;
	for (size_t i = 0; i < th->events.n; i++) {
		d9_u64 at = th->events.v[i].t;
		if (end && at > end && is_drainers(&th->events.v[i]))
			at = end; /* when that was written down, not when the thread did anything */
		first = at && at < first ? at : first;
		last = at > last ? at : last;
	}
	th->pending.unfinished = th->pending.since && th->pending.t >= n_before &&
				 (!th->spans.n || th->spans.v[th->spans.n - 1].t1 <= th->pending.since);
	end_at_exec(t, th, &last);
	th->first = first == D9_NOT_KNOWN ? last : first;
	th->last = last > th->first ? last : th->first;
}

/*
 * A process that later ran another program, which is a family of its own: same pid, same start.  One that was over before a
 * drainer looked has no start: if it said itself that it would exec, the pid is enough.
 */
static void find_exec(struct d9_trace *t, struct d9_trace_proc *p)
{
	bool said = p->end_how == 4;
	d9_u64 born = D9_NOT_KNOWN;
	for (d9_u32 i = 0; i < t->procs.n; i++) {
		const struct d9_trace_proc *q = &t->procs.v[i];
		bool same = p->start && q->start ? p->start == q->start : said;
		if (q->family != p->family && !t->families.v[q->family].kernel && q->parent == D9_NO_INDEX &&
		    q->pid == p->pid && same && q->born > p->born && q->born < born) {
			born = q->born;
			p->became = i;
		}
	}
	if (born == D9_NOT_KNOWN || said)
		return;
	p->end_how = 4;
	p->end_t = born;
}

static void convert_proc(struct d9_trace *t, struct d9_trace_proc *p)
{
	struct convert c = {&t->families.v[p->family].clock, 0};
	p->born = ns(&c, p->born);
	p->end_t = ns(&c, p->end_t);
	p->exec_t = ns(&c, p->exec_t);
	if (p->end_how == 4 && p->exec_t && p->exec_t < p->end_t)
		p->end_t = p->exec_t; /* a drainer saw it later */
	const char *folder = t->families.v[p->family].folder;
	size_t n = strlen(folder) + 16;
	p->name = d9_must_alloc(n, 1);
	if (p->id)
		snprintf(p->name, n, "%s/%u", folder, p->id);
	else
		snprintf(p->name, n, "%s", folder);
}

void d9_trace_finish(struct d9_trace *t)
{
	for (size_t i = 0; i < t->families.n; i++)
		convert_family(&t->families.v[i]);
	for (size_t i = 0; i < t->threads.n; i++) {
		convert_thread(t, &t->threads.v[i]);
		order_thread(&t->threads.v[i]);
	}
	for (size_t i = 0; i < t->procs.n; i++)
		convert_proc(t, &t->procs.v[i]);
	for (size_t i = 0; i < t->procs.n; i++)
		if ((!t->procs.v[i].end_how || t->procs.v[i].end_how > 3) && /* how the others ended is known */
		    !t->families.v[t->procs.v[i].family].kernel)
			find_exec(t, &t->procs.v[i]);
	for (size_t i = 0; i < t->threads.n; i++)
		first_and_last(t, &t->threads.v[i]);
	for (size_t i = 0; i < t->modules.n; i++) {
		struct convert c = {&t->families.v[t->modules.v[i].family].clock, 0};
		t->modules.v[i].from = ns(&c, t->modules.v[i].from);
		t->modules.v[i].until = ns(&c, t->modules.v[i].until);
	}
	d9_kernel_join(t);
}
