/*
 * CPU quotas: how often the control groups of the targets were stopped because they had used up their CPU time.  Their own
 * counters are read, once a second: cpu.stat of version 1 and 2.
 */
#ifndef D9_BPF_QUOTA_H
#define D9_BPF_QUOTA_H
#include "segment.h"
#include "threads.h"

struct d9_kquotas;
struct d9_kquotas *d9_kquotas_new(void); /* NULL: out of memory */
void d9_kquotas_free(struct d9_kquotas *q);

/* Notes the groups of the targets; what they count from here on is told. */
void d9_kquotas_note(struct d9_kquotas *q, const struct d9_kthreads *ts);
/* Reads the counters and writes those that have changed, in a new segment all. */
void d9_kquotas_tell(struct d9_kquotas *q, struct d9_kseg *s);

#endif
