/*
 * Whole columns.  Each loop is compiled once per codec and width, so that inside it nothing is decided
 * but the length of a number.  Encode and decode stand side by side: what one does the other undoes.
 */
#include "codec.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE d9_u32 load32(const d9_u8 *p)
{
	d9_u32 v;
	memcpy(&v, p, 4);
	return v;
}

static ALWAYS_INLINE d9_u64 load64(const d9_u8 *p)
{
	d9_u64 v;
	memcpy(&v, p, 8);
	return v;
}

static ALWAYS_INLINE d9_u64 load_value(const d9_u8 *p, unsigned size, bool is_signed)
{
	if (size == 8)
		return load64(p);
	d9_u32 v = load32(p);
	return is_signed ? (d9_u64)(d9_i64)(d9_i32)v : v;
}

/* What a value is expected to be: the code of that is 0. */
static ALWAYS_INLINE d9_u64 guess_of(enum d9_codec codec, d9_u64 prev, const struct d9_codec_table *table)
{
	if (codec == D9_CODEC_DELTA)
		return prev;
	return codec == D9_CODEC_CHAIN ? table->after[prev % D9_CHAIN_SLOTS] : 0;
}

/* prev: the value before it in the column (of blobs: that was not 0). */
static ALWAYS_INLINE d9_u64 code_of(enum d9_codec codec, const d9_u8 *rec, d9_u64 v, d9_u64 prev, d9_u64 guess)
{
	switch (codec) {
	case D9_CODEC_INT:
		return d9_zigzag(v);
	case D9_CODEC_DELTA:
	case D9_CODEC_CHAIN:
		return d9_zigzag(v - guess);
	case D9_CODEC_BEFORE:
		return d9_before_put(load64(rec + offsetof(struct d9_rec, t)), v);
	case D9_CODEC_BLOB:
		return 1 + d9_zigzag(v - prev);
	default:
		return v;
	}
}

static ALWAYS_INLINE d9_u8 *put_rows(enum d9_codec codec, const struct d9_column_src *s, unsigned size, bool is_signed,
				     struct d9_codec_table *table, d9_u8 *out)
{
	const d9_u32 *at = s->at, *at_end = s->at + s->n;
	const d9_u8 *field = s->base + s->off;
	d9_u8 *end = out;
	d9_u64 prev = 0;
	for (; at < at_end; at++) {
		d9_u64 v = load_value(field + *at, size, is_signed), guess = guess_of(codec, prev, table);
		/* Most values of most columns. */
		if (v == guess) {
			*out++ = 0;
			if (codec == D9_CODEC_CHAIN)
				prev = v;
			continue;
		}
		d9_u64 code = code_of(codec, s->base + *at, v, prev, guess);
		if (codec == D9_CODEC_CHAIN)
			table->after[prev % D9_CHAIN_SLOTS] = v;
		prev = v;
		/* Sizes and durations are noise. */
		end = out = codec == D9_CODEC_UINT || codec == D9_CODEC_BEFORE ? d9_uvar_put_noise(out, code)
									       : d9_uvar_put(out, code);
	}
	return end;
}

static ALWAYS_INLINE d9_u8 *put_sized(enum d9_codec codec, const struct d9_column_src *s, struct d9_codec_table *table,
				      d9_u8 *out)
{
	if (s->size == 8)
		return put_rows(codec, s, 8, false, table, out);
	return s->is_signed ? put_rows(codec, s, 4, true, table, out) : put_rows(codec, s, 4, false, table, out);
}

d9_u8 *d9_codec_put(enum d9_codec codec, const struct d9_column_src *src, struct d9_codec_table *table, d9_u8 *out)
{
	if (codec == D9_CODEC_CHAIN)
		memset(table, 0, sizeof(*table));
	switch (codec) {
	case D9_CODEC_INT:
		return put_sized(D9_CODEC_INT, src, table, out);
	case D9_CODEC_DELTA:
		return put_sized(D9_CODEC_DELTA, src, table, out);
	case D9_CODEC_CHAIN:
		return put_sized(D9_CODEC_CHAIN, src, table, out);
	case D9_CODEC_BEFORE:
		return put_sized(D9_CODEC_BEFORE, src, table, out);
	case D9_CODEC_BLOB:
		return put_sized(D9_CODEC_BLOB, src, table, out);
	default:
		return put_sized(D9_CODEC_UINT, src, table, out);
	}
}

/* ---- and back -------------------------------------------------------------------------------- */

static ALWAYS_INLINE d9_u64 value_of(enum d9_codec codec, d9_u64 code, d9_u64 *prev, struct d9_codec_table *table)
{
	switch (codec) {
	case D9_CODEC_INT:
		return d9_unzigzag(code);
	case D9_CODEC_DELTA:
		return *prev += d9_unzigzag(code);
	case D9_CODEC_CHAIN:
		return *prev = table->after[*prev % D9_CHAIN_SLOTS] += d9_unzigzag(code);
	case D9_CODEC_BLOB:
		return code ? *prev += d9_unzigzag(code - 1) : 0;
	default:
		return code;
	}
}

static ALWAYS_INLINE bool get_code(enum d9_codec codec, struct d9_cursor *c, d9_u64 *ret)
{
	switch (codec) {
	case D9_CODEC_T_DELTA:
	case D9_CODEC_T_GAP:
		return d9_forward_get(c, ret);
	case D9_CODEC_UINT:
	case D9_CODEC_BEFORE:
		return d9_uvar_get_noise(c, ret);
	default:
		return d9_uvar_get(c, ret);
	}
}

static ALWAYS_INLINE bool get_rows(enum d9_codec codec, struct d9_cursor *cur, const struct d9_column_dst *d,
				   unsigned size, struct d9_codec_table *table)
{
	struct d9_cursor c = *cur;
	d9_u8 *rec = d->base;
	d9_u64 prev = 0, code;
	for (d9_u32 i = 0; i < d->n; i++, rec += d->stride) {
		if (!get_code(codec, &c, &code))
			return false;
		d9_u64 v = value_of(codec, code, &prev, table);
		memcpy(rec + d->off, &v, size);
	}
	return c.p == c.end;
}

static ALWAYS_INLINE bool get_sized(enum d9_codec codec, struct d9_cursor *c, const struct d9_column_dst *d,
				    struct d9_codec_table *table)
{
	return d->size == 8 ? get_rows(codec, c, d, 8, table) : get_rows(codec, c, d, 4, table);
}

bool d9_codec_get(enum d9_codec codec, struct d9_cursor *c, const struct d9_column_dst *dst,
		  struct d9_codec_table *table)
{
	if (codec == D9_CODEC_CHAIN)
		memset(table, 0, sizeof(*table));
	switch (codec) {
	case D9_CODEC_UINT:
	case D9_CODEC_T:
	case D9_CODEC_BEFORE:
		return get_sized(D9_CODEC_UINT, c, dst, table);
	case D9_CODEC_INT:
		return get_sized(D9_CODEC_INT, c, dst, table);
	case D9_CODEC_DELTA:
		return get_sized(D9_CODEC_DELTA, c, dst, table);
	case D9_CODEC_CHAIN:
		return get_sized(D9_CODEC_CHAIN, c, dst, table);
	case D9_CODEC_BLOB:
		return get_sized(D9_CODEC_BLOB, c, dst, table);
	case D9_CODEC_T_DELTA:
	case D9_CODEC_T_GAP:
		return get_sized(D9_CODEC_T_DELTA, c, dst, table);
	default:
		return false;
	}
}

/* ---- which --------------------------------------------------------------------------------- */

enum d9_codec d9_codec_of_field(const struct d9_field_desc *field)
{
	if (field->is_tail)
		return D9_CODEC_BLOB;
	switch ((enum d9_unit)field->unit) {
	case D9_UNIT_TIME:
		return D9_CODEC_BEFORE;
	/* Records stand grouped by site, and the same place mostly means the same object, waker, task. */
	case D9_UNIT_ADDR:
	case D9_UNIT_TID:
	case D9_UNIT_THREAD:
	case D9_UNIT_ID:
	case D9_UNIT_TASK:
		return D9_CODEC_DELTA;
	default:
		return field->is_signed ? D9_CODEC_INT : D9_CODEC_UINT;
	}
}

enum d9_codec d9_codec_of_t(const struct d9_event_desc *event)
{
	/* Most META records have no time, and one of them must not throw the run's time back to 0. */
	if (event->kind == D9_KIND_META)
		return D9_CODEC_T;
	return event->kind == D9_KIND_SPAN ? D9_CODEC_T_GAP : D9_CODEC_T_DELTA;
}
