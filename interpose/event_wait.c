/* Where a worker parks: epoll, poll, select, and waits for signals. */
#include "hook.h"

#define WRAP_WAIT(name, params, args, fd, wake)      \
	D9_EXPORT int name params                    \
	{                                            \
		D9_BEGIN(name, 0, fd);               \
		D9_IDLE_POINT();                     \
		if (wake)                            \
			d9_waker_mark(&d9_c, wake);  \
		int d9_r = d9_real.name args;        \
		D9_END(name, D9_RESULT(d9_r), wake); \
		return d9_r;                         \
	}

WRAP_WAIT(epoll_wait, (int epfd, struct epoll_event *ev, int n, int ms), (epfd, ev, n, ms), epfd, D9_WAKE_FD(epfd))
WRAP_WAIT(epoll_pwait, (int epfd, struct epoll_event *ev, int n, int ms, const sigset_t *mask), (epfd, ev, n, ms, mask),
	  epfd, D9_WAKE_FD(epfd))
WRAP_WAIT(epoll_pwait2, (int epfd, struct epoll_event *ev, int n, const struct timespec *t, const sigset_t *mask),
	  (epfd, ev, n, t, mask), epfd, D9_WAKE_FD(epfd))
WRAP_WAIT(poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), -1, 0)
WRAP_WAIT(ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *t, const sigset_t *mask), (fds, n, t, mask), -1,
	  0)
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t len);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask, size_t len);
WRAP_WAIT(__poll_chk, (struct pollfd * fds, nfds_t n, int ms, size_t len), (fds, n, ms, len), -1, 0)
WRAP_WAIT(__ppoll_chk, (struct pollfd * fds, nfds_t n, const struct timespec *t, const sigset_t *mask, size_t len),
	  (fds, n, t, mask, len), -1, 0)
WRAP_WAIT(select, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t), (n, r, w, e, t), -1, 0)
WRAP_WAIT(pselect, (int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t, const sigset_t *mask),
	  (n, r, w, e, t, mask), -1, 0)

WRAP_WAIT(sigsuspend, (const sigset_t *mask), (mask), -1, 0)
WRAP_WAIT(sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info), -1, 0)
WRAP_WAIT(sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *t), (set, info, t), -1, 0)
WRAP_WAIT(pause, (void), (), -1, 0)
D9_WRAP_IDLE(int, sigwait, (const sigset_t *set, int *sig), (set, sig), D9_RETURNED(d9_r))
/* The header's sigpause is __xpg_sigpause, which takes a signal; the one of that name takes a mask, as BSD's. */
int d9_bsd_sigpause(int mask) __asm__("sigpause");
D9_EXPORT int d9_bsd_sigpause(int mask)
{
	D9_BEGIN(sigpause, 0, -1);
	D9_IDLE_POINT();
	int r = d9_real.sigpause(mask);
	D9_END(sigpause, D9_RESULT(r), 0);
	return r;
}
int __xpg_sigpause(int sig);
WRAP_WAIT(__xpg_sigpause, (int sig), (sig), -1, 0)
