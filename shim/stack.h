/*
 * Stacks of the calling thread: by frame pointers with strict bounds, or as registers and a bounded slice
 * that d9 unwinds later.  No unwinder, no lock, no allocation; never reads memory it has not seen to be readable.
 */
#ifndef D9_SHIM_STACK_H
#define D9_SHIM_STACK_H
#include "arena.h"
#include "sys.h"

#define D9_STACK_FRAMES 64u
#define D9_SLICE_BYTES 3072u
/* Largest tail of a stack: tail word, registers, slice. */
#define D9_STACK_TAIL_MAX (8u + (d9_u32)sizeof(struct d9_slice) + D9_SLICE_BYTES)

/* Once, in the constructor. */
void d9_stack_start(void);

/* Reads words of the stack whatever variables lie there: the sanitizers of our own tests take that for an error. */
#define D9_READS_STACK __attribute__((no_sanitize("address")))
extern D9_HIDDEN int d9_on_valgrind;
/* Of a copy of such words, which valgrind takes for what nobody wrote. */
static inline void d9_stack_say_defined(const void *p, d9_u64 n)
{
	if (__builtin_expect(d9_on_valgrind, 0))
		(void)d9_ask_valgrind(D9_MAKE_MEM_DEFINED, (d9_u64)p, n, 0);
}

/*
 * Return addresses along a chain of frame pointers.  fp: a frame pointer; [lo, hi): readable stack.  Writes
 * at most max, returns how many; stops at the first step that is misaligned, out of bounds or not upward.
 * *ret_fp: the frame pointer at which it stopped; NULL: nobody asks.
 */
d9_u32 d9_stack_walk(d9_u64 fp, d9_u64 lo, d9_u64 hi, d9_u64 *ret, d9_u32 max, d9_u64 *ret_fp);

/*
 * Makes sure that [sp, me->stack_hi) is readable and remembers it.  False: this is not the stack the thread
 * was born with (a fiber, a signal stack), or it is too deep, or looking is not allowed (seccomp).
 */
bool d9_stack_known(struct d9_cell *me, d9_u64 sp);

/*
 * May the thread be inside a signal handler, which may have interrupted anything?  False is certain of handlers that block
 * their own signal or run on the thread's stack.  Makes system calls; from time to time only.
 */
bool d9_stack_in_handler(struct d9_cell *me);

/* Words of a piece of stack that may be return addresses, found by the caller. */
struct d9_stack_words {
	const void *fp, *ra;  /* of a function that is still active, whose caller is the innermost frame */
	const d9_u64 *stack;  /* the piece begins above its return address */
	d9_u64 hi;            /* and ends there */
	d9_u64 code;          /* what offsets are from */
	const d9_u64 *places; /* word's place in the piece << 32 | offset of its value */
	d9_u32 n;
};

/* What to take of a stack, decided before room is reserved for it. */
struct d9_stack_plan {
	d9_u32 kind;  /* enum d9_tail_kind; D9_TAIL_NONE: no stack to be had */
	d9_u32 n;     /* frames, or bytes of the slice */
	d9_u32 bytes; /* of the whole tail, a multiple of 8 */
	d9_u64 hi;    /* end of the readable stack */
	d9_u64 frames[D9_STACK_FRAMES];
	struct d9_stack_words words;
};
/* fp: the hook's own frame pointer, so the first frame is the hook's caller. */
void d9_stack_plan(struct d9_cell *me, const void *fp, struct d9_stack_plan *ret);
/* The same of what these words are of, which the caller knows to be readable: frames if they lead to w->hi, else the words. */
void d9_stack_plan_words(struct d9_cell *me, const struct d9_stack_words *w, struct d9_stack_plan *ret);
/* Writes the tail planned to `to`; of a slice, from the frame of the caller of this function up. */
void d9_stack_write(const struct d9_stack_plan *plan, void *to);

#endif
