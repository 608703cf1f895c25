/* Threads: made, refused, named three ways. */
#include "prog.h"

#include <sys/prctl.h>

static void *run(void *arg)
{
	struct timespec ms = {0, 1000000};
	const char *name = arg;
	if (name[0] == 'n')
		MUST(!pthread_setname_np(pthread_self(), name));
	else
		MUST(!prctl(PR_SET_NAME, name, 0, 0, 0));
	before();
	int r = nanosleep(&ms, NULL);
	after();
	expect("nanosleep", RESULT(r), "%s", "");
	printf("EVENT event=thread id_tid=%d name=%s\n", my_tid(), name);
	return NULL;
}

int main(void)
{
	static const char *names[] = {"np-name", "prctl-name"};
	pthread_t t;
	pthread_attr_t a;
	for (int i = 0; i < 2; i++) {
		before();
		int r = pthread_create(&t, NULL, run, (void *)(uintptr_t)names[i]);
		after();
		uint64_t t0 = prog_times.t0, t1 = prog_times.t1;
		MUST(!r && !pthread_join(t, NULL));
		prog_times.t0 = t0, prog_times.t1 = t1, prog_times.hold1 = 0;
		expect("pthread_create", -r, "%s", "");
	}
	pthread_attr_init(&a);
	MUST(!pthread_attr_setstacksize(&a, (size_t)1 << 46)); /* more than there is */
	before();
	int r = pthread_create(&t, &a, run, NULL);
	after();
	expect("pthread_create", -r, "%s", "");
	MUST(r == EAGAIN);
	return 0;
}
