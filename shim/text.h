/*
 * Building short texts without stdio or allocation: the host may not have libc ready.  Every text is
 * cut at the buffer's end and always NUL-ended.
 */
#ifndef D9_SHIM_TEXT_H
#define D9_SHIM_TEXT_H
#include "format/types.h"

#include <stddef.h>

struct d9_text {
	char *p;
	size_t n, size; /* bytes used (without NUL), bytes there */
};

static inline struct d9_text d9_text_in(char *buf, size_t size)
{
	buf[0] = 0;
	return (struct d9_text){buf, 0, size};
}
static inline void d9_text_char(struct d9_text *t, char c)
{
	if (t->n + 1 < t->size) {
		t->p[t->n++] = c;
		t->p[t->n] = 0;
	}
}
static inline void d9_text_str(struct d9_text *t, const char *s)
{
	while (*s)
		d9_text_char(t, *s++);
}
static inline void d9_text_u64(struct d9_text *t, d9_u64 v)
{
	char digits[20];
	unsigned n = 0;
	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		d9_text_char(t, digits[--n]);
}
static inline void d9_text_hex(struct d9_text *t, d9_u64 v, unsigned digits)
{
	while (digits--)
		d9_text_char(t, "0123456789abcdef"[v >> (4 * digits) & 15]);
}

#endif
