/*
 * The arena of a process folder, from outside: opened, checked, locked.  Used by d9 run (live families),
 * d9 recover and the host's drain thread (families that died without a drainer).
 */
#ifndef D9_SHIM_ADOPT_H
#define D9_SHIM_ADOPT_H
#include "drain.h"

/* Do the pids in this arena mean the same here?  Not in another PID namespace. */
bool d9_adopt_same_pids(const struct d9_arena_header *h);

struct d9_adopted {
	struct d9_drain *d;
	struct d9_arena_header *h;
	void *mem;
	d9_u64 bytes;
	int fd;        /* the arena's file, locked */
	int dirfd;     /* the process folder */
	char path[96]; /* the arena's file */
};

/*
 * Opens the arena that folder's symlink `arena` names, if it is one of ours (path, owner, type, size, header), and takes
 * its lease.  run: only a family that the `d9 run` of this name started; NULL = any.  dirfd is taken over on success.
 * 0; -ENOENT no arena; -EBADMSG not an arena of this version; -EPERM not ours; -ESTALE of an earlier boot;
 * -EXDEV of another run; -EAGAIN somebody drains it.
 */
int d9_adopt_open(int dirfd, d9_u32 kind, const char *run, struct d9_adopted *ret);

/* Unlinks the arena and its symlink: after the last segment, when nobody of the family is left. */
void d9_adopt_remove(struct d9_adopted *a);

/* Gives up the lease, unmaps, closes. */
void d9_adopt_close(struct d9_adopted *a);

/*
 * Drains a family of which nobody lives and removes its arena.  Records moved, or -errno as d9_adopt_open;
 * -EBUSY: members are alive (or cannot be told apart from here).  Closes dirfd.
 */
int d9_adopt_dead(int dirfd, d9_u32 kind);

/* d9_adopt_dead for every process folder in `dir`, until `max` were adopted. */
void d9_adopt_scan(const char *dir, unsigned max);

#endif
