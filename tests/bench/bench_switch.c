/*
 * Two threads on one CPU pass a byte to and fro: each pass is a wake and a switch.  For each byte on stdin: so many passes, and
 * a line with the nanoseconds of one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 30000

static int to[2], fro[2];

static void *answer(void *arg)
{
	char c;
	(void)arg;
	while (read(to[0], &c, 1) == 1 && write(fro[1], &c, 1) == 1)
		;
	return NULL;
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
	pthread_t t;
	cpu_set_t s;
	char c;
	CPU_ZERO(&s);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &s);
	if (sched_setaffinity(0, sizeof(s), &s) || pipe2(to, O_CLOEXEC) || pipe2(fro, O_CLOEXEC) ||
	    pthread_create(&t, NULL, answer, NULL))
		return 1;
	while (read(0, &c, 1) == 1) {
		double from = now_ns();
		for (int i = 0; i < ROUNDS; i++)
			if (write(to[1], &c, 1) != 1 || read(fro[0], &c, 1) != 1)
				return 1;
		printf("%.1f\n", (now_ns() - from) / (2 * ROUNDS));
		fflush(stdout);
	}
	return 0;
}
