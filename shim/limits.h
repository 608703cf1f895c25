/*
 * The program's own words about its memory.  What the recorder has mapped counts as the program's, so where that would be missing it
 * goes away first.
 */
#ifndef D9_SHIM_LIMITS_H
#define D9_SHIM_LIMITS_H
#include "format/types.h"

#include <stdbool.h>

/*
 * Before a limit of process `pid` (0: this one) is set.  If it is this process's address space or data and what the recorder holds is a
 * large part of what would be left, the recorder writes out what it has and goes: recording ends in this process, and d9 status says why.
 * Where other code could be inside the recorder it stays, and that is said instead.  to: a struct rlimit64, which may not be readable.
 */
void d9_shim_before_limit(int pid, int resource, const void *to);

/*
 * mlockall(flags) as it would be without the recorder: what the recorder has mapped is neither locked nor brought in, and does not count
 * against RLIMIT_MEMLOCK.  False: the real call is to be made as it is.  Else *ret is 0 or -errno.
 */
bool d9_shim_lock_all(int flags, long *ret);

#endif
