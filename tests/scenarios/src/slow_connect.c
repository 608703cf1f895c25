/* A thread connects to a server whose queue is full; the event loop idles.  The kernel tries again after a second. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in at;
static double took;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
static int client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) ? -1 : fd;
}
static void *job(void *arg)
{
	double t = now();
	if (client() < 0)
		return arg;
	took = now() - t;
	return NULL;
}

int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), ep = epoll_create1(0);
	socklen_t n = sizeof(at);
	struct epoll_event ev = {.events = EPOLLIN};
	pthread_t t;
	at.sin_family = AF_INET;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(listener, (struct sockaddr *)&at, sizeof(at));
	listen(listener, 0);
	getsockname(listener, (struct sockaddr *)&at, &n);
	client(); /* the queue is full with it */
	pthread_create(&t, NULL, job, NULL);
	for (int i = 0; i < 30; i++)
		epoll_wait(ep, &ev, 1, 10);
	close(accept(listener, NULL, NULL));
	for (int i = 0; i < 20; i++)
		epoll_wait(ep, &ev, 1, 10);
	pthread_join(t, NULL);
	printf("TRUTH connect_ms=%.0f\n", took);
	return took < 300;
}
