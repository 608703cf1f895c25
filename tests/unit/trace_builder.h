/*
 * Recordings with chosen times, made by the real segment writer: what the tests of the reader read.
 * Times are ns; the clock of these recordings is CLOCK_MONOTONIC with a tick of 1 ns.
 */
#ifndef D9_TESTS_TRACE_BUILDER_H
#define D9_TESTS_TRACE_BUILDER_H
#include "cli/trace.h"
#include "format/segment_write.h"

#define MS(x) ((d9_u64)((x)*1e6))
#define US(x) ((d9_u64)((x)*1e3))
#define TB_BASE 5000000000ull /* when a recording begins */

struct tb {
	char dir[64];     /* the traces folder */
	char folder[128]; /* the family being written */
	int fd;
	void *memory;
	struct d9_segw *w;
	d9_u32 next_site, sequence, family;
	d9_u32 offset[256];    /* by thread: where the next record lies in its chunk */
	d9_u64 at;             /* moments are given from here on */
	d9_u32 runtime_module; /* of what is told of tasks; 0: by the program */
	d9_u32 outcome;        /* of polls */
	d9_u32 helper;         /* d9-kernel that writes now; 0: the service's recorder */
	bool perf;             /* it is no d9-kernel, but who reads perf's rings */
};

void tb_new(struct tb *b);                      /* an empty traces folder */
void tb_free(struct tb *b);                     /* removes it */
void tb_family(struct tb *b, const char *name); /* begins NAME-XXXXXXXX with the usual hooks */
void tb_segment(struct tb *b);                  /* ends the segment, begins the next one */
void tb_end(struct tb *b);                      /* ends the family */
/* Goes on with a helper's files: those of helper `number` in the service's folder, or name = a folder of its own.  Ended by tb_end. */
void tb_kernel(struct tb *b, d9_u32 number, const char *name);
void tb_raw(struct tb *b, d9_u32 thread, const void *rec, size_t n, d9_u32 tail_kind, const void *tail, size_t n_tail);

void tb_proc(struct tb *b, d9_u32 id, d9_u32 parent, d9_i32 pid, d9_i32 ppid, d9_u64 start, const char *exe);
void tb_thread(struct tb *b, d9_u32 id, d9_u32 proc, d9_i32 tid,
	       const char *name); /* tid == pid of 100: the main thread */
void tb_module(struct tb *b, d9_u32 id, d9_u32 proc, d9_u64 start, d9_u64 end, const char *path);
/* A place that calls the hook. chain: return addresses, innermost first, ended by 0; NULL = no stack. */
d9_u32 tb_site(struct tb *b, const char *hook, d9_u64 ra, d9_u32 depth, const d9_u64 *chain);

struct tb_span {
	d9_u64 t0, t1, object, waker_t;
	d9_i32 result, fd;
	d9_u32 waker, owner; /* waker: thread id + 1 */
};
void tb_span(struct tb *b, d9_u32 thread, d9_u32 site, struct tb_span s); /* fd 0 means none */
void tb_pending(struct tb *b, d9_u32 thread, d9_u32 site, d9_u64 since, d9_u64 t, d9_u64 object, d9_u32 owner);
void tb_waits(struct tb *b, d9_u32 thread, d9_u32 site, d9_u64 since, d9_u64 t, d9_i32 fd); /* for events, still */
void tb_held(struct tb *b, d9_u32 thread, d9_u64 object, d9_u64 since, d9_u64 t);
void tb_cpu(struct tb *b, d9_u32 thread, d9_u64 t, d9_u64 run, d9_u64 delay);
void tb_calls(struct tb *b, d9_u32 thread, const char *hook, d9_u64 count, d9_u64 total, d9_u32 errors,
	      d9_u64 t); /* t: when that was written down */
void tb_gap(struct tb *b, d9_u32 thread, d9_u64 since, d9_u64 t, d9_u64 events);
/* What a program says of its tasks; worker 0xffffffff: none. */
void tb_poll(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u32 worker, d9_u64 t0, d9_u64 t1);
void tb_park(struct tb *b, d9_u32 thread, d9_u32 runtime, d9_u32 worker, d9_u64 t0, d9_u64 t1);
void tb_wake(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u64 t);
void tb_spawn(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u64 t, const char *name); /* name: or NULL */
/* A runtime's task is seen at t for the first time.  by.t: when it was made, by which thread and task; 0 = not known. */
struct tb_maker {
	d9_u64 t, task, code;
	d9_u32 thread, flags;
};
void tb_seen(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u64 t, struct tb_maker by);
/* Somebody looked at t, and the thread was in a poll that had begun at t0. */
void tb_in_poll(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u32 worker, d9_u64 t0, d9_u64 t);
void tb_task_end(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 outcome, d9_u64 t);
void tb_control(struct tb *b, d9_u64 t, d9_u64 mask);
void tb_exec(struct tb *b, d9_u32 thread, d9_u64 t, d9_i32 pid, const char *path);
/* What d9-kernel says. */
struct tb_runq {
	d9_u64 t0, t1;
	d9_u64 ran; /* prev; 0 = all the while */
	d9_i32 prev, prev_pid, waker;
	d9_u32 flags;
	const char *name; /* of prev */
};
void tb_runq(struct tb *b, d9_u32 thread, struct tb_runq q);
struct tb_offcpu {
	d9_u64 t0, t1, woken;
	d9_i32 nr;
	d9_u32 state;
	d9_u64 arg0;
	const char *stack; /* "a+0x1\nb+0x2\n" */
};
void tb_offcpu(struct tb *b, d9_u32 thread, struct tb_offcpu o);
void tb_user_stack(struct tb *b, d9_u32 thread, d9_u64 t, d9_u64 frame); /* of the wait that ends at t */
void tb_runq_total(struct tb *b, d9_u32 thread, d9_u64 t, d9_u64 count, d9_u64 total, d9_u64 max, const d9_u64 *buckets,
		   d9_u32 n);
void tb_kernel_thread(struct tb *b, d9_u32 thread, d9_i32 tid, d9_i32 pid);
void tb_block_io(struct tb *b, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_u32 op, d9_u32 bytes, d9_i32 error);
void tb_syscall(struct tb *b, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_i32 nr, d9_u64 arg0, d9_i64 result);
void tb_quota(struct tb *b, d9_u32 proc, d9_u64 t, d9_u64 periods, d9_u64 throttled, d9_u64 throttled_ns);
void tb_exit(struct tb *b, d9_u32 thread, d9_u64 t, d9_u32 how, d9_i32 code);

struct d9_trace *tb_read(struct tb *b); /* the newest session, whole */

#endif
