/*
 * Children: waited for by all names, made by libc's own hands.  Built twice: with -DOLD_ABI posix_spawn is that of before
 * glibc 2.15, which tries a shell where the kernel does not know the file.
 */
#include "prog.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifdef OLD_ABI
__asm__(".symver posix_spawn, posix_spawn@GLIBC_2.2.5\n"
	".symver posix_spawnp, posix_spawnp@GLIBC_2.2.5\n");
#define SHELL_TRIED 1
#else
#define SHELL_TRIED 0
#endif

extern char **environ;
static int p[2];

/* A child that no hook sees; it ends with code 3 when it is told to. */
static pid_t child(void)
{
	char c;
	long pid = raw(SYS_fork);
	if (!pid) {
		(void)raw(SYS_read, p[0], &c, 1);
		raw(SYS_exit_group, 3);
	}
	return (pid_t)pid;
}

#define WAITS(hook, call, result, good)         \
	do {                                    \
		pid_t pid = child();            \
		status = 0;                     \
		when_asleep(act_write, &p[1]);  \
		int r = call;                   \
		woken();                        \
		expect(hook, result, "%s", ""); \
		MUST(good);                     \
	} while (0)
#define FAST(hook, call)                         \
	do {                                     \
		int r = call;                    \
		fast(hook, RESULT(r), "%s", ""); \
	} while (0)
#define LONG(hook, call, result, good)          \
	do {                                    \
		before();                       \
		int r = call, e = errno;        \
		after();                        \
		errno = e;                      \
		expect(hook, result, "%s", ""); \
		MUST(good);                     \
	} while (0)

static void waits(void)
{
	int status;
	struct rusage use;
	siginfo_t info;
	WAITS("wait", wait(&status), r, r == pid && WEXITSTATUS(status) == 3);
	WAITS("waitpid", waitpid(pid, &status, 0), r, r == pid && WEXITSTATUS(status) == 3);
	WAITS("wait3", wait3(&status, 0, &use), r, r == pid && WEXITSTATUS(status) == 3);
	WAITS("wait4", wait4(pid, &status, 0, &use), r, r == pid && WEXITSTATUS(status) == 3);
	WAITS("waitid", waitid(P_PID, (id_t)pid, &info, WEXITED), r, !r && info.si_status == 3);
	FAST("wait", wait(&status)); /* -ECHILD */
	FAST("waitpid", waitpid(-1, &status, WNOHANG));
	FAST("wait3", wait3(&status, WNOHANG, NULL));
	FAST("wait4", wait4(-1, &status, WNOHANG, NULL));
	FAST("waitid", waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
	pid_t pid = child();
	for (int i = 0; i < 20; i++)
		FAST("waitpid", waitpid(pid, &status, WNOHANG)); /* 0: not yet */
	act_write(&p[1]);
	MUST(raw(SYS_wait4, pid, &status, 0, 0) == pid);
}

/* Before glibc 2.24 what exec answered became the child's exit code. */
static int refused(int r, int error, pid_t pid)
{
	int status;
	if (SINCE(24))
		return r == error;
	return !r && raw(SYS_wait4, pid, &status, 0, 0) == pid && WEXITSTATUS(status) == 127;
}

static void made(void)
{
	char line[16] = "", script[64];
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 5"}, NULL};
	char *const none[] = {(char[]){"x"}, NULL};
	int status;
	pid_t pid;
	LONG("system", system("exit 4"), RESULT(r), WEXITSTATUS(r) == 4);
	LONG("system", system(NULL), RESULT(r), r != 0);
	FILE *f;
	LONG("popen", (f = popen("echo said; exit 6", "r"), f ? fileno(f) : -1), RESULT(r), f != NULL);
	MUST(raw(SYS_read, fileno(f), line, sizeof(line)) == 5 && !strcmp(line, "said\n"));
	LONG("pclose", pclose(f), RESULT(r), WEXITSTATUS(r) == 6);
	LONG("popen", (f = popen("x", "?"), -1), RESULT(r), f == NULL && errno == EINVAL);
	LONG("posix_spawn", posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), -r, !r);
	MUST(raw(SYS_wait4, pid, &status, 0, 0) == pid && WEXITSTATUS(status) == 5);
	LONG("posix_spawnp", posix_spawnp(&pid, "sh", NULL, NULL, argv, environ), -r, !r);
	MUST(raw(SYS_wait4, pid, &status, 0, 0) == pid && WEXITSTATUS(status) == 5);
	LONG("posix_spawn", posix_spawn(&pid, "/nowhere", NULL, NULL, argv, environ), -r, refused(r, ENOENT, pid));
	LONG("posix_spawnp", posix_spawnp(&pid, "no-such-program", NULL, NULL, argv, environ), -r,
	     refused(r, ENOENT, pid));

	/* A script without its first line. */
	snprintf(script, sizeof(script), "./script-%d", (int)raw(SYS_getpid));
	int fd = (int)raw(SYS_open, script, O_WRONLY | O_CREAT, 0700);
	MUST(raw(SYS_write, fd, "exit 8\n", 7) == 7);
	raw(SYS_close, fd);
	LONG("posix_spawn", posix_spawn(&pid, script, NULL, NULL, none, environ), -r,
	     SHELL_TRIED ? !r : refused(r, ENOEXEC, pid));
	if (SHELL_TRIED)
		MUST(raw(SYS_wait4, pid, &status, 0, 0) == pid && WEXITSTATUS(status) == 8);
	LONG("posix_spawnp", posix_spawnp(&pid, script, NULL, NULL, none, environ), -r,
	     SHELL_TRIED ? !r : refused(r, ENOEXEC, pid));
	if (SHELL_TRIED)
		MUST(raw(SYS_wait4, pid, &status, 0, 0) == pid && WEXITSTATUS(status) == 8);
	raw(SYS_unlink, script);
}

int main(void)
{
	MUST(!pipe(p));
	partner_start();
	waits();
	made();
	partner_end();
	return 0;
}
