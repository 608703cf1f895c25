/* many N: N threads at once, one wait each; then says so, and goes on when it is told to. */
#include "prog.h"

#include <poll.h>

static volatile int go, waited;

static void *run(void *arg)
{
	(void)arg;
	raw_wait(&go, 0);
	poll(NULL, 0, 1);
	if (__atomic_add_fetch(&waited, 1, __ATOMIC_ACQ_REL) % 64 == 0)
		(void)raw(SYS_futex, &waited, FUTEX_WAKE, 1);
	raw_wait(&go, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100, made = 0;
	pthread_attr_t a;
	char c;
	pthread_attr_init(&a);
	MUST(!pthread_attr_setstacksize(&a, 32 << 10));
	for (pthread_t t; made < n && !pthread_create(&t, &a, run, NULL); made++)
		;
	printf("MADE n=%d\n", made);
	fflush(stdout);
	raw_set(&go, 1);
	for (int seen; (seen = waited) < made;) {
		struct timespec ms = {0, 1000000};
		(void)raw(SYS_futex, &waited, FUTEX_WAIT, seen, &ms);
	}
	printf("WAITED\n");
	fflush(stdout);
	(void)raw(SYS_read, 0, &c, 1);
	return 0; /* they end with the process */
}
