/*
 * Findings: the model in, answers out.  Each find_<problem>.c looks for one kind of incident, adds a
 * finding for each and marks the spans it explains as claimed; those that run later leave them alone, so
 * one incident is one finding and its effects are its victims.
 *
 * certainty: `seen` if every link of the chain was recorded, `inferred` if one was concluded.
 */
#ifndef D9_CLI_FINDINGS_H
#define D9_CLI_FINDINGS_H
#include "show.h"

#define D9_WARN_NS 10000000ull     /* a poll or call longer than this is worth a word */
#define D9_CRITICAL_NS 50000000ull /* longer than this: users notice */

enum d9_severity { D9_INFO, D9_WARNING, D9_CRITICAL };

struct d9_finding {
	const char *id;
	enum d9_severity severity;
	bool inferred;
	char title[200];
	d9_u32 thread;
	d9_u64 from, to; /* of the worst instance */
	d9_u64 count;
	d9_u64 harm; /* ns, over all instances and victims: what the order goes by */
	struct {
		const char *kind;
		d9_u32 hook; /* D9_NO_INDEX = none */
		d9_u64 object;
		d9_i32 fd;
		d9_u32 owner_tid;
		d9_u32 proc;
		const struct d9_bytes *stack;
		d9_u64 ra;
		bool own_stack, ended; /* as d9_ref_info has them */
	} cause;
	D9_VEC(struct d9_victim {
		d9_u32 thread;
		d9_u64 waited;
	})
	victims;
	D9_VEC(struct d9_measured {
		const char *key;
		bool is_real;
		d9_u64 n; /* D9_NOT_KNOWN = null */
		double real;
	})
	measured;
	D9_VEC(struct d9_ref) spans; /* evidence */
	const char *try[4];
};
struct d9_findings {
	D9_VEC(struct d9_finding) of;
};

/* All of them, worst first, over the threads that are shown. */
void d9_findings_make(struct d9_model *m, struct d9_findings *ret);
void d9_findings_free(struct d9_findings *f);
/* How many have this id; or are critical; or all of them with "findings". */
d9_u64 d9_findings_count(const struct d9_findings *f, const char *subject);
bool d9_finding_known(const char *id);
/* ... or one of the contract that this version does not find? */
bool d9_finding_reserved(const char *id);
const char *d9_severity_name(enum d9_severity s);

/* ---- for find_*.c ---------------------------------------------------------------------------------- */

typedef void d9_find_fn(struct d9_model *m, struct d9_findings *out);
#define D9_FINDING(id, fn, says, measured) d9_find_fn fn;
#include "findings.def"
#undef D9_FINDING

struct d9_finding *d9_finding_add(struct d9_findings *out, const char *id, d9_u32 thread);
void d9_finding_title(struct d9_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds to the title which task it was; poll: of the task, NULL = none. */
void d9_finding_task(struct d9_finding *f, struct d9_model *m, d9_u32 thread, const struct d9_rt_span *poll);
void d9_finding_n(struct d9_finding *f, const char *key, d9_u64 value);
void d9_finding_real(struct d9_finding *f, const char *key, double value);
void d9_finding_victim(struct d9_finding *f, d9_u32 thread, d9_u64 waited_ns);
void d9_finding_span(struct d9_finding *f, struct d9_ref ref); /* the first few are kept */
/* Takes kind, hook, object, fd, owner and stack of the cause from a span. */
void d9_finding_cause(struct d9_finding *f, const struct d9_model *m, struct d9_ref ref);
enum d9_severity d9_severity_of(d9_u64 ns);

/* A call that may have been long only because the thread had no CPU. */
bool d9_only_starved_of_cpu(const struct d9_model *m, d9_u32 thread, const struct d9_span *s);
/* A call that made a descriptor, slowly, whose number says that the table grew. */
bool d9_is_fd_table_growth(const struct d9_span *s);

/* The hooked call away from home that holds most of a wait in the kernel, if it is that for the most part; D9_NO_INDEX = none. */
d9_u32 d9_call_around(const struct d9_model *m, struct d9_ref ref);
/* A wait that the kernel's side saw, with the call around it (D9_NO_INDEX = none), is explained. */
void d9_claim_offcpu(struct d9_model *m, struct d9_ref ref, d9_u32 call);
/* It explains the call by what it saw in it: cause and evidence of the finding. */
void d9_finding_offcpu(struct d9_finding *f, struct d9_model *m, struct d9_ref ref, d9_u32 call);

static inline void d9_claim(struct d9_model *m, d9_u32 thread, d9_u32 span)
{
	m->t->threads.v[thread].spans.v[span].flags |= D9_SPAN_CLAIMED;
}

#endif
