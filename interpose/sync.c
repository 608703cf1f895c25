/* Locks and wake-ups: futex through syscall(), condition variables, mutexes, read-write locks, semaphores. */
#include "hook.h"

#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

/* ---- syscall(): assembly for all but the few numbers that matter here ------------------------------ */

/*
 * syscall() is variadic and hot (the JVM asks gettid 10,000 times in two seconds), so everything but futex, io_uring_enter,
 * seccomp, prctl, namespaces, limits, mlockall and changes of identity jumps on with its registers and stack as they are; so does a futex wake of
 * what nobody waited for, since each frame more is a return more that the CPU guesses wrong after a system call.  The slow
 * function takes seven longs: the first six where the caller put them, the seventh where a seventh variadic argument lies.
 */
#define RIGHTS_FIRST 105
#define RIGHTS_BITS 0x90400000205b03ull /* from there on: what changes_rights names, prctl, mlockall, setrlimit */
#define ALONE_FIRST 272
#define ALONE_BITS 0x201040000001ull /* unshare, prlimit64, setns, seccomp */
#define FUTEX_WAITS 0xa01            /* a bit for each command that waits */
#define FUTEX_LOCKS 0x2040           /* for a lock with priority inheritance */
__asm__(".text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	".p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpq $202, %rdi\n" /* SYS_futex */
	"	je 2f\n"
	"	leaq -105(%rdi), %r11\n" /* RIGHTS_FIRST */
	"	cmpq $55, %r11\n"
	"	ja 1f\n"
	"	movabsq $0x90400000205b03, %r10\n" /* RIGHTS_BITS */
	"	btq %r11, %r10\n"
	"	jc d9_syscall_slow\n"
	"1:	leaq -272(%rdi), %r11\n" /* ALONE_FIRST */
	"	cmpq $45, %r11\n"
	"	ja 3f\n"
	"	movabsq $0x201040000001, %r10\n" /* ALONE_BITS */
	"	btq %r11, %r10\n"
	"	jc d9_syscall_slow\n"
	"3:	cmpq $154, %r11\n" /* SYS_io_uring_enter - ALONE_FIRST */
	"	je d9_uring_enters\n"
	"	jmpq *d9_real_syscall(%rip)\n"
	"2:	movl %edx, %r11d\n"
	"	andl $-385, %r11d\n" /* FUTEX_CMD_MASK */
	"	cmpl $13, %r11d\n"
	"	ja d9_syscall_slow\n"
	"	movl $0xa01, %r10d\n" /* FUTEX_WAITS */
	"	btl %r11d, %r10d\n"
	"	jc d9_futex_waits\n"
	"	movl $0x2040, %r10d\n" /* FUTEX_LOCKS */
	"	btl %r11d, %r10d\n"
	"	jc d9_syscall_slow\n"
	"	imull $0x9e3779b1, %esi, %r11d\n" /* D9_WAITED_BIT */
	"	shrl $26, %r11d\n"
	"	movq d9_shim+8(%rip), %r10\n" /* waited */
	"	btq %r11, %r10\n"
	"	jc d9_syscall_slow\n"
	"	jmpq *d9_real_syscall(%rip)\n"
	"	.cfi_endproc\n"
	"	.size syscall, .-syscall\n");
#define RIGHT(name) (1ull << (SYS_##name - RIGHTS_FIRST))
#define ALONE(name) (1ull << (SYS_##name - ALONE_FIRST))
_Static_assert(SYS_futex == 202 && SYS_io_uring_enter - ALONE_FIRST == 154 &&
		       ALONE_BITS == (ALONE(unshare) | ALONE(prlimit64) | ALONE(setns) | ALONE(seccomp)) &&
		       RIGHTS_BITS == (RIGHT(setuid) | RIGHT(setgid) | RIGHT(setreuid) | RIGHT(setregid) |
				       RIGHT(setgroups) | RIGHT(setresuid) | RIGHT(setresgid) | RIGHT(capset) |
				       RIGHT(prctl) | RIGHT(mlockall) | RIGHT(setrlimit)),
	       "the numbers in the stub");
_Static_assert(FUTEX_WAITS == (1 << FUTEX_WAIT | 1 << FUTEX_WAIT_BITSET | 1 << FUTEX_WAIT_REQUEUE_PI) &&
		       FUTEX_LOCKS == (1 << FUTEX_LOCK_PI | 1 << FUTEX_LOCK_PI2) && FUTEX_LOCK_PI2 == 13 &&
		       FUTEX_CMD_MASK == -385,
	       "the futex commands in the stub");
_Static_assert(offsetof(struct d9_shim, mask) == 0 && offsetof(struct d9_shim, waited) == 8,
	       "the offsets in the stubs");

long d9_syscall_slow(long n, long a, long b, long c, long d, long e, long f);
long d9_futex_waits(long n, long a, long b, long c, long d, long e, long f);

__attribute__((used)) long d9_futex_waits(long n, long a, long b, long c, long d, long e, long f)
{
	D9_BEGIN(futex_wait, (d9_u64)a, -1);
	d9_waker_mark(&d9_c, (d9_u64)a);
	long r = d9_real.syscall(n, a, b, c, d, e, f);
	D9_END(futex_wait, D9_RESULT(r), (d9_u64)a);
	return r;
}

/* The futex word of a priority-inheriting lock holds its owner's tid. */
static __attribute__((noinline)) long futex_lock_pi(long n, long a, long b, long c, long d, long e, long f,
						    const void *ra, const void *fp)
{
	D9_BEGIN_FOR(futex_lock_pi, (d9_u64)a, -1, ra, fp);
	d9_waker_mark(&d9_c, (d9_u64)a);
	long r = d9_real.syscall(n, a, b, c, d, e, f);
	d9_call_end(&d9_c, D9_HK_futex_lock_pi, D9_BIT(futex_lock_pi), D9_FLG_futex_lock_pi, D9_RESULT(r), (d9_u64)a,
		    fp);
	return r;
}

static long futex(long n, long a, long b, long c, long d, long e, long f, const void *ra, const void *fp)
{
	int command = (int)b & FUTEX_CMD_MASK;
	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		return futex_lock_pi(n, a, b, c, d, e, f, ra, fp);
	d9_waker_note((d9_u64)a); /* a wake of some kind */
	return d9_real.syscall(n, a, b, c, d, e, f);
}

/* By system call they are the calling thread's alone: see capset. */
static bool changes_rights(long n, long a)
{
	switch (n) {
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setgroups:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_capset:
	case SYS_setns: /* namespaces: as unshare and setns */
		return true;
	case SYS_unshare:
		return d9_unshare_needs_one_thread(a);
	case SYS_prctl:
		return d9_prctl_changes_rights(a);
	default:
		return false;
	}
}

__attribute__((used)) long d9_syscall_slow(long n, long a, long b, long c, long d, long e, long f)
{
	if (n == SYS_futex)
		return futex(n, a, b, c, d, e, f, __builtin_return_address(0), __builtin_frame_address(0));
	if (changes_rights(n, a))
		d9_shim_before_sandbox(0);
	long locked;
	if (n == SYS_mlockall && d9_shim_lock_all((int)a, &locked))
		return d9_as_libc(locked);
	if (n == SYS_setrlimit)
		d9_shim_before_limit(0, (int)a, (const void *)b);
	if (n == SYS_prlimit64)
		d9_shim_before_limit((int)a, (int)b, (const void *)c);
	if (n == SYS_prctl ? d9_forbids_clock(a, (unsigned long)b) : n == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT) {
		d9_shim_before_no_clock();
		return d9_real.syscall(n, a, b, c, d, e, f);
	}
	bool filter = n == SYS_seccomp ? a == SECCOMP_SET_MODE_FILTER : n == SYS_prctl && a == PR_SET_SECCOMP;
	if (!filter)
		return d9_real.syscall(n, a, b, c, d, e, f);
	D9_BEGIN(seccomp, 0, -1);
	int was_free = d9_shim_free();
	d9_shim_before_sandbox(1);
	long r = d9_real.syscall(n, a, b, c, d, e, f);
	if (r)
		d9_shim_sandbox_failed(was_free);
	D9_END(seccomp, D9_RESULT(r), 0);
	return r;
}

/* ---- condition variables: two ABIs, by version ----------------------------------------------------- */

#define COND_WAIT(fn, id, params, args, result)                    \
	int fn params;                                             \
	D9_EXPORT int fn params                                    \
	{                                                          \
		D9_BEGIN(id, (d9_u64)c, -1);                       \
		D9_PAUSE_POINT();                                  \
		d9_waker_mark(&d9_c, (d9_u64)c);                   \
		d9_waker_note((d9_u64)m); /* the wait unlocks m */ \
		int d9_r = d9_real.id args;                        \
		D9_END(id, result(d9_r), (d9_u64)c);               \
		return d9_r;                                       \
	}
#define COND_WAKE(fn, id, type)           \
	int fn(type *c);                  \
	D9_EXPORT int fn(type *c)         \
	{                                 \
		d9_waker_note((d9_u64)c); \
		return d9_real.id(c);     \
	}
#define TIMED (pthread_cond_t * c, pthread_mutex_t * m, const struct timespec *t)

COND_WAIT(d9_cond_wait_new, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m), D9_RETURNED)
COND_WAIT(d9_cond_wait_old, pthread_cond_wait_old, (pthread_cond_t * c, pthread_mutex_t *m), (c, m), D9_RETURNED)
COND_WAIT(d9_cond_timedwait_new, pthread_cond_timedwait, TIMED, (c, m, t), D9_RETURNED)
COND_WAIT(d9_cond_timedwait_old, pthread_cond_timedwait_old, TIMED, (c, m, t), D9_RETURNED)
COND_WAIT(pthread_cond_clockwait, pthread_cond_clockwait,
	  (pthread_cond_t * c, pthread_mutex_t *m, clockid_t id, const struct timespec *t), (c, m, id, t), D9_RETURNED)
COND_WAKE(d9_cond_signal_new, pthread_cond_signal, pthread_cond_t)
COND_WAKE(d9_cond_signal_old, pthread_cond_signal_old, pthread_cond_t)
COND_WAKE(d9_cond_broadcast_new, pthread_cond_broadcast, pthread_cond_t)
COND_WAKE(d9_cond_broadcast_old, pthread_cond_broadcast_old, pthread_cond_t)
COND_WAIT(cnd_wait, cnd_wait, (cnd_t * c, mtx_t *m), (c, m), d9_thrd_result)
COND_WAIT(cnd_timedwait, cnd_timedwait, (cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict t),
	  (c, m, t), d9_thrd_result)
COND_WAKE(cnd_signal, cnd_signal, cnd_t)
COND_WAKE(cnd_broadcast, cnd_broadcast, cnd_t)
/* A program of the old ABI passes an object of another shape: it must reach the old function, and a new one the new. */
__asm__(".symver d9_cond_wait_new, pthread_cond_wait@@@GLIBC_2.3.2\n"
	".symver d9_cond_wait_old, pthread_cond_wait@GLIBC_2.2.5\n"
	".symver d9_cond_timedwait_new, pthread_cond_timedwait@@@GLIBC_2.3.2\n"
	".symver d9_cond_timedwait_old, pthread_cond_timedwait@GLIBC_2.2.5\n"
	".symver d9_cond_signal_new, pthread_cond_signal@@@GLIBC_2.3.2\n"
	".symver d9_cond_signal_old, pthread_cond_signal@GLIBC_2.2.5\n"
	".symver d9_cond_broadcast_new, pthread_cond_broadcast@@@GLIBC_2.3.2\n"
	".symver d9_cond_broadcast_old, pthread_cond_broadcast@GLIBC_2.2.5\n");

/* ---- mutexes: try first, record only where it must wait --------------------------------------------- */

/* Who holds a contended mutex: read, never written.  Right for the six kinds of glibc's mutex; 0 is nobody. */
static d9_u32 owner_of(const pthread_mutex_t *m) { return (d9_u32)d9_load_relaxed(&m->__data.__owner); }

/*
 * trylock takes a free mutex exactly as lock would (recursive, error-checking, robust and PI kinds included), and answers
 * EBUSY where lock would wait or find its own lock.  Any other answer is lock's own, and final: a mutex with a ceiling that the
 * thread may not have is refused once, and asked again it is not.
 */
static inline bool tried(pthread_mutex_t *m, int *ret) { return (*ret = d9_real.pthread_mutex_trylock(m)) != EBUSY; }

/*
 * glibc's trylock of a robust mutex that cannot be recovered says so and keeps its lock word: the next lock would wait for ever
 * where it should say the same.  So a robust one is not tried: its words say whether lock would wait, for its holder lives, or is
 * this thread and the mutex not recursive.
 */
#define ROBUST_KIND 0x10
#define OWNER_DIED 0x40000000u
#define TID_BITS 0x3fffffffu
static inline bool is_robust(const pthread_mutex_t *m) { return d9_load_relaxed(&m->__data.__kind) & ROBUST_KIND; }
static bool robust_waits(const pthread_mutex_t *m)
{
	d9_u32 word = (d9_u32)d9_load_relaxed(&m->__data.__lock), tid = word & TID_BITS;
	const struct d9_cell *me = d9_me;
	bool relocks = (d9_load_relaxed(&m->__data.__kind) & 3) == PTHREAD_MUTEX_RECURSIVE && me && me->slot &&
		       tid == (d9_u32)me->slot->tid;
	return tid && !(word & OWNER_DIED) && !relocks;
}

/* What glibc looks at before anything else must be looked at by it: these are the clocks that it takes. */
static inline bool good_clock(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_MONOTONIC; }
static inline bool good_time(const struct timespec *t)
{
	return t && t->tv_sec >= 0 && (unsigned long)t->tv_nsec < 1000000000u;
}

/* The call that waits for a lock, and returns: for the object, with the thread that its owner word names. */
#define LOCK_WAIT(name, args, lock, owner, result)  \
	D9_BEGIN(name, (d9_u64)(lock), -1);         \
	d9_waker_mark(&d9_c, (d9_u64)(lock));       \
	d9_call_owner(&d9_c, owner);                \
	int d9_r = d9_real.name args;               \
	D9_END(name, result(d9_r), (d9_u64)(lock)); \
	return d9_r

#define MUTEX_LOCK(name, params, args, good)                                                               \
	int name params;                                                                                   \
	D9_EXPORT int name params                                                                          \
	{                                                                                                  \
		int d9_first;                                                                              \
		if (!(d9_load_relaxed(d9_shim.mask) & D9_BIT(name)) || (is_robust(m) && !robust_waits(m))) \
			return d9_real.name args;                                                          \
		if (__builtin_expect((good) && !is_robust(m) && tried(m, &d9_first), 1))                   \
			return d9_first;                                                                   \
		LOCK_WAIT(name, args, m, owner_of(m), D9_RETURNED);                                        \
	}
MUTEX_LOCK(pthread_mutex_timedlock, (pthread_mutex_t *restrict m, const struct timespec *restrict t), (m, t),
	   good_time(t))
MUTEX_LOCK(pthread_mutex_clocklock, (pthread_mutex_t *restrict m, clockid_t id, const struct timespec *restrict t),
	   (m, id, t), good_clock(id) && good_time(t))

/*
 * lock and unlock are the two that programs call most and that do least, so they are assembly: the same as above without a frame, and
 * what is not usual jumps to a function that finds everything as the program left it.
 */
#define MUTEX_BIT 0x20
__asm__(".text\n"
	".globl pthread_mutex_lock\n"
	".type pthread_mutex_lock, @function\n"
	".p2align 4\n"
	"pthread_mutex_lock:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq d9_shim(%rip), %rax\n" /* mask */
	"	testb $0x20, (%rax)\n"      /* MUTEX_BIT */
	"	je 1f\n"
	"	testb $0x10, 16(%rdi)\n" /* ROBUST_KIND */
	"	jne d9_mutex_lock_robust\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	callq *d9_real_mutex_trylock(%rip)\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testl %eax, %eax\n"
	"	jne 2f\n"
	"	ret\n"
	"1:	jmpq *d9_real_mutex_lock(%rip)\n"
	"2:	cmpl $16, %eax\n" /* EBUSY */
	"	je d9_mutex_lock_waits\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size pthread_mutex_lock, .-pthread_mutex_lock\n");
__asm__(".text\n"
	".globl pthread_mutex_unlock\n"
	".type pthread_mutex_unlock, @function\n"
	".p2align 4\n"
	"pthread_mutex_unlock:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	imull $0x9e3779b1, %edi, %eax\n" /* D9_WAITED_BIT */
	"	shrl $26, %eax\n"
	"	movq d9_shim+8(%rip), %rcx\n" /* waited */
	"	btq %rax, %rcx\n"
	"	jc d9_mutex_unlock_looks\n"
	"	jmpq *d9_real_mutex_unlock(%rip)\n"
	"	.cfi_endproc\n"
	"	.size pthread_mutex_unlock, .-pthread_mutex_unlock\n");
_Static_assert(ROBUST_KIND == 0x10 && offsetof(pthread_mutex_t, __data.__kind) == 16, "the kind of a mutex");
_Static_assert(MUTEX_BIT == D9_BIT(pthread_mutex_lock) && EBUSY == 16 && D9_WAITED_BIT(1) == 0x9e3779b1u >> 26,
	       "the numbers in the stubs");
int d9_mutex_lock_robust(pthread_mutex_t *m), d9_mutex_lock_waits(pthread_mutex_t *m),
	d9_mutex_unlock_looks(pthread_mutex_t *m);
__attribute__((used)) int d9_mutex_lock_waits(pthread_mutex_t *m)
{
	LOCK_WAIT(pthread_mutex_lock, (m), m, owner_of(m), D9_RETURNED);
}
__attribute__((used)) int d9_mutex_lock_robust(pthread_mutex_t *m)
{
	if (!robust_waits(m))
		return d9_real.pthread_mutex_lock(m);
	LOCK_WAIT(pthread_mutex_lock, (m), m, owner_of(m), D9_RETURNED);
}
__attribute__((used)) int d9_mutex_unlock_looks(pthread_mutex_t *m)
{
	d9_waker_look((d9_u64)m);
	return d9_real.pthread_mutex_unlock(m);
}

D9_EXPORT int pthread_mutex_trylock(pthread_mutex_t *m) { return d9_real.pthread_mutex_trylock(m); }

/*
 * C11's mutex.  No trylock here: its answers differ among the libraries that bring a mtx_lock of their own.  The lock's first word says
 * whether it is free, and that is only a matter of whether to look at the clock.
 */
static inline bool mtx_free(const mtx_t *m)
{
	const pthread_mutex_t *p = (const pthread_mutex_t *)m;
	if (!d9_load_relaxed(&p->__data.__lock))
		return true;
	const struct d9_cell *me = d9_me; /* a recursive one of its own is free as well */
	return me && me->slot && owner_of(p) == (d9_u32)me->slot->tid;
}

#define MTX_LOCK(name, params, args)                                                            \
	D9_EXPORT int name params                                                               \
	{                                                                                       \
		if (!(d9_load_relaxed(d9_shim.mask) & D9_BIT(name)) || mtx_free(m))             \
			return d9_real.name args;                                               \
		LOCK_WAIT(name, args, m, owner_of((const pthread_mutex_t *)m), d9_thrd_result); \
	}
MTX_LOCK(mtx_lock, (mtx_t * m), (m))
MTX_LOCK(mtx_timedlock, (mtx_t *restrict m, const struct timespec *restrict t), (m, t))

D9_EXPORT int mtx_unlock(mtx_t *m)
{
	d9_waker_note((d9_u64)m);
	return d9_real.mtx_unlock(m);
}

/* ---- read-write locks: as mutexes ---------------------------------------------------------------------- */

/* Who holds it for writing: the word lies where the older layout has its own of the same meaning.  0: readers, or nobody. */
static d9_u32 writer_of(const pthread_rwlock_t *l) { return (d9_u32)d9_load_relaxed(&l->__data.__cur_writer); }
_Static_assert(offsetof(pthread_rwlock_t, __data.__cur_writer) == 24, "the writer of a read-write lock");

/* The try function takes a lock that is free just as the real one would, preference of writers included; EBUSY else. */
#define RWLOCK(name, try, params, args, good)                                            \
	int name params;                                                                 \
	D9_EXPORT int name params                                                        \
	{                                                                                \
		if (!(d9_load_relaxed(d9_shim.mask) & D9_BIT(name)))                     \
			return d9_real.name args;                                        \
		if (__builtin_expect((good) && d9_real.pthread_rwlock_##try(l) == 0, 1)) \
			return 0;                                                        \
		LOCK_WAIT(name, args, l, writer_of(l), D9_RETURNED);                     \
	}
#define RW_TIMED (pthread_rwlock_t *restrict l, const struct timespec *restrict t)
#define RW_CLOCK (pthread_rwlock_t *restrict l, clockid_t id, const struct timespec *restrict t)
RWLOCK(pthread_rwlock_rdlock, tryrdlock, (pthread_rwlock_t * l), (l), true)
RWLOCK(pthread_rwlock_wrlock, trywrlock, (pthread_rwlock_t * l), (l), true)
RWLOCK(pthread_rwlock_timedrdlock, tryrdlock, RW_TIMED, (l, t), good_time(t))
RWLOCK(pthread_rwlock_timedwrlock, trywrlock, RW_TIMED, (l, t), good_time(t))
RWLOCK(pthread_rwlock_clockrdlock, tryrdlock, RW_CLOCK, (l, id, t), good_clock(id) && good_time(t))
RWLOCK(pthread_rwlock_clockwrlock, trywrlock, RW_CLOCK, (l, id, t), good_clock(id) && good_time(t))

D9_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l) { return d9_real.pthread_rwlock_tryrdlock(l); }
D9_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l) { return d9_real.pthread_rwlock_trywrlock(l); }

D9_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	d9_waker_note((d9_u64)l);
	return d9_real.pthread_rwlock_unlock(l);
}

/* ---- semaphores: the lock of Python's threading ------------------------------------------------------ */

/*
 * In libc's order: what is wrong with the time, then a cancellation that is pending, then a try.  The waits are cancellation points
 * even where there is nothing to wait for; sem_trywait is none.
 */
static inline bool took_semaphore(sem_t *s)
{
	void (*testcancel)(void) = __atomic_load_n(&d9_shim_libc.pthread_testcancel, __ATOMIC_RELAXED);
	if (!testcancel)
		return false;
	testcancel();
	int saved = errno;
	if (d9_real.sem_trywait(s) == 0) {
		d9_held_add((d9_u64)s);
		return true;
	}
	errno = saved;
	return false;
}
#define SEM_WAIT(name, params, args, good)                           \
	int name params;                                             \
	D9_EXPORT int name params                                    \
	{                                                            \
		if (!(d9_load_relaxed(d9_shim.mask) & D9_BIT(name))) \
			return d9_real.name args;                    \
		if ((good) && took_semaphore(s))                     \
			return 0;                                    \
		D9_BEGIN(name, (d9_u64)s, -1);                       \
		D9_PAUSE_POINT();                                    \
		d9_waker_mark(&d9_c, (d9_u64)s);                     \
		int d9_r = d9_real.name args;                        \
		D9_END(name, D9_RESULT(d9_r), (d9_u64)s);            \
		if (d9_r == 0)                                       \
			d9_held_add((d9_u64)s);                      \
		return d9_r;                                         \
	}
SEM_WAIT(sem_wait, (sem_t * s), (s), true)
SEM_WAIT(sem_timedwait, (sem_t *restrict s, const struct timespec *restrict t), (s, t), good_time(t))
SEM_WAIT(sem_clockwait, (sem_t *restrict s, clockid_t id, const struct timespec *restrict t), (s, id, t),
	 good_clock(id) && good_time(t))

D9_EXPORT int sem_trywait(sem_t *s)
{
	int r = d9_real.sem_trywait(s);
	if (r == 0)
		d9_held_add((d9_u64)s);
	return r;
}

D9_EXPORT int sem_post(sem_t *s)
{
	d9_held_remove((d9_u64)s);
	d9_waker_note((d9_u64)s);
	return d9_real.sem_post(s);
}
