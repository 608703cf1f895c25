/*
 * kernel_runq load SECONDS: waits for a byte, then four threads compute and one sleeps by turns; says what the kernel's own account
 * (schedstat) gives each of them, while they are parked.
 * kernel_runq woken N: on one CPU a thread sleeps N times beside one that computes; the first thread wakes it from another CPU, and
 * both moments are printed: of the wake, and of when it ran.
 * kernel_runq moved SECONDS: a thread computes and sleeps by turns beside two that compute, and is moved from CPU to CPU all the while,
 * asleep or not.
 */
#include "prog.h"

#include <sched.h>

#define BUSY 4
#define THREADS (BUSY + 1)

static volatile int end, parked;
static int tids[THREADS];
static volatile int n_parked;

static void read_byte(void)
{
	char c;
	MUST(raw(SYS_read, 0, &c, 1) == 1);
}

static void park(long i)
{
	tids[i] = my_tid();
	__atomic_add_fetch(&n_parked, 1, __ATOMIC_ACQ_REL);
	raw_wait(&parked, 0);
}

static void *compute(void *arg)
{
	while (!end)
		for (volatile int i = 0; i < 10000; i++)
			;
	park((long)arg);
	return NULL;
}

static void *tick(void *arg)
{
	while (!end)
		raw_sleep_ms(5);
	park((long)arg);
	return NULL;
}

static void say_account(int tid)
{
	char path[64];
	unsigned long run, delay, slices;
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	FILE *f = fopen(path, "r");
	MUST(f && fscanf(f, "%lu %lu %lu", &run, &delay, &slices) == 3);
	fclose(f);
	printf("ACCOUNT tid=%d delay_ns=%lu slices=%lu\n", tid, delay, slices);
}

static int load(int seconds)
{
	pthread_t t[THREADS];
	read_byte();
	for (long i = 0; i < THREADS; i++)
		MUST(!pthread_create(&t[i], NULL, i < BUSY ? compute : tick, (void *)i));
	raw_sleep_ms(seconds * 1000);
	end = 1;
	while (n_parked < THREADS)
		raw_sleep_ms(1);
	for (int i = 0; i < THREADS; i++)
		until_sleeps(tids[i]);
	for (int i = 0; i < THREADS; i++)
		say_account(tids[i]);
	fflush(stdout);
	read_byte(); /* what was recorded is read before they end */
	raw_set(&parked, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* ---- woken ------------------------------------------------------------------------------------------- */

static volatile int sleeper_tid, turn, done;
static volatile uint64_t ran;

static void pin(int cpu)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(cpu, &s);
	MUST(!sched_setaffinity(0, sizeof(s), &s));
}

static void *compute_on_0(void *arg)
{
	pin(0);
	return compute(arg);
}

/* Of the policy that yields to all others: once woken it waits for its CPU. */
static void *sleep_on_0(void *arg)
{
	struct sched_param p = {0};
	(void)arg;
	pin(0);
	MUST(!sched_setscheduler(0, SCHED_IDLE, &p));
	sleeper_tid = my_tid();
	for (int n = 1;; n++) {
		while (turn < n)
			(void)raw(SYS_futex, &turn, FUTEX_WAIT, n - 1, 0);
		ran = now_ns();
		__atomic_store_n(&done, n, __ATOMIC_RELEASE);
		if (end)
			return NULL;
	}
}

static int wakes(int n)
{
	pthread_t busy, sleeper;
	pin(1);
	read_byte();
	MUST(!pthread_create(&sleeper, NULL, sleep_on_0, NULL));
	while (!sleeper_tid)
		raw_sleep_ms(1);
	MUST(!pthread_create(&busy, NULL, compute_on_0, (void *)0));
	for (int i = 1; i <= n; i++) {
		until_sleeps(sleeper_tid);
		raw_sleep_ms(5);
		uint64_t wake = now_ns();
		__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
		(void)raw(SYS_futex, &turn, FUTEX_WAKE, 1);
		while (done < i)
			raw_sleep_ms(1);
		printf("WOKEN tid=%d waker=%d wake_ns=%lu ran_ns=%lu\n", sleeper_tid, my_tid(), wake,
		       (unsigned long)ran);
	}
	fflush(stdout);
	read_byte();
	end = parked = 1;
	raw_set(&turn, n + 1);
	pthread_join(busy, NULL);
	pthread_join(sleeper, NULL);
	return 0;
}

/* ---- moved ------------------------------------------------------------------------------------------- */

static void move_to(int tid, int cpu)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(cpu, &s);
	MUST(!sched_setaffinity(tid, sizeof(s), &s));
}

static void *compute_on(void *arg)
{
	pin((int)(long)arg);
	while (!end)
		;
	return NULL;
}

static void *compute_and_sleep(void *arg)
{
	sleeper_tid = my_tid();
	while (!end) {
		for (uint64_t until = now_ns() + 4000000; now_ns() < until;)
			;
		raw_sleep_ms(30);
	}
	return arg;
}

static int moves(int seconds)
{
	pthread_t busy[2], sleeper;
	struct sched_param first = {.sched_priority = 1};
	read_byte();
	for (long i = 0; i < 2; i++)
		MUST(!pthread_create(&busy[i], NULL, compute_on, (void *)i));
	MUST(!pthread_create(&sleeper, NULL, compute_and_sleep, NULL));
	while (!sleeper_tid)
		raw_sleep_ms(1);
	(void)sched_setscheduler(0, SCHED_FIFO, &first);
	uint64_t until = now_ns() + (uint64_t)seconds * 1000000000;
	for (int i = 0; now_ns() < until; i++) {
		move_to(sleeper_tid, i & 1);
		raw_sleep_ms(1);
	}
	end = 1;
	pthread_join(sleeper, NULL);
	printf("MOVED tid=%d\n", sleeper_tid);
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		pthread_join(busy[i], NULL);
	read_byte();
	return 0;
}

int main(int argc, char **argv)
{
	MUST(argc == 3);
	if (!strcmp(argv[1], "moved"))
		return moves(atoi(argv[2]));
	return strcmp(argv[1], "load") ? wakes(atoi(argv[2])) : load(atoi(argv[2]));
}
