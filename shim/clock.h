/*
 * The recorder's clock: the raw time stamp counter where the kernel itself trusts it (clocksource tsc,
 * PR_GET_TSC allows it), else CLOCK_MONOTONIC from the vDSO, found by hand so that no other preloaded
 * library can stand in between.
 */
#ifndef D9_SHIM_CLOCK_H
#define D9_SHIM_CLOCK_H
#include "format/arena.h"
#include "sys.h"

#include <stdbool.h>
#include <time.h>

struct d9_clock {
	int (*vdso_gettime)(clockid_t, struct timespec *); /* NULL: the system call */
	d9_u32 kind;                                       /* enum d9_clock_kind */
};
extern D9_HIDDEN struct d9_clock d9_clock;

/* Decides which clock this process uses.  Once, before the first event.  No allocation, no hook. */
void d9_clock_start(void);

D9_COLD d9_u64 d9_clock_slow(void);

static inline d9_u64 d9_tsc(void)
{
	d9_u32 lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (d9_u64)hi << 32 | lo;
}
/* Now, in raw units of the clock: tsc cycles, or ns.  11 ns; never goes back on one thread. */
static inline d9_u64 d9_now(void)
{
	return __builtin_expect(d9_clock.kind == D9_CLOCK_TSC, 1) ? d9_tsc() : d9_clock_slow();
}

/* CLOCK_MONOTONIC ns, by system call: for slow paths. */
static inline d9_u64 d9_mono_ns(void)
{
	struct timespec t = {0};
	(void)d9_sys2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t);
	return (d9_u64)t.tv_sec * 1000000000u + (d9_u64)t.tv_nsec;
}

/* The same moment on all clocks; `kind` as in the arena whose clock it is. */
void d9_clock_pair(d9_u32 kind, struct d9_clock_pair *ret);

/* Largest s for which 2^s cycles of a clock with `hz` are at most 10 ns. */
d9_u32 d9_clock_shift(d9_u64 hz);

#endif
