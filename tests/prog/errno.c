/*
 * errno: every hooked call that fails must leave what the kernel said, every one that succeeds what was there before.
 * Each is made twice, through libc (hooked) and raw, and the two are compared here.
 */
#include "prog.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>

#define BEFORE 4711
static int wrong;

static void judge(const char *name, long got, int got_errno, long want)
{
	int want_errno = want < 0 ? (int)-want : BEFORE;
	if ((got < 0) != (want < 0) || got_errno != want_errno) {
		printf("WRONG %s: %ld with errno %d, not %ld with errno %d\n", name, got, got_errno, want, want_errno);
		wrong++;
	}
}
/* name(args) against the raw system call */
#define SAME(name, call, rawcall)                           \
	do {                                                \
		errno = BEFORE;                             \
		long got_ = (long)(call);                   \
		int errno_ = errno;                         \
		judge(name, got_, errno_, (long)(rawcall)); \
	} while (0)
/* A call that returns its error: errno stays. */
#define RETURNS(name, call, error)                                                          \
	do {                                                                                \
		errno = BEFORE;                                                             \
		int got_ = call;                                                            \
		if (got_ != (error) || errno != BEFORE) {                                   \
			printf("WRONG %s: returned %d with errno %d\n", name, got_, errno); \
			wrong++;                                                            \
		}                                                                           \
	} while (0)

static char buf[16];
static void *volatile bad = (void *)8;
static volatile int no_fd = 0x7ffffff;

static void waits(void)
{
	struct timespec zero = {0, 0}, negative = {0, -1};
	struct timeval tv = {0, 0};
	struct pollfd none = {-1, 0, 0};
	SAME("epoll_wait", epoll_wait(no_fd, bad, 1, 0), raw(SYS_epoll_wait, no_fd, bad, 1, 0));
	SAME("epoll_pwait", epoll_pwait(no_fd, bad, 1, 0, NULL), raw(SYS_epoll_pwait, no_fd, bad, 1, 0, 0, 8));
	SAME("epoll_pwait2", epoll_pwait2(no_fd, bad, 1, &zero, NULL), raw(441, no_fd, bad, 1, &zero, 0, 8));
	SAME("poll", poll(bad, 1, 0), raw(SYS_poll, bad, 1, 0));
	SAME("poll", poll(&none, 1, 0), 0);
	SAME("ppoll", ppoll(bad, 1, &zero, NULL), raw(SYS_ppoll, bad, 1, &zero, 0, 8));
	SAME("select", select(-1, NULL, NULL, NULL, &tv), raw(SYS_select, -1, 0, 0, 0, &tv));
	SAME("select", select(0, NULL, NULL, NULL, &tv), 0);
	SAME("pselect", pselect(-1, NULL, NULL, NULL, &zero, NULL), -EINVAL);
	SAME("sigsuspend", sigsuspend(bad), -EFAULT);
	SAME("nanosleep", nanosleep(&negative, NULL), raw(SYS_nanosleep, &negative, 0));
	sigset_t usr1;
	siginfo_t info;
	int status;
	struct timespec zero2 = {0, 0};
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	SAME("sigtimedwait", sigtimedwait(&usr1, &info, &zero2), raw(SYS_rt_sigtimedwait, &usr1, &info, &zero2, 8));
	SAME("sigwaitinfo", sigwaitinfo(bad, &info), -EFAULT);
	SAME("wait", wait(&status), -ECHILD);
	SAME("waitpid", waitpid(-1, &status, 0), raw(SYS_wait4, -1, &status, 0, 0));
	SAME("wait3", wait3(&status, 0, NULL), -ECHILD);
	SAME("wait4", wait4(-1, &status, 0, NULL), -ECHILD);
	SAME("waitid", waitid(P_ALL, 0, &info, WEXITED), raw(SYS_waitid, P_ALL, 0, &info, WEXITED, 0));
	SAME("nanosleep", nanosleep(&zero, NULL), 0);
	SAME("usleep", usleep(1), 0);
	SAME("sleep", sleep(0), 0);
	RETURNS("clock_nanosleep", clock_nanosleep(4711, 0, &zero, NULL), EINVAL);
	SAME("syscall", syscall(SYS_futex, buf, FUTEX_WAIT, 1, NULL, NULL, 0), -EAGAIN);
	SAME("syscall", syscall(SYS_futex, buf, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	SAME("syscall", syscall(SYS_futex, bad, FUTEX_WAIT, 1, NULL, NULL, 0), -EFAULT);
	SAME("syscall", syscall(SYS_close, -1), -EBADF);
	SAME("syscall", syscall(SYS_getpid), raw(SYS_getpid));
}

static void nothing(void) {}

static void locks(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec past = {1, 0};
	sem_t s;
	sem_init(&s, 0, 0);
	RETURNS("pthread_mutex_lock", pthread_mutex_lock(&m), 0);
	RETURNS("pthread_mutex_trylock", pthread_mutex_trylock(&m), EBUSY);
	RETURNS("pthread_mutex_timedlock", pthread_mutex_timedlock(&m, &past), ETIMEDOUT);
	RETURNS("pthread_mutex_clocklock", pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	RETURNS("pthread_cond_timedwait", pthread_cond_timedwait(&c, &m, &past), ETIMEDOUT);
	RETURNS("pthread_cond_clockwait", pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	RETURNS("pthread_cond_signal", pthread_cond_signal(&c), 0);
	RETURNS("pthread_cond_broadcast", pthread_cond_broadcast(&c), 0);
	RETURNS("pthread_mutex_unlock", pthread_mutex_unlock(&m), 0);
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
	pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_barrier_t b;
	mtx_t mtx;
	cnd_t cnd;
	mtx_init(&mtx, mtx_timed);
	cnd_init(&cnd);
	pthread_barrier_init(&b, NULL, 1);
	RETURNS("pthread_rwlock_wrlock", pthread_rwlock_wrlock(&l), 0);
	RETURNS("pthread_rwlock_rdlock", pthread_rwlock_rdlock(&l), EDEADLK);
	RETURNS("pthread_rwlock_tryrdlock", pthread_rwlock_tryrdlock(&l), EBUSY);
	RETURNS("pthread_rwlock_trywrlock", pthread_rwlock_trywrlock(&l), EBUSY);
	RETURNS("pthread_rwlock_timedwrlock", pthread_rwlock_timedwrlock(&l, &past), EDEADLK);
	RETURNS("pthread_rwlock_unlock", pthread_rwlock_unlock(&l), 0);
	RETURNS("pthread_join", pthread_join(pthread_self(), NULL), EDEADLK);
	RETURNS("pthread_tryjoin_np", pthread_tryjoin_np(pthread_self(), NULL), EBUSY);
	RETURNS("pthread_barrier_wait", pthread_barrier_wait(&b), PTHREAD_BARRIER_SERIAL_THREAD);
	RETURNS("pthread_once", pthread_once(&once, nothing), 0);
	RETURNS("mtx_timedlock", mtx_timedlock(&mtx, &past), thrd_success);
	RETURNS("mtx_timedlock", mtx_timedlock(&mtx, &past), thrd_timedout);
	RETURNS("cnd_timedwait", cnd_timedwait(&cnd, &mtx, &past), thrd_timedout);
	RETURNS("cnd_signal", cnd_signal(&cnd), thrd_success);
	RETURNS("mtx_unlock", mtx_unlock(&mtx), thrd_success);
	SAME("sem_trywait", sem_trywait(&s), -EAGAIN);
	SAME("sem_timedwait", sem_timedwait(&s, &past), -ETIMEDOUT);
	SAME("sem_clockwait", sem_clockwait(&s, CLOCK_MONOTONIC, &past), -ETIMEDOUT);
	SAME("sem_post", sem_post(&s), 0);
	SAME("sem_wait", sem_wait(&s), 0);
	RETURNS("pthread_setname_np", pthread_setname_np(pthread_self(), "a name that is too long"), ERANGE);
}

static void descriptors(void)
{
	struct epoll_event ev = {0};
	struct msghdr m = {0};
	uint64_t v = 0;
	SAME("accept", accept(no_fd, NULL, NULL), raw(SYS_accept, no_fd, 0, 0));
	SAME("accept4", accept4(no_fd, NULL, NULL, 0), raw(SYS_accept4, no_fd, 0, 0, 0));
	SAME("connect", connect(no_fd, bad, 1), raw(SYS_connect, no_fd, bad, 1));
	SAME("socket", socket(-1, 0, 0), raw(SYS_socket, -1, 0, 0));
	SAME("epoll_ctl", epoll_ctl(no_fd, EPOLL_CTL_ADD, 0, &ev), raw(SYS_epoll_ctl, no_fd, EPOLL_CTL_ADD, 0, &ev));
	SAME("eventfd", eventfd(0, -1), raw(SYS_eventfd2, 0, -1));
	SAME("dup", dup(no_fd), raw(SYS_dup, no_fd));
	SAME("dup2", dup2(no_fd, 1), raw(SYS_dup2, no_fd, 1));
	SAME("dup2", dup2(1, -1), raw(SYS_dup2, 1, -1));
	SAME("dup3", dup3(1, 1, 0), raw(SYS_dup3, 1, 1, 0));
	SAME("recv", recv(no_fd, buf, 1, 0), raw(SYS_recvfrom, no_fd, buf, 1, 0, 0, 0));
	SAME("recvfrom", recvfrom(no_fd, buf, 1, 0, NULL, NULL), raw(SYS_recvfrom, no_fd, buf, 1, 0, 0, 0));
	SAME("recvmsg", recvmsg(no_fd, &m, 0), raw(SYS_recvmsg, no_fd, &m, 0));
	SAME("send", send(no_fd, buf, 1, 0), raw(SYS_sendto, no_fd, buf, 1, 0, 0, 0));
	SAME("sendto", sendto(no_fd, buf, 1, 0, NULL, 0), raw(SYS_sendto, no_fd, buf, 1, 0, 0, 0));
	SAME("sendmsg", sendmsg(no_fd, &m, 0), raw(SYS_sendmsg, no_fd, &m, 0));
	SAME("read", read(no_fd, buf, 1), raw(SYS_read, no_fd, buf, 1));
	SAME("pread", pread(no_fd, buf, 1, 0), raw(SYS_pread64, no_fd, buf, 1, 0));
	SAME("pread64", pread64(no_fd, buf, 1, 0), raw(SYS_pread64, no_fd, buf, 1, 0));
	SAME("write", write(no_fd, buf, 1), raw(SYS_write, no_fd, buf, 1));
	SAME("pwrite", pwrite(no_fd, buf, 1, 0), raw(SYS_pwrite64, no_fd, buf, 1, 0));
	SAME("pwrite64", pwrite64(no_fd, buf, 1, 0), raw(SYS_pwrite64, no_fd, buf, 1, 0));
	SAME("eventfd_read", eventfd_read(no_fd, &v), raw(SYS_read, no_fd, &v, 8));
	SAME("eventfd_write", eventfd_write(no_fd, 1), raw(SYS_write, no_fd, &v, 8));
	SAME("fsync", fsync(no_fd), raw(SYS_fsync, no_fd));
	SAME("fdatasync", fdatasync(no_fd), raw(SYS_fdatasync, no_fd));
	struct iovec v1 = {buf, 1};
	struct mmsghdr mm = {0};
	off_t at = 0;
	off64_t at64 = 0;
	SAME("readv", readv(no_fd, &v1, 1), raw(SYS_readv, no_fd, &v1, 1));
	SAME("preadv", preadv(no_fd, &v1, 1, 0), raw(SYS_preadv, no_fd, &v1, 1, 0, 0));
	SAME("preadv64", preadv64(no_fd, &v1, 1, 0), raw(SYS_preadv, no_fd, &v1, 1, 0, 0));
	SAME("preadv2", preadv2(no_fd, &v1, 1, 0, 0), -EBADF);
	SAME("preadv64v2", preadv64v2(no_fd, &v1, 1, 0, 0), -EBADF);
	SAME("writev", writev(no_fd, &v1, 1), raw(SYS_writev, no_fd, &v1, 1));
	SAME("pwritev", pwritev(no_fd, &v1, 1, 0), raw(SYS_pwritev, no_fd, &v1, 1, 0, 0));
	SAME("pwritev64", pwritev64(no_fd, &v1, 1, 0), raw(SYS_pwritev, no_fd, &v1, 1, 0, 0));
	SAME("pwritev2", pwritev2(no_fd, &v1, 1, 0, 0), -EBADF);
	SAME("pwritev64v2", pwritev64v2(no_fd, &v1, 1, 0, 0), -EBADF);
	SAME("recvmmsg", recvmmsg(no_fd, &mm, 1, 0, NULL), raw(SYS_recvmmsg, no_fd, &mm, 1, 0, 0));
	SAME("sendmmsg", sendmmsg(no_fd, &mm, 1, 0), raw(SYS_sendmmsg, no_fd, &mm, 1, 0));
	SAME("sendfile", sendfile(no_fd, no_fd, &at, 1), raw(SYS_sendfile, no_fd, no_fd, &at, 1));
	SAME("sendfile64", sendfile64(no_fd, no_fd, &at64, 1), raw(SYS_sendfile, no_fd, no_fd, &at64, 1));
	SAME("splice", splice(no_fd, NULL, no_fd, NULL, 1, 0), raw(SYS_splice, no_fd, 0, no_fd, 0, 1, 0));
	SAME("tee", tee(no_fd, no_fd, 1, 0), raw(SYS_tee, no_fd, no_fd, 1, 0));
	SAME("vmsplice", vmsplice(no_fd, &v1, 1, 0), raw(SYS_vmsplice, no_fd, &v1, 1, 0));
	SAME("copy_file_range", copy_file_range(no_fd, NULL, no_fd, NULL, 1, 0),
	     raw(SYS_copy_file_range, no_fd, 0, no_fd, 0, 1, 0));
	SAME("syncfs", syncfs(no_fd), raw(SYS_syncfs, no_fd));
	SAME("sync_file_range", sync_file_range(no_fd, 0, 0, 0), raw(SYS_sync_file_range, no_fd, 0, 0, 0));
	SAME("msync", msync((void *)1, 1, 0), raw(SYS_msync, 1, 1, 0));
	SAME("flock", flock(no_fd, LOCK_EX), raw(SYS_flock, no_fd, LOCK_EX));
	SAME("lockf", lockf(no_fd, F_LOCK, 0), -EBADF);
	SAME("lockf64", lockf64(no_fd, F_TLOCK, 0), -EBADF);
	SAME("fcntl", fcntl(no_fd, F_GETFL), raw(SYS_fcntl, no_fd, F_GETFL));
	SAME("fcntl", fcntl(no_fd, F_SETLKW, bad), -EBADF);
	SAME("fcntl64", fcntl64(no_fd, F_OFD_SETLKW, bad), -EBADF);
	SAME("ftruncate", ftruncate(no_fd, 0), raw(SYS_ftruncate, no_fd, 0));
	SAME("ftruncate64", ftruncate64(no_fd, 0), raw(SYS_ftruncate, no_fd, 0));
	SAME("fallocate", fallocate(no_fd, 0, 0, 1), raw(SYS_fallocate, no_fd, 0, 0, 1));
	SAME("fallocate64", fallocate64(no_fd, 0, 0, 1), raw(SYS_fallocate, no_fd, 0, 0, 1));
	RETURNS("posix_fallocate", posix_fallocate(no_fd, 0, 1), EBADF);
	RETURNS("posix_fallocate64", posix_fallocate64(no_fd, 0, 1), EBADF);
	SAME("close", close(no_fd), raw(SYS_close, no_fd));
	int p[2], e = eventfd(0, 0);
	MUST(!pipe(p));
	SAME("write", write(p[1], "a", 1), 1);
	SAME("read", read(p[0], buf, 1), 1);
	SAME("eventfd_write", eventfd_write(e, 1), 0);
	SAME("eventfd_read", eventfd_read(e, &v), 0);
}

static void files(void)
{
	const char *no = "/nowhere/at-all";
	long want = raw(SYS_open, no, O_RDONLY, 0);
	SAME("open", open(no, O_RDONLY), want);
	SAME("open64", open64(no, O_RDONLY), want);
	SAME("openat", openat(no_fd, "x", O_RDONLY), raw(SYS_openat, no_fd, "x", O_RDONLY, 0));
	SAME("openat64", openat64(no_fd, "x", O_RDONLY), raw(SYS_openat, no_fd, "x", O_RDONLY, 0));
	SAME("creat", creat(no, 0600), raw(SYS_creat, no, 0600));
	SAME("creat64", creat64(no, 0600), raw(SYS_creat, no, 0600));
	struct stat st;
	struct stat64 st64;
	struct statx sx;
	SAME("rename", rename(no, no), -ENOENT);
	SAME("renameat", renameat(no_fd, "x", no_fd, "x"), -EBADF);
	SAME("renameat2", renameat2(no_fd, "x", no_fd, "x", 0), -EBADF);
	SAME("unlink", unlink(no), -ENOENT);
	SAME("unlinkat", unlinkat(no_fd, "x", 0), -EBADF);
	SAME("rmdir", rmdir(no), -ENOENT);
	SAME("mkdir", mkdir(no, 0700), -ENOENT);
	SAME("mkdirat", mkdirat(no_fd, "x", 0700), -EBADF);
	SAME("stat", stat(no, &st), -ENOENT);
	SAME("lstat", lstat(no, &st), -ENOENT);
	SAME("fstat", fstat(no_fd, &st), -EBADF);
	SAME("fstatat", fstatat(no_fd, "x", &st, 0), -EBADF);
	SAME("stat64", stat64(no, &st64), -ENOENT);
	SAME("lstat64", lstat64(no, &st64), -ENOENT);
	SAME("fstat64", fstat64(no_fd, &st64), -EBADF);
	SAME("fstatat64", fstatat64(no_fd, "x", &st64, 0), -EBADF);
	SAME("statx", statx(no_fd, "x", 0, 0, &sx), -EBADF);
	SAME("stat", stat("/", &st), 0);
	SAME("access", access(no, F_OK), -ENOENT);
	SAME("faccessat", faccessat(no_fd, "x", F_OK, 0), -EBADF);
	SAME("truncate", truncate(no, 0), -ENOENT);
	SAME("truncate64", truncate64(no, 0), -ENOENT);
	SAME("open", open("/dev/null", O_RDONLY), 1);
	SAME("open64", open64("/dev/null", O_RDONLY), 1);
}

static void processes(void)
{
	char *const none[] = {NULL};
	SAME("execve", execve("/nowhere", none, none), raw(SYS_execve, "/nowhere", none, none));
	SAME("execv", execv("/nowhere", none), -ENOENT);
	SAME("execvp", execvp("/nowhere", none), -ENOENT);
	SAME("execvpe", execvpe("/nowhere", none, none), -ENOENT);
	SAME("execl", execl("/nowhere", "a", (char *)NULL), -ENOENT);
	SAME("execlp", execlp("/nowhere", "a", (char *)NULL), -ENOENT);
	SAME("execle", execle("/nowhere", "a", (char *)NULL, none), -ENOENT);
	SAME("fexecve", fexecve(no_fd, none, none), -EBADF);
	SAME("popen", popen("x", "?") ? 0 : -1, -EINVAL);
	SAME("prctl", prctl(4711, 0, 0, 0, 0), raw(SYS_prctl, 4711, 0, 0, 0, 0));
	SAME("prctl", prctl(PR_SET_SECCOMP, 4711, 0, 0, 0), -EINVAL);
	SAME("unshare", unshare(-1), raw(SYS_unshare, -1));
	SAME("setns", setns(-1, 0), raw(SYS_setns, -1, 0));
	SAME("chroot", chroot("/nowhere"), raw(SYS_chroot, "/nowhere"));
	SAME("setuid", setuid((uid_t)-1), raw(SYS_setuid, -1));
	SAME("setgid", setgid((gid_t)-1), raw(SYS_setgid, -1));
	SAME("setreuid", setreuid((uid_t)-1, (uid_t)-1), raw(SYS_setreuid, -1, -1));
	SAME("setregid", setregid((gid_t)-1, (gid_t)-1), raw(SYS_setregid, -1, -1));
	SAME("setresuid", setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1), raw(SYS_setresuid, -1, -1, -1));
	SAME("setresgid", setresgid((gid_t)-1, (gid_t)-1, (gid_t)-1), raw(SYS_setresgid, -1, -1, -1));
	SAME("seteuid", seteuid((uid_t)-1), -EINVAL);
	SAME("setegid", setegid((gid_t)-1), -EINVAL);
	SAME("setgroups", setgroups((size_t)1 << 20, bad), raw(SYS_setgroups, 1 << 20, bad));
	pid_t p = fork();
	if (!p)
		_exit(errno != BEFORE ? 0 : 1);
	MUST(p > 0);
}

int main(void)
{
	waits();
	locks();
	descriptors();
	files();
	processes();
	printf("errno: %d wrong\n", wrong);
	return wrong != 0;
}
