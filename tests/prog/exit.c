/* exit HOW: a wait, then an end of this kind.  What was recorded before it must be there after every one of them. */
#include "prog.h"

#include <signal.h>
#include <stdlib.h>

static int code = 5;
static volatile int *volatile nowhere = (volatile int *)8;

static void handler(int n) { (void)n; }
static volatile int said; /* what it is to find is said: the end stops recording at once */
static void *exiting(void *arg)
{
	(void)arg;
	while (!said)
		raw(SYS_sched_yield);
	exit(code);
}
static void *lasting(void *arg)
{
	(void)arg;
	raw_sleep_ms(50); /* the process ends with this thread */
	return NULL;
}

static void waits(void)
{
	struct timespec ms = {0, 2000000};
	before();
	int r = nanosleep(&ms, NULL);
	after();
	expect("nanosleep", RESULT(r), "%s", "");
}

static void thread(void *(*f)(void *))
{
	pthread_t t;
	before();
	MUST(!pthread_create(&t, NULL, f, NULL));
	after();
	expect("pthread_create", 0, "%s", "");
	fflush(stdout);
	said = 1;
	if (f == exiting)
		pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	signal(SIGUSR1, handler);
	waits();
	/* how: 1 exit, 2 _exit, 3 signal, 5 ended unseen; d9 run alone sees signals */
	printf("END %s\n", how);
	fflush(stdout);
	if (!strcmp(how, "return"))
		return code;
	if (!strcmp(how, "exit"))
		exit(code);
	if (!strcmp(how, "_exit"))
		_exit(code);
	if (!strcmp(how, "_Exit"))
		_Exit(code);
	if (!strcmp(how, "quick_exit"))
		quick_exit(code);
	if (!strcmp(how, "exit-in-thread"))
		thread(exiting);
	if (!strcmp(how, "pthread_exit")) {
		thread(lasting);
		pthread_exit(NULL);
	}
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		*nowhere = 1;
	if (!strcmp(how, "kill"))
		raw(SYS_kill, raw(SYS_getpid), SIGKILL);
	if (!strcmp(how, "exit_group"))
		raw(SYS_exit_group, code);
	return 97;
}
