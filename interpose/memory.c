/*
 * The string functions that this library calls, its own: hidden, so that nobody else's calls come here.  A program may
 * stand in for libc's (sanitizers do): theirs may not be ready when the loader starts us first, and would look
 * at, or report, what the recorder does with its memory.
 *
 * Built with -fno-builtin, or the compiler would make each of them a call of itself.
 */
#include <stddef.h>
#include <stdint.h>

#define MANY 192 /* bytes from which the processor's own copy is faster than a loop */

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *p, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memchr(const void *p, int c, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *s, const char *what);
size_t strcspn(const char *s, const char *stop);
size_t strspn(const char *s, const char *go);

struct word {
	uint64_t v;
} __attribute__((packed, may_alias));

static inline uint64_t load(const void *p) { return ((const struct word *)p)->v; }
static inline void store(void *p, uint64_t v) { ((struct word *)p)->v = v; }

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	unsigned char *d = to;
	const unsigned char *s = from;
	if (n >= MANY) {
		__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
		return to;
	}
	for (; n >= 8; n -= 8, d += 8, s += 8)
		store(d, load(s));
	for (; n; n--)
		*d++ = *s++;
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	unsigned char *d = to;
	const unsigned char *s = from;
	if ((uintptr_t)to - (uintptr_t)from >= n)
		return memcpy(to, from, n); /* forwards never reads what it wrote */
	while (n >= 8) {
		n -= 8;
		store(d + n, load(s + n));
	}
	while (n) {
		n--;
		d[n] = s[n];
	}
	return to;
}

void *memset(void *p, int c, size_t n)
{
	unsigned char *d = p;
	if (n >= MANY) {
		__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
		return p;
	}
	uint64_t word = (unsigned char)c * 0x0101010101010101ull;
	for (; n >= 8; n -= 8, d += 8)
		store(d, word);
	for (; n; n--)
		*d++ = (unsigned char)c;
	return p;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;
	for (; n >= 8 && load(p) == load(q); n -= 8, p += 8, q += 8)
		;
	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}

void *memchr(const void *p, int c, size_t n)
{
	for (const unsigned char *s = p; n; n--, s++)
		if (*s == (unsigned char)c)
			return (void *)(uintptr_t)s;
	return NULL;
}

size_t strnlen(const char *s, size_t max)
{
	size_t n = 0;
	while (n < max && s[n])
		n++;
	return n;
}
size_t strlen(const char *s) { return strnlen(s, SIZE_MAX); }

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n && *a && *a == *b; n--, a++, b++)
		;
	return n ? (unsigned char)*a - (unsigned char)*b : 0;
}
int strcmp(const char *a, const char *b) { return strncmp(a, b, SIZE_MAX); }

char *strrchr(const char *s, int c)
{
	const char *last = NULL;
	do
		if (*s == (char)c)
			last = s;
	while (*s++);
	return (char *)(uintptr_t)last;
}
char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

char *strstr(const char *s, const char *what)
{
	size_t n = strlen(what);
	for (; strncmp(s, what, n); s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

static size_t span(const char *s, const char *set, int wanted)
{
	size_t n = 0;
	while (s[n] && (strchr(set, s[n]) != NULL) == wanted)
		n++;
	return n;
}
size_t strcspn(const char *s, const char *stop) { return span(s, stop, 0); }
size_t strspn(const char *s, const char *go) { return span(s, go, 1); }
