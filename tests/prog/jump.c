/*
 * siglongjmp out of waits: what is left behind must not be shown as a wait that still goes on, and what follows, from
 * deeper and from shallower frames, is recorded.
 */
#include "prog.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf out;
static int main_tid;

static void handler(int n)
{
	(void)n;
	siglongjmp(out, 1);
}
static void act_signal(void *arg)
{
	(void)arg;
	(void)raw(SYS_tgkill, raw(SYS_getpid), main_tid, SIGUSR1);
}

static __attribute__((noinline)) void wait_deep(int depth)
{
	volatile char pad[64] = {0};
	if (depth)
		wait_deep(depth - 1);
	else
		poll(NULL, 0, -1);
	(void)pad;
}

static __attribute__((noinline)) void jump_out_of(int depth)
{
	when_asleep(act_signal, NULL);
	if (!sigsetjmp(out, 1))
		wait_deep(depth);
	woken();
}

static __attribute__((noinline)) void sleep_at(int depth)
{
	volatile char pad[64] = {0};
	if (depth)
		sleep_at(depth - 1);
	else {
		struct timespec ms = {0, 1000000};
		before();
		int r = nanosleep(&ms, NULL);
		after();
		expect("nanosleep", RESULT(r), "%s", "");
	}
	(void)pad;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = handler};
	main_tid = my_tid();
	MUST(!sigaction(SIGUSR1, &sa, NULL));
	partner_start();
	for (int i = 0; i < 5; i++) {
		jump_out_of(i);
		sleep_at(4 - i);
	}
	jump_out_of(0);
	sleep_at(3); /* deeper than what was left: the last call of the program */
	partner_end();
	return 0;
}
