/*
 * Text from outside on its way to a terminal: names of folders, programs and threads, what a header or a segment holds.
 * Whoever made it may have put in what a terminal obeys, a line that looks like ours, or bytes that are no text.
 */
#ifndef D9_CLI_CLEAN_H
#define D9_CLI_CLEAN_H
#include <stddef.h>

/*
 * Length of the well-formed UTF-8 sequence at s, 0 if there is none.  Overlong forms, surrogates and what lies above U+10FFFF
 * are refused as RFC 3629 asks.
 */
unsigned d9_utf8_length(const unsigned char *s, size_t n);

/* U+0000 to U+001F, U+007F to U+009F: with the last a terminal does what it does with an escape. */
int d9_is_control(const unsigned char *s, unsigned len);

/*
 * Makes n bytes harmless where they are: white space becomes a blank, other control characters and what is no UTF-8 question
 * marks.  NULs stay: they separate.  Returns s.
 */
char *d9_clean(char *s, size_t n);

/* A harmless copy that is one string: NULs are blanks too.  To be freed; out of memory ends d9. */
char *d9_clean_copy(const void *s, size_t n);

#endif
