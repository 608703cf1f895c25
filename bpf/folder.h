/*
 * Where the segments go: the folder into which the recorder writes of the same process, if there is one, else a folder of
 * our own in the traces folder.
 */
#ifndef D9_BPF_FOLDER_H
#define D9_BPF_FOLDER_H
#include "format/types.h"

#include <stdbool.h>

/* A process to look for. */
struct d9_kfolder_process {
	d9_u64 pid_ns, start; /* 0 = not known */
	int pid;              /* in its own PID namespace */
	d9_u32 uid;
	const char *name;
};

struct d9_kfolder {
	int dirfd; /* verified: a folder, no link, and its owner may be written for */
	bool own;  /* made by us, so its budget is ours too */
	char path[4352];
};

/*
 * Looks into `dir` (NULL: $D9_DIR, ./d9-traces, /var/tmp/d9-UID of the process's user) for the folder of that process.  ended_too:
 * also for one where it has ended, or has become another program, whose folder may be still to come.  0 with *ret, or -ENOENT.
 */
int d9_kfolder_find(const char *dir, const struct d9_kfolder_process *p, bool ended_too, struct d9_kfolder *ret);

/* Makes NAME-XXXXXXXX there.  0 with *ret, or -errno; ret->path is what could not be made. */
int d9_kfolder_make(const char *dir, const struct d9_kfolder_process *p, struct d9_kfolder *ret);

#endif
