/*
 * From the constructor to the last instruction: start, end, exec, changes of identity.
 */
#ifndef D9_SHIM_LIFECYCLE_H
#define D9_SHIM_LIFECYCLE_H
#include "format/arena.h"
#include "real.h"

#include <stdbool.h>

struct d9_hook_info {
	const char *family, *name; /* name NULL: no such id */
	d9_u32 flags;
};

/* The constructor's work. hooks: by hook id. */
void d9_shim_start(const struct d9_hook_info *hooks, d9_u32 n_hooks, const struct d9_shim_real *real, int argc,
		   char **argv, char *const *envp);

/* Is there an arena?  False with D9_ENABLED=0, or without memory for one. */
bool d9_recording_possible(void);
/* Has it ended in this process, for good? */
bool d9_recording_ended(void);

/*
 * The process is about to end by itself: recording stops here, and what was recorded is written out if nobody else
 * will.  how: D9_PROC_EXIT or D9_PROC_UEXIT.  Does nothing in a vfork child.
 */
void d9_shim_end(d9_u32 how, int code);

/* exec is about to be tried; if it failed. path as given, which may be no string. */
void d9_shim_exec(const char *path);
void d9_shim_exec_failed(void);
/* argv[0], or NULL where there is none to be read. */
const char *d9_shim_exec_name(char *const argv[]);
/* This process is about to end inside libc, which the recorder will not see; d9_shim_exec_failed if it did not. */
void d9_shim_leaves(void);

/* Before a change of user: the arena and the folder go with it, so that the new user can write and remove them. */
void d9_shim_before_uid(d9_u32 uid);
/* Before a change of the root: the drain thread, if there is to be one, opens what it needs now. */
void d9_shim_before_root(void);
/* Before a system call filter, a user namespace or a change of one thread's rights, after which a second thread is in the way. */
void d9_shim_before_sandbox(int filter);
/* The filter was refused: programs ask so whether there are filters.  was_free: d9_shim_free() before the attempt. */
void d9_shim_sandbox_failed(int was_free);
/* Before the time stamp counter is forbidden: recording ends in this process, and d9 status says why. */
void d9_shim_before_no_clock(void);
/*
 * Recording ends in this process, which is about to be without the memory for it, and d9 status says why: what the process did.  Written out
 * here if nobody else will do that.
 */
void d9_shim_end_recording(const char *why);
/* May the recorder make system calls of its own here? */
int d9_shim_free(void);
/* Something of the program will not be seen: NAME and a sentence about it, for d9 status and d9 report.  Once for each. */
void d9_shim_unseen(const char *name, const char *what);
/* ... said by a vfork child too, or by a forked one that is not recorded itself. */
void d9_shim_unseen_anywhere(const char *name, const char *what);
/* Something was found in the program that is recorded: the same, and nothing to be warned of. */
void d9_shim_note(const char *name, const char *what);
/* The calling thread has a new name. */
void d9_shim_renamed(void);

#endif
