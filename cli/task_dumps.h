/*
 * Where tasks wait: the places at which wakers were taken in their polls (event task_dump), in the order of time, and their stacks.
 */
#ifndef D9_CLI_TASK_DUMPS_H
#define D9_CLI_TASK_DUMPS_H
#include "map.h"
#include "show.h"

struct d9_task_dump {
	d9_u64 task, t;
	d9_u32 proc, module;
	d9_u32 site; /* index in the trace; D9_NO_INDEX: flags say why there is no stack */
	d9_u32 flags;
};

struct d9_task_dumps {
	D9_VEC(struct d9_task_dump) of; /* a task's together and in the order of time */
	struct d9_map by_site;          /* index in stacks */
	D9_VEC(struct d9_stack *) stacks;
};

void d9_task_dumps_find(const struct d9_model *m, struct d9_task_dumps *ret);
void d9_task_dumps_free(struct d9_task_dumps *d);

/* Those of a task from `from` on, up to `to`: in the order of time.  Returns how many. */
size_t d9_task_dumps_in(const struct d9_task_dumps *d, d9_u32 proc, d9_u32 module, d9_u64 task, d9_u64 from, d9_u64 to,
			const struct d9_task_dump **ret);

/* The stack of a dump, from what takes the waker up to the poll; n 0: there is none.  Stays with d, which keeps it for the next who asks. */
const struct d9_stack *d9_task_dump_stack(const struct d9_model *m, struct d9_task_dumps *d,
					  const struct d9_task_dump *x);
bool d9_same_stack(const struct d9_stack *a, const struct d9_stack *b);

#endif
