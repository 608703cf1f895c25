/*
 * D9_PERF in the program itself, where no `d9 run` reads from outside: the rings are opened when the process begins to record, and their
 * descriptors closed again, for the mappings keep the events.  A forked child has none of them (the kernel does not copy these
 * mappings) and opens its own at its first event.  Its drain thread reads; without one, the end of the process does.
 */
#ifndef D9_SHIM_PERF_HOST_H
#define D9_SHIM_PERF_HOST_H
#include <stdbool.h>

/* Once, after the arena is there and before this process enters it. */
void d9_perf_host_start(void);
/* This process is new: opens its rings, if they were asked for. */
void d9_perf_host_enter(void);
/* Why they could not be opened, in a sentence; NULL: they were, or nobody asked. */
const char *d9_perf_host_refused(void);
/* Has this process rings of its own? */
bool d9_perf_host_here(void);
/* By one thread at a time: the drain thread, or the end of the process. */
void d9_perf_host_pass(int dirfd, bool final);
/* No more of it in this process. */
void d9_perf_host_leave(void);

#endif
