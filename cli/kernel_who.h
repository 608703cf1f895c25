/* Who had the CPUs while threads waited for one. */
#ifndef D9_CLI_KERNEL_WHO_H
#define D9_CLI_KERNEL_WHO_H
#include "model.h"

struct d9_had_cpu {
	d9_u32 name; /* of its thread that had one longest, or of all: index into the trace's names */
	d9_i32 pid;  /* in the initial PID namespace */
	bool own;    /* a process of the recording */
	d9_u64 count, total, most;
};
/* A wait tells of the last one who had the CPU, and for how long: that counts.  Who had it before is not seen. */
struct d9_who {
	const struct d9_model *m;
	bool by_process;               /* else by name */
	D9_VEC(struct d9_had_cpu) had; /* after d9_who_finish: the longest first */
	d9_u64 seen, own;              /* how long somebody was seen to have it, and threads of the recording */
	struct d9_map index;
	struct d9_map own_pids; /* processes of the recording, in the initial PID namespace */
};
void d9_who_begin(struct d9_who *w, const struct d9_model *m, bool by_process);
void d9_who_add(struct d9_who *w, const struct d9_runq *q);
void d9_who_finish(struct d9_who *w);
void d9_who_fini(struct d9_who *w);
/* "nginx and cc1": the first of them that had most of it; "nobody" if no CPU was in use.  Returns buf. */
const char *d9_who_names(const struct d9_who *w, char *buf, size_t n);

#endif
