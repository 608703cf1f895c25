/*
 * Scalars and units that every folder shares.  Builds for BPF too, where there is no libc, so the
 * types come from the compiler and not from <stdint.h>.
 *
 * Units used throughout (the last word of a field's name, or its unit in events.def):
 *   tick   one unit of a block's clock: 2^shift TSC cycles (<= 10 ns), or 1 ns where the clock is CLOCK_MONOTONIC
 *   tsc    one raw cycle of the time stamp counter; what records in the arena carry
 *   ns     nanoseconds
 */
#ifndef D9_FORMAT_TYPES_H
#define D9_FORMAT_TYPES_H

typedef __UINT8_TYPE__ d9_u8;
typedef __UINT16_TYPE__ d9_u16;
typedef __UINT32_TYPE__ d9_u32;
typedef __UINT64_TYPE__ d9_u64;
typedef __INT32_TYPE__ d9_i32;
typedef __INT64_TYPE__ d9_i64;

/* For what hooks read: no look into the global offset table, wherever the extern declaration stands. */
#define D9_HIDDEN __attribute__((visibility("hidden")))
/* Not on the way of a usual call: kept out of its code. */
#define D9_COLD __attribute__((cold))

#define D9_NOT_KNOWN (~0ull) /* a u64 value that was not measured: shown as null, never as 0 */

/*
 * A thread for ever: slot in the family's thread table, and how often that slot had been used before.
 * Never a tid: tids are reused, and a vfork child borrows its parent's.
 */
#define D9_SLOT_BITS 14
#define D9_THREAD_ID(slot, use) (((d9_u32)(use) << D9_SLOT_BITS) | (d9_u32)(slot))
#define D9_THREAD_SLOT(id) ((id) & ((1u << D9_SLOT_BITS) - 1))
#define D9_THREAD_USE(id) ((id) >> D9_SLOT_BITS)
#define D9_THREAD_NONE 0xffffffffu

#endif
