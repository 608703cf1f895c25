/*
 * Waits for completions of an io_uring through liburing's functions.  With NOT_SEEN, linked with liburing.a, the same calls come
 * to no hook: then nothing of them may be recorded, and the report must say that there is a ring.
 */
#include "prog.h"

#include <dlfcn.h>
#include <liburing.h>

#ifdef NOT_SEEN
#define expect(hook, result, ...) ((void)(result))
#define fast(hook, result, ...) ((void)(result))
#endif

static struct io_uring ring;
static int fds[2];
static char byte;

/* The next entry: a read that ends when somebody writes. */
static void ask(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	MUST(sqe);
	io_uring_prep_read(sqe, fds[0], &byte, 1, (__u64)-1);
}
static void asked(void)
{
	ask();
	int r = io_uring_submit(&ring);
	fast("io_uring_submit", r, "fd=%d", ring.ring_fd);
	MUST(r == 1);
}
static void got(struct io_uring_cqe *cqe)
{
	MUST(cqe && cqe->res == 1);
	io_uring_cqe_seen(&ring, cqe);
}

static void waits(void)
{
	struct io_uring_cqe *cqe = NULL;
	asked();
	when_asleep(act_write, &fds[1]);
	int r = io_uring_wait_cqe(&ring, &cqe); /* inline, as far as to __io_uring_get_cqe( */
	woken();
	expect("__io_uring_get_cqe", r, "fd=%d", ring.ring_fd);
	MUST(r == 0);
	got(cqe);

	asked();
	when_asleep(act_write, &fds[1]);
	r = io_uring_wait_cqes(&ring, &cqe, 1, NULL, NULL);
	woken();
	expect("io_uring_wait_cqes", r, "fd=%d", ring.ring_fd);
	MUST(r == 0);
	got(cqe);

	ask();
	when_asleep(act_write, &fds[1]);
	r = io_uring_submit_and_wait(&ring, 1);
	woken();
	expect("io_uring_submit_and_wait", r, "fd=%d", ring.ring_fd);
	MUST(r == 1 && !io_uring_peek_cqe(&ring, &cqe)); /* there: no call */
	got(cqe);

	struct __kernel_timespec s9 = {9, 0};
	ask();
	when_asleep(act_write, &fds[1]);
	r = io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &s9, NULL);
	woken();
	expect("io_uring_submit_and_wait_timeout", r, "fd=%d", ring.ring_fd);
	MUST(r >= 0);
	got(cqe);
}

/* It ends in a jump to io_uring_wait_cqes, which is no call of the program's. */
static void waits_in_vain(void)
{
	struct io_uring_cqe *cqe = NULL;
	struct __kernel_timespec ms20 = {0, 20000000};
	before();
	int r = io_uring_wait_cqe_timeout(&ring, &cqe, &ms20);
	after();
	prog_times.hold0 = 0, prog_times.hold1 = 20000000;
	expect("io_uring_wait_cqe_timeout", r, "fd=%d", ring.ring_fd);
	MUST(r == -ETIME);
}

static void enters(void)
{
	struct io_uring_cqe *cqe = NULL;
	asked();
	when_asleep(act_write, &fds[1]);
	int r = io_uring_enter((unsigned)ring.ring_fd, 0, 1, IORING_ENTER_GETEVENTS, NULL);
	woken();
	expect("io_uring_enter", r, "fd=%d", ring.ring_fd);
	MUST(r == 0 && !io_uring_peek_cqe(&ring, &cqe));
	got(cqe);
	r = io_uring_enter((unsigned)ring.ring_fd, 0, 1, 0, NULL); /* as many as it likes: nobody asked for events */
	fast("io_uring_enter", r, "fd=%d", ring.ring_fd);
	MUST(r == 0);

	struct __kernel_timespec ms20 = {0, 20000000};
	struct io_uring_getevents_arg arg = {.ts = (__u64)(uintptr_t)&ms20};
	before();
	r = io_uring_enter2((unsigned)ring.ring_fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
			    (sigset_t *)&arg, sizeof(arg));
	after();
	prog_times.hold0 = 0, prog_times.hold1 = 20000000;
	expect("io_uring_enter2", r, "fd=%d", ring.ring_fd);
	MUST(r == -ETIME);
}

/* Calls that wait for nothing. */
static void others(void)
{
	struct io_uring_cqe *cqe = NULL;
	int r = io_uring_peek_cqe(&ring, &cqe);
	fast("__io_uring_get_cqe", r, "fd=%d", ring.ring_fd);
	MUST(r == -EAGAIN);
	r = io_uring_submit_and_wait(&ring, 0);
	fast("io_uring_submit_and_wait", r, "fd=%d", ring.ring_fd);
	MUST(r == 0);
	r = io_uring_get_events(&ring);
	fast("io_uring_get_events", r, "fd=%d", ring.ring_fd);
	MUST(r == 0);
	r = io_uring_submit_and_get_events(&ring);
	fast("io_uring_submit_and_get_events", r, "fd=%d", ring.ring_fd);
	MUST(r == 0);
	r = __io_uring_sqring_wait(&ring);
	fast("__io_uring_sqring_wait", r, "fd=%d", ring.ring_fd);
	MUST(r == 0);
	struct io_uring_sync_cancel_reg what = {.addr = 1, .fd = -1, .timeout = {-1, -1}};
	r = io_uring_register_sync_cancel(&ring, &what);
	fast("io_uring_register_sync_cancel", r, "fd=%d", ring.ring_fd);
	MUST(r == -ENOENT || r == -EINVAL); /* the second: before Linux 6.0 */
}

#ifndef NOT_SEEN
/* Who asks by name gets liburing's own, as ever. */
static void asks_by_name(void)
{
	void *lib = dlopen("liburing.so.2", RTLD_NOW | RTLD_NOLOAD);
	MUST(lib && dlsym(lib, "io_uring_submit") &&
	     dlsym(RTLD_DEFAULT, "io_uring_submit") == dlsym(lib, "io_uring_submit"));
	int (*submit)(struct io_uring *) = (int (*)(struct io_uring *))dlsym(RTLD_DEFAULT, "io_uring_submit");
	MUST(submit(&ring) == 0);
}
#endif

int main(int argc, char **argv)
{
	int r = io_uring_queue_init(8, &ring, 0);
	if (r < 0) {
		printf("no io_uring here: %s\n", strerror(-r));
		return 77;
	}
	MUST(!pipe(fds));
	partner_start();
	waits();
	waits_in_vain();
	enters();
	others();
#ifndef NOT_SEEN
	asks_by_name();
#endif
	partner_end();
	while (argc > 1 && !strcmp(argv[1], "stay"))
		usleep(100000);
	return 0; /* the ring is still there */
}
