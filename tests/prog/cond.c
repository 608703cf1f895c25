/*
 * Condition variables.  Built twice: as today's programs call them, and with -DOLD_ABI as programs of before glibc 2.3.2 do,
 * whose object has another shape: each must reach its own function in libc.
 */
#include "prog.h"

#ifdef OLD_ABI
__asm__(".symver pthread_cond_wait, pthread_cond_wait@GLIBC_2.2.5\n"
	".symver pthread_cond_timedwait, pthread_cond_timedwait@GLIBC_2.2.5\n"
	".symver pthread_cond_signal, pthread_cond_signal@GLIBC_2.2.5\n"
	".symver pthread_cond_broadcast, pthread_cond_broadcast@GLIBC_2.2.5\n");
#endif

static pthread_cond_t cond;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ready;

static void act_signal(void *arg)
{
	int (*wake)(pthread_cond_t *) = *(int (**)(pthread_cond_t *))arg;
	MUST(!pthread_mutex_lock(&mutex));
	ready = 1;
	MUST(!wake(&cond) && !pthread_mutex_unlock(&mutex));
}

static void wait_for(int (*wake)(pthread_cond_t *))
{
	ready = 0;
	when_asleep(act_signal, (void *)&wake);
	int r = pthread_cond_wait(&cond, &mutex);
	woken();
	expect("pthread_cond_wait", -r, "object=%p waker=%d", (void *)&cond, partner.tid);
	MUST(!r && ready); /* nothing else wakes it: a spurious one would be seen as a failure, and has never been */
}

int main(void)
{
	int (*one)(pthread_cond_t *) = pthread_cond_signal, (*all)(pthread_cond_t *) = pthread_cond_broadcast;
	partner_start();
	MUST(!pthread_mutex_lock(&mutex));
	wait_for(one);
	wait_for(all);

	struct timespec t = in_ms(CLOCK_REALTIME, HOLD_MS);
	before();
	int r = pthread_cond_timedwait(&cond, &mutex, &t);
	after();
	expect("pthread_cond_timedwait", -r, "object=%p waker=null", (void *)&cond);
	MUST(r == ETIMEDOUT && prog_times.t1 - prog_times.t0 > 15000000);

	ready = 0;
	t = in_ms(CLOCK_REALTIME, 60000);
	when_asleep(act_signal, (void *)&one);
	r = pthread_cond_timedwait(&cond, &mutex, &t);
	woken();
	expect("pthread_cond_timedwait", -r, "object=%p waker=%d", (void *)&cond, partner.tid);
	MUST(!r && ready);
#if !defined(OLD_ABI) && SINCE(30)
	t = in_ms(CLOCK_MONOTONIC, HOLD_MS);
	before();
	r = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &t);
	after();
	expect("pthread_cond_clockwait", -r, "object=%p waker=null", (void *)&cond);
	MUST(r == ETIMEDOUT);
#endif
	MUST(!pthread_cond_signal(&cond) && !pthread_cond_broadcast(&cond)); /* nobody waits: nothing is recorded */
	MUST(!pthread_mutex_unlock(&mutex));
	partner_end();
	return 0;
}
