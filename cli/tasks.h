/*
 * The tasks that programs told of (shim/d9.h), or that were seen of their runtimes: what each one's life was.  Made from the
 * model's moments where it is asked for: a session may have millions of tasks.
 */
#ifndef D9_CLI_TASKS_H
#define D9_CLI_TASKS_H
#include "model.h"
#include "task_dumps.h"
#include "task_joins.h"
#include "task_names.h"

/* OVER: ended, and nothing tells which way.  LOST: it may have ended where nothing was recorded. */
enum d9_task_outcome { D9_TASK_ALIVE, D9_TASK_READY, D9_TASK_CANCELLED, D9_TASK_OVER, D9_TASK_LOST };
const char *d9_task_outcome_name(enum d9_task_outcome outcome);

struct d9_task {
	d9_u32 proc, module, runtime; /* runtime: D9_NO_INDEX = not known */
	d9_u64 id;
	struct d9_bytes name; /* n 0 = none */
	d9_u64 code;          /* function that polls its kind; 0 = not known, or it has a name of its program's */
	d9_u64 spawned;       /* if !exact: it was there by then */
	bool exact, job;      /* job: of a blocking pool */
	bool polled;          /* it was being polled when somebody looked last */
	d9_u64 parent;        /* 0 = none, or not known */
	enum d9_task_outcome outcome;
	d9_u64 ended;                       /* D9_NOT_KNOWN = it lives, as far as was seen */
	d9_u64 polls, poll_total, poll_max; /* ns */
	d9_u64 wakes, waits;                /* waits: polls of which it is known since when the task was runnable */
	d9_u64 queue_total, queue_max;      /* ns, of these */
	d9_u32 workers, migrations;         /* polled by how many threads or workers; from one to another */
	d9_u64 idle_since;                  /* D9_NOT_KNOWN = it is over, is polled, or may be runnable */
	const struct d9_moment *moments;    /* the model's */
	size_t n_moments;
	const struct d9_task_dump
		*awaiting; /* of one that is idle: what it registered with in the last poll in which it did */
	size_t n_awaiting;
	d9_u64 awaited; /* the task whose end it waits for, 0 = none, or not known */
};

struct d9_tasks {
	D9_VEC(struct d9_task) of; /* by process, module, id */
	struct d9_task_names names;
	struct d9_task_dumps dumps;
	struct d9_task_joins joins;
};

/* Those of the processes and threads that --pid and --thread let through: made when they are first asked for; the model's. */
struct d9_tasks *d9_model_tasks(struct d9_model *m);
void d9_tasks_make(const struct d9_model *m, struct d9_tasks *ret);
void d9_tasks_free(struct d9_tasks *t);

/* PID:MODULE:ID */
#define D9_TASK_KEY_BYTES 48
const char *d9_task_key(const struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u64 id, char buf[D9_TASK_KEY_BYTES]);

/* What a task is called, of those that --pid and --thread leave out too; n 0 = it has no name. */
struct d9_bytes d9_model_task_name(struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u64 task);

#endif
