/* Threads that wait for threads: joined, at a barrier, for what another does once. */
#include "prog.h"

#include <signal.h>
#include <threads.h>

struct child {
	pthread_t t;
	volatile int tid, go;
};

static void *run(void *arg)
{
	struct child *c = arg;
	raw_set(&c->tid, my_tid());
	raw_wait(&c->go, 0);
	return (void *)42;
}
static int run_c11(void *arg) { return run(arg) == (void *)42; }
static void act_go(void *arg) { raw_set(&((struct child *)arg)->go, 1); }

static void start(struct child *c)
{
	c->tid = c->go = 0;
	before();
	MUST(!pthread_create(&c->t, NULL, run, c));
	after();
	expect("pthread_create", 0, "%s", "");
	raw_wait(&c->tid, 0);
}

#define JOINS(hook, call)                                                         \
	do {                                                                      \
		start(&c);                                                        \
		when_asleep(act_go, &c);                                          \
		int r = call;                                                     \
		woken();                                                          \
		expect(hook, -r, "object=0x%x owner=%d", (unsigned)c.tid, c.tid); \
		MUST(!r && end == (void *)42);                                    \
		end = NULL;                                                       \
	} while (0)
#define FAILS(hook, call, error)                                                  \
	do {                                                                      \
		before();                                                         \
		int r = call;                                                     \
		after();                                                          \
		expect(hook, -r, "object=0x%x owner=%d", (unsigned)c.tid, c.tid); \
		MUST(r == (error));                                               \
	} while (0)

static void joins(void)
{
	struct child c;
	void *end = NULL;
	struct timespec far = in_ms(CLOCK_REALTIME, 60000), far_mono = in_ms(CLOCK_MONOTONIC, 60000), t;
	JOINS("pthread_join", pthread_join(c.t, &end));
	JOINS("pthread_timedjoin_np", pthread_timedjoin_np(c.t, &end, &far));
#if SINCE(31)
	JOINS("pthread_clockjoin_np", pthread_clockjoin_np(c.t, &end, CLOCK_MONOTONIC, &far_mono));
#endif
	start(&c);
	FAILS("pthread_timedjoin_np", (t = in_ms(CLOCK_REALTIME, HOLD_MS), pthread_timedjoin_np(c.t, &end, &t)),
	      ETIMEDOUT);
#if SINCE(31)
	FAILS("pthread_clockjoin_np",
	      (t = in_ms(CLOCK_MONOTONIC, HOLD_MS), pthread_clockjoin_np(c.t, &end, CLOCK_MONOTONIC, &t)), ETIMEDOUT);
#endif
	int r = pthread_tryjoin_np(c.t, &end);
	fast("pthread_tryjoin_np", -r, "%s", "");
	MUST(r == EBUSY);
	raw_set(&c.go, 1);
	while (raw(SYS_tkill, c.tid, 0) == 0)
		raw(SYS_sched_yield);
	before();
	r = pthread_join(c.t, &end); /* it has ended: no thread is waited for */
	after();
	expect("pthread_join", -r, "%s", "owner=0");
	MUST(!r && end == (void *)42);
	before();
	r = pthread_join(pthread_self(), NULL);
	after();
	expect("pthread_join", -r, "object=0x%x owner=%d", (unsigned)my_tid(), my_tid());
	MUST(r == EDEADLK);
}

static void joins_c11(void)
{
	struct child c = {0};
	thrd_t t;
	int end = 0;
	before();
	int r = thrd_create(&t, run_c11, &c);
	after();
	expect("thrd_create", r, "%s", "");
	raw_wait(&c.tid, 0);
	when_asleep(act_go, &c);
	r = thrd_join(t, &end);
	woken();
	expect("thrd_join", r, "object=0x%x owner=%d", (unsigned)c.tid, c.tid);
	MUST(r == thrd_success && end == 1);
	struct timespec ms20 = {0, 20000000}, bad = {0, -1};
	before();
	r = thrd_sleep(&ms20, NULL);
	after();
	prog_times.hold0 = 0, prog_times.hold1 = 20000000;
	expect("thrd_sleep", r, "%s", "");
	MUST(!r);
	before();
	r = thrd_sleep(&bad, NULL);
	after();
	expect("thrd_sleep", -EINVAL, "%s", "");
	MUST(r < -1);
}

/* ---- a barrier of three --------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;
static volatile int second_tid, second_done;
static int first_ret, second_ret;

static void *second(void *arg)
{
	(void)arg;
	raw_set(&second_tid, my_tid());
	before();
	second_ret = pthread_barrier_wait(&barrier);
	raw_set(&second_done, 1);
	return NULL;
}
static void act_arrive(void *arg)
{
	(void)arg;
	int r = pthread_barrier_wait(&barrier);
	printf("EXPECT tid=%d hook=pthread_barrier_wait result=%d object=%p\n", my_tid(), r == -1 ? 1 : -r,
	       (void *)&barrier);
}

static void barriers(void)
{
	pthread_t t;
	MUST(!pthread_barrier_init(&barrier, NULL, 3));
	before();
	MUST(!pthread_create(&t, NULL, second, NULL));
	after();
	expect("pthread_create", 0, "%s", "");
	raw_wait(&second_tid, 0);
	until_sleeps(second_tid);
	when_asleep(act_arrive, NULL);
	first_ret = pthread_barrier_wait(&barrier);
	woken();
	expect("pthread_barrier_wait", first_ret == -1, "object=%p waker=%d", (void *)&barrier, partner.tid);
	raw_wait(&second_done, 0);
	printf("EXPECT tid=%d hook=pthread_barrier_wait result=%d object=%p waker=%d\n", second_tid, second_ret == -1,
	       (void *)&barrier, partner.tid);
	MUST(!pthread_detach(t));
	MUST(!pthread_barrier_destroy(&barrier));
}

/* ---- once --------------------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT, once_cancelled = PTHREAD_ONCE_INIT, once_forked = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;
static volatile int inside, leave, n_runs;

static void slow_init(void)
{
	n_runs++;
	raw_set(&inside, 1);
	raw_wait(&leave, 0);
}
static void *first_once(void *arg)
{
	(void)arg;
	MUST(!pthread_once(&once, slow_init)); /* runs it: no wait */
	return NULL;
}
static void *first_call_once(void *arg)
{
	(void)arg;
	call_once(&flag, slow_init);
	return NULL;
}
static void act_leave(void *arg)
{
	(void)arg;
	raw_set(&leave, 1);
}
static void begin_elsewhere(void *(*f)(void *))
{
	pthread_t t;
	inside = leave = n_runs = 0;
	before();
	MUST(!pthread_create(&t, NULL, f, NULL));
	after();
	expect("pthread_create", 0, "%s", "");
	MUST(!pthread_detach(t));
	raw_wait(&inside, 0);
}

static void hang_init(void)
{
	n_runs++;
	if (n_runs == 1) {
		raw_set(&inside, 1);
		for (;;)
			pause();
	}
}
static void *cancelled_once(void *arg)
{
	(void)arg;
	pthread_once(&once_cancelled, hang_init);
	return NULL;
}
static void fork_init(void)
{
	n_runs++;
	if (!raw(SYS_fork)) /* the routine goes on in the child as well */
		return;
}

static void onces(void)
{
	begin_elsewhere(first_once);
	when_asleep(act_leave, NULL);
	int r = pthread_once(&once, slow_init);
	woken();
	expect("pthread_once", -r, "object=%p", (void *)&once);
	MUST(!r && n_runs == 1);
	for (int i = 0; i < 100; i++)
		MUST(!pthread_once(&once, slow_init)); /* done: not recorded */
#if SINCE(28)
	begin_elsewhere(first_call_once);
	when_asleep(act_leave, NULL);
	call_once(&flag, slow_init);
	woken();
	expect("call_once", 0, "object=%p", (void *)&flag);
	call_once(&flag, slow_init);
	MUST(n_runs == 1);
#endif

	/* Cancelled inside the routine: it counts as not begun, and the next one runs it. */
	pthread_t t;
	void *end;
	inside = n_runs = 0;
	before();
	MUST(!pthread_create(&t, NULL, cancelled_once, NULL));
	after();
	expect("pthread_create", 0, "%s", "");
	raw_wait(&inside, 0);
	MUST(!pthread_cancel(t));
	uint64_t t0 = now_ns();
	r = pthread_join(t, &end);
	prog_times.t0 = t0, prog_times.t1 = now_ns(), prog_times.hold1 = 0;
	expect("pthread_join", -r, "%s", "");
	MUST(end == PTHREAD_CANCELED);
	MUST(!pthread_once(&once_cancelled, hang_init) && n_runs == 2);

	n_runs = 0;
	pid_t me = (pid_t)raw(SYS_getpid);
	MUST(!pthread_once(&once_forked, fork_init));
	MUST(!pthread_once(&once_forked, fork_init) && n_runs == 1);
	if (raw(SYS_getpid) != me)
		raw(SYS_exit_group, 0);
}

int main(void)
{
	partner_start();
	joins();
	if (SINCE(28))
		joins_c11();
	barriers();
	onces();
	partner_end();
	return 0;
}
