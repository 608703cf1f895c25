/*
 * A histogram of durations: 32 steps to each power of two, so a percentile is at most 3 % off, shown as
 * log2 buckets.
 */
#ifndef D9_CLI_HIST_H
#define D9_CLI_HIST_H
#include "model.h"

#define D9_HIST_STEP_BITS 5
#define D9_HIST_CELLS ((64 - D9_HIST_STEP_BITS + 1) << D9_HIST_STEP_BITS)

struct d9_hist {
	d9_u64 count, total, min, max;
	d9_u64 *cell; /* D9_HIST_CELLS of them, made with the first value */
};

void d9_hist_add(struct d9_hist *h, d9_u64 ns);
void d9_hist_free(struct d9_hist *h);
/* The value below which the share q (0..1) lies; 0 if there are none. */
d9_u64 d9_hist_quantile(const struct d9_hist *h, double q);
/* Values from 2^k up to 2^(k+1); bucket 0 holds 0 and 1. */
d9_u64 d9_hist_bucket(const struct d9_hist *h, unsigned k);

/* Adds what one thread contributes to a kind. */
void d9_hist_thread(const struct d9_model *m, d9_u32 thread, d9_u32 kind, struct d9_hist *h);
/* All kinds at once, over the threads that are shown. */
void d9_hist_all(const struct d9_model *m, struct d9_hist h[D9_N_KINDS]);

#endif
