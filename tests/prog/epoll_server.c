/*
 * A single-threaded epoll server that counts what it does and prints it at the end: the truth that a recording of
 * it must equal.  usage: epoll_server PORT.  Stands still for a while on a request for /slow, ends on
 * one for /quit.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long waits, accepts, reads, writes, controls;

static int handle(int ep, int fd)
{
	char in[4096], out[256], path[64] = "";
	ssize_t n = read(fd, in, sizeof(in) - 1);
	reads++;
	if (n <= 0) {
		epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
		controls++;
		close(fd);
		return 0;
	}
	in[n] = 0;
	sscanf(in, "GET %63s", path);
	if (!strcmp(path, "/slow"))
		usleep(300000);
	int len = snprintf(out, sizeof(out), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(path), path);
	if (write(fd, out, (size_t)len) != len)
		return 1;
	writes++;
	return !strcmp(path, "/quit");
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, ls = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ep = epoll_create1(EPOLL_CLOEXEC), quit = 0;
	a.sin_port = htons((unsigned short)(argc > 1 ? atoi(argv[1]) : 0));
	setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(ls, (struct sockaddr *)&a, sizeof(a)) || listen(ls, 64))
		return 1;
	struct epoll_event e = {.events = EPOLLIN, .data.fd = ls};
	epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
	controls++;
	while (!quit) {
		struct epoll_event ev[16];
		int n = epoll_wait(ep, ev, 16, -1);
		waits++;
		for (int i = 0; i < n && !quit; i++) {
			if (ev[i].data.fd != ls) {
				quit = handle(ep, ev[i].data.fd);
				continue;
			}
			int fd = accept4(ls, NULL, NULL, SOCK_CLOEXEC);
			accepts++;
			e = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
			epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
			controls++;
		}
	}
	printf("TRUTH tid=%ld epoll_wait=%lu accept4=%lu read=%lu write=%lu epoll_ctl=%lu\n", syscall(SYS_gettid),
	       waits, accepts, reads, writes, controls);
	return 0;
}
