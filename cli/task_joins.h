/*
 * Who waits for whose end: the times at which the holder of a task's handle asked for its outcome while it was not over (event task_join).
 */
#ifndef D9_CLI_TASK_JOINS_H
#define D9_CLI_TASK_JOINS_H
#include "model.h"

struct d9_task_join {
	d9_u64 task, by, t; /* by: 0 = no task, but the thread itself */
	d9_u32 proc, module, thread;
};

struct d9_task_joins {
	D9_VEC(struct d9_task_join) of; /* a waiter's together and in the order of time */
};

void d9_task_joins_find(const struct d9_model *m, struct d9_task_joins *ret);
void d9_task_joins_free(struct d9_task_joins *j);

/* What a task asked for last, not before `from` and not after `to`; NULL = nothing. */
const struct d9_task_join *d9_task_joins_last(const struct d9_task_joins *j, d9_u32 proc, d9_u32 module, d9_u64 by,
					      d9_u64 from, d9_u64 to);

#endif
