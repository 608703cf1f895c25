/*
 * Folders that the recorder writes into, and what their session memory says of processes.  It lies in a file that the
 * recorded program can write: everything in it is a claim, read by pread (a mapping could be cut short under us) and checked.
 */
#ifndef D9_BPF_SESSION_H
#define D9_BPF_SESSION_H
#include "format/arena.h"
#include "format/segment.h"

#include <stdbool.h>

/* The living processes of one family; pids are those of the namespace `pid_ns`. */
struct d9_kfamily {
	const char *name; /* of its folder */
	int dirfd;        /* of its folder, closed afterwards */
	d9_u32 uid;       /* whose folder and memory are */
	d9_u64 pid_ns, started_mono;
	const struct d9_proc *procs; /* n of them, those that do not live among them */
	d9_u32 n;
};

static inline bool d9_kfamily_lives(const struct d9_proc *p) { return p->state == D9_PROC_LIVE && p->pid > 0; }

/* Calls fn for each process folder of a traces folder, until it returns true.  0 or -errno. */
typedef bool d9_kfolder_fn(void *ctx, int dirfd, const char *name);
int d9_ksession_each_folder(const char *dir, d9_kfolder_fn *fn, void *ctx);

/* Calls fn for each family of a traces folder, or for that of a process folder, until it returns true.  0 or -errno. */
typedef bool d9_ksession_fn(void *ctx, const struct d9_kfamily *f);
int d9_ksession_each(const char *dir, d9_ksession_fn *fn, void *ctx);

#endif
