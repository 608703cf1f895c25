/* fork, and exec by all its names: first those that fail, then one child for each that succeeds. */
#include "prog.h"

#include <sys/wait.h>

#define NOWHERE "/nowhere/at-all"
extern char **environ;
static char *const args[] = {(char[]){"program"}, NULL};
static char *const empty[] = {NULL};

static void failing(void)
{
#define FAILS(hook, call, shown)                                              \
	do {                                                                  \
		before();                                                     \
		int r = call, e = errno;                                      \
		after();                                                      \
		errno = e;                                                    \
		printf("EVENT event=exec tid=%d path=%s\n", my_tid(), shown); \
		expect(hook, RESULT(r), "%s", "");                            \
		MUST(r == -1);                                                \
	} while (0)
	FAILS("execve", execve(NOWHERE, args, empty), NOWHERE);
	FAILS("execv", execv(NOWHERE, args), NOWHERE);
	FAILS("execvp", execvp("no-such-program-anywhere", args), "no-such-program-anywhere");
	FAILS("execvpe", execvpe("no-such-program-anywhere", args, empty), "no-such-program-anywhere");
	FAILS("fexecve", fexecve(0x7fffff, args, empty), "program");
	FAILS("execl", execl(NOWHERE, "a", "b", (char *)NULL), NOWHERE);
	FAILS("execlp", execlp("no-such-program-anywhere", "a", (char *)NULL), "no-such-program-anywhere");
	FAILS("execle", execle(NOWHERE, "a", "b", "c", (char *)NULL, empty), NOWHERE);
}

static void child(int i, int fd)
{
	char name[32];
	snprintf(name, sizeof(name), "D9_TEST_N=%d", i);
	char *const env[] = {name, NULL};
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 4$D9_TEST_N"}, NULL};
	(void)fd;
	putenv(name);
	switch (i) {
	case 0:
		execve("/bin/sh", argv, env);
		break;
	case 1:
		execv("/bin/sh", argv);
		break;
	case 2:
		execvp("sh", argv);
		break;
	case 3:
		execvpe("sh", argv, env);
		break;
	case 4:
		fexecve(open("/bin/sh", O_RDONLY), argv, env);
		break;
	case 5:
		execl("/bin/sh", "sh", "-c", "exit 4$D9_TEST_N", (char *)NULL);
		break;
	case 6:
		execlp("sh", "sh", "-c", "exit 4$D9_TEST_N", (char *)NULL);
		break;
	case 7:
		execle("/bin/sh", "sh", "-c", "exit 4$D9_TEST_N", (char *)NULL, env);
		break;
	default:
		usleep(1);
		_exit(7);
	}
	raw(SYS_exit_group, 98);
}

int main(void)
{
	failing();
	for (int i = 0; i < 9; i++) {
		int status;
		fflush(stdout);
		before();
		pid_t p = fork();
		if (!p)
			child(i, 0);
		after();
		expect("fork", RESULT(p), "%s", "");
		MUST(p > 0 && waitpid(p, &status, 0) == p && WIFEXITED(status));
		MUST(WEXITSTATUS(status) == (i == 8 ? 7 : 40 + i));
		printf("PROC pid=%d how=%d\n", p, i == 8 ? 2 : 4);
	}
	return 0;
}
