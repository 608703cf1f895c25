/*
 * Mangled names to what people wrote: C++ by libstdc++'s own demangler, Rust (old and v0) by ours.
 * (libiberty's would do both, but is LGPL and GPL; this way d9 stays MIT.)
 */
#ifndef D9_CLI_DEMANGLE_H
#define D9_CLI_DEMANGLE_H
#include <stdbool.h>
#include <stddef.h>

/* The readable name, or a copy of raw where it is no mangled name.  To be freed; NULL: no memory. */
char *d9_demangle(const char *raw);

/* demangle_rust.c.  Both write a NUL-ended name of less than max bytes, or return false. */
bool d9_demangle_rust_legacy(const char *raw, char *ret, size_t max); /* _ZN..17h<hash>E */
bool d9_demangle_rust_v0(const char *raw, char *ret, size_t max);     /* _R.. */

#endif
