/*
 * The threads and processes that are targets, by the numbers that the programs in the kernel gave the threads; and the META
 * events that define them in a segment before something refers to them.
 */
#ifndef D9_BPF_THREADS_H
#define D9_BPF_THREADS_H
#include "modules.h"
#include "record.h"
#include "segment.h"

struct d9_kprocess {
	struct d9_kprocess *next;
	d9_u32 index, parent; /* parent: index, 0xffffffff = none of ours */
	d9_u32 n_threads, defined_in;
	d9_u64 start; /* clock ticks since boot */
	d9_u64 born;
	d9_i32 kernel_pid, pid, ppid, seen_pid;
	d9_u32 uid;
	char *exe_args;
	d9_u32 n_exe_args;
	struct d9_kmodules modules; /* looked for where its stacks are recorded */
};

struct d9_kthread {
	struct d9_kthread *next;
	d9_u32 id, defined_in;
	d9_i32 tid, kernel_tid;
	struct d9_kprocess *process;
	d9_u64 born;
	d9_u64 total, stat; /* of its last runq_total, for the check at the end */
	d9_u64 count;
	d9_u32 listed; /* the last listing of d9_kload_find that had it */
	char name[D9_K_NAME + 1];
};

struct d9_kthreads;
struct d9_kthreads *d9_kthreads_new(void); /* NULL: out of memory */
void d9_kthreads_free(struct d9_kthreads *ts);

/* A thread was met, or is another program now, or was listed.  NULL: out of memory. */
struct d9_kthread *d9_kthreads_meet(struct d9_kthreads *ts, const struct d9_k_thread *r);
struct d9_kthread *d9_kthreads_find(struct d9_kthreads *ts, d9_u32 id);
void d9_kthreads_forget(struct d9_kthreads *ts, struct d9_kthread *t);
/* What it is called now; if that is new it is defined again at its next use. */
void d9_kthread_call(struct d9_kthread *t, const char name[D9_K_NAME]);

/* Forgets those that were met before number `id` was given and that the newest listing did not have. */
void d9_kthreads_begin_listing(struct d9_kthreads *ts);
void d9_kthreads_sweep(struct d9_kthreads *ts, d9_u32 below_id);

d9_u32 d9_kthreads_count(const struct d9_kthreads *ts);
d9_u32 d9_kthreads_next_id(const struct d9_kthreads *ts); /* greatest that was met, + 1 */

/* The process with this number as d9-kernel sees it, or NULL; the one that was met first for 0. */
const struct d9_kprocess *d9_kthreads_process(const struct d9_kthreads *ts, int seen_pid);

const struct d9_kprocess *d9_kthreads_newest(const struct d9_kthreads *ts);
/* Adds what the last totals of all of them come to. */
void d9_kthreads_sum(const struct d9_kthreads *ts, d9_u64 *total, d9_u64 *stat, d9_u64 *count);

/* Defines the thread and its process in the segment that is open, unless that was done.  0 or as d9_kseg_add. */
int d9_kthread_define(struct d9_kthread *t, struct d9_kseg *s);
int d9_kthreads_define_all(struct d9_kthreads *ts, struct d9_kseg *s);

#endif
