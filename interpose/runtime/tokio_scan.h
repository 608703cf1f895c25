/*
 * Finding Tokio's tables in the memory of a loaded image, without symbols.
 *
 * Since 1.23 Tokio has one static *task table* for each pair of future and scheduler, seven functions and three offsets, and
 * one static *waker table* for each copy of Tokio.  Both lie in data that the loader relocates.  An image is accepted only if
 * all that is found in it fits together: what is not surely Tokio is left alone.
 *
 * Reads only what is mapped, which the kernel is asked page by page; calls nothing of libc's.  Runs under the loader's lock.
 */
#ifndef D9_INTERPOSE_TOKIO_SCAN_H
#define D9_INTERPOSE_TOKIO_SCAN_H
#include "format/types.h"

#include <link.h>
#include <stdbool.h>

/* The one word of a task that both sides agree on, and what follows it: the head of every task since Tokio 1.21. */
struct d9_tokio_header {
	d9_u64 state; /* D9_TOKIO_* below, references << 6 */
	void *queue_next;
	const struct d9_tokio_table *table;
	d9_u64 owner; /* list of tasks that it belongs to: a runtime's or a LocalSet's; 0: a job of the blocking pool */
};
enum {
	D9_TOKIO_RUNNING = 1,
	D9_TOKIO_COMPLETE = 2,
	D9_TOKIO_NOTIFIED = 4,
	D9_TOKIO_CANCELLED = 32,
	D9_TOKIO_REFERENCE = 64
};

typedef void d9_tokio_function(struct d9_tokio_header *task);
/* Where to write the outcome if there is one, else whom to wake when there is. */
typedef void d9_tokio_ask_function(struct d9_tokio_header *task, void *to, const void *waker);
struct d9_tokio_table {
	d9_tokio_function *poll, *schedule, *dealloc;
	d9_tokio_ask_function *read_output;
	void *others[2]; /* drop_join_handle_slow, drop_abort_handle: left alone */
	d9_tokio_function *shutdown;
	d9_u64 trailer_offset, scheduler_offset, id_offset;
};
_Static_assert(sizeof(struct d9_tokio_table) == 80, "ten words");

struct d9_tokio_waker { /* as Rust returns it: in two registers */
	void *task;
	const void *table;
};
struct d9_tokio_wakers {
	struct d9_tokio_waker (*clone)(struct d9_tokio_header *task);
	d9_tokio_function *wake, *wake_by_ref;
	void *drop;
};

enum d9_tokio_verdict {
	D9_TOKIO_NONE,           /* no sign of Tokio */
	D9_TOKIO_ACCEPTED,       /* every table may be patched */
	D9_TOKIO_OLD,            /* tables as Tokio had them before 1.23 */
	D9_TOKIO_NO_WAKERS,      /* task tables, but no waker table */
	D9_TOKIO_MANY_WAKERS,    /* ... more than one: two copies linked into one image, or no Tokio */
	D9_TOKIO_MANY_SCHEDULES, /* ... more schedulers than Tokio has */
	D9_TOKIO_CUT_SHORT       /* ... and the clock left no time for the rest */
};

#define D9_TOKIO_SCHEDULES_MAX 16u

struct d9_tokio_scan {
	/* given by the caller */
	struct d9_tokio_table **tables; /* room for `room` of them; what does not fit is counted alone */
	d9_u32 room;
	d9_u64 until_mono; /* CLOCK_MONOTONIC ns at which the scan gives up */
	/* found */
	enum d9_tokio_verdict verdict;
	d9_u32 n_tables, n_wakers, n_schedules;
	bool cut_short; /* by the clock: what was not looked at is not known */
	struct d9_tokio_wakers *wakers;
};

void d9_tokio_scan(const struct dl_phdr_info *info, struct d9_tokio_scan *scan);

#endif
