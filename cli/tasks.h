/*
 * The tasks that programs told of (shim/d9.h): what each one's life was.  Made for the commands that show tasks, for
 * a session may have millions of them.
 */
#ifndef D9_CLI_TASKS_H
#define D9_CLI_TASKS_H
#include "model.h"

/* One thing that was told of a task.  What happened at one moment happened in the order of the enum. */
struct d9_moment {
	enum d9_moment_what { D9_TASK_SPAWN, D9_TASK_WAKE, D9_TASK_POLL, D9_TASK_END } what;
	d9_u32 proc, module, runtime; /* runtime: D9_NO_INDEX = not told here */
	d9_u64 task;
	d9_u64 t, t1;         /* t1: end of a poll; else t */
	d9_u64 since;         /* of a poll: runnable since then, 0 = not known */
	d9_u32 thread, index; /* index: of a poll in the thread's rt spans, else in its events */
};
typedef D9_VEC(struct d9_moment) d9_moments;

/* All of them, a task's together and in the order of time.  To be freed with d9_vec_free. */
void d9_task_moments(const struct d9_model *m, d9_moments *ret);
bool d9_same_task(const struct d9_moment *a, const struct d9_moment *b);

enum d9_task_outcome { D9_TASK_ALIVE, D9_TASK_READY, D9_TASK_CANCELLED };
const char *d9_task_outcome_name(enum d9_task_outcome outcome);

struct d9_task {
	d9_u32 proc, module, runtime; /* runtime: D9_NO_INDEX = not known */
	d9_u64 id;
	struct d9_bytes name; /* n 0 = none */
	d9_u64 spawned;       /* if !exact: it was there by then */
	bool exact;
	d9_u64 parent; /* 0 = none, or not known */
	enum d9_task_outcome outcome;
	d9_u64 ended;                       /* D9_NOT_KNOWN = it lives, as far as was seen */
	d9_u64 polls, poll_total, poll_max; /* ns */
	d9_u64 wakes, waits;                /* waits: polls of which it is known since when the task was runnable */
	d9_u64 queue_total, queue_max;      /* ns, of these */
	d9_u32 workers, migrations;         /* polled by how many threads or workers; from one to another */
	d9_u64 idle_since;                  /* D9_NOT_KNOWN = it is over, is polled, or may be runnable */
	d9_moments moments;                 /* belongs to the table */
};

struct d9_tasks {
	D9_VEC(struct d9_task) of; /* by process, module, id */
	d9_moments moments;
};

/* Those of the processes and threads that --pid and --thread let through. */
void d9_tasks_make(const struct d9_model *m, struct d9_tasks *ret);
void d9_tasks_free(struct d9_tasks *t);

#endif
