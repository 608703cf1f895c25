/* A thread looks a name up at a server that answers late: its own, on 127.9.53.1, which the test names in resolv.conf. */
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS 400

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
/* Answers "no such name" to whatever is asked. */
static void *server(void *arg)
{
	unsigned char m[512];
	struct sockaddr_in from;
	int fd = *(int *)arg;
	for (;;) {
		socklen_t n = sizeof(from);
		ssize_t got = recvfrom(fd, m, sizeof(m), 0, (struct sockaddr *)&from, &n);
		if (got < 12)
			continue;
		struct timespec t = {0, LATE_MS * 1000000L};
		nanosleep(&t, NULL);
		m[2] = 0x81, m[3] = 0x83;
		sendto(fd, m, (size_t)got, 0, (struct sockaddr *)&from, n);
	}
	return NULL;
}
static double took;
static void *job(void *arg)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *r;
	double t = now();
	if (!getaddrinfo("name.that.is.not.there.test.", "80", &hints, &r))
		freeaddrinfo(r);
	took = now() - t;
	return arg;
}

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53)};
	at.sin_addr.s_addr = htonl(0x7f093501);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), ep = epoll_create1(0);
	struct epoll_event ev;
	pthread_t t, s;
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return 77;
	pthread_create(&s, NULL, server, &fd);
	pthread_create(&t, NULL, job, NULL);
	for (int i = 0; i < 60; i++)
		epoll_wait(ep, &ev, 1, 10);
	pthread_join(t, NULL);
	printf("TRUTH lookup_ms=%.0f\n", took);
	return took < LATE_MS;
}
