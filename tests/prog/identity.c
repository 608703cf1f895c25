/* Changes of user, root, namespace and of what is allowed: recorded whatever D9_HOOKS says.  Needs to be root. */
#include "prog.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define NOBODY 65534
#define CALL(hook, call)                           \
	do {                                       \
		before();                          \
		int r = (int)(call), e = errno;    \
		after();                           \
		errno = e;                         \
		expect(hook, RESULT(r), "%s", ""); \
		errno = e;                         \
	} while (0)

static struct sock_filter allow_all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_fprog filter = {1, allow_all};

int capset(struct __user_cap_header_struct *h, const struct __user_cap_data_struct *d);

int main(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[2];
	MUST(!syscall(SYS_capget, &head, caps));
	gid_t groups[] = {NOBODY};
	/* Of which nothing is recorded; what they are for is tested by memory.c. */
	struct rlimit limit;
	struct rlimit64 limit64;
	MUST(!prlimit(0, RLIMIT_AS, NULL, &limit) && !prlimit64(0, RLIMIT_AS, NULL, &limit64));
	MUST(!setrlimit(RLIMIT_AS, &limit) && !setrlimit64(RLIMIT_AS, &limit64) && mlockall(0) == -1);
	MUST(setrlimit(RLIMIT_AS, (struct rlimit *)8) == -1 && errno == EFAULT);
	CALL("initgroups", initgroups("root", 0));
	CALL("setgroups", setgroups(1, groups));
	CALL("setegid", setegid(NOBODY));
	CALL("setegid", setegid(0));
	CALL("setregid", setregid(0, 0));
	CALL("setresgid", setresgid(NOBODY, NOBODY, NOBODY));
	CALL("setgid", setgid(NOBODY));
	CALL("unshare", unshare(CLONE_FS));
	CALL("setns", setns(-1, 0));
	CALL("unshare", unshare(-1));
	CALL("chroot", chroot("/nowhere"));
	CALL("chroot", chroot("/"));
	CALL("capset", capset(&head, caps));
	CALL("seteuid", seteuid(NOBODY));
	CALL("seteuid", seteuid(0));
	CALL("setreuid", setreuid(0, 0));
	CALL("setresuid", setresuid(NOBODY, NOBODY, NOBODY));
	CALL("setuid", setuid(NOBODY));
	CALL("setuid", setuid(0)); /* -EPERM */
	MUST(errno == EPERM && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CALL("prctl", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0));
	CALL("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
	return 0;
}
