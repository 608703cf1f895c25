/*
 * Built with -O2 -D_FORTIFY_SOURCE=2: calls whose sizes the compiler cannot prove go to names of their own, which must be
 * hooked as well.
 */
#include "prog.h"

#include <poll.h>
#include <sys/socket.h>

static volatile size_t one = 1, eight = 8;
static volatile int flags = O_RDONLY;
static int pair[2], p[2];
static char fifo[64];

static void act_send(void *arg)
{
	(void)arg;
	MUST(raw(SYS_write, pair[1], "abc", 3) == 3);
}
static void act_open_writer(void *arg)
{
	(void)arg;
	long fd = raw(SYS_open, fifo, O_WRONLY, 0);
	MUST(fd >= 0);
	raw(SYS_close, fd);
}

#define WAKEN(hook, call, act, arg, fd)               \
	do {                                          \
		when_asleep(act, arg);                \
		ssize_t r = call;                     \
		woken();                              \
		expect(hook, RESULT(r), "fd=%d", fd); \
		MUST(r >= 0);                         \
	} while (0)
#define FAST(hook, call, fd)                        \
	do {                                        \
		ssize_t r = call;                   \
		fast(hook, RESULT(r), "fd=%d", fd); \
	} while (0)

int main(void)
{
	struct pollfd fds[1];
	char buf[16];
	MUST(!pipe(p) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	partner_start();
	fds[0] = (struct pollfd){p[0], POLLIN, 0};
	WAKEN("__poll_chk", poll(fds, one, -1), act_write, &p[1], -1);
	WAKEN("__read_chk", (raw(SYS_read, p[0], buf, 1), read(p[0], buf, eight)), act_write, &p[1], p[0]);
	WAKEN("__ppoll_chk", ppoll(fds, one, NULL, NULL), act_write, &p[1], -1);
	WAKEN("__recv_chk", recv(pair[0], buf, eight, 0), act_send, NULL, pair[0]);
	WAKEN("__recvfrom_chk", recvfrom(pair[0], buf, eight, 0, NULL, NULL), act_send, NULL, pair[0]);
	int fd = memfd_create("x", 0);
	FAST("pwrite", pwrite(fd, "0123456789", 10, 0), fd);
	FAST("__pread_chk", pread(fd, buf, eight, 1), fd);
	MUST(!memcmp(buf, "12345678", 8));
	FAST("__pread64_chk", pread64(fd, buf, eight, 2), fd);
	FAST("__read_chk", read(-1, buf, eight), -1);
	FAST("__recv_chk", recv(0x7fffffff, buf, eight, 0), 0x7fffffff);
	FAST("__recvfrom_chk", recvfrom(0x7fffffff, buf, eight, 0, NULL, NULL), 0x7fffffff);
	FAST("__pread_chk", pread(0x7fffffff, buf, eight, 0), 0x7fffffff);

	snprintf(fifo, sizeof(fifo), "fifo-%d", (int)getpid());
	MUST(raw(SYS_mknod, fifo, 0010600, 0) == 0);
	WAKEN("__open_2", open(fifo, flags), act_open_writer, NULL, -1);
	WAKEN("__open64_2", open64(fifo, flags), act_open_writer, NULL, -1);
	WAKEN("__openat_2", openat(AT_FDCWD, fifo, flags), act_open_writer, NULL, -1);
	WAKEN("__openat64_2", openat64(AT_FDCWD, fifo, flags), act_open_writer, NULL, -1);
	MUST(!unlink(fifo));
	FAST("__open_2", open(fifo, flags), -1);
	FAST("__open64_2", open64(fifo, flags), -1);
	FAST("__openat_2", openat(AT_FDCWD, fifo, flags), -1);
	FAST("__openat64_2", openat64(AT_FDCWD, fifo, flags), -1);
	partner_end();
	return 0;
}
