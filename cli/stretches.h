/* Stretches of time, in the order of time and apart from each other. */
#ifndef D9_CLI_STRETCHES_H
#define D9_CLI_STRETCHES_H
#include "format/types.h"
#include "vec.h"

struct d9_stretch {
	d9_u64 t0, t1;
};
typedef D9_VEC(struct d9_stretch) d9_stretches;

/* Puts what was pushed in any order in order, and joins what touches. */
void d9_stretches_merge(d9_stretches *s);
/* Pushes one that begins after all others, or cuts off what of it does not. */
void d9_stretches_append(d9_stretches *s, d9_u64 t0, d9_u64 t1);
/* Pushes what of t0..t1 lies in none of `without`. */
void d9_stretches_add_rest(d9_stretches *s, d9_u64 t0, d9_u64 t1, const d9_stretches *without);
bool d9_stretches_hold(const d9_stretches *s, d9_u64 t);
/* How much of t0..t1 lies in them. */
d9_u64 d9_stretches_within(const d9_stretches *s, d9_u64 t0, d9_u64 t1);

#endif
