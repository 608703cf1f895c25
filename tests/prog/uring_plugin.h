/* What the plugins export, and what comes of each: the library that it came to, in hundreds, and a sum of its arguments. */
#ifndef D9_TESTS_URING_PLUGIN_H
#define D9_TESTS_URING_PLUGIN_H

int plugin_submit(void *ring), plugin_wait_cqe_timeout(void *ring), plugin_wait_cqes_min_timeout(void *ring),
	plugin_submit_and_wait_min_timeout(void *ring), plugin_submit_and_wait_reg(void *ring);
#define SUM_submit 1
#define SUM_wait_cqe_timeout 2
#define SUM_wait_cqes_min_timeout 17
#define SUM_submit_and_wait_min_timeout 18
#define SUM_submit_and_wait_reg 5

#define RING_FD 77
#define RING_FD_AT 49 /* the int of a struct io_uring that is its descriptor */

#endif
