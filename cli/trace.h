/*
 * A session in memory: what its segments (and the arena of a family that still lives or died unread)
 * say, decoded, joined over process families, on one clock.  No judgement here: that is the model's.
 *
 * Threads, processes, sites and hooks are numbered over the whole session, so an index is enough
 * everywhere.  Spans of a thread lie in one array in the order of their ends.
 */
#ifndef D9_CLI_TRACE_H
#define D9_CLI_TRACE_H
#include "format/segment_read.h"
#include "kinds.h"
#include "map.h"
#include "symbols.h"
#include "trace_kernel.h"
#include "vec.h"

#define D9_NO_INDEX 0xffffffffu

struct d9_trace_hook {
	const char *name;
	d9_u32 kind;  /* the family */
	d9_u32 flags; /* D9_HOOK_* */
};

struct d9_trace_site {
	d9_u64 ra; /* 0: only the hook is known */
	d9_u32 hook, depth, proc;
	d9_u32 kind; /* of the hook */
	struct d9_bytes stack;
};

/* A finished call.  One cache line: there are tens of millions of them. */
struct d9_span {
	d9_u64 t0, t1; /* CLOCK_MONOTONIC ns */
	d9_u64 object;
	d9_u64 waker_t; /* ns, 0 = no waker seen */
	d9_i32 result, fd;
	d9_u32 site;
	d9_u32 waker; /* thread index or D9_NO_INDEX */
	d9_u32 owner; /* tid in the lock's owner word, 0 = none or not read */
	d9_u32 stack; /* index into tails, 0 = none */
	d9_u16 hook;
	d9_u8 kind;
	d9_u8 flags; /* D9_SPAN_* */
	d9_u32 pad;
};
_Static_assert(sizeof(struct d9_span) == 64, "a span is a cache line");
#define D9_SPAN_PARK 1u                                 /* at home: its thread had nothing to do */
#define D9_SPAN_NESTED 2u                               /* within the span that follows it */
#define D9_SPAN_CLAIMED 4u                              /* a finding explains it */
#define D9_SPAN_NO_CALL (D9_SPAN_PARK | D9_SPAN_NESTED) /* not a call of its own, away from home */

struct d9_pending {
	d9_u64 t, since, object; /* since, object: 0 = none */
	d9_i32 fd;
	d9_u32 site, owner;
	bool unfinished; /* nothing came after it */
	bool claimed;    /* a finding explains it */
};
struct d9_cpu {
	d9_u64 t, run, delay; /* delay: D9_NOT_KNOWN = not measured */
};
struct d9_held_object {
	d9_u64 object, since, t;
};
struct d9_calls {
	d9_u64 count, total_ns, max_ns;
	d9_u32 hook, errors;
};
struct d9_gap {
	d9_u64 since, t, events;
};
/* A park or poll that a runtime reported itself. */
struct d9_rt_span {
	d9_u64 t0, t1, task;
	d9_u32 module, runtime, worker, outcome;
	bool park, unfinished; /* unfinished: a poll that had not ended at t1, when somebody looked */
};
/* Orders things that begin with t0 and t1 by their ends, for qsort: an inner one ends before its outer one, or with it. */
int d9_end_order(const void *a, const void *b);
/* Any record that is not a span, as it was written: for `d9 dump`. */
struct d9_trace_event {
	d9_u64 t;
	const struct d9_rec *rec; /* decoded; times in ticks of `clock` */
	struct d9_bytes tail;
	d9_u32 clock, seq; /* seq: among events of the thread */
	d9_u32 family;     /* whose clock and numbers they are: of a joined kernel thread's not the thread's own */
	d9_u16 id;
};

struct d9_trace_thread {
	d9_u32 id, family, proc; /* id within the family */
	d9_i32 tid;
	d9_u32 role; /* as in the thread event */
	const char *name;
	d9_u64 born, first, last; /* ns; first and last moments at which anything is known of it */
	bool shown;               /* --pid and --thread let it through */
	d9_u64 kinds;             /* bit per kind: which its spans are of */
	D9_VEC(struct d9_span) spans;
	D9_VEC(struct d9_cpu) cpu; /* by time */
	D9_VEC(struct d9_calls) calls;
	D9_VEC(struct d9_rt_span) rt;
	D9_VEC(struct d9_gap) gaps;
	D9_VEC(struct d9_held_object) held; /* as last said */
	D9_VEC(struct d9_trace_event) events;
	struct d9_pending pending;     /* the last one; since 0 = none */
	struct d9_rt_span in_poll;     /* the last one; t1 0 = none */
	d9_i32 kernel_tid, kernel_pid; /* in the initial PID namespace, 0 = not told */
	struct d9_kernel_side kernel;
};

struct d9_trace_module {
	struct d9_mapping map;
	d9_u64 from, until;
	d9_u32 id, family, proc;
};

struct d9_trace_proc {
	d9_u32 id, family, parent; /* parent: index or D9_NO_INDEX */
	d9_u64 generation, start, born;
	d9_i32 pid, ppid;
	d9_u32 uid, flags;
	const char *exe; /* path; the arguments follow it, each ended by a NUL */
	size_t exe_bytes;
	char *name;     /* NAME-XXXXXXXX, or NAME-XXXXXXXX/2 for one that was forked */
	d9_u32 end_how; /* as in the exit event; 0 = unknown */
	d9_i32 end_code;
	d9_u64 end_t;
	struct d9_mapping *maps; /* made when first asked for */
	size_t n_maps;
	const char *exec; /* the program that it last tried to become, NULL = none */
	d9_u64 exec_t;    /* when it tried, 0 = never */
	d9_u32 became; /* index of the process of another family that it is now, D9_NO_INDEX = none that is recorded */
	bool running;  /* when it was read */
	bool shown;
};

/* A kind of event that a program declared. */
struct d9_trace_type {
	d9_u32 id;
	const char *name, *fields; /* fields: name:type,... */
};

struct d9_clock_map {
	struct d9_clock_point {
		d9_u64 tsc, mono, real;
		double slope; /* ns a cycle, to the next point */
	} * v;
	size_t n, cap;
	double hz; /* 0 = not told */
};

/* Recording was turned on or off. */
struct d9_switched {
	d9_u64 t;
	bool on;
};

struct d9_trace_family {
	char *folder; /* its name, without the path */
	d9_u64 id[2];
	struct d9_clock_map clock;
	struct d9_map hooks, sites, threads; /* ids of the family -> indices */
	bool kernel;                         /* written by d9-kernel, or: */
	bool by_perf;    /* by who read the rings of D9_PERF: of its waits only those after a preemption are told */
	bool from_start; /* none of what was written before is missing */
	D9_VEC(struct d9_trace_type) types;
	D9_VEC(struct d9_switched) switches; /* by time */
	D9_VEC(struct d9_segr *) readers;
	D9_VEC(void *) memories;
};

struct d9_trace {
	char *session;
	D9_VEC(struct d9_trace_family) families;
	D9_VEC(struct d9_trace_proc) procs;
	D9_VEC(struct d9_trace_thread) threads;
	D9_VEC(struct d9_trace_site) sites;
	D9_VEC(struct d9_trace_hook) hooks;
	D9_VEC(struct d9_trace_module) modules;
	D9_VEC(struct d9_bytes) tails;  /* [0] is empty */
	D9_VEC(const char *) infos;     /* KEY=VALUE */
	D9_VEC(const char *) names;     /* of threads of anybody and of cgroups, each once; [0] is "" */
	D9_VEC(struct d9_quota) quotas; /* by process, helper, cgroup and time */
	D9_VEC(char *) warnings;        /* what could not be read, a sentence each */
	d9_u64 t_begin, t_end;          /* of the whole session, ns */
	d9_u64 from, to;                /* asked for: within t_begin..t_end */
	d9_u64 start_real;              /* CLOCK_REALTIME ns at t_begin */
	d9_u64 torn_blocks, unknown_events, records;
	struct d9_symbols *symbols;
	struct d9_trace_bump *bump;
};

/* 0, or enum d9_exit with the reason already told on stderr. */
int d9_trace_open(const struct d9_read_opts *opts, struct d9_trace **ret);
void d9_trace_free(struct d9_trace *t);

#define D9_KIND_BIT(kind) (1ull << (kind))
_Static_assert(D9_N_KINDS <= 64, "kinds fit a word");

/* The mappings that explain addresses of a process. */
struct d9_maps d9_trace_maps(struct d9_trace *t, d9_u32 proc);
/* Thread index of a tid in a process at moment t_ns, or D9_NO_INDEX. */
d9_u32 d9_trace_thread_of_tid(const struct d9_trace *t, d9_u32 proc, d9_u32 tid, d9_u64 t_ns);
/* Ids as records have them -> indices, or D9_NO_INDEX. */
d9_u32 d9_trace_hook_index(const struct d9_trace *t, d9_u32 family, d9_u32 id);
d9_u32 d9_trace_site_index(const struct d9_trace *t, d9_u32 family, d9_u32 id);
d9_u32 d9_trace_thread_index(const struct d9_trace *t, d9_u32 family, d9_u32 id);
/* Is there a kernel's side: of d9-kernel, or what perf showed of it? */
bool d9_trace_has_kernel(const struct d9_trace *t);
/* Did d9-kernel take part? */
bool d9_trace_has_helper(const struct d9_trace *t);
/* Was any of what is shown of the kernel's side seen through perf? */
bool d9_trace_shows_perf(const struct d9_trace *t);
/* Value of an info record, or NULL. */
const char *d9_trace_info(const struct d9_trace *t, const char *key);
/* A moment of the family's clock in ns. */
d9_u64 d9_trace_ns(const struct d9_trace *t, d9_u32 family, d9_u32 clock, d9_u64 ticks);

#endif
