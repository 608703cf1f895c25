/*
 * One column: numbers to bytes and back.  No I/O, no memory of its own, no state but the table that the
 * caller lends.  The numbers of enum d9_codec are wire values: a file names the codec of each of its
 * columns, so a better one can be added without breaking a reader; none may ever change.
 *
 * Every code is an unsigned LEB128 number.  Codes that are zero at the end of a column are not written: a
 * reader that has come to the end of a column goes on with zeros.  So a column that is as predicted
 * throughout takes no bytes at all.
 */
#ifndef D9_FORMAT_CODEC_H
#define D9_FORMAT_CODEC_H
#include "events.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* d is the difference modulo 2^64, zz(d) its zigzag form: 0, -1, 1, -2 ... become 0, 1, 2, 3 ... */
enum d9_codec {
	D9_CODEC_NONE = 0,
	D9_CODEC_UINT = 1,    /* v */
	D9_CODEC_INT = 2,     /* zz(v) */
	D9_CODEC_DELTA = 3,   /* zz(v - the value before it in the column, first 0) */
	D9_CODEC_CHAIN = 4,   /* zz(v - the value that last followed the value before it, modulo 256; all first 0) */
	D9_CODEC_BEFORE = 5,  /* a moment against the record's own t: see d9_before_put */
	D9_CODEC_BLOB = 6,    /* id of a blob: 0 none, else 1 + zz(id - the id before it that was not 0, first 0) */
	D9_CODEC_BYTES = 7,   /* the bytes themselves: all lengths, then all bytes */
	D9_CODEC_T = 8,       /* of t: t itself; such records do not move the run's time */
	D9_CODEC_T_DELTA = 9, /* of t: t - the run's time; see d9_forward_put */
	D9_CODEC_T_GAP = 10,  /* of t: (t - the first TICKS field) - the run's time; see d9_forward_put */
	D9_N_CODECS
};

/* Records of an event stand in its columns, but for that of the site, grouped by this: docs/FORMAT.md, "Rows". */
#define D9_SITE_GROUPS 256u
#define D9_SITE_GROUP(site) ((site) % D9_SITE_GROUPS)

/* What CHAIN remembers. */
#define D9_CHAIN_SLOTS 256u
struct d9_codec_table {
	d9_u64 after[D9_CHAIN_SLOTS];
};

static inline d9_u64 d9_zigzag(d9_u64 d) { return d << 1 ^ (0 - (d >> 63)); }
static inline d9_u64 d9_unzigzag(d9_u64 z) { return z >> 1 ^ (0 - (z & 1)); }

/* Writes at most 10 bytes. */
static inline d9_u8 *d9_uvar_put(d9_u8 *p, d9_u64 v)
{
	while (v >= 0x80) {
		*p++ = (d9_u8)(v | 0x80);
		v >>= 7;
	}
	*p++ = (d9_u8)v;
	return p;
}

/* The same bytes without a branch between one byte and two: for columns of noise, where a wrong guess costs
   more than the number.  Writes up to 1 byte beyond what it returns. */
static inline d9_u8 *d9_uvar_put_noise(d9_u8 *p, d9_u64 v)
{
	if (v >> 14)
		return d9_uvar_put(p, v);
	d9_u32 x = (d9_u32)v, more = x > 0x7f;
	p[0] = (d9_u8)((x & 0x7f) | more << 7);
	p[1] = (d9_u8)(x >> 7);
	return p + 1 + more;
}

/* A cursor over bytes that nobody has checked. */
struct d9_cursor {
	const d9_u8 *p, *end;
};

/* Reads one number; false: the bytes end inside it, or it does not fit 64 bits.  At the end: 0, as said above. */
static inline bool d9_uvar_get(struct d9_cursor *c, d9_u64 *ret)
{
	if (c->p == c->end) {
		*ret = 0;
		return true;
	}
	if (*c->p < 0x80) {
		*ret = *c->p++;
		return true;
	}
	d9_u64 v = 0;
	for (unsigned shift = 0; shift < 70 && c->p < c->end; shift += 7) {
		d9_u64 b = *c->p++;
		if (shift == 63 && b > 1)
			return false;
		v |= (b & 0x7f) << shift;
		if (b < 0x80) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* The same without a branch on the length, where 8 bytes can be loaded and hold the whole number. */
static inline bool d9_uvar_get_noise(struct d9_cursor *c, d9_u64 *ret)
{
	if (c->end - c->p < 8)
		return d9_uvar_get(c, ret);
	d9_u64 x;
	memcpy(&x, c->p, 8);
	d9_u64 stop = ~x & 0x8080808080808080ull;
	if (!stop)
		return d9_uvar_get(c, ret);
	x &= stop ^ (stop - 1);
	x = (x & 0x007f007f007f007full) | (x & 0x7f007f007f007f00ull) >> 1;
	x = (x & 0x00003fff00003fffull) | (x & 0x3fff00003fff0000ull) >> 2;
	*ret = (x & 0x000000000fffffffull) | (x & 0x0fffffff00000000ull) >> 4;
	c->p += (unsigned)__builtin_ctzll(stop) / 8 + 1;
	return true;
}

/* A number that must be there. */
static inline bool d9_uvar_need(struct d9_cursor *c, d9_u64 *ret) { return c->p < c->end && d9_uvar_get(c, ret); }

/*
 * A difference that is seldom negative: d + 1, or 0 and then -1 - d.  Against zigzag it saves the bit of
 * the sign, which in a column of noise is a byte in every sixth record or so.
 */
static inline d9_u8 *d9_forward_put(d9_u8 *p, d9_u64 d)
{
	if ((d9_i64)d >= 0)
		return d9_uvar_put_noise(p, d + 1);
	*p++ = 0;
	return d9_uvar_put(p, ~d);
}
static inline bool d9_forward_get(struct d9_cursor *c, d9_u64 *ret)
{
	d9_u64 v;
	if (!d9_uvar_get_noise(c, &v))
		return false;
	if (v) {
		*ret = v - 1;
		return true;
	}
	if (!d9_uvar_get(c, &v))
		return false;
	*ret = ~v;
	return true;
}

/*
 * A moment v against t, in which 0 means none.  z = zz(t - v); v = 0 would be z0 = zz(t), which is moved to
 * the front: none is 0, z below z0 becomes z + 1, z above it stays.  So every pair of t and v has a code.
 */
static inline d9_u64 d9_before_put(d9_u64 t, d9_u64 v)
{
	d9_u64 z = d9_zigzag(t - v);
	return v == 0 ? 0 : z < d9_zigzag(t) ? z + 1 : z;
}
static inline d9_u64 d9_before_get(d9_u64 t, d9_u64 code)
{
	return code == 0 ? 0 : t - d9_unzigzag(code <= d9_zigzag(t) ? code - 1 : code);
}

/* ---- whole columns --------------------------------------------------------------------------- */

/* What a column is made from: one field of n records, each at base + at[i]. */
struct d9_column_src {
	const d9_u8 *base;
	const d9_u32 *at;
	d9_u32 n;
	d9_u16 off;
	d9_u8 size, is_signed;
};

/* Writes the codes UINT..BLOB of a column, at most 10 (size 8) or 5 (size 4) bytes each, and up to 1 byte beyond.
   Returns the end. */
d9_u8 *d9_codec_put(enum d9_codec codec, const struct d9_column_src *src, struct d9_codec_table *table, d9_u8 *out);

/* Where a column goes: one field of n records, each `stride` bytes after the one before it. */
struct d9_column_dst {
	d9_u8 *base;
	size_t stride;
	d9_u32 n;
	d9_u16 off;
	d9_u8 size;
};

/*
 * Reads the codes of a column.  BEFORE leaves its codes as they are (t is not known yet), T_DELTA and T_GAP
 * leave the difference.  False: the bytes are not the n codes of such a column, or the codec is not one
 * that makes numbers.
 */
bool d9_codec_get(enum d9_codec codec, struct d9_cursor *c, const struct d9_column_dst *dst,
		  struct d9_codec_table *table);

/* What the writer uses for a field, for t and for site. */
enum d9_codec d9_codec_of_field(const struct d9_field_desc *field);
enum d9_codec d9_codec_of_t(const struct d9_event_desc *event);
#define D9_CODEC_OF_SITE D9_CODEC_CHAIN

#endif
