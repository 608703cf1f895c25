/* What the commands of the kernel's side share; its events that are neither waits for a CPU nor sleeps: requests to disks, slow system calls. */
#ifndef D9_CLI_KERNEL_SPANS_H
#define D9_CLI_KERNEL_SPANS_H
#include "hist.h"

struct d9_kernel_span {
	d9_u64 t0, dur;
	const struct d9_trace_event *ev; /* block_io or syscall */
	d9_u32 thread;
};
struct d9_kernel_spans {
	D9_VEC(struct d9_kernel_span) of; /* longest first */
};

/* All of this event that are to be shown. */
void d9_kernel_spans_find(const struct d9_model *m, d9_u16 id, struct d9_kernel_spans *ret);
void d9_kernel_spans_fini(struct d9_kernel_spans *s);

/* A command of the kernel's side with --worst N: write is given how many, and whether it is JSON; it returns the exit code, as this does. */
int d9_cmd_of_kernel(const struct d9_cmd *self, int argc, char **argv, size_t worst,
		     int (*write)(const struct d9_model *m, size_t worst, bool json));

/* What such a table has of each of its rows. */
struct d9_kernel_row {
	d9_u64 key, bytes, errors;
	struct d9_hist h;
};
struct d9_kernel_rows {
	D9_VEC(struct d9_kernel_row) of;
	struct d9_map by_key;
};
/* The row of that key, made if there is none.  It holds until the next is made. */
struct d9_kernel_row *d9_kernel_row(struct d9_kernel_rows *r, d9_u64 key);
/* Longest in all first; no row is to be asked for afterwards. */
void d9_kernel_rows_sort(struct d9_kernel_rows *r);
void d9_kernel_rows_fini(struct d9_kernel_rows *r);

#endif
