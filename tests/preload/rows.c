/*
 * Programs that preloaded libraries have broken, each by its own name: `rows WHAT`.  Prints "ok WHAT" and exits 0 if what it
 * was promised by libc and the kernel still holds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MUST(x)                                                               \
	do {                                                                  \
		if (!(x)) {                                                   \
			fprintf(stderr, "rows: line %d: %s\n", __LINE__, #x); \
			exit(1);                                              \
		}                                                             \
	} while (0)

/* An event wait late enough that a recorder without d9 run has its own thread by then. */
static void settle(void)
{
	for (int i = 0; i < 14; i++)
		poll(NULL, 0, 100);
}

extern int constructor_waited(void); /* constructor.c, linked */
static void constructor(void) { MUST(constructor_waited() == 3); }

/* A library whose constructor waits for a thread that makes hooked calls, while the loader's lock is held. */
static void constructor_thread(void)
{
	void *lib = dlopen("librows_thread.so", RTLD_NOW);
	MUST(lib);
	MUST(*(int *)dlsym(lib, "thread_ran") == 1);
	dlclose(lib);
}

static void runpath(void) { MUST(dlopen("librows_plugin.so", RTLD_NOW)); }

static pthread_key_t first, last;
static int late_calls;
static void late(void *p)
{
	usleep(1);
	poll(NULL, 0, 0);
	late_calls++;
	if (p == &first)
		pthread_setspecific(last, &last); /* once more, after all others */
}
static void *with_keys(void *arg)
{
	usleep(1);
	pthread_setspecific(last, &first);
	return arg;
}
static void destructor(void)
{
	pthread_t t;
	MUST(!pthread_key_create(&last, late));
	for (int i = 0; i < 50; i++)
		MUST(!pthread_create(&t, NULL, with_keys, NULL) && !pthread_join(t, NULL));
	MUST(late_calls == 100);
}

static void on_alarm(int n)
{
	(void)n;
	int saved = errno;
	usleep(1);
	poll(NULL, 0, 0);
	errno = saved;
}
static void every_call(void)
{
	int fd = open("/dev/null", O_RDWR), pair[2], status;
	char b = 0;
	struct epoll_event ev = {.events = EPOLLIN};
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec past = {0, 0};
	int ep = epoll_create1(0);
	MUST(fd >= 0 && ep >= 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	MUST(!epoll_ctl(ep, EPOLL_CTL_ADD, pair[0], &ev));
	MUST(write(fd, &b, 1) == 1 && read(fd, &b, 1) == 0 && send(pair[1], &b, 1, 0) == 1);
	MUST(epoll_wait(ep, &ev, 1, 1000) == 1 && recv(pair[0], &b, 1, 0) == 1);
	MUST(epoll_wait(ep, &ev, 1, 2) == 0);
	MUST(!pthread_mutex_lock(&m) && pthread_cond_timedwait(&c, &m, &past) == ETIMEDOUT &&
	     !pthread_mutex_unlock(&m));
	usleep(1500);
	pid_t child = fork();
	if (!child) {
		usleep(1);
		_exit(3);
	}
	MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
	close(fd), close(ep), close(pair[0]), close(pair[1]);
}
static void *small_stack(void *arg)
{
	static _Thread_local char alternate[8192];
	stack_t ss = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	every_call();
	MUST(!sigaltstack(&ss, NULL));
	raise(SIGUSR1);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	return arg;
}
static void frame(void)
{
	pthread_t t;
	pthread_attr_t a;
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &sa, NULL);
	pthread_attr_init(&a);
	/* the least that this libc allows, and what the array above takes of it */
	MUST(!pthread_attr_setstacksize(&a, 16384 + 8192));
	for (int i = 0; i < 20; i++)
		MUST(!pthread_create(&t, &a, small_stack, NULL) && !pthread_join(t, NULL));
}

static pthread_barrier_t all;
static void *one_of_many(void *arg)
{
	usleep(1);
	poll(NULL, 0, 0);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	return arg;
}
static long resident_kib(void)
{
	long total, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	MUST(f && fscanf(f, "%ld %ld", &total, &pages) == 2);
	fclose(f);
	return pages * 4;
}
/* The stacks of the threads themselves are 12 KiB each. */
static void buffer(void)
{
	enum { N = 1500 };
	static pthread_t t[N];
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	pthread_barrier_init(&all, NULL, N + 1);
	long before = resident_kib();
	for (int i = 0; i < N; i++)
		MUST(!pthread_create(&t[i], &a, one_of_many, NULL));
	pthread_barrier_wait(&all);
	long each = (resident_kib() - before) / N;
	pthread_barrier_wait(&all);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	MUST(each < 32);
}

/* A process of one thread may make a user namespace, and a signal that it blocks is its own to wait for. */
static void thread(void)
{
	sigset_t s;
	int n = 0;
	sigemptyset(&s);
	sigaddset(&s, SIGTERM);
	sigprocmask(SIG_BLOCK, &s, NULL);
	settle();
	MUST(!kill(getpid(), SIGTERM));
	usleep(10000);
	MUST(!sigwait(&s, &n) && n == SIGTERM);
	MUST(!unshare(CLONE_NEWUSER));
}

static volatile int stop;
static void *busy(void *arg)
{
	while (!stop) {
		usleep(0);
		sched_yield();
	}
	return arg;
}
static void child(void)
{
	usleep(1);
	poll(NULL, 0, 0);
	_exit(7);
}
static void wait_for(pid_t pid)
{
	int status;
	MUST(pid > 0);
	for (int ms = 0; waitpid(pid, &status, WNOHANG) != pid; ms++) {
		if (ms > 5000) {
			kill(pid, SIGKILL);
			MUST(!"a child hangs");
		}
		struct timespec t = {0, 1000000};
		syscall(SYS_nanosleep, &t, NULL);
	}
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
extern pid_t _Fork(void);
#pragma weak _Fork
static void lock(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		MUST(!pthread_create(&t[i], NULL, busy, NULL));
	for (int i = 0; i < 200; i++) {
		pid_t pid = i % 3 == 0 || !_Fork ? fork() : i % 3 == 1 ? _Fork() : (pid_t)syscall(SYS_fork);
		if (!pid)
			child();
		wait_for(pid);
	}
	char *argv[] = {"sh", "-c", "exit 7", NULL};
	extern char **environ;
	for (int i = 0; i < 10; i++) {
		pid_t pid;
		MUST(!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
		wait_for(pid);
		pid = vfork();
		if (!pid) {
			execv("/bin/sh", argv);
			_exit(1);
		}
		wait_for(pid);
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

/* What the program was given is what it and its children have. */
static void environment(void)
{
	extern char **environ;
	for (char **e = environ; *e; e++)
		puts(*e);
	fflush(stdout);
	MUST(system("env") == 0);
}

static void check_descriptors(void)
{
	int a = open("/dev/null", O_RDONLY), b = dup(a), pair[2];
	char text[64];
	usleep(1);
	MUST(a >= 0 && b == a + 1);
	for (int fd = a; fd < 1024; fd++)
		close(fd);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && pair[0] == a && pair[1] == b);
	for (int i = 0; i < 20; i++)
		usleep(1);
	settle();
	MUST(recv(pair[0], text, sizeof(text), MSG_DONTWAIT) == -1 &&
	     recv(pair[1], text, sizeof(text), MSG_DONTWAIT) == -1);
	close(pair[0]), close(pair[1]);
}
static void descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY);
	MUST(fd == 3);
	close(fd);
	check_descriptors();
}
/* Closes its standard descriptors and starts over with them closed: the first that it opens then is 0. */
static void standard(void)
{
	extern char **environ;
	char *argv[] = {"rows", "standard-closed", NULL};
	int status;
	pid_t pid = fork();
	if (!pid) {
		close(0), close(1), close(2);
		execve("/proc/self/exe", argv, environ);
		_exit(1);
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
static void standard_closed(void)
{
	char text[16];
	int fd = open("/dev/null", O_RDWR), pipe_fd[2];
	if (fd != 0 || pipe(pipe_fd) || pipe_fd[0] != 1 || pipe_fd[1] != 2)
		_exit(2);
	for (int i = 0; i < 20; i++)
		usleep(1);
	settle();
	fcntl(1, F_SETFL, O_NONBLOCK);
	_exit(read(1, text, sizeof(text)) == -1 ? 0 : 3); /* nobody wrote into it */
}

static void file(void)
{
	struct rlimit none = {0, 0};
	MUST(!setrlimit(RLIMIT_FSIZE, &none));
	usleep(1);
	settle();
	usleep(1);
}

static volatile int cleaned;
static void clean(void *arg)
{
	(void)arg;
	cleaned = 1;
}
static void *cancelled(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	usleep(60000000);
	pthread_cleanup_pop(0);
	return arg;
}
static void unwind(void)
{
	pthread_t t;
	void *r;
	MUST(!pthread_create(&t, NULL, cancelled, NULL));
	struct timespec ms = {0, 50000000};
	syscall(SYS_nanosleep, &ms, NULL);
	MUST(!pthread_cancel(t) && !pthread_join(t, &r) && r == PTHREAD_CANCELED && cleaned);
}

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static void *locks_with_cancel_pending(void *arg)
{
	pthread_cancel(pthread_self());
	pthread_mutex_lock(&shared); /* no cancellation point */
	pthread_mutex_unlock(&shared);
	cleaned = 1;
	pthread_testcancel();
	return arg;
}
static void cancel(void)
{
	pthread_t t;
	void *r;
	MUST(!pthread_create(&t, NULL, locks_with_cancel_pending, NULL) && !pthread_join(t, &r));
	MUST(r == PTHREAD_CANCELED && cleaned && !pthread_mutex_trylock(&shared));
}

static void error_number(void)
{
	errno = 4711;
	MUST(!usleep(1) && errno == 4711);
	MUST(poll(NULL, 0, 2) == 0 && errno == 4711);
}

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_poll, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
	settle();
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	for (int i = 0; i < 2000; i++)
		usleep(1);
	poll(NULL, 0, 1200);
}

static void no_clock(void)
{
	settle();
	MUST(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	usleep(1);
	poll(NULL, 0, 1200);
}

static ucontext_t main_context, fiber_context;
static void fiber(void)
{
	for (int i = 0; i < 20; i++) {
		/* The frame pointer is a register like any other to who compiles without it. */
		__asm__ volatile("pushq %%rbp\n\tmovq $0xdeadbeef0, %%rbp\n\tmovq %%rsp, %%rbx\n\tandq $-16, %%rsp\n\t"
				 "movl $2000, %%edi\n\tcall usleep@PLT\n\tmovq %%rbx, %%rsp\n\tpopq %%rbp"
				 :
				 :
				 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
		swapcontext(&fiber_context, &main_context);
	}
}
static void frames(void)
{
	static char stack[65536];
	getcontext(&fiber_context);
	fiber_context.uc_stack.ss_sp = stack;
	fiber_context.uc_stack.ss_size = sizeof(stack);
	fiber_context.uc_link = &main_context;
	makecontext(&fiber_context, fiber, 0);
	for (int i = 0; i < 20; i++) {
		swapcontext(&main_context, &fiber_context);
		usleep(1);
	}
}

static void *for_ever(void *arg)
{
	for (;;)
		usleep(0);
	return arg;
}
static void live_threads(void)
{
	pthread_t t;
	for (int i = 0; i < 8; i++)
		MUST(!pthread_create(&t, NULL, for_ever, NULL));
	usleep(5000);
}

static void uninitialised(void) /* for valgrind: waits of all kinds, long enough for their stacks to be taken */
{
	for (int i = 0; i < 5; i++)
		usleep(20000);
	every_call();
	settle();
}

static void nothing(void) { usleep(1); }

static const struct {
	const char *name;
	void (*run)(void);
} rows[] = {
	{"constructor", constructor},
	{"constructor-thread", constructor_thread},
	{"runpath", runpath},
	{"destructor", destructor},
	{"frame", frame},
	{"buffer", buffer},
	{"thread", thread},
	{"lock", lock},
	{"environment", environment},
	{"descriptor", descriptor},
	{"standard", standard},
	{"standard-closed", standard_closed},
	{"file", file},
	{"unwind", unwind},
	{"cancel", cancel},
	{"errno", error_number},
	{"filter", filter},
	{"clock", no_clock},
	{"frames", frames},
	{"exit", live_threads},
	{"uninitialised", uninitialised},
	{"nothing", nothing},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(argv[1], rows[i].name)) {
			rows[i].run();
			char text[64];
			int n = snprintf(text, sizeof(text), "ok %s\n", argv[1]);
			return write(1, text, (size_t)n) == n ? 0 : 1;
		}
	fprintf(stderr, "usage: rows WHAT\n");
	return 2;
}
