/*
 * Turning recording on and off: the control word, and the note of when.  Used by the constructor and by d9 ctl.
 */
#ifndef D9_SHIM_SWITCH_H
#define D9_SHIM_SWITCH_H
#include "atomic.h"
#include "clock.h"
#include "view.h"

static inline d9_u64 d9_arena_now(const struct d9_arena_header *h)
{
	return h->clock_kind == D9_CLOCK_TSC ? d9_tsc() : d9_mono_ns();
}

/*
 * mask 0 = off.  On: the time is taken before the word is stored, off: after, so that no event of a window lies outside
 * of its two moments.  One caller at a time (d9 ctl holds a lock on the arena's file).
 */
static inline void d9_switch(struct d9_arena_header *h, d9_u64 mask)
{
	d9_u32 i = d9_load_relaxed(&h->switches_next);
	struct d9_switch *s = &h->switches[i % D9_N_SWITCHES];
	d9_u64 before = d9_arena_now(h);
	__atomic_store_n(&h->mask, mask, __ATOMIC_SEQ_CST); /* the clock must not be read ahead of the store */
	s->t = mask ? before : d9_arena_now(h);
	s->mask = mask;
	d9_store_release(&h->switches_next, i + 1);
}

#endif
