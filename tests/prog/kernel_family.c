/*
 * kernel_family crowd N: waits for a byte, then N threads come and go, a few at a time; says who they were.
 * kernel_family late: a thread that is made late, a child, and a thread of the child; says who they were.
 * kernel_family chatter: two threads pass a byte to and fro until the program is killed.
 */
#include "prog.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#define AT_ONCE 8

static void read_byte(void)
{
	char c;
	MUST(raw(SYS_read, 0, &c, 1) == 1);
}

static void *come_and_go(void *arg)
{
	*(int *)arg = my_tid();
	return NULL;
}

static int crowd(int n)
{
	read_byte();
	for (int i = 0; i < n; i += AT_ONCE) {
		pthread_t t[AT_ONCE];
		int tids[AT_ONCE];
		for (int k = 0; k < AT_ONCE; k++)
			MUST(!pthread_create(&t[k], NULL, come_and_go, &tids[k]));
		for (int k = 0; k < AT_ONCE; k++) {
			pthread_join(t[k], NULL);
			printf("THREAD pid=%d tid=%d\n", getpid(), tids[k]);
		}
	}
	fflush(stdout);
	read_byte();
	return 0;
}

static void *named(void *arg)
{
	prctl(PR_SET_NAME, arg);
	raw_sleep_ms(HOLD_MS);
	printf("THREAD pid=%d tid=%d name=%s\n", getpid(), my_tid(), (char *)arg);
	fflush(stdout);
	return NULL;
}

static void one(const char *name)
{
	pthread_t t;
	MUST(!pthread_create(&t, NULL, named, (void *)name));
	pthread_join(t, NULL);
}

static int late(void)
{
	read_byte();
	one("late");
	pid_t child = fork();
	if (!child) {
		one("of-child");
		_exit(0);
	}
	int status;
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	fflush(stdout);
	read_byte();
	return 0;
}

static int to[2], fro[2];
static void *answer(void *arg)
{
	char c;
	(void)arg;
	while (read(to[0], &c, 1) == 1 && write(fro[1], &c, 1) == 1)
		;
	return NULL;
}

static int chatter(void)
{
	pthread_t t;
	char c = 'x';
	MUST(!pipe(to) && !pipe(fro) && !pthread_create(&t, NULL, answer, NULL));
	puts("CHATTERS");
	fflush(stdout);
	while (write(to[1], &c, 1) == 1 && read(fro[0], &c, 1) == 1)
		;
	return 0;
}

int main(int argc, char **argv)
{
	MUST(argc >= 2);
	if (!strcmp(argv[1], "crowd"))
		return crowd(atoi(argv[2]));
	return strcmp(argv[1], "late") ? chatter() : late();
}
