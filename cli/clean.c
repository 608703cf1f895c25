/* See clean.h. */
#include "clean.h"
#include "vec.h"

unsigned d9_utf8_length(const unsigned char *s, size_t n)
{
	unsigned len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	if (len == 0 || len > n)
		return 0;
	for (unsigned i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return len;
}

int d9_is_control(const unsigned char *s, unsigned len)
{
	return (len == 1 && (*s < 0x20 || *s == 0x7f)) || (len == 2 && *s == 0xc2 && s[1] < 0xa0);
}

char *d9_clean(char *s, size_t n)
{
	unsigned char *p = (unsigned char *)s, *end = p + n;
	while (p < end) {
		unsigned len = d9_utf8_length(p, (size_t)(end - p));
		if (*p >= '\t' && *p <= '\r')
			*p = ' ';
		else if (*p && (!len || d9_is_control(p, len)))
			memset(p, '?', len ? len : 1);
		p += len ? len : 1;
	}
	return s;
}

char *d9_clean_copy(const void *s, size_t n)
{
	const char *from = s;
	char *copy = d9_must_alloc(n + 1, 1);
	for (size_t i = 0; i < n; i++)
		copy[i] = from[i] ? from[i] : ' ';
	return d9_clean(copy, n);
}
