/*
 * loader N: one thread opens what is open already, the main one forks N times; each child goes through the loader's list of images, for which it needs a
 * lock that no fork puts right.  Nobody here holds it while another forks, so no child may wait for it.  Prints how many did.
 */
#include "prog.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

static int stop;

static void *opens(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		MUST(!dlclose(dlopen("libc.so.6", RTLD_LAZY)));
	return arg;
}

static int count(struct dl_phdr_info *info, size_t size, void *n)
{
	(void)info, (void)size;
	++*(int *)n;
	return 0;
}

int main(int argc, char **argv)
{
	int forks = argc > 1 ? atoi(argv[1]) : 1000, stuck = 0;
	pthread_t t;
	MUST(!pthread_create(&t, NULL, opens, NULL));
	for (int i = 0; i < forks; i++) {
		pid_t pid = fork();
		if (!pid) {
			int n = 0;
			alarm(5);
			dl_iterate_phdr(count, &n);
			_exit(n > 2 ? 0 : 1);
		}
		int status;
		MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
		stuck += status != 0;
		if (stuck > 2)
			break;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	MUST(!pthread_join(t, NULL));
	printf("stuck: %d\n", stuck);
	return 0;
}
