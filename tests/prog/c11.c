/* C11's mutexes and condition variables. */
#include "prog.h"

#include <threads.h>

static mtx_t m;
static cnd_t c;
static volatile int ready;

static void act_lock(void *arg)
{
	(void)arg;
	MUST(mtx_lock(&m) == thrd_success);
}
static void act_unlock(void *arg)
{
	(void)arg;
	MUST(mtx_unlock(&m) == thrd_success);
}
static void act_signal(void *arg)
{
	MUST(mtx_lock(&m) == thrd_success);
	ready = 1;
	MUST((arg ? cnd_broadcast(&c) : cnd_signal(&c)) == thrd_success && mtx_unlock(&m) == thrd_success);
}

static void mutexes(int kind)
{
	struct timespec far = in_ms(CLOCK_REALTIME, 60000), t = in_ms(CLOCK_REALTIME, HOLD_MS);
	MUST(mtx_init(&m, kind) == thrd_success);
#define WAITS(hook, call)                                                                             \
	do {                                                                                          \
		partner_do(act_lock, NULL);                                                           \
		when_asleep(act_unlock, NULL);                                                        \
		int r = call;                                                                         \
		woken();                                                                              \
		expect(hook, r, "object=%p owner=%d waker=%d", (void *)&m, partner.tid, partner.tid); \
		MUST(r == thrd_success && mtx_unlock(&m) == thrd_success);                            \
	} while (0)
	WAITS("mtx_lock", mtx_lock(&m));
	if (kind & mtx_timed) {
		WAITS("mtx_timedlock", mtx_timedlock(&m, &far));
		partner_do(act_lock, NULL);
		t = in_ms(CLOCK_REALTIME, HOLD_MS);
		before();
		int r = mtx_timedlock(&m, &t);
		after();
		expect("mtx_timedlock", -ETIMEDOUT, "object=%p owner=%d waker=null", (void *)&m, partner.tid);
		MUST(r == thrd_timedout);
		partner_do(act_unlock, NULL);
		MUST(mtx_timedlock(&m, &far) == thrd_success && mtx_unlock(&m) == thrd_success);
	}
	for (int i = 0; i < 100; i++)
		MUST(mtx_lock(&m) == thrd_success && mtx_unlock(&m) == thrd_success);
	if (kind & mtx_recursive)
		MUST(mtx_lock(&m) == thrd_success && mtx_lock(&m) == thrd_success && mtx_unlock(&m) == thrd_success &&
		     mtx_unlock(&m) == thrd_success);
	MUST(mtx_trylock(&m) == thrd_success && mtx_unlock(&m) == thrd_success);
}

static void conditions(void)
{
	struct timespec far = in_ms(CLOCK_REALTIME, 60000), t;
	int r;
	MUST(mtx_init(&m, mtx_timed) == thrd_success && cnd_init(&c) == thrd_success);
	MUST(mtx_lock(&m) == thrd_success);
	for (long all = 0; all < 2; all++) {
		ready = 0;
		when_asleep(act_signal, (void *)all);
		r = cnd_wait(&c, &m);
		woken();
		expect("cnd_wait", r, "object=%p waker=%d", (void *)&c, partner.tid);
		MUST(r == thrd_success && ready);
	}
	when_asleep(act_signal, NULL);
	r = cnd_timedwait(&c, &m, &far);
	woken();
	expect("cnd_timedwait", r, "object=%p waker=%d", (void *)&c, partner.tid);
	MUST(r == thrd_success);
	t = in_ms(CLOCK_REALTIME, HOLD_MS);
	before();
	r = cnd_timedwait(&c, &m, &t);
	after();
	expect("cnd_timedwait", -ETIMEDOUT, "object=%p waker=null", (void *)&c);
	MUST(r == thrd_timedout && mtx_unlock(&m) == thrd_success);
	MUST(cnd_signal(&c) == thrd_success && cnd_broadcast(&c) == thrd_success);
}

int main(void)
{
	partner_start();
	mutexes(mtx_plain);
	mutexes(mtx_timed | mtx_recursive);
	conditions();
	partner_end();
	return 0;
}
