/* Looks for libd9shim.so in the places where a build or an installation puts it, seen from d9 itself. */
#include "shim_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int d9_shim_path(char *ret, size_t max)
{
	static const char *const places[] = {
		".", "../interpose", "../shim", "..", "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/d9shim"};
	char exe[PATH_MAX], candidate[PATH_MAX + 64], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return -errno;
	exe[n] = 0;
	char *slash = strrchr(exe, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s/libd9shim.so", exe, places[i]);
		if (access(candidate, R_OK) < 0 || !realpath(candidate, real))
			continue;
		if ((size_t)snprintf(ret, max, "%s", real) >= max)
			return -ENAMETOOLONG;
		return strpbrk(real, " :") ? -EINVAL : 0;
	}
	return -ENOENT;
}
