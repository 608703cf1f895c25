/* burn: computes for 30 ms of its own CPU time, then waits: how long it ran must be on record. */
#include "prog.h"

#include <poll.h>

static uint64_t cpu_ns(void)
{
	struct timespec t;
	MUST(raw(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(void)
{
	poll(NULL, 0, 0);
	while (cpu_ns() < 30000000)
		;
	uint64_t min = cpu_ns();
	poll(NULL, 0, 2);
	poll(NULL, 0, 0);
	printf("BURNT tid=%d min_ns=%lu max_ns=%lu\n", my_tid(), min, cpu_ns());
	return 0;
}
