/* Sleeps: to their end, cut short by a signal, refused. */
#include "prog.h"

#include <signal.h>

static void handler(int n) { (void)n; }
static void act_signal(void *tid) { (void)raw(SYS_tgkill, raw(SYS_getpid), *(int *)tid, SIGUSR1); }

#define FULL(hook, call, result, ms)                                      \
	do {                                                              \
		before();                                                 \
		long r = (long)(call);                                    \
		after();                                                  \
		prog_times.hold0 = 0, prog_times.hold1 = (ms)*1000000ull; \
		expect(hook, result, "%s", "");                           \
	} while (0)
#define CUT(hook, call, result)                 \
	do {                                    \
		when_asleep(act_signal, &tid);  \
		long r = (long)(call);          \
		woken();                        \
		expect(hook, result, "%s", ""); \
	} while (0)

int main(void)
{
	struct timespec ms20 = {0, 20000000}, minute = {60, 0}, left, bad = {0, -1}, at;
	struct sigaction sa = {.sa_handler = handler};
	int tid = my_tid();
	MUST(!sigaction(SIGUSR1, &sa, NULL));
	partner_start();
	FULL("nanosleep", nanosleep(&ms20, NULL), r, 20);
	FULL("usleep", usleep(20000), r, 20);
	FULL("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &ms20, NULL), -r, 20);
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += 0;
	FULL("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL), -r, 0);
	FULL("sleep", sleep(1), r, 1000);
	CUT("nanosleep", nanosleep(&minute, &left), RESULT(r));
	MUST(left.tv_sec == 59);
	CUT("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &minute, &left), -r);
	CUT("usleep", usleep(60000000), RESULT(r));
	CUT("sleep", sleep(60), r);
	FULL("nanosleep", nanosleep(&bad, NULL), RESULT(r), 0);
	FULL("clock_nanosleep", clock_nanosleep(4711, 0, &ms20, NULL), -r, 0); /* the error, not -1 */
	partner_end();
	return 0;
}
