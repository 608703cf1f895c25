/*
 * kill FILE: threads that call hooked functions for ever, until killed.  Call i of a thread waits on descriptor FIRST + i,
 * which does not exist, so that every record says which call it was; after each the thread bumps its own counter in FILE.
 * Every second thread makes a wait of a millisecond after each, so that most kills find somebody in a call.
 */
#include "prog.h"

#include <poll.h>
#include <sys/epoll.h>

#define THREADS 4
#define FIRST 1000000

struct shared {
	volatile uint64_t started;
	struct {
		volatile int64_t tid, done, pad[6];
	} of[THREADS];
};
static struct shared *shared;

static void *run(void *arg)
{
	long me = (long)arg;
	struct epoll_event ev;
	shared->of[me].tid = my_tid();
	__atomic_fetch_add(&shared->started, 1, __ATOMIC_RELEASE);
	for (int64_t i = 0;; i++) {
		epoll_wait(FIRST + (int)i, &ev, 1, 0);
		shared->of[me].done = i + 1;
		if (me & 1)
			poll(NULL, 0, 1);
		for (volatile int spin = 0; spin < 3000; spin++) /* slower than any drainer */
			;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? (int)raw(SYS_open, argv[1], O_RDWR, 0) : -1;
	MUST(fd >= 0);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(shared != MAP_FAILED);
	for (long i = 1; i < THREADS; i++) {
		pthread_t t;
		MUST(!pthread_create(&t, NULL, run, (void *)i));
	}
	run((void *)0);
}
