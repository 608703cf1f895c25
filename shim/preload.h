/* Leaving LD_PRELOAD to those who come after us in it. */
#ifndef D9_SHIM_PRELOAD_H
#define D9_SHIM_PRELOAD_H
#include <stdbool.h>

/*
 * Takes our own entry out of the environment's LD_PRELOAD, in place, so that programs started by this one do not load us; the
 * entries of others stay as they are.  library: the name that we were loaded under.  stack: only strings above it are written to,
 * which the kernel put there; what a program put into its environment may be constant.
 */
void d9_preload_leave(char *const *envp, const char *library, const void *stack);

/* The same with one LD_PRELOAD's value.  Is the entry [entry, end) ours? */
void d9_preload_take_out(char *list, const char *library);
bool d9_preload_is_ours(const char *entry, const char *end, const char *library);

#endif
