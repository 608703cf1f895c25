/*
 * handler own-stack|signal-stack|sleep|cond|sem: a malloc of the program's own is interrupted by a signal, more than a second after
 * the start, and the handler does what a handler may do; or it waits with its lock held.  Prints how often malloc was entered while
 * it was at work.
 */
#include "prog.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

static char heap[1 << 24] __attribute__((aligned(16)));
static size_t given;
static volatile int inside, entered_inside;
static void (*volatile interrupt)(void);

#define SHOWN __attribute__((visibility("default"))) /* libc is to find them */
SHOWN void *malloc(size_t n)
{
	entered_inside += inside != 0;
	inside++;
	size_t at = __atomic_fetch_add(&given, (n + 15) & ~15ul, __ATOMIC_RELAXED);
	if (interrupt) {
		void (*f)(void) = interrupt;
		interrupt = NULL;
		f();
	}
	inside--;
	return at + n <= sizeof(heap) ? heap + at : NULL;
}
SHOWN void *calloc(size_t a, size_t b) { return malloc(a * b); } /* given once, so zero */
SHOWN void free(void *p) { (void)p; }

static void on_child(int sig)
{
	int status, saved = errno;
	(void)sig;
	while (waitpid(-1, &status, WNOHANG) > 0)
		;
	poll(NULL, 0, 0);
	errno = saved;
}

static void by_signal(void) { raise(SIGCHLD); }
static void by_sleep(void) { nanosleep(&(struct timespec){0, 1000}, NULL); }
static void by_cond(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec past = {1, 0};
	pthread_mutex_lock(&m);
	MUST(pthread_cond_timedwait(&c, &m, &past) == ETIMEDOUT);
	pthread_mutex_unlock(&m);
}
static void by_sem(void)
{
	sem_t s;
	struct timespec past = {1, 0};
	MUST(!sem_init(&s, 0, 0) && sem_timedwait(&s, &past) && errno == ETIMEDOUT);
}
static const struct way {
	const char *name;
	void (*interrupt)(void);
} ways[] = {
	{"own-stack", by_signal}, {"signal-stack", by_signal}, {"sleep", by_sleep}, {"cond", by_cond}, {"sem", by_sem}};

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	struct sigaction a = {.sa_handler = on_child, .sa_flags = SA_ONSTACK | SA_NODEFER};
	stack_t s = {.ss_sp = stack, .ss_size = sizeof(stack)};
	unsigned way = 0;
	MUST(argc == 2);
	while (strcmp(argv[1], ways[way].name))
		MUST(++way < sizeof(ways) / sizeof(*ways));
	if (!strcmp(argv[1], "signal-stack"))
		MUST(!sigaltstack(&s, NULL));
	MUST(!sigaction(SIGCHLD, &a, NULL));
	poll(NULL, 0, 0);
	raw_sleep_ms(1300); /* the next wait finds that nobody drains */
	interrupt = ways[way].interrupt;
	void *volatile p = malloc(10); /* volatile: or the compiler knows that nobody needs it */
	MUST(p);
	dprintf(1, "malloc entered while it was at work: %d\n", entered_inside);
	poll(NULL, 0, 0); /* not inside any more: the thread may come */
	raw_sleep_ms(200);
	raw(SYS_exit_group, entered_inside != 0);
}
