/* The parts of a hook that are not on its fast path. */
#include "calls.h"
#include "stack.h"
#include "sys.h"

#include <string.h>

#define SITE_PROBES 8u

/* ---- sites -------------------------------------------------------------------------------------- */

/* Room of `bytes` in a pinned chunk; NULL if stacks of sites have had their share of the arena. */
static struct d9_tail *site_stack_room(struct d9_cell *me, d9_u32 bytes, struct d9_site *s)
{
	struct d9_arena_header *h = d9_shim.v.h;
	d9_u32 c = d9_load_acquire(&h->pinned_chunk);
	for (int tries = 0; tries < 3; tries++) {
		if (c && c <= d9_shim.v.n_chunks) { /* another member may have written it */
			d9_u64 at = d9_add_relaxed(&d9_shim.v.chunks[c - 1].used, bytes);
			if (at <= D9_CHUNK_RECORDS - bytes) {
				s->stack_at = (d9_u32)at;
				d9_store_release(&s->stack_chunk, c);
				return (struct d9_tail *)(d9_shim.v.chunks[c - 1].rec + at);
			}
		}
		d9_u32 fresh = d9_pin_chunk(me);
		if (!fresh)
			return NULL;
		d9_store_release(&h->pinned_chunk, fresh);
		c = fresh;
	}
	return NULL;
}

static void site_take_stack(struct d9_cell *me, struct d9_site *s, const struct d9_stack_plan *plan)
{
	struct d9_tail *to = plan->kind == D9_TAIL_NONE ? NULL : site_stack_room(me, plan->bytes, s);
	if (to)
		d9_stack_write(plan, to);
}

/* The entry is the caller's: it was free. */
static d9_u32 site_fill(struct d9_cell *me, d9_u32 i, const void *ra, d9_u32 depth, const struct d9_stack_plan *plan)
{
	struct d9_site *s = &d9_shim.v.sites[i];
	s->ra = (d9_u64)ra;
	s->depth = depth;
	s->proc = d9_shim.priv->proc;
	site_take_stack(me, s, plan);
	d9_store_release(&s->ready, 1);
	d9_add_relaxed(&d9_shim.v.h->site_next, 1);
	return D9_SITE_FIRST + i;
}

d9_u32 d9_site_new(struct d9_cell *me, d9_u32 hook, const void *ra, const void *fp)
{
	d9_u32 depth = d9_stack_depth(me, fp);
	if (!depth && d9_stack_known(me, (d9_u64)fp))
		depth = d9_stack_depth(me, fp);
	d9_u32 start = d9_site_hash((d9_u64)ra, hook, depth);
	for (d9_u32 k = 0; k < SITE_PROBES; k++) {
		d9_u32 i = (start + k) & (D9_N_SITES - 1), none = 0;
		struct d9_site *s = &d9_shim.v.sites[i];
		if (d9_load_acquire(&s->ready)) {
			if (s->ra == (d9_u64)ra && s->depth == depth && s->key == (hook | 1u << 31))
				return D9_SITE_FIRST + i;
			continue;
		}
		if (!d9_cas_acq_rel(&s->key, &none, hook | 1u << 31))
			continue; /* another thread, or the code that this handler interrupted, fills it */
		struct d9_stack_plan plan;
		d9_stack_plan(me, fp, &plan);
		return site_fill(me, i, ra, depth, &plan);
	}
	d9_add_relaxed(&d9_shim.v.h->sites_lost, 1);
	return hook; /* the hook is known, the place is not */
}

d9_u32 d9_site_add(struct d9_cell *me, d9_u32 hook, const void *ra, const void *fp, const struct d9_stack_plan *plan)
{
	d9_u32 start = d9_load_relaxed(&d9_shim.v.h->site_next) * 0x9e3779b1u >> (32 - D9_SITES_BITS);
	for (d9_u32 k = 0; k < SITE_PROBES; k++) {
		d9_u32 i = (start + k) & (D9_N_SITES - 1), none = 0;
		if (d9_cas_acq_rel(&d9_shim.v.sites[i].key, &none, hook | 1u << 31))
			return site_fill(me, i, ra, d9_stack_depth(me, fp), plan);
	}
	return 0;
}

/*
 * A frame that lies above the call's on the same stack proves it stale; so does, for a deeper one, another return address where that
 * of the call was: what is waited in is still on the stack.
 */
static bool stale(const struct d9_cell *me, const struct d9_in_call *s, const void *fp)
{
	const d9_u64 sp = s->sp, near = 8u << 20;
	d9_u32 site = s->site - D9_SITE_FIRST;
	if ((d9_u64)fp >= sp)
		return (d9_u64)fp - sp < near;
	if (sp < me->stack_lo || sp + 16 > me->stack_hi || site >= D9_N_SITES)
		return false;
	return ((const d9_u64 *)sp)[1] != d9_shim.v.sites[site].ra;
}

d9_u32 d9_in_call_leave(const struct d9_cell *me, struct d9_in_call *s, const void *fp, struct d9_in_call *to)
{
	*to = *s;
	d9_u32 site = stale(me, to, fp) ? 0 : to->site;
	d9_store_relaxed(&s->site, 0);
	d9_compiler_barrier();
	return site;
}

void d9_in_call_back(struct d9_in_call *s, d9_u32 site, const struct d9_in_call *outer)
{
	d9_compiler_barrier();
	d9_in_call_fill(s, site, outer->fd, outer->t0, outer->object, (const void *)outer->sp);
}

/* ---- records ------------------------------------------------------------------------------------- */

void d9_record_cpu(struct d9_cell *me, d9_u64 t)
{
	struct timespec ts;
	me->last_end = t; /* once in a long gap, and then once a millisecond while it lasts */
	if (d9_shim.priv->nosys || d9_sys2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&ts))
		return;
	const d9_u32 len = sizeof(struct d9_ev_cpu);
	struct d9_ev_cpu *e = (struct d9_ev_cpu *)d9_record_begin(me, len, D9_EV_cpu);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = t;
	e->run = (d9_u64)ts.tv_sec * 1000000000u + (d9_u64)ts.tv_nsec;
	e->delay = D9_NOT_KNOWN;
	e->source = 0;
	e->pad = 0;
	d9_record_commit(&e->rec, len, D9_EV_cpu);
}

static bool record_span_with_stack(struct d9_cell *me, const struct d9_call *c, d9_u64 t1, d9_i32 result, d9_u32 waker,
				   d9_u64 waker_t, const void *fp)
{
	struct d9_stack_plan plan;
	d9_stack_plan(me, fp, &plan);
	if (plan.kind == D9_TAIL_NONE)
		return false;
	d9_u32 len = (d9_u32)sizeof(struct d9_ev_span) + plan.bytes;
	/* Where no chunk is to be had (under a system call filter: none with a page), a span without its stack may still fit. */
	if ((-(d9_u64)me->cursor & (D9_CHUNK_BYTES - 1)) < len && !d9_claim_chunk(me))
		return false;
	struct d9_ev_span *e = (struct d9_ev_span *)d9_record_begin(me, len, D9_EV_span);
	if (!e)
		return true; /* dropped, and counted */
	*e = (struct d9_ev_span){.rec = {e->rec.head, c->site, t1},
				 .dur = t1 - c->t0,
				 .object = c->object,
				 .waker_t = waker_t,
				 .result = result,
				 .fd = c->fd,
				 .waker = waker,
				 .owner = c->owner};
	d9_stack_write(&plan, e + 1);
	d9_record_commit(&e->rec, len, D9_EV_span);
	return true;
}

/*
 * A site has a stack already; one of a single call adds what differs further out.  So not for every turn of a loop: the same
 * site of a thread again within a second has none, unless it was very long.
 */
static bool worth_a_stack(struct d9_cell *me, const struct d9_call *c, d9_u64 t1)
{
	if (t1 - c->t0 <= d9_shim.stack_min)
		return false;
	d9_u32 seen = c->site * 0x9e3779b1u ^ (d9_u32)(t1 / (1000 * d9_shim.long_gap));
	bool again = me->stack_seen == seen && t1 - c->t0 < 100 * d9_shim.long_gap;
	me->stack_seen = seen;
	return !again;
}

__attribute__((noinline)) void d9_record_long_span(struct d9_cell *me, const struct d9_call *c, d9_u64 t1,
						   d9_i32 result, d9_u32 waker, d9_u64 waker_t, const void *fp)
{
	if (!fp || !worth_a_stack(me, c, t1) || !record_span_with_stack(me, c, t1, result, waker, waker_t, fp))
		d9_record_span(me, c, t1, result, waker, waker_t);
	if (t1 - c->t0 > d9_shim.long_gap)
		d9_record_cpu(me, t1);
}

/* ---- calls that are counted ----------------------------------------------------------------------- */

static bool open_counts(struct d9_cell *me)
{
	struct d9_thread_calls *t = &d9_shim.v.calls[D9_THREAD_SLOT(me->thread)];
	if (d9_shim.priv->nosys || !d9_back(t, sizeof(*t)))
		return false;
	memset(t, 0, sizeof(*t));
	d9_compiler_barrier();
	me->calls = t;
	d9_store_release(&me->slot->calls_open, 1);
	return true;
}

static void count(struct d9_call_count *n, d9_u64 dur, bool failed)
{
	d9_local_add64(&n->count, 1);
	d9_local_add64(&n->total_tsc, dur);
	if (failed)
		d9_local_add32(&n->errors, 1);
	if (__builtin_expect(dur > n->max_tsc, 0))
		n->max_tsc = dur < ~0u ? (d9_u32)dur : ~0u;
}

/* The thread's counter of `hook`, taken if need be; NULL: none is left. */
static struct d9_call_count *find_counter(struct d9_cell *me, d9_u32 hook)
{
	if (!me->calls && !open_counts(me))
		return NULL;
	for (d9_u32 k = 0; k < D9_N_CALLS; k++) {
		struct d9_call_count *n = &me->calls->of[(hook + k) % D9_N_CALLS];
		if (n->hook == hook || !d9_local_claim32(&n->hook, hook) || n->hook == hook)
			return n;
	}
	return NULL;
}

D9_COLD __attribute__((noinline)) static void count_first(struct d9_cell *me, d9_u32 hook, d9_u64 dur, bool failed)
{
	struct d9_call_count *n = find_counter(me, hook);
	if (n)
		count(n, dur, failed);
	else
		d9_add_relaxed(&d9_shim.v.h->uncounted, 1);
}

void d9_count_call(struct d9_cell *me, d9_u32 hook, d9_u64 dur, bool failed)
{
	if (__builtin_expect(me->calls && me->calls->of[hook % D9_N_CALLS].hook == hook, 1))
		count(&me->calls->of[hook % D9_N_CALLS], dur, failed);
	else
		count_first(me, hook, dur, failed);
}

/* ---- wakers and holders ---------------------------------------------------------------------------- */

void d9_waker_claim(struct d9_waker *w, d9_u64 key)
{
	d9_u64 bit = 1ull << D9_WAITED_BIT(key);
	if (!(d9_load_relaxed(&d9_shim.waited) & bit))
		__atomic_fetch_or(&d9_shim.waited, bit, __ATOMIC_RELAXED);
	d9_store_release(&w->object, key); /* after the bit: who finds the key may rely on it */
}

void d9_waker_look(d9_u64 object)
{
	if (!d9_load_relaxed(d9_shim.mask))
		return;
	struct d9_waker *w = d9_waker_of(d9_wake_key(object));
	if (d9_load_relaxed(&w->object) != d9_wake_key(object))
		return;
	struct d9_cell *me = d9_me;
	if ((!me || !me->slot) && !(me = d9_enter_thread()))
		return;
	/* Again: in a child that had just been forked the key was its parent's until here, and so was the waiter. */
	if (d9_load_relaxed(&w->object) != d9_wake_key(object))
		return;
	d9_store_release(&w->t, 0);
	d9_store_release(&w->thread, me->thread);
	d9_store_release(&w->t, d9_now());
}

void d9_held_add(d9_u64 object)
{
	struct d9_cell *me = d9_me;
	if (!d9_load_relaxed(d9_shim.mask) || ((!me || !me->slot) && !(me = d9_enter_thread())))
		return;
	struct d9_held *h = me->slot->held;
	for (d9_u32 i = 0; i < D9_N_HELD; i++)
		if (!h[i].object || h[i].object == object) {
			h[i].t = d9_now();
			d9_store_release(&h[i].object, object);
			return;
		}
}

void d9_held_remove(d9_u64 object)
{
	struct d9_cell *me = d9_me;
	if (!me || !me->slot)
		return;
	for (d9_u32 i = 0; i < D9_N_HELD; i++)
		if (me->slot->held[i].object == object)
			d9_store_release(&me->slot->held[i].object, 0);
}
