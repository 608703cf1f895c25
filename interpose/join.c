/* Threads that wait for threads: join, barriers, and what is to be done once. */
#include "hook.h"

/* The thread's id, where glibc keeps it in its descriptor; 0: it has ended, or where that is was not found out. */
static d9_i32 tid_of(pthread_t t)
{
	d9_u32 i = d9_load_relaxed(&d9_shim.tid_offset);
	d9_i32 tid = i && t ? d9_load_relaxed((const d9_i32 *)t + i) : 0;
	return tid > 0 ? tid : 0;
}

/* The joined thread is what the wait is for, and the one that it waits for. */
#define WRAP_JOIN(name, params, args, result)                        \
	int name params;                                             \
	D9_EXPORT int name params                                    \
	{                                                            \
		if (!(d9_load_relaxed(d9_shim.mask) & D9_BIT(name))) \
			return d9_real.name args;                    \
		d9_i32 d9_tid = tid_of(t);                           \
		D9_BEGIN(name, (d9_u64)d9_tid, -1);                  \
		D9_PAUSE_POINT();                                    \
		d9_call_owner(&d9_c, (d9_u32)d9_tid);                \
		int d9_r = d9_real.name args;                        \
		D9_END(name, result(d9_r), 0);                       \
		return d9_r;                                         \
	}
WRAP_JOIN(pthread_join, (pthread_t t, void **ret), (t, ret), D9_RETURNED)
WRAP_JOIN(pthread_tryjoin_np, (pthread_t t, void **ret), (t, ret), D9_RETURNED)
WRAP_JOIN(pthread_timedjoin_np, (pthread_t t, void **ret, const struct timespec *until), (t, ret, until), D9_RETURNED)
WRAP_JOIN(pthread_clockjoin_np, (pthread_t t, void **ret, clockid_t id, const struct timespec *until),
	  (t, ret, id, until), D9_RETURNED)
WRAP_JOIN(thrd_join, (thrd_t t, int *ret), (t, ret), d9_thrd_result)

/* Who comes last wakes the others.  The one that is told so returns PTHREAD_BARRIER_SERIAL_THREAD, -1: no error, a 1 here. */
D9_EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
	d9_waker_note((d9_u64)b);
	D9_BEGIN(pthread_barrier_wait, (d9_u64)b, -1);
	d9_waker_mark(&d9_c, (d9_u64)b);
	int r = d9_real.pthread_barrier_wait(b);
	D9_END(pthread_barrier_wait, D9_RETURNED(r), (d9_u64)b);
	return r;
}

/*
 * Done is 2, nobody has begun 0, and somebody is at it where bit 0 is set, in every glibc.  Only that is a wait (or, in a
 * child forked meanwhile, the routine begun anew); in the other cases nothing is taken or kept here, so that the routine may
 * throw, be cancelled, fork or come back.
 */
static inline bool begun(const int *once) { return d9_load_relaxed(once) & 1; }

D9_EXPORT int pthread_once(pthread_once_t *once, void (*init)(void))
{
	if (__builtin_expect(!begun(once), 1))
		return d9_real.pthread_once(once, init);
	D9_BEGIN(pthread_once, (d9_u64)once, -1);
	int r = d9_real.pthread_once(once, init);
	D9_END(pthread_once, D9_RETURNED(r), 0);
	return r;
}

D9_EXPORT void call_once(once_flag *once, void (*init)(void))
{
	if (__builtin_expect(!begun((const int *)once), 1)) {
		d9_real.call_once(once, init);
		return;
	}
	D9_BEGIN(call_once, (d9_u64)once, -1);
	d9_real.call_once(once, init);
	D9_END(call_once, 0, 0);
}
