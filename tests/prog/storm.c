/*
 * storm MS abi|hook: three kinds of signals hit a thread that records, their handlers record too, inside each other.  What was
 * issued is counted here; what was kept and what was counted as lost must add up to it exactly.
 */
#include "prog.h"
#include "shim/d9.h"

#include <signal.h>

static volatile uint64_t issued, stop;
static int victim, abi;
static const int signals[3] = {SIGUSR1, SIGUSR2, SIGALRM};

/* Recorded one by one with D9_IO_MIN_US=0; no place where a drain thread is started. */
static void call(void)
{
	char c;
	if (abi)
		D9_CALL(wake, 1, 2, 3);
	else
		(void)read(-1, &c, 1);
	__asm__ volatile("addq $1,%0" : "+m"(issued) : : "cc"); /* this thread's handlers alone add here too */
}

static void handler(int n)
{
	int saved = errno;
	(void)n;
	for (int i = 0; i < 3; i++)
		call();
	errno = saved;
}

static void *shooter(void *arg)
{
	(void)arg;
	for (unsigned i = 0; !stop; i++) {
		(void)raw(SYS_tgkill, raw(SYS_getpid), victim, signals[i % 3]);
		for (volatile int spin = 0; spin < (int)(i * 7 % 400); spin++)
			;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (uint64_t)(argc > 1 ? atoi(argv[1]) : 500) * 1000000;
	pthread_t t;
	victim = my_tid();
	abi = argc > 2 && !strcmp(argv[2], "abi");
	(void)d9_abi_get();
	for (int i = 0; i < 3; i++) {
		struct sigaction sa = {.sa_handler = handler};
		MUST(!sigaction(signals[i], &sa, NULL));
	}
	MUST(!pthread_create(&t, NULL, shooter, NULL));
	while (now_ns() < end)
		call();
	stop = 1;
	pthread_join(t, NULL);
	printf("ISSUED tid=%d n=%lu\n", victim, issued);
	return 0;
}
