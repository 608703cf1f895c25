/* Descriptors: sockets, files, eventfds.  Slow calls become spans, the others are counted. */
#include "hook.h"
#include "eventfd.h"

#include <stdarg.h>
#include <sys/eventfd.h>

D9_WRAP_FD(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), fd)
D9_WRAP_FD(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), fd)
D9_WRAP_FD(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), fd)
D9_WRAP_FD(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), fd)
D9_WRAP_FD(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), fd)
D9_WRAP_FD(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), fd)
D9_WRAP_FD(ssize_t, pread64, (int fd, void *p, size_t n, off64_t at), (fd, p, n, at), fd)
D9_WRAP_FD(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), fd)
D9_WRAP_FD(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at), fd)
D9_WRAP_FD(int, eventfd_read, (int fd, uint64_t *v), (fd, v), fd)
D9_WRAP_FD(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n), fd)
D9_WRAP_FD(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), fd)
D9_WRAP_FD(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at), fd)
D9_WRAP_FD(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags), (fd, v, n, at, flags), fd)
D9_WRAP_FD(ssize_t, preadv64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags), (fd, v, n, at, flags),
	   fd)
D9_WRAP_FD(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), fd)
D9_WRAP_FD(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), fd)
D9_WRAP_FD(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at), fd)
D9_WRAP_FD(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags), (fd, v, n, at, flags), fd)
D9_WRAP_FD(ssize_t, pwritev64v2, (int fd, const struct iovec *v, int n, off64_t at, int flags), (fd, v, n, at, flags),
	   fd)
D9_WRAP_FD(int, recvmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t), (fd, m, n, flags, t),
	   fd)
D9_WRAP_FD(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags), (fd, m, n, flags), fd)

/* From one descriptor to another: fd is where it goes. */
D9_WRAP_FD(ssize_t, sendfile, (int fd, int from, off_t *at, size_t n), (fd, from, at, n), fd)
D9_WRAP_FD(ssize_t, sendfile64, (int fd, int from, off64_t *at, size_t n), (fd, from, at, n), fd)
D9_WRAP_FD(ssize_t, splice, (int from, off64_t *from_at, int fd, off64_t *at, size_t n, unsigned flags),
	   (from, from_at, fd, at, n, flags), fd)
D9_WRAP_FD(ssize_t, tee, (int from, int fd, size_t n, unsigned flags), (from, fd, n, flags), fd)
D9_WRAP_FD(ssize_t, vmsplice, (int fd, const struct iovec *v, size_t n, unsigned flags), (fd, v, n, flags), fd)
D9_WRAP_FD(ssize_t, copy_file_range, (int from, off64_t *from_at, int fd, off64_t *at, size_t n, unsigned flags),
	   (from, from_at, fd, at, n, flags), fd)

/* A call that makes a descriptor: whatever had its number before is no eventfd any more. */
#define WRAP_NEW_FD(name, params, args, fd)       \
	D9_EXPORT int name params                 \
	{                                         \
		D9_BEGIN(name, 0, fd);            \
		int d9_r = d9_real.name args;     \
		d9_eventfd_forget(d9_r);          \
		D9_END(name, D9_RESULT(d9_r), 0); \
		return d9_r;                      \
	}
WRAP_NEW_FD(dup, (int fd), (fd), fd)

/* A call that closes fd, if `closes`: what the number gets next is no eventfd of ours. */
#define WRAP_CLOSE(name, params, args, closes)    \
	D9_EXPORT int name params                 \
	{                                         \
		D9_BEGIN(name, 0, fd);            \
		if (closes)                       \
			d9_eventfd_closes(fd);    \
		int d9_r = d9_real.name args;     \
		D9_END(name, D9_RESULT(d9_r), 0); \
		return d9_r;                      \
	}
WRAP_CLOSE(dup2, (int from, int fd), (from, fd), fd != from) /* a number over itself stays what it is */
WRAP_CLOSE(dup3, (int from, int fd, int flags), (from, fd, flags), fd != from)

WRAP_NEW_FD(socket, (int domain, int type, int protocol), (domain, type, protocol), -1)

/* The headers give these a transparent union, or only a fortified inline: the plain prototype is the ABI's. */
ssize_t __recv_chk(int fd, void *p, size_t n, size_t len, int flags);
ssize_t __recvfrom_chk(int fd, void *p, size_t n, size_t len, int flags, struct sockaddr *a, socklen_t *an);
ssize_t __read_chk(int fd, void *p, size_t n, size_t len);
ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t len);
ssize_t __pread64_chk(int fd, void *p, size_t n, off64_t at, size_t len);
D9_WRAP_FD(ssize_t, __recv_chk, (int fd, void *p, size_t n, size_t len, int flags), (fd, p, n, len, flags), fd)
D9_WRAP_FD(ssize_t, __recvfrom_chk,
	   (int fd, void *p, size_t n, size_t len, int flags, struct sockaddr *a, socklen_t *an),
	   (fd, p, n, len, flags, a, an), fd)
D9_WRAP_FD(ssize_t, __read_chk, (int fd, void *p, size_t n, size_t len), (fd, p, n, len), fd)
D9_WRAP_FD(ssize_t, __pread_chk, (int fd, void *p, size_t n, off_t at, size_t len), (fd, p, n, at, len), fd)
D9_WRAP_FD(ssize_t, __pread64_chk, (int fd, void *p, size_t n, off64_t at, size_t len), (fd, p, n, at, len), fd)

#define AS_ADDR(a) (*(struct sockaddr **)(void *)&(a))
#define AS_CONST_ADDR(a) (*(const struct sockaddr **)(void *)&(a))

D9_EXPORT int accept(int fd, __SOCKADDR_ARG a, socklen_t *restrict n)
{
	D9_BEGIN(accept, 0, fd);
	D9_IDLE_POINT();
	int r = d9_real.accept(fd, AS_ADDR(a), n);
	d9_eventfd_forget(r);
	D9_END(accept, D9_RESULT(r), 0);
	return r;
}

D9_EXPORT int accept4(int fd, __SOCKADDR_ARG a, socklen_t *restrict n, int flags)
{
	D9_BEGIN(accept4, 0, fd);
	D9_IDLE_POINT();
	int r = d9_real.accept4(fd, AS_ADDR(a), n, flags);
	d9_eventfd_forget(r);
	D9_END(accept4, D9_RESULT(r), 0);
	return r;
}

D9_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG a, socklen_t n)
{
	D9_BEGIN(connect, 0, fd);
	int r = d9_real.connect(fd, AS_CONST_ADDR(a), n);
	D9_END(connect, D9_RESULT(r), 0);
	return r;
}

D9_EXPORT ssize_t recvfrom(int fd, void *restrict p, size_t n, int flags, __SOCKADDR_ARG a, socklen_t *restrict an)
{
	D9_BEGIN(recvfrom, 0, fd);
	ssize_t r = d9_real.recvfrom(fd, p, n, flags, AS_ADDR(a), an);
	D9_END(recvfrom, D9_RESULT(r), 0);
	return r;
}

D9_EXPORT ssize_t sendto(int fd, const void *p, size_t n, int flags, __CONST_SOCKADDR_ARG a, socklen_t an)
{
	D9_BEGIN(sendto, 0, fd);
	ssize_t r = d9_real.sendto(fd, p, n, flags, AS_CONST_ADDR(a), an);
	D9_END(sendto, D9_RESULT(r), 0);
	return r;
}

/* ---- eventfds wake the epoll instance that watches them ------------------------------------------ */

D9_EXPORT ssize_t write(int fd, const void *p, size_t n)
{
	D9_BEGIN(write, 0, fd);
	if (d9_c.site && n == sizeof(uint64_t))
		d9_eventfd_wakes(fd);
	ssize_t r = d9_real.write(fd, p, n);
	D9_END(write, D9_RESULT(r), 0);
	return r;
}

D9_EXPORT int eventfd_write(int fd, uint64_t v)
{
	D9_BEGIN(eventfd_write, 0, fd);
	if (d9_c.site)
		d9_eventfd_wakes(fd);
	int r = d9_real.eventfd_write(fd, v);
	D9_END(eventfd_write, D9_RESULT(r), 0);
	return r;
}

D9_EXPORT int eventfd(unsigned n, int flags)
{
	D9_BEGIN(eventfd, 0, -1);
	int r = d9_real.eventfd(n, flags);
	if (d9_c.site && r >= 0)
		d9_eventfd_made(r);
	D9_END(eventfd, D9_RESULT(r), 0);
	return r;
}

D9_EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	D9_BEGIN(epoll_ctl, 0, fd);
	if (d9_c.site && op == EPOLL_CTL_ADD)
		d9_eventfd_watched(fd, epfd);
	int r = d9_real.epoll_ctl(epfd, op, fd, ev);
	D9_END(epoll_ctl, D9_RESULT(r), 0);
	return r;
}

/* ---- open ------------------------------------------------------------------------------------------ */

/* The mode is there only with some flags; reading it regardless is what the ABI allows and what the kernel ignores. */
#define WRAP_OPEN(name, params, last, args)       \
	D9_EXPORT int name params                 \
	{                                         \
		va_list ap;                       \
		va_start(ap, last);               \
		mode_t mode = va_arg(ap, mode_t); \
		va_end(ap);                       \
		D9_BEGIN(name, 0, -1);            \
		int d9_r = d9_real.name args;     \
		d9_eventfd_forget(d9_r);          \
		D9_END(name, D9_RESULT(d9_r), 0); \
		return d9_r;                      \
	}
WRAP_OPEN(open, (const char *path, int flags, ...), flags, (path, flags, mode))
WRAP_OPEN(open64, (const char *path, int flags, ...), flags, (path, flags, mode))
WRAP_OPEN(openat, (int at, const char *path, int flags, ...), flags, (at, path, flags, mode))
WRAP_OPEN(openat64, (int at, const char *path, int flags, ...), flags, (at, path, flags, mode))
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int at, const char *path, int flags);
int __openat64_2(int at, const char *path, int flags);
WRAP_NEW_FD(__open_2, (const char *path, int flags), (path, flags), -1)
WRAP_NEW_FD(__open64_2, (const char *path, int flags), (path, flags), -1)
WRAP_NEW_FD(__openat_2, (int at, const char *path, int flags), (at, path, flags), -1)
WRAP_NEW_FD(__openat64_2, (int at, const char *path, int flags), (at, path, flags), -1)
WRAP_NEW_FD(creat, (const char *path, mode_t mode), (path, mode), -1)
WRAP_NEW_FD(creat64, (const char *path, mode_t mode), (path, mode), -1)

/* Called once, whatever it answers: after EINTR too the number is free. */
WRAP_CLOSE(close, (int fd), (fd), true)
