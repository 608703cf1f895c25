/*
 * d9 run's kernel side: d9-kernel, started beside the program before that has begun and ended after it.  Whatever becomes of
 * it, the program goes on.
 */
#ifndef D9_CLI_RUN_KERNEL_H
#define D9_CLI_RUN_KERNEL_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum d9_kernel_mode { D9_KERNEL_AUTO, D9_KERNEL_ON, D9_KERNEL_OFF };

struct d9_run_kernel {
	enum d9_kernel_mode mode;
	bool recorded; /* it was ready, and wrote what there was */
	pid_t pid;     /* 0 = none runs */
	int status;    /* once it has ended */
	int out, err;  /* what it says; -1 */
	char why[400]; /* why it does not record, one sentence; "" = it does, or was not asked to */
};

/* Starts it for process `target`, to write into `dir`; returns when it is ready, has ended, or after a moment.  False: it does not record. */
bool d9_run_kernel_start(struct d9_run_kernel *k, pid_t target, const char *dir);
/* Ends it before it has written anything: there was nothing to record. */
void d9_run_kernel_drop(struct d9_run_kernel *k);
/* Ends it; its warnings go to stderr unless `quiet`. */
void d9_run_kernel_stop(struct d9_run_kernel *k, bool quiet);

#endif
