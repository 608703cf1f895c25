/*
 * d9 run's D9_PERF: context switches of the program and of all that it starts, read through perf from outside.  For where d9-kernel
 * may not run.
 */
#ifndef D9_CLI_RUN_PERF_H
#define D9_CLI_RUN_PERF_H
#include "run_families.h"
#include "shim/perf.h"

#include <sys/types.h>

struct d9_run_perf {
	struct d9_perf *p; /* NULL: nothing is watched */
	int dirfd;         /* where it is written to, -1 = nowhere yet */
	d9_u64 passed_mono;
	bool told;
	const char *why; /* why nothing is watched although it was asked for; NULL */
};

/* Begins with a process that has not begun to be the program yet. */
void d9_run_perf_start(struct d9_run_perf *k, pid_t target);
void d9_run_perf_round(struct d9_run_perf *k, const struct d9_families *f);
void d9_run_perf_stop(struct d9_run_perf *k, const struct d9_families *f);

#endif
