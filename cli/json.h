/*
 * A JSON writer: keeps the commas and the nesting, escapes strings (bytes that are no UTF-8 become U+FFFD).
 * Output only; a write error is seen once, by d9_json_end_document.
 */
#ifndef D9_CLI_JSON_H
#define D9_CLI_JSON_H
#include "format/types.h"

#include <stdbool.h>
#include <stdio.h>

struct d9_json {
	FILE *f;
	unsigned depth;
	bool comma; /* something stands before the next value at this depth */
};

/* Begins a document {"schema":"d9.NAME/1", ...; ended by d9_json_end_document, which adds the newline and returns 0 or -EIO. */
void d9_json_document(struct d9_json *j, FILE *f, const char *name);
int d9_json_end_document(struct d9_json *j);
/* One JSON Lines object without a schema key: begin with d9_json_line, end with d9_json_end_document. */
void d9_json_line(struct d9_json *j, FILE *f);

/* key is NULL inside an array. */
void d9_json_object(struct d9_json *j, const char *key);
void d9_json_array(struct d9_json *j, const char *key);
void d9_json_end_object(struct d9_json *j);
void d9_json_end_array(struct d9_json *j);
void d9_json_str(struct d9_json *j, const char *key, const char *s); /* NULL = null */
void d9_json_strn(struct d9_json *j, const char *key, const char *s, size_t n);
void d9_json_u64(struct d9_json *j, const char *key, d9_u64 v);
void d9_json_known(struct d9_json *j, const char *key, d9_u64 v); /* D9_NOT_KNOWN = null */
void d9_json_i64(struct d9_json *j, const char *key, d9_i64 v);
void d9_json_f64(struct d9_json *j, const char *key, double v); /* at most 6 significant decimals; no NaN */
void d9_json_bool(struct d9_json *j, const char *key, bool v);
void d9_json_addr(struct d9_json *j, const char *key, d9_u64 v); /* "0x..." */
void d9_json_null(struct d9_json *j, const char *key);

#endif
