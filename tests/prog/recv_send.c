/* recv and send: on an empty socket until a byte comes, on a full one until somebody reads, and at once. */
#include "prog.h"

#include <sys/socket.h>

static int pair[2];
static char big[1 << 22], buf[64];

static void act_send(void *arg)
{
	(void)arg;
	MUST(raw(SYS_write, pair[1], "abc", 3) == 3);
}
/* Reads until the sender, who is writing more than fits, has got rid of everything. */
static void act_read_big(void *arg)
{
	static char sink[1 << 16];
	for (size_t left = *(size_t *)arg; left;) {
		long n = raw(SYS_read, pair[1], sink, sizeof(sink));
		MUST(n > 0);
		left -= (size_t)n;
	}
}

static struct iovec iov;
static struct msghdr message(void *p, size_t n)
{
	iov = (struct iovec){p, n};
	return (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
}

#define CAME(hook, call)                                   \
	do {                                               \
		when_asleep(act_send, NULL);               \
		ssize_t r = call;                          \
		woken();                                   \
		expect(hook, RESULT(r), "fd=%d", pair[0]); \
		MUST(r == 3);                              \
	} while (0)
#define WENT(hook, call)                                   \
	do {                                               \
		size_t n = sizeof(big);                    \
		when_asleep(act_read_big, &n);             \
		ssize_t r = call;                          \
		woken();                                   \
		expect(hook, RESULT(r), "fd=%d", pair[0]); \
		MUST(r == (ssize_t)sizeof(big));           \
	} while (0)
#define FAST(hook, call, fd)                        \
	do {                                        \
		ssize_t r = call;                   \
		fast(hook, RESULT(r), "fd=%d", fd); \
	} while (0)

int main(void)
{
	struct msghdr m;
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	partner_start();
	CAME("recv", recv(pair[0], buf, sizeof(buf), 0));
	CAME("recvfrom", recvfrom(pair[0], buf, sizeof(buf), 0, NULL, NULL));
	m = message(buf, sizeof(buf));
	CAME("recvmsg", recvmsg(pair[0], &m, 0));
	WENT("send", send(pair[0], big, sizeof(big), 0));
	WENT("sendto", sendto(pair[0], big, sizeof(big), 0, NULL, 0));
	m = message(big, sizeof(big));
	WENT("sendmsg", sendmsg(pair[0], &m, 0));

	FAST("recv", recv(pair[0], buf, sizeof(buf), MSG_DONTWAIT), pair[0]); /* -EAGAIN */
	for (int i = 0; i < 10; i++) {
		FAST("send", send(pair[0], "x", 1, 0), pair[0]);
		FAST("sendto", sendto(pair[0], "xy", 2, 0, NULL, 0), pair[0]);
		m = message(buf, 3);
		FAST("sendmsg", sendmsg(pair[0], &m, 0), pair[0]);
		FAST("recv", recv(pair[1], buf, 1, 0), pair[1]);
		FAST("recvfrom", recvfrom(pair[1], buf, 2, 0, NULL, NULL), pair[1]);
		m = message(buf, sizeof(buf));
		FAST("recvmsg", recvmsg(pair[1], &m, 0), pair[1]);
	}
	FAST("send", send(-1, "x", 1, 0), -1);
	FAST("recvmsg", recvmsg(0x7fffffff, &m, 0), 0x7fffffff);
	FAST("sendmsg", sendmsg(0x7fffffff, &m, 0), 0x7fffffff);
	FAST("sendto", sendto(0x7fffffff, "x", 1, 0, NULL, 0), 0x7fffffff);
	FAST("recvfrom", recvfrom(0x7fffffff, buf, 1, 0, NULL, NULL), 0x7fffffff);
	partner_end();
	return 0;
}
