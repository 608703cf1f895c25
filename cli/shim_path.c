/* Looks for libd9shim.so and d9-kernel in the places where a build or an installation puts them, seen from d9 itself. */
#include "shim_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `places` ends with NULL. */
static int find(const char *const places[], const char *name, int mode, char *ret, size_t max)
{
	char exe[PATH_MAX], candidate[PATH_MAX + 64], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return -errno;
	exe[n] = 0;
	char *slash = strrchr(exe, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	for (; *places; places++) {
		snprintf(candidate, sizeof(candidate), "%s/%s/%s", exe, *places, name);
		if (access(candidate, mode) < 0 || !realpath(candidate, real))
			continue;
		return (size_t)snprintf(ret, max, "%s", real) >= max ? -ENAMETOOLONG : 0;
	}
	return -ENOENT;
}

int d9_shim_path(char *ret, size_t max)
{
	static const char *const places[] = {
		".", "../interpose", "../shim", "..", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/d9shim",
		NULL};
	int r = find(places, "libd9shim.so", R_OK, ret, max);
	return r ? r : strpbrk(ret, " :") ? -EINVAL : 0;
}

int d9_kernel_path(char *ret, size_t max)
{
	static const char *const places[] = {".", "../bpf", "..", "../bin", "../sbin", NULL};
	return find(places, "d9-kernel", X_OK, ret, max);
}
