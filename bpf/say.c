/* See say.h.  Names of programs and folders come from anybody: what a terminal would take for an order goes out as `?`. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>

static void say(const char *fmt, va_list ap)
{
	char line[1024];
	vsnprintf(line, sizeof(line), fmt, ap);
	for (unsigned char *p = (unsigned char *)line; *p; p++)
		if (*p < ' ' || *p >= 0x7f)
			*p = '?';
	fprintf(stderr, "d9-kernel: %s\n", line);
}

int d9_ksay_fail(int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return code;
}

void d9_ksay_warn(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}
