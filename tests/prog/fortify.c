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

int __vprintf_chk(int flag, const char *format, va_list ap);
static int by_stdout(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int r = __vprintf_chk(1, format, ap); /* the inline of the headers calls another */
	va_end(ap);
	return r;
}

/* Reading from an empty pipe; writing without a buffer, and to standard output, whose lines here begin with no word. */
static void buffered(void)
{
	int q[2];
	char text[64];
	MUST(!pipe(q));
	FILE *in = fdopen(q[0], "r");
	MUST(in && !setvbuf(in, NULL, _IONBF, 0));
#define READ(hook, call, result)                     \
	do {                                         \
		when_asleep(act_write, &q[1]);       \
		size_t r = (size_t)(call);           \
		woken();                             \
		expect(hook, result, "fd=%d", q[0]); \
		MUST(r);                             \
	} while (0)
	READ("__fread_chk", fread(text, 1, one, in), (long)r);
	READ("__fread_unlocked_chk", fread_unlocked(text, 1, one, in), (long)r);
	READ("__fgets_chk", fgets(text, (int)one + 1, in), r != 0);
	READ("__fgets_unlocked_chk", fgets_unlocked(text, (int)one + 1, in), r != 0);
	FILE *out = fdopen(q[1], "w");
	MUST(out && !setvbuf(out, NULL, _IONBF, 0));
#define WRITE(hook, call, fd)               \
	do {                                \
		int r = call;               \
		fast(hook, r, "fd=%d", fd); \
		MUST(r > 0);                \
	} while (0)
	WRITE("__fprintf_chk", fprintf(out, "%d %s %.2f", 1, "two", 3.0), q[1]);
	WRITE("__vfprintf_chk", by_v(out, "%d %s %.2f", 1, "two", 3.0), q[1]);
	WRITE("__dprintf_chk", dprintf(q[1], "%d %s %.2f", 1, "two", 3.0), q[1]);
	WRITE("__vdprintf_chk", by_vd(q[1], "%d %s %.2f", 1, "two", 3.0), q[1]);
	MUST(raw(SYS_read, q[0], text, 40) == 40 && !memcmp(text, "1 two 3.001 two 3.001 two 3.001 two 3.00", 40));
	fflush(stdout);
	setvbuf(stdout, NULL, _IOLBF, 4096); /* all that goes through it is looked at */
	WRITE("__printf_chk", printf("- %d %s %.2f\n", 1, "two", 3.0), 1);
	WRITE("__vprintf_chk", by_stdout("- %d %s %.2f\n", 1, "two", 3.0), 1);
}

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
	buffered();
	partner_end();
	return 0;
}
