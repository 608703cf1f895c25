// Event loop calls open(2) on a slow path (a FIFO without a writer stands in for a dead network disk).
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
static char path[256];
static void *later(void *a)
{
	usleep(350000);
	close(open(path, O_WRONLY));
	return a;
}
int main(int argc, char **argv)
{
	snprintf(path, 256, "%s/fifo", argc > 1 ? argv[1] : ".");
	mkfifo(path, 0600);
	int tf = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec it = {{0, 10000000}, {0, 10000000}};
	timerfd_settime(tf, 0, &it, 0);
	int ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN};
	epoll_ctl(ep, EPOLL_CTL_ADD, tf, &e);
	pthread_t t;
	pthread_create(&t, 0, later, 0);
	double worst = 0, last = now();
	for (int i = 0; i < 30; i++) {
		epoll_wait(ep, &e, 1, -1);
		unsigned long long x;
		(void)!read(tf, &x, 8);
		double n = now();
		if (n - last > worst)
			worst = n - last;
		last = n;
		if (i == 5)
			close(open(path, O_RDONLY));
	}
	pthread_join(t, 0);
	unlink(path);
	printf("TRUTH blocked_in=open worst_10ms_tick_gap_ms=%.0f\n", worst);
	return 0;
}
