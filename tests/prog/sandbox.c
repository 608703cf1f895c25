/*
 * sandbox DIR: a child leaves its root, its user, its descriptors and every system call but exit_group behind, and goes on
 * recording: calls that need no kernel.  Each is kept or counted.
 */
#include "prog.h"
#include "shim/d9.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CALLS 3000

static struct sock_filter only_exit[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog filter = {4, only_exit};

static void calls(pthread_mutex_t *m)
{
	for (int i = 0; i < CALLS; i++)
		MUST(pthread_mutex_lock(m) == EDEADLK); /* recorded, and needs no system call */
}

static void child(const char *dir, int how)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	char line[100];
	pthread_mutexattr_init(&a);
	MUST(!pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK) && !pthread_mutex_init(&m, &a) &&
	     !pthread_mutex_lock(&m));
	MUST(!chroot(dir) && !setgid(65534) && !setuid(65534));
	int n = snprintf(line, sizeof(line), "ISSUED pid=%d tid=%d hook=pthread_mutex_lock n=%d\n",
			 (int)raw(SYS_getpid), my_tid(), how & 2 ? CALLS : 2 * CALLS);
	MUST(raw(SYS_write, 1, line, n) == n);
	raw(436, 0, ~0u, 0); /* close_range */
	if (!(how & 2))
		calls(&m);
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (how & 1)
		MUST(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0));
	else
		MUST(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
	calls(&m);
	if (how & 4)
		_exit(0);
	raw(SYS_exit_group, 0);
}

int main(int argc, char **argv)
{
	MUST(argc > 1);
	for (int how = 0; how < 8; how++) {
		int status;
		fflush(stdout);
		pid_t p = fork();
		if (!p)
			child(argv[1], how);
		MUST(p > 0 && waitpid(p, &status, 0) == p);
		printf("CHILD how=%d status=%d\n", how, status);
	}
	return 0;
}
