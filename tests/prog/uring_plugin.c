/* Built as a library that is like liburing to the loader, and as a plugin that is linked with it: uring_late.c, uring_new.c. */
#include "uring_plugin.h"

#include <stddef.h>

int io_uring_submit(void *ring);
int io_uring_wait_cqes(void *ring, void **cqe, unsigned n, void *t, void *mask);
int io_uring_wait_cqe_timeout(void *ring, void **cqe, void *t);
int io_uring_wait_cqes_min_timeout(void *ring, void **cqe, unsigned n, void *t, unsigned us, void *mask);
int io_uring_submit_and_wait_min_timeout(void *ring, void **cqe, unsigned n, void *t, unsigned us, void *mask);
int io_uring_submit_and_wait_reg(void *ring, void **cqe, unsigned n, int index);

#ifdef LIBRARY
/* Every argument counts: what a hook leaves out shows. */
#define SUM(a, b, c, d) (LIBRARY * 100 + (int)(a) + (int)(b) + (d) + ((c) != NULL))
int io_uring_submit(void *ring) { return SUM(0, 0, ring, 0); }
int io_uring_wait_cqes(void *ring, void **cqe, unsigned n, void *t, void *mask)
{
	return SUM(n, 0, ring, !cqe && !t && !mask ? 0 : 50);
}
/* As liburing's does, through the symbol: the call is a jump. */
int io_uring_wait_cqe_timeout(void *ring, void **cqe, void *t) { return io_uring_wait_cqes(ring, cqe, 1, t, NULL); }
int io_uring_wait_cqes_min_timeout(void *ring, void **cqe, unsigned n, void *t, unsigned us, void *mask)
{
	return SUM(n, us, ring, !cqe && !t && !mask ? 8 : 50);
}
int io_uring_submit_and_wait_min_timeout(void *ring, void **cqe, unsigned n, void *t, unsigned us, void *mask)
{
	return SUM(n, us, ring, !cqe && !t && !mask ? 9 : 50);
}
int io_uring_submit_and_wait_reg(void *ring, void **cqe, unsigned n, int index)
{
	return SUM(n, 0, ring, !cqe ? index : 50);
}
#else
int plugin_submit(void *ring) { return io_uring_submit(ring); }
int plugin_wait_cqe_timeout(void *ring) { return io_uring_wait_cqe_timeout(ring, NULL, NULL); }
int plugin_wait_cqes_min_timeout(void *ring) { return io_uring_wait_cqes_min_timeout(ring, NULL, 1, NULL, 7, NULL); }
int plugin_submit_and_wait_min_timeout(void *ring)
{
	return io_uring_submit_and_wait_min_timeout(ring, NULL, 1, NULL, 7, NULL);
}
int plugin_submit_and_wait_reg(void *ring) { return io_uring_submit_and_wait_reg(ring, NULL, 1, 3); }
#endif
