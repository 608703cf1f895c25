/* read and write on pipes, files and eventfds. */
#include "prog.h"

#include <sys/eventfd.h>

static int pipe_fds[2], event_fd;
static char big[1 << 20], buf[64];

static void act_read_big(void *arg)
{
	static char sink[1 << 16];
	(void)arg;
	for (size_t left = sizeof(big); left;) {
		long n = raw(SYS_read, pipe_fds[0], sink, sizeof(sink));
		MUST(n > 0);
		left -= (size_t)n;
	}
}
static void act_eventfd_raw(void *v) { MUST(raw(SYS_write, event_fd, v, 8) == 8); }
static void act_eventfd_read(void *v) { MUST(raw(SYS_read, event_fd, v, 8) == 8); }

static void pipes(void)
{
	when_asleep(act_write, &pipe_fds[1]);
	ssize_t n = read(pipe_fds[0], buf, sizeof(buf));
	woken();
	expect("read", RESULT(n), "fd=%d", pipe_fds[0]);
	MUST(n == 1);
	when_asleep(act_read_big, NULL);
	n = write(pipe_fds[1], big, sizeof(big));
	woken();
	expect("write", RESULT(n), "fd=%d", pipe_fds[1]);
	MUST(n == (ssize_t)sizeof(big));
	for (int i = 0; i < 50; i++) {
		n = write(pipe_fds[1], "abcdefgh", 8); /* eight bytes, as an eventfd's write, but no eventfd */
		fast("write", RESULT(n), "fd=%d", pipe_fds[1]);
		n = read(pipe_fds[0], buf, sizeof(buf));
		fast("read", RESULT(n), "fd=%d", pipe_fds[0]);
	}
	n = read(-1, buf, 1);
	fast("read", RESULT(n), "%s", "fd=-1");
	n = write(0x7fffffff, buf, 1);
	fast("write", RESULT(n), "fd=%d", 0x7fffffff);
}

static void files(void)
{
	int fd = (int)raw(SYS_memfd_create, "file", 0);
	MUST(fd >= 0);
#define FAST(hook, call)                            \
	do {                                        \
		ssize_t r = call;                   \
		fast(hook, RESULT(r), "fd=%d", fd); \
	} while (0)
	for (int i = 0; i < 10; i++) {
		FAST("pwrite", pwrite(fd, "0123456789", 10, i * 10));
		FAST("pwrite64", pwrite64(fd, "ab", 2, i * 10 + 5));
		FAST("pread", pread(fd, buf, 10, i * 10));
		MUST(!memcmp(buf, "01234ab789", 10));
		FAST("pread64", pread64(fd, buf, 64, i * 10 + 5)); /* short at the end */
	}
	FAST("pread64", pread64(fd, buf, 1, 5000000000));
	fd = 0x7fffffff;
	FAST("pread", pread(fd, buf, 1, 0));
	FAST("pread64", pread64(fd, buf, 1, 0));
	FAST("pwrite", pwrite(fd, buf, 1, 0));
	FAST("pwrite64", pwrite64(fd, buf, 1, 0));
}

static void eventfds(void)
{
	uint64_t one = 1, most = 0xfffffffffffffffe, got = 0;
	int r;
	event_fd = eventfd(0, 0);
	fast("eventfd", event_fd, "%s", "");
	when_asleep(act_eventfd_raw, &one);
	r = eventfd_read(event_fd, &got);
	woken();
	expect("eventfd_read", RESULT(r), "fd=%d", event_fd);
	MUST(!r && got == 1);
	r = eventfd_write(event_fd, most);
	fast("eventfd_write", RESULT(r), "fd=%d", event_fd);
	when_asleep(act_eventfd_read, &got);
	r = eventfd_write(event_fd, 1);
	woken();
	expect("eventfd_write", RESULT(r), "fd=%d", event_fd);
	MUST(!r && got == most);
	r = eventfd_read(-1, &got);
	fast("eventfd_read", RESULT(r), "%s", "fd=-1");
	r = eventfd_write(-1, 1);
	fast("eventfd_write", RESULT(r), "%s", "fd=-1");
}

int main(void)
{
	MUST(!pipe(pipe_fds));
	partner_start();
	pipes();
	files();
	eventfds();
	partner_end();
	return 0;
}
