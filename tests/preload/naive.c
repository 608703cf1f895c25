/*
 * A recorder as it is first written, with one known mistake a build: -DNAIVE_WHAT.  The tests of this folder must fail under
 * it, which shows that they can.  Each stands in for usleep, which all programs of rows.c call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int (*real_usleep)(useconds_t);
__attribute__((unused)) static void find(void) { real_usleep = (int (*)(useconds_t))dlsym(RTLD_NEXT, "usleep"); }
/* One mistake each: all but the first are ready for a call before their constructor. */
__attribute__((unused)) static int real(useconds_t us)
{
	if (!real_usleep)
		find();
	return real_usleep(us);
}

#if defined(NAIVE_constructor) /* the real function is found in the constructor, and others' constructors run before */
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us) { return real_usleep(us); }

#elif defined(NAIVE_lazy) /* ... when it is needed, under the loader's lock */
int usleep(useconds_t us)
{
	find();
	return real_usleep(us);
}

#elif defined(NAIVE_dlopen) /* the loader takes the caller's search path, and that is ours now */
void *dlopen(const char *name, int flags)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	void *r = next(name, flags);
	__asm__ volatile("" : "+r"(r)); /* no tail call */
	return r;
}

#elif defined(NAIVE_destructor) /* the buffer of a thread goes before the thread's last call */
static pthread_key_t key;
static __thread volatile char *buffer;
static void drop(void *p) { munmap(p, 4096); }
__attribute__((constructor)) static void start(void)
{
	find();
	pthread_key_create(&key, drop);
}
int usleep(useconds_t us)
{
	if (!buffer) {
		buffer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_setspecific(key, (void *)buffer);
	}
	buffer[0]++;
	return real(us);
}

#elif defined(NAIVE_frame) /* scratch memory on the caller's stack */
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	volatile char scratch[32768];
	for (size_t i = sizeof(scratch); i; i -= 1024)
		scratch[i - 1] = 1;
	return real(us) + scratch[0] - scratch[0];
}

#elif defined(NAIVE_buffer) /* a buffer a thread, backed at once */
static __thread char *buffer;
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	if (!buffer)
		buffer = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return real(us);
}

#elif defined(NAIVE_thread) /* a thread of its own from the start, signals as they come */
static void *run(void *arg)
{
	for (;;)
		real(100000);
	return arg;
}
__attribute__((constructor)) static void start(void)
{
	pthread_t t;
	find();
	pthread_create(&t, NULL, run, NULL);
}

#elif defined(NAIVE_lock) /* a lock around what is written */
static volatile int lock;
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		;
	for (volatile int i = 0; i < 20000; i++)
		;
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	return real(us);
}

#elif defined(NAIVE_environment) /* children shall not be recorded */
__attribute__((constructor)) static void start(void) { unsetenv("LD_PRELOAD"); }

#elif defined(NAIVE_descriptor) /* the file stays open under the next free number, and is written to by that number */
static int fd;
__attribute__((constructor)) static void start(void)
{
	find();
	fd = open("/dev/null", O_WRONLY);
}
int usleep(useconds_t us)
{
	ssize_t n = write(fd, "TRACE", 5);
	(void)n;
	return real(us);
}

#elif defined(NAIVE_file) /* written by the caller, whatever the limits */
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	char name[] = "/tmp/d9-naive-XXXXXX";
	int fd = mkstemp(name);
	unlink(name);
	ssize_t n = write(fd, "TRACE", 5);
	(void)n;
	close(fd);
	return real(us);
}

#elif defined(NAIVE_unwind) /* built without -fexceptions: meson.build */
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	int r = real(us);
	__asm__ volatile("" : "+r"(r));
	return r;
}

#elif defined(NAIVE_errno)
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	int r = real(us);
	close(-1);
	return r;
}

#elif defined(NAIVE_syscall) /* asks the kernel for what it wants to know */
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	syscall(SYS_gettid);
	return real(us);
}

#elif defined(NAIVE_clock) /* the processor's clock, whoever forbade it */
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	__builtin_ia32_rdtsc();
	return real(us);
}

#elif defined(NAIVE_frames) /* follows frame pointers as if there always were some */
static volatile void *last;
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	void **fp = __builtin_frame_address(0);
	for (int i = 0; i < 8 && fp; i++, fp = *fp)
		last = fp[1];
	return real(us);
}

#elif defined(NAIVE_exit) /* takes its memory with it while threads still run */
static char *state;
__attribute__((constructor)) static void start(void)
{
	find();
	state = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
int usleep(useconds_t us)
{
	__atomic_fetch_add(state, 1, __ATOMIC_RELAXED);
	return real(us);
}
__attribute__((destructor)) static void stop(void)
{
	munmap(state, 4096);
	real(20000);
}

#elif defined(NAIVE_cancel) /* the hook itself is a cancellation point */
int pthread_mutex_lock(pthread_mutex_t *m)
{
	static int (*next)(pthread_mutex_t *);
	if (!next)
		next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	int r = next(m), fd = open("/dev/null", O_WRONLY);
	ssize_t n = write(fd, "TRACE", 5);
	(void)n;
	close(fd);
	return r;
}

#elif defined(NAIVE_uninitialised) /* looks at what nobody wrote */
static volatile int seen;
__attribute__((constructor)) static void start(void) { find(); }
int usleep(useconds_t us)
{
	volatile char hole[64];
	for (unsigned i = 0; i < sizeof(hole); i++)
		if (hole[i] == 7)
			seen++;
	return real(us);
}

#elif defined(NAIVE_condition) /* one wrapper for both ABIs of condition variables */
int pthread_cond_signal(pthread_cond_t *c)
{
	int (*next)(pthread_cond_t *) =
		(int (*)(pthread_cond_t *))dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2");
	return next(c);
}
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	int (*next)(pthread_cond_t *, pthread_mutex_t *) =
		(int (*)(pthread_cond_t *, pthread_mutex_t *))dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	return next(c, m);
}

#else
#error "which mistake?"
#endif
