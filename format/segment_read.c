/*
 * Segment bytes in, records out: see segment_read.h.
 *
 * The file may come from a crashed machine or from somebody who wishes us ill, and it may be written to or
 * cut while we read.  So blocks are read with pread into memory of ours (never mapped: a file that is
 * truncated under a mapping is SIGBUS), and a block is decoded as a whole, with every count and reference
 * checked, before the first of its records is delivered.
 *
 * The file's own table of events says how columns are to be read; what they mean is looked up by (event
 * name, field name) in this build's table.  That is done once per file: struct plan.
 *
 *   file -> source_get -> next_block -> unpack -> decode_block {runs, types, columns -> rows} -> deliver
 *
 * Long, but one way through: each part takes what the one before it has checked, and nothing else may.
 */
#include "segment_read.h"
#include "codec.h"

#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define WINDOW_BYTES (256u << 10)
#define FIELDS_MAX 64u
#define BLOB_IDS_MAX (1u << 20)

struct column {
	d9_u8 codec, size; /* size in the row; 0: not wanted, skip its bytes */
	d9_u16 off;
};

/* How one event of the file is decoded.  A row is this build's struct, then three words of ours. */
struct plan {
	bool dropped; /* this build has no such event */
	bool is_blob;
	d9_u8 t_codec, site_codec, id; /* id in this build */
	d9_u8 n_columns, n_before;
	d9_u16 size, dur_off;
	struct column column[FIELDS_MAX];
	d9_u16 before_off[FIELDS_MAX]; /* TIME fields, which need t */
};
#define ROW_T(plan) ((plan)->size)
#define ROW_DUR(plan) ((plan)->size + 8u)
#define ROW_TAIL(plan) ((plan)->size + 16u) /* blob id, or where the bytes of a blob are: offset << 32 | n */
#define ROW_STRIDE(plan) ((plan)->size + 24u)

/* Bytes of the file: a buffer of the caller's, or a descriptor and a window onto it. */
struct source {
	const d9_u8 *mem;
	int fd;
	d9_u64 size;
	d9_u8 *window;
	size_t window_cap, window_n;
	d9_u64 window_at;
};

/* An unpacked block that tails point into; kept until the reader is closed. */
struct kept {
	d9_u64 at;
	d9_u8 *raw;
	struct kept *next;
};

struct d9_segr {
	struct d9_seg_header header;
	struct source src;
	struct plan *plan[D9_EVENT_ID_MAX + 1]; /* by the file's event id; 0: it describes none */
	d9_u64 first_block;                     /* offset of the block after the descriptors */
	bool torn_at_start;                     /* the file ends inside its descriptors */

	struct d9_segr_stats stats;
	d9_u64 decoded;     /* records of good blocks, delivered or not */
	d9_u64 hash_budget; /* bytes that may yet be hashed in vain: keeps a hostile file from costing size squared */

	struct d9_bytes *blobs; /* by id */
	d9_u32 n_blobs;
	struct kept *kept;

	d9_u8 *raw;
	size_t raw_cap;
	d9_u8 *rows;
	size_t rows_cap;
	d9_u32 *places; /* by event, then in the order of the runs: where the record's row is */
	size_t places_cap;
	d9_u32 *sites; /* of the event being decoded, in the order of the runs */
	size_t sites_cap;
	struct d9_run *runs;
	size_t runs_cap;
	struct d9_codec_table table;
};

/* ---- small things ---------------------------------------------------------------------------- */

/* Whom to tell what is wrong with which file. */
struct told {
	const char *name;
	char *err;
	size_t n_err;
};

/* Writes "NAME: what is wrong; what to do." and returns the error. */
__attribute__((format(printf, 3, 4))) static int fail(const struct told *told, int error, const char *format, ...)
{
	char what[192];
	va_list ap;
	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	if (told->n_err)
		snprintf(told->err, told->n_err, "%.200s: %s", told->name, what);
	return error;
}

static int fail_read(const struct told *told, int error)
{
	if (error == -ENOMEM)
		return fail(told, error, "there is no memory to read it; free some.");
	return fail(told, error, "cannot be read: %s; check the disk.", strerror(-error));
}

static bool grow(void *buffer, size_t *cap, size_t want)
{
	void **p = buffer;
	if (want <= *cap)
		return true;
	void *q = realloc(*p, want + want / 4);
	if (!q)
		return false;
	*p = q;
	*cap = want + want / 4;
	return true;
}

/* n bytes at `at`, valid until the next call; 0 with *error: -ENODATA where the file has no such bytes. */
static const d9_u8 *source_get(struct source *s, d9_u64 at, size_t n, int *error)
{
	*error = -ENODATA;
	if (at > s->size || n > s->size - at)
		return 0;
	if (s->mem)
		return s->mem + at;
	if (s->window && at >= s->window_at && at - s->window_at <= s->window_n &&
	    n <= s->window_n - (size_t)(at - s->window_at))
		return s->window + (at - s->window_at);
	size_t want = n < WINDOW_BYTES ? WINDOW_BYTES : n;
	if (want > s->size - at)
		want = (size_t)(s->size - at);
	s->window_n = 0;
	if (!grow(&s->window, &s->window_cap, want)) {
		*error = -ENOMEM;
		return 0;
	}
	s->window_at = at;
	while (s->window_n < want) {
		ssize_t r = pread(s->fd, s->window + s->window_n, want - s->window_n, (off_t)(at + s->window_n));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			*error = -errno;
		if (r <= 0)
			break;
		s->window_n += (size_t)r;
	}
	return n <= s->window_n ? s->window : 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool checksum_is(const struct d9_block_header *h, const d9_u8 *stored)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	/* A fuzzer cannot guess checksums; what lies behind them is what it is for. */
	(void)h, (void)stored;
	return true;
#else
	struct d9_block_header zeroed = *h;
	zeroed.checksum = 0;
	XXH3_state_t state;
	XXH3_64bits_reset(&state);
	XXH3_64bits_update(&state, &zeroed, sizeof(zeroed));
	XXH3_64bits_update(&state, stored, h->stored);
	return XXH3_64bits_digest(&state) == h->checksum;
#endif
}

static bool plausible(const struct d9_block_header *h)
{
	return h->magic == D9_BLOCK_MAGIC && h->raw <= D9_BLOCK_RAW_MAX && h->stored <= h->raw &&
	       h->n_records <= D9_BLOCK_RECORDS_LIMIT && h->n_runs <= h->n_records &&
	       (h->stored == h->raw || h->flags & D9_BLOCK_LZ4);
}

/* A whole block at `at`?  1 with *h and *stored; 0 if not; -ENOMEM or an error of reading. */
static int block_at(struct d9_segr *r, d9_u64 at, struct d9_block_header *h, const d9_u8 **stored)
{
	int error;
	const d9_u8 *p = source_get(&r->src, at, sizeof(*h), &error);
	if (!p)
		return error == -ENODATA ? 0 : error;
	memcpy(h, p, sizeof(*h));
	if (!plausible(h))
		return 0;
	p = source_get(&r->src, at, sizeof(*h) + h->stored, &error);
	if (!p)
		return error == -ENODATA ? 0 : error;
	if (r->hash_budget < h->stored)
		return 0;
	*stored = p + sizeof(*h);
	if (checksum_is(h, *stored))
		return 1;
	r->hash_budget -= h->stored;
	return 0;
}

/* The next offset from `at` on where the four bytes of a block's magic stand, or the end of the file. */
static int find_magic(struct d9_segr *r, d9_u64 at, d9_u64 *ret)
{
	static const d9_u32 magic = D9_BLOCK_MAGIC;
	while (at < r->src.size) {
		d9_u64 left = r->src.size - at;
		size_t n = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
		int error;
		const d9_u8 *p = source_get(&r->src, at, n, &error);
		if (!p && error != -ENODATA)
			return error;
		const d9_u8 *hit = p ? memmem(p, n, &magic, 4) : 0;
		if (hit) {
			*ret = at + (d9_u64)(hit - p);
			return 0;
		}
		if (!p || n == left)
			break;
		at += n - 3;
	}
	*ret = r->src.size;
	return 0;
}

/*
 * The first whole block at or after *at, which is moved to it.  1, 0 at the end of the file, or an error.
 * What lies between is one torn block, however much it is.
 */
static int next_block(struct d9_segr *r, d9_u64 *at, struct d9_block_header *h, const d9_u8 **stored)
{
	bool torn = false;
	int found = 0;
	while (*at < r->src.size && (found = block_at(r, *at, h, stored)) == 0) {
		torn = true;
		int error = find_magic(r, *at + 1, at);
		if (error)
			return error;
	}
	r->stats.torn_blocks += torn;
	return found;
}

/* The block's bytes as they were before packing; valid until the next call for any block. */
static int unpack(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored)
{
	if (h->flags & ~D9_BLOCK_LZ4)
		return -EBADMSG;
	if (!grow(&r->raw, &r->raw_cap, h->raw + 1u))
		return -ENOMEM;
	if (!(h->flags & D9_BLOCK_LZ4)) {
		memcpy(r->raw, stored, h->raw);
		return 0;
	}
	int n = LZ4_decompress_safe((const char *)stored, (char *)r->raw, (int)h->stored, (int)h->raw);
	return n == (int)h->raw ? 0 : -EBADMSG;
}

/* ---- the file's table of events -------------------------------------------------------------- */

struct text {
	const char *p;
	size_t n;
};

static bool get_text(struct d9_cursor *c, struct text *ret)
{
	d9_u64 n;
	if (!d9_uvar_need(c, &n) || n > (d9_u64)(c->end - c->p))
		return false;
	*ret = (struct text){(const char *)c->p, (size_t)n};
	c->p += n;
	return true;
}

static bool text_is(const struct text *t, const char *s) { return strlen(s) == t->n && memcmp(s, t->p, t->n) == 0; }

static unsigned find_event(const struct text *name)
{
	for (unsigned id = 1; id <= D9_EVENT_ID_MAX; id++)
		if (d9_events[id].name && text_is(name, d9_events[id].name))
			return id;
	return 0;
}

/* The column of one field: where in the row it goes. */
static struct column place_column(struct plan *plan, const struct text *name, bool is_dur, d9_u64 codec)
{
	const struct d9_event_desc *e = &d9_events[plan->id];
	struct column c = {.codec = (d9_u8)codec};
	bool is_tail = e->has_tail && text_is(name, e->fields[e->n_fields].name);
	if ((codec == D9_CODEC_BLOB && is_tail) || (codec == D9_CODEC_BYTES && plan->is_blob)) {
		c.off = ROW_TAIL(plan);
		c.size = 8;
		return c;
	}
	if (codec < D9_CODEC_UINT || codec > D9_CODEC_BEFORE)
		return c;
	unsigned off = sizeof(struct d9_rec);
	for (unsigned i = 0; i < e->n_fields; off += e->fields[i++].size)
		if (text_is(name, e->fields[i].name)) {
			c.off = (d9_u16)off;
			c.size = e->fields[i].size;
		}
	/* Without the duration there is no time: a span needs it though this build may have no such field. */
	if (is_dur && c.size != 8) {
		c.off = ROW_DUR(plan);
		c.size = 8;
	}
	if (is_dur)
		plan->dur_off = c.off;
	return c;
}

static bool get_field(struct d9_cursor *c, struct plan *plan)
{
	struct text name, type, unit;
	d9_u64 codec;
	if (!get_text(c, &name) || !get_text(c, &type) || !get_text(c, &unit) || !d9_uvar_need(c, &codec) ||
	    codec > 255)
		return false;
	bool is_dur = plan->t_codec == D9_CODEC_T_GAP && !plan->dur_off && text_is(&unit, "TICKS");
	struct column column = place_column(plan, &name, is_dur, codec);
	if (column.codec == D9_CODEC_BEFORE && column.size == 8)
		plan->before_off[plan->n_before++] = column.off;
	else if (column.codec == D9_CODEC_BEFORE)
		column.size = 0;
	plan->column[plan->n_columns++] = column;
	return true;
}

/* One event.  0, -ENOMEM, -EBADMSG, or -EPROTO: its records cannot be read, and so neither can those beside them. */
static int get_event(struct d9_cursor *c, struct plan **plans)
{
	d9_u64 id, size, t_codec, site_codec, n_fields;
	struct text name, kind;
	if (!d9_uvar_need(c, &id) || id == 0 || id > D9_EVENT_ID_MAX || plans[id] || !get_text(c, &name) ||
	    !get_text(c, &kind) || !d9_uvar_need(c, &size) || !d9_uvar_need(c, &t_codec) ||
	    !d9_uvar_need(c, &site_codec) || !d9_uvar_need(c, &n_fields))
		return -EBADMSG;
	if (n_fields > FIELDS_MAX || t_codec < D9_CODEC_T || t_codec > D9_CODEC_T_GAP || site_codec < D9_CODEC_UINT ||
	    site_codec > D9_CODEC_CHAIN)
		return -EPROTO;
	struct plan *plan = plans[id] = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	plan->id = (d9_u8)find_event(&name);
	plan->dropped = !plan->id;
	plan->is_blob = plan->id == D9_EV_blob;
	plan->size = plan->id ? d9_events[plan->id].size : sizeof(struct d9_rec);
	plan->t_codec = (d9_u8)t_codec;
	plan->site_codec = (d9_u8)site_codec;
	for (d9_u64 i = 0; i < n_fields; i++)
		if (!get_field(c, plan))
			return -EBADMSG;
	return t_codec == D9_CODEC_T_GAP && !plan->dur_off ? -EPROTO : 0;
}

static int get_descriptors(struct d9_segr *r, const struct d9_block_header *h)
{
	struct d9_cursor c = {r->raw, r->raw + h->raw};
	d9_u64 n;
	if (!d9_uvar_need(&c, &n) || n > D9_EVENT_ID_MAX)
		return -EBADMSG;
	for (d9_u64 i = 0; i < n; i++) {
		int error = get_event(&c, r->plan);
		if (error)
			return error;
	}
	return 0;
}

/* ---- decoding a block ------------------------------------------------------------------------ */

/* One block on its way from bytes to rows. */
struct decode {
	struct d9_segr *r;
	struct d9_block_header h;
	struct d9_cursor c;
	const d9_u8 *raw;
	const d9_u8 *types;
	d9_u32 count[D9_EVENT_ID_MAX + 1];
	d9_u8 *rows[D9_EVENT_ID_MAX + 1];  /* the event's rows, grouped by site */
	d9_u32 *next[D9_EVENT_ID_MAX + 1]; /* the place among them of the event's next record */
};

static bool get_u32(struct d9_cursor *c, d9_u32 *ret)
{
	d9_u64 v;
	if (!d9_uvar_need(c, &v) || v > 0xffffffffu)
		return false;
	*ret = (d9_u32)v;
	return true;
}

static bool get_u32_delta(struct d9_cursor *c, d9_u32 before, d9_u32 *ret)
{
	d9_u64 z;
	if (!d9_uvar_need(c, &z) || before + d9_unzigzag(z) > 0xffffffffu)
		return false;
	*ret = (d9_u32)(before + d9_unzigzag(z));
	return true;
}

static int get_runs(struct decode *d)
{
	struct d9_segr *r = d->r;
	if (!grow(&r->runs, &r->runs_cap, (d->h.n_runs + 1u) * sizeof(*r->runs)))
		return -ENOMEM;
	struct d9_run before = {0};
	d9_u64 n = 0;
	for (d9_u32 i = 0; i < d->h.n_runs; i++) {
		struct d9_run run;
		d9_u32 bytes;
		if (!get_u32_delta(&d->c, before.thread, &run.thread) ||
		    !get_u32_delta(&d->c, before.serial, &run.serial) || !get_u32(&d->c, &run.begin) ||
		    !get_u32(&d->c, &bytes) || bytes > 0xffffffffu - run.begin || !get_u32(&d->c, &run.n))
			return -EBADMSG;
		run.end = run.begin + bytes;
		n += run.n;
		r->runs[i] = before = run;
	}
	return n == d->h.n_records ? 0 : -EBADMSG;
}

/* Counts the events and makes room for their rows. */
static int get_types(struct decode *d)
{
	if (d->h.n_records > (size_t)(d->c.end - d->c.p))
		return -EBADMSG;
	d->types = d->c.p;
	d->c.p += d->h.n_records;
	memset(d->count, 0, sizeof(d->count));
	for (d9_u32 i = 0; i < d->h.n_records; i++)
		d->count[d->types[i]]++;
	size_t bytes = 0;
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		if (d->count[id] && !d->r->plan[id])
			return -EBADMSG;
		if (d->count[id])
			bytes += (size_t)d->count[id] * ROW_STRIDE(d->r->plan[id]);
	}
	if (!grow(&d->r->rows, &d->r->rows_cap, bytes + 1) ||
	    !grow(&d->r->places, &d->r->places_cap, (d->h.n_records + 1u) * sizeof(*d->r->places)) ||
	    !grow(&d->r->sites, &d->r->sites_cap, (d->h.n_records + 1u) * sizeof(*d->r->sites)))
		return -ENOMEM;
	memset(d->r->rows, 0, bytes);
	d9_u8 *p = d->r->rows;
	d9_u32 *place = d->r->places;
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		d->rows[id] = p;
		d->next[id] = place;
		p += d->count[id] ? (size_t)d->count[id] * ROW_STRIDE(d->r->plan[id]) : 0;
		place += d->count[id];
	}
	return 0;
}

static bool get_column_bytes(struct decode *d, struct d9_cursor *ret)
{
	d9_u64 n;
	if (!d9_uvar_need(&d->c, &n) || n > (d9_u64)(d->c.end - d->c.p))
		return false;
	*ret = (struct d9_cursor){d->c.p, d->c.p + n};
	d->c.p += n;
	return true;
}

/* All lengths, then all bytes; the row gets where they are. */
static bool get_bytes(struct decode *d, struct d9_cursor *c, const struct d9_column_dst *dst)
{
	d9_u8 *row = dst->base + dst->off;
	for (d9_u32 i = 0; i < dst->n; i++, row += dst->stride) {
		d9_u64 n;
		if (!d9_uvar_get(c, &n) || n > 0xffffffu)
			return false;
		memcpy(row, &n, 8);
	}
	row = dst->base + dst->off;
	for (d9_u32 i = 0; i < dst->n; i++, row += dst->stride) {
		d9_u64 where;
		memcpy(&where, row, 8);
		if (where > (d9_u64)(c->end - c->p))
			return false;
		const d9_u8 *p = c->p;
		c->p += where;
		where |= (d9_u64)(p - d->raw) << 32;
		memcpy(row, &where, 8);
	}
	return c->p == c->end;
}

static bool get_column(struct decode *d, const struct plan *plan, unsigned id, struct column column)
{
	struct d9_cursor c;
	if (!get_column_bytes(d, &c))
		return false;
	struct d9_column_dst dst = {d->rows[id], ROW_STRIDE(plan), d->count[id], column.off, column.size};
	if (!column.size)
		return true;
	if (column.codec == D9_CODEC_BYTES)
		return get_bytes(d, &c, &dst);
	return d9_codec_get(column.codec, &c, &dst, &d->r->table);
}

/*
 * The sites of an event stand in the order of the runs, all else of it is grouped by them: gives each
 * record its row.
 */
static bool get_sites(struct decode *d, const struct plan *plan, unsigned id)
{
	struct d9_cursor c;
	struct d9_segr *r = d->r;
	d9_u32 n = d->count[id], next[D9_SITE_GROUPS] = {0}, start = 0;
	struct d9_column_dst dst = {(d9_u8 *)r->sites, sizeof(*r->sites), n, 0, sizeof(*r->sites)};
	if (!get_column_bytes(d, &c) || !d9_codec_get(plan->site_codec, &c, &dst, &r->table))
		return false;
	for (d9_u32 i = 0; i < n; i++)
		next[D9_SITE_GROUP(r->sites[i])]++;
	for (unsigned g = 0; g < D9_SITE_GROUPS; g++) {
		d9_u32 members = next[g];
		next[g] = start;
		start += members;
	}
	for (d9_u32 i = 0; i < n; i++) {
		d9_u32 place = next[D9_SITE_GROUP(r->sites[i])]++;
		d->next[id][i] = place;
		memcpy(d->rows[id] + (size_t)place * ROW_STRIDE(plan) + offsetof(struct d9_rec, site), &r->sites[i], 4);
	}
	return true;
}

static bool get_columns(struct decode *d, const struct plan *plan, unsigned id)
{
	struct column t = {plan->t_codec, 8, ROW_T(plan)};
	bool good = get_sites(d, plan, id) && get_column(d, plan, id, t);
	for (unsigned i = 0; good && i < plan->n_columns; i++)
		good = get_column(d, plan, id, plan->column[i]);
	return good;
}

/* Unpacks and decodes all of a block.  0, -EBADMSG, -ENOMEM. */
static int decode_block(struct decode *d)
{
	int error = get_runs(d);
	if (!error)
		error = get_types(d);
	for (unsigned id = 0; !error && id <= D9_EVENT_ID_MAX; id++)
		if (d->count[id] && !get_columns(d, d->r->plan[id], id))
			error = -EBADMSG;
	return error;
}

/* ---- blobs ----------------------------------------------------------------------------------- */

static int define_blob(struct d9_segr *r, const struct d9_ev_blob *blob, const struct d9_bytes *bytes)
{
	if (blob->id == 0 || blob->id >= BLOB_IDS_MAX)
		return 0;
	if (blob->id >= r->n_blobs) {
		d9_u32 n = blob->id + blob->id / 2 + 64;
		struct d9_bytes *p = realloc(r->blobs, n * sizeof(*p));
		if (!p)
			return -ENOMEM;
		memset(p + r->n_blobs, 0, (n - r->n_blobs) * sizeof(*p));
		r->blobs = p;
		r->n_blobs = n;
	}
	r->blobs[blob->id] = *bytes;
	return 0;
}

/* Tails point into a block of blobs, so its bytes stay; a second pass over the file finds them again. */
static int keep_block(struct decode *d, d9_u64 at)
{
	struct d9_segr *r = d->r;
	for (const struct kept *k = r->kept; k; k = k->next)
		if (k->at == at) {
			d->raw = k->raw;
			return 0;
		}
	struct kept *k = malloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	*k = (struct kept){at, r->raw, r->kept};
	r->kept = k;
	d->raw = r->raw;
	r->raw = 0;
	r->raw_cap = 0;
	return 0;
}

static bool has_blobs(const struct decode *d)
{
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++)
		if (d->count[id] && d->r->plan[id]->is_blob)
			return true;
	return false;
}

/* ---- delivery -------------------------------------------------------------------------------- */

static d9_u64 load64(const d9_u8 *p)
{
	d9_u64 v;
	memcpy(&v, p, 8);
	return v;
}

/* Makes a row a record: t, the TIME fields that count from it, head. */
static void finish_row(const struct plan *plan, d9_u8 *row, d9_u64 *run_t)
{
	struct d9_rec *rec = (struct d9_rec *)row;
	d9_u64 t = load64(row + ROW_T(plan));
	if (plan->t_codec != D9_CODEC_T) {
		t += *run_t;
		if (plan->t_codec == D9_CODEC_T_GAP)
			t += load64(row + plan->dur_off);
		*run_t = t;
	}
	rec->t = t;
	for (unsigned i = 0; i < plan->n_before; i++) {
		d9_u8 *p = row + plan->before_off[i];
		d9_u64 v = d9_before_get(t, load64(p));
		memcpy(p, &v, 8);
	}
	rec->head = D9_REC_HEAD(plan->size, plan->id) | D9_COMMITTED;
}

static int find_tail(struct decode *d, const struct plan *plan, const d9_u8 *row, struct d9_bytes *ret)
{
	d9_u64 ref = load64(row + ROW_TAIL(plan));
	*ret = (struct d9_bytes){0};
	if (plan->is_blob) {
		const struct d9_ev_blob *blob = (const struct d9_ev_blob *)row;
		*ret = (struct d9_bytes){blob->kind, (d9_u32)ref, d->raw + (ref >> 32)};
		return define_blob(d->r, blob, ret);
	}
	if (ref == 0)
		return 0;
	if (ref < d->r->n_blobs)
		*ret = d->r->blobs[ref];
	/* Its block is damaged or was never written. */
	if (!ret->kind)
		d->r->stats.lost_tails++;
	return 0;
}

static int deliver_run(struct decode *d, const struct d9_run *run, const d9_u8 **type, d9_segr_fn *fn, void *ctx)
{
	struct d9_segr *r = d->r;
	struct d9_segr_event ev = {.clock = d->h.clock, .run = *run};
	d9_u64 run_t = d->h.t_min;
	for (; ev.index < run->n; ev.index++) {
		unsigned id = *(*type)++;
		const struct plan *plan = r->plan[id];
		d9_u8 *row = d->rows[id] + (size_t)*d->next[id]++ * ROW_STRIDE(plan);
		finish_row(plan, row, &run_t);
		if (plan->dropped) {
			r->stats.unknown_events++;
			continue;
		}
		int result = find_tail(d, plan, row, &ev.tail);
		if (result)
			return result;
		ev.rec = (const struct d9_rec *)row;
		ev.id = plan->id;
		r->stats.records++;
		result = fn(ctx, &ev);
		if (result)
			return result;
	}
	return 0;
}

static int deliver(struct decode *d, d9_segr_fn *fn, void *ctx)
{
	struct d9_segr_stats *stats = &d->r->stats;
	if (d->h.t_max) {
		stats->t_min = !stats->t_max || d->h.t_min < stats->t_min ? d->h.t_min : stats->t_min;
		stats->t_max = d->h.t_max > stats->t_max ? d->h.t_max : stats->t_max;
	}
	const d9_u8 *type = d->types;
	for (d9_u32 i = 0; i < d->h.n_runs; i++) {
		int result = deliver_run(d, &d->r->runs[i], &type, fn, ctx);
		if (result)
			return result;
	}
	return 0;
}

/* ---- iteration ------------------------------------------------------------------------------- */

/* Called for each whole block after the descriptors.  -EBADMSG: its content is not what its header says. */
typedef int block_fn(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at, void *ctx);

static int each_block(struct d9_segr *r, block_fn *fn, void *ctx)
{
	memset(&r->stats, 0, sizeof(r->stats));
	r->stats.torn_blocks = r->torn_at_start;
	r->decoded = 0;
	r->hash_budget = 16 * r->src.size + (1u << 20);
	struct d9_block_header h;
	const d9_u8 *stored;
	d9_u64 at = r->first_block;
	int found;
	while ((found = next_block(r, &at, &h, &stored)) == 1) {
		int result = fn(r, &h, stored, at, ctx);
		if (result == -EBADMSG) {
			r->stats.torn_blocks++;
			result = 0;
		}
		if (result)
			return result;
		at += sizeof(h) + h.stored;
	}
	return found;
}

struct each {
	d9_segr_fn *fn;
	void *ctx;
	int result; /* the callback's, which may have any value */
};

static int each_events(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at,
		       struct each *each)
{
	struct decode d = {.r = r, .h = *h};
	int error = unpack(r, h, stored);
	if (error)
		return error;
	d.c = (struct d9_cursor){r->raw, r->raw + h->raw};
	d.raw = r->raw;
	error = decode_block(&d);
	if (!error && has_blobs(&d))
		error = keep_block(&d, at);
	if (error)
		return error;
	r->stats.blocks++;
	r->decoded += h->n_records;
	each->result = deliver(&d, each->fn, each->ctx);
	return each->result ? -ECANCELED : 0;
}

/* The footer knows what was written: a block that is missing as a whole shows here and nowhere else. */
static int read_footer(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored)
{
	d9_u64 blocks, records;
	int error = unpack(r, h, stored);
	if (error)
		return error;
	struct d9_cursor c = {r->raw, r->raw + h->raw};
	if (!d9_uvar_need(&c, &blocks) || !d9_uvar_need(&c, &records))
		return -EBADMSG;
	r->stats.has_footer = true;
	if (records != r->decoded && !r->stats.torn_blocks)
		r->stats.torn_blocks++;
	return 0;
}

static int each_block_events(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at,
			     void *ctx)
{
	if (h->kind == D9_BLOCK_EVENTS)
		return each_events(r, h, stored, at, ctx);
	return h->kind == D9_BLOCK_FOOTER ? read_footer(r, h, stored) : 0;
}

int d9_segr_each(struct d9_segr *r, d9_segr_fn *fn, void *ctx)
{
	struct each each = {fn, ctx, 0};
	int error = each_block(r, each_block_events, &each);
	return each.result ? each.result : error;
}

struct each_run {
	d9_segr_run_fn *fn;
	void *ctx;
	int result;
};

static int each_block_runs(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at,
			   void *ctx)
{
	struct each_run *each = ctx;
	(void)at;
	if (h->kind != D9_BLOCK_EVENTS)
		return 0;
	struct decode d = {.r = r, .h = *h};
	int error = unpack(r, h, stored);
	if (error)
		return error;
	d.c = (struct d9_cursor){r->raw, r->raw + h->raw};
	error = get_runs(&d);
	if (error)
		return error;
	r->stats.blocks++;
	for (d9_u32 i = 0; i < h->n_runs && !each->result; i++)
		each->result = each->fn(each->ctx, &r->runs[i]);
	return each->result ? -ECANCELED : 0;
}

int d9_segr_each_run(struct d9_segr *r, d9_segr_run_fn *fn, void *ctx)
{
	struct each_run each = {fn, ctx, 0};
	int error = each_block(r, each_block_runs, &each);
	return each.result ? each.result : error;
}

void d9_segr_stats(const struct d9_segr *r, struct d9_segr_stats *ret) { *ret = r->stats; }
const struct d9_seg_header *d9_segr_header(const struct d9_segr *r) { return &r->header; }

/* ---- open and close -------------------------------------------------------------------------- */

static int check_header(struct d9_segr *r, const struct told *told)
{
	int error;
	struct d9_seg_header *h = &r->header;
	const d9_u8 *p = source_get(&r->src, 0, sizeof(*h), &error);
	if (!p && error != -ENODATA)
		return fail_read(told, error);
	if (!p)
		return fail(told, -EBADMSG, "ends inside its header, at byte %llu, so nothing is in it; delete it.",
			    (unsigned long long)r->src.size);
	memcpy(h, p, sizeof(*h));
	if (h->magic != D9_SEG_MAGIC)
		return fail(told, -EBADMSG,
			    "is not a d9 segment (it does not begin with D9SEGMT1); "
			    "give a .d9 file from a trace folder.");
	if (h->checksum != XXH3_64bits(h, offsetof(struct d9_seg_header, checksum)))
		return fail(told, -EBADMSG, "is damaged in its header (bytes 0 to 63); use another copy of it.");
	if (h->major > D9_SEG_MAJOR)
		return fail(told, -EPROTONOSUPPORT, "has format version %u, this d9 reads up to %u; use a newer d9.",
			    h->major, D9_SEG_MAJOR);
	if (h->incompat)
		return fail(told, -EPROTONOSUPPORT, "needs format features 0x%x that this d9 lacks; use a newer d9.",
			    h->incompat);
	if (h->major == 0 || h->header_bytes < sizeof(*h) || h->header_bytes > 4096)
		return fail(told, -EBADMSG,
			    "states version %u and a header of %u bytes, which cannot be; "
			    "use another copy of it.",
			    h->major, h->header_bytes);
	return 0;
}

/* Is there a whole block after `at`?  1, 0, or an error. */
static int any_block_after(struct d9_segr *r, d9_u64 at)
{
	struct d9_block_header h;
	const d9_u8 *stored;
	int found = 0;
	while (!found && at < r->src.size) {
		int error = find_magic(r, at + 1, &at);
		if (error)
			return error;
		found = block_at(r, at, &h, &stored);
	}
	return found;
}

static int check_descriptors(struct d9_segr *r, const struct told *told)
{
	struct d9_block_header h;
	const d9_u8 *stored;
	d9_u64 at = r->header.header_bytes;
	r->hash_budget = r->src.size;
	r->first_block = r->src.size;
	int found = block_at(r, at, &h, &stored), error = -EBADMSG;
	if (found == 0) {
		/* Cut before the first event?  Then nothing is lost.  Is there a block further on, something is. */
		found = any_block_after(r, at);
		r->torn_at_start = found == 0;
		error = found ? -EBADMSG : 0;
	} else if (found == 1 && h.kind == D9_BLOCK_DESCRIPTORS) {
		error = unpack(r, &h, stored);
		if (!error)
			error = get_descriptors(r, &h);
		r->first_block = at + sizeof(h) + h.stored;
	}
	if (found < 0 || error == -ENOMEM)
		return fail_read(told, found < 0 ? found : error);
	if (error == -EPROTO)
		return fail(told, -EPROTONOSUPPORT,
			    "describes events in a way that this d9 does not know; use a newer d9.");
	if (error)
		return fail(told, -EBADMSG,
			    "is damaged in its table of events (the block at byte %u), without which "
			    "the rest cannot be read; use another copy of it.",
			    r->header.header_bytes);
	return 0;
}

/* Takes over src->fd. */
static int open_source(const struct source *src, const struct told *told, struct d9_segr **ret)
{
	struct d9_segr *r = calloc(1, sizeof(*r));
	if (!r) {
		if (src->fd >= 0)
			close(src->fd);
		return fail_read(told, -ENOMEM);
	}
	r->src = *src;
	int error = check_header(r, told);
	if (!error)
		error = check_descriptors(r, told);
	if (error) {
		d9_segr_close(r);
		return error;
	}
	*ret = r;
	return 0;
}

int d9_segr_open_memory(const void *bytes, size_t n, struct d9_segr **ret, char *err, size_t n_err)
{
	struct told told = {"segment in memory", err, n_err};
	struct source src = {.mem = bytes ? bytes : (const void *)"", .fd = -1, .size = bytes ? n : 0};
	return open_source(&src, &told, ret);
}

int d9_segr_open_at(int dirfd, const char *name, struct d9_segr **ret, char *err, size_t n_err)
{
	struct told told = {name, err, n_err};
	/* O_NONBLOCK: a fifo of this name must not hold us up before we see that it is one. */
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = -errno;
	if (fd < 0 && error == -ELOOP)
		return fail(&told, error, "is a symbolic link, which is not followed; give the file itself.");
	if (fd < 0)
		return fail(&told, error, "cannot be opened: %s; check the name and your rights.", strerror(-error));
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return fail(&told, -EINVAL, "is not a regular file; give a .d9 file from a trace folder.");
	}
	struct source src = {.fd = fd, .size = (d9_u64)st.st_size};
	return open_source(&src, &told, ret);
}

int d9_segr_open(const char *path, struct d9_segr **ret, char *err, size_t n_err)
{
	return d9_segr_open_at(AT_FDCWD, path, ret, err, n_err);
}

void d9_segr_close(struct d9_segr *r)
{
	if (!r)
		return;
	while (r->kept) {
		struct kept *k = r->kept;
		r->kept = k->next;
		free(k->raw);
		free(k);
	}
	if (r->src.fd >= 0)
		close(r->src.fd);
	free(r->src.window);
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++)
		free(r->plan[id]);
	free(r->blobs);
	free(r->raw);
	free(r->rows);
	free(r->places);
	free(r->sites);
	free(r->runs);
	free(r);
}
