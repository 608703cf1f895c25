/* Waits for signals: one that the thread takes itself, one that a handler takes, none in time. */
#include "prog.h"

#include <signal.h>

static sigset_t usr1;
static int main_tid;

static void handler(int n) { (void)n; }
static void act_signal(void *arg)
{
	(void)arg;
	(void)raw(SYS_tgkill, raw(SYS_getpid), main_tid, SIGUSR1);
}

/* The BSD form, which the header hides behind the other one. */
int bsd_sigpause(int mask) __asm__("sigpause");
int __xpg_sigpause(int sig);

#define WAITS(hook, call, result, good)         \
	do {                                    \
		when_asleep(act_signal, NULL);  \
		int r = call;                   \
		woken();                        \
		expect(hook, result, "%s", ""); \
		MUST(good);                     \
	} while (0)
#define AT_ONCE(hook, call, result, good)       \
	do {                                    \
		before();                       \
		int r = call;                   \
		after();                        \
		expect(hook, result, "%s", ""); \
		MUST(good);                     \
	} while (0)

int main(void)
{
	struct sigaction sa = {.sa_handler = handler};
	struct timespec far = {60, 0}, soon = {0, 20000000}, bad = {0, -1};
	siginfo_t info;
	sigset_t none;
	int sig = 0;
	main_tid = my_tid();
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	MUST(!sigaction(SIGUSR1, &sa, NULL));
	partner_start();
	WAITS("pause", pause(), RESULT(r), r == -1 && errno == EINTR);
	WAITS("sigpause", bsd_sigpause(0), RESULT(r), r == -1 && errno == EINTR);
	MUST(!pthread_sigmask(SIG_BLOCK, &usr1, NULL));
	WAITS("__xpg_sigpause", __xpg_sigpause(SIGUSR1), RESULT(r), r == -1 && errno == EINTR);
	WAITS("sigsuspend", sigsuspend(&none), RESULT(r), r == -1 && errno == EINTR);
	WAITS("sigwait", sigwait(&usr1, &sig), -r, !r && sig == SIGUSR1);
	WAITS("sigwaitinfo", sigwaitinfo(&usr1, &info), RESULT(r), r == SIGUSR1 && info.si_signo == SIGUSR1);
	WAITS("sigtimedwait", sigtimedwait(&usr1, &info, &far), RESULT(r), r == SIGUSR1);
	AT_ONCE("sigtimedwait", sigtimedwait(&usr1, &info, &soon), RESULT(r), r == -1 && errno == EAGAIN);
	AT_ONCE("sigtimedwait", sigtimedwait(&usr1, &info, &bad), RESULT(r), r == -1 && errno == EINVAL);
	act_signal(NULL);
	AT_ONCE("sigwait", sigwait(&usr1, &sig), -r, !r && sig == SIGUSR1);
	partner_end();
	return 0;
}
