/* Looking for something in an array that is in order. */
#ifndef D9_CLI_SEARCH_H
#define D9_CLI_SEARCH_H
#include <stddef.h>
#include <stdint.h>

/* Index of the first of n items in the order of `field` in which it is greater than t; n if there is none. */
#define D9_FIRST_AFTER(v, n, field, t)                               \
	({                                                           \
		size_t d9_lo = 0, d9_hi = (n);                       \
		uint64_t d9_t = (t);                                 \
		while (d9_lo < d9_hi) {                              \
			size_t d9_mid = d9_lo + (d9_hi - d9_lo) / 2; \
			if ((v)[d9_mid].field > d9_t)                \
				d9_hi = d9_mid;                      \
			else                                         \
				d9_lo = d9_mid + 1;                  \
		}                                                    \
		d9_lo;                                               \
	})

/* Of two numbers, as qsort wants to know it. */
static inline int d9_by(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

/* Index of the first of n items, of `size` bytes each and in that order, that does not come before `wanted`; n if all do. */
static inline size_t d9_first_from(const void *v, size_t n, size_t size, const void *wanted,
				   int (*order)(const void *, const void *))
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (order((const char *)v + mid * size, wanted) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

#endif
