/* What a runtime tells of itself through d9.h.  Built as PIE and as a program at a fixed address. */
#include "prog.h"
#include "shim/d9.h"

#include <signal.h>
#include <sys/wait.h>

static void act(int which)
{
	uint32_t type;
	struct __attribute__((packed)) {
		uint64_t a;
		int64_t b;
		char s[4];
	} data = {7, -9, "abc"};
	switch (which) {
	case 0:
		D9_CALL(worker_park, 3, 4);
		raw_sleep_ms(5);
		D9_CALL(worker_unpark);
		printf("EVENT event=park tid=%d runtime=3 worker=4 min_ns=5000000\n", my_tid());
		break;
	case 1:
		D9_CALL(task_spawn, 11, 10, 3, "fetch");
		printf("EVENT event=task_spawn tid=%d task=11 parent=10 runtime=3 module=0 name=fetch\n", my_tid());
		D9_CALL(task_spawn, 12, 0, 3, NULL);
		printf("EVENT event=task_spawn tid=%d task=12 parent=0 runtime=3\n", my_tid());
		D9_CALL(wake, 11, 10, 3);
		printf("EVENT event=wake tid=%d task=11 by=10 runtime=3\n", my_tid());
		break;
	case 2: /* nested, as block_on inside a poll */
		D9_CALL(poll_begin, 11, 3, 4);
		D9_CALL(poll_begin, 12, 3, D9_NO_WORKER);
		raw_sleep_ms(5);
		D9_CALL(poll_end, D9_POLL_PENDING);
		D9_CALL(poll_end, D9_POLL_READY);
		printf("EVENT event=poll tid=%d task=12 worker=%u outcome=0 min_ns=5000000\n", my_tid(), D9_NO_WORKER);
		printf("EVENT event=poll tid=%d task=11 worker=4 outcome=1 min_ns=5000000\n", my_tid());
		D9_CALL(poll_end, D9_POLL_READY); /* one too many: nothing */
		D9_CALL(task_end, 11, D9_POLL_READY);
		printf("EVENT event=task_end tid=%d task=11 outcome=1\n", my_tid());
		break;
	case 3:
		D9_CALL(span_begin, "outer", 1);
		D9_CALL(span_begin, "inner", 2);
		D9_CALL(span_end);
		D9_CALL(span_end);
		printf("EVENT event=app_span tid=%d id=2 name=inner\nEVENT event=app_span tid=%d id=1 name=outer\n",
		       my_tid(), my_tid());
		break;
	case 4:
		D9_CALL(log_line, D9_LOG_WARNING, "disk-full");
		printf("EVENT event=log tid=%d level=2 text=disk-full\n", my_tid());
		D9_CALL(counter, "queue", -5);
		printf("EVENT event=counter tid=%d value=-5 name=queue\n", my_tid());
		break;
	case 5:
		type = d9_abi_get() ? d9_abi_get()->event_type("order", "id:u64,delta:i64,what:str") : 0;
		D9_CALL(event_type, "order", "id:u64,delta:i64,what:str");
		D9_CALL(event, type, &data, sizeof(data));
		printf("EVENT event=custom tid=%d type=%u data=0700000000000000f7ffffffffffffff61626300\n", my_tid(),
		       type);
		break;
	}
}

static void handler(int n)
{
	(void)n;
	D9_CALL(counter, "in-handler", 1);
}

int main(int argc, char **argv)
{
	int saved = errno = 4711;
	MUST(!!d9_abi_get() == (argc > 1 && !strcmp(argv[1], "recorded")));
	for (int i = 0; i < 6; i++)
		act(i);
	fflush(stdout);
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	printf("EVENT event=counter tid=%d value=1 name=in-handler\n", my_tid());
	errno = saved;
	void *p = NULL, *kept = &kept; /* as Tokio's tasks are allocated: seen, and not recorded here */
	MUST(posix_memalign(&p, 128, 300) == 0 && p && !((uintptr_t)p & 127));
	MUST(posix_memalign(&kept, 3, 8) == EINVAL && kept == &kept);
	free(p);
	D9_CALL(log_line, D9_LOG_ERROR, NULL);
	printf("EVENT event=log tid=%d level=1\n", my_tid());
	MUST(errno == 4711);
	return 0;
}
