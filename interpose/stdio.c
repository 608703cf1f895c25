/*
 * Buffered I/O.  Most calls touch the buffer alone, and to look at the clock twice would cost more than they do.  So a
 * look at the buffer comes first: where there is room (or enough to read) and nobody holds the FILE, the call goes through
 * unseen and uncounted.  The others are what I/O on descriptors is: slow ones become spans, the rest is counted.
 *
 * The looks are without the FILE's lock: what another thread changes meanwhile changes only whether the clock is read.
 * fgetc, getc, fputc and putc are not hooked: the look would cost as much as they do.  What programs have of them inline
 * comes here when the buffer is full or empty: __overflow, __uflow.
 */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1 /* the header's inlines of getline and vprintf would be definitions before these */
#endif
#include "hook.h"

#include <string.h>

/* struct _IO_FILE is the ABI's; its flags and the lock behind it are the same in every glibc, in no header. */
#define UNBUFFERED 0x0002
#define AT_END 0x0010
#define LINE_BUFFERED 0x0200
struct file_lock {
	int lock, count;
	void *owner;
};

/* How far a line or a formatted text is taken to reach.  A longer one that has to wait may be missed. */
#define REACH 1024

static int fd_of(FILE *f) { return f && f->_fileno >= 0 ? f->_fileno : -1; }

static bool is_held(FILE *f)
{
	const struct file_lock *l = (const struct file_lock *)f->_lock;
	return l && d9_load_relaxed(&l->lock) && d9_load_relaxed(&l->owner) != (void *)d9_thread_self();
}
/* No room for so many bytes more, or what is written goes out at once. */
static bool is_full(FILE *f, size_t n)
{
	char *end = d9_load_relaxed(&f->_IO_write_end), *at = d9_load_relaxed(&f->_IO_write_ptr);
	return d9_load_relaxed(&f->_flags) & (UNBUFFERED | LINE_BUFFERED) || end - at <= 0 || (size_t)(end - at) <= n;
}
/* The same of a text, of which no more is looked at than there is room for. */
static bool is_full_for(FILE *f, const char *s, size_t more)
{
	d9_i64 room = d9_load_relaxed(&f->_IO_write_end) - d9_load_relaxed(&f->_IO_write_ptr);
	return is_full(f, more) || strnlen(s, (size_t)room) + more >= (size_t)room;
}
/* Not so many bytes left to read. */
static bool is_empty(FILE *f, size_t n)
{
	char *end = d9_load_relaxed(&f->_IO_read_end), *at = d9_load_relaxed(&f->_IO_read_ptr);
	return end - at <= 0 || (size_t)(end - at) < n;
}
static size_t product(size_t a, size_t b)
{
	size_t n;
	return __builtin_mul_overflow(a, b, &n) ? ~(size_t)0 : n;
}
static size_t shorter(int n) { return n < 2 ? 0 : n < REACH ? (size_t)n : REACH; }
/* Where there is nothing to move, libc does not look at the FILE, and it need not be one. */
static bool reads(FILE *f, size_t n) { return f && n && (is_empty(f, n) || is_held(f)); }
static bool reads_unlocked(FILE *f, size_t n) { return f && n && is_empty(f, n); }
static bool writes(FILE *f, size_t n) { return f && n && (is_full(f, n) || is_held(f)); }
static bool writes_unlocked(FILE *f, size_t n) { return f && n && is_full(f, n); }

#define COUNT_RESULT ((d9_i32)(d9_r > 0x7fffffff ? 0x7fffffff : d9_r))
#define FILE_RESULT (d9_r ? fd_of(d9_r) : -errno)
/* -1 at the end of a file is no error. */
#define LINE_RESULT(f) (d9_r == -1 && (f)->_flags & AT_END ? 0 : D9_RESULT(d9_r))

#define WRAP_IF(ret, name, params, args, fd, waits, result)                      \
	D9_EXPORT ret name params                                                \
	{                                                                        \
		if (!(d9_load_relaxed(d9_shim.mask) & D9_BIT(name)) || !(waits)) \
			return d9_real.name args;                                \
		D9_BEGIN(name, 0, fd);                                           \
		ret d9_r = d9_real.name args;                                    \
		D9_END(name, result, 0);                                         \
		return d9_r;                                                     \
	}
#define WRAP_STDIO(ret, name, params, args, f, waits, result) WRAP_IF(ret, name, params, args, fd_of(f), waits, result)

/* ---- opening, closing, flushing --------------------------------------------------------------------- */

WRAP_STDIO(FILE *, fopen, (const char *restrict path, const char *restrict mode), (path, mode), NULL, true, FILE_RESULT)
WRAP_STDIO(FILE *, fopen64, (const char *restrict path, const char *restrict mode), (path, mode), NULL, true,
	   FILE_RESULT)
WRAP_STDIO(FILE *, freopen, (const char *restrict path, const char *restrict mode, FILE *restrict f), (path, mode, f),
	   f, true, FILE_RESULT)
WRAP_STDIO(FILE *, freopen64, (const char *restrict path, const char *restrict mode, FILE *restrict f), (path, mode, f),
	   f, true, FILE_RESULT)
WRAP_STDIO(int, fclose, (FILE * f), (f), f, true, D9_RESULT(d9_r))
WRAP_STDIO(int, fflush, (FILE * f), (f), f, true, D9_RESULT(d9_r))
WRAP_STDIO(int, fflush_unlocked, (FILE * f), (f), f, true, D9_RESULT(d9_r))

/* ---- reading ------------------------------------------------------------------------------------------ */

WRAP_STDIO(size_t, fread, (void *restrict p, size_t size, size_t n, FILE *restrict f), (p, size, n, f), f,
	   reads(f, product(size, n)), COUNT_RESULT)
WRAP_STDIO(size_t, fread_unlocked, (void *restrict p, size_t size, size_t n, FILE *restrict f), (p, size, n, f), f,
	   reads_unlocked(f, product(size, n)), COUNT_RESULT)
size_t __fread_chk(void *restrict p, size_t len, size_t size, size_t n, FILE *restrict f);
size_t __fread_unlocked_chk(void *restrict p, size_t len, size_t size, size_t n, FILE *restrict f);
WRAP_STDIO(size_t, __fread_chk, (void *restrict p, size_t len, size_t size, size_t n, FILE *restrict f),
	   (p, len, size, n, f), f, reads(f, product(size, n)), COUNT_RESULT)
WRAP_STDIO(size_t, __fread_unlocked_chk, (void *restrict p, size_t len, size_t size, size_t n, FILE *restrict f),
	   (p, len, size, n, f), f, reads_unlocked(f, product(size, n)), COUNT_RESULT)

/* How long a line is, fgets does not say: 1, or 0 for none. */
WRAP_STDIO(char *, fgets, (char *restrict p, int n, FILE *restrict f), (p, n, f), f, reads(f, shorter(n)), d9_r != NULL)
WRAP_STDIO(char *, fgets_unlocked, (char *restrict p, int n, FILE *restrict f), (p, n, f), f,
	   reads_unlocked(f, shorter(n)), d9_r != NULL)
char *__fgets_chk(char *restrict p, size_t len, int n, FILE *restrict f);
char *__fgets_unlocked_chk(char *restrict p, size_t len, int n, FILE *restrict f);
WRAP_STDIO(char *, __fgets_chk, (char *restrict p, size_t len, int n, FILE *restrict f), (p, len, n, f), f,
	   reads(f, shorter(n)), d9_r != NULL)
WRAP_STDIO(char *, __fgets_unlocked_chk, (char *restrict p, size_t len, int n, FILE *restrict f), (p, len, n, f), f,
	   reads_unlocked(f, shorter(n)), d9_r != NULL)

WRAP_STDIO(ssize_t, getline, (char **restrict p, size_t *restrict n, FILE *restrict f), (p, n, f), f, reads(f, REACH),
	   LINE_RESULT(f))
WRAP_STDIO(ssize_t, getdelim, (char **restrict p, size_t *restrict n, int c, FILE *restrict f), (p, n, c, f), f,
	   reads(f, REACH), LINE_RESULT(f))
WRAP_STDIO(ssize_t, __getdelim, (char **restrict p, size_t *restrict n, int c, FILE *restrict f), (p, n, c, f), f,
	   reads(f, REACH), LINE_RESULT(f))
int __uflow(FILE *f);
WRAP_STDIO(int, __uflow, (FILE * f), (f), f, true, LINE_RESULT(f))

/* ---- writing ------------------------------------------------------------------------------------------ */

WRAP_STDIO(size_t, fwrite, (const void *restrict p, size_t size, size_t n, FILE *restrict f), (p, size, n, f), f,
	   writes(f, product(size, n)), COUNT_RESULT)
WRAP_STDIO(size_t, fwrite_unlocked, (const void *restrict p, size_t size, size_t n, FILE *restrict f), (p, size, n, f),
	   f, writes_unlocked(f, product(size, n)), COUNT_RESULT)
WRAP_STDIO(int, fputs, (const char *restrict s, FILE *restrict f), (s, f), f, is_full_for(f, s, 0) || is_held(f),
	   D9_RESULT(d9_r))
WRAP_STDIO(int, fputs_unlocked, (const char *restrict s, FILE *restrict f), (s, f), f, is_full_for(f, s, 0),
	   D9_RESULT(d9_r))
int __overflow(FILE *f, int c);
WRAP_STDIO(int, __overflow, (FILE * f, int c), (f, c), f, true, D9_RESULT(d9_r))

WRAP_STDIO(int, puts, (const char *s), (s), stdout, is_full_for(stdout, s, 1) || is_held(stdout), D9_RESULT(d9_r))

/* ---- formatted: a variadic call is made as the v form that it is in libc ---------------------------------- */

#define WRAP_V(name, params, fd, args, waits) \
	int name params;                      \
	WRAP_IF(int, name, params, args, fd, waits, D9_RESULT(d9_r))
#define WRAP_VARIADIC(name, real, params, fd, args, waits)                         \
	int name params;                                                           \
	D9_EXPORT int name params                                                  \
	{                                                                          \
		int d9_r;                                                          \
		va_list ap;                                                        \
		va_start(ap, format);                                              \
		if (!(d9_load_relaxed(d9_shim.mask) & D9_BIT(name)) || !(waits)) { \
			d9_r = d9_real.real args;                                  \
		} else {                                                           \
			D9_BEGIN(name, 0, fd);                                     \
			d9_r = d9_real.real args;                                  \
			D9_END(name, D9_RESULT(d9_r), 0);                          \
		}                                                                  \
		va_end(ap);                                                        \
		return d9_r;                                                       \
	}
#define FULL(f) (is_full(f, REACH) || is_held(f))
WRAP_V(vprintf, (const char *restrict format, va_list ap), fd_of(stdout), (format, ap), FULL(stdout))
WRAP_V(vfprintf, (FILE *restrict f, const char *restrict format, va_list ap), fd_of(f), (f, format, ap), FULL(f))
WRAP_V(vdprintf, (int fd, const char *restrict format, va_list ap), fd, (fd, format, ap), true)
WRAP_V(__vprintf_chk, (int flag, const char *restrict format, va_list ap), fd_of(stdout), (flag, format, ap),
       FULL(stdout))
WRAP_V(__vfprintf_chk, (FILE *restrict f, int flag, const char *restrict format, va_list ap), fd_of(f),
       (f, flag, format, ap), FULL(f))
WRAP_V(__vdprintf_chk, (int fd, int flag, const char *restrict format, va_list ap), fd, (fd, flag, format, ap), true)
WRAP_VARIADIC(printf, vprintf, (const char *restrict format, ...), fd_of(stdout), (format, ap), FULL(stdout))
WRAP_VARIADIC(fprintf, vfprintf, (FILE *restrict f, const char *restrict format, ...), fd_of(f), (f, format, ap),
	      FULL(f))
WRAP_VARIADIC(dprintf, vdprintf, (int fd, const char *restrict format, ...), fd, (fd, format, ap), true)
WRAP_VARIADIC(__printf_chk, __vprintf_chk, (int flag, const char *restrict format, ...), fd_of(stdout),
	      (flag, format, ap), FULL(stdout))
WRAP_VARIADIC(__fprintf_chk, __vfprintf_chk, (FILE *restrict f, int flag, const char *restrict format, ...), fd_of(f),
	      (f, flag, format, ap), FULL(f))
WRAP_VARIADIC(__dprintf_chk, __vdprintf_chk, (int fd, int flag, const char *restrict format, ...), fd,
	      (fd, flag, format, ap), true)
