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

#endif
