/* futex waits through syscall(), the wake that ended them, and every other number passed on untouched. */
#include "prog.h"

static volatile int word, pi;

static void act_wake(void *arg)
{
	(void)arg;
	word = 1;
	MUST(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
}
static void act_lock_pi(void *arg)
{
	(void)arg;
	MUST(raw(SYS_futex, &pi, FUTEX_LOCK_PI_PRIVATE, 0, 0) == 0);
}
static void act_unlock_pi(void *arg)
{
	(void)arg;
	MUST(syscall(SYS_futex, &pi, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
}

static void waits(void)
{
	when_asleep(act_wake, NULL);
	long r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	woken();
	expect("futex_wait", RESULT(r), "object=%p waker=%d", (void *)&word, partner.tid);
	MUST(r == 0);

	before(); /* the word has another value by now */
	r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	int e = errno;
	after();
	errno = e;
	expect("futex_wait", RESULT(r), "object=%p waker=null", (void *)&word);
	MUST(r == -1 && e == EAGAIN);

	struct timespec ms20 = {0, 20000000};
	before();
	r = syscall(SYS_futex, &word, FUTEX_WAIT, 1, &ms20, NULL, 0);
	e = errno;
	after();
	errno = e;
	prog_times.hold0 = 0, prog_times.hold1 = 20000000;
	expect("futex_wait", RESULT(r), "object=%p waker=null", (void *)&word);
	MUST(r == -1 && e == ETIMEDOUT);

	struct timespec at; /* absolute, and a bit set in the sixth argument */
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += 20000000;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	before();
	r = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 1, &at, NULL, 4);
	e = errno;
	after();
	errno = e;
	expect("futex_wait", RESULT(r), "object=%p", (void *)&word);
	MUST(r == -1 && e == ETIMEDOUT && prog_times.t1 - prog_times.t0 > 15000000);
}

static void pi_locks(void)
{
	partner_do(act_lock_pi, NULL);
	when_asleep(act_unlock_pi, NULL);
	long r = syscall(SYS_futex, &pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
	woken();
	expect("futex_lock_pi", RESULT(r), "object=%p waker=%d", (void *)&pi, partner.tid);
	MUST(r == 0 && (pi & FUTEX_TID_MASK) == my_tid());
}

/* Six arguments, the carry of errno, numbers that do not exist: as libc does it. */
static void others(void)
{
	MUST(syscall(SYS_gettid) == my_tid());
	char *m = (char *)syscall(SYS_mmap, NULL, 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
	MUST(m != MAP_FAILED);
	m[0] = 1;
	int fd = (int)syscall(SYS_memfd_create, "x", 0);
	MUST(fd >= 0 && syscall(SYS_ftruncate, fd, 8192L) == 0);
	char *second = (char *)syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_SHARED, (long)fd, 4096L);
	MUST(second != MAP_FAILED);
	errno = 0;
	MUST(syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_SHARED, (long)fd, 1L) == -1 && errno == EINVAL);
	errno = 0;
	MUST(syscall(99999) == -1 && errno == ENOSYS);
	MUST(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	errno = 0;
	MUST(syscall(SYS_prctl, 999, 0, 0, 0, 0) == -1 && errno == EINVAL);
	MUST(syscall(SYS_close, fd) == 0);
}

int main(void)
{
	partner_start();
	waits();
	pi_locks();
	others();
	partner_end();
	return 0;
}
