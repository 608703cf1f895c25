/* The only place where cli meets the hooks: a list of rows, no code of theirs. */
#include "hooks_table.h"

#if __has_include("interpose/hooks_list.h")
static const struct d9_hook_row rows[] = {
#define D9_HOOK_ROW(family, name, flags) {family, name, flags},
#include "interpose/hooks_list.h"
#undef D9_HOOK_ROW
};

const struct d9_hook_row *d9_hook_rows(size_t *ret_n)
{
	*ret_n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}
#else
const struct d9_hook_row *d9_hook_rows(size_t *ret_n)
{
	*ret_n = 0;
	return NULL;
}
#endif
