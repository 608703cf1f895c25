/*
 * Context switches of a program through perf (D9_PERF): what is to be had of the kernel's side without any right.  One ring of
 * PERF_RECORD_SWITCH for each CPU, of a thread that is alone when they are opened and of all that it makes from then on.
 *
 * Seen is when a thread left a CPU, whether it had to (preempted) or waited for something, and when it ran again; and when it was
 * made.  Not seen: when it was woken, by whom, who had the CPU, what it waited for.  So a wait that began with a preemption is a wait for a CPU, and all
 * others are told whole, whatever part of them was a wait for a CPU too.
 *
 * Who reads is whoever drains from outside (d9 run), or the drain thread of the process itself; it writes k-NNNNNN.d9 as
 * d9-kernel does.  Raw system calls and memory of the caller's alone.
 */
#ifndef D9_SHIM_PERF_H
#define D9_SHIM_PERF_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

struct d9_perf;

/* Mapped by the caller, zeroed, 64-aligned; about 5 MiB, touched only as used. */
size_t d9_perf_bytes(void);

struct d9_perf_options {
	int pid;       /* whose only thread is watched; 0: the calling thread */
	bool children; /* the processes that it makes too, not its threads alone */
	bool outside; /* read by another process: descriptors are kept, to turn the events off.  Else the mappings alone are */
	d9_u32 ring_bytes; /* of one CPU, at most; a power of two */
	d9_u64 segment_bytes, rotate_ns;
};

/* 0, or -errno: nothing is open then, and d9_perf_why says it in a sentence.  Not tried under a filter of system calls. */
int d9_perf_open(struct d9_perf *p, const struct d9_perf_options *o);
const char *d9_perf_why(int r);
/* Closes the rings; what was read and not written stays in memory. */
void d9_perf_close(struct d9_perf *p);
bool d9_perf_is_open(const struct d9_perf *p);

/* Turns it off and on again: off costs the program little where the descriptors are kept; else what comes is left unread. */
void d9_perf_switch(struct d9_perf *p, bool on, int dirfd);

/* The thread that reads, if it is among those that are watched. */
void d9_perf_leave_out(struct d9_perf *p, d9_i32 tid);

/*
 * Takes what is in the rings and writes it into the folder `dirfd`; final: all of it, and the segment is closed.  Of dirfd -1 nothing is taken, and
 * what finds the rings full meanwhile is counted as lost.
 */
void d9_perf_pass(struct d9_perf *p, int dirfd, bool final);

#endif
