/*
 * dlopen and dlmopen, seen and not wrapped: the loader takes the search path, and dlmopen the namespace, of who
 * called it, which is where the return address lies.  So these are assembly: they tell what they were asked for,
 * and jump on with registers and stack as they were.
 */
#include "hook.h"
#include "interpose/runtime/tokio_patch.h"

#include <dlfcn.h>

void d9_dlopen_seen(const char *file, int mode), d9_dlmopen_seen(Lmid_t space, const char *file, int mode);

#define STUB(name)                                       \
	__asm__(".text\n"                                \
		".globl " #name "\n"                     \
		".type " #name ", @function\n"           \
		".p2align 4\n" #name ":\n"               \
		"	.cfi_startproc\n"                      \
		"	endbr64\n"                             \
		"	pushq %rdi\n"                          \
		"	.cfi_adjust_cfa_offset 8\n"            \
		"	pushq %rsi\n"                          \
		"	.cfi_adjust_cfa_offset 8\n"            \
		"	pushq %rdx\n"                          \
		"	.cfi_adjust_cfa_offset 8\n"            \
		"	call d9_" #name "_seen\n"        \
		"	popq %rdx\n"                           \
		"	.cfi_adjust_cfa_offset -8\n"           \
		"	popq %rsi\n"                           \
		"	.cfi_adjust_cfa_offset -8\n"           \
		"	popq %rdi\n"                           \
		"	.cfi_adjust_cfa_offset -8\n"           \
		"	jmpq *d9_real_" #name "(%rip)\n" \
		"	.cfi_endproc\n"                        \
		"	.size " #name ", .-" #name "\n")
STUB(dlopen);
STUB(dlmopen);

/* Until the constructor has run the pointer leads to a function of ours, which would be the caller. */
static void be_ready(void)
{
	if (__builtin_expect(!d9_real_resolved, 0))
		d9_real_resolve();
}

__attribute__((used)) void d9_dlopen_seen(const char *file, int mode)
{
	be_ready();
	d9_tokio_look_again(); /* what was opened before */
	if (file && mode & RTLD_DEEPBIND && d9_load_relaxed(d9_shim.mask) & D9_BIT(dlopen))
		d9_shim_unseen(file, " was opened with RTLD_DEEPBIND: its own calls go past the hooks");
}

__attribute__((used)) void d9_dlmopen_seen(Lmid_t space, const char *file, int mode)
{
	(void)mode;
	be_ready();
	if (file && space != LM_ID_BASE && d9_load_relaxed(d9_shim.mask) & D9_BIT(dlmopen))
		d9_shim_unseen(file, " was opened in a namespace of its own (dlmopen): what runs there is not seen");
}
