/* What d9-kernel says to whom started it: on stderr, a sentence a line.  Only it, no library code, prints. */
#ifndef D9_BPF_SAY_H
#define D9_BPF_SAY_H

enum d9_kexit { D9_KEXIT_OK, D9_KEXIT_USAGE = 2, D9_KEXIT_NO_TARGET = 3, D9_KEXIT_PERMISSION = 4 };

/* Returns `code`. */
__attribute__((format(printf, 2, 3))) int d9_ksay_fail(int code, const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void d9_ksay_warn(const char *fmt, ...);

#endif
