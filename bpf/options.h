/* The command line of d9-kernel. */
#ifndef D9_BPF_OPTIONS_H
#define D9_BPF_OPTIONS_H
#include "format/types.h"

#include <regex.h>
#include <stdbool.h>

enum d9_kby { D9_KBY_NOTHING, D9_KBY_PID, D9_KBY_SESSION, D9_KBY_COMM, D9_KBY_CGROUP };

struct d9_koptions {
	enum d9_kby by;
	const char *what; /* as it was given */
	int pid;
	regex_t comm;
	const char *dir; /* NULL: not given */
	d9_u64 runq_min_ns, offcpu_min_ns, syscall_min_ns;
	d9_u64 ring_bytes;
	d9_u64 segment_bytes, rotate_ns, total_bytes; /* of the environment, as the service's */
	bool user_stacks, syscalls, wakers;
};

/* 0; or exit code + 1 when there is nothing more to do, all that is to be said having been said. */
int d9_koptions_parse(struct d9_koptions *o, int argc, char **argv);
void d9_koptions_fini(struct d9_koptions *o);

#endif
