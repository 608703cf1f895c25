/* Where a program's libraries and a command's file lie.  Like the loader and the shell, as far as `d9 check` needs it. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_file(const char *path, int mode)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, mode) == 0;
}

/* root + folder + "/" + name, with $ORIGIN and ${ORIGIN} of the folder replaced. */
static bool try_folder(const char *root, const char *folder, size_t n, const char *origin, const char *name, char *ret,
		       size_t max)
{
	static const char *const tokens[] = {"$ORIGIN", "${ORIGIN}"};
	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(tokens[i]);
		if (n < len || strncmp(folder, tokens[i], len))
			continue;
		/* origin has the root in front already */
		int r = snprintf(ret, max, "%s%.*s/%s", origin, (int)(n - len), folder + len, name);
		return r > 0 && (size_t)r < max && is_file(ret, R_OK);
	}
	int r = snprintf(ret, max, "%s%.*s/%s", root, (int)n, folder, name);
	return r > 0 && (size_t)r < max && is_file(ret, R_OK);
}

static bool try_list(const char *root, const char *list, const char *origin, const char *name, char *ret, size_t max)
{
	while (list && *list) {
		size_t n = strcspn(list, ":");
		if (n && try_folder(root, list, n, origin, name, ret, max))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

int d9_find_library(const struct d9_elf_facts *of, const char *path, const char *root, const char *name, char *ret,
		    size_t max)
{
	static const char system[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:"
				     "/usr/local/lib:/usr/local/lib64:/usr/local/lib/x86_64-linux-gnu";
	char origin[PATH_MAX];
	const char *slash = strrchr(path, '/');
	snprintf(origin, sizeof(origin), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	if (strchr(name, '/')) {
		snprintf(ret, max, "%s%s", root, name);
		return is_file(ret, R_OK) ? 0 : -ENOENT;
	}
	/* The caller's own search path says nothing about a process in another root. */
	if (try_list(root, of->runpath, origin, name, ret, max) ||
	    (!*root && try_list(root, getenv("LD_LIBRARY_PATH"), origin, name, ret, max)) ||
	    try_list(root, system, origin, name, ret, max))
		return 0;
	return -ENOENT;
}

int d9_find_program(const char *name, char *ret, size_t max)
{
	const char *path = getenv("PATH");
	if ((size_t)snprintf(ret, max, "%s", name) < max && (strchr(name, '/') || is_file(name, R_OK)))
		return 0;
	if (strchr(name, '/'))
		return -ENOENT;
	return try_list("", path ? path : "/usr/bin:/bin", ".", name, ret, max) ? 0 : -ENOENT;
}
