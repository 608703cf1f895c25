/*
 * Every span and event of a trace in one order: by when it began, then by thread.  Reorders the
 * spans of a thread by their beginnings, so the model must not be built on the same trace.
 */
#ifndef D9_CLI_TIMELINE_H
#define D9_CLI_TIMELINE_H
#include "trace.h"

struct d9_timeline_item {
	d9_u64 t;
	const struct d9_trace_thread *thread;
	const struct d9_span *span; /* one of these two */
	const struct d9_trace_event *event;
};
/* Calls fn for each; what it returns other than 0 ends the walk and is returned. */
typedef int d9_timeline_fn(void *ctx, const struct d9_timeline_item *item);
int d9_timeline_walk(struct d9_trace *t, d9_timeline_fn *fn, void *ctx);
/* When an event stands: a gap and a reported park or poll where they began, everything else at its t. */
d9_u64 d9_timeline_begin(const struct d9_trace *t, const struct d9_trace_event *e);

#endif
