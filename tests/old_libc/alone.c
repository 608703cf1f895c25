/*
 * A program without libpthread that asks, as libraries of its time do, whether it is there: before glibc 2.34 such names are
 * weak and NULL, unless a recorder has them.  Prints the same either way.  With -DLATE it opens libpthread later, and starts a
 * thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma weak pthread_once
#pragma weak pthread_mutex_trylock
#pragma weak pthread_rwlock_rdlock
#pragma weak pthread_rwlock_unlock
#pragma weak pthread_create
#pragma weak pthread_join
#pragma weak stat
#pragma weak thrd_create
#ifndef LATE
#pragma weak dlopen
#endif
int thrd_create(unsigned long *t, int (*f)(void *), void *arg);

#define MUST(x)                                                \
	do {                                                   \
		if (!(x)) {                                    \
			printf("line %d: %s\n", __LINE__, #x); \
			exit(3);                               \
		}                                              \
	} while (0)

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_once_t o = PTHREAD_ONCE_INIT;
static int runs, at_it;

static void init(void) { runs++; }
static void *nothing(void *arg) { return arg; }

static void alone(void)
{
	errno = 4711;
	for (int i = 0; i < 1000; i++)
		MUST(!pthread_mutex_lock(&m) && !pthread_mutex_unlock(&m));
	MUST(!pthread_cond_signal(&c) && !pthread_cond_broadcast(&c));
	for (int i = 0; i < 3; i++)
		if (pthread_once)
			MUST(!pthread_once(&o, init));
		else if (o == PTHREAD_ONCE_INIT)
			o = 2, init();
	MUST(runs == 1);
	if (pthread_mutex_trylock)
		MUST(!pthread_mutex_trylock(&m) && !pthread_mutex_unlock(&m));
	if (pthread_rwlock_rdlock)
		MUST(!pthread_rwlock_rdlock(&l) && !pthread_rwlock_unlock(&l));
	pthread_t t;
	if (pthread_create)
		MUST(pthread_create(&t, NULL, nothing, NULL) > 0);
	if (thrd_create)
		MUST(thrd_create(&t, (int (*)(void *))nothing, NULL) != 0);
	MUST(errno == 4711);
	struct stat st;
	if (stat)
		MUST(!stat("/", &st) && S_ISDIR(st.st_mode) && stat("/nothing/here", &st) == -1 && errno == ENOENT);
}

#ifdef LATE
static void *hold(void *arg)
{
	int (*lock)(pthread_mutex_t *) = dlsym(arg, "pthread_mutex_lock"),
				    (*unlock)(pthread_mutex_t *) = dlsym(arg, "pthread_mutex_unlock");
	MUST(!lock(&m));
	__atomic_store_n(&at_it, 1, __ATOMIC_RELEASE);
	poll(NULL, 0, 60);
	MUST(!unlock(&m));
	return arg;
}

static void late(void)
{
	void *lib = dlopen("libpthread.so.0", RTLD_NOW | RTLD_GLOBAL), *end = NULL;
	MUST(lib);
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(lib, "pthread_create");
	int (*join)(pthread_t, void **) = dlsym(lib, "pthread_join");
	if (pthread_create)
		create = pthread_create, join = pthread_join;
	pthread_t t;
	MUST(!create(&t, NULL, hold, lib));
	while (!__atomic_load_n(&at_it, __ATOMIC_ACQUIRE))
		;
	MUST(!pthread_mutex_lock(&m) && !pthread_mutex_unlock(&m));
	MUST(!join(t, &end) && end == lib);
	for (int i = 0; i < 3; i++)
		if (pthread_once)
			MUST(!pthread_once(&o, init));
	MUST(runs == 1);
}
#endif

int main(void)
{
	alone();
	poll(NULL, 0, 20);
#ifdef LATE
	late();
#else
	if (dlopen)
		MUST(!dlopen("libc.so.6", RTLD_NOW));
#endif
	printf("fine\n");
	return 7;
}
