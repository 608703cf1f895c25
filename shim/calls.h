/*
 * What a hook does around the real call: take the time, say what the thread is in, call, take the time,
 * make one record.  No system call, no lock, no allocation, errno untouched; slow parts out of line.
 *
 *	D9_BEGIN(epoll_wait, 0, epfd);
 *	int r = d9_real.epoll_wait(epfd, ev, n, ms);
 *	D9_END(epoll_wait, D9_RESULT(r));
 *	return r;
 *
 * Nothing is held over the real call: a handler may run there, siglongjmp may leave it for ever, cancellation may
 * unwind it.  After it the thread's cell is looked up again: the call may have been fork.
 */
#ifndef D9_SHIM_CALLS_H
#define D9_SHIM_CALLS_H
#include "clock.h"
#include "format/families.h"
#include "lifecycle.h"
#include "record.h"

#include <errno.h>

struct d9_call {
	d9_u64 t0, object;
	const struct d9_waker *waker; /* where the object is marked; for a call that is marked */
	d9_u32 site;                  /* 0: this call is not recorded */
	d9_i32 fd;
	d9_u32 owner, outer_site;
	struct d9_in_call *outer; /* what the thread was in before, if outer_site: a handler may wait inside a wait */
};

/* Number of the call place (hook, ra, depth of fp); interned at its first call, with its stack.  Never 0. */
D9_COLD d9_u32 d9_site_new(struct d9_cell *me, d9_u32 hook, const void *ra, const void *fp);

/* A place of its own, whatever others there are; 0: there is no room for it. */
struct d9_stack_plan;
D9_COLD d9_u32 d9_site_add(struct d9_cell *me, d9_u32 hook, const void *ra, const void *fp,
			   const struct d9_stack_plan *plan);

static inline d9_u32 d9_site_hash(d9_u64 ra, d9_u32 hook, d9_u32 depth)
{
	return ((d9_u32)ra * 0x9e3779b1u + depth * 0x85ebca6bu + hook * 0xc2b2ae35u) >> (32 - D9_SITES_BITS);
}
static inline d9_u32 d9_stack_depth(const struct d9_cell *me, const void *fp)
{
	d9_u64 d = me->stack_hi - (d9_u64)fp;
	return __builtin_expect(d < (1u << 30), 1) ? (d9_u32)d : 0;
}
/* The call place's number if it is known and the first of its hash; else 0: ask d9_site_new. */
static inline __attribute__((always_inline)) d9_u32 d9_site_known(const struct d9_cell *me, d9_u32 hook, const void *ra,
								  const void *fp)
{
	d9_u32 depth = d9_stack_depth(me, fp), i = d9_site_hash((d9_u64)ra, hook, depth);
	const struct d9_site *s = &d9_shim.v.sites[i];
	bool same =
		s->ra == (d9_u64)ra && s->depth == depth && s->key == (hook | 1u << 31) && d9_load_acquire(&s->ready);
	return __builtin_expect(same, 1) ? D9_SITE_FIRST + i : 0;
}

/* The thread computed for longer than a millisecond: its CPU clock goes on record. */
D9_COLD void d9_record_cpu(struct d9_cell *me, d9_u64 t);

/* s->site is 0: whoever samples it looks away until it is set. */
static inline void d9_in_call_fill(struct d9_in_call *s, d9_u32 site, d9_i32 fd, d9_u64 t0, d9_u64 object,
				   const void *fp)
{
	s->fd = fd;
	s->t0 = t0;
	s->object = object;
	s->sp = (d9_u64)fp;
	d9_store_release(&s->site, site);
}

/*
 * The thread is in another call already: keeps it in `to` and clears s.  0 if it is none any more, for a siglongjmp out of a wait leaves
 * its mark behind; else its site.
 */
D9_COLD d9_u32 d9_in_call_leave(const struct d9_cell *me, struct d9_in_call *s, const void *fp, struct d9_in_call *to);
/* The call lay within another, which the thread is in again. */
D9_COLD void d9_in_call_back(struct d9_in_call *s, d9_u32 site, const struct d9_in_call *outer);

/*
 * bit: the family's bit of the control word.  Sets c->site to 0 if this call is not to be recorded.  The clock is read first: what
 * follows runs while the counter is being read.  outer: room for what the thread was in before, apart from *c so that *c itself may live
 * in registers.
 */
static inline __attribute__((always_inline)) void d9_call_begin(struct d9_call *c, struct d9_in_call *outer,
								d9_u32 hook, d9_u64 bit, d9_u64 object, d9_i32 fd,
								const void *ra, const void *fp)
{
	c->site = 0;
	c->outer = outer;
	if (__builtin_expect(!(d9_load_relaxed(d9_shim.mask) & bit), 0))
		return;
	struct d9_cell *me = d9_me;
	if (__builtin_expect(!me || !me->slot, 0) && !(me = d9_enter_thread()))
		return;
	c->t0 = d9_now();
	c->site = d9_site_known(me, hook, ra, fp);
	if (__builtin_expect(!c->site, 0)) {
		c->site = d9_site_new(me, hook, ra, fp);
		c->t0 = d9_now(); /* it took the stack */
	}
	c->object = object;
	c->fd = fd;
	c->owner = 0;
	/* Signed: a handler may have recorded since the clock was read. */
	if (__builtin_expect((d9_i64)(c->t0 - me->last_end) > (d9_i64)d9_shim.long_gap, 0) && me->last_end)
		d9_record_cpu(me, c->t0);
	struct d9_in_call *in = &me->slot->call;
	c->outer_site = in->site;
	if (__builtin_expect(c->outer_site != 0, 0))
		c->outer_site = d9_in_call_leave(me, in, fp, c->outer);
	if (object) /* only what waits for an object has an owner to show */
		d9_store_relaxed(&me->slot->call_owner, 0);
	d9_in_call_fill(in, c->site, fd, c->t0, object, fp);
}

/* Adds what the lock's owner word said when the wait began. */
static inline __attribute__((always_inline)) void d9_call_owner(struct d9_call *c, d9_u32 owner)
{
	if (!c->site)
		return;
	c->owner = owner;
	d9_store_relaxed(&d9_me->slot->call_owner, owner);
}

/*
 * Records a call that ended at t1.  Out of line: with its stack if it is worth one, and with the CPU clock if it was long.
 * fp: NULL for an event wait, whose place is its site and whose stack would only ever be the same.
 */
void d9_record_long_span(struct d9_cell *me, const struct d9_call *c, d9_u64 t1, d9_i32 result, d9_u32 waker,
			 d9_u64 waker_t, const void *fp);
/* Counts a call too short to be recorded. */
void d9_count_call(struct d9_cell *me, d9_u32 hook, d9_u64 dur, bool failed);

static inline __attribute__((always_inline)) void d9_record_span(struct d9_cell *me, const struct d9_call *c, d9_u64 t1,
								 d9_i32 result, d9_u32 waker, d9_u64 waker_t)
{
	const d9_u32 len = sizeof(struct d9_ev_span);
	struct d9_ev_span *e = (struct d9_ev_span *)d9_record_begin(me, len, D9_EV_span);
	if (!e)
		return;
	e->rec.site = c->site;
	e->rec.t = t1;
	e->dur = t1 - c->t0;
	e->object = c->object;
	e->waker_t = waker_t;
	e->result = result;
	e->fd = c->fd;
	e->waker = waker;
	e->owner = c->owner;
	d9_record_commit(&e->rec, len, D9_EV_span);
}

/* ---- who woke whom ----------------------------------------------------------------------------- */

/* Objects are addresses of a process, or descriptors of it; the table is the family's. */
static inline d9_u64 d9_wake_key(d9_u64 object) { return object | d9_shim.wake_proc; }
#define D9_WAKE_FD(fd) (1ull << 47 | (d9_u32)(fd))
static inline struct d9_waker *d9_waker_of(d9_u64 key)
{
	return &d9_shim.v.wakers[key * 0x9e3779b97f4a7c15ull >> (64 - D9_WAKERS_BITS)];
}
/* The object's bit in d9_shim.waited. */
#define D9_WAITED_BIT(object) ((d9_u32)(object)*0x9e3779b1u >> 26)
/* Says that the key is waited for.  Out of line: few waits are for another object than the last that hashed there. */
D9_COLD void d9_waker_claim(struct d9_waker *w, d9_u64 key);
/* A waiter says what it is about to wait for. */
static inline __attribute__((always_inline)) void d9_waker_mark(struct d9_call *c, d9_u64 object)
{
	if (!c->site)
		return;
	d9_u64 key = d9_wake_key(object);
	struct d9_waker *w = d9_waker_of(key);
	c->waker = w;
	if (__builtin_expect(d9_load_relaxed(&w->object) != key, 0))
		d9_waker_claim(w, key);
}
/* Somebody of this process waited for this object or for one like it: if the waker table says so too, notes the calling thread. */
void d9_waker_look(d9_u64 object);
/* The wake side: a load and a test of a bit, unless somebody waited for it. */
static inline __attribute__((always_inline)) void d9_waker_note(d9_u64 object)
{
	if (__builtin_expect(d9_load_relaxed(&d9_shim.waited) >> D9_WAITED_BIT(object) & 1, 0))
		d9_waker_look(object);
}
/* Who woke a wait for an object marked at w, that began at t0 and lasted `dur`; D9_THREAD_NONE if nobody was seen. */
static inline d9_u32 d9_waker_find(const struct d9_waker *w, d9_u64 object, d9_u64 t0, d9_u64 dur, d9_u64 *ret_t)
{
	*ret_t = 0;
	d9_u64 t = d9_load_acquire(&w->t);
	if (t - t0 > dur)
		return D9_THREAD_NONE;
	d9_u32 thread = d9_load_acquire(&w->thread);
	if (d9_load_acquire(&w->object) != d9_wake_key(object) || d9_load_acquire(&w->t) != t)
		return D9_THREAD_NONE;
	*ret_t = t;
	return thread;
}

/* ---- ownership without a wait -------------------------------------------------------------------- */

void d9_held_add(d9_u64 object);    /* this thread took it at once, or after a wait */
void d9_held_remove(d9_u64 object); /* this thread gave it back */

/*
 * flags: D9_HOOK_* of the hook.  wake: the object that the call was marked with, 0 = none.
 */
static inline __attribute__((always_inline)) void d9_call_end(struct d9_call *c, d9_u32 hook, d9_u64 bit, d9_u32 flags,
							      d9_i32 result, d9_u64 wake, const void *fp)
{
	if (__builtin_expect(!c->site, 0))
		return;
	d9_u64 t1 = d9_now();
	struct d9_cell *me = d9_me;
	if (__builtin_expect(!me || !me->slot, 0))
		return; /* the call forked, and this is the child: the call is the parent's */
	struct d9_in_call *in = &me->slot->call;
	bool on = d9_load_relaxed(d9_shim.mask) & bit;
	if (__builtin_expect(!on && d9_recording_ended(), 0))
		return; /* its last words say that the thread was in this call, and may not be written yet */
	d9_store_relaxed(&in->site, 0);
	if (__builtin_expect(c->outer_site != 0, 0))
		d9_in_call_back(in, c->outer_site, c->outer);
	if (__builtin_expect(!on, 0))
		return;
	d9_u64 dur = t1 - c->t0;
	if ((flags & D9_HOOK_SLOW) && dur < d9_shim.io_min) {
		d9_count_call(me, hook, dur, result < 0);
		return;
	}
	d9_u64 waker_t = 0;
	d9_u32 waker = wake ? d9_waker_find(c->waker, wake, c->t0, dur, &waker_t) : D9_THREAD_NONE;
	if (__builtin_expect(dur > d9_shim.long_span, 0)) {
		struct d9_call copy = *c; /* for the same reason */
		d9_record_long_span(me, &copy, t1, result, waker, waker_t, flags & D9_HOOK_PARKS ? NULL : fp);
	} else
		d9_record_span(me, c, t1, result, waker, waker_t);
	me->last_end = t1;
}

#endif
