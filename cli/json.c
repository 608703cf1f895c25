/*
 * The JSON writer.  One rule does the commas: a value writes a comma if something stands before it at
 * its depth, and whoever opens a container clears that, whoever closes one sets it.
 */
#include "json.h"
#include "clean.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void write_ascii(FILE *f, unsigned char c)
{
	switch (c) {
	case '"':
		fputs("\\\"", f);
		break;
	case '\\':
		fputs("\\\\", f);
		break;
	case '\n':
		fputs("\\n", f);
		break;
	case '\t':
		fputs("\\t", f);
		break;
	case '\r':
		fputs("\\r", f);
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
}

static void write_string(FILE *f, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + n;
	fputc('"', f);
	while (p < end) {
		unsigned len = d9_utf8_length(p, (size_t)(end - p));
		if (len == 1)
			write_ascii(f, *p);
		else if (len && d9_is_control(p, len)) /* fits JSON as it is, but not the terminal that shows it */
			fprintf(f, "\\u%04x", p[1]);
		else if (len)
			fwrite(p, 1, len, f);
		else
			fputs(REPLACEMENT, f);
		p += len ? len : 1;
	}
	fputc('"', f);
}

/* What stands before a value: comma, key. */
static void lead(struct d9_json *j, const char *key)
{
	if (j->comma)
		fputc(',', j->f);
	j->comma = true;
	if (key) {
		write_string(j->f, key, strlen(key));
		fputc(':', j->f);
	}
}

static void open_container(struct d9_json *j, const char *key, char c)
{
	lead(j, key);
	fputc(c, j->f);
	j->depth++;
	j->comma = false;
}

static void close_container(struct d9_json *j, char c)
{
	fputc(c, j->f);
	j->depth--;
	j->comma = true;
}

void d9_json_line(struct d9_json *j, FILE *f)
{
	*j = (struct d9_json){.f = f};
	open_container(j, NULL, '{');
}

void d9_json_document(struct d9_json *j, FILE *f, const char *name)
{
	d9_json_line(j, f);
	fprintf(f, "\"schema\":\"d9.%s/1\"", name);
	j->comma = true;
}

int d9_json_end_document(struct d9_json *j)
{
	close_container(j, '}');
	fputc('\n', j->f);
	return ferror(j->f) ? -EIO : 0;
}

void d9_json_object(struct d9_json *j, const char *key) { open_container(j, key, '{'); }
void d9_json_array(struct d9_json *j, const char *key) { open_container(j, key, '['); }
void d9_json_end_object(struct d9_json *j) { close_container(j, '}'); }
void d9_json_end_array(struct d9_json *j) { close_container(j, ']'); }

void d9_json_strn(struct d9_json *j, const char *key, const char *s, size_t n)
{
	lead(j, key);
	write_string(j->f, s, n);
}

void d9_json_str(struct d9_json *j, const char *key, const char *s)
{
	if (s)
		d9_json_strn(j, key, s, strlen(s));
	else
		d9_json_null(j, key);
}

void d9_json_u64(struct d9_json *j, const char *key, d9_u64 v)
{
	lead(j, key);
	fprintf(j->f, "%lu", v);
}

void d9_json_known(struct d9_json *j, const char *key, d9_u64 v)
{
	if (v == D9_NOT_KNOWN)
		d9_json_null(j, key);
	else
		d9_json_u64(j, key, v);
}

void d9_json_i64(struct d9_json *j, const char *key, d9_i64 v)
{
	lead(j, key);
	fprintf(j->f, "%ld", v);
}

void d9_json_f64(struct d9_json *j, const char *key, double v)
{
	char buf[400];
	if (!isfinite(v)) {
		d9_json_null(j, key); /* JSON has no word for these */
		return;
	}
	lead(j, key);
	/* Six decimals, without the zeros that say nothing; what that would round to 0 keeps its digits. */
	if (v != 0 && fabs(v) < 1e-3) {
		fprintf(j->f, "%.6g", v);
		return;
	}
	int n = snprintf(buf, sizeof(buf), "%.6f", v);
	while (n > 0 && buf[n - 1] == '0')
		n--;
	if (n > 0 && buf[n - 1] == '.')
		n--;
	fwrite(buf, 1, (size_t)n, j->f);
}

void d9_json_bool(struct d9_json *j, const char *key, bool v)
{
	lead(j, key);
	fputs(v ? "true" : "false", j->f);
}

void d9_json_addr(struct d9_json *j, const char *key, d9_u64 v)
{
	lead(j, key);
	fprintf(j->f, "\"0x%lx\"", v);
}

void d9_json_null(struct d9_json *j, const char *key)
{
	lead(j, key);
	fputs("null", j->f);
}
