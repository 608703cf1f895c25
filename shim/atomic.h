/*
 * The memory orders in use, by name.  x86-64 only: a release store and an acquire load are plain moves,
 * and an unlocked compare-exchange is enough where only signal handlers of the same thread race.
 * Under ThreadSanitizer and on any other machine the portable C11 form serves (D9_PORTABLE_ATOMICS): slower,
 * same meaning; the unit tests of the record path run on both.
 */
#ifndef D9_SHIM_ATOMIC_H
#define D9_SHIM_ATOMIC_H
#include "format/types.h"

#include <stdbool.h>

#define d9_load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define d9_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define d9_store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define d9_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define d9_add_relaxed(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define d9_add_acq_rel(p, v) __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL)
#define d9_cas_acq_rel(p, expected, desired) \
	__atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
/* Keeps the compiler, not the CPU, from moving memory accesses: for words that only this thread's handlers share. */
#define d9_compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* 0 -> v; returns 0 on success, else the value found.  Atomic against this thread's own signal handlers only. */
static inline d9_u32 d9_local_claim32(d9_u32 *p, d9_u32 v)
{
	d9_u32 found = 0;
#if defined(__x86_64__) && !defined(D9_PORTABLE_ATOMICS)
	__asm__ volatile("cmpxchgl %2,%0" : "+m"(*p), "+a"(found) : "r"(v) : "memory", "cc");
#else
	(void)__atomic_compare_exchange_n(p, &found, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
	return found;
}
/* *p: old -> v, same guarantee. */
static inline bool d9_local_cas64(d9_u64 *p, d9_u64 old, d9_u64 v)
{
#if defined(__x86_64__) && !defined(D9_PORTABLE_ATOMICS)
	bool ok;
	__asm__ volatile("cmpxchgq %3,%0; sete %1" : "+m"(*p), "=q"(ok), "+a"(old) : "r"(v) : "memory", "cc");
	return ok;
#else
	return __atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}
/* The same where nobody asks whether it was done. */
static inline void d9_local_move64(d9_u64 *p, d9_u64 old, d9_u64 v)
{
#if defined(__x86_64__) && !defined(D9_PORTABLE_ATOMICS)
	__asm__ volatile("cmpxchgq %2,%0" : "+m"(*p), "+a"(old) : "r"(v) : "memory", "cc");
#else
	(void)__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

/* *p += v, same guarantee: one instruction, so a handler loses nothing of it. */
static inline void d9_local_add64(d9_u64 *p, d9_u64 v)
{
#if defined(__x86_64__) && !defined(D9_PORTABLE_ATOMICS)
	__asm__ volatile("addq %1,%0" : "+m"(*p) : "er"(v) : "cc");
#else
	(void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}
static inline void d9_local_add32(d9_u32 *p, d9_u32 v)
{
#if defined(__x86_64__) && !defined(D9_PORTABLE_ATOMICS)
	__asm__ volatile("addl %1,%0" : "+m"(*p) : "er"(v) : "cc");
#else
	(void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}

#endif
