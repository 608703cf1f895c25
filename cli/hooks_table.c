/* The only place where cli meets the hooks: names and flags, no code of theirs. */
#include "hooks_table.h"

#include "format/arena.h"

/* Words of the table that are no flags of the format. */
#ifndef D9_HOOK_NONE
#define D9_HOOK_NONE 0u
#endif
#ifndef D9_HOOK_NOTE
#define D9_HOOK_NOTE 0u
#endif

/* An older version of a function (D9_HOOK_OLD) has the name of the newer one. */
static const struct d9_hook_row rows[] = {
#define D9_HOOK(family, flags, ret, name, params, args, version) {#family, #name, D9_HOOK_##flags, false},
#define D9_HOOK_LIB D9_HOOK
#define D9_PRIMITIVE(family, flags, name) {#family, #name, D9_HOOK_##flags, true},
#include "interpose/hooks.def"
};

const struct d9_hook_row *d9_hook_rows(size_t *ret_n)
{
	*ret_n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}
