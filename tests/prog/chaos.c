/*
 * chaos SECONDS [THREADS EXITS]: everything that has ever troubled a recorder, at once: forks of all kinds, threads that come, go,
 * are cancelled in their waits or jump out of them, handlers that wait, modules that come and go, programs that end while their
 * threads live, locks, pipes.  Each part checks its own answers; two threads count their calls, which a recording must hold or have
 * counted as lost.  It goes on until SECONDS have passed, THREADS threads have come and gone and EXITS programs have ended.
 *
 * chaos leave HOW: one of these programs.
 */
#include "prog.h"

#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

static volatile int stop;
static volatile unsigned long threads, exits;
static unsigned long forks, cancels, jumps, opens, turns, bytes, handled;
extern pid_t _Fork(void);
#pragma weak _Fork
extern char **environ;

/* ---- counted ---- */
/* The recorder reads the CPU clock at the end of a wait or a gap above 1 ms, and a reading may be lost as well: turns that took half
   as long are counted too.  One of them has at most three such ends: the gap before its call, the call, the gap after it. */
struct counter {
	int tid;
	unsigned long n, slow;
};
static void *count(void *arg)
{
	struct counter *c = arg;
	c->tid = my_tid();
	for (uint64_t t = now_ns(), before; !stop; c->slow += t - before > 450000) {
		poll(NULL, 0, 0);
		c->n++;
		raw(SYS_sched_yield);
		before = t;
		t = now_ns();
	}
	return NULL;
}

/* ---- forks ---- */
static int in_child(void)
{
	char b;
	for (int i = 0; i < 3; i++)
		poll(NULL, 0, 0);
	return read(-1, &b, 1) == -1 && errno == EBADF ? 7 : 8;
}
static void reap(pid_t pid)
{
	int status;
	MUST(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		MUST(errno == EINTR);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
static char *exit_7[] = {"sh", "-c", "exit 7", NULL};
static __attribute__((noinline)) pid_t by_vfork(void)
{
	pid_t pid = vfork();
	if (!pid) {
		execv("/bin/sh", exit_7);
		_exit(9);
	}
	return pid;
}
static pid_t by_fork(unsigned kind)
{
	pid_t pid = kind == 0 || !_Fork ? fork() : kind == 1 ? _Fork() : (pid_t)syscall(SYS_fork);
	if (!pid)
		_exit(in_child());
	return pid;
}
static void start_living(void);
/* The loader's and malloc's locks are whole after fork() alone, and exit()'s are not: threads, and then _exit. */
static pid_t by_fork_that_makes_threads(void)
{
	pid_t pid = fork();
	if (!pid) {
		start_living();
		_exit(in_child());
	}
	return pid;
}
static void *forker(void *arg)
{
	for (unsigned i = 0; !stop; i++) {
		pid_t pid = -1;
		if (i % 40 == 38)
			MUST(!posix_spawn(&pid, "/bin/sh", NULL, NULL, exit_7, environ));
		else if (i % 40 == 37)
			pid = by_fork_that_makes_threads();
		else
			pid = i % 40 == 39 ? by_vfork() : by_fork(i % 3);
		reap(pid);
		forks++;
	}
	return arg;
}

/* ---- threads that come and go ---- */
#define CROWD 50
static void *visitor(void *arg)
{
	char b;
	poll(NULL, 0, 0);
	MUST(read(-1, &b, 1) == -1 && errno == EBADF);
	if ((unsigned long)arg % 2)
		pthread_exit((void *)~(unsigned long)arg);
	return (void *)~(unsigned long)arg;
}
static void *crowd(void *arg)
{
	pthread_t t[CROWD];
	pthread_attr_t small;
	void *r;
	MUST(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 1 << 16));
	while (!stop) {
		for (unsigned long i = 0; i < CROWD; i++)
			MUST(!pthread_create(&t[i], &small, visitor, (void *)i));
		for (unsigned long i = 0; i < CROWD; i++)
			MUST(!pthread_join(t[i], &r) && (unsigned long)r == ~i);
		threads += CROWD;
	}
	return arg;
}

/* ---- programs that end while their threads live ---- */
#define N_LIVING 6
static sem_t lives;
static pthread_mutex_t held_for_ever = PTHREAD_MUTEX_INITIALIZER, with_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t untold = PTHREAD_COND_INITIALIZER;
static void *live(void *arg)
{
	sem_t nobody_posts;
	sem_init(&nobody_posts, 0, 0);
	sem_post(&lives);
	switch ((long)arg) {
	case 0:
		for (;;)
			poll(NULL, 0, 0);
	case 1:
		poll(NULL, 0, -1);
		break;
	case 2:
		pthread_mutex_lock(&held_for_ever);
		break;
	case 3:
		pthread_mutex_lock(&with_cond);
		for (;;)
			pthread_cond_wait(&untold, &with_cond);
	case 4:
		for (;;)
			usleep(100);
	default:
		while (sem_wait(&nobody_posts))
			;
	}
	give_up("a wait without end has ended");
}
static void start_living(void)
{
	pthread_t t;
	MUST(!sem_init(&lives, 0, 0));
	pthread_mutex_trylock(&held_for_ever);
	for (long i = 0; i < N_LIVING; i++)
		MUST(!pthread_create(&t, NULL, live, (void *)i));
	for (int i = 0; i < N_LIVING; i++)
		while (sem_wait(&lives))
			MUST(errno == EINTR);
}
static void *exits_with_7(void *arg)
{
	(void)arg;
	exit(7);
}
static int leave(int how)
{
	pthread_t t;
	start_living();
	switch (how) {
	case 0:
		exit(7);
	case 1:
		_exit(7);
	case 2:
		quick_exit(7);
	case 3:
		raw(SYS_exit_group, 7);
		break;
	case 4:
		MUST(!pthread_create(&t, NULL, exits_with_7, NULL));
		pthread_exit(NULL);
	}
	return 7;
}
static void *leaver(void *arg)
{
	char how[2] = "0", *argv[] = {"chaos", "leave", how, NULL}, *env[256] = {"D9_NAME=leaves"};
	for (int n = 1, i = 0; environ[i] && n < 255; i++)
		if (strncmp(environ[i], "D9_NAME=", 8))
			env[n++] = environ[i];
	/* Never 3 as the last one: what ends so is adopted by one that ends later, and by nobody if there is none. */
	for (unsigned i = 0; !stop || i % 6 == 4; i++) {
		pid_t pid;
		how[0] = (char)('0' + i % 6);
		MUST(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, env));
		reap(pid);
		exits++;
	}
	return arg;
}

/* ---- cancelled in a wait ---- */
static int pipe_fd[2], epfd;
static sem_t never;
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never_told = PTHREAD_COND_INITIALIZER;
static int cleaned;
static void clean(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED);
}
static void unlock(void *arg) { pthread_mutex_unlock(arg); }
static void *waits(void *arg)
{
	char b;
	struct epoll_event ev;
	pthread_cleanup_push(clean, NULL);
	switch ((long)arg) {
	case 0:
		read(pipe_fd[0], &b, 1);
		break;
	case 1:
		epoll_wait(epfd, &ev, 1, -1);
		break;
	case 2:
		sem_wait(&never);
		break;
	case 3:
		usleep(60000000);
		break;
	default:
		pthread_mutex_lock(&wait_lock);
		pthread_cleanup_push(unlock, &wait_lock);
		for (;;)
			pthread_cond_wait(&never_told, &wait_lock);
		pthread_cleanup_pop(0);
	}
	pthread_cleanup_pop(0);
	return NULL;
}
static void *canceller(void *arg)
{
	pthread_t t[5];
	void *r;
	while (!stop) {
		int before = __atomic_load_n(&cleaned, __ATOMIC_RELAXED);
		for (long i = 0; i < 5; i++)
			MUST(!pthread_create(&t[i], NULL, waits, (void *)i));
		usleep(2000);
		for (int i = 0; i < 5; i++)
			MUST(!pthread_cancel(t[i]));
		for (int i = 0; i < 5; i++)
			MUST(!pthread_join(t[i], &r) && r == PTHREAD_CANCELED);
		/* One that was cancelled before it had pushed its handler has none to run. */
		MUST(__atomic_load_n(&cleaned, __ATOMIC_RELAXED) <= before + 5);
		cancels += 5;
	}
	return arg;
}

/* ---- jumps out of a wait, and handlers that wait ---- */
static __thread sigjmp_buf out;
static __thread volatile int may_jump;
static void jump(int n)
{
	(void)n;
	if (may_jump) {
		may_jump = 0;
		siglongjmp(out, 1);
	}
}
static void handle(int n)
{
	int saved = errno, null = open("/dev/null", O_WRONLY);
	(void)n;
	poll(NULL, 0, 1);
	if (null >= 0 && write(null, "x", 1) == 1)
		__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
	close(null);
	errno = saved;
}
static int jumper_tid, pinger_tid;
static void *jumper(void *arg)
{
	jumper_tid = my_tid();
	while (!stop) {
		if (!sigsetjmp(out, 1)) {
			may_jump = 1;
			poll(NULL, 0, 1000);
			may_jump = 0;
		} else
			jumps++;
	}
	return arg;
}
static void *shooter(void *arg)
{
	while (!stop) {
		(void)raw(SYS_tgkill, raw(SYS_getpid), jumper_tid, SIGUSR2);
		(void)raw(SYS_tgkill, raw(SYS_getpid), pinger_tid, SIGUSR1);
		struct timespec t = {0, 700000};
		raw(SYS_nanosleep, &t, NULL);
	}
	return arg;
}

/* ---- a conversation ---- */
static int pair[2];
static int all(ssize_t (*f)(int, void *, size_t), int fd, void *p, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = f(fd, (char *)p + done, n - done);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -1;
		done += (size_t)r;
	}
	return 0;
}
static ssize_t put(int fd, void *p, size_t n) { return write(fd, p, n); }
static void *ponger(void *arg)
{
	unsigned long v[16];
	while (!all(read, pair[1], v, sizeof(v))) {
		for (int i = 0; i < 16; i++)
			v[i] = ~v[i];
		if (all(put, pair[1], v, sizeof(v)))
			break;
	}
	return arg;
}
static void *pinger(void *arg)
{
	unsigned long v[16];
	pinger_tid = my_tid();
	for (unsigned long k = 1; !stop; k++) {
		for (unsigned long i = 0; i < 16; i++)
			v[i] = k * i;
		MUST(!all(put, pair[0], v, sizeof(v)) && !all(read, pair[0], v, sizeof(v)));
		for (unsigned long i = 0; i < 16; i++)
			MUST(v[i] == ~(k * i));
		bytes += sizeof(v);
	}
	shutdown(pair[0], SHUT_RDWR);
	return arg;
}

/* ---- locks ---- */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static unsigned long a, b, whose;
static void *locker(void *arg)
{
	unsigned long me = (unsigned long)arg;
	for (unsigned k = 0; !stop; k++) {
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec = (t.tv_nsec + 5000000) % 1000000000;
		MUST(!pthread_mutex_lock(&lock));
		while (whose % 3 != me && !stop)
			if (pthread_cond_timedwait(&turn, &lock, &t) == ETIMEDOUT)
				break;
		whose++;
		turns++;
		MUST(!pthread_cond_broadcast(&turn) && !pthread_mutex_unlock(&lock));
		if (k % 4) {
			MUST(!pthread_rwlock_rdlock(&rw) && a == b && !pthread_rwlock_unlock(&rw));
		} else {
			MUST(!pthread_rwlock_wrlock(&rw));
			a++, b++;
			MUST(!pthread_rwlock_unlock(&rw));
		}
	}
	return NULL;
}

static void *opener(void *arg)
{
	while (!stop) {
		void *m = dlopen("libresolv.so.2", RTLD_NOW);
		MUST(m && dlsym(m, "ns_name_ntop") && !dlclose(m));
		opens++;
		usleep(500);
	}
	return arg;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "leave"))
		return leave(atoi(argv[2]));
	uint64_t begin = now_ns(), end = begin + (uint64_t)(argc > 1 ? atoi(argv[1]) : 5) * 1000000000;
	unsigned long min_threads = argc > 3 ? strtoul(argv[2], NULL, 10) : 1,
		      min_exits = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	static struct counter counters[2];
	pthread_t t[16];
	int n = 0;
	struct sigaction jumps_out = {.sa_handler = jump}, waits_in = {.sa_handler = handle};
	MUST(!pipe(pipe_fd) && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && (epfd = epoll_create1(0)) >= 0 &&
	     !sem_init(&never, 0, 0));
	MUST(!sigaction(SIGUSR2, &jumps_out, NULL) && !sigaction(SIGUSR1, &waits_in, NULL));
	jumper_tid = pinger_tid = my_tid();
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&t[n++], NULL, count, &counters[i]));
	MUST(!pthread_create(&t[n++], NULL, jumper, NULL) && !pthread_create(&t[n++], NULL, pinger, NULL));
	MUST(!pthread_create(&t[n++], NULL, ponger, NULL) && !pthread_create(&t[n++], NULL, shooter, NULL));
	MUST(!pthread_create(&t[n++], NULL, forker, NULL) && !pthread_create(&t[n++], NULL, canceller, NULL));
	MUST(!pthread_create(&t[n++], NULL, opener, NULL) && !pthread_create(&t[n++], NULL, crowd, NULL));
	MUST(!pthread_create(&t[n++], NULL, leaver, NULL));
	for (long i = 0; i < 3; i++)
		MUST(!pthread_create(&t[n++], NULL, locker, (void *)i));
	while (now_ns() < end || threads < min_threads || exits < min_exits)
		usleep(100000);
	stop = 1;
	for (int i = 0; i < n; i++)
		MUST(!pthread_join(t[i], NULL));
	for (int i = 0; i < 2; i++)
		printf("COUNT tid=%d n=%lu slow=%lu\n", counters[i].tid, counters[i].n, counters[i].slow);
	printf("DONE seconds=%lu forks=%lu threads=%lu exits=%lu cancels=%lu jumps=%lu opens=%lu turns=%lu bytes=%lu "
	       "handled=%lu\n",
	       (now_ns() - begin + 999999999) / 1000000000, forks, threads, exits, cancels, jumps, opens, turns, bytes,
	       handled);
	MUST(forks && threads && exits && cancels && jumps && opens && turns && bytes && handled);
	return 5;
}
