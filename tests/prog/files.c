/* Files by name and as a whole: what is said of them, moved, removed, made longer, brought to the disk, locked. */
#include "prog.h"

#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* What headers of before glibc 2.33 called. */
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstatat(int version, int at, const char *path, struct stat *st, int flags);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat64(int version, int at, const char *path, struct stat64 *st, int flags);

static char folder[64], a[96], b[96];
static const char *none = "/nowhere/at-all";
static int fd, other;
static struct sockaddr_in address = {.sin_family = AF_INET};

#define FAST(hook, call, of)                        \
	do {                                        \
		int r = call;                       \
		fast(hook, RESULT(r), "fd=%d", of); \
	} while (0)
#define GOOD(hook, call, of)                        \
	do {                                        \
		int r = call;                       \
		fast(hook, RESULT(r), "fd=%d", of); \
		MUST(!r);                           \
	} while (0)

static void looks(void)
{
	struct stat st;
	struct stat64 st64;
	struct statx sx;
	GOOD("stat", stat(a, &st), -1);
	MUST(S_ISREG(st.st_mode) && st.st_size == 7);
	GOOD("lstat", lstat(a, &st), -1);
	GOOD("fstat", fstat(fd, &st), fd);
	GOOD("fstatat", fstatat(AT_FDCWD, a, &st, AT_SYMLINK_NOFOLLOW), -1);
	GOOD("stat64", stat64(a, &st64), -1);
	GOOD("lstat64", lstat64(a, &st64), -1);
	GOOD("fstat64", fstat64(fd, &st64), fd);
	GOOD("fstatat64", fstatat64(AT_FDCWD, a, &st64, 0), -1);
	GOOD("statx", statx(AT_FDCWD, a, 0, STATX_SIZE, &sx), -1);
	MUST(sx.stx_size == 7);
	GOOD("__xstat", __xstat(1, a, &st), -1);
	GOOD("__lxstat", __lxstat(1, a, &st), -1);
	GOOD("__fxstat", __fxstat(1, fd, &st), fd);
	GOOD("__fxstatat", __fxstatat(1, AT_FDCWD, a, &st, 0), -1);
	GOOD("__xstat64", __xstat64(1, a, &st64), -1);
	GOOD("__lxstat64", __lxstat64(1, a, &st64), -1);
	GOOD("__fxstat64", __fxstat64(1, fd, &st64), fd);
	GOOD("__fxstatat64", __fxstatat64(1, AT_FDCWD, a, &st64, 0), -1);
	MUST(st64.st_size == 7);
	GOOD("access", access(a, R_OK), -1);
	GOOD("faccessat", faccessat(AT_FDCWD, a, W_OK, 0), -1);
	FAST("stat", stat(none, &st), -1);
	FAST("lstat", lstat(none, &st), -1);
	FAST("fstat", fstat(-1, &st), -1);
	FAST("fstatat", fstatat(-1, "x", &st, 0), -1);
	FAST("stat64", stat64(none, &st64), -1);
	FAST("statx", statx(-1, "x", 0, 0, &sx), -1);
	FAST("__xstat", __xstat(1, none, &st), -1);
	FAST("access", access(none, R_OK), -1);
	FAST("faccessat", faccessat(-1, "x", R_OK, 0), -1);
}

static void changes(void)
{
	char sub[128];
	snprintf(sub, sizeof(sub), "%s/sub", folder);
	GOOD("mkdir", mkdir(sub, 0700), -1);
	GOOD("rmdir", rmdir(sub), -1);
	GOOD("mkdirat", mkdirat(AT_FDCWD, sub, 0700), -1);
	GOOD("unlinkat", unlinkat(AT_FDCWD, sub, AT_REMOVEDIR), -1);
	GOOD("rename", rename(a, b), -1);
	GOOD("renameat", renameat(AT_FDCWD, b, AT_FDCWD, a), -1);
	FAST("renameat2", renameat2(AT_FDCWD, a, AT_FDCWD, a, 1 /* RENAME_NOREPLACE */), -1);
	GOOD("truncate", truncate(a, 5), -1);
	GOOD("truncate64", truncate64(a, 5), -1);
	GOOD("ftruncate", ftruncate(fd, 7), fd);
	GOOD("ftruncate64", ftruncate64(fd, 8), fd);
	FAST("fallocate", fallocate(fd, 0, 0, 4096), fd);
	FAST("fallocate64", fallocate64(fd, 0, 0, 8192), fd);
#define RETURNS(hook, call, of)              \
	do {                                 \
		int r = call;                \
		fast(hook, -r, "fd=%d", of); \
	} while (0)
	RETURNS("posix_fallocate", posix_fallocate(fd, 0, 8192), fd);
	RETURNS("posix_fallocate64", posix_fallocate64(fd, 0, 8192), fd);
	RETURNS("posix_fallocate", posix_fallocate(-1, 0, 1), -1);
	RETURNS("posix_fallocate64", posix_fallocate64(-1, 0, 1), -1);
	FAST("mkdir", mkdir(none, 0700), -1);
	FAST("mkdirat", mkdirat(-1, "x", 0700), -1);
	FAST("rmdir", rmdir(none), -1);
	FAST("unlink", unlink(none), -1);
	FAST("unlinkat", unlinkat(-1, "x", 0), -1);
	FAST("rename", rename(none, none), -1);
	FAST("renameat", renameat(-1, "x", -1, "x"), -1);
	FAST("truncate", truncate(none, 0), -1);
	FAST("ftruncate", ftruncate(-1, 0), -1);
	FAST("fallocate", fallocate(-1, 0, 0, 1), -1);
}

static void to_the_disk(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(p != MAP_FAILED);
	FAST("msync", msync(p, 4096, MS_ASYNC), -1);
	FAST("msync", msync((char *)p + 1, 4096, MS_SYNC), -1); /* -EINVAL */
	FAST("syncfs", syncfs(-1), -1);
	FAST("sync_file_range", sync_file_range(-1, 0, 0, 0), -1);
	FAST("sync_file_range", sync_file_range(fd, 0, 0, 0), fd);
	sync();
	fast("sync", 0, "%s", "fd=-1");
	FAST("syncfs", syncfs(fd), fd);
}

static void act_unlock(void *arg)
{
	struct flock l = {.l_type = F_UNLCK};
	(void)arg;
	raw(SYS_flock, other, LOCK_UN);
	raw(SYS_fcntl, other, F_OFD_SETLK, &l);
}

/* Another open file description holds it, as another process would. */
#define LOCKED(hook, call)                                          \
	do {                                                        \
		struct flock l_ = {.l_type = F_WRLCK};              \
		MUST(raw(SYS_flock, other, LOCK_EX) == 0);          \
		MUST(raw(SYS_fcntl, other, F_OFD_SETLK, &l_) == 0); \
		when_asleep(act_unlock, NULL);                      \
		int r = call;                                       \
		woken();                                            \
		expect(hook, RESULT(r), "fd=%d", fd);               \
		MUST(!r);                                           \
		l_.l_type = F_UNLCK;                                \
		raw(SYS_flock, fd, LOCK_UN);                        \
		raw(SYS_fcntl, fd, F_SETLK, &l_);                   \
		raw(SYS_fcntl, fd, F_OFD_SETLK, &l_);               \
	} while (0)

static void locks(void)
{
	struct flock l = {.l_type = F_WRLCK}, un = {.l_type = F_UNLCK};
	struct flock64 l64 = {.l_type = F_WRLCK};
	LOCKED("flock", flock(fd, LOCK_EX));
	LOCKED("lockf", lockf(fd, F_LOCK, 0));
	LOCKED("lockf64", lockf64(fd, F_LOCK, 0));
	LOCKED("fcntl", fcntl(fd, F_SETLKW, &l));
	LOCKED("fcntl", fcntl(fd, F_OFD_SETLKW, &l));
	LOCKED("fcntl64", fcntl64(fd, F_SETLKW, &l64));
	GOOD("flock", flock(fd, LOCK_EX | LOCK_NB), fd);
	GOOD("flock", flock(fd, LOCK_UN), fd);
	GOOD("lockf", lockf(fd, F_TLOCK, 0), fd);
	GOOD("lockf64", lockf64(fd, F_ULOCK, 0), fd);
	GOOD("fcntl", fcntl(fd, F_SETLKW, &l), fd);
	GOOD("fcntl64", fcntl64(fd, F_SETLKW, &l64), fd);
	FAST("flock", flock(-1, LOCK_EX), -1);
	FAST("lockf", lockf(-1, F_LOCK, 0), -1);
	FAST("fcntl", fcntl(-1, F_SETLKW, &l), -1);
	/* The other commands pass, with their argument and without, and leave nothing. */
	MUST(!fcntl(fd, F_SETLK, &un) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR && fcntl(fd, F_GETFD) == 0);
	MUST(!fcntl(fd, F_SETFD, FD_CLOEXEC) && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	int copy = fcntl64(fd, F_DUPFD_CLOEXEC, 200);
	MUST(copy >= 200);
	GOOD("close", close(copy), copy);
	MUST(fcntl(copy, F_GETFD) == -1 && errno == EBADF);
}

static void act_read_all_of(void *arg)
{
	static char sink[1 << 16];
	long n;
	do
		n = raw(SYS_read, *(int *)arg, sink, sizeof(sink));
	while (n > 0);
}

/* A socket that lingers: closed when the peer has taken everything. */
static void lingers(void)
{
	static char big[1 << 16];
	struct linger l = {1, 60};
	socklen_t n = sizeof(address);
	int listener = (int)raw(SYS_socket, AF_INET, SOCK_STREAM, 0), s = (int)raw(SYS_socket, AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(!bind(listener, (struct sockaddr *)&address, n) && !listen(listener, 1));
	MUST(!getsockname(listener, (struct sockaddr *)&address, &n));
	MUST(raw(SYS_connect, s, &address, n) == 0);
	int peer = (int)raw(SYS_accept, listener, 0, 0);
	MUST(peer >= 0 && !setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	while (raw(SYS_sendto, s, big, sizeof(big), MSG_DONTWAIT) > 0)
		;
	when_asleep(act_read_all_of, &peer);
	int r = close(s);
	woken();
	expect("close", RESULT(r), "fd=%d", s);
	MUST(!r);
}

int main(void)
{
	snprintf(folder, sizeof(folder), "files-%d", (int)getpid());
	snprintf(a, sizeof(a), "%s/a", folder);
	snprintf(b, sizeof(b), "%s/b", folder);
	GOOD("mkdir", mkdir(folder, 0700), -1);
	fd = (int)raw(SYS_open, a, O_RDWR | O_CREAT, 0600);
	other = (int)raw(SYS_open, a, O_RDWR, 0);
	MUST(fd >= 0 && other >= 0 && raw(SYS_write, fd, "1234567", 7) == 7);
	partner_start();
	looks();
	changes();
	to_the_disk();
	locks();
	lingers();
	GOOD("unlink", unlink(a), -1);
	GOOD("rmdir", rmdir(folder), -1);
	GOOD("close", close(fd), fd);
	FAST("close", close(fd), fd); /* -EBADF: a number is closed once */
	FAST("close", close(-1), -1);
	partner_end();
	return 0;
}
