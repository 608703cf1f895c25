/*
 * Files by name and as a whole: what their directories say of them, their length, their way to the disk, locks on them.
 * Slow calls become spans, the others are counted.  Paths are not recorded.
 */
#include "hook.h"
#include "eventfd.h"

#include <stdarg.h>

D9_WRAP_FD(int, rename, (const char *from, const char *to), (from, to), -1)
D9_WRAP_FD(int, renameat, (int from_at, const char *from, int at, const char *to), (from_at, from, at, to), -1)
D9_WRAP_FD(int, renameat2, (int from_at, const char *from, int at, const char *to, unsigned flags),
	   (from_at, from, at, to, flags), -1)
D9_WRAP_FD(int, unlink, (const char *path), (path), -1)
D9_WRAP_FD(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), -1)
D9_WRAP_FD(int, rmdir, (const char *path), (path), -1)
D9_WRAP_FD(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
D9_WRAP_FD(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), -1)
D9_WRAP_FD(int, access, (const char *path, int mode), (path, mode), -1)
D9_WRAP_FD(int, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags), -1)

D9_WRAP_FD(int, stat, (const char *restrict path, struct stat *restrict st), (path, st), -1)
D9_WRAP_FD(int, stat64, (const char *restrict path, struct stat64 *restrict st), (path, st), -1)
D9_WRAP_FD(int, lstat, (const char *restrict path, struct stat *restrict st), (path, st), -1)
D9_WRAP_FD(int, lstat64, (const char *restrict path, struct stat64 *restrict st), (path, st), -1)
D9_WRAP_FD(int, fstat, (int fd, struct stat *st), (fd, st), fd)
D9_WRAP_FD(int, fstat64, (int fd, struct stat64 *st), (fd, st), fd)
D9_WRAP_FD(int, fstatat, (int at, const char *restrict path, struct stat *restrict st, int flags),
	   (at, path, st, flags), -1)
D9_WRAP_FD(int, fstatat64, (int at, const char *restrict path, struct stat64 *restrict st, int flags),
	   (at, path, st, flags), -1)
D9_WRAP_FD(int, statx, (int at, const char *restrict path, int flags, unsigned mask, struct statx *restrict st),
	   (at, path, flags, mask, st), -1)
/* The names of before glibc 2.33, whose headers made inlines of the above. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int at, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int at, const char *path, struct stat64 *st, int flags);
D9_WRAP_FD(int, __xstat, (int version, const char *path, struct stat *st), (version, path, st), -1)
D9_WRAP_FD(int, __xstat64, (int version, const char *path, struct stat64 *st), (version, path, st), -1)
D9_WRAP_FD(int, __lxstat, (int version, const char *path, struct stat *st), (version, path, st), -1)
D9_WRAP_FD(int, __lxstat64, (int version, const char *path, struct stat64 *st), (version, path, st), -1)
D9_WRAP_FD(int, __fxstat, (int version, int fd, struct stat *st), (version, fd, st), fd)
D9_WRAP_FD(int, __fxstat64, (int version, int fd, struct stat64 *st), (version, fd, st), fd)
D9_WRAP_FD(int, __fxstatat, (int version, int at, const char *path, struct stat *st, int flags),
	   (version, at, path, st, flags), -1)
D9_WRAP_FD(int, __fxstatat64, (int version, int at, const char *path, struct stat64 *st, int flags),
	   (version, at, path, st, flags), -1)

D9_WRAP_FD(int, truncate, (const char *path, off_t n), (path, n), -1)
D9_WRAP_FD(int, truncate64, (const char *path, off64_t n), (path, n), -1)
D9_WRAP_FD(int, ftruncate, (int fd, off_t n), (fd, n), fd)
D9_WRAP_FD(int, ftruncate64, (int fd, off64_t n), (fd, n), fd)
D9_WRAP_FD(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), fd)
D9_WRAP_FD(int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n), fd)
D9_WRAP(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), fd, D9_RETURNED(d9_r))
D9_WRAP(int, posix_fallocate64, (int fd, off64_t at, off64_t n), (fd, at, n), fd, D9_RETURNED(d9_r))

D9_WRAP_FD(int, fsync, (int fd), (fd), fd)
D9_WRAP_FD(int, fdatasync, (int fd), (fd), fd)
D9_WRAP_FD(int, syncfs, (int fd), (fd), fd)
D9_WRAP_FD(int, sync_file_range, (int fd, off64_t at, off64_t n, unsigned flags), (fd, at, n, flags), fd)
D9_WRAP_FD(int, msync, (void *p, size_t n, int flags), (p, n, flags), -1)

D9_EXPORT void sync(void)
{
	D9_BEGIN(sync, 0, -1);
	d9_real.sync();
	D9_END(sync, 0, 0);
}

/* ---- locks on files -------------------------------------------------------------------------------- */

D9_WRAP_FD(int, flock, (int fd, int op), (fd, op), fd)
D9_WRAP_FD(int, lockf, (int fd, int op, off_t n), (fd, op, n), fd)
D9_WRAP_FD(int, lockf64, (int fd, int op, off64_t n), (fd, op, n), fd)

/*
 * Two commands of forty wait; the rest passes as it is.  The third argument is a word or is not there, and reading it
 * regardless is what the ABI allows and what the kernel ignores.
 */
#define WRAP_FCNTL(name)                                            \
	D9_EXPORT int name(int fd, int op, ...)                     \
	{                                                           \
		va_list ap;                                         \
		va_start(ap, op);                                   \
		void *arg = va_arg(ap, void *);                     \
		va_end(ap);                                         \
		if (op != F_SETLKW && op != F_OFD_SETLKW) {         \
			int d9_n = d9_real.name(fd, op, arg);       \
			if (op == F_DUPFD || op == F_DUPFD_CLOEXEC) \
				d9_eventfd_forget(d9_n);            \
			return d9_n;                                \
		}                                                   \
		D9_BEGIN(name, 0, fd);                              \
		int d9_r = d9_real.name(fd, op, arg);               \
		D9_END(name, D9_RESULT(d9_r), 0);                   \
		return d9_r;                                        \
	}
WRAP_FCNTL(fcntl)
int fcntl64(int fd, int op, ...);
WRAP_FCNTL(fcntl64)
