/*
 * Kernel addresses to names, at record time: afterwards nobody could, and an address would tell where the kernel lies.
 */
#ifndef D9_BPF_KSYMS_H
#define D9_BPF_KSYMS_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

struct d9_ksyms;

/* NULL: the kernel does not tell (kptr_restrict; CAP_SYSLOG), or no memory. */
struct d9_ksyms *d9_ksyms_load(void);
void d9_ksyms_free(struct d9_ksyms *k);

/* "symbol+0x12\n" for each; an address of no symbol's is "?\n".  How many bytes; whole lines only. */
size_t d9_ksyms_text(const struct d9_ksyms *k, const d9_u64 *addresses, size_t n, char *buf, size_t size);

#endif
