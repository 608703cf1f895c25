/* What x86-64 code looks like, for those who find addresses on a stack. */
#ifndef D9_FORMAT_CODE_H
#define D9_FORMAT_CODE_H
#include "types.h"

#include <stdbool.h>

#define D9_CALL_BYTES 7u /* of the longest */

/* Might a call end with these D9_CALL_BYTES bytes?  Then what follows may be a return address.  e8 rel32; ff /2 with its usual operands. */
static inline bool d9_is_call(const d9_u8 *b)
{
	return b[2] == 0xe8 || (b[5] == 0xff && (b[6] & 0x38) == 0x10) || (b[4] == 0xff && (b[5] & 0xf8) == 0x50) ||
	       (b[4] == 0xff && b[5] == 0x14) || (b[3] == 0xff && b[4] == 0x54) ||
	       (b[1] == 0xff && ((b[2] & 0xf8) == 0x90 || b[2] == 0x15)) ||
	       (b[0] == 0xff && (b[1] == 0x94 || b[1] == 0x14));
}

#endif
