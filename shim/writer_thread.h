/*
 * The host's own drain thread: when it starts, how it lives, how it stops.  Only where nobody outside drains.
 */
#ifndef D9_SHIM_WRITER_THREAD_H
#define D9_SHIM_WRITER_THREAD_H
#include "format/types.h"
#include "real.h"

#include <stdbool.h>

void d9_writer_setup(const struct d9_shim_real *real);

/* At the entry of an event wait or a sleep whose time has come: starts the thread if this process should have one. */
D9_COLD void d9_writer_consider(void);

/* Starts it now if nobody drains, and waits until it has opened its files: afterwards it could not. */
void d9_writer_now(void);

/* Is there one? */
bool d9_writer_runs(void);

/* Asks the thread for a last pass and waits for its end, at most ms.  False: there is none, or it did not end in time. */
bool d9_writer_stop(unsigned ms);

/* The same, and waits until the kernel has forgotten the thread: for what only a process without a second one may do. */
void d9_writer_leave(unsigned ms);

/* Drains here and now, in the calling thread, which is about to end the process: its descriptors become its own.  perf: its rings too. */
void d9_writer_inline(bool perf);

/* Its rings alone: somebody else drains the family. */
void d9_writer_perf(void);

#endif
