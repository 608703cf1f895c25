/* Mutexes of the six kinds: contended ones are recorded with their owner, free ones are not, semantics stay. */
#include "prog.h"

static pthread_mutex_t m;

static void act_lock(void *arg) { MUST(!pthread_mutex_lock(arg)); }
static void act_unlock(void *arg) { MUST(!pthread_mutex_unlock(arg)); }

static void init(int type, int robust, int protocol)
{
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	MUST(!pthread_mutexattr_settype(&a, type) && !pthread_mutexattr_setrobust(&a, robust));
	MUST(!pthread_mutexattr_setprotocol(&a, protocol));
	memset(&m, 0, sizeof(m));
	MUST(!pthread_mutex_init(&m, &a));
}

/* Held by the partner: waited for. */
static void contended(void)
{
	partner_do(act_lock, &m);
	MUST(pthread_mutex_trylock(&m) == EBUSY);
	when_asleep(act_unlock, &m);
	int r = pthread_mutex_lock(&m);
	woken();
	expect("pthread_mutex_lock", -r, "object=%p owner=%d waker=%d", (void *)&m, partner.tid, partner.tid);
	MUST(!r && !pthread_mutex_unlock(&m));
}

static void timed(void)
{
	struct timespec t = in_ms(CLOCK_REALTIME, HOLD_MS);
	partner_do(act_lock, &m);
	before();
	int r = pthread_mutex_timedlock(&m, &t);
	after();
	expect("pthread_mutex_timedlock", -r, "object=%p owner=%d waker=null", (void *)&m, partner.tid);
	MUST(r == ETIMEDOUT);
#if SINCE(30)
	t = in_ms(CLOCK_MONOTONIC, HOLD_MS);
	before();
	r = pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &t);
	after();
	expect("pthread_mutex_clocklock", -r, "object=%p owner=%d waker=null", (void *)&m, partner.tid);
	MUST(r == ETIMEDOUT);
#endif
	partner_do(act_unlock, &m);
	t = in_ms(CLOCK_REALTIME, 1000); /* free: at once, and not recorded */
	MUST(!pthread_mutex_timedlock(&m, &t) && !pthread_mutex_unlock(&m));
	MUST(!pthread_mutex_clocklock(&m, CLOCK_REALTIME, &t) && !pthread_mutex_unlock(&m));
}

static void uncontended(void)
{
	for (int i = 0; i < 1000; i++)
		MUST(!pthread_mutex_lock(&m) && !pthread_mutex_unlock(&m));
	MUST(!pthread_mutex_trylock(&m) && !pthread_mutex_unlock(&m));
}

static void recursive(void)
{
	init(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	contended();
	MUST(!pthread_mutex_lock(&m) && !pthread_mutex_lock(&m) && !pthread_mutex_trylock(&m));
	MUST(!pthread_mutex_unlock(&m) && !pthread_mutex_unlock(&m) && !pthread_mutex_unlock(&m));
	MUST(pthread_mutex_unlock(&m) == EPERM);
}

static void errorcheck(void)
{
	init(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	contended();
	MUST(!pthread_mutex_lock(&m));
	before();
	int r = pthread_mutex_lock(&m);
	after();
	expect("pthread_mutex_lock", -r, "object=%p owner=%d", (void *)&m, my_tid());
	MUST(r == EDEADLK && !pthread_mutex_unlock(&m) && pthread_mutex_unlock(&m) == EPERM);
}

static void *die_holding(void *arg)
{
	MUST(!pthread_mutex_lock(arg));
	return NULL;
}

/* A thread ends with the mutex.  Who locks it next gets it at once: not recorded, and the answer is the caller's. */
static void owner_dies(void)
{
	pthread_t t;
	before();
	MUST(!pthread_create(&t, NULL, die_holding, &m));
	after();
	expect("pthread_create", 0, "%s", "");
	MUST(!pthread_join(t, NULL));
}

static void robust(int type, int protocol)
{
	struct timespec t = in_ms(CLOCK_REALTIME, 1000);
	init(type, PTHREAD_MUTEX_ROBUST, protocol);
	contended();
	owner_dies();
	MUST(pthread_mutex_lock(&m) == EOWNERDEAD);
	MUST(!pthread_mutex_consistent(&m) && !pthread_mutex_unlock(&m));
	owner_dies();
	MUST(pthread_mutex_timedlock(&m, &t) == EOWNERDEAD);
	MUST(!pthread_mutex_consistent(&m) && !pthread_mutex_unlock(&m));
	uncontended();
	if (type == PTHREAD_MUTEX_RECURSIVE)
		MUST(!pthread_mutex_lock(&m) && !pthread_mutex_lock(&m) && !pthread_mutex_unlock(&m) &&
		     !pthread_mutex_unlock(&m));
	owner_dies();
	MUST(pthread_mutex_lock(&m) == EOWNERDEAD &&
	     !pthread_mutex_unlock(&m)); /* not made consistent: lost for good */
	for (int i = 0; i < 3; i++) {
		MUST(pthread_mutex_lock(&m) == ENOTRECOVERABLE && pthread_mutex_timedlock(&m, &t) == ENOTRECOVERABLE);
		MUST(pthread_mutex_clocklock(&m, CLOCK_REALTIME, &t) == ENOTRECOVERABLE);
	}
}

int main(void)
{
	partner_start();
	init(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	contended();
	uncontended();
	timed();
	init(PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	contended();
	init(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
	contended();
	uncontended();
	recursive();
	errorcheck();
	robust(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
	robust(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE);
	robust(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
	partner_end();
	return 0;
}
