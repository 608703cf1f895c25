/*
 * What a hook costs: hooked and direct calls alternate in bursts inside one process; each figure is the median of paired
 * differences.  Run it under LD_PRELOAD=libd9shim.so; without, it says so and measures nothing.  An argument chooses the
 * subjects whose names contain it.
 *
 * The direct functions come from libc's own handle, past every preloaded library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define BURST 64
#define ROUNDS 4000

static double tsc_ns;

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void calibrate(void)
{
	double a = now_ns();
	uint64_t x = __rdtsc();
	while (now_ns() - a < 5e7)
		;
	tsc_ns = (now_ns() - a) / (double)(__rdtsc() - x);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* One kind of call; `real` false: through the PLT, where the recorder stands. */
struct subject {
	const char *name;
	void (*call)(bool real);
	double bar; /* ns added at most, 0 = no bar of its own */
};

static int epfd, evfd;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static uint32_t word = 1;

static int (*real_epoll_wait)(int, struct epoll_event *, int, int);
static int (*real_lock)(pthread_mutex_t *), (*real_unlock)(pthread_mutex_t *), (*real_signal)(pthread_cond_t *);
static int (*real_sem_wait)(sem_t *), (*real_sem_post)(sem_t *);
static long (*real_syscall)(long, ...);
static ssize_t (*real_write)(int, const void *, size_t), (*real_read)(int, void *, size_t);

static void do_epoll(bool real)
{
	struct epoll_event e;
	(void)(real ? real_epoll_wait : epoll_wait)(epfd, &e, 1, 0);
}
static void do_mutex(bool real)
{
	(real ? real_lock : pthread_mutex_lock)(&mutex);
	(real ? real_unlock : pthread_mutex_unlock)(&mutex);
}
static void do_getppid(bool real) { (void)(real ? real_syscall : syscall)(SYS_getppid); }
static void do_futex_wait(bool real)
{
	(void)(real ? real_syscall : syscall)(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
static void do_futex_wake(bool real)
{
	(void)(real ? real_syscall : syscall)(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static void do_signal(bool real) { (real ? real_signal : pthread_cond_signal)(&cond); }
static void do_sem(bool real)
{
	(real ? real_sem_post : sem_post)(&sem);
	(real ? real_sem_wait : sem_wait)(&sem);
}
static void do_write(bool real)
{
	uint64_t one = 1;
	(void)!(real ? real_write : write)(evfd, &one, sizeof(one));
}
static void do_read(bool real)
{
	uint64_t v;
	(void)!(real ? real_read : read)(evfd, &v, sizeof(v));
}

static const struct subject subjects[] = {
	{"epoll_wait(0): one span record", do_epoll, 30},
	{"futex wait that answers EAGAIN: one span record", do_futex_wait, 45},
	{"futex wake, nobody waits", do_futex_wake, 30},
	{"pthread_cond_signal, nobody waits", do_signal, 30},
	{"mutex lock + unlock, uncontended", do_mutex, 3},
	{"syscall(getppid)", do_getppid, 2},
	{"sem_post + sem_wait, uncontended", do_sem, 0},
	{"write(eventfd): counted", do_write, 30},
	{"read(eventfd): counted", do_read, 30},
};

static double burst(const struct subject *s, bool real)
{
	uint64_t a = __rdtsc();
	for (int i = 0; i < BURST; i++)
		s->call(real);
	return (double)(__rdtsc() - a) * tsc_ns / BURST;
}

/* Chunks that were used once have their pages; a service that runs for a second records into such. */
static void warm_arena(void)
{
	for (int i = 0; i < 500000; i++)
		do_epoll(false);
	nanosleep(&(struct timespec){3, 0}, NULL);
}

static void measure(const struct subject *s)
{
	static double diff[ROUNDS], direct[ROUNDS];
	for (int i = 0; i < 200; i++)
		burst(s, i & 1);
	for (int i = 0; i < ROUNDS; i++) {
		double first = burst(s, i & 1), second = burst(s, !(i & 1));
		direct[i] = i & 1 ? first : second;
		diff[i] = (i & 1 ? second : first) - direct[i];
		if (i % 100 == 99) /* a service is not a loop: let the drainer keep up, so that no drop is measured */
			nanosleep(&(struct timespec){0, 30000000}, NULL);
	}
	qsort(diff, ROUNDS, sizeof(*diff), by_value);
	qsort(direct, ROUNDS, sizeof(*direct), by_value);
	printf("%-50s direct %6.1f ns, added %5.1f ns (quartiles %.1f..%.1f)", s->name, direct[ROUNDS / 2],
	       diff[ROUNDS / 2], diff[ROUNDS / 4], diff[3 * ROUNDS / 4]);
	if (s->bar > 0)
		printf("   bar %.0f: %s", s->bar, diff[ROUNDS / 2] <= s->bar ? "met" : "not met");
	printf("\n");
}

#define REAL(p, name) (*(void **)&(p) = dlsym(libc, name))

int main(int argc, char **argv)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	REAL(real_epoll_wait, "epoll_wait");
	REAL(real_lock, "pthread_mutex_lock");
	REAL(real_unlock, "pthread_mutex_unlock");
	REAL(real_sem_wait, "sem_wait");
	REAL(real_sem_post, "sem_post");
	REAL(real_syscall, "syscall");
	REAL(real_write, "write");
	REAL(real_read, "read");
	*(void **)&real_signal = dlvsym(libc, "pthread_cond_signal", "GLIBC_2.3.2");
	if (!dlsym(RTLD_DEFAULT, "d9_abi")) {
		fprintf(stderr, "not under the recorder: nothing to measure\n");
		return 77;
	}
	calibrate();
	epfd = epoll_create1(0);
	evfd = eventfd(0, EFD_NONBLOCK);
	sem_init(&sem, 0, 0);
	warm_arena();
	for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++)
		if (argc < 2 || strstr(subjects[i].name, argv[1]))
			measure(&subjects[i]);
	return 0;
}
