/* What /proc says of processes.  Numbers are those of the PID namespace that d9-kernel is in. */
#ifndef D9_BPF_PROCFS_H
#define D9_BPF_PROCFS_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads a small file whole; what does not fit is cut off.  Its length, or -errno; buf is ended by a NUL in any case. */
long d9_kproc_read(const char *path, char *buf, size_t size);
/* First field of that name (with its colon) in /proc/PID/status, a copy of the rest of the line; false: not there. */
bool d9_kproc_status(int pid, const char *field, char *buf, size_t size);
/* Is /proc mounted, and does it have our own numbers? */
bool d9_kproc_is_ours(void);
/* /proc/PID/stat field 22, 0 if there is no such process. */
d9_u64 d9_kproc_start(int pid);
/* Inode of its PID namespace, 0 if that may not be seen. */
d9_u64 d9_kproc_pid_ns(int pid);
/* Its number in its own PID namespace, 0 if there is no such process. */
int d9_kproc_inner_pid(int pid);
/* The process that has this number in that PID namespace, 0 if none is seen. */
int d9_kproc_find(d9_u64 pid_ns, int inner_pid);
/* Path of the program, NUL, then the arguments, each ended by a NUL; how many bytes. */
size_t d9_kproc_exe_args(int pid, char *buf, size_t size);

/* Calls fn for every process; stops when it returns true. */
typedef bool d9_kproc_fn(void *ctx, int pid);
void d9_kproc_each(d9_kproc_fn *fn, void *ctx);

#endif
