/* See preload.h. */
#include "preload.h"

#include <stdbool.h>
#include <string.h>

static const char *base_name(const char *path, const char *end)
{
	for (const char *p = path; p < end; p++)
		if (*p == '/')
			path = p + 1;
	return path;
}

/* The loader knows us under the name that it was given, or under the path where it found that. */
bool d9_preload_is_ours(const char *entry, const char *end, const char *library)
{
	const char *given = base_name(entry, end), *known = base_name(library, library + strlen(library));
	return end - given == (long)strlen(known) && !memcmp(given, known, (size_t)(end - given));
}

void d9_preload_take_out(char *list, const char *library)
{
	char *to = list;
	for (const char *from = list; *from;) {
		const char *end = from + strcspn(from, ": ");
		size_t n = (size_t)(end - from) + (*end != 0);
		if (!d9_preload_is_ours(from, end, library)) {
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	if (to > list && strchr(": ", to[-1]))
		to--; /* what parted the last entry from ours */
	memset(to, 0, strlen(to));
}

void d9_preload_leave(char *const *envp, const char *library, const void *stack)
{
	for (; library && *library && envp && *envp; envp++)
		if (!strncmp(*envp, "LD_PRELOAD=", 11) && (const void *)*envp > stack)
			d9_preload_take_out(*envp + 11, library);
}
