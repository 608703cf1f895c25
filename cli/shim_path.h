/* Where what belongs to d9 is: beside it, as it was built or installed. */
#ifndef D9_CLI_SHIM_PATH_H
#define D9_CLI_SHIM_PATH_H
#include <stddef.h>

/* Absolute path.  0, -ENOENT, or -EINVAL: it holds a space or a colon, which LD_PRELOAD cannot (path is set then too). */
int d9_shim_path(char *ret, size_t max);
/* Of d9-kernel.  0 or -ENOENT: it was not built, or is not for this user. */
int d9_kernel_path(char *ret, size_t max);

#endif
