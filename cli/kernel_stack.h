/* Kernel stacks, which are text: what they say without their addresses. */
#ifndef D9_CLI_KERNEL_STACK_H
#define D9_CLI_KERNEL_STACK_H
#include "model.h"

/* The next function of a stack, innermost first, without offset and compiler's suffix; not ended by a NUL. *at: 0 at first.  False: no more. */
bool d9_kernel_frame_next(const struct d9_bytes *stack, size_t *at, const char **ret, size_t *ret_n);
/* Is one of these functions in it?  names: ended by NULL; "a*" stands for all that begin with a. */
bool d9_kernel_stack_has(const struct d9_bytes *stack, const char *const *names);

/* What a kernel stack (index into the trace's tails) speaks of.  Asked once for each stack. */
enum { D9_SAYS_STORAGE = 1, D9_SAYS_FAULT = 2, D9_SAYS_FD_TABLE = 4, D9_SAYS_RCU = 8, D9_SAYS_ASKED = 128 };
unsigned d9_model_kernel_says(struct d9_model *m, d9_u32 tail);

/* Functions in which threads waited, each once. */
struct d9_kernel_places {
	D9_VEC(char *) names; /* [0] is "" */
	struct d9_map by_hash, by_tail;
};
/* The first function of the stack (index into the trace's tails) that says what was waited for; 0 = no stack. */
d9_u32 d9_kernel_place(struct d9_kernel_places *p, const struct d9_trace *t, d9_u32 tail);
void d9_kernel_places_fini(struct d9_kernel_places *p);

#endif
