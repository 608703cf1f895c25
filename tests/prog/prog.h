/*
 * What the test programs share.  A program makes calls whose outcome it knows and prints, beside the deed, the line that
 * a recording must hold:
 *
 *   EXPECT tid= hook= result= ...   one span, once; min_ns and max_ns bound its length, t0_ns and t1_ns its place
 *   FAST tid= hook= result= ...     a call too short to be recorded one by one: counted (a span if D9_IO_MIN_US=0)
 *   EVENT event= ...                any other event, its fields by name
 *
 * A wait is ended by the partner, a thread that waits until the caller sleeps in the kernel, holds it there, then
 * acts.  The partner's own doings are raw system calls, which no hook sees, unless the action is what is tested.
 */
#ifndef D9_TESTS_PROG_H
#define D9_TESTS_PROG_H
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HOLD_MS 20
#ifndef GLIBC_MINOR /* tests/old_libc builds some of them for a glibc that is older than its headers */
#define GLIBC_MINOR __GLIBC_MINOR__
#endif
#define SINCE(minor) (GLIBC_MINOR >= (minor)) /* glibc 2.minor */
#define UNUSED __attribute__((unused))

/* ---- raw system calls --------------------------------------------------------------------------------- */

static inline long raw6(long n, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#define RAW_PICK(n, a, b, c, d, e, f, ...) \
	raw6((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define raw(...) RAW_PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

static inline int my_tid(void) { return (int)raw(SYS_gettid); }
static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t); /* the vDSO: no hook */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static UNUSED void raw_sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	while (raw(SYS_nanosleep, &t, &t) == -EINTR)
		;
}
static UNUSED void raw_wait(volatile int *word, int while_value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == while_value)
		(void)raw(SYS_futex, word, FUTEX_WAIT, while_value, 0);
}
static UNUSED void raw_set(volatile int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	(void)raw(SYS_futex, word, FUTEX_WAKE, 0x7fffffff);
}

static UNUSED __attribute__((noreturn)) void give_up(const char *what)
{
	fprintf(stderr, "test program: %s: %s\n", what, strerror(errno));
	raw(SYS_exit_group, 99);
	__builtin_unreachable();
}
#define MUST(x)                      \
	do {                         \
		if (!(x))            \
			give_up(#x); \
	} while (0)

/* ---- what must be seen ---------------------------------------------------------------------------------- */

static UNUSED struct {
	uint64_t t0, t1;
	uint64_t hold0, hold1; /* the caller slept at least between these */
} prog_times;

/* Where the lines go: through stdio, or past it where stdio is what is tested. */
static UNUSED int prog_out = 1;
static UNUSED void put_line(const char *line, size_t n)
{
#ifdef PROG_SAYS_RAW
	(void)raw(SYS_write, prog_out, line, n);
#else
	fwrite(line, 1, n, stdout);
#endif
}

struct line {
	char text[400];
	size_t n;
};
static UNUSED __attribute__((format(printf, 2, 0))) void line_add_v(struct line *l, const char *format, va_list ap)
{
	l->n += (size_t)vsnprintf(l->text + l->n, sizeof(l->text) - l->n, format, ap);
}
static UNUSED __attribute__((format(printf, 2, 3))) void line_add(struct line *l, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	line_add_v(l, format, ap);
	va_end(ap);
}
static UNUSED __attribute__((format(printf, 6, 0))) void
line_begin(struct line *l, const char *kind, int tid, const char *hook, long result, const char *more, va_list ap)
{
	l->n = 0;
	line_add(l, "%s tid=%d hook=%s result=%ld ", kind, tid, hook, result);
	line_add_v(l, more, ap);
}

/* One call that is recorded whatever its length, made between before() and after() by this thread. */
static UNUSED __attribute__((format(printf, 3, 4))) void expect(const char *hook, long result, const char *more, ...)
{
	struct line l;
	va_list ap;
	va_start(ap, more);
	line_begin(&l, "EXPECT", my_tid(), hook, result, more, ap);
	va_end(ap);
	line_add(&l, " t0_ns=%lu t1_ns=%lu max_ns=%lu", prog_times.t0, prog_times.t1, prog_times.t1 - prog_times.t0);
	if (prog_times.hold1)
		line_add(&l, " min_ns=%lu", prog_times.hold1 - prog_times.hold0);
	line_add(&l, "\n");
	put_line(l.text, l.n);
}

/* A call of a hook that records slow ones alone, and this one was not. */
static UNUSED __attribute__((format(printf, 3, 4))) void fast(const char *hook, long result, const char *more, ...)
{
	struct line l;
	va_list ap;
	va_start(ap, more);
	line_begin(&l, "FAST", my_tid(), hook, result, more, ap);
	va_end(ap);
	line_add(&l, "\n");
	put_line(l.text, l.n);
}

static UNUSED void before(void)
{
	prog_times.hold0 = prog_times.hold1 = 0;
	prog_times.t0 = now_ns();
}
static UNUSED void after(void) { prog_times.t1 = now_ns(); }

/* What a call returned, as an event carries it. */
#define RESULT(r) ((r) == -1 ? -(long)errno : (long)(r))

/* ---- the partner ------------------------------------------------------------------------------------------ */

struct partner {
	volatile int state; /* 0 idle, 1 asked to act at once, 2 asked to act once the caller sleeps, 3 done, 4 end */
	int tid, caller;
	void (*act)(void *);
	void *arg;
	pthread_t thread;
};
static UNUSED struct partner partner;

/* Does thread `tid` of this process sleep in a system call? */
static UNUSED int sleeps(int tid)
{
	char path[64], buf[256];
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	long fd = raw(SYS_open, path, O_RDONLY);
	if (fd < 0)
		return 0;
	long n = raw(SYS_read, fd, buf, sizeof(buf) - 1);
	raw(SYS_close, fd);
	if (n <= 0)
		return 0;
	buf[n] = 0;
	const char *p = strrchr(buf, ')');
	return p && p[2] == 'S';
}
static UNUSED void until_sleeps(int tid)
{
	for (int seen = 0; seen < 3; raw(SYS_sched_yield)) /* thrice: a page being fetched is a short sleep too */
		seen = sleeps(tid) ? seen + 1 : 0;
}

static UNUSED void *partner_run(void *arg)
{
	(void)arg;
	partner.tid = my_tid();
	raw_set(&partner.state, 3);
	for (;;) {
		raw_wait(&partner.state, 3);
		int state = partner.state;
		if (state == 4)
			return NULL;
		if (state == 2) {
			until_sleeps(partner.caller);
			prog_times.hold0 = now_ns();
			raw_sleep_ms(HOLD_MS);
			prog_times.hold1 = now_ns();
		}
		partner.act(partner.arg);
		raw_set(&partner.state, 3);
	}
}

static UNUSED void partner_start(void)
{
	before();
	MUST(!pthread_create(&partner.thread, NULL, partner_run, NULL));
	after();
	expect("pthread_create", 0, "%s", "");
	raw_wait(&partner.state, 0);
}

/* The partner does it now, and has done it when this returns. */
static UNUSED void partner_do(void (*act)(void *), void *arg)
{
	partner.act = act;
	partner.arg = arg;
	raw_set(&partner.state, 1);
	raw_wait(&partner.state, 1);
}

/* The next call of this thread sleeps, and is ended by the partner's doing this. */
static UNUSED void when_asleep(void (*act)(void *), void *arg)
{
	partner.act = act;
	partner.arg = arg;
	partner.caller = my_tid();
	before();
	raw_set(&partner.state, 2);
}
/* After that call. */
static UNUSED void woken(void)
{
	int saved = errno;
	after();
	raw_wait(&partner.state, 2);
	errno = saved;
}
static UNUSED void partner_end(void)
{
	raw_set(&partner.state, 4);
	while (raw(SYS_tkill, partner.tid, 0) == 0) /* not pthread_join: libc's own wait, but the thread must be gone */
		raw(SYS_sched_yield);
}

/* ---- actions of the partner -------------------------------------------------------------------------------- */

static UNUSED void act_write(void *fd) { (void)raw(SYS_write, *(int *)fd, "x", 1); }
static UNUSED void act_read_all(void *fd)
{
	static char buf[1 << 16];
	(void)raw(SYS_read, *(int *)fd, buf, sizeof(buf));
}
static UNUSED void act_nothing(void *arg) { (void)arg; }
static UNUSED void act_empty(void *fd)
{
	static char sink[1 << 16];
	raw(SYS_fcntl, *(int *)fd, F_SETFL, O_NONBLOCK);
	while (raw(SYS_read, *(int *)fd, sink, sizeof(sink)) > 0)
		;
	raw(SYS_fcntl, *(int *)fd, F_SETFL, 0);
}

/* ---- what several programs need ------------------------------------------------------------------------------ */

/* A descriptor that takes nothing more until somebody reads at the other end. */
static UNUSED void fill_fd(int fd)
{
	static const char big[1 << 16];
	long flags = raw(SYS_fcntl, fd, F_GETFL);
	raw(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
	while (raw(SYS_write, fd, big, sizeof(big)) > 0 || raw(SYS_write, fd, big, 1) > 0)
		;
	raw(SYS_fcntl, fd, F_SETFL, flags);
}

/* The moment `ms` from now on that clock. */
static UNUSED struct timespec in_ms(clockid_t id, long ms)
{
	struct timespec t;
	clock_gettime(id, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* Calls that take a va_list; with _FORTIFY_SOURCE, the names that checked calls go to. */
static UNUSED __attribute__((format(printf, 2, 3))) int by_v(FILE *f, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int r = vfprintf(f, format, ap);
	va_end(ap);
	return r;
}
static UNUSED __attribute__((format(printf, 2, 3))) int by_vd(int fd, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int r = vdprintf(fd, format, ap);
	va_end(ap);
	return r;
}

#endif
