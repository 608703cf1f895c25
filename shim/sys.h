/*
 * System calls without libc: they change no errno, are no cancellation points, reach no hook and need
 * no thread-local storage.  Everything in shim/ that runs inside a hook uses these alone.
 * Each returns the kernel's value: >= 0, or -errno.
 */
#ifndef D9_SHIM_SYS_H
#define D9_SHIM_SYS_H
#include <linux/futex.h>
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

/*
 * Valgrind's client requests; on a processor the instructions change nothing.  A program under it would be told of every look of ours
 * at memory that nobody wrote, or that is not there.
 */
enum {
	D9_RUNNING_ON_VALGRIND = 0x1001,
	D9_MAKE_MEM_DEFINED = 'M' << 24 | 'C' << 16 | 2,
	D9_GET_VBITS = 'M' << 24 | 'C' << 16 | 8
};
extern __attribute__((visibility("hidden"))) int d9_on_valgrind; /* set in the constructor */
static inline unsigned long d9_ask_valgrind(unsigned long what, unsigned long a, unsigned long b, unsigned long c)
{
	const volatile unsigned long request[6] = {what, a, b, c};
	unsigned long answer = 0;
	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(request)
			 : "cc", "memory");
	return answer;
}

/* Lets the kernel add 0 to the word at p.  0, or -EFAULT where a store of ours would be SIGSEGV or SIGBUS. */
static inline long d9_add_zero(unsigned long p)
{
	unsigned nobody = 0;
	long r = d9_sys6(SYS_futex, (long)&nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, (long)p,
			 FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0));
	return r < 0 ? r : 0;
}

/*
 * Can 8 bytes around p be read?  The kernel reads a signal set there before it finds that there is no such `how`; it knows what
 * is readable, and answers instead of faulting.  No filter forbids this call: no thread of libc's starts without it.
 */
static inline int d9_can_read(const void *p)
{
	unsigned long word = (unsigned long)p & ~7ul, bits;
	if (__builtin_expect(d9_on_valgrind, 0))
		return d9_ask_valgrind(D9_GET_VBITS, word, (unsigned long)&bits, 8) == 1;
	return d9_sys4(SYS_rt_sigprocmask, -1, (long)word, 0, 8) == -22 /* EINVAL */;
}

#endif
