/* The one symbol that a program looks up: the runtime ABI's table of functions. */
#include "real.h"
#include "shim/abi.h"
#include "shim/d9.h"

/* d9.h spells the struct out for people; the table of rows is abi.def.  They must be the same. */
struct table {
	uint32_t version, size;
#define D9_ABI(ret, name, params, doc) ret(*name) params;
#include "shim/abi.def"
#undef D9_ABI
};
_Static_assert(sizeof(struct table) == sizeof(struct d9_abi), "d9.h and abi.def have the same functions");
#define D9_ABI(ret, name, params, doc)                                                                                 \
	_Static_assert(offsetof(struct table, name) == offsetof(struct d9_abi, name), "d9.h has " #name " elsewhere"); \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct d9_abi *)0)->name), ret(*) params),            \
		       "d9.h has another " #name);
#include "shim/abi.def"
#undef D9_ABI

D9_EXPORT extern const struct d9_abi d9_abi;
const struct d9_abi d9_abi = {
	.version = D9_ABI_VERSION,
	.size = sizeof(struct d9_abi),
#define D9_ABI(ret, name, params, doc) .name = d9_abi_##name,
#include "shim/abi.def"
#undef D9_ABI
};
