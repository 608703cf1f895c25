/* Where libd9shim.so is: beside d9 as it was built or installed. */
#ifndef D9_CLI_SHIM_PATH_H
#define D9_CLI_SHIM_PATH_H
#include <stddef.h>

/* Absolute path.  0, -ENOENT, or -EINVAL: it holds a space or a colon, which LD_PRELOAD cannot (path is set then too). */
int d9_shim_path(char *ret, size_t max);

#endif
