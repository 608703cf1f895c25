/* Which frames a finding's headline goes past; see plumbing.def. */
#ifndef D9_CLI_PLUMBING_H
#define D9_CLI_PLUMBING_H
#include <stdbool.h>

/* module: base name; symbol: demangled.  Either may be NULL. */
bool d9_is_plumbing(const char *module, const char *symbol);

#endif
