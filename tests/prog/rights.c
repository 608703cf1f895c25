/*
 * rights HOW: what a thread does to itself alone, after which a second thread of the process would be in the way or a reading
 * of the clock would be fatal.  Ends with 7.  Needs to be root for all but tsc and strict.
 */
#include "prog.h"

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define NOBODY 65534

int capset(struct __user_cap_header_struct *h, const struct __user_cap_data_struct *d);

static struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
static struct __user_cap_data_struct caps[2];

/* As setpriv, named and others do it: the user first, with the capabilities kept and raised again, then the group. */
static void keep_caps(bool by_call)
{
	MUST(!prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) && !setresuid(NOBODY, NOBODY, NOBODY));
	MUST(!syscall(SYS_capget, &head, caps));
	caps[0].effective = caps[0].permitted;
	MUST(by_call ? !capset(&head, caps) : !syscall(SYS_capset, &head, caps));
	poll(NULL, 0, 1200); /* long enough for a drain thread to come back */
	MUST(!setresgid(NOBODY, NOBODY, NOBODY));
}

/* The capabilities outlive the user by the thread's own bits. */
static void no_fixup(void)
{
	MUST(!prctl(PR_SET_SECUREBITS, 1 << 2 /* SECBIT_NO_SETUID_FIXUP */, 0, 0, 0));
	MUST(!setresuid(NOBODY, NOBODY, NOBODY) && !setresgid(NOBODY, NOBODY, NOBODY));
}

static void tsc(bool by_call)
{
	MUST(by_call ? !prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)
		     : !syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
	poll(NULL, 0, 10);
	pid_t p = fork();
	if (!p) {
		poll(NULL, 0, 1);
		_exit(0);
	}
	int status;
	MUST(waitpid(p, &status, 0) == p && status == 0);
}

/* Into the namespaces that it is in, which a second thread would forbid. */
static void namespaces(bool by_call)
{
	int mounts = open("/proc/self/ns/mnt", O_RDONLY);
	MUST(mounts >= 0);
	MUST(by_call ? !setns(mounts, CLONE_NEWNS) : !syscall(SYS_setns, mounts, CLONE_NEWNS));
	MUST(by_call ? !unshare(CLONE_NEWUSER) : !syscall(SYS_unshare, CLONE_NEWUSER));
}

static void strict(bool by_call)
{
	MUST(by_call ? !prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0)
		     : !syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL));
	MUST(write(1, "strict\n", 7) == 7);
	raw(SYS_exit, 7);
}

int main(int argc, char **argv)
{
	MUST(argc > 1);
	poll(NULL, 0, argc > 2 ? atoi(argv[2]) : 0);
	poll(NULL, 0, 1); /* after more than a second: a drain thread starts here */
	raw_sleep_ms(50);
	const char *how = argv[1];
	if (!strncmp(how, "keep-caps", 9))
		keep_caps(!how[9]);
	else if (!strcmp(how, "no-fixup"))
		no_fixup();
	else if (!strncmp(how, "namespaces", 10))
		namespaces(!how[10]);
	else if (!strncmp(how, "tsc", 3))
		tsc(!how[3]);
	else if (!strncmp(how, "strict", 6))
		strict(!how[6]);
	return 7;
}
