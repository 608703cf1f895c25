/* accept, connect and the calls that make or watch a descriptor.  A connect to a full unix listener waits until somebody accepts. */
#include "prog.h"

#include <netinet/in.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listener, full;
static struct sockaddr_in to;
static struct sockaddr_un local;
static socklen_t n_local;

static void act_connect(void *arg)
{
	int fd = (int)raw(SYS_socket, AF_INET, SOCK_STREAM, 0);
	(void)arg;
	MUST(raw(SYS_connect, fd, &to, sizeof(to)) == 0);
	raw(SYS_close, fd);
}
static void act_accept(void *arg)
{
	(void)arg;
	int fd = (int)raw(SYS_accept, full, 0, 0);
	MUST(fd >= 0);
	raw(SYS_close, fd);
}

static void listen_on_loopback(void)
{
	socklen_t n = sizeof(to);
	to = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	listener = socket(AF_INET, SOCK_STREAM, 0);
	fast("socket", listener, "%s", "");
	MUST(!bind(listener, (struct sockaddr *)&to, sizeof(to)) && !listen(listener, 8));
	MUST(!getsockname(listener, (struct sockaddr *)&to, &n));
}

static void accepts(void)
{
	struct sockaddr_in from;
	socklen_t n = sizeof(from);
	when_asleep(act_connect, NULL);
	int fd = accept(listener, (struct sockaddr *)&from, &n);
	woken();
	expect("accept", RESULT(fd), "fd=%d", listener);
	MUST(fd >= 0 && from.sin_family == AF_INET && n == sizeof(from));
	close(fd);
	when_asleep(act_connect, NULL);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	woken();
	expect("accept4", RESULT(fd), "fd=%d", listener);
	MUST(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	close(fd);
	fd = accept(-1, NULL, NULL);
	fast("accept", RESULT(fd), "%s", "fd=-1");
	fd = accept4(0x7fffffff, NULL, NULL, 0);
	fast("accept4", RESULT(fd), "fd=%d", 0x7fffffff);
}

static void connects(void)
{
	int fd, r;
	local = (struct sockaddr_un){.sun_family = AF_UNIX};
	n_local = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
		  (socklen_t)snprintf(local.sun_path + 1, sizeof(local.sun_path) - 1, "d9-test-%d", (int)getpid());
	full = (int)raw(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
	MUST(full >= 0 && !bind(full, (struct sockaddr *)&local, n_local) && !listen(full, 0));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	fast("socket", fd, "%s", "");
	r = connect(fd, (struct sockaddr *)&local, n_local); /* takes the one place */
	fast("connect", RESULT(r), "fd=%d", fd);
	MUST(!r);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	fast("socket", fd, "%s", "");
	when_asleep(act_accept, NULL);
	r = connect(fd, (struct sockaddr *)&local, n_local);
	woken();
	expect("connect", RESULT(r), "fd=%d", fd);
	MUST(!r);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	fast("socket", fd, "%s", "");
	struct sockaddr_in nobody = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(1)};
	r = connect(fd, (struct sockaddr *)&nobody, sizeof(nobody));
	fast("connect", RESULT(r), "fd=%d", fd);
	MUST(r == -1 && errno == ECONNREFUSED);
}

static void makers(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int epfd = epoll_create1(0), fd = eventfd(3, EFD_NONBLOCK), r;
	fast("eventfd", fd, "%s", "");
	r = epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
	fast("epoll_ctl", RESULT(r), "fd=%d", fd);
	r = epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
	fast("epoll_ctl", RESULT(r), "fd=%d", fd); /* -EEXIST */
	r = epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
	fast("epoll_ctl", RESULT(r), "fd=%d", fd);
	r = eventfd(0, -1);
	fast("eventfd", RESULT(r), "%s", "");
	r = socket(-1, -1, -1);
	fast("socket", RESULT(r), "%s", "");
	r = dup(fd);
	fast("dup", RESULT(r), "fd=%d", fd);
	r = dup(-1);
	fast("dup", RESULT(r), "%s", "fd=-1");
}

int main(void)
{
	partner_start();
	listen_on_loopback();
	accepts();
	connects();
	makers();
	partner_end();
	return 0;
}
