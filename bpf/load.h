/*
 * The programs in the kernel (sched.bpf.c): loading and attaching them, saying why that cannot be, and asking them.
 * What the kernel allows is found by loading, not by its version.
 */
#ifndef D9_BPF_LOAD_H
#define D9_BPF_LOAD_H
#include "options.h"
#include "record.h"

struct d9_kload;

/* 0 with *ret; or an exit code, the reason having been said. */
int d9_kload_open(const struct d9_koptions *o, struct d9_kload **ret);
/* Takes NULL. */
void d9_kload_close(struct d9_kload *l);

/* Makes targets of all threads of these processes (numbers as d9-kernel sees them), and calls fn for each target.  0 or -errno. */
typedef void d9_kload_thread_fn(void *ctx, const struct d9_k_thread *t);
int d9_kload_take(struct d9_kload *l, const int *pids, size_t n, d9_kload_thread_fn *fn, void *ctx);
/* Calls fn for each target that lives.  0 or -errno. */
int d9_kload_list(struct d9_kload *l, d9_kload_thread_fn *fn, void *ctx);
/* Calls fn with the totals of each living target.  0 or -errno. */
typedef void d9_kload_total_fn(void *ctx, const struct d9_k_total *t);
int d9_kload_totals(struct d9_kload *l, d9_kload_total_fn *fn, void *ctx);

/* Calls fn for records in the ring, oldest first.  True: there are more; a busy target could keep it from ever coming back. */
typedef void d9_kload_record_fn(void *ctx, const struct d9_k_head *h, size_t bytes);
bool d9_kload_consume(struct d9_kload *l, d9_kload_record_fn *fn, void *ctx);
/* Readable while there is something in the ring; whoever waits is woken when it is more than half full. */
int d9_kload_ring_fd(const struct d9_kload *l);

/* From here on nothing new comes. */
void d9_kload_detach(struct d9_kload *l);

/* Records that found the ring full so far. */
d9_u64 d9_kload_lost(const struct d9_kload *l);
struct d9_kload_counts {
	d9_u64 lost, untold, reckoned, skipped; /* skipped: runs of a program that the kernel left out */
	d9_u32 no_store;
};
struct d9_kload_counts d9_kload_counts(const struct d9_kload *l);

#endif
