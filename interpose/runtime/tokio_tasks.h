/*
 * What of a Tokio task is not in the call that comes to us: whether it was seen before, when and by whom it was made, whether a
 * blocking job is a worker's thread.  Called while the task is held.
 */
#ifndef D9_INTERPOSE_TOKIO_TASKS_H
#define D9_INTERPOSE_TOKIO_TASKS_H
#include "tokio_patch.h"

/* Memory for a copy's tasks, which only programs with Tokio need, and which goes with the arena.  False: none to be had. */
bool d9_tokio_room_for(d9_u32 copy);

/* Is this the first time that anybody asks for the task of this number?  One of two million that came after it: no. */
bool d9_tokio_first(d9_u32 copy, d9_u64 id);

/* Who made a task, and when. */
struct d9_tokio_maker {
	d9_u64 address; /* 0: free */
	d9_u64 bytes, t, parent;
	d9_u32 thread, module; /* module: of the parent */
};
/* Tokio's tasks are the allocations of 128 bytes' alignment; any other of them that comes here is never asked for. */
void d9_tokio_made(const void *p, size_t bytes);
/* False: the allocation was not seen. */
bool d9_tokio_maker_of(const struct d9_tokio_header *task, const struct d9_tokio_slot *s, struct d9_tokio_maker *ret);

struct d9_tokio_worker {
	d9_u64 handle[2]; /* the scheduler's, as its tasks have it: one of these */
	d9_u32 index;
};
/*
 * Does the job, which has not begun, look like a worker's whole life?  TAKEN: the worker's core is another's.  So it may be where
 * block_in_place starts one; or the job's closure holds nothing, and what its memory held before is found.
 */
enum d9_tokio_likeness { D9_TOKIO_UNLIKE, D9_TOKIO_TAKEN, D9_TOKIO_LIKE };
enum d9_tokio_likeness d9_tokio_is_worker(const struct d9_tokio_header *job, const struct d9_tokio_slot *s,
					  struct d9_tokio_worker *ret);

/* The innermost poll of the calling thread that is a task or a job; NULL: none. */
const struct d9_task_frame *d9_tokio_current(const struct d9_cell *me);

#endif
