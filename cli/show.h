/* How spans, stacks, threads and histograms are written, in JSON and for people: shared by the commands. */
#ifndef D9_CLI_SHOW_H
#define D9_CLI_SHOW_H
#include "hist.h"
#include "json.h"
#include "model.h"

/* Anything that the contract calls a span. */
struct d9_ref {
	d9_u32 thread;
	enum d9_ref_what {
		D9_REF_SPAN,
		D9_REF_PARK,
		D9_REF_POLL,
		D9_REF_QUEUE,
		D9_REF_WAKE,
		D9_REF_PENDING,
		D9_REF_RUNQ,
		D9_REF_OFFCPU
	} what;
	d9_u32 index;
};
/* The wait of an OFFCPU. */
static inline struct d9_offcpu *d9_offcpu_at(const struct d9_model *m, struct d9_ref ref)
{
	return &m->t->threads.v[ref.thread].kernel.offcpu.v[ref.index];
}

struct d9_ref_info {
	d9_u64 t0, t1, object, task; /* task: of a QUEUE */
	d9_i32 fd;
	d9_i64 result;
	d9_u32 kind, hook, site; /* hook, site: D9_NO_INDEX = none */
	bool ended, has_result;
	const struct d9_bytes *stack;
	bool own_stack;  /* taken in this call; else when somebody called from its place first */
	d9_i32 nr;       /* system call of an OFFCPU */
	const char *who; /* had the CPU until the end of a RUNQ; NULL = nobody, or not known */
};
struct d9_ref_info d9_ref_info(const struct d9_model *m, struct d9_ref ref);

/* ---- stacks ---- */
#define D9_SHOW_FRAMES 128
struct d9_stack {
	d9_u32 proc, n;
	struct d9_frame frames[D9_SHOW_FRAMES];
};
/* Names the frames; with no stack, the caller at `ra` alone (0 = nothing). */
void d9_show_resolve(struct d9_trace *t, d9_u32 proc, const struct d9_bytes *stack, d9_u64 ra, struct d9_stack *ret);
const struct d9_bytes *d9_show_span_stack(const struct d9_trace *t, const struct d9_span *s);
void d9_show_stack_json(struct d9_json *j, const char *key, struct d9_trace *t, d9_u32 proc,
			const struct d9_bytes *stack);
void d9_show_frames_json(struct d9_json *j, const char *key, const struct d9_stack *s);
#define D9_FIRST_SEEN " (where that place was first seen from)"
/* "", or that the stack of a call that has not ended may be another caller's. */
static inline const char *d9_show_whose(const struct d9_bytes *stack, bool own, bool ended)
{
	return stack && stack->n && !own && !ended ? D9_FIRST_SEEN : "";
}
/* Key "stack_of": whose stack it is, as d9_ref_info has it. */
void d9_show_whose_json(struct d9_json *j, const struct d9_bytes *stack, d9_u64 ra, bool own);
/* The first frames that are the program's own: "user < handle < main". Returns buf; "" if there are none. */
const char *d9_show_headline(const struct d9_stack *s, unsigned max, char *buf, size_t n);
/* One frame for people, without a newline. */
const char *d9_show_frame(const struct d9_frame *f, char *buf, size_t n);

/* ---- threads ---- */
/* Keys pid, tid, name. */
void d9_show_who_json(struct d9_json *j, const struct d9_model *m, d9_u32 thread);
/* What a line of a table begins with: how long, since when, whose. */
void d9_show_when_text(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 dur);

/* ---- spans ---- */
void d9_show_object_json(struct d9_json *j, d9_u64 object, d9_i32 fd);
/* The task that was polled meanwhile, as the program calls it; D9_NOT_KNOWN = none. */
d9_u64 d9_show_task(const struct d9_model *m, struct d9_ref ref);
void d9_show_span_json(struct d9_json *j, const char *key, const struct d9_model *m, struct d9_ref ref);
/* A line for people: when, who, what, how long, where. */
void d9_show_span_text(FILE *f, const struct d9_model *m, struct d9_ref ref);
/* The longest first; *ret_n in: how many at most, out: how many. kind D9_N_KINDS: every hooked call away from home, and poll spans. */
struct d9_ref *d9_show_longest(const struct d9_model *m, d9_u32 kind, d9_u64 longer_ns, size_t *ret_n);

#define D9_NO_KERNEL_SIDE                                                                                          \
	"no kernel side in this recording: record with `d9 run --kernel on`, or run `d9-kernel --session DIR` or " \
	"`d9-kernel --pid PID` beside the service, as root or with CAP_BPF and CAP_PERFMON"
#define D9_BY_PERF                                                                                                    \
	"seen through perf (D9_PERF): waits for a CPU after a preemption and of new threads; those after a wake-up, " \
	"who "                                                                                                        \
	"had the CPU, and what a sleep was for were not watched"
/* Says it, for people, if any of what is shown was seen so. */
void d9_show_by_perf(const struct d9_model *m);
/* Tells on stderr why there can be nothing of this kind in the recording, if it needs what is not there. */
void d9_show_why_empty(const struct d9_model *m, d9_u32 kind);

/* ---- histograms ---- */
void d9_show_hist_json(struct d9_json *j, const struct d9_hist *h, d9_u32 kind);
void d9_show_hist_numbers_json(struct d9_json *j, const struct d9_hist *h); /* from count to buckets */
void d9_show_hist_bars(const struct d9_hist *h);

/* ---- locks ---- */
void d9_show_locks_json(struct d9_json *j, const struct d9_model *m);
/* Name of the variable that the lock is, "module:symbol"; NULL = it lies on the heap or has no name. */
const char *d9_show_lock_name(const struct d9_model *m, const struct d9_lock *l);
/* Locks to show, worst first; to be freed. */
const struct d9_lock **d9_show_locks(const struct d9_model *m, size_t *ret_n);
const char *d9_show_known_by(enum d9_known_by by);

/* ---- events that a program declared ---- */
struct d9_custom_field {
	char name[64];
	enum {
		D9_CUSTOM_NONE,
		D9_CUSTOM_U64,
		D9_CUSTOM_I64,
		D9_CUSTOM_F64,
		D9_CUSTOM_STR
	} type; /* NONE: the bytes ended before it */
	union {
		d9_u64 u;
		d9_i64 i;
		double f;
	} v;
	const char *text; /* not ended by a NUL */
	size_t n_text;
};
typedef void d9_custom_field_fn(void *ctx, const struct d9_custom_field *f);
/* NULL: the declaration is not in the recording. */
const struct d9_trace_type *d9_show_custom_type(const struct d9_trace *t, d9_u32 family, d9_u32 id);
/* Every field of an event of this kind, in order; ends at a type that it does not know. */
void d9_show_custom(const struct d9_trace_type *type, const struct d9_bytes *data, d9_custom_field_fn *fn, void *ctx);

/* ---- words ---- */
bool d9_show_colour(FILE *f);
/* "worker 3 (tokio-runtime-w, 1234)" */
const char *d9_show_thread(const struct d9_model *m, d9_u32 thread, char *buf, size_t n);
d9_i32 d9_show_pid(const struct d9_model *m, d9_u32 thread);
d9_i32 d9_show_tid(const struct d9_model *m, d9_u32 thread);

#endif
