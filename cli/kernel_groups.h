/* Threads that the kernel's side watched, in groups that findings judge together. */
#ifndef D9_CLI_KERNEL_GROUPS_H
#define D9_CLI_KERNEL_GROUPS_H
#include "model.h"

struct d9_wait_group {
	D9_VEC(d9_u32) threads;   /* [0]: that waited longest */
	d9_u64 waited, ran, most; /* for a CPU, and on one; most: of [0] */
	d9_u32 proc;              /* of the first */
	size_t n_procs;
};
typedef D9_VEC(struct d9_wait_group) d9_wait_groups;
/* Which group a thread belongs to; D9_NOT_KNOWN: to none. */
typedef d9_u64 d9_wait_key_fn(const struct d9_model *m, d9_u32 thread);

d9_wait_groups d9_wait_groups_gather(const struct d9_model *m, d9_wait_key_fn *key_of);
void d9_wait_groups_free(d9_wait_groups *all);
/* "pid 17", "3 processes".  Returns buf. */
const char *d9_wait_group_procs(const struct d9_model *m, const struct d9_wait_group *g, char *buf, size_t n);

/* How long a thread waited for a CPU, in short waits too where these are known. */
d9_u64 d9_waited_by(const struct d9_model *m, d9_u32 thread);
#define D9_EACH_WAIT(q, m, thread)                                                  \
	for (struct d9_runq *q = (m)->t->threads.v[thread].kernel.runq.v,           \
			    *q##_end = q + (m)->t->threads.v[thread].kernel.runq.n; \
	     q < q##_end; q++)

#endif
