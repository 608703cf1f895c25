/* Semaphores: waited for, taken at once, given back, kept. */
#include "prog.h"

#include <semaphore.h>

static sem_t s, kept;

static void act_post(void *arg) { MUST(!sem_post(arg)); }

int main(void)
{
	struct timespec far = in_ms(CLOCK_REALTIME, 60000), far_mono = in_ms(CLOCK_MONOTONIC, 60000);
	partner_start();
	MUST(!sem_init(&s, 0, 0) && !sem_init(&kept, 0, 1));
#define POSTED(name, call)                                                              \
	do {                                                                            \
		when_asleep(act_post, &s);                                              \
		int r = call;                                                           \
		woken();                                                                \
		expect(name, RESULT(r), "object=%p waker=%d", (void *)&s, partner.tid); \
		MUST(!r);                                                               \
	} while (0)
#define TIMED_OUT(name, call)                                                \
	do {                                                                 \
		struct timespec t;                                           \
		before();                                                    \
		int r = call, e = errno;                                     \
		after();                                                     \
		errno = e;                                                   \
		expect(name, RESULT(r), "object=%p waker=null", (void *)&s); \
		MUST(r == -1 && e == ETIMEDOUT);                             \
	} while (0)
	POSTED("sem_wait", sem_wait(&s));
	POSTED("sem_timedwait", sem_timedwait(&s, &far));
#if SINCE(30)
	POSTED("sem_clockwait", sem_clockwait(&s, CLOCK_MONOTONIC, &far_mono));
#endif
	TIMED_OUT("sem_timedwait", (t = in_ms(CLOCK_REALTIME, HOLD_MS), sem_timedwait(&s, &t)));
#if SINCE(30)
	TIMED_OUT("sem_clockwait", (t = in_ms(CLOCK_MONOTONIC, HOLD_MS), sem_clockwait(&s, CLOCK_MONOTONIC, &t)));
#endif

	/* Taken at once: no wait, nothing recorded, errno as it was. */
	errno = 4711;
	for (int i = 0; i < 100; i++)
		MUST(!sem_post(&s) && !sem_wait(&s) && !sem_post(&s) && !sem_trywait(&s) && !sem_post(&s) &&
		     !sem_timedwait(&s, &far));
	MUST(errno == 4711);
	MUST(sem_trywait(&s) == -1 && errno == EAGAIN);
	MUST(!sem_post(&s));
	/* Kept at the end: said so. */
	MUST(!sem_wait(&kept));
	printf("EVENT event=held tid=%d object=%p\n", my_tid(), (void *)&kept);
	partner_end();
	return 0;
}
