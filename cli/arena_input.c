/* The arena of a family, as one more segment. */
#include "trace_internal.h"

#include <errno.h>

int d9_arena_input(const char *path, d9_drained_fn *drained, void *ctx, void **ret, size_t *ret_n, char *err, size_t n_err)
{
	(void)path, (void)drained, (void)ctx, (void)ret, (void)ret_n, (void)err, (void)n_err;
	return -ENOENT;
}
