/* The recorder's own string functions do what libc's do: every length to 600, every alignment, equal and nearly equal. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define OWN(ret, name, params) ret own_##name params;
OWN(void *, memcpy, (void *restrict to, const void *restrict from, size_t n))
OWN(void *, memmove, (void *to, const void *from, size_t n))
OWN(void *, memset, (void *p, int c, size_t n))
OWN(int, memcmp, (const void *a, const void *b, size_t n))
OWN(void *, memchr, (const void *p, int c, size_t n))
OWN(size_t, strlen, (const char *s))
OWN(size_t, strnlen, (const char *s, size_t max))
OWN(int, strcmp, (const char *a, const char *b))
OWN(int, strncmp, (const char *a, const char *b, size_t n))
OWN(char *, strchr, (const char *s, int c))
OWN(char *, strrchr, (const char *s, int c))
OWN(char *, strstr, (const char *s, const char *what))
OWN(size_t, strcspn, (const char *s, const char *stop))
OWN(size_t, strspn, (const char *s, const char *go))

enum { MAX = 600, ROOM = MAX + 64 };
static unsigned char a[ROOM], b[ROOM], c[ROOM];

static void fill(void)
{
	for (int i = 0; i < ROOM; i++)
		a[i] = b[i] = (unsigned char)((int)chance_below(100000) % 3 + 'a' -
					      ((int)chance_below(100000) % 90 == 0) * 'a');
}
static int sign(int v) { return (v > 0) - (v < 0); }

START_TEST(copies)
{
	for (size_t n = 0; n <= MAX; n++)
		for (size_t to = 0; to < 9; to++)
			for (size_t from = 0; from < 9; from += 4) {
				fill();
				ck_assert_ptr_eq(own_memcpy(b + to, c + from, n), b + to);
				memcpy(a + to, c + from, n);
				ck_assert_mem_eq(a, b, ROOM);
				ck_assert_ptr_eq(own_memmove(b + to, b + from, n), b + to);
				memmove(a + to, a + from, n);
				ck_assert_mem_eq(a, b, ROOM);
				ck_assert_ptr_eq(own_memset(b + to, 300 + (int)n, n), b + to);
				memset(a + to, 300 + (int)n, n);
				ck_assert_mem_eq(a, b, ROOM);
			}
}
END_TEST

START_TEST(looks)
{
	for (size_t n = 0; n <= MAX; n += 1 + n / 40)
		for (int turn = 0; turn < 40; turn++) {
			fill();
			a[ROOM - 1] = b[ROOM - 1] = 0;
			if (turn % 2 && n)
				b[(size_t)(int)chance_below(100000) % n] ^=
					(unsigned char)(1 << (int)chance_below(100000) % 8);
			const char *s = (char *)a + turn % 8, *t = (char *)b + turn % 8;
			size_t m = n < ROOM - 9 ? n : ROOM - 9;
			int ch = "ab\0cz"[(int)chance_below(100000) % 5];
			ck_assert_int_eq(sign(own_memcmp(s, t, m)), sign(memcmp(s, t, m)));
			ck_assert_int_eq(sign(own_strncmp(s, t, m)), sign(strncmp(s, t, m)));
			ck_assert_int_eq(sign(own_strcmp(s, t)), sign(strcmp(s, t)));
			ck_assert_ptr_eq(own_memchr(s, ch, m), memchr(s, ch, m));
			ck_assert_ptr_eq(own_strchr(s, ch), strchr(s, ch));
			ck_assert_ptr_eq(own_strrchr(s, ch), strrchr(s, ch));
			ck_assert_uint_eq(own_strlen(s), strlen(s));
			ck_assert_uint_eq(own_strnlen(s, m), strnlen(s, m));
			ck_assert_ptr_eq(own_strstr(s, "abca"), strstr(s, "abca"));
			ck_assert_ptr_eq(own_strstr(s, ""), strstr(s, ""));
			ck_assert_uint_eq(own_strcspn(s, "cb"), strcspn(s, "cb"));
			ck_assert_uint_eq(own_strspn(s, "ab"), strspn(s, "ab"));
		}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memory");
	TCase *t = tcase_create("memory");
	tcase_set_timeout(t, 240);
	suite_add_tcase(suite, t);
	tcase_add_test(t, copies);
	tcase_add_test(t, looks);
	return suite_run(suite);
}
