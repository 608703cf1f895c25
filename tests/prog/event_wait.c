/* Event waits: ended by a byte on a pipe, by an eventfd that a thread wrote, by time, at once, by an error, by a signal. */
#include "prog.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/select.h>

static int pipe_fds[2], epfd, event_fd;
static struct pollfd *volatile nowhere = (struct pollfd *)8;

static void drain(void)
{
	char c;
	(void)raw(SYS_read, pipe_fds[0], &c, 1);
}

#define WAKEN(hook, call, fd)                                    \
	do {                                                     \
		when_asleep(act_write, &pipe_fds[1]);            \
		int r = call;                                    \
		woken();                                         \
		expect(hook, RESULT(r), "fd=%d waker=null", fd); \
		MUST(r == 1);                                    \
		drain();                                         \
	} while (0)
#define TIMED_OUT(hook, call, fd, ms)                                     \
	do {                                                              \
		before();                                                 \
		int r = call;                                             \
		after();                                                  \
		prog_times.hold0 = 0, prog_times.hold1 = (ms)*1000000ull; \
		expect(hook, RESULT(r), "fd=%d", fd);                     \
		MUST(r == 0);                                             \
	} while (0)
#define AT_ONCE(hook, call, fd)                       \
	do {                                          \
		before();                             \
		int r = call;                         \
		int e = errno;                        \
		after();                              \
		errno = e;                            \
		expect(hook, RESULT(r), "fd=%d", fd); \
	} while (0)

static void epolls(void)
{
	struct epoll_event ev;
	struct timespec ms20 = {0, 20000000}, zero = {0, 0};
	sigset_t none;
	sigemptyset(&none);
	WAKEN("epoll_wait", epoll_wait(epfd, &ev, 1, -1), epfd);
	WAKEN("epoll_pwait", epoll_pwait(epfd, &ev, 1, -1, &none), epfd);
	WAKEN("epoll_pwait2", epoll_pwait2(epfd, &ev, 1, NULL, &none), epfd);
	TIMED_OUT("epoll_wait", epoll_wait(epfd, &ev, 1, 20), epfd, 20);
	TIMED_OUT("epoll_pwait", epoll_pwait(epfd, &ev, 1, 20, NULL), epfd, 20);
	TIMED_OUT("epoll_pwait2", epoll_pwait2(epfd, &ev, 1, &ms20, NULL), epfd, 20);
	AT_ONCE("epoll_wait", epoll_wait(epfd, &ev, 1, 0), epfd);
	AT_ONCE("epoll_wait", epoll_wait(pipe_fds[0], &ev, 1, 0), pipe_fds[0]); /* -EINVAL */
	AT_ONCE("epoll_pwait", epoll_pwait(9999, &ev, 1, 0, NULL), 9999);       /* -EBADF */
	AT_ONCE("epoll_pwait2", epoll_pwait2(epfd, &ev, 1, &zero, NULL), epfd);
}

static void polls(void)
{
	struct pollfd p = {pipe_fds[0], POLLIN, 0};
	struct timespec ms20 = {0, 20000000};
	sigset_t none;
	sigemptyset(&none);
	WAKEN("poll", poll(&p, 1, -1), -1);
	WAKEN("ppoll", ppoll(&p, 1, NULL, &none), -1);
	TIMED_OUT("poll", poll(&p, 1, 20), -1, 20);
	TIMED_OUT("ppoll", ppoll(&p, 1, &ms20, NULL), -1, 20);
	AT_ONCE("poll", poll(&p, 1, 0), -1);
	AT_ONCE("poll", poll(nowhere, 1, 0), -1); /* -EFAULT */
}

static void set_to_pipe(fd_set *set)
{
	FD_ZERO(set);
	FD_SET(pipe_fds[0], set);
}

static void selects(void)
{
	fd_set in;
	sigset_t none;
	sigemptyset(&none);
	set_to_pipe(&in);
	WAKEN("select", select(pipe_fds[0] + 1, &in, NULL, NULL, NULL), -1);
	set_to_pipe(&in);
	WAKEN("pselect", pselect(pipe_fds[0] + 1, &in, NULL, NULL, NULL, &none), -1);
	struct timeval us = {0, 20000};
	struct timespec ns = {0, 20000000};
	set_to_pipe(&in);
	TIMED_OUT("select", select(pipe_fds[0] + 1, &in, NULL, NULL, &us), -1, 20);
	MUST(us.tv_sec == 0 &&
	     us.tv_usec == 0); /* Linux says what was left: the caller's own object must have been passed */
	set_to_pipe(&in);
	TIMED_OUT("pselect", pselect(pipe_fds[0] + 1, &in, NULL, NULL, &ns, NULL), -1, 20);
	us.tv_usec = 0;
	AT_ONCE("select", select(-1, NULL, NULL, NULL, &us), -1); /* -EINVAL */
}

static void handler(int n) { (void)n; }
static void act_signal(void *tid) { (void)raw(SYS_tgkill, raw(SYS_getpid), *(int *)tid, SIGUSR1); }

static void signals(void)
{
	sigset_t block, none;
	int tid = my_tid();
	struct sigaction sa = {.sa_handler = handler};
	struct epoll_event ev;
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	MUST(!sigaction(SIGUSR1, &sa, NULL) && !sigprocmask(SIG_BLOCK, &block, NULL));
	when_asleep(act_signal, &tid);
	int r = sigsuspend(&none);
	woken();
	expect("sigsuspend", RESULT(r), "%s", "");
	MUST(!sigprocmask(SIG_UNBLOCK, &block, NULL));
	when_asleep(act_signal, &tid);
	r = epoll_wait(epfd, &ev, 1, -1); /* -EINTR, never retried */
	woken();
	expect("epoll_wait", RESULT(r), "fd=%d", epfd);
}

static void act_eventfd(void *fd)
{
	uint64_t one = 1;
	MUST(write(*(int *)fd, &one, sizeof(one)) == sizeof(one));
	fast("write", sizeof(one), "fd=%d", *(int *)fd);
}

/* An eventfd that a thread writes wakes the instance that watches it, and the waiter knows who did. */
static void eventfds(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	uint64_t v;
	event_fd = eventfd(0, EFD_CLOEXEC);
	fast("eventfd", event_fd, "%s", "");
	int r = epoll_ctl(epfd, EPOLL_CTL_ADD, event_fd, &ev);
	fast("epoll_ctl", r, "fd=%d", event_fd);
	when_asleep(act_eventfd, &event_fd);
	r = epoll_wait(epfd, &ev, 1, -1);
	woken();
	expect("epoll_wait", RESULT(r), "fd=%d waker=%d", epfd, partner.tid);
	MUST(r == 1 && raw(SYS_read, event_fd, &v, 8) == 8);
}

static int watched; /* a second descriptor of the eventfd, whose first number became another file's */
static void act_other_file(void *fd)
{
	uint64_t one = 1;
	act_eventfd(fd);
	MUST(raw(SYS_write, watched, &one, 8) == 8);
}

/* A number that was an eventfd's and is another file's now: who writes there wakes nobody. */
static void reused(int (*replace)(int from, int to), const char *name)
{
	struct epoll_event ev;
	int other[2];
	uint64_t v;
	eventfds();
	watched = raw(SYS_dup, event_fd);
	MUST(!raw(SYS_pipe2, other, 0));
	int r = replace(other[1], event_fd);
	fast(name, RESULT(r), "fd=%d", event_fd);
	when_asleep(act_other_file, &event_fd);
	r = epoll_wait(epfd, &ev, 1, -1);
	woken();
	expect("epoll_wait", RESULT(r), "fd=%d waker=-1", epfd);
	MUST(r == 1 && raw(SYS_read, watched, &v, 8) == 8 && !raw(SYS_close, watched));
}
static int by_dup3(int from, int to) { return dup3(from, to, O_CLOEXEC); }

int main(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	MUST(!pipe(pipe_fds));
	epfd = epoll_create1(EPOLL_CLOEXEC);
	ev.data.fd = pipe_fds[0];
	int r = epoll_ctl(epfd, EPOLL_CTL_ADD, pipe_fds[0], &ev);
	fast("epoll_ctl", r, "fd=%d", pipe_fds[0]);
	partner_start();
	epolls();
	polls();
	selects();
	signals();
	reused(dup2, "dup2");
	reused(by_dup3, "dup3");
	partner_end();
	return 0;
}
