/*
 * kernel_offcpu calls: waits for a byte, then sleeps in calls that it names; the moments around each are printed.
 * kernel_offcpu nested: waits for a byte, then sleeps three functions down.
 * kernel_offcpu grow THREADS: takes descriptors past 16384, beside so many other threads; says around which call each doubling of the
 * table fell.
 * kernel_offcpu sockets THREADS: the same with sockets, by the library's call.
 */
#include "prog.h"

#include <sys/resource.h>
#include <sys/socket.h>

static volatile int word;

static void read_byte(void)
{
	char c;
	MUST(raw(SYS_read, 0, &c, 1) == 1);
}

static void say(const char *name, int nr, uint64_t t0)
{
	printf("CALL name=%s tid=%d nr=%d t0_ns=%lu t1_ns=%lu\n", name, my_tid(), nr, (unsigned long)t0,
	       (unsigned long)now_ns());
}

static void *wake_later(void *arg)
{
	until_sleeps((int)(long)arg);
	raw_sleep_ms(HOLD_MS);
	raw_set(&word, 1);
	return NULL;
}

static void sync_file(void)
{
	static char page[1 << 20];
	char name[] = "synced-XXXXXX";
	int fd = mkstemp(name);
	MUST(fd >= 0 && !unlink(name) && raw(SYS_write, fd, page, sizeof(page)) == sizeof(page));
	uint64_t t0 = now_ns();
	MUST(!raw(SYS_fsync, fd));
	say("fsync", SYS_fsync, t0);
	close(fd);
}

static int calls(void)
{
	pthread_t t;
	read_byte();
	uint64_t t0 = now_ns();
	raw_sleep_ms(HOLD_MS);
	say("nanosleep", SYS_nanosleep, t0);
	MUST(!pthread_create(&t, NULL, wake_later, (void *)(long)my_tid()));
	t0 = now_ns();
	raw_wait(&word, 0);
	say("futex", SYS_futex, t0);
	pthread_join(t, NULL);
	sync_file();
	fflush(stdout);
	read_byte();
	return 0;
}

/* What keeps the calls from being jumps. */
#define AFTER() __asm__ volatile("")

static __attribute__((noinline)) void nested_inner(void)
{
	raw_sleep_ms(HOLD_MS);
	AFTER();
}

static __attribute__((noinline)) void nested_middle(void)
{
	nested_inner();
	AFTER();
}

static __attribute__((noinline)) int nested(void)
{
	read_byte();
	nested_middle();
	printf("SLEPT tid=%d\n", my_tid());
	fflush(stdout);
	read_byte();
	return 0;
}

/* ---- grow -------------------------------------------------------------------------------------------- */

static void *idle(void *arg)
{
	(void)arg;
	raw_wait(&word, 0);
	return NULL;
}

static int grow(int threads, int sockets)
{
	pthread_t t[8];
	struct rlimit r;
	MUST(threads <= 8 && !getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = r.rlim_max < 40000 ? r.rlim_max : 40000;
	MUST(!setrlimit(RLIMIT_NOFILE, &r));
	if (r.rlim_cur < 17000) {
		printf("SKIP no more than %lu descriptors are allowed\n", r.rlim_cur);
		fflush(stdout);
	}
	read_byte();
	/* Whoever started this decides by its own open files how large the table is: from here on it is 256. */
	int top = fcntl(0, F_DUPFD, 255);
	MUST(top >= 255 && !close(top));
	for (int i = 0; i < threads; i++)
		MUST(!pthread_create(&t[i], NULL, idle, NULL));
	int s = socket(AF_UNIX, SOCK_DGRAM, 0);
	for (int fd = 0; fd <= 16384 && fd + 2 < (int)r.rlim_cur;) {
		uint64_t t0 = now_ns();
		fd = sockets ? socket(AF_UNIX, SOCK_DGRAM, 0) : (int)raw(SYS_dup, s);
		uint64_t t1 = now_ns();
		MUST(fd >= 0);
		if (fd >= 64 && !(fd & (fd - 1)))
			printf("DOUBLED fd=%d tid=%d t0_ns=%lu t1_ns=%lu\n", fd, my_tid(), (unsigned long)t0,
			       (unsigned long)t1);
	}
	fflush(stdout);
	read_byte();
	raw_set(&word, 1);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	MUST(argc >= 2);
	if (!strcmp(argv[1], "calls"))
		return calls();
	return strcmp(argv[1], "nested") ? grow(argc > 2 ? atoi(argv[2]) : 0, !strcmp(argv[1], "sockets")) : nested();
}
