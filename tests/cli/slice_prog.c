/*
 * Frames of all the shapes that a compiler makes; argv[1] says which.  The expected names are in
 * run_symbols.sh.
 */
#include "slice_dump.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define OPAQUE __attribute__((noinline))
#else
#define OPAQUE __attribute__((noinline, noclone))
#endif
#define KEEP __asm__ volatile("" ::: "memory") /* no tail call */

OPAQUE static int leaf(int x)
{
	dump_self();
	KEEP;
	return x;
}
OPAQUE static int middle(int x) { return leaf(x + 1) + 1; }
OPAQUE static int outer(int x) { return middle(x * 3) * 2; }

/* CFA by frame pointer, whatever the flags. */
OPAQUE static int with_alloca(int n)
{
	char *p = __builtin_alloca((size_t)n);
	memset(p, 1, (size_t)n);
	return outer(p[n / 2]) + p[0];
}

/* A realigned stack: the CFA is found through memory. */
OPAQUE static int with_align(int n)
{
	_Alignas(128) char p[256];
	memset(p, n, sizeof(p));
	KEEP;
	return with_alloca(n) + p[n];
}

static void handler(int sig)
{
	leaf(sig);
	KEEP;
}
OPAQUE static int interrupted(int x)
{
	signal(SIGSEGV, handler);
	volatile int *p = NULL;
	__asm__ volatile("" : "+r"(p));
	(void)x;
	raise(SIGSEGV);
	KEEP;
	return 1;
}

/* Ends with the call: the return address belongs to what the linker put next. */
OPAQUE static void ends_in_call(int x)
{
	if (x)
		dump_self_and_exit();
}
OPAQUE static void is_next(int x)
{
	if (x > 5)
		ends_in_call(x + 1);
	KEEP;
}

static inline __attribute__((always_inline)) int inlined_inner(int x) { return leaf(x) + 3; }
static inline __attribute__((always_inline)) int inlined_outer(int x) { return inlined_inner(x + 1) + 2; }
OPAQUE static int has_inlined(int x) { return inlined_outer(x) + 1; }

static void *thread(void *arg)
{
	outer(1);
	return arg;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "plain";
	pthread_t t;
	if (!strcmp(what, "plain"))
		return outer(argc) == -1;
	if (!strcmp(what, "shapes"))
		return with_align(argc + 98) == -1;
	if (!strcmp(what, "signal"))
		return interrupted(argc) == -1;
	if (!strcmp(what, "noreturn"))
		is_next(argc + 7);
	if (!strcmp(what, "inline"))
		return has_inlined(argc) == -1;
	if (!strcmp(what, "thread"))
		return pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL);
	return 99;
}
