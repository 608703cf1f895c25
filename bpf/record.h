/*
 * What the programs in the kernel hand to d9-kernel: a head, then the event as the segment will have it (format/events.def), then
 * what becomes its tail.  Never on disk, so both sides are always of one build.
 */
#ifndef D9_BPF_RECORD_H
#define D9_BPF_RECORD_H
#include "format/events.h"

#define D9_K_FRAMES 24u
#define D9_K_BUCKETS 40u /* the last one holds all that is longer: 2^39 ns are nine minutes */
#define D9_K_NAME 16u
#define D9_K_WANTED_MAX 4096u

enum d9_k_kind { D9_K_RUNQ, D9_K_OFFCPU, D9_K_USER_STACK, D9_K_BLOCK, D9_K_SYSCALL, D9_K_THREAD, D9_K_TOTAL, D9_K_END };

/* Every record: whose it is.  The name is the one that the thread had then. */
struct d9_k_head {
	d9_u32 kind;
	d9_u32 id;  /* number of the thread, counted from 0 as they were met; never used again */
	d9_i32 tid; /* as the process sees it */
	d9_u32 n;   /* frames that follow */
	char name[D9_K_NAME];
};

struct d9_k_runq {
	struct d9_k_head head;
	struct d9_ev_runq e;
	char prev_name[D9_K_NAME];
};

struct d9_k_offcpu {
	struct d9_k_head head;
	struct d9_ev_offcpu e;
	d9_u64 frames[D9_K_FRAMES];
};

struct d9_k_user_stack {
	struct d9_k_head head;
	struct d9_ev_user_stack e;
	d9_u64 frames[D9_K_FRAMES];
};

struct d9_k_syscall {
	struct d9_k_head head;
	struct d9_ev_syscall e;
};

struct d9_k_block {
	struct d9_k_head head;
	struct d9_ev_block_io e;
};

/* A thread was met, or is another program now. */
struct d9_k_thread {
	struct d9_k_head head;
	d9_u64 t;
	d9_u64 process_start;          /* CLOCK_BOOTTIME ns */
	d9_i32 kernel_tid, kernel_pid; /* initial PID namespace */
	d9_i32 pid, parent_pid;        /* as the process sees it; 0 = out of its sight */
	d9_i32 seen_pid;               /* the process as d9-kernel sees it, 0 = not at all */
	d9_i32 kernel_parent_pid;      /* initial PID namespace */
	d9_u32 uid, exec;              /* exec: it is another program than before */
};

/* All run-queue waits of a thread: at its end, or when asked for. */
struct d9_k_total {
	struct d9_k_head head;
	struct d9_ev_runq_total e;
	d9_u64 waiting; /* since when it waits at this moment, 0 = it does not */
	d9_u64 buckets[D9_K_BUCKETS];
};

#endif
