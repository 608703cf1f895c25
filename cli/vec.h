/*
 * Growable arrays.  A reader that runs out of memory cannot go on and has nothing to save, so these say
 * so and end d9; no caller checks.
 */
#ifndef D9_CLI_VEC_H
#define D9_CLI_VEC_H
#include "cmd.h"
#include "search.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define D9_VEC(T)              \
	struct {               \
		T *v;          \
		size_t n, cap; \
	}

/*
 * Tens of millions of spans: faulting them in page by page takes a fifth of a report.  All of malloc's own mapping, or
 * the next realloc could not move it as a whole.
 */
static inline void d9_huge_pages(void *p)
{
	uintptr_t a = (uintptr_t)p & ~(uintptr_t)4095,
		  end = ((uintptr_t)p + malloc_usable_size(p) + 4095) & ~(uintptr_t)4095;
	(void)madvise((void *)a, end - a, MADV_HUGEPAGE);
}
#define D9_HUGE_FROM (8u << 20)

static inline void *d9_must_resize(void *p, size_t n, size_t size)
{
	void *q = size && n > SIZE_MAX / size ? NULL : realloc(p, n && size ? n * size : 1);
	if (!q)
		exit(d9_fail(D9_EXIT_DATA, "not enough memory for this recording; --from and --to read a part of it"));
	if (n * size >= D9_HUGE_FROM)
		d9_huge_pages(q);
	return q;
}

static inline void *d9_must_alloc(size_t n, size_t size) { return memset(d9_must_resize(NULL, n, size), 0, n * size); }

/* Makes room for one more; new elements are zeroed by whoever fills them. */
#define d9_vec_room(vec)                                                               \
	((vec)->n < (vec)->cap ? (void)0                                               \
			       : (void)((vec)->cap = (vec)->cap ? (vec)->cap * 2 : 16, \
					(vec)->v = d9_must_resize((vec)->v, (vec)->cap, sizeof(*(vec)->v))))
#define d9_vec_push(vec, ...) (d9_vec_room(vec), (vec)->v[(vec)->n++] = (__VA_ARGS__))
#define d9_vec_free(vec) (free((vec)->v), (vec)->v = NULL, (vec)->n = (vec)->cap = 0)

#endif
