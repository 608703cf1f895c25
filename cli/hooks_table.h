/* The functions that the recorder stands in for, as interpose/hooks.def lists them. */
#ifndef D9_CLI_HOOKS_TABLE_H
#define D9_CLI_HOOKS_TABLE_H
#include <stdbool.h>
#include <stddef.h>

struct d9_hook_row {
	const char *family, *name;
	unsigned flags; /* D9_HOOK_* of arena.h */
	bool primitive; /* recorded under this name, but no function of its own */
};
const struct d9_hook_row *d9_hook_rows(size_t *ret_n);

#endif
