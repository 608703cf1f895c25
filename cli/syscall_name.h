/* Names of system calls, from the kernel headers that d9 was built with. */
#ifndef D9_CLI_SYSCALL_NAME_H
#define D9_CLI_SYSCALL_NAME_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

/* "fsync"; "syscall 999" where these headers have no name for it, "no call" for -1, "unknown call" for less.  buf of 32, which may be returned. */
const char *d9_syscall_name(d9_i32 nr, char *buf);
/* Is the first argument a descriptor that the call is about? */
bool d9_syscall_has_fd(d9_i32 nr);

#endif
