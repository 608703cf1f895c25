/*
 * Four kinds of fork beside three threads that never stop recording.  Every process says how many calls each of its threads
 * made: so many must be in the recording under its own pid.
 */
#include "prog.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#define ROUNDS 50
#define WRITER_CALLS 100000

static volatile int stop;

/* One line in one write: children share the pipe. */
static void say(int n)
{
	char line[80];
	int len =
		snprintf(line, sizeof(line), "COUNT pid=%d tid=%d hook=poll n=%d\n", (int)raw(SYS_getpid), my_tid(), n);
	MUST(raw(SYS_write, 1, line, len) == len);
}

static int calls(int n)
{
	for (int i = 0; i < n; i++)
		poll(NULL, 0, 0);
	return n;
}

static void *writer(void *arg)
{
	int n = 0;
	(void)arg;
	while (!stop && n < WRITER_CALLS)
		n += calls(10);
	say(n);
	return NULL;
}

static pid_t make(int kind)
{
	switch (kind) {
	case 0:
		return fork();
	case 1:
		return _Fork();
	case 2:
		return (pid_t)raw(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	default:
		return (pid_t)raw(SYS_fork);
	}
}

static void await(pid_t p)
{
	int status;
	MUST(p > 0 && raw(SYS_wait4, p, &status, 0, 0) == p && !status);
}

static void child(int round, int kind)
{
	say(calls(round == 7 ? 3000 : 100 + round));
	if (round % 10 == 3) { /* and its own child */
		pid_t p = make((kind + 1) % 4);
		if (!p) {
			say(calls(50));
			raw(SYS_exit_group, 0);
		}
		await(p);
	}
	raw(SYS_exit_group, 0);
}

int main(void)
{
	pthread_t t[3];
	int n = 0;
	for (int i = 0; i < 3; i++)
		MUST(!pthread_create(&t[i], NULL, writer, NULL));
	for (int round = 0; round < ROUNDS; round++)
		for (int kind = 0; kind < 4; kind++) {
			n += calls(20);
			pid_t p = make(kind);
			if (!p)
				child(round, kind);
			n += calls(20);
			await(p);
		}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	say(n);
	return 0;
}
