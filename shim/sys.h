/*
 * System calls without libc: they change no errno, are no cancellation points, reach no hook and need
 * no thread-local storage.  Everything in shim/ that runs inside a hook uses these alone.
 * Each returns the kernel's value: >= 0, or -errno.
 */
#ifndef D9_SHIM_SYS_H
#define D9_SHIM_SYS_H
#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_execveat
#define SYS_execveat 322
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439 /* Linux 5.8 */
#endif
#define D9_MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#define D9_CLOSE_RANGE_UNSHARE 2  /* Linux 5.9 */

static inline long d9_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
static inline long d9_sys4(long n, long a, long b, long c, long d)
{
	long ret;
	register long r10 __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return ret;
}
static inline long d9_sys3(long n, long a, long b, long c)
{
	long ret;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return ret;
}
static inline long d9_sys2(long n, long a, long b) { return d9_sys3(n, a, b, 0); }
static inline long d9_sys1(long n, long a) { return d9_sys3(n, a, 0, 0); }
static inline long d9_sys0(long n) { return d9_sys3(n, 0, 0, 0); }

/*
 * The thread's descriptor, which is its pthread_t.  Before glibc 2.34 libc's own pthread_self answers 0 as long as libpthread is
 * not loaded.
 */
static inline unsigned long d9_thread_self(void)
{
	unsigned long self;
	__asm__("movq %%fs:16, %0" : "=r"(self)); /* tcbhead_t.self */
	return self;
}

/* Can 8 bytes around p be read?  The kernel reads them before it finds that -1 is nothing to be done with a signal mask. */
static inline int d9_can_read(const void *p)
{
	return d9_sys4(SYS_rt_sigprocmask, -1, (long)((unsigned long)p & ~7ul), 0, 8) != -14 /* EFAULT */;
}

#endif
