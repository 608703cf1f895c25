/* Opened at run time: its constructor, under the loader's lock, waits for a thread that makes hooked calls. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

extern int thread_ran;
int thread_ran;

static void *run(void *arg)
{
	usleep(1000);
	poll(0, 0, 1);
	thread_ran = 1;
	return arg;
}
__attribute__((constructor)) static void start(void)
{
	pthread_t t;
	if (!pthread_create(&t, 0, run, 0))
		pthread_join(t, 0);
}
