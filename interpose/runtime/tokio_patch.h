/*
 * Putting our functions into Tokio's tables.
 *
 * Each slot of a patched table leads to a thunk of its own, which says its number and jumps to one of the functions of tokio_events.c:
 * those take the original from d9_tokio_slots, never from the task, whose head they check against the slot first.
 *
 * The tables of an image that is closed are gone with it, and nothing of ours points into it any more but numbers that no thunk says.
 * So a module is not pinned, which only dlopen could do: its lock may be held by a thread that waits for this one.
 *
 * word             written by                        read by          ordering, and what breaks without it
 * slot.*           who looks, before the table is    the thunks       release in the store to the table / the load of the table by the program
 * slot.off, .kind, any thread that polls             any              relaxed: a task more or less goes by unseen; never taken back
 *   .proven, .told
 * copies[].*       who looks, before its wakers are  the thunks       as slot.*; lo = hi = 0 once the image is gone
 * priv.looking     who looks                         who would look   CAS: one at a time; a forked child has its own
 */
#ifndef D9_INTERPOSE_TOKIO_PATCH_H
#define D9_INTERPOSE_TOKIO_PATCH_H
#include "shim/shim.h"
#include "tokio_scan.h"

#define D9_TOKIO_SLOTS 4096u
#define D9_TOKIO_COPIES 16u

/* Of a slot, untold until one of its tasks was looked at; a worker's life is a job, and what it is is told of each. */
enum d9_tokio_kind { D9_TOKIO_UNTOLD, D9_TOKIO_TASK, D9_TOKIO_JOB, D9_TOKIO_WORKER };

struct d9_tokio_slot {
	const struct d9_tokio_table *table;
	d9_tokio_function *poll, *schedule, *shutdown; /* as they were */
	d9_tokio_ask_function *read_output;
	d9_u32 scheduler_offset, id_offset, trailer_offset;
	d9_u16 copy;  /* index of the copy, which is recorded as module copy + 1 */
	d9_u8 kind;   /* enum d9_tokio_kind, once one of its tasks was looked at */
	d9_u8 off;    /* what came was no task: let everything pass */
	d9_u8 proven; /* workers: tasks of theirs were polled in one of them */
	d9_u8 told;
	d9_u8 spare[6];
};
_Static_assert(sizeof(struct d9_tokio_slot) == 64, "a line of the cache");

struct d9_tokio_copy {
	d9_u64 lo, hi;           /* its task tables lie there */
	d9_u64 code_lo, code_hi; /* the code of its image; the same if none of it can be read */
	struct d9_tokio_waker (*clone)(struct d9_tokio_header *task);
	d9_tokio_function *wake, *wake_by_ref;
	d9_u64 *seen; /* tokio_tasks.c */
};

extern D9_HIDDEN struct d9_tokio_slot *d9_tokio_slots; /* D9_TOKIO_SLOTS of them, there before any table is patched */
extern D9_HIDDEN struct d9_tokio_copy d9_tokio_copies[D9_TOKIO_COPIES];
/* Is anything patched? */
extern D9_HIDDEN bool d9_tokio_there;

/* Looks through the images that are loaded, and patches those that were not looked at before, unless D9_RUNTIMES says otherwise. */
void d9_tokio_look(void);
/* The same where the loader has opened anything since; not in a signal handler. */
void d9_tokio_look_again(void);

/* What the thunks jump to, with their number. */
void d9_tokio_poll(struct d9_tokio_header *task, d9_u32 slot);
void d9_tokio_schedule(struct d9_tokio_header *task, d9_u32 slot);
void d9_tokio_shutdown(struct d9_tokio_header *task, d9_u32 slot);
void d9_tokio_read_output(struct d9_tokio_header *task, void *to, const void *waker, d9_u32 slot);
void d9_tokio_wake(struct d9_tokio_header *task, d9_u32 copy);
void d9_tokio_wake_by_ref(struct d9_tokio_header *task, d9_u32 copy);
struct d9_tokio_waker d9_tokio_clone(struct d9_tokio_header *task, d9_u32 copy);

#endif
