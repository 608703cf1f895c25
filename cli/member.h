/* Which members of a family still run: what /proc says of those that the family's arena names. */
#ifndef D9_CLI_MEMBER_H
#define D9_CLI_MEMBER_H
#include "format/arena.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Does this member run, and still the program that was recorded?  arena: inode of the arena's file, which it has mapped
 * then.  *ret_start: when it was started, as in the proc event; set if it runs.  What /proc hides is taken to run.
 */
bool d9_member_runs(const struct d9_proc *p, ino_t arena, d9_u64 *ret_start);

#endif
