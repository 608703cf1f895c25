/*
 * Where a task waits: its stack at the moment in which what it awaits takes a waker, which is Tokio's own `clone`, up to the poll.
 *
 * A place is a *form* of that piece of stack: its length, and what it has of return addresses, where.  Who called clone is known, and of
 * each function how far up its own return address lies is fixed by where in it the call was made: so two pieces that agree in all that may
 * be a return address are of the same calls.  What is left over from earlier calls may look like one; then one place has several forms, each
 * with its stack, which is right, and d9 takes for one what unwinds to the same.
 */
#ifndef D9_INTERPOSE_TOKIO_DUMP_H
#define D9_INTERPOSE_TOKIO_DUMP_H
#include "tokio_patch.h"

/* Memory for them, unless D9_TASK_DUMPS=off.  False: there is none to be had, and places are left out. */
bool d9_tokio_room_for_dumps(void);

/*
 * The task that this thread polls innermost takes a waker.  ra, fp: return address and frame pointer of the function that stands in for
 * clone, which f->top is further up on the same stack.
 */
void d9_tokio_dump(struct d9_cell *me, const struct d9_task_frame *f, const void *ra, const void *fp);

#endif
