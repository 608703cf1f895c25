/*
 * See absent.h.  Names come with glibc: 2.26 to 2.35 brought system calls, 2.28 C11's threads, 2.30 waits by a clock, 2.33 stat.
 * Before 2.34 those of libpthread and libdl are missing from a program that has loaded neither.  Such a program has one thread, so
 * a lock is free and what is to be done once is done by who asks first.
 */
#include "absent.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#define STAT_VERSION 1 /* x86-64 has had no other */
#define ONCE_DONE 2    /* as libpthread has it, which may be loaded later */

/* ---- one thread alone ---------------------------------------------------------------------------------- */

static int once(pthread_once_t *o, void (*init)(void))
{
	if (*o == PTHREAD_ONCE_INIT) {
		init();
		*o = ONCE_DONE;
	}
	return 0;
}
static void once_c11(once_flag *o, void (*init)(void)) { (void)once((pthread_once_t *)o, init); }
static int trylock(pthread_mutex_t *m) { return d9_real.pthread_mutex_lock(m); }
static int rwlock(pthread_rwlock_t *l) { return (void)l, 0; }

/* ---- the same by the older name ------------------------------------------------------------------------ */

static int stat_(const char *path, struct stat *st) { return d9_real.__xstat(STAT_VERSION, path, st); }
static int stat64_(const char *path, struct stat64 *st) { return d9_real.__xstat64(STAT_VERSION, path, st); }
static int lstat_(const char *path, struct stat *st) { return d9_real.__lxstat(STAT_VERSION, path, st); }
static int lstat64_(const char *path, struct stat64 *st) { return d9_real.__lxstat64(STAT_VERSION, path, st); }
static int fstat_(int fd, struct stat *st) { return d9_real.__fxstat(STAT_VERSION, fd, st); }
static int fstat64_(int fd, struct stat64 *st) { return d9_real.__fxstat64(STAT_VERSION, fd, st); }
static int fstatat_(int at, const char *path, struct stat *st, int flags)
{
	return d9_real.__fxstatat(STAT_VERSION, at, path, st, flags);
}
static int fstatat64_(int at, const char *path, struct stat64 *st, int flags)
{
	return d9_real.__fxstatat64(STAT_VERSION, at, path, st, flags);
}
static int fcntl64_(int fd, int op, void *arg) { return d9_real.fcntl(fd, op, arg); }

/* Of the clocks, the one that the older function waits by; what takes another was never promised to know it. */
static int cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t id, const struct timespec *t)
{
	return id == CLOCK_REALTIME ? d9_real.pthread_cond_timedwait(c, m, t) : EINVAL;
}
static int mutex_clocklock(pthread_mutex_t *m, clockid_t id, const struct timespec *t)
{
	return id == CLOCK_REALTIME ? d9_real.pthread_mutex_timedlock(m, t) : EINVAL;
}
static int rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t id, const struct timespec *t)
{
	return id == CLOCK_REALTIME ? d9_real.pthread_rwlock_timedrdlock(l, t) : EINVAL;
}
static int rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t id, const struct timespec *t)
{
	return id == CLOCK_REALTIME ? d9_real.pthread_rwlock_timedwrlock(l, t) : EINVAL;
}
static int clockjoin(pthread_t t, void **ret, clockid_t id, const struct timespec *until)
{
	return id == CLOCK_REALTIME ? d9_real.pthread_timedjoin_np(t, ret, until) : EINVAL;
}
static int sem_clockwait_(sem_t *s, clockid_t id, const struct timespec *t)
{
	if (id == CLOCK_REALTIME)
		return d9_real.sem_timedwait(s, t);
	errno = EINVAL;
	return -1;
}

/* ---- the system call ----------------------------------------------------------------------------------- */

#define CALL(n, a, b, c, d, e, f) d9_real.syscall(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
static int epoll_pwait2_(int epfd, struct epoll_event *ev, int n, const struct timespec *t, const sigset_t *mask)
{
	return (int)CALL(SYS_epoll_pwait2, epfd, ev, n, t, mask, 8 /* bytes of the kernel's set */);
}
static int renameat2_(int from_at, const char *from, int at, const char *to, unsigned flags)
{
	return (int)CALL(SYS_renameat2, from_at, from, at, to, flags, 0);
}
static int statx_(int at, const char *path, int flags, unsigned mask, struct statx *st)
{
	return (int)CALL(SYS_statx, at, path, flags, mask, st, 0);
}
static ssize_t copy_file_range_(int from, off64_t *from_at, int fd, off64_t *at, size_t n, unsigned flags)
{
	return CALL(SYS_copy_file_range, from, from_at, fd, at, n, flags);
}
static ssize_t preadv2_(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return CALL(SYS_preadv2, fd, v, n, at, 0, flags);
}
static ssize_t pwritev2_(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return CALL(SYS_pwritev2, fd, v, n, at, 0, flags);
}

#define SAME(name, function) [D9_HK_##name] = (void *)(function)
static void *const stand_ins[D9_N_HOOKS] = {
	SAME(pthread_once, once),
	SAME(call_once, once_c11),
	SAME(pthread_mutex_trylock, trylock),
	SAME(pthread_rwlock_rdlock, rwlock),
	SAME(pthread_rwlock_wrlock, rwlock),
	SAME(pthread_rwlock_tryrdlock, rwlock),
	SAME(pthread_rwlock_trywrlock, rwlock),
	SAME(pthread_rwlock_unlock, rwlock),
	SAME(stat, stat_),
	SAME(stat64, stat64_),
	SAME(lstat, lstat_),
	SAME(lstat64, lstat64_),
	SAME(fstat, fstat_),
	SAME(fstat64, fstat64_),
	SAME(fstatat, fstatat_),
	SAME(fstatat64, fstatat64_),
	SAME(fcntl64, fcntl64_),
	SAME(pthread_cond_clockwait, cond_clockwait),
	SAME(pthread_mutex_clocklock, mutex_clocklock),
	SAME(pthread_rwlock_clockrdlock, rwlock_clockrdlock),
	SAME(pthread_rwlock_clockwrlock, rwlock_clockwrlock),
	SAME(pthread_clockjoin_np, clockjoin),
	SAME(sem_clockwait, sem_clockwait_),
	SAME(epoll_pwait2, epoll_pwait2_),
	SAME(renameat2, renameat2_),
	SAME(statx, statx_),
	SAME(copy_file_range, copy_file_range_),
	SAME(preadv2, preadv2_),
	SAME(preadv64v2, preadv2_),
	SAME(pwritev2, pwritev2_),
	SAME(pwritev64v2, pwritev2_),
};
#undef SAME

void *d9_stand_in(enum d9_hook_id id) { return stand_ins[id]; }

static bool begins(const char *name, const char *with) { return !strncmp(name, with, strlen(with)); }

long d9_absent(const char *name, bool pointer)
{
	if (begins(name, "pthread_"))
		return ENOSYS;
	if (begins(name, "thrd_sleep"))
		return -ENOSYS; /* -1 is a signal */
	if (begins(name, "thrd_") || begins(name, "mtx_") || begins(name, "cnd_"))
		return thrd_error;
	errno = ENOSYS;
	return pointer ? 0 : -1;
}
