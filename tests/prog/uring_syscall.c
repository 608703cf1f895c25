/* An io_uring as libuv has it: set up and entered by syscall(), no library. */
#include "prog.h"

#include <linux/io_uring.h>

static struct io_uring_params params;
static unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail;
static struct io_uring_sqe *sqes;
static int ring, fds[2];
static char byte;

static char *map(size_t bytes, off_t what)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
	MUST(m != MAP_FAILED);
	return m;
}

static void set_up(void)
{
	char *sq = map(params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	char *cq = map(params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	sqes = (struct io_uring_sqe *)map(params.sq_entries * sizeof(*sqes), IORING_OFF_SQES);
	sq_tail = (unsigned *)(sq + params.sq_off.tail);
	sq_mask = (unsigned *)(sq + params.sq_off.ring_mask);
	sq_array = (unsigned *)(sq + params.sq_off.array);
	cq_head = (unsigned *)(cq + params.cq_off.head);
	cq_tail = (unsigned *)(cq + params.cq_off.tail);
}

/* The next entry: a read that ends when somebody writes. */
static void ask(void)
{
	unsigned i = *sq_tail & *sq_mask;
	sqes[i] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .fd = fds[0], .off = (__u64)-1, .addr = (__u64)(uintptr_t)&byte, .len = 1};
	sq_array[i] = i;
	__atomic_store_n(sq_tail, *sq_tail + 1, __ATOMIC_RELEASE);
}
static void got(void)
{
	MUST(__atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == *cq_head + 1);
	__atomic_store_n(cq_head, *cq_head + 1, __ATOMIC_RELEASE);
}

int main(void)
{
	ring = (int)syscall(SYS_io_uring_setup, 8, &params);
	if (ring < 0) {
		printf("no io_uring here: %s\n", strerror(errno));
		return 77;
	}
	set_up();
	MUST(!pipe(fds));
	partner_start();

	ask();
	long r = syscall(SYS_io_uring_enter, (long)ring, 1L, 0L, 0L, NULL, 0L);
	fast("io_uring_enter", RESULT(r), "fd=%d", ring);
	MUST(r == 1);
	when_asleep(act_write, &fds[1]);
	r = syscall(SYS_io_uring_enter, (long)ring, 0L, 1L, (long)IORING_ENTER_GETEVENTS, NULL, 0L);
	woken();
	expect("io_uring_enter", RESULT(r), "fd=%d", ring);
	MUST(r == 0);
	got();

	ask();
	when_asleep(act_write, &fds[1]);
	r = syscall(SYS_io_uring_enter, (long)ring, 1L, 1L, (long)IORING_ENTER_GETEVENTS, NULL, 0L);
	woken();
	expect("io_uring_enter", RESULT(r), "fd=%d", ring);
	MUST(r == 1);
	got();

	r = syscall(SYS_io_uring_enter, (long)ring, 0L, 0L, (long)IORING_ENTER_GETEVENTS, NULL,
		    0L); /* looks, does not wait */
	fast("io_uring_enter", RESULT(r), "fd=%d", ring);
	MUST(r == 0);
	r = syscall(SYS_io_uring_enter, (long)fds[0], 0L, 1L, (long)IORING_ENTER_GETEVENTS, NULL, 0L);
	int e = errno;
	before(); /* not a wait, but it could have been one: recorded */
	errno = 0;
	long again = syscall(SYS_io_uring_enter, (long)fds[0], 0L, 1L, (long)IORING_ENTER_GETEVENTS, NULL, 0L);
	MUST(r == -1 && again == -1 && errno == e && e == EOPNOTSUPP);
	prog_times.t0 = 0, prog_times.t1 = now_ns();
	errno = e;
	expect("io_uring_enter", RESULT(r), "fd=%d", fds[0]);
	errno = e;
	expect("io_uring_enter", RESULT(r), "fd=%d", fds[0]);
	MUST(syscall(SYS_io_uring_register, (long)ring, 99L, NULL, 0L) == -1 && errno == EINVAL); /* its neighbour */
	partner_end();
	return 0;
}
