/* Read-write locks: contended ones are recorded with the writer that holds them, free ones are not, semantics stay. */
#include "prog.h"

static pthread_rwlock_t l;

static void act_read(void *arg)
{
	(void)arg;
	MUST(!pthread_rwlock_rdlock(&l));
}
static void act_write_lock(void *arg)
{
	(void)arg;
	MUST(!pthread_rwlock_wrlock(&l));
}
static void act_unlock(void *arg)
{
	(void)arg;
	MUST(!pthread_rwlock_unlock(&l));
}

static void init(int kind)
{
	pthread_rwlockattr_t a;
	pthread_rwlockattr_init(&a);
	MUST(!pthread_rwlockattr_setkind_np(&a, kind));
	MUST(!pthread_rwlock_init(&l, &a));
}

/* The partner holds it: a writer is named, readers are not. */
#define WAITS(hook, call, hold, writer)                                                                               \
	do {                                                                                                          \
		partner_do(hold, NULL);                                                                               \
		when_asleep(act_unlock, NULL);                                                                        \
		int r = call;                                                                                         \
		woken();                                                                                              \
		expect(hook, -r, "object=%p owner=%d waker=%d", (void *)&l, (writer) ? partner.tid : 0, partner.tid); \
		MUST(!r && !pthread_rwlock_unlock(&l));                                                               \
	} while (0)
#define TIMES_OUT(hook, call, hold, writer, error)                                                         \
	do {                                                                                               \
		partner_do(hold, NULL);                                                                    \
		before();                                                                                  \
		int r = call;                                                                              \
		after();                                                                                   \
		expect(hook, -r, "object=%p owner=%d waker=null", (void *)&l, (writer) ? partner.tid : 0); \
		MUST(r == (error));                                                                        \
		partner_do(act_unlock, NULL);                                                              \
	} while (0)

static void waits(void)
{
	struct timespec far = in_ms(CLOCK_REALTIME, 60000), far_mono = in_ms(CLOCK_MONOTONIC, 60000), t;
	WAITS("pthread_rwlock_rdlock", pthread_rwlock_rdlock(&l), act_write_lock, 1);
	WAITS("pthread_rwlock_wrlock", pthread_rwlock_wrlock(&l), act_write_lock, 1);
	WAITS("pthread_rwlock_wrlock", pthread_rwlock_wrlock(&l), act_read, 0);
	WAITS("pthread_rwlock_timedrdlock", pthread_rwlock_timedrdlock(&l, &far), act_write_lock, 1);
	WAITS("pthread_rwlock_timedwrlock", pthread_rwlock_timedwrlock(&l, &far), act_read, 0);
#if SINCE(30)
	WAITS("pthread_rwlock_clockrdlock", pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &far_mono), act_write_lock,
	      1);
#endif
	WAITS("pthread_rwlock_clockwrlock", pthread_rwlock_clockwrlock(&l, CLOCK_REALTIME, &far), act_write_lock, 1);
	TIMES_OUT("pthread_rwlock_timedrdlock",
		  (t = in_ms(CLOCK_REALTIME, HOLD_MS), pthread_rwlock_timedrdlock(&l, &t)), act_write_lock, 1,
		  ETIMEDOUT);
	TIMES_OUT("pthread_rwlock_timedwrlock",
		  (t = in_ms(CLOCK_REALTIME, HOLD_MS), pthread_rwlock_timedwrlock(&l, &t)), act_read, 0, ETIMEDOUT);
#if SINCE(30)
	TIMES_OUT("pthread_rwlock_clockwrlock",
		  (t = in_ms(CLOCK_MONOTONIC, HOLD_MS), pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &t)), act_read,
		  0, ETIMEDOUT);
#endif
	TIMES_OUT("pthread_rwlock_clockrdlock", pthread_rwlock_clockrdlock(&l, 4711, &far), act_write_lock, 1, EINVAL);
}

static void at_once(void)
{
	struct timespec far = in_ms(CLOCK_REALTIME, 60000);
	errno = 4711;
	for (int i = 0; i < 100; i++) {
		MUST(!pthread_rwlock_rdlock(&l) && !pthread_rwlock_rdlock(&l) && !pthread_rwlock_tryrdlock(&l));
		MUST(pthread_rwlock_trywrlock(&l) == EBUSY);
		MUST(!pthread_rwlock_timedrdlock(&l, &far) && !pthread_rwlock_clockrdlock(&l, CLOCK_REALTIME, &far));
		for (int k = 0; k < 5; k++)
			MUST(!pthread_rwlock_unlock(&l));
		MUST(!pthread_rwlock_wrlock(&l) && pthread_rwlock_tryrdlock(&l) == EBUSY && !pthread_rwlock_unlock(&l));
		MUST(!pthread_rwlock_timedwrlock(&l, &far) && !pthread_rwlock_unlock(&l));
		MUST(!pthread_rwlock_clockwrlock(&l, CLOCK_REALTIME, &far) && !pthread_rwlock_unlock(&l));
		MUST(!pthread_rwlock_trywrlock(&l) && !pthread_rwlock_unlock(&l));
	}
	MUST(errno == 4711);
}

/* What libc refuses, it refuses here. */
static void refused(void)
{
	struct timespec bad = {60, 1000000000};
	MUST(!pthread_rwlock_wrlock(&l));
	before();
	int r = pthread_rwlock_wrlock(&l);
	after();
	expect("pthread_rwlock_wrlock", -r, "object=%p owner=%d", (void *)&l, my_tid());
	MUST(r == EDEADLK);
	before();
	r = pthread_rwlock_rdlock(&l);
	after();
	expect("pthread_rwlock_rdlock", -r, "object=%p owner=%d", (void *)&l, my_tid());
	MUST(r == EDEADLK && !pthread_rwlock_unlock(&l));
	before();
	r = pthread_rwlock_timedrdlock(&l, &bad); /* free, and its time is no time */
	after();
	expect("pthread_rwlock_timedrdlock", -r, "object=%p", (void *)&l);
	MUST(r == (SINCE(25) ? EINVAL : 0) && (r || !pthread_rwlock_unlock(&l)));
}

int main(void)
{
	static const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
				    PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
	partner_start();
	for (int i = 0; i < 3; i++) {
		init(kinds[i]);
		waits();
		if (i < 2) /* twice for reading by one thread */
			at_once();
		refused();
	}
	partner_end();
	return 0;
}
