/*
 * What the kernel's side (d9-kernel) saw of a thread: its waits for a CPU and in the kernel, all times in ns.  Waits shorter than the
 * helper was asked to tell of are in the totals alone.
 */
#ifndef D9_CLI_TRACE_KERNEL_H
#define D9_CLI_TRACE_KERNEL_H
#include "format/events.h"
#include "stretches.h"

#define D9_KERNEL_CLAIMED 0x80u /* beside the flags that format/events.h has: a finding explains it */

/* It could run from t0 on, and ran at t1. */
struct d9_runq {
	d9_u64 t0, t1, waking; /* waking: 0 = not seen */
	d9_u64 had;            /* so long of the wait prev was seen to have the CPU, up to t1 */
	d9_i32 waker, prev, prev_pid;
	d9_u32 name; /* of prev: index into the trace's names */
	d9_u32 cpu, from_cpu;
	d9_u32 flags, pad;
};
/* It left the CPU at t0 to wait, and ran again at t1. */
struct d9_offcpu {
	d9_u64 t0, t1;
	d9_u64 woken; /* could run again from here on: t0..woken is what it waited for, the rest the run queue's; t1 = not seen */
	d9_u64 arg0, ip;
	d9_i32 nr; /* of the system call, -1 = none */
	d9_u32 state, flags;
	d9_u32 stack, user_stack; /* indices into the trace's tails, 0 = none */
	d9_u32 pad;
};

/* How long it waited for something: what follows on the wake is the run queue's. */
static inline d9_u64 d9_offcpu_blocked(const struct d9_offcpu *o) { return o->woken - o->t0; }

#define D9_WAIT_BUCKETS 64
struct d9_kernel_side {
	D9_VEC(struct d9_runq) runq;     /* by time, apart from each other */
	D9_VEC(struct d9_offcpu) offcpu; /* the same */
	d9_stretches watched;            /* when all that it waited would have been seen */
	struct d9_runq_sums *sums;       /* NULL = not told */
	bool by_perf;                    /* some of it, or all, was seen through perf: `watched` is without that */
};
/* All waits for a CPU, the short ones too, since the kernel's side saw the thread first. */
struct d9_runq_sums {
	d9_u64 count, total, max;
	d9_u64 by_schedstat;             /* total, as the kernel itself has it; D9_NOT_KNOWN = not read */
	d9_u64 buckets[D9_WAIT_BUCKETS]; /* waits of 2^k ns up to 2^(k+1) */
};

/* CPU quota of a cgroup that a process is in: sums up to t. */
struct d9_quota {
	d9_u64 t, periods, throttled, throttled_ns, quota, period;
	d9_u32 proc, family; /* family: of the helper that read it */
	d9_u32 cgroup;       /* index into the trace's names */
	d9_u32 pad;
};

#endif
