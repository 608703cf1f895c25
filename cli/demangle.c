/* Which demangler a name belongs to. */
#include "demangle.h"

#include <stdlib.h>
#include <string.h>

/* libstdc++, as the C++ ABI names it. */
char *__cxa_demangle(const char *name, char *buf, size_t *bytes, int *status);

#define RAW_MAX 8192 /* longer names are shown as they are: demanglers may need exponential space */
#define NAME_MAX_ 8192

char *d9_demangle(const char *raw)
{
	char buf[NAME_MAX_];
	if (strlen(raw) > RAW_MAX)
		return strdup(raw);
	if (!strncmp(raw, "_R", 2))
		return strdup(d9_demangle_rust_v0(raw, buf, sizeof(buf)) ? buf : raw);
	if (strncmp(raw, "_Z", 2))
		return strdup(raw);
	/* First, for an old Rust name is a valid C++ one too, with the hash as its last part. */
	if (d9_demangle_rust_legacy(raw, buf, sizeof(buf)))
		return strdup(buf);
	int status;
	char *name = __cxa_demangle(raw, NULL, NULL, &status);
	return name ? name : strdup(raw);
}
