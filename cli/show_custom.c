/* Events that a program declared itself, taken apart as it said: name:type,... over the bytes that it gave. */
#include "show.h"

/* The next field of the bytes.  False: none is left, or its type is not known and so is what follows. */
static bool next_field(const char **fields, const unsigned char **p, const unsigned char *end,
		       struct d9_custom_field *ret)
{
	const char *at = *fields, *stop = at + strcspn(at, ","), *colon = memchr(at, ':', (size_t)(stop - at));
	if (!*at || !colon)
		return false;
	size_t left = (size_t)(end - *p), n = 8;
	const char *type = colon + 1;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(colon - at), at);
	if (stop - type != 3)
		return false;
	if (!strncmp(type, "str", 3)) {
		ret->type = D9_CUSTOM_STR;
		ret->text = (const char *)*p;
		ret->n_text = strnlen(ret->text, left);
		n = ret->n_text + (ret->n_text < left); /* the last one may have been cut */
	} else if (!strncmp(type, "u64", 3)) {
		ret->type = D9_CUSTOM_U64;
	} else if (!strncmp(type, "i64", 3)) {
		ret->type = D9_CUSTOM_I64;
	} else if (!strncmp(type, "f64", 3)) {
		ret->type = D9_CUSTOM_F64;
	} else {
		return false;
	}
	if (left < n || !left) {
		ret->type = D9_CUSTOM_NONE;
		n = left;
	} else if (ret->type != D9_CUSTOM_STR) {
		memcpy(&ret->v, *p, 8);
	}
	*p += n;
	*fields = stop + (*stop == ',');
	return true;
}

const struct d9_trace_type *d9_show_custom_type(const struct d9_trace *t, d9_u32 family, d9_u32 id)
{
	const struct d9_trace_family *f = &t->families.v[family];
	for (size_t i = 0; i < f->types.n; i++)
		if (f->types.v[i].id == id)
			return &f->types.v[i];
	return NULL;
}

void d9_show_custom(const struct d9_trace_type *type, const struct d9_bytes *data, d9_custom_field_fn *fn, void *ctx)
{
	const char *fields = type->fields;
	const unsigned char *p = data->p, *end = p + data->n;
	struct d9_custom_field f;
	while (next_field(&fields, &p, end, &f))
		fn(ctx, &f);
}
