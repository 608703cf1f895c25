/*
 * What a hook does whose function no image has.  A program that needs such a name does not start on its libc; but one that asks
 * whether the name is there (a weak reference, dlsym) finds ours, so it must be of use, or fail as libc's own would.
 */
#ifndef D9_INTERPOSE_ABSENT_H
#define D9_INTERPOSE_ABSENT_H
#include "real.h"

/* Does the same by other functions of d9_real.  NULL: nothing can. */
void *d9_stand_in(enum d9_hook_id id);

/* How the function says that it failed; NULL of one that returns a pointer. */
long d9_absent(const char *name, bool pointer);

#endif
