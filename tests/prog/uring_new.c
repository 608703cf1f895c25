/*
 * Functions of newer versions of liburing than there may be here, and what a hook must not change: each argument, and that a
 * plugin with a library of its own comes to the program's, which the loader finds first.
 */
#include "prog.h"
#include "uring_plugin.h"

#include <dlfcn.h>

static int ring[64];

static void call(int (*f)(void *), const char *hook, int sum, int waits)
{
	before();
	int r = f(ring);
	after();
	if (waits)
		expect(hook, r, "fd=%d", RING_FD);
	else
		fast(hook, r, "fd=%d", RING_FD);
	MUST(r == 100 + sum);
}

int main(void)
{
	ring[RING_FD_AT] = RING_FD;
	call(plugin_submit, "io_uring_submit", SUM_submit, 0);
	call(plugin_wait_cqe_timeout, "io_uring_wait_cqe_timeout", SUM_wait_cqe_timeout,
	     1); /* ends in a jump to another one */
	call(plugin_wait_cqes_min_timeout, "io_uring_wait_cqes_min_timeout", SUM_wait_cqes_min_timeout, 1);
	call(plugin_submit_and_wait_min_timeout, "io_uring_submit_and_wait_min_timeout",
	     SUM_submit_and_wait_min_timeout, 1);
	call(plugin_submit_and_wait_reg, "io_uring_submit_and_wait_reg", SUM_submit_and_wait_reg, 1);
	for (int i = 0; i < 2; i++) {
		void *plugin = dlopen("uring_plugin_b.so", RTLD_NOW);
		MUST(plugin);
		call((int (*)(void *))dlsym(plugin, "plugin_submit"), "io_uring_submit", SUM_submit, 0);
		MUST(!dlclose(plugin));
	}
	return 0;
}
