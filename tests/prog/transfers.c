/* Vectors, batches of messages, and transfers between descriptors: on an empty or full pipe or socket, and at once. */
#include "prog.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int p[2], full[2], pair[2], full_pair[2], file;
static char buf[64];

#define CAME(hook, call, fd, act, arg)                \
	do {                                          \
		when_asleep(act, arg);                \
		long r = (long)(call);                \
		woken();                              \
		expect(hook, RESULT(r), "fd=%d", fd); \
		MUST(r > 0);                          \
	} while (0)
#define WENT(hook, call, fd, from)                    \
	do {                                          \
		fill_fd(fd);                          \
		when_asleep(act_empty, &(from));      \
		long r = (long)(call);                \
		woken();                              \
		expect(hook, RESULT(r), "fd=%d", fd); \
		MUST(r > 0);                          \
	} while (0)
#define FAST(hook, call, fd)                        \
	do {                                        \
		long r = (long)(call);              \
		fast(hook, RESULT(r), "fd=%d", fd); \
	} while (0)

static void positioned(int fd)
{
	struct iovec v[2] = {{(char[]){"01234"}, 5}, {(char[]){"56789"}, 5}}, in[2] = {{buf, 3}, {buf + 3, 7}};
	for (int i = 0; i < 3; i++) {
		FAST("pwritev", pwritev(fd, v, 2, i * 10), fd);
		FAST("pwritev64", pwritev64(fd, v, 2, i * 10), fd);
		FAST("pwritev2", pwritev2(fd, v, 2, i * 10, 0), fd);
		FAST("pwritev64v2", pwritev64v2(fd, v, 1, i * 10, 0), fd);
		FAST("preadv", preadv(fd, in, 2, i * 10), fd);
		MUST(fd < 0 || !memcmp(buf, "0123456789", 10));
		FAST("preadv64", preadv64(fd, in, 2, i * 10 + 1), fd);
		MUST(fd < 0 || !memcmp(buf, "123456789", 9));
		FAST("preadv2", preadv2(fd, in, 2, i * 10, 0), fd);
		FAST("preadv64v2", preadv64v2(fd, in, 1, i * 10, 0), fd);
	}
	FAST("preadv2", preadv2(fd, in, 2, 0, 0x4000000), fd); /* no such flag */
}

static void batches(void)
{
	struct iovec v = {(char[]){"abc"}, 3}, in = {buf, sizeof(buf)};
	struct mmsghdr out = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}},
		       m = {.msg_hdr = {.msg_iov = &in, .msg_iovlen = 1}};
	CAME("recvmmsg", recvmmsg(pair[0], &m, 1, 0, NULL), pair[0], act_write, &pair[1]);
	MUST(m.msg_len == 1);
	WENT("sendmmsg", sendmmsg(full_pair[0], &out, 1, 0), full_pair[0], full_pair[1]);
	MUST(out.msg_len == 3);
	FAST("recvmmsg", recvmmsg(pair[0], &m, 1, MSG_DONTWAIT, NULL), pair[0]); /* -EAGAIN */
	FAST("sendmmsg", sendmmsg(pair[0], &out, 1, 0), pair[0]);
	FAST("recvmmsg", recvmmsg(-1, &m, 1, 0, NULL), -1);
	FAST("sendmmsg", sendmmsg(-1, &out, 1, 0), -1);
}

static void between(void)
{
	struct iovec v = {(char[]){"abc"}, 3};
	off_t at = 0;
	off64_t at64 = 1;
	raw(SYS_write, p[1], "some", 4);
	WENT("sendfile", sendfile(full[1], file, &at, 3), full[1], full[0]);
	MUST(at == 3);
	WENT("sendfile64", sendfile64(full[1], file, &at64, 3), full[1], full[0]);
	MUST(at64 == 4);
	WENT("tee", tee(p[0], full[1], 4, 0), full[1], full[0]);
	WENT("splice", splice(p[0], NULL, full[1], NULL, 4, 0), full[1], full[0]);
	WENT("vmsplice", vmsplice(full[1], &v, 1, 0), full[1], full[0]);
	act_empty(&full[0]);
	FAST("sendfile", sendfile(full[1], file, &at, 3), full[1]);
	FAST("sendfile64", sendfile64(full[1], file, &at64, 3), full[1]);
	FAST("splice", splice(file, &at64, full[1], NULL, 2, 0), full[1]);
	FAST("tee", tee(p[0], full[1], 4, SPLICE_F_NONBLOCK), full[1]); /* -EAGAIN */
	FAST("vmsplice", vmsplice(full[1], &v, 1, 0), full[1]);
	FAST("sendfile", sendfile(-1, file, NULL, 3), -1);
	FAST("sendfile64", sendfile64(-1, file, NULL, 3), -1);
	FAST("splice", splice(-1, NULL, -1, NULL, 2, 0), -1);
	FAST("tee", tee(-1, -1, 2, 0), -1);
	FAST("vmsplice", vmsplice(-1, &v, 1, 0), -1);
	FAST("copy_file_range", copy_file_range(file, &at64, file, NULL, 2, 0), file);
	FAST("copy_file_range", copy_file_range(file, NULL, -1, NULL, 2, 0), -1);
}

int main(void)
{
	struct iovec v[2] = {{buf, 1}, {buf + 1, 3}};
	file = (int)raw(SYS_memfd_create, "file", 0);
	MUST(file >= 0 && !pipe(p) && !pipe(full) && !socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, full_pair));
	partner_start();
	CAME("readv", readv(p[0], v, 2), p[0], act_write, &p[1]);
	WENT("writev", writev(full[1], v, 2), full[1], full[0]);
	for (int i = 0; i < 20; i++) {
		FAST("writev", writev(p[1], v, 2), p[1]);
		FAST("readv", readv(p[0], v, 2), p[0]);
	}
	FAST("readv", readv(-1, v, 2), -1);
	FAST("writev", writev(-1, v, 2), -1);
	positioned(file);
	positioned(-1);
	batches();
	between();
	partner_end();
	return 0;
}
