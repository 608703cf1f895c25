/* Looking up names: numbers, names of the files here, and what is refused.  A lookup over the network is in test_truth.py. */
#include "prog.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

static struct sockaddr_in loopback = {.sin_family = AF_INET};
static char space[1024];

#define FAST(hook, call, result)                   \
	do {                                       \
		long r = (long)(call);             \
		(void)r;                           \
		fast(hook, result, "%s", "fd=-1"); \
	} while (0)

static void at_once(void)
{
	struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST}, *ai = NULL, bad = {.ai_flags = ~0};
	struct hostent h, *found = NULL;
	char host[64], service[32];
	int herr = 0;
	FAST("getaddrinfo", getaddrinfo("127.0.0.1", "80", &numeric, &ai), r);
	MUST(ai && ((struct sockaddr_in *)ai->ai_addr)->sin_port == htons(80));
	freeaddrinfo(ai);
	FAST("getaddrinfo", getaddrinfo("no number", NULL, &numeric, &ai), r == EAI_NONAME ? -ENOENT : 1);
	FAST("getaddrinfo", getaddrinfo("x", NULL, &bad, &ai), r == EAI_BADFLAGS ? -EINVAL : 1);
	FAST("getnameinfo",
	     getnameinfo((struct sockaddr *)&loopback, sizeof(loopback), host, sizeof(host), service, sizeof(service),
			 NI_NUMERICHOST | NI_NUMERICSERV),
	     r);
	MUST(!strcmp(host, "127.0.0.1"));
	FAST("getnameinfo",
	     getnameinfo((struct sockaddr *)&loopback, sizeof(loopback), host, 1, NULL, 0, NI_NUMERICHOST),
	     r == EAI_OVERFLOW ? -EOVERFLOW : 1);
	FAST("gethostbyname", gethostbyname("127.0.0.1"), r ? 0 : 1);
	FAST("gethostbyname2", gethostbyname2("127.0.0.1", AF_INET), r ? 0 : 1);
	FAST("gethostbyname_r", gethostbyname_r("127.0.0.1", &h, space, sizeof(space), &found, &herr), -r);
	MUST(found == &h);
	FAST("gethostbyname_r", gethostbyname_r("127.0.0.1", &h, space, 1, &found, &herr), -r); /* -ERANGE */
	FAST("gethostbyname2_r", gethostbyname2_r("127.0.0.1", AF_INET, &h, space, sizeof(space), &found, &herr), -r);
	FAST("gethostbyaddr", gethostbyaddr("x", 1, AF_INET), h_errno == HOST_NOT_FOUND ? -ENOENT : -EIO);
	errno = 4711;
	FAST("gethostbyaddr_r", gethostbyaddr_r("x", 1, AF_INET, &h, space, sizeof(space), &found, &herr),
	     r                        ? -r
	     : herr == HOST_NOT_FOUND ? -ENOENT
				      : -EIO);
}

/* A name that the files of this host have: how long that takes is not known. */
static void by_files(void)
{
	struct addrinfo *ai = NULL;
	FAST("getaddrinfo", getaddrinfo("localhost", NULL, NULL, &ai), r);
	MUST(ai);
	freeaddrinfo(ai);
}

/* A server answers after 50 ms and more; it knows d9.test alone. */
static void by_network(void)
{
	struct addrinfo inet = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *ai = NULL;
	struct hostent h, *found = NULL;
	int herr = 0;
#define LOOKUP(hook, call, result)                                 \
	do {                                                       \
		before();                                          \
		long r = (long)(call);                             \
		after();                                           \
		prog_times.hold0 = 0, prog_times.hold1 = 50000000; \
		(void)r;                                           \
		expect(hook, result, "%s", "fd=-1");               \
	} while (0)
	LOOKUP("getaddrinfo", getaddrinfo("d9.test", NULL, &inet, &ai), r);
	MUST(ai && ((struct sockaddr_in *)ai->ai_addr)->sin_addr.s_addr == htonl(0xc0000201));
	LOOKUP("getaddrinfo", getaddrinfo("unknown.test", NULL, &inet, &ai), r == EAI_NONAME ? -ENOENT : 1);
	LOOKUP("gethostbyname", gethostbyname("d9.test"), r ? 0 : 1);
	LOOKUP("gethostbyname2", gethostbyname2("d9.test", AF_INET), r ? 0 : 1);
	LOOKUP("gethostbyname_r", gethostbyname_r("unknown.test", &h, space, sizeof(space), &found, &herr),
	       r                        ? -r
	       : herr == HOST_NOT_FOUND ? -ENOENT
					: 1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "network")) {
		by_network();
		return 0;
	}
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at_once();
	by_files();
	return 0;
}
