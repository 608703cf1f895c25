/*
 * Events of the kernel's side to what the model reads: waits for a CPU and in the kernel in arrays of their own, each name and stack
 * once.  Nothing here trusts the file: a wait that reaches over the one before it is cut, so that sums stay within the time that passed.
 */
#include "clean.h"
#include "trace_internal.h"

/* ---- times, names, stacks ------------------------------------------------------------------------------------------- */

struct reading {
	struct d9_kernel_taker *k;
	const struct d9_clock_map *clock;
	size_t cursor;
	const struct d9_trace_event *ev;
};

static d9_u64 ns(struct reading *r, d9_u64 ticks)
{
	return ticks && ticks != D9_NOT_KNOWN ? d9_clock_to_mono(r->clock, ticks << (r->ev->clock & 63), &r->cursor)
					      : 0;
}

static d9_u64 begin_of(struct reading *r, d9_u64 dur)
{
	d9_u64 t = r->ev->rec->t, t0 = ns(r, dur < t ? t - dur : 0);
	return t0 < r->ev->t ? t0 : r->ev->t;
}

#define NAME_MAX_BYTES 256

/* Names of threads of anybody end up on terminals, and few of them come again and again. */
d9_u32 d9_kernel_name(struct d9_kernel_taker *k, const struct d9_bytes *b)
{
	char name[NAME_MAX_BYTES];
	size_t n = 0;
	for (; n < b->n && n + 1 < sizeof(name) && b->p[n]; n++)
		name[n] = (char)b->p[n];
	name[n] = '\0';
	if (!n)
		return 0;
	d9_clean(name, n);
	d9_u64 key = d9_map_bytes(D9_MAP_NO_BYTES, name, n);
	d9_u32 i = d9_map_get(&k->names, key);
	if (i != D9_MAP_EMPTY && !strcmp(k->t->names.v[i], name))
		return i;
	d9_vec_push(&k->t->names, d9_bump_str(k->t, name, n));
	d9_map_put(&k->names, key, (d9_u32)k->t->names.n - 1);
	return (d9_u32)k->t->names.n - 1;
}

/* A segment has each stack once, so its address says which it is. */
static d9_u32 tail_index(struct d9_kernel_taker *k, const struct d9_bytes *b)
{
	if (!b->n)
		return 0;
	d9_u64 key = (d9_u64)(uintptr_t)b->p;
	d9_u32 i = d9_map_get(&k->tails, key);
	if (i != D9_MAP_EMPTY && k->t->tails.v[i].n == b->n && k->t->tails.v[i].kind == b->kind)
		return i;
	d9_vec_push(&k->t->tails, *b);
	d9_map_put(&k->tails, key, (d9_u32)k->t->tails.n - 1);
	return (d9_u32)k->t->tails.n - 1;
}

void d9_kernel_taker_fini(struct d9_kernel_taker *k)
{
	d9_map_free(&k->names);
	d9_map_free(&k->tails);
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

static void take_runq(struct reading *r, struct d9_kernel_side *side)
{
	const struct d9_ev_runq *e = (const void *)r->ev->rec;
	d9_vec_push(&side->runq, (struct d9_runq){.t0 = begin_of(r, e->dur),
						  .t1 = r->ev->t,
						  .waking = ns(r, e->waking),
						  .had = e->ran < e->dur ? e->ran : e->dur,
						  .waker = e->waker,
						  .prev = e->prev,
						  .prev_pid = e->prev_pid,
						  .name = d9_kernel_name(r->k, &r->ev->tail),
						  .cpu = e->cpu,
						  .from_cpu = e->from_cpu,
						  .flags = e->flags & D9_KERNEL_FLAGS});
}

static void take_offcpu(struct reading *r, struct d9_kernel_side *side)
{
	const struct d9_ev_offcpu *e = (const void *)r->ev->rec;
	d9_vec_push(&side->offcpu, (struct d9_offcpu){.t0 = begin_of(r, e->dur),
						      .t1 = r->ev->t,
						      .woken = ns(r, e->woken),
						      .arg0 = e->arg0,
						      .ip = e->ip,
						      .nr = e->nr,
						      .state = e->state,
						      .flags = e->flags & D9_KERNEL_FLAGS,
						      .stack = tail_index(r->k, &r->ev->tail)});
}

/* Sums grow: the last ones count. */
static void take_sums(struct reading *r, struct d9_kernel_side *side)
{
	const struct d9_ev_runq_total *e = (const void *)r->ev->rec;
	if (!side->sums)
		side->sums = d9_bump(r->k->t, sizeof(*side->sums));
	*side->sums =
		(struct d9_runq_sums){.count = e->count, .total = e->total, .max = e->max, .by_schedstat = e->stat};
	size_t n = r->ev->tail.n / sizeof(d9_u64);
	if (n)
		memcpy(side->sums->buckets, r->ev->tail.p,
		       (n < D9_WAIT_BUCKETS ? n : D9_WAIT_BUCKETS) * sizeof(d9_u64));
}

/* It belongs to the wait that ends at the same moment, which may come before or after it. */
static void take_user_stack(struct reading *r, struct d9_kernel_side *side)
{
	d9_u64 t = r->ev->t;
	size_t i = D9_FIRST_AFTER(side->offcpu.v, side->offcpu.n, t1, t);
	if (i && side->offcpu.v[i - 1].t1 == t)
		side->offcpu.v[i - 1].user_stack = tail_index(r->k, &r->ev->tail);
}

void d9_kernel_take(struct d9_kernel_taker *k, struct d9_trace_thread *th)
{
	struct reading r = {k, &k->t->families.v[th->family].clock, 0, NULL};
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < th->events.n; i++) {
			r.ev = &th->events.v[i];
			if (pass) {
				if (r.ev->id == D9_EV_user_stack)
					take_user_stack(&r, &th->kernel);
			} else if (r.ev->id == D9_EV_runq) {
				take_runq(&r, &th->kernel);
			} else if (r.ev->id == D9_EV_offcpu) {
				take_offcpu(&r, &th->kernel);
			} else if (r.ev->id == D9_EV_runq_total) {
				take_sums(&r, &th->kernel);
			}
		}
}

/* ---- order --------------------------------------------------------------------------------------------------------------- */

static bool in_order(const d9_u64 *t1, size_t n, size_t size)
{
	for (size_t i = 1; i < n; i++)
		if (*(const d9_u64 *)((const char *)t1 + i * size) <
		    *(const d9_u64 *)((const char *)t1 + (i - 1) * size))
			return false;
	return true;
}

/* When it was woken, if the wait itself does not say: the wait for a CPU that ended at the same moment began then. */
static d9_u64 woken_at(const struct d9_kernel_side *side, const struct d9_offcpu *o)
{
	if (o->woken >= o->t0 && o->woken && o->woken <= o->t1)
		return o->woken;
	size_t i = D9_FIRST_AFTER(side->runq.v, side->runq.n, t1, o->t1);
	const struct d9_runq *q = i ? &side->runq.v[i - 1] : NULL;
	return q && q->t1 == o->t1 && q->t0 >= o->t0 ? q->t0 : o->t1;
}

void d9_kernel_settle(struct d9_kernel_side *side)
{
	struct d9_runq *q = side->runq.v;
	struct d9_offcpu *o = side->offcpu.v;
	if (side->runq.n && !in_order(&q->t1, side->runq.n, sizeof(*q)))
		qsort(q, side->runq.n, sizeof(*q), d9_end_order);
	if (side->offcpu.n && !in_order(&o->t1, side->offcpu.n, sizeof(*o)))
		qsort(o, side->offcpu.n, sizeof(*o), d9_end_order);
	for (size_t i = 1; i < side->runq.n; i++)
		if (q[i].t0 < q[i - 1].t1)
			q[i].t0 = q[i - 1].t1;
	for (size_t i = 0; i < side->offcpu.n; i++) {
		if (i && o[i].t0 < o[i - 1].t1)
			o[i].t0 = o[i - 1].t1;
		o[i].woken = woken_at(side, &o[i]);
	}
}
