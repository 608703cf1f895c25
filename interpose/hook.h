/*
 * The shape of a wrapper.  Every one is: D9_BEGIN, the real call, D9_END; what is special about a family stands
 * in its own file.
 */
#ifndef D9_INTERPOSE_HOOK_H
#define D9_INTERPOSE_HOOK_H
#include "real.h"
#include "shim/shim.h"

#include <linux/seccomp.h>
#include <sched.h>

#define D9_BIT(name) (1ull << D9_FAM_##name)
/* With another caller than one's own. */
#define D9_BEGIN_FOR(name, object, fd, ra, fp) \
	struct d9_call d9_c;                   \
	struct d9_in_call d9_outer;            \
	d9_call_begin(&d9_c, &d9_outer, D9_HK_##name, D9_BIT(name), object, fd, ra, fp)
#define D9_BEGIN(name, object, fd) \
	D9_BEGIN_FOR(name, object, fd, __builtin_return_address(0), __builtin_frame_address(0))
#define D9_END(name, result, wake) \
	d9_call_end(&d9_c, D9_HK_##name, D9_BIT(name), D9_FLG_##name, result, wake, __builtin_frame_address(0))

/* What a call returned, as an event carries it: -errno on failure, cut to 31 bits (a byte count may be larger). */
#define D9_RESULT(r) (__builtin_expect((r) == -1, 0) ? -errno : (r) > 0x7fffffff ? 0x7fffffff : (d9_i32)(r))

/* The same where the call returns the error itself; 0 is success. */
#define D9_RETURNED(r) (-(r))

/* What the kernel answered, 0 and more or -errno, as libc would return it. */
static inline long d9_as_libc(long r)
{
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

/* A call that waits for nothing that can be named, whole.  result: what the event carries, from d9_r. */
#define D9_WRAP(ret, name, params, args, fd, result) \
	D9_EXPORT ret name params                    \
	{                                            \
		D9_BEGIN(name, 0, fd);               \
		ret d9_r = d9_real.name args;        \
		D9_END(name, result, 0);             \
		return d9_r;                         \
	}
/* ... on a descriptor; on a path with fd -1. */
#define D9_WRAP_FD(ret, name, params, args, fd) D9_WRAP(ret, name, params, args, fd, D9_RESULT(d9_r))
/* ... that may be where a thread spends its idle time; point: D9_IDLE_POINT or D9_PAUSE_POINT. */
#define D9_WRAP_AT(point, ret, name, params, args, result) \
	D9_EXPORT ret name params                          \
	{                                                  \
		D9_BEGIN(name, 0, -1);                     \
		point();                                   \
		ret d9_r = d9_real.name args;              \
		D9_END(name, result, 0);                   \
		return d9_r;                               \
	}
#define D9_WRAP_IDLE(ret, name, params, args, result) D9_WRAP_AT(D9_IDLE_POINT, ret, name, params, args, result)

/* What C11's threads return, as an event carries it. */
static inline d9_i32 d9_thrd_result(int r)
{
	return r == thrd_success    ? 0
	       : r == thrd_timedout ? -ETIMEDOUT
	       : r == thrd_busy     ? -EBUSY
	       : r == thrd_nomem    ? -ENOMEM
				    : -EINVAL;
}

/* At the entry of a wait in which no thread has a lock that a new thread needs: is it time to see whether somebody drains? */
#define D9_IDLE_POINT() D9_IDLE_POINT_IF(true)
/* ... of a wait that an allocator makes too, unless that is libc's own, which makes none through a hook. */
#define D9_PAUSE_POINT() D9_IDLE_POINT_IF(!d9_shim_libc.foreign_malloc)
#define D9_IDLE_POINT_IF(safe)                                                                \
	do {                                                                                  \
		if (__builtin_expect(d9_c.site && d9_c.t0 > d9_shim.writer_due, 0) && (safe)) \
			d9_writer_consider();                                                 \
	} while (0)

/* Does this prctl change what the calling thread, and no other, may do? */
static inline bool d9_prctl_changes_rights(long op)
{
	return op == PR_SET_KEEPCAPS || op == PR_SET_SECUREBITS || op == PR_CAPBSET_DROP || op == PR_CAP_AMBIENT;
}

/* Is this an unshare that a process of several threads is refused? */
static inline bool d9_unshare_needs_one_thread(long flags)
{
	return (flags & (CLONE_NEWUSER | CLONE_NEWPID | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)) != 0;
}

/* Is this a prctl after which reading the time stamp counter is a fatal signal?  Strict seccomp forbids it too. */
static inline bool d9_forbids_clock(long op, unsigned long a)
{
	return (op == PR_SET_TSC && a == PR_TSC_SIGSEGV) || (op == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT);
}

#endif
