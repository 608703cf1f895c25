/*
 * Session memory of running programs, as status, ctl and run see it: opened read-only where looking is all
 * that is asked, checked before anything in it is believed.
 */
#ifndef D9_CLI_LIVE_H
#define D9_CLI_LIVE_H
#include "format/arena.h"

#include <limits.h>
#include <stddef.h>

struct d9_live {
	struct d9_arena_header *h; /* of our own copy (read) or of the shared mapping (write) */
	void *map;
	d9_u64 bytes;
	int fd;
	char path[128];        /* the arena's file */
	char folder[PATH_MAX]; /* the process folder, "" if not known */
};

/*
 * Opens the arena of a process (its /proc/PID/maps names it), or of a process folder.  write: maps it shared, to give
 * orders.  0; -ESRCH no such process; -ENOENT it has no arena; -EACCES, -EPERM; -EBADMSG not an arena of this version.
 */
int d9_live_open_pid(int pid, int write, struct d9_live *ret);
int d9_live_open_folder(const char *folder, int write, struct d9_live *ret);
void d9_live_close(struct d9_live *l);
/* Tells why a process's arena was not opened: an enum d9_exit. */
int d9_live_fail(int pid, int r);

/* Members that run, and how many of them can record; -1: they cannot be told from here (another PID namespace). */
int d9_live_members(const struct d9_live *l, int *ret_able);

#endif
