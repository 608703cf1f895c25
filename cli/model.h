/*
 * What a trace means: the only place that pairs events.  Threads get a role and the places where they
 * park; what lies between two parks is a poll span; waits for one object make a lock.
 *
 *   model_objects.c  waits by object: locks, their waiters and holders; who waits for whom
 *   model_parks.c    where a thread is at home, and its parks            (rules R1 to R6)
 *   model_pools.c    roles and pools                                     (R7, worker rule)
 *   model_holes.c    when a thread's records are not whole
 *   model_gaps.c     polls, and what a poll's time was spent on
 *   model_kernel.c   what d9-kernel adds to that, where it watched
 *   model_tasks.c    runtimes and tasks that were told of or seen; time in their queues
 *   model.c          the order of these, and the sums per thread
 */
#ifndef D9_CLI_MODEL_H
#define D9_CLI_MODEL_H
#include "trace.h"

enum d9_role { D9_ROLE_OTHER, D9_ROLE_MAIN, D9_ROLE_WORKER, D9_ROLE_POOL, D9_ROLE_DRIVER, D9_ROLE_RECORDER };
const char *d9_role_name(enum d9_role role);

struct d9_park {
	d9_u64 t0, t1;
	d9_u32 span; /* last span of it */
	d9_u32 site;
};
/* Between two parks. Spans first..first+n-1 of the thread ended within it (nested ones included). */
struct d9_poll {
	d9_u64 t0, t1;
	d9_u32 first, n;
	d9_u32 rt;  /* index + 1 into the thread's rt spans if the runtime reported it */
	bool ended; /* false: its end was not seen: the recording ended, or was not whole there */
};
_Static_assert(offsetof(struct d9_poll, t0) == 0 && offsetof(struct d9_poll, t1) == sizeof(d9_u64), "d9_end_order");
/* A task that was runnable from t0 on and polled at t1 by this thread. */
struct d9_queued {
	d9_u64 t0, t1;
	d9_u32 rt; /* index of the poll in the thread's rt spans */
};
/* A task that was runnable from t0 on and that nobody polled any more. */
struct d9_left {
	d9_u32 proc, module, runtime, thread; /* thread: by which it was made runnable */
	d9_u64 task, t0;
};
/* One thing that was told of a task.  What happened at one moment happened in the order of the enum. */
struct d9_moment {
	enum d9_moment_what { D9_TASK_SPAWN, D9_TASK_WAKE, D9_TASK_POLL, D9_TASK_END } what;
	d9_u32 proc, module, runtime; /* runtime: D9_NO_INDEX = not told here */
	d9_u64 task;
	d9_u64 t, t1;         /* t1: end of a poll; else t */
	d9_u64 since;         /* of a poll: runnable since then, 0 = not known */
	d9_u32 thread, index; /* index: of a poll in the thread's rt spans, else in its events */
	d9_u32 by_thread;     /* did it: `thread`, but for a spawn that another thread tells of */
};
/* A job of a blocking pool: these have no workers, for their threads come and go. */
static inline bool d9_is_pool(const struct d9_rt_span *r) { return r->module && !D9_RUNTIME_NUMBER(r->runtime); }
/* The order of d9_model.moments: for qsort, and to look for one. */
int d9_moment_order(const void *a, const void *b);
/* A spawn: is known when and by whom?  A program that tells of its own does so then. */
static inline bool d9_spawn_is_exact(const struct d9_ev_task_spawn *e)
{
	return !e->module || e->flags & D9_SPAWN_EXACT;
}
/* A poll of a task of a runtime that was cancelled before: the runtime drops it and runs nothing of it. */
static inline bool d9_is_dropped(d9_u32 module, d9_u32 outcome) { return module && outcome == D9_OUTCOME_CANCELLED; }
static inline bool d9_same_task(const struct d9_moment *a, const struct d9_moment *b)
{
	return a->proc == b->proc && a->module == b->module && a->task == b->task;
}
/* A runtime that told of its tasks, or whose tasks were seen: id is the program's own number; of a module as format/events.def has it. */
struct d9_runtime {
	d9_u32 proc, module, id;
	d9_u64 workers, tasks, polls, wakes;
	d9_u64 poll_total, poll_max;
};
/* Where a poll's time went.  D9_NOT_KNOWN where it was not measured. */
struct d9_split {
	d9_u64 blocked;  /* in hooked calls; where the kernel's side watched, waiting there or anywhere in the kernel */
	d9_u64 unhooked; /* of it, where no hook stands: a page fault, a stop, a call that is not hooked */
	d9_u64 on_cpu, on_cpu_least; /* best estimate; what is certain (0 if nothing is) */
	d9_u64 runnable, unexplained;
};

/* From t0 to t1 (D9_NOT_KNOWN: to the end) the recorder was off or lost records. */
struct d9_hole {
	d9_u64 t0, t1;
};
typedef D9_VEC(struct d9_hole) d9_holes;

struct d9_model_thread {
	enum d9_role role;
	d9_u32 home;    /* site where it parks most often, D9_NO_INDEX = none */
	d9_i32 home_fd; /* descriptor waited on there, -1 = none */
	d9_u64 home_object;
	d9_u32 pool, worker;  /* numbers or D9_NO_INDEX */
	D9_VEC(d9_u32) homes; /* all sites where it parks, home first */
	D9_VEC(struct d9_park) parks;
	D9_VEC(struct d9_poll) polls;
	D9_VEC(struct d9_queued) queued; /* by t0 */
	d9_holes holes;                  /* by time, apart from each other */
	d9_u64 null_polls;               /* woken with nothing to do (R6) */
	d9_u64 begin, end;               /* of what was asked for */
	d9_u64 wall, busy, parked, blocked;
	d9_u64 runnable, unexplained; /* D9_NOT_KNOWN = not measured */
	bool busy_at_most;            /* its CPU time was not read: busy is what nothing else accounts for */
	bool polling;                 /* never waits at home: looks and sleeps elsewhere, so not an event loop */
};

struct d9_pool {
	char name[48];
	d9_u32 proc, site;
	d9_u64 object; /* 0: each thread has its own */
	D9_VEC(d9_u32) threads;
};

enum d9_known_by { D9_KNOWN_OWNER_WORD, D9_KNOWN_ACQUIRE, D9_KNOWN_WAKE };
struct d9_wait {
	d9_u32 thread, span;
};
struct d9_waiter {
	d9_u32 thread;
	d9_u64 waits, total;
};
struct d9_holder {
	d9_u32 thread;
	enum d9_known_by known_by;
	d9_u64 total; /* time it held the lock while others waited */
	D9_VEC(struct d9_inside {
		d9_u32 hook;
		d9_u64 total;
	})
	inside;
	d9_u32 worst; /* its longest span meanwhile, D9_NO_INDEX = none */
};
/* An object that threads waited for away from their parks. */
struct d9_lock {
	d9_u32 proc, kind;
	d9_u64 object;
	d9_u64 waits, total, max;
	d9_u64 wakes_by_waiters, wakes_by_others;
	D9_VEC(struct d9_wait) wait; /* every wait, parks too until model_parks has run */
	D9_VEC(struct d9_waiter) waiters;
	D9_VEC(struct d9_holder) holders;
	D9_VEC(d9_u32) pending; /* threads */
	struct d9_wait worst;
	bool gil;        /* the lock of a Python interpreter */
	bool like_lock;  /* a lock by its kind or its name; else those that wake are those that wait */
	bool maybe_lock; /* like_lock, or nothing speaks against it */
};

struct d9_model {
	struct d9_trace *t;
	struct d9_model_thread *threads; /* as the trace's */
	D9_VEC(struct d9_pool) pools;
	D9_VEC(struct d9_lock) locks;
	D9_VEC(struct d9_runtime) runtimes;
	struct d9_map runtime_map;        /* d9_model_runtime */
	D9_VEC(struct d9_moment) moments; /* a task's together and in the order of time */
	D9_VEC(struct d9_left) left;      /* tasks that could run when the recording ended */
	struct d9_tasks *tasks;           /* d9_model_tasks */
	d9_holes *holes;                  /* by process: where any of its threads has one */
	struct d9_map lock_map;           /* d9_object_key -> locks */
	struct d9_map wanted_map;         /* proc and tid of owners of what others wait for at the end */
	struct d9_map tid_map;            /* proc and tid -> thread, where only one thread ever had it */
	d9_u8 *tail_says;                 /* of kernel stacks, by tail; made when asked for */
	d9_u8 *site_says;                 /* enum d9_site_says + 1 by site; 0 = not asked yet */
	d9_u8 *met_once;                  /* by site: 1 no, 2 yes; 0 = not asked yet */
	struct d9_chain *chains;          /* stacks of sites, made when asked for */
};

struct d9_model *d9_model_new(struct d9_trace *t);
void d9_model_free(struct d9_model *m);
/* The model of the recording that the options name, with its trace.  0, or an exit code, told already. */
int d9_model_open(const struct d9_read_opts *o, struct d9_model **ret);
void d9_model_close(struct d9_model *m);

static inline const struct d9_span *d9_model_span(const struct d9_model *m, d9_u32 thread, d9_u32 span)
{
	return &m->t->threads.v[thread].spans.v[span];
}
/* The call that the thread was in when somebody looked last, as a span of the time until then. */
struct d9_span d9_model_pending(const struct d9_model *m, d9_u32 thread);
static inline d9_u64 d9_span_dur(const struct d9_span *s) { return s->t1 - s->t0; }
static inline bool d9_span_has_wake(const struct d9_span *s) { return s->waker_t && s->waker_t <= s->t1; }
static inline d9_u64 d9_overlap(d9_u64 a0, d9_u64 a1, d9_u64 b0, d9_u64 b1)
{
	d9_u64 lo = a0 > b0 ? a0 : b0, hi = a1 < b1 ? a1 : b1;
	return hi > lo ? hi - lo : 0;
}

/*
 * The first call at or after index `from` that ended within the poll and has none of the flags (D9_SPAN_NO_CALL, and
 * more); D9_NO_INDEX = no more.  D9_EACH_CALL goes over all of them.
 */
static inline d9_u32 d9_poll_call(const struct d9_trace_thread *th, const struct d9_poll *p, d9_u32 from,
				  unsigned flags)
{
	for (; from < p->first + p->n && from < th->spans.n; from++)
		if (!(th->spans.v[from].flags & flags))
			return from;
	return D9_NO_INDEX;
}
#define D9_EACH_CALL(i, th, p, flags) \
	for (d9_u32 i = d9_poll_call(th, p, (p)->first, flags); i != D9_NO_INDEX; i = d9_poll_call(th, p, i + 1, flags))

/* Where the time of t0..t1 went on a thread, of which `first, n` are the spans as in d9_poll. */
struct d9_split d9_model_split(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p);
/* Did the kernel's side watch the thread all of that time? */
bool d9_model_watched(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1);
/* Time in t0..t1 for which it is known to have waited for a CPU. */
d9_u64 d9_model_runq_in(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1);
/* Nothing was left out of what was recorded: sums over all of a thread's time say something. */
static inline bool d9_model_is_whole(const struct d9_model *m)
{
	return m->t->from == m->t->t_begin && m->t->to == m->t->t_end;
}
/* Time runnable without a CPU between the measurements around t0..t1, and how far apart they are. False: not measured. */
bool d9_model_run_delay(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_u64 *ret_delay,
			d9_u64 *ret_window);
/* The first of the holes that reaches into t0..t1, or NULL; how much of that time lies in holes. */
const struct d9_hole *d9_hole_in(const d9_holes *h, d9_u64 t0, d9_u64 t1);
d9_u64 d9_hole_time(const d9_holes *h, d9_u64 t0, d9_u64 t1);
/* Has any thread of the process one there? */
bool d9_model_has_hole(const struct d9_model *m, d9_u32 proc, d9_u64 t0, d9_u64 t1);
/* How long the recorder was off while the process lived. */
d9_u64 d9_model_off(const struct d9_model *m, const struct d9_trace_proc *p);
/* First span of the thread that ends after t. */
d9_u32 d9_model_first_span(const struct d9_model *m, d9_u32 thread, d9_u64 t);
/* The first call at or after index `from` that overlaps a stretch that ends at t1; D9_NO_INDEX = no more. */
d9_u32 d9_model_next_call(const struct d9_model *m, d9_u32 thread, d9_u32 from, d9_u64 t1);
/* The call of the thread that overlaps t0..t1 most; D9_NO_INDEX = none. */
d9_u32 d9_model_busiest_span(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_u64 *ret_overlap);
/* Who held what the span waited for: owner word, else who woke it.  D9_NO_INDEX = nobody seen. */
d9_u32 d9_model_holder_of(const struct d9_model *m, d9_u32 thread, const struct d9_span *s, enum d9_known_by *ret_by);
d9_u32 d9_model_thread_of_tid(const struct d9_model *m, d9_u32 proc, d9_u32 tid, d9_u64 t_ns);
/* Index of a runtime, D9_NO_INDEX = there is none. */
d9_u32 d9_model_runtime(const struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u32 id);
/* All that was told of a task, in the order of d9_model.moments.  Returns how many. */
size_t d9_model_moments(const struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u64 task,
			const struct d9_moment **ret);
/* What the runtime told, or was seen to do, of a poll; NULL = nothing. */
static inline const struct d9_rt_span *d9_poll_told(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p)
{
	return p->rt ? &m->t->threads.v[thread].rt.v[p->rt - 1] : NULL;
}
/* It may take as long as it likes: a worker's thread was its pool's before, or is after. */
static inline bool d9_poll_is_job(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p)
{
	return p->rt && d9_is_pool(d9_poll_told(m, thread, p));
}
/* The task's poll, told or seen, that holds all of t0..t1, or NULL; the task, 0 = none. */
const struct d9_rt_span *d9_model_task_poll(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1);
d9_u64 d9_model_task(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1);
/* The lock of an object, or NULL. */
struct d9_lock *d9_model_lock(const struct d9_model *m, d9_u32 proc, d9_u64 object);
/* Is a wait there for a lock, but at a word that the thread has for all its waits?  Then the object tells nothing of the lock. */
bool d9_model_waits_behind(const struct d9_model *m, d9_u32 site);
/* Was the thread's unfinished call the first that was ever made at its place?  Then the place's stack is its own. */
bool d9_model_pending_is_first(const struct d9_model *m, d9_u32 thread);
/* Is the thread's unfinished call a park? */
bool d9_model_pending_parks(const struct d9_model *m, d9_u32 thread);
/* Frames of `other` that are left over when the outer frames it shares with `base` are taken away; ret_base_left: of base.
   -1 = not known, no common frame. */
int d9_model_distance(struct d9_model *m, d9_u32 base, d9_u32 other, int *ret_base_left);

static inline d9_u64 d9_object_key(d9_u32 proc, d9_u64 object)
{
	return (d9_u64)proc << 47 | (object & ((1ull << 47) - 1));
}

#endif
