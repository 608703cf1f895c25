/*
 * memory HOW [MS]: what a program does to its own memory, and what it must get then as it would alone.  Prints what it got, ends with 7.
 *   setrlimit, setrlimit64, prlimit, prlimit64, raw, raw-prlimit   40 MiB under a limit of 100 on the address space, in it, in a forked
 *                child and in what is executed there
 *   child        the same, in a forked child that has made no other call; its parent waits
 *   vfork        a vfork child sets the limit; its parent goes on being recorded
 *   data         2 MiB under a limit of 4 on its data
 *   threads, handler, open   the limit is set where the recorder cannot go: by one thread of two, in a signal handler, inside a call
 *   once         in a routine of pthread_once, where it can
 *   other        the limit of another process
 *   lock HOW LIMIT MS   mlockall: HOW of `now`, `later`, `on-fault`, `raw`, joined by +; LIMIT in KiB: as nobody, who may lock so much
 */
#include "prog.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MIB (1ul << 20)
static const char *how;
static rlim_t limit = 100 * MIB;
static __rlimit_resource_t what = RLIMIT_AS;

static int lower(pid_t pid)
{
	struct rlimit l = {limit, RLIM_INFINITY};
	struct rlimit64 l64 = {limit, RLIM64_INFINITY};
	if (!strcmp(how, "setrlimit64"))
		return setrlimit64(what, &l64);
	if (!strcmp(how, "prlimit") || pid)
		return prlimit(pid, what, &l, NULL);
	if (!strcmp(how, "prlimit64"))
		return prlimit64(getpid(), what, &l64, NULL);
	if (!strcmp(how, "raw"))
		return (int)syscall(SYS_setrlimit, what, &l);
	if (!strcmp(how, "raw-prlimit"))
		return (int)syscall(SYS_prlimit64, 0, what, &l64, NULL);
	return setrlimit(what, &l);
}

/* Is so much to be had? */
static int fits(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	munmap(p, n);
	return 1;
}

static void say(const char *where, int r, size_t n)
{
	struct rlimit now;
	MUST(!getrlimit(what, &now));
	printf("%s: %d, limit %lu, %zu MiB %s\n", where, r, now.rlim_cur / MIB, n / MIB,
	       fits(n) ? "fit" : "do not fit");
	fflush(stdout);
}

static void ends_with(pid_t pid, int code)
{
	int status;
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	printf("child: %d\n", WIFEXITED(status) && WEXITSTATUS(status) == code);
}

/* Whatever the program does next still works. */
static void go_on(size_t n)
{
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		poll(NULL, 0, 1);
		say("forked", 0, n);
		execl("/proc/self/exe", "memory", "executed", NULL);
		_exit(1);
	}
	ends_with(pid, 7);
	usleep(1000);
	fopen("/nowhere", "r");
}

static void alone(size_t n)
{
	int r = lower(0);
	say("alone", r, n);
	go_on(n);
}

static void child(void)
{
	pid_t pid = fork();
	if (!pid) {
		int r = lower(0);
		say("child", r, 40 * MIB);
		go_on(40 * MIB);
		_exit(3);
	}
	ends_with(pid, 3);
	usleep(1000);
}

static void vforked(void)
{
	pid_t pid = vfork();
	if (!pid)
		_exit(lower(0) ? 1 : 3);
	ends_with(pid, 3);
	usleep(1000);
	say("parent", 0, 200 * MIB);
}

static void *waits(void *arg)
{
	struct pollfd fd = {.fd = *(int *)arg, .events = POLLIN};
	poll(&fd, 1, -1);
	return NULL;
}
static void threads(void)
{
	pthread_t t;
	int ends[2];
	MUST(!pipe(ends) && !pthread_create(&t, NULL, waits, ends));
	raw_sleep_ms(20);
	limit = 300 * MIB;
	int r = lower(0);
	say("thread", r, 40 * MIB);
	MUST(write(ends[1], "x", 1) == 1 && !pthread_join(t, NULL));
	usleep(1000);
}

static void on_signal(int n)
{
	(void)n;
	limit = 300 * MIB;
	say("handler", lower(0), 40 * MIB);
}
static void handler(void)
{
	signal(SIGUSR1, on_signal);
	poll(NULL, 0, 1);
	raise(SIGUSR1);
	usleep(1000);
}

static void once(void)
{
	limit = 300 * MIB;
	say("once", lower(0), 40 * MIB);
}
static void in_once(void)
{
	static pthread_once_t o = PTHREAD_ONCE_INIT;
	pthread_once(&o, once);
	usleep(1000);
}

static ssize_t cookie_write(void *cookie, const char *p, size_t n)
{
	(void)cookie, (void)p;
	once();
	return (ssize_t)n;
}
static void open_call(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = cookie_write});
	MUST(f && fputc('x', f) == 'x' && !fflush(f));
	usleep(1000);
}

static void other(void)
{
	pid_t pid = fork();
	if (!pid)
		for (;;)
			(void)raw(SYS_pause);
	int r = lower(pid);
	say("other", r, 200 * MIB);
	kill(pid, SIGKILL);
	MUST(waitpid(pid, NULL, 0) == pid);
	usleep(1000);
}

/* ---- mlockall ------------------------------------------------------------------------------------------- */

static long locked_kib(void)
{
	char line[200];
	long n = -1;
	FILE *f = fopen("/proc/self/status", "r");
	MUST(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmLck:", 6))
			n = atol(line + 6);
	fclose(f);
	return n;
}

/* How many of the pages are in memory. */
static int present(char *p, size_t pages)
{
	unsigned char map[64];
	int n = 0;
	MUST(pages <= sizeof(map) && !mincore(p, pages * 4096, map));
	for (size_t i = 0; i < pages; i++)
		n += map[i] & 1;
	return n;
}
static char *pages_of_mine(int access)
{
	char *p = mmap(NULL, 64 * 4096, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(p != MAP_FAILED);
	return p;
}

static int lock_all(const char *words)
{
	int flags = (strstr(words, "now") ? MCL_CURRENT : 0) | (strstr(words, "later") ? MCL_FUTURE : 0) |
		    (strstr(words, "on-fault") ? MCL_ONFAULT : 0) | (strstr(words, "wrong") ? 64 : 0);
	errno = 0;
	int r = strstr(words, "raw") ? (int)syscall(SYS_mlockall, flags) : mlockall(flags);
	printf("%s: %d, %s\n", words, r, strerror(errno));
	return r;
}

static void settle(int ms)
{
	for (; ms > 0; ms -= 100)
		poll(NULL, 0, 100);
}

static void lock(const char *words, const char *limit_kib, int ms)
{
	char *before = pages_of_mine(PROT_READ | PROT_WRITE), *none = pages_of_mine(PROT_NONE);
	if (atol(limit_kib)) {
		struct rlimit l = {(rlim_t)atol(limit_kib) * 1024, (rlim_t)atol(limit_kib) * 1024};
		if (setrlimit(RLIMIT_MEMLOCK, &l))
			exit(77);
		MUST(!setresuid(65534, 65534, 65534));
	}
	printf("locked before: %ld\n", locked_kib());
	char *first = strdup(words), *second = strchr(first, ',');
	if (second)
		*second++ = 0;
	int r = lock_all(first);
	if (second)
		r = lock_all(second);
	printf("present: %d\n", present(before, 64));
	long kib = locked_kib();
	/* What the libraries of this machine come to is in it. */
	printf("LOCKED kib=%ld\n", kib);
	char *after = pages_of_mine(PROT_READ | PROT_WRITE);
	printf("of a later one: %ld KiB, %d present\n", locked_kib() - kib, present(after, 64));
	fflush(stdout);
	settle(ms);
	pid_t pid = fork();
	if (!pid) {
		poll(NULL, 0, 1);
		printf("child: %ld\n", locked_kib());
		fflush(stdout);
		_exit(5);
	}
	ends_with(pid, 5);
	printf("LATER kib=%ld\n", locked_kib());
	MUST(!munlockall());
	printf("after munlockall: %ld, %d\n", locked_kib(), !r);
	munmap(none, 64 * 4096);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "lock")) {
		lock(argv[2], argv[3], atoi(argv[4]));
		return 7;
	}
	how = argc > 1 ? argv[1] : "";
	for (int ms = argc > 2 ? atoi(argv[2]) : 0; ms > 0; ms -= 100)
		poll(NULL, 0, 100); /* a recorder without d9 run has a thread of its own by then */
	poll(NULL, 0, 7);
	if (!strcmp(how, "executed")) {
		struct rlimit now;
		MUST(!getrlimit(RLIMIT_AS, &now));
		say("executed", 0, now.rlim_cur == RLIM_INFINITY ? 1 * MIB : 40 * MIB);
		usleep(1000);
	} else if (!strcmp(how, "data")) {
		what = RLIMIT_DATA;
		limit = 4 * MIB;
		alone(2 * MIB);
	} else if (!strcmp(how, "child"))
		child();
	else if (!strcmp(how, "vfork"))
		vforked();
	else if (!strcmp(how, "threads"))
		threads();
	else if (!strcmp(how, "handler"))
		handler();
	else if (!strcmp(how, "open"))
		open_call();
	else if (!strcmp(how, "once"))
		in_once();
	else if (!strcmp(how, "other"))
		other();
	else
		alone(40 * MIB);
	return 7;
}
