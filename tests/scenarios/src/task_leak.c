/* A runtime of its own: every 5 ms a connection's task, of which two of three are never woken again, and a request's task that ends. */
#include "d9.h"

#include <stdio.h>
#include <sys/epoll.h>

#define RUNTIME 1
#define ROUNDS 400

static void poll_task(uint64_t task, uint32_t outcome)
{
	D9_CALL(wake, task, 0, RUNTIME);
	D9_CALL(poll_begin, task, RUNTIME, 0);
	D9_CALL(poll_end, outcome);
	if (outcome == D9_POLL_READY)
		D9_CALL(task_end, task, outcome);
}

int main(void)
{
	int ep = epoll_create1(0), left = 0, at_a_tenth = 0;
	struct epoll_event ev;
	d9_abi_get();
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t conn = 2 * i + 1, request = 2 * i + 2;
		D9_CALL(task_spawn, conn, 0, RUNTIME, "conn");
		poll_task(conn, i % 3 ? D9_POLL_PENDING : D9_POLL_READY);
		D9_CALL(task_spawn, request, conn, RUNTIME, "request");
		poll_task(request, D9_POLL_READY);
		left += i % 3 != 0;
		if (i == ROUNDS / 10)
			at_a_tenth = left;
		epoll_wait(ep, &ev, 1, 5);
	}
	printf("TRUTH tasks_first=%d tasks_last=%d\n", at_a_tenth, left);
	return 0;
}
