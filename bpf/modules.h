/*
 * What a process has mapped, so that d9 can name the addresses of its own stacks: /proc/PID/maps is read when a stack has an address
 * that is in none of the mappings known so far, and each mapping becomes a module event with the build id of its file.
 */
#ifndef D9_BPF_MODULES_H
#define D9_BPF_MODULES_H
#include "segment.h"

struct d9_kmodule {
	struct d9_kmodule *next;
	d9_u64 start, end, offset, from;
	d9_u32 id, n_text;
	char text[]; /* build id in hex, NUL, path */
};

struct d9_kmodules {
	struct d9_kmodule *of;
	d9_u64 looked;     /* CLOCK_MONOTONIC */
	d9_u32 defined_in; /* segment that has all of them */
};

void d9_kmodules_free(struct d9_kmodules *ms);
bool d9_kmodules_have(const struct d9_kmodules *ms, d9_u64 address);
/* Reads what process `pid` (as seen from here) has mapped, at most once a second.  *next_id: of all processes.  0 or -errno. */
int d9_kmodules_look(struct d9_kmodules *ms, int pid, d9_u32 *next_id);
/* Writes them as those of process number `process`, unless the open segment has them.  0 or as d9_kseg_add. */
int d9_kmodules_define(struct d9_kmodules *ms, d9_u32 process, struct d9_kseg *s);

#endif
