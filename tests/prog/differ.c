/*
 * Random calls of hooked functions with good and bad arguments, and a line for each: what it returned, errno, what it left
 * behind its pointers.  The same seed makes the same calls, so the lines of two runs differ only if a hook changed
 * something.  Nothing that is printed is an address, an id or a time.
 *
 *	differ SEED ROUNDS
 *
 * Built without _FILE_OFFSET_BITS, so that the 64-bit names are functions of their own.
 */
#include "prog.h"

#include <dlfcn.h>
#include <grp.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <wchar.h>

#define BEFORE 4711
#define PICK(array) ((array)[below(sizeof(array) / sizeof(*(array)))])

static uint64_t state, rounds;
static uint32_t below(size_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 11) % n);
}

/* ---- what is printed ------------------------------------------------------------------------------------- */

static char text[1 << 16];
static size_t text_n;
static void out_flush(void)
{
	for (size_t at = 0; at < text_n;) {
		long r = raw(SYS_write, prog_out, text + at, text_n - at);
		if (r <= 0)
			raw(SYS_exit_group, 98);
		at += (size_t)r;
	}
	text_n = 0;
}
static __attribute__((format(printf, 1, 2))) void out(const char *format, ...)
{
	va_list ap;
	if (text_n > sizeof(text) - 4096)
		out_flush();
	va_start(ap, format);
	text_n += (size_t)vsnprintf(text + text_n, 4096, format, ap);
	va_end(ap);
}
static uint32_t hash(const void *p, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const unsigned char *)p)[i]) * 16777619u;
	return h;
}
static long last;
#define CALL(name, call)                                                           \
	do {                                                                       \
		errno = BEFORE;                                                    \
		last = (long)(call);                                               \
		int errno_ = errno;                                                \
		out("%lu %s %ld %d\n", (unsigned long)rounds, name, last, errno_); \
	} while (0)
#define CALL_OUT(name, call, p, n)                                                                  \
	do {                                                                                        \
		errno = BEFORE;                                                                     \
		last = (long)(call);                                                                \
		int errno_ = errno;                                                                 \
		out("%lu %s %ld %d %08x\n", (unsigned long)rounds, name, last, errno_, hash(p, n)); \
	} while (0)
/* A pointer, an id: 0 or something. */
#define CALL_SIGN(name, call)                                                                      \
	do {                                                                                       \
		errno = BEFORE;                                                                    \
		last = (long)(call);                                                               \
		int errno_ = errno;                                                                \
		out("%lu %s %d %d\n", (unsigned long)rounds, name, last<0 ? -1 : last> 0, errno_); \
	} while (0)

/* ---- arguments ---------------------------------------------------------------------------------------------- */

static void *volatile nowhere = (void *)8;
static char buf[8192], data[8192];

static struct timespec spec;
/* Long gone, or what no function should take.  One time in the future for those that must not wait. */
static const struct timespec *some_time(void)
{
	static const long ns[] = {0, 1, 999999999, 1000000000, -1, LONG_MAX, LONG_MIN},
			  s[] = {0, 1, 1000, -1, LONG_MIN};
	spec = (struct timespec){PICK(s), PICK(ns)};
	return &spec;
}
/* Of no length, or bad. */
static const struct timespec *no_time(void)
{
	static const long ns[] = {0, 0, 1, 1000000000, -1, LONG_MAX}, s[] = {0, 0, 0, -1};
	spec = (struct timespec){PICK(s), PICK(ns)};
	return &spec;
}
static clockid_t some_clock(void)
{
	static const clockid_t ids[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_BOOTTIME, CLOCK_TAI, -1, 99};
	return PICK(ids);
}

/* ---- a thread that does as it is told ------------------------------------------------------------------------ */

static struct {
	volatile int state; /* 0 idle, 1 asked, 2 end */
	long (*f)(void *);
	void *arg;
	long ret;
} other;
static void *other_run(void *arg)
{
	for (;;) {
		raw_wait(&other.state, 0);
		if (other.state == 2)
			return arg;
		other.ret = other.f(other.arg);
		raw_set(&other.state, 0);
	}
}
static long let_other(long (*f)(void *), void *arg)
{
	other.f = f;
	other.arg = arg;
	raw_set(&other.state, 1);
	raw_wait(&other.state, 1);
	return other.ret;
}

/* ---- mutexes --------------------------------------------------------------------------------------------------- */

#define N_MUTEX 24
enum { FREE, MINE, OTHERS, DEAD };
static struct {
	pthread_mutex_t m;
	int type, robust, protocol, owner, count;
} mutexes[N_MUTEX];

static void mutex_new(int i)
{
	static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ADAPTIVE_NP};
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	mutexes[i].type = types[i % 4];
	mutexes[i].robust = i / 4 % 2;
	mutexes[i].protocol = i / 8;
	pthread_mutexattr_settype(&a, mutexes[i].type);
	pthread_mutexattr_setrobust(&a, mutexes[i].robust);
	pthread_mutexattr_setprotocol(&a, mutexes[i].protocol);
	if (pthread_mutex_init(&mutexes[i].m, &a)) { /* robust with a ceiling there is not */
		pthread_mutex_init(&mutexes[i].m, NULL);
		mutexes[i].type = PTHREAD_MUTEX_NORMAL;
		mutexes[i].robust = 0;
	}
	mutexes[i].owner = FREE;
	mutexes[i].count = 0;
}
static long lock_it(void *m) { return pthread_mutex_lock(m); }
static long unlock_it(void *m) { return pthread_mutex_unlock(m); }
static void *lock_and_die(void *m) { return (void *)(long)pthread_mutex_lock(m); }

static void mutex(void)
{
	int i = (int)below(N_MUTEX);
	pthread_mutex_t *m = &mutexes[i].m;
	int owner = mutexes[i].owner;
	bool hangs = owner == OTHERS || (owner == MINE && mutexes[i].type != PTHREAD_MUTEX_ERRORCHECK &&
					 mutexes[i].type != PTHREAD_MUTEX_RECURSIVE);
	pthread_t t;
	switch (below(9)) {
	case 0:
		if (hangs)
			return;
		CALL("pthread_mutex_lock", pthread_mutex_lock(m));
		break;
	case 1:
		CALL("pthread_mutex_trylock", pthread_mutex_trylock(m));
		break;
	case 2:
		CALL("pthread_mutex_timedlock", pthread_mutex_timedlock(m, some_time()));
		break;
	case 3:
		CALL("pthread_mutex_clocklock", pthread_mutex_clocklock(m, some_clock(), some_time()));
		break;
	case 4:
	case 5:
		if (owner == FREE && !mutexes[i].robust && mutexes[i].type != PTHREAD_MUTEX_ERRORCHECK)
			return;
		if (owner == OTHERS && mutexes[i].type != PTHREAD_MUTEX_ERRORCHECK &&
		    mutexes[i].type != PTHREAD_MUTEX_RECURSIVE)
			return;
		CALL("pthread_mutex_unlock", pthread_mutex_unlock(m));
		if (!last && mutexes[i].owner == MINE && !--mutexes[i].count)
			mutexes[i].owner = FREE;
		return;
	case 6:
		if (owner == OTHERS) {
			out("other unlocks %ld\n", let_other(unlock_it, m));
			mutexes[i].owner = FREE;
		} else if (owner == FREE) {
			long r = let_other(lock_it, m);
			out("other locks %ld\n", r);
			if (!r || r == EOWNERDEAD)
				mutexes[i].owner = OTHERS;
		}
		return;
	case 7:
		if (owner != FREE || !mutexes[i].robust)
			return;
		pthread_create(&t, NULL, lock_and_die, m);
		pthread_join(t, NULL);
		return;
	default:
		CALL("pthread_mutex_consistent", owner == MINE && mutexes[i].robust ? pthread_mutex_consistent(m) : 0);
		if (!below(4) && owner == FREE)
			mutex_new(i);
		return;
	}
	if (last == 0 || last == EOWNERDEAD) {
		mutexes[i].owner = MINE;
		mutexes[i].count++;
	}
}

/* ---- conditions --------------------------------------------------------------------------------------------------- */

static pthread_cond_t conds[2];
static void condition(void)
{
	static const int may[] = {0, 1, 2, 4, 5, 6}; /* neither with PI nor with a ceiling */
	int i = PICK(may);
	pthread_cond_t *c = &conds[below(2)];
	if (below(4) && mutexes[i].owner != MINE)
		return;
	if (mutexes[i].owner != MINE && mutexes[i].type != PTHREAD_MUTEX_ERRORCHECK && !mutexes[i].robust)
		return;
	if (mutexes[i].count > 1)
		return;
	switch (below(4)) {
	case 0:
		CALL("pthread_cond_timedwait", pthread_cond_timedwait(c, &mutexes[i].m, some_time()));
		break;
	case 1:
		CALL("pthread_cond_clockwait", pthread_cond_clockwait(c, &mutexes[i].m, some_clock(), some_time()));
		break;
	case 2:
		CALL("pthread_cond_signal", pthread_cond_signal(c));
		break;
	default:
		CALL("pthread_cond_broadcast", pthread_cond_broadcast(c));
	}
}

/* ---- read-write locks ------------------------------------------------------------------------------------------------ */

static struct {
	pthread_rwlock_t l;
	int readers, writer, others; /* others: 1 reads, 2 writes */
} rws[3];
static long rd_it(void *l) { return pthread_rwlock_rdlock(l); }
static long wr_it(void *l) { return pthread_rwlock_wrlock(l); }
static long rw_unlock_it(void *l) { return pthread_rwlock_unlock(l); }
static void rwlock(void)
{
	int i = (int)below(3), kind = (int)below(11), write = 0;
	pthread_rwlock_t *l = &rws[i].l;
	switch (kind) {
	case 0:
		if (rws[i].others == 2)
			return;
		CALL("pthread_rwlock_rdlock", pthread_rwlock_rdlock(l));
		break;
	case 1:
		if (rws[i].others || rws[i].readers)
			return;
		write = 1;
		CALL("pthread_rwlock_wrlock", pthread_rwlock_wrlock(l));
		break;
	case 2:
		CALL("pthread_rwlock_tryrdlock", pthread_rwlock_tryrdlock(l));
		break;
	case 3:
		write = 1;
		CALL("pthread_rwlock_trywrlock", pthread_rwlock_trywrlock(l));
		break;
	case 4:
		CALL("pthread_rwlock_timedrdlock", pthread_rwlock_timedrdlock(l, some_time()));
		break;
	case 5:
		write = 1;
		CALL("pthread_rwlock_timedwrlock", pthread_rwlock_timedwrlock(l, some_time()));
		break;
	case 6:
		CALL("pthread_rwlock_clockrdlock", pthread_rwlock_clockrdlock(l, some_clock(), some_time()));
		break;
	case 7:
		write = 1;
		CALL("pthread_rwlock_clockwrlock", pthread_rwlock_clockwrlock(l, some_clock(), some_time()));
		break;
	case 8:
		if (rws[i].others) {
			out("other unlocks %ld\n", let_other(rw_unlock_it, l));
			rws[i].others = 0;
		} else if (!rws[i].writer) {
			write = !rws[i].readers && below(2);
			out("other locks %ld\n", let_other(write ? wr_it : rd_it, l));
			rws[i].others = 1 + write;
		}
		return;
	default:
		if (!rws[i].readers && !rws[i].writer)
			return;
		CALL("pthread_rwlock_unlock", pthread_rwlock_unlock(l));
		rws[i].writer = 0;
		rws[i].readers -= rws[i].readers > 0;
		return;
	}
	if (!last && write)
		rws[i].writer = 1;
	else if (!last)
		rws[i].readers++;
}

/* ---- semaphores --------------------------------------------------------------------------------------------------------- */

static sem_t sems[2];
static void semaphore(void)
{
	sem_t *s = &sems[below(2)];
	int n = 0;
	sem_getvalue(s, &n);
	switch (below(6)) {
	case 0:
		if (n)
			CALL("sem_wait", sem_wait(s));
		break;
	case 1:
		CALL("sem_trywait", sem_trywait(s));
		break;
	case 2:
		CALL("sem_timedwait", sem_timedwait(s, some_time()));
		break;
	case 3:
		CALL("sem_clockwait", sem_clockwait(s, some_clock(), some_time()));
		break;
	case 4:
		if (n < 5)
			CALL("sem_post", sem_post(s));
		break;
	default:
		if (!below(20)) {
			sem_destroy(s);
			sem_init(s, 0, SEM_VALUE_MAX);
			CALL("sem_post", sem_post(s));
			CALL("sem_wait", sem_wait(s));
			sem_init(s, 0, 1);
		}
	}
	sem_getvalue(s, &n);
	out("value %d\n", n);
}

/* ---- C11, once, barriers, joins -------------------------------------------------------------------------------------------- */

static mtx_t mtxs[4];
static int mtx_count[4];
static cnd_t cnd;
static int ran;
static void run_once(void) { ran++; }
static void *returns_arg(void *arg) { return arg; }
static int returns_int(void *arg) { return (int)(long)arg; }

static void c11(void)
{
	static const int kinds[] = {mtx_plain, mtx_timed, mtx_recursive | mtx_timed, mtx_recursive};
	int i = (int)below(4);
	bool again = !mtx_count[i] || (kinds[i] & mtx_recursive);
	switch (below(5)) {
	case 0:
		if (again) {
			CALL("mtx_lock", mtx_lock(&mtxs[i]));
			mtx_count[i] += last == thrd_success;
		}
		break;
	case 1:
		CALL("mtx_timedlock", mtx_timedlock(&mtxs[i], some_time()));
		mtx_count[i] += last == thrd_success;
		break;
	case 2:
		if (mtx_count[i]) {
			CALL("mtx_unlock", mtx_unlock(&mtxs[i]));
			mtx_count[i]--;
		}
		break;
	case 3:
		if (mtx_count[i] == 1)
			CALL("cnd_timedwait", cnd_timedwait(&cnd, &mtxs[i], some_time()));
		break;
	default:
		CALL("cnd_signal", cnd_signal(&cnd));
		CALL("cnd_broadcast", cnd_broadcast(&cnd));
		CALL("thrd_sleep", thrd_sleep(no_time(), NULL));
	}
}

static sem_t given;
/* A cancellation is pending, and there is nothing to wait for. */
static void *cancelled(void *how)
{
	struct timespec late = {1, 0};
	sem_init(&given, 0, 1);
	pthread_cancel(pthread_self());
	if (how == (void *)0)
		sem_wait(&given);
	else if (how == (void *)1)
		sem_timedwait(&given, &late);
	else if (how == (void *)2)
		sem_trywait(&given);
	else if (how == (void *)3)
		sleep(0);
	else if (how == (void *)4)
		close(-1);
	else if (how == (void *)5)
		poll(NULL, 0, 0);
	return (void *)7;
}

static void threads(void)
{
	pthread_t t;
	pthread_attr_t a;
	thrd_t c;
	void *ret = NULL;
	int n = 0;
	pthread_barrier_t b;
	pthread_once_t once = PTHREAD_ONCE_INIT;
	once_flag flag = ONCE_FLAG_INIT;
	struct timespec soon;
	switch (below(9)) {
	case 8:
		CALL("pthread_create", pthread_create(&t, NULL, cancelled, (void *)(long)below(7)));
		CALL("pthread_join", pthread_join(t, &ret));
		sem_getvalue(&given, &n);
		out("cancelled %d given %d\n", ret == PTHREAD_CANCELED, n);
		break;
	case 0:
		CALL("pthread_create", pthread_create(&t, NULL, returns_arg, (void *)0x77));
		CALL("pthread_join", pthread_join(t, &ret));
		out("joined %p\n", ret);
		break;
	case 1:
		CALL("pthread_create", pthread_create(&t, NULL, returns_arg, (void *)0x78));
		clock_gettime(CLOCK_MONOTONIC, &soon);
		soon.tv_sec += 20;
		soon.tv_nsec = below(2) ? soon.tv_nsec : PICK(((long[]){-1, 1000000000}));
		CALL("pthread_clockjoin_np",
		     pthread_clockjoin_np(t, &ret, some_clock() == 99 ? 99 : CLOCK_MONOTONIC, &soon));
		if (last)
			CALL("pthread_join", pthread_join(t, &ret));
		break;
	case 2:
		CALL("pthread_join", pthread_join(pthread_self(), NULL));
		CALL("pthread_tryjoin_np", pthread_tryjoin_np(pthread_self(), NULL));
		CALL("pthread_timedjoin_np", pthread_timedjoin_np(pthread_self(), NULL, some_time()));
		break;
	case 3:
		CALL("thrd_create", thrd_create(&c, returns_int, (void *)-5));
		CALL("thrd_join", thrd_join(c, &n));
		out("joined %d\n", n);
		break;
	case 4:
		pthread_barrier_init(&b, NULL, 1);
		CALL("pthread_barrier_wait", pthread_barrier_wait(&b));
		CALL("pthread_barrier_destroy", pthread_barrier_destroy(&b));
		break;
	case 5:
		CALL("pthread_once", pthread_once(&once, run_once));
		CALL("pthread_once", pthread_once(&once, run_once));
		call_once(&flag, run_once);
		call_once(&flag, run_once);
		out("ran %d\n", ran);
		break;
	case 6:
		pthread_attr_init(&a);
		pthread_attr_setstacksize(&a, (size_t)1 << 46);
		CALL("pthread_create", pthread_create(&t, &a, returns_arg, NULL));
		pthread_attr_setstacksize(&a, 16384);
		CALL("pthread_create", pthread_create(&t, &a, returns_arg, NULL));
		CALL("pthread_join", pthread_join(t, NULL));
		break;
	default:
		CALL("pthread_setname_np",
		     pthread_setname_np(pthread_self(),
					PICK(((const char *[]){"", "short", "sixteen bytes...", "differ"}))));
		CALL("pthread_tryjoin_np", pthread_tryjoin_np(pthread_self(), &ret));
	}
}

/* ---- descriptors ------------------------------------------------------------------------------------------------------------ */

/* pipe r, pipe w, pair, pair, file, file (append), folder, /dev/null, eventfd, epoll, /dev/full, closed, -1, huge */
#define N_FDS 14
#define SPARE_FD 200 /* a number that nothing has */
static int fds[N_FDS];
static int some_fd(void) { return fds[below(N_FDS)]; }
static void *some_buf(void) { return below(8) ? buf : nowhere; }
static size_t some_size(void)
{
	static const size_t n[] = {0, 1, 7, 8, 9, 100, 4096, 8192};
	return PICK(n);
}
static off_t some_at(void)
{
	static const off_t n[] = {0, 1, 100, 5000, -1, LONG_MIN};
	return PICK(n);
}
static struct iovec vec[4];
static const struct iovec *some_vec(void)
{
	for (int i = 0; i < 4; i++)
		vec[i] = (struct iovec){below(12) ? buf + 1024 * i : nowhere, below(12) ? below(1024) : (size_t)-1};
	return below(10) ? vec : nowhere;
}
static int some_count(void)
{
	static const int n[] = {0, 1, 2, 4, 4, -1, 1025, INT_MAX};
	return PICK(n);
}
static int some_flags(void)
{
	static const int n[] = {MSG_DONTWAIT,
				MSG_DONTWAIT | MSG_PEEK,
				MSG_DONTWAIT | MSG_NOSIGNAL,
				MSG_DONTWAIT | MSG_TRUNC,
				MSG_DONTWAIT | MSG_OOB,
				-1};
	return PICK(n);
}

static void sockets(void)
{
	int fd = some_fd();
	struct sockaddr_storage sa;
	socklen_t n = (socklen_t)below(2) * sizeof(sa);
	struct mmsghdr mm[2];
	struct msghdr m = {0};
	memset(&sa, 0, sizeof(sa));
	memset(mm, 0, sizeof(mm));
	for (int i = 0; i < 2; i++)
		mm[i].msg_hdr = (struct msghdr){.msg_iov = (struct iovec *)some_vec(), .msg_iovlen = below(4)};
	m.msg_iov = (struct iovec *)some_vec();
	m.msg_iovlen = below(5) ? below(4) : 1025;
	memcpy(buf, data, sizeof(buf));
	switch (below(15)) {
	case 0:
		CALL_OUT("recv", recv(fd, some_buf(), some_size(), some_flags()), buf, sizeof(buf));
		break;
	case 1:
		CALL_OUT("recvfrom",
			 recvfrom(fd, some_buf(), some_size(), some_flags(), (void *)&sa, below(4) ? &n : NULL), buf,
			 sizeof(buf));
		out("%u %08x\n", n, hash(&sa, sizeof(sa)));
		break;
	case 2:
		CALL_OUT("recvmsg", recvmsg(fd, below(8) ? &m : nowhere, some_flags()), buf, sizeof(buf));
		out("%d\n", m.msg_flags);
		break;
	case 3:
		CALL("send", send(fd, some_buf(), some_size() / 8, some_flags() | MSG_NOSIGNAL));
		break;
	case 4:
		CALL("sendto", sendto(fd, some_buf(), some_size() / 8, some_flags() | MSG_NOSIGNAL,
				      below(3) ? NULL : (void *)&sa, n));
		break;
	case 5:
		CALL("sendmsg", sendmsg(fd, below(8) ? &m : nowhere, some_flags() | MSG_NOSIGNAL));
		break;
	case 6:
		CALL_OUT("recvmmsg",
			 recvmmsg(fd, below(8) ? mm : nowhere, below(3), some_flags(),
				  below(2) ? NULL : (void *)no_time()),
			 buf, sizeof(buf));
		out("%u %u\n", mm[0].msg_len, mm[1].msg_len);
		break;
	case 7:
		CALL("sendmmsg", sendmmsg(fd, below(8) ? mm : nowhere, below(3), some_flags() | MSG_NOSIGNAL));
		out("%u %u\n", mm[0].msg_len, mm[1].msg_len);
		break;
	case 8:
		if (fd != fds[2] && fd != fds[3])
			CALL("connect", connect(fd, below(4) ? (void *)&sa : nowhere, n));
		break;
	case 9:
		CALL("accept", accept(fd, below(2) ? NULL : (void *)&sa, &n));
		break;
	case 10:
		CALL("accept4", accept4(fd, below(2) ? NULL : (void *)&sa, &n, below(2) ? -1 : SOCK_CLOEXEC));
		break;
	case 11:
		CALL("socket", socket(below(2) ? AF_UNIX : (int)below(60), below(2) ? SOCK_STREAM : -1, (int)below(3)));
		if (last >= 0)
			CALL("close", close((int)last));
		break;
	case 12:
		CALL("dup2", dup2(fd, PICK(((int[]){SPARE_FD, -1, INT_MAX, fd}))));
		if (last == SPARE_FD)
			CALL("close", close(SPARE_FD));
		break;
	case 13:
		CALL("dup3",
		     dup3(fd, PICK(((int[]){SPARE_FD, -1, INT_MAX, fd})), below(3) ? O_CLOEXEC : (int)below(3)));
		if (last == SPARE_FD)
			CALL("close", close(SPARE_FD));
		break;
	default:
		CALL("dup", dup(fd));
		if (last >= 0)
			CALL("close", close((int)last));
	}
}

static void reads(void)
{
	int fd = some_fd();
	uint64_t v = 0;
	memcpy(buf, data, sizeof(buf));
	switch (below(16)) {
	case 0:
		CALL_OUT("read", read(fd, some_buf(), some_size()), buf, sizeof(buf));
		break;
	case 1:
		CALL_OUT("pread", pread(fd, some_buf(), some_size(), some_at()), buf, sizeof(buf));
		break;
	case 2:
		CALL_OUT("pread64", pread64(fd, some_buf(), some_size(), some_at()), buf, sizeof(buf));
		break;
	case 3:
		CALL_OUT("readv", readv(fd, some_vec(), some_count()), buf, sizeof(buf));
		break;
	case 4:
		CALL_OUT("preadv", preadv(fd, some_vec(), some_count(), some_at()), buf, sizeof(buf));
		break;
	case 5:
		CALL_OUT("preadv2", preadv2(fd, some_vec(), some_count(), some_at(), (int)below(3) - 1), buf,
			 sizeof(buf));
		break;
	case 6:
		CALL_OUT("preadv64v2", preadv64v2(fd, some_vec(), some_count(), some_at(), (int)below(3) - 1), buf,
			 sizeof(buf));
		break;
	case 7:
		CALL_OUT("eventfd_read", eventfd_read(fd, &v), &v, sizeof(v));
		break;
	case 8:
		CALL("write", write(fd, some_buf(), some_size() / 8));
		break;
	case 9:
		CALL("pwrite", pwrite(fd, some_buf(), some_size(), some_at()));
		break;
	case 10:
		CALL("pwrite64", pwrite64(fd, some_buf(), some_size(), some_at()));
		break;
	case 11:
		CALL("writev", writev(fd, some_vec(), some_count()));
		break;
	case 12:
		CALL("pwritev", pwritev(fd, some_vec(), some_count(), some_at()));
		break;
	case 13:
		CALL("pwritev2", pwritev2(fd, some_vec(), some_count(), some_at(), (int)below(3) - 1));
		break;
	case 14:
		CALL("pwritev64v2", pwritev64v2(fd, some_vec(), some_count(), some_at(), (int)below(3) - 1));
		break;
	default:
		CALL("eventfd_write", eventfd_write(fd, PICK(((uint64_t[]){0, 1, ~0ull, ~0ull - 1}))));
	}
}

static void transfers(void)
{
	int a = some_fd(), b = some_fd();
	off64_t at = some_at(), at2 = some_at();
	off64_t *pa = below(2) ? &at : NULL, *pb = below(2) ? &at2 : NULL;
	unsigned flags = below(4) ? SPLICE_F_NONBLOCK : ~0u;
	switch (below(6)) {
	case 0:
		CALL("sendfile", sendfile(a, b, pa, some_size()));
		break;
	case 1:
		CALL("sendfile64", sendfile64(a, b, pa, some_size()));
		break;
	case 2:
		CALL("splice", splice(a, pa, b, pb, some_size() / 8, flags));
		break;
	case 3:
		CALL("tee", tee(a, b, some_size(), flags));
		break;
	case 4:
		if (a != fds[1]) /* where memory would be given away */
			CALL("vmsplice", vmsplice(a, some_vec(), below(4), flags));
		break;
	default:
		CALL("copy_file_range", copy_file_range(a, pa, b, pb, some_size(), below(4) ? 0 : 1));
	}
	out("%ld %ld\n", (long)at, (long)at2);
}

static void waits(void)
{
	struct pollfd p[3];
	struct epoll_event ev[4];
	fd_set r, w;
	struct timeval tv = {below(4) ? 0 : -1, below(4) ? 0 : -1};
	sigset_t none, usr;
	siginfo_t info;
	int sig = 0;
	sigemptyset(&none);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	memset(ev, 0, sizeof(ev));
	memset(&info, 0, sizeof(info));
	for (int i = 0; i < 3; i++)
		p[i] = (struct pollfd){some_fd(), (short)below(64), 0};
	FD_ZERO(&r);
	FD_ZERO(&w);
	for (int i = 0; i < 3; i++)
		if (below(2) && fds[i] >= 0)
			FD_SET(fds[i], below(2) ? &r : &w);
	switch (below(13)) {
	case 0:
		CALL_OUT("poll", poll(below(8) ? p : nowhere, below(8) ? below(4) : 1u << 30, 0), p, sizeof(p));
		break;
	case 1:
		CALL_OUT("ppoll", ppoll(below(8) ? p : nowhere, below(4), no_time(), below(2) ? &none : NULL), p,
			 sizeof(p));
		out("%ld %ld\n", spec.tv_sec, spec.tv_nsec);
		break;
	case 2:
		CALL_OUT("select", select(below(8) ? 32 : -1, below(4) ? &r : NULL, &w, below(8) ? NULL : nowhere, &tv),
			 &r, sizeof(r));
		out("%ld %ld %08x\n", (long)tv.tv_sec, (long)tv.tv_usec, hash(&w, sizeof(w)));
		break;
	case 3:
		CALL_OUT("pselect", pselect(32, &r, &w, NULL, no_time(), below(2) ? &none : NULL), &r, sizeof(r));
		break;
	case 4:
		CALL_OUT("epoll_wait", epoll_wait(some_fd(), below(8) ? ev : nowhere, (int)below(6) - 1, 0), ev,
			 sizeof(ev));
		break;
	case 5:
		CALL_OUT("epoll_pwait", epoll_pwait(some_fd(), ev, (int)below(6) - 1, 0, below(2) ? &none : NULL), ev,
			 sizeof(ev));
		break;
	case 6:
		CALL_OUT("epoll_pwait2", epoll_pwait2(some_fd(), ev, (int)below(6) - 1, no_time(), NULL), ev,
			 sizeof(ev));
		break;
	case 7:
		ev[0].events = EPOLLIN;
		ev[0].data.u64 = 5;
		CALL("epoll_ctl", epoll_ctl(some_fd(), (int)below(5), some_fd(), below(8) ? ev : nowhere));
		break;
	case 8:
		if (below(2))
			raise(SIGUSR1); /* it is blocked */
		CALL("sigtimedwait", sigtimedwait(below(8) ? &usr : nowhere, &info, no_time()));
		out("%d %d\n", info.si_signo, info.si_code);
		break;
	case 9:
		raise(SIGUSR1);
		CALL("sigwaitinfo", sigwaitinfo(&usr, below(8) ? &info : NULL));
		break;
	case 10:
		raise(SIGUSR1);
		CALL("sigwait", sigwait(&usr, &sig));
		out("%d\n", sig);
		break;
	case 11:
		raise(SIGUSR1);
		CALL("sigsuspend", sigsuspend(&none));
		break;
	default:
		CALL("nanosleep", nanosleep(no_time(), &(struct timespec){0}));
		CALL("clock_nanosleep",
		     clock_nanosleep((int)PICK(((int[]){CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, 99})),
				     below(2) ? TIMER_ABSTIME : 0, no_time(), NULL));
		CALL("usleep", usleep(0));
		CALL("sleep", sleep(0));
	}
}

/* ---- files --------------------------------------------------------------------------------------------------------------------- */

static char long_name[5000];
static const char *some_path(void)
{
	static const char *const names[] = {"file", "new", "new2", "folder", "folder/in", "file/in",  "missing/in",
					    "",     ".",   "link", "loop",   "/",         "/dev/null"};
	uint32_t i = below(15);
	return i < 13 ? names[i] : i == 13 ? long_name : nowhere;
}
static const char *safe_path(void) /* to be removed or made */
{
	static const char *const names[] = {"new", "new2", "folder/in", "new3", "missing/in", "", "file/in"};
	uint32_t i = below(9);
	return i < 7 ? names[i] : i == 7 ? long_name : nowhere;
}
static void opened(void)
{
	if (last < 0)
		return;
	out("flags %lx\n", (unsigned long)fcntl((int)last, F_GETFL));
	CALL("close", close((int)last));
}

static void paths(void)
{
	static const int flags[] = {O_RDONLY,    O_RDWR, O_WRONLY | O_CREAT, O_WRONLY | O_CREAT | O_EXCL,
				    O_DIRECTORY, O_PATH, O_NOFOLLOW,         O_TMPFILE | O_RDWR,
				    -1};
	const char *p = some_path();
	int at = below(3) ? AT_FDCWD : some_fd(), flag = PICK(flags) & ~(O_TRUNC | O_ASYNC | O_DIRECT),
	    mode = PICK(((int[]){0, 0600, 0777, 0640, -1}));
	struct stat st;
	struct stat64 st64;
	struct statx sx;
	memset(&st, 0, sizeof(st));
	memset(&st64, 0, sizeof(st64));
	memset(&sx, 0, sizeof(sx));
	switch (below(26)) {
	case 0:
		CALL("open", open(p, flag | O_NONBLOCK, mode));
		opened();
		break;
	case 1:
		CALL("open64", open64(p, flag | O_NONBLOCK, mode));
		opened();
		break;
	case 2:
		CALL("openat", openat(at, p, flag | O_NONBLOCK, mode));
		opened();
		break;
	case 3:
		CALL("openat64", openat64(at, p, flag | O_NONBLOCK, mode));
		opened();
		break;
	case 4:
		p = safe_path();
		CALL("creat", creat(p, (mode_t)mode & 0777));
		opened();
		if (!stat(p, &st))
			out("mode %o\n", st.st_mode);
		break;
	case 5:
		CALL("creat64", creat64(safe_path(), 0600));
		opened();
		break;
	case 6:
		CALL("rename", rename(safe_path(), safe_path()));
		break;
	case 7:
		CALL("renameat", renameat(at, safe_path(), AT_FDCWD, safe_path()));
		break;
	case 8:
		CALL("renameat2",
		     renameat2(at, safe_path(), AT_FDCWD, safe_path(), PICK(((unsigned[]){0, 1, 2, 3, ~0u}))));
		break;
	case 9:
		CALL("unlink", unlink(safe_path()));
		break;
	case 10:
		CALL("unlinkat", unlinkat(at, safe_path(), PICK(((int[]){0, AT_REMOVEDIR, -1}))));
		break;
	case 11:
		CALL("rmdir", rmdir(safe_path()));
		break;
	case 12:
		CALL("mkdir", mkdir(safe_path(), (mode_t)mode & 0777));
		break;
	case 13:
		CALL("mkdirat", mkdirat(at, safe_path(), 0700));
		break;
	case 14:
		CALL("access", access(p, PICK(((int[]){F_OK, R_OK, X_OK, 99}))));
		break;
	case 15:
		CALL("faccessat", faccessat(at, p, R_OK, PICK(((int[]){0, AT_EACCESS, AT_SYMLINK_NOFOLLOW, -1}))));
		break;
	case 16:
		CALL("stat", stat(p, below(8) ? &st : nowhere));
		break;
	case 17:
		CALL("lstat64", lstat64(p, &st64));
		break;
	case 18:
		CALL("fstat", fstat(some_fd(), &st));
		break;
	case 19:
		CALL("fstatat64", fstatat64(at, p, &st64, PICK(((int[]){0, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, -1}))));
		break;
	case 20:
		CALL("statx", statx(at, p, PICK(((int[]){0, AT_EMPTY_PATH, -1})),
				    PICK(((unsigned[]){STATX_SIZE, ~0u, 0})), &sx));
		out("%lu\n", last ? 0 : (unsigned long)(S_ISREG(sx.stx_mode) ? sx.stx_size : 0));
		break;
	case 21:
		CALL("truncate", truncate(below(2) ? "file" : p, PICK(((off_t[]){0, 1, 5000, -1}))));
		break;
	case 22:
		CALL("ftruncate", ftruncate(some_fd(), PICK(((off_t[]){0, 1, 5000, -1}))));
		break;
	case 23:
		CALL("fallocate",
		     fallocate(some_fd(), (int)below(5) - 1, some_at(), PICK(((off_t[]){0, 1, 5000, -1}))));
		break;
	case 24:
		CALL("posix_fallocate", posix_fallocate(some_fd(), some_at(), PICK(((off_t[]){0, 1, 5000, -1}))));
		break;
	default:
		CALL("truncate64", truncate64(p, PICK(((off_t[]){1, -1}))));
		CALL("posix_fallocate64", posix_fallocate64(some_fd(), 0, 1));
	}
	out("%ld %o %ld %o\n", S_ISREG(st.st_mode) ? (long)st.st_size : 0, st.st_mode,
	    S_ISREG(st64.st_mode) ? (long)st64.st_size : 0, st64.st_mode);
}

static void locks_and_syncs(void)
{
	struct flock fl = {
		.l_type = (short)below(5), .l_whence = (short)below(4), .l_start = some_at(), .l_len = below(100)};
	switch (below(9)) {
	case 0:
		CALL("flock", flock(some_fd(), PICK(((int[]){LOCK_SH | LOCK_NB, LOCK_EX | LOCK_NB, LOCK_UN, -1, 0}))));
		CALL("flock", flock(fds[4], LOCK_UN));
		CALL("flock", flock(fds[5], LOCK_UN));
		break;
	case 1:
		CALL("lockf", lockf(some_fd(), PICK(((int[]){F_TLOCK, F_TEST, F_ULOCK, F_LOCK, 99})), some_at()));
		break;
	case 2:
		CALL("fcntl",
		     fcntl(some_fd(),
			   PICK(((int[]){F_GETFD, F_GETFL, F_GETOWN, F_GETSIG, F_GETPIPE_SZ, F_GET_SEALS, 9999}))));
		break;
	case 3:
		CALL("fcntl", fcntl(some_fd(), PICK(((int[]){F_SETLK, F_SETLKW, F_OFD_SETLKW, F_OFD_SETLK})),
				    below(8) ? &fl : nowhere));
		break;
	case 4:
		CALL_OUT("fcntl64", fcntl64(some_fd(), F_GETLK, &fl), &fl, offsetof(struct flock, l_pid));
		break;
	case 5:
		CALL("fcntl", fcntl(some_fd(), below(2) ? F_DUPFD : F_DUPFD_CLOEXEC, (int)below(300) - 1));
		if (last >= 0)
			CALL("close", close((int)last));
		break;
	case 6:
		CALL("msync",
		     msync(below(2) ? (void *)1 : (void *)((uintptr_t)buf & ~4095ul), some_size(), (int)below(8)));
		CALL("sync_file_range", sync_file_range(some_fd(), some_at(), 0, below(9)));
		break;
	case 7:
		CALL("fsync", fsync(some_fd()));
		CALL("fdatasync", fdatasync(some_fd()));
		break;
	default:
		CALL("close", close(PICK(((int[]){-1, INT_MAX, INT_MIN, 5000, 4096, 4095}))));
	}
}

/* ---- stdio ---------------------------------------------------------------------------------------------------------------------- */

#define N_FILES 8
static FILE *files[N_FILES];
static char memory[300];
static ssize_t cookie_write(void *c, const char *p, size_t n)
{
	(void)c, (void)p;
	errno = ENETDOWN;
	return n > 50 ? 0 : (ssize_t)n;
}
static ssize_t cookie_read(void *c, char *p, size_t n)
{
	(void)c;
	errno = ENETUNREACH;
	if (n < 100)
		return -1;
	memset(p, 'c', 60);
	p[30] = '\n';
	return 60;
}
static void file_new(int i)
{
	switch (i) {
	case 0:
		files[i] = fopen("file", "r+");
		break;
	case 1:
		files[i] = fopen64("stdio", "w+e");
		break;
	case 2:
		files[i] = fmemopen(memory, sizeof(memory), "r+");
		break;
	case 3:
		files[i] = fopencookie(NULL, "r+", (cookie_io_functions_t){.read = cookie_read, .write = cookie_write});
		break;
	case 4:
		files[i] = fopen("/dev/full", "w");
		break;
	case 5:
		files[i] = fopen("file", "r");
		break;
	case 6:
		files[i] = fopen("folder", "r");
		break;
	default:
		files[i] = fopen("/dev/null", "r+");
	}
	out("FILE %d %d\n", i, files[i] != NULL);
	if (files[i] && below(2))
		out("setvbuf %d\n", setvbuf(files[i], NULL, PICK(((int[]){_IONBF, _IOLBF, _IOFBF})),
					    PICK(((size_t[]){0, 1, 64, 4096}))));
}
static const char *some_text(void)
{
	static char t[3000];
	size_t n = PICK(((size_t[]){0, 1, 10, 63, 64, 65, 1100, 2500}));
	memset(t, 't', n);
	t[n] = 0;
	if (n && below(2))
		t[n - 1] = '\n';
	return t;
}
static void file_state(FILE *f)
{
	errno = BEFORE;
	long at = ftell(f);
	out("at %ld error %d end %d wide %d\n", at, ferror(f) != 0, feof(f) != 0, fwide(f, 0));
}

/* What the standard asks for between reading and writing; glibc's buffers break without it. */
static void turn(int i, int what)
{
	static int did[N_FILES];
	if (what && did[i] != what)
		fseek(files[i], 0, SEEK_CUR);
	did[i] = what ? what : did[i];
}

static void stdio(void)
{
	int i = (int)below(N_FILES), what = (int)below(26);
	FILE *f = files[i];
	static char *line;
	static size_t room;
	const char *mode = PICK(((const char *[]){"r", "w", "a+", "r+", "x", "", "rx,ccs=nonsense"}));
	memcpy(buf, data, sizeof(buf));
	if (!f) {
		file_new(i);
		return;
	}
	static const char does[27] = "rrwwrrrrwwww0000000rw00000"; /* reads, writes */
	if ((what == 19 || what == 20 || what == 21) && fwide(f, 0) > 0)
		return; /* they do not ask */
	turn(i, does[what] == '0' ? 0 : does[what]);
	switch (what) {
	case 0:
		CALL_OUT("fread", fread(buf, PICK(((size_t[]){0, 1, 3, 8})), PICK(((size_t[]){0, 1, 20, 900})), f), buf,
			 sizeof(buf));
		break;
	case 1:
		CALL_OUT("fread_unlocked", fread_unlocked(buf, 1, some_size() / 2, f), buf, sizeof(buf));
		break;
	case 2:
		CALL("fwrite", fwrite(data, PICK(((size_t[]){0, 1, 3, 8})), PICK(((size_t[]){0, 1, 20, 900})), f));
		break;
	case 3:
		CALL("fwrite_unlocked", fwrite_unlocked(data, 1, some_size() / 2, f));
		break;
	case 4:
		CALL_OUT("fgets", fgets(buf, PICK(((int[]){0, 1, 2, 10, 4000, -1})), f) != NULL, buf, sizeof(buf));
		break;
	case 5:
		CALL_OUT("fgets_unlocked", fgets_unlocked(buf, PICK(((int[]){0, 1, 2, 10, 4000, -1})), f) != NULL, buf,
			 sizeof(buf));
		break;
	case 6:
		CALL("getline", getline(below(8) ? &line : NULL, &room, f));
		if (last > 0)
			out("%08x\n", hash(line, (size_t)last));
		break;
	case 7:
		CALL("getdelim", getdelim(&line, below(8) ? &room : NULL, 'c', f));
		break;
	case 8:
		CALL("fputs", fputs(some_text(), f));
		break;
	case 9:
		CALL("fputs_unlocked", fputs_unlocked(some_text(), f));
		break;
	case 10:
		CALL("fprintf", fprintf(f, "%d %s %.3f %c", (int)below(99), some_text(), 1.5, 'x'));
		break;
	case 11:
		CALL("fprintf", fprintf(f, "%1$d %2$f %3$d %4$f %5$d %6$f %7$d %8$f %9$s %10$g %11$lld %12$Lf", 1, 2.,
					3, 4., 5, 6., 7, 8., "9", 10., 11ll, 12.L));
		break;
	case 12:
		CALL("dprintf", dprintf(some_fd() == fds[1] ? -1 : fds[7], "%d%s", 7, some_text()));
		break;
	case 13:
		CALL("fflush", fflush(below(6) ? f : NULL));
		break;
	case 14:
		CALL("fflush_unlocked", fflush_unlocked(f));
		break;
	case 15:
		CALL("fseek", fseek(f, some_at(), (int)below(4)));
		break;
	case 16:
		CALL("fclose", fclose(f));
		files[i] = NULL;
		return;
	case 17:
		if (i == 2 || i == 3)
			return;
		CALL("freopen", (files[i] = freopen(below(3)   ? "stdio"
						    : below(2) ? "missing/in"
							       : NULL,
						    mode, f)) != NULL);
		return;
	case 18:
		CALL("fopen", 0 != (f = fopen(some_path(), mode)));
		if (f)
			CALL("fclose", fclose(f));
		return;
	case 19:
		for (int k = 0; k < 200; k++)
			CALL("getc", getc_unlocked(f)); /* __uflow */
		break;
	case 20:
		for (int k = 0; k < 200; k++)
			CALL("putc", putc_unlocked(k, f)); /* __overflow */
		break;
	case 21:
		CALL("fwide", fwide(f, PICK(((int[]){0, 0, 0, -1}))));
		break;
	case 22: /* what libc answers before it looks at the stream */
		CALL("fread", fread(buf, 0, 9, below(2) ? NULL : nowhere));
		CALL("fwrite", fwrite(buf, 9, 0, below(2) ? NULL : nowhere));
		CALL("fread_unlocked", fread_unlocked(buf, 0, 9, NULL));
		CALL("fwrite_unlocked", fwrite_unlocked(buf, 9, 0, NULL));
		CALL("fgets", fgets(buf, 0, NULL) != NULL);
		CALL("fgets", fgets(buf, 1, NULL) != NULL);
		CALL("getline", getline(NULL, NULL, NULL));
		return;
	case 23:
		clearerr(f);
		break;
	case 24:
		CALL("puts", puts(some_text()));
		CALL("printf", printf("%d %s %Lf\n", 1, some_text(), 2.5L));
		break;
	default:
		rewind(f);
	}
	file_state(f);
}

/* ---- processes ----------------------------------------------------------------------------------------------------------------------- */

static int run_list(int which)
{
	switch (which) {
	case 0:
		return execl("/bin/sh", "sh", "-c", "exit $1", "x", PICK(((const char *[]){"0", "3", "77"})),
			     (char *)NULL);
	case 1:
		return execlp("sh", "sh", "-c", "exit $3", "x", "1", "2", "9", "4", "5", "6", "7", (char *)NULL);
	default:
		return execle("/bin/sh", "sh", "-c", "exit $X", (char *)NULL, ((char *[]){"X=21", NULL}));
	}
}

static void processes(void)
{
	char *const sh[] = {"sh", "-c", "exit 7", NULL}, *const none[] = {NULL};
	int status = 0;
	pid_t pid = 0;
	siginfo_t info;
	struct rusage use;
	FILE *f;
	memset(&info, 0, sizeof(info));
	switch (below(12)) {
	case 0:
		CALL("system",
		     system(PICK(((const char *[]){"exit 0", "exit 4", "kill -9 $$", "nothing-like-it 2>/dev/null"}))));
		CALL("system", system(NULL));
		break;
	case 1:
		errno = BEFORE;
		f = popen(PICK(((const char *[]){"echo a; exit 3", "true", "kill -15 $$"})),
			  PICK(((const char *[]){"r", "re", "r+", "", "rw"})));
		out("popen %d %d\n", f != NULL, errno);
		if (f) {
			CALL("fgets", fgets(buf, 10, f) != NULL);
			CALL("pclose", pclose(f));
		}
		break;
	case 2:
		CALL("posix_spawn", posix_spawn(&pid, PICK(((const char *[]){"/bin/sh", "/missing", "/", "file"})),
						NULL, NULL, sh, none));
		if (!last)
			CALL_SIGN("waitpid", waitpid(pid, &status, 0));
		out("%x\n", status);
		break;
	case 3:
		CALL("posix_spawnp", posix_spawnp(&pid, PICK(((const char *[]){"sh", "missing-everywhere", ""})), NULL,
						  NULL, sh, none));
		if (!last)
			CALL_SIGN("wait4", wait4(pid, &status, 0, &use));
		out("%x\n", status);
		break;
	case 4:
		CALL("execve", execve(some_path(), none, none));
		CALL("execv", execv("/missing", sh));
		CALL("execvp", execvp("missing-everywhere", sh));
		CALL("execvpe", execvpe("", sh, none));
		CALL("fexecve", fexecve(some_fd() == fds[4] ? -1 : fds[6], sh, none));
		CALL("execl", execl("/missing", "a", "b", (char *)NULL));
		break;
	case 5:
		out_flush();
		fflush(NULL);
		pid = fork();
		if (!pid) {
			run_list((int)below(3));
			raw(SYS_exit_group, 99);
		}
		below(3);
		CALL_SIGN("waitpid", waitpid(pid, &status, 0));
		out("%x\n", status);
		break;
	case 6:
		out_flush();
		pid = fork();
		if (!pid)
			_exit(5);
		CALL("waitid", waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
		out("%d %d %d\n", info.si_signo, info.si_code, info.si_status);
		CALL_SIGN("wait3", wait3(&status, 0, &use));
		out("%x\n", status);
		break;
	case 7:
		CALL("waitpid", waitpid(-1, &status, PICK(((int[]){0, WNOHANG, -1}))));
		CALL("wait", wait(&status));
		CALL("waitid", waitid((idtype_t)below(5), 1, &info, (int)below(16)));
		break;
	case 8:
		CALL("prctl", prctl(PICK(((int[]){PR_GET_NAME, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS, PR_SET_NAME, -1,
						  PR_GET_SECCOMP})),
				    below(8) ? buf : nowhere, 0, 0, 0));
		CALL("prctl", prctl(PR_SET_SECCOMP, PICK(((long[]){0, 3, -1})), 0, 0, 0));
		CALL("setgroups", setgroups(1u << 20, NULL));
		CALL("setuid", setuid((uid_t)-1));
		CALL("setresgid", setresgid((gid_t)-1, (gid_t)-1, (gid_t)-1));
		CALL("chroot", chroot("file"));
		CALL("unshare", unshare(PICK(((int[]){0, -1, CLONE_FS}))));
		break;
	case 9:
		CALL("syscall", syscall(SYS_getppid) > 0);
		CALL("syscall", syscall(SYS_futex, buf, PICK(((int[]){0, 1, 9, 10, 128, 129, 137, 99, -1})), 0x12345,
					below(2) ? no_time() : nowhere, buf, PICK(((int[]){0, 1, -1}))));
		CALL("syscall",
		     syscall(PICK(((long[]){-1, 100000, SYS_close, SYS_dup, SYS_lseek})), -1, 1, 2, 3, 4, 5));
		CALL("syscall", syscall(SYS_setuid, -1));
		CALL("syscall", syscall(SYS_seccomp, PICK(((long[]){99, 2})), 0, nowhere));
		CALL("syscall", syscall(SYS_prctl, PR_SET_SECCOMP, 99, 0, 0, 0));
		CALL("syscall", syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, -1,
					0)); /* EBADF: the 5th and 6th reach it */
		break;
	default: {
		struct addrinfo hint = {.ai_flags = PICK(((int[]){AI_NUMERICHOST, AI_NUMERICHOST | AI_PASSIVE, -1})),
					.ai_family = PICK(((int[]){0, AF_INET, AF_INET6, 99}))},
				*ai = NULL;
		struct sockaddr_in in = {.sin_family = below(4) ? AF_INET : 99, .sin_port = 80};
		struct hostent h, *hp = NULL;
		int herr = 0;
		char host[100] = "", serv[100] = "";
		CALL("getaddrinfo", getaddrinfo(PICK(((const char *[]){"127.0.0.1", "::1", "no number", NULL})),
						PICK(((const char *[]){"80", NULL, "no-such-service"})), &hint, &ai));
		if (!last)
			freeaddrinfo(ai);
		CALL_OUT("getnameinfo",
			 getnameinfo((void *)&in, sizeof(in), host, PICK(((socklen_t[]){0, 2, 100})), serv, 100,
				     PICK(((int[]){NI_NUMERICHOST | NI_NUMERICSERV, -1}))),
			 host, sizeof(host));
		CALL("gethostbyname_r",
		     gethostbyname_r("127.0.0.1", &h, buf, PICK(((size_t[]){10, 1000})), &hp, &herr));
		out("%d %d\n", hp != NULL, herr);
		CALL("gethostbyname", gethostbyname("10.0.0.1") != NULL);
	}
	}
}

static void on_signal(int sig) { (void)sig; }

static void setup(void)
{
	char folder[] = "/tmp/differ-XXXXXX";
	MUST(mkdtemp(folder) && !chdir(folder));
	umask(022);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGUSR1, on_signal);
	sigset_t usr;
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr, NULL);
	memset(long_name, 'n', sizeof(long_name) - 1);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i % 40 == 39 ? '\n' : (char)('a' + i * 7 % 26);
	MUST(!mkdir("folder", 0755) && !symlink("file", "link") && !symlink("loop", "loop"));
	MUST(!pipe2(fds, O_NONBLOCK) && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds + 2));
	fds[4] = open("file", O_RDWR | O_CREAT, 0644);
	MUST(write(fds[4], data, 5000) == 5000);
	fds[5] = open("file", O_WRONLY | O_APPEND);
	fds[6] = open("folder", O_RDONLY);
	fds[7] = open("/dev/null", O_RDWR);
	fds[8] = eventfd(3, EFD_NONBLOCK);
	fds[9] = epoll_create1(0);
	fds[10] = open("/dev/full", O_RDWR);
	fds[11] = 200;
	fds[12] = -1;
	fds[13] = INT_MAX;
	for (int i = 0; i < N_MUTEX; i++)
		mutex_new(i);
	pthread_condattr_t ca;
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&conds[1], &ca);
	for (int i = 0; i < 3; i++) {
		pthread_rwlockattr_t a;
		pthread_rwlockattr_init(&a);
		pthread_rwlockattr_setkind_np(&a, i);
		pthread_rwlock_init(&rws[i].l, &a);
	}
	sem_init(&sems[0], 0, 1);
	mtx_init(&mtxs[0], mtx_plain);
	mtx_init(&mtxs[1], mtx_timed);
	mtx_init(&mtxs[2], mtx_recursive | mtx_timed);
	mtx_init(&mtxs[3], mtx_recursive);
	cnd_init(&cnd);
	/* stdout is a file as well; the lines go where it went. */
	prog_out = (int)raw(SYS_dup, 1);
	MUST(freopen("stdout", "w", stdout));
	pthread_t t;
	MUST(!pthread_create(&t, NULL, other_run, NULL));
}

int main(int argc, char **argv)
{
	static void (*const what[])(void) = {mutex,     mutex,           mutex,     condition, rwlock,  rwlock,
					     semaphore, semaphore,       c11,       threads,   sockets, sockets,
					     reads,     reads,           transfers, waits,     waits,   paths,
					     paths,     locks_and_syncs, stdio,     stdio,     stdio};
	MUST(argc == 3);
	state = strtoul(argv[1], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
	uint64_t n = strtoul(argv[2], NULL, 0);
	setup();
	alarm(10);
	for (rounds = 0; rounds < n; rounds++) {
		if (rounds % 100 == 99)
			processes();
		else
			PICK(what)();
	}
	struct stat st;
	out("end %d\n", fstat(1, &st) ? -1 : (int)st.st_size);
	out_flush();
	char cwd[64], command[100];
	MUST(getcwd(cwd, sizeof(cwd)) && !strncmp(cwd, "/tmp/differ-", 12));
	snprintf(command, sizeof(command), "exec rm -rf '%s'", cwd);
	return system(command);
}
