/* The report: gathered once (report.c), written as JSON (report_json.c) or for people (report_text.c). */
#ifndef D9_CLI_REPORT_H
#define D9_CLI_REPORT_H
#include "findings.h"

struct d9_call_row {
	d9_u32 hook;
	d9_u64 count, total, max, errors;
};
struct d9_growth {
	d9_u32 thread, span;
};
struct d9_unseen {
	const char *what;
	char detail[320];
};

struct d9_report {
	struct d9_model *m;
	struct d9_findings findings;
	struct d9_hist hists[D9_N_KINDS];
	struct d9_hist waits; /* hooked calls away from home: what --fail-if calls `wait` */
	struct d9_ref *worst;
	size_t n_worst, top;
	D9_VEC(struct d9_call_row) calls; /* longest in total first */
	D9_VEC(struct d9_growth) growth;
	D9_VEC(struct d9_unseen) unseen;
	d9_u64 fd_max;                  /* D9_NOT_KNOWN = none seen */
	d9_u64 dropped, dropped_kernel; /* dropped_kernel: of them, the kernel's side's */
};

/* No hook is in place in this process: it loaded the recorder itself. */
bool d9_is_unhooked(const struct d9_trace *t, d9_u32 proc);
#define D9_UNHOOKED                                                                                                   \
	"it loaded libd9shim.so itself, after libc: no hook is in place and none of its calls is recorded; start it " \
	"with "                                                                                                       \
	"`d9 run` or LD_PRELOAD"

/* What is to be said of a process that has an io_uring; false: it has none. */
bool d9_uring_told(const struct d9_trace *t, d9_u32 proc, char *ret, size_t max);

void d9_report_make(struct d9_model *m, size_t top, struct d9_report *ret);
void d9_report_free(struct d9_report *r);
int d9_report_json(const struct d9_report *r); /* 0 or -EIO */
void d9_report_text(const struct d9_report *r, bool stacks);
/* "2024-05-01T12:00:00.123456Z" */
const char *d9_report_start(const struct d9_trace *t, char buf[40]);
/* "exit", "signal:9", "running", ... and its code, D9_NOT_KNOWN = none. */
const char *d9_report_end(const struct d9_trace_proc *p, char buf[24], d9_u64 *ret_code);

#endif
