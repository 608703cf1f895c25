/* abi.def as functions; interpose/abi_export.c puts them in the table that programs find. */
#ifndef D9_SHIM_ABI_H
#define D9_SHIM_ABI_H
#include <stddef.h>
#include <stdint.h>

#define D9_ABI(ret, name, params, doc) ret d9_abi_##name params;
#include "abi.def"
#undef D9_ABI

#endif
