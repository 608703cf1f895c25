/* families.def as numbers: bit of the control word = the family's number. */
#ifndef D9_FORMAT_FAMILIES_H
#define D9_FORMAT_FAMILIES_H
#include "types.h"

enum d9_family {
#define D9_FAMILY(name, doc) D9_FAMILY_##name,
#include "families.def"
#undef D9_FAMILY
	D9_N_FAMILIES
};
_Static_assert(D9_N_FAMILIES < 63, "families fit the control word");
#define D9_MASK(family) (1ull << D9_FAMILY_##family)
#define D9_MASK_ALL ((1ull << D9_N_FAMILIES) - 1)

#endif
