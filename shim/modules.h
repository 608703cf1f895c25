/*
 * What is mapped executable in a process, from when to when: the arena's module table, filled from
 * /proc/PID/maps at start and by the drainer.  Raw system calls only; runs in the host's constructor, in its
 * drain thread, and in d9.
 */
#ifndef D9_SHIM_MODULES_H
#define D9_SHIM_MODULES_H
#include "view.h"

#include <link.h>
#include <stdbool.h>

/* /proc/PID/maps, a mapping at a time; begins with .fd open at its start and all else 0. */
struct d9_maps_reader {
	int fd;
	d9_u32 have, at;
	bool eof, cut; /* cut: the rest of the line that was given last is passed over */
	char buf[2048];
};
struct d9_map_line {
	d9_u64 start, end, offset;
	bool exec;
	const char *path; /* until the next one is read; "" for anonymous memory */
};
/* False: that was all. */
bool d9_next_mapping(struct d9_maps_reader *r, struct d9_map_line *ret);

/* The name of an io_uring among the mappings: what a program shares with the kernel is mapped, however it then enters it. */
#define D9_RING_MAPPED "anon_inode:[io_uring]"

/*
 * Brings the table up to date for process entry `proc`, seen by the caller as `pid` (0: the caller itself).
 * now: raw clock.  back: makes a table page present before it is touched.  *ret_ring: set to 1 if an io_uring is mapped; may be NULL.
 * False: its maps could not be read.
 */
bool d9_modules_scan(struct d9_view *v, d9_u32 proc, int pid, d9_u64 now, bool (*back)(const void *, d9_u64),
		     d9_u32 *ret_ring);

/* The same for one image of the calling process, as its loader has it: what was opened since the last look, and matters now. */
void d9_modules_add_image(struct d9_view *v, d9_u32 proc, const struct dl_phdr_info *image, d9_u64 now,
			  bool (*back)(const void *, d9_u64));

/* Does a line of /proc/PID/maps end with `path`?  pid 0: the caller's own.  False too if the file cannot be read. */
bool d9_maps_hold(int pid, const char *path);
/* Can they be read, and is `path` not among them? */
bool d9_maps_lack(int pid, const char *path);
/* Does any process but the calling one map `path`?  Looks at all of /proc: for the end of a family alone. */
bool d9_maps_held_by_others(const char *path);

#endif
