/* Another environment for a program that would not start with ours: a sanitizer that has to come first. */
#ifndef D9_SHIM_EXEC_ENV_H
#define D9_SHIM_EXEC_ENV_H
#include <stdbool.h>
#include <stddef.h>

/* What is to be executed, as the call was given it.  None of it may be what it should be: the kernel answers that, not we. */
struct d9_exec_file {
	const char *path; /* NULL: fd */
	bool search;      /* a name without a slash is looked for in PATH */
	int fd;
};

/*
 * How many bytes d9_exec_env needs; 0: the program starts with envp as it is, or whether it does is not to be told.  Costs a stat for each
 * folder of PATH, one open and some reads.  In a vfork child too: nothing is written but the stack, and the warnings that are shared.
 */
size_t d9_exec_env_bytes(const struct d9_exec_file *f, char *const *envp);
/* A copy of envp without our own entry in LD_PRELOAD; envp itself if it has changed meanwhile. */
char *const *d9_exec_env(void *room, size_t bytes, char *const *envp);

#endif
