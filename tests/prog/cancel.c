/* pthread_cancel in each wait: the cleanup handlers of the callers run, the thread ends, the next one records as if nothing had been. */
#include "prog.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>

static int p[2], epfd, listener, pair[2];
static sem_t sem;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static struct timespec far;
static volatile int cleaned, tid;
static pid_t sleeper;
static pthread_t main_thread;
static int null, locked;

static void w_epoll_wait(void)
{
	struct epoll_event ev;
	epoll_wait(epfd, &ev, 1, -1);
}
static void w_epoll_pwait(void)
{
	struct epoll_event ev;
	epoll_pwait(epfd, &ev, 1, -1, NULL);
}
static void w_epoll_pwait2(void)
{
	struct epoll_event ev;
	epoll_pwait2(epfd, &ev, 1, NULL, NULL);
}
static void w_poll(void) { poll(NULL, 0, -1); }
static void w_ppoll(void) { ppoll(NULL, 0, NULL, NULL); }
static void w_select(void) { select(0, NULL, NULL, NULL, NULL); }
static void w_pselect(void) { pselect(0, NULL, NULL, NULL, NULL, NULL); }
static void w_sigsuspend(void)
{
	sigset_t s;
	sigemptyset(&s);
	sigsuspend(&s);
}
static void w_sigwait(void)
{
	sigset_t s;
	int sig;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	sigwait(&s, &sig);
}
static void w_sigwaitinfo(void)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	sigwaitinfo(&s, NULL);
}
static void w_sigtimedwait(void)
{
	sigset_t s;
	struct timespec t = {60, 0};
	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	sigtimedwait(&s, NULL, &t);
}
static void w_pause(void) { pause(); }
static void w_waitpid(void) { waitpid(sleeper, NULL, 0); }
static void w_waitid(void)
{
	siginfo_t info;
	waitid(P_PID, (id_t)sleeper, &info, WEXITED);
}
static void w_wait4(void) { wait4(sleeper, NULL, 0, NULL); }
static void w_pthread_join(void) { pthread_join(main_thread, NULL); }
static void w_thrd_sleep(void)
{
	struct timespec t = {60, 0};
	thrd_sleep(&t, NULL);
}
static void w_readv(void)
{
	char b;
	struct iovec v = {&b, 1};
	(void)readv(p[0], &v, 1);
}
static void w_recvmmsg(void)
{
	char b;
	struct iovec v = {&b, 1};
	struct mmsghdr h = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	recvmmsg(pair[0], &h, 1, 0, NULL);
}
static void w_splice(void) { (void)splice(p[0], NULL, null, NULL, 1, 0); }
static void w_fcntl(void)
{
	struct flock l = {.l_type = F_WRLCK};
	fcntl(locked, F_OFD_SETLKW, &l);
}
static void w_nanosleep(void)
{
	struct timespec t = {60, 0};
	nanosleep(&t, NULL);
}
static void w_clock_nanosleep(void)
{
	struct timespec t = {60, 0};
	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}
static void w_usleep(void) { usleep(60000000); }
static void w_sleep(void) { sleep(60); }
static void w_read(void)
{
	char b;
	(void)read(p[0], &b, 1);
}
static void w_recv(void)
{
	char b;
	recv(pair[0], &b, 1, 0);
}
static void w_recvfrom(void)
{
	char b;
	recvfrom(pair[0], &b, 1, 0, NULL, NULL);
}
static void w_recvmsg(void)
{
	char b;
	struct iovec v = {&b, 1};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
	recvmsg(pair[0], &h, 0);
}
static void w_accept(void) { accept(listener, NULL, NULL); }
static void w_accept4(void) { accept4(listener, NULL, NULL, 0); }
static void w_sem_wait(void) { sem_wait(&sem); }
static void w_sem_timedwait(void) { sem_timedwait(&sem, &far); }
static void w_sem_clockwait(void) { sem_clockwait(&sem, CLOCK_REALTIME, &far); }
static void unlock(void *arg) { pthread_mutex_unlock(arg); }
static void w_cond_wait(void)
{
	pthread_mutex_lock(&m);
	pthread_cleanup_push(unlock, &m);
	pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(1);
}
static void w_cond_timedwait(void)
{
	pthread_mutex_lock(&m);
	pthread_cleanup_push(unlock, &m);
	pthread_cond_timedwait(&c, &m, &far);
	pthread_cleanup_pop(1);
}

static const struct {
	const char *name;
	void (*wait)(void);
} all[] = {
#define W(name)                 \
	{                       \
#name, w_##name \
	}
	W(epoll_wait),     W(epoll_pwait), W(epoll_pwait2), W(poll),          W(ppoll),
	W(select),         W(pselect),     W(sigsuspend),   W(nanosleep),     W(clock_nanosleep),
	W(usleep),         W(sleep),       W(read),         W(recv),          W(recvfrom),
	W(recvmsg),        W(accept),      W(accept4),      W(sem_wait),      W(sem_timedwait),
	W(sigwait),        W(sigwaitinfo), W(sigtimedwait), W(pause),         W(waitpid),
	W(waitid),         W(wait4),       W(pthread_join), W(thrd_sleep),    W(readv),
	W(recvmmsg),       W(splice),      W(fcntl),        W(sem_clockwait), W(cond_wait),
	W(cond_timedwait),
};

static void cleanup(void *arg)
{
	(void)arg;
	cleaned++;
}

/* The caller's own cleanup, by attribute: it runs only if the stack can be unwound through the recorder's frames. */
static void cleanup_attribute(int *x)
{
	(void)x;
	cleaned++;
}

static void *run(void *arg)
{
	void (*wait)(void) = *(void (**)(void))arg;
	__attribute__((cleanup(cleanup_attribute))) int guard = 1;
	(void)guard;
	pthread_cleanup_push(cleanup, NULL);
	raw_set(&tid, my_tid());
	wait();
	pthread_cleanup_pop(0);
	return NULL;
}

int main(void)
{
	clock_gettime(CLOCK_REALTIME, &far);
	far.tv_sec += 60;
	MUST(!pipe(p) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !sem_init(&sem, 0, 0));
	struct flock l = {.l_type = F_WRLCK};
	int holder = (int)raw(SYS_memfd_create, "x", 0);
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", holder);
	locked = (int)raw(SYS_open, self, O_RDWR);
	MUST(locked >= 0 && raw(SYS_fcntl, holder, F_OFD_SETLK, &l) == 0);
	null = (int)raw(SYS_open, "/dev/null", O_RDWR);
	main_thread = pthread_self();
	sleeper = (pid_t)raw(SYS_fork);
	if (!sleeper)
		for (;;)
			(void)raw(SYS_pause);
	epfd = epoll_create1(0);
	listener = (int)raw(SYS_socket, AF_INET, SOCK_STREAM, 0);
	MUST(!listen(listener, 1));
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		pthread_t t;
		void *end;
		cleaned = tid = 0;
		MUST(!pthread_create(&t, NULL, run, (void *)&all[i].wait));
		raw_wait(&tid, 0);
		until_sleeps(tid);
		MUST(!pthread_cancel(t) && !pthread_join(t, &end));
		if (end != PTHREAD_CANCELED || cleaned != 2) {
			printf("WRONG %s: %s, %d of 2 cleanups ran\n", all[i].name,
			       end == PTHREAD_CANCELED ? "cancelled" : "not cancelled", cleaned);
			return 1;
		}
	}
	raw(SYS_kill, sleeper, SIGKILL);
	MUST(pthread_mutex_trylock(&m) == 0); /* the cancelled waits for a condition gave it back */
	struct timespec ms = {0, 1000000};
	before();
	int r = nanosleep(&ms, NULL);
	after();
	expect("nanosleep", RESULT(r), "%s", "");
	return 0;
}
