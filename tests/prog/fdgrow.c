/*
 * fdgrow: a program with one thread grows its table of descriptors past 16384 while the recorder drains beside it.  The kernel
 * makes every growth of a table that two threads share wait; here none may: no call gives up the CPU by itself.
 */
#include "prog.h"

#include <sys/resource.h>
#include <sys/socket.h>

static long switches(void)
{
	struct rusage u;
	MUST(raw(SYS_getrusage, RUSAGE_THREAD, &u) == 0);
	return u.ru_nvcsw;
}

int main(void)
{
	struct rlimit r;
	MUST(!getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = r.rlim_max < 40000 ? r.rlim_max : 40000;
	MUST(!setrlimit(RLIMIT_NOFILE, &r));
	if (r.rlim_cur < 18000) {
		printf("SKIP no more than %lu descriptors are allowed\n", r.rlim_cur);
		return 0;
	}
	for (int i = 0; i < 15; i++)
		usleep(100000); /* event waits and sleeps are where the drain thread is started */
	int waited = 0, max = 0, worst = 0;
	int s = (int)raw(SYS_socket, AF_UNIX, SOCK_DGRAM, 0);
	while (max < (int)r.rlim_cur - 100) {
		long before = switches();
		int fd = max % 1000 == 7 ? socket(AF_UNIX, SOCK_DGRAM, 0) : dup(s);
		long more = switches() - before;
		MUST(fd >= 0);
		max = fd;
		if (more) {
			waited++;
			worst = fd;
		}
	}
	printf("GROWN max=%d waited=%d worst=%d\n", max, waited, worst);
	return 0;
}
