/*
 * A block's columns to rows, rows to records.  All of a block is decoded, with every count and reference
 * checked, before the first of its records is delivered.
 */
#include "segment_read_internal.h"

#include <errno.h>
#include <string.h>

#define BLOB_IDS_MAX (1u << 20)

/* ---- columns to rows ------------------------------------------------------------------------- */

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

static int get_runs(struct d9_decode *d)
{
	struct d9_segr *r = d->r;
	if (!d9_grow(&r->runs, &r->runs_cap, (d->h.n_runs + 1u) * sizeof(*r->runs)))
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
static int get_types(struct d9_decode *d)
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
			bytes += (size_t)d->count[id] * D9_ROW_STRIDE(d->r->plan[id]);
	}
	if (!d9_grow(&d->r->rows, &d->r->rows_cap, bytes + 1) ||
	    !d9_grow(&d->r->places, &d->r->places_cap, (d->h.n_records + 1u) * sizeof(*d->r->places)) ||
	    !d9_grow(&d->r->sites, &d->r->sites_cap, (d->h.n_records + 1u) * sizeof(*d->r->sites)))
		return -ENOMEM;
	memset(d->r->rows, 0, bytes);
	d9_u8 *p = d->r->rows;
	d9_u32 *place = d->r->places;
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		d->rows[id] = p;
		d->next[id] = place;
		p += d->count[id] ? (size_t)d->count[id] * D9_ROW_STRIDE(d->r->plan[id]) : 0;
		place += d->count[id];
	}
	return 0;
}

static bool get_column_bytes(struct d9_decode *d, struct d9_cursor *ret)
{
	d9_u64 n;
	if (!d9_uvar_need(&d->c, &n) || n > (d9_u64)(d->c.end - d->c.p))
		return false;
	*ret = (struct d9_cursor){d->c.p, d->c.p + n};
	d->c.p += n;
	return true;
}

/* All lengths, then all bytes; the row gets where they are. */
static bool get_bytes(struct d9_decode *d, struct d9_cursor *c, const struct d9_column_dst *dst)
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

static bool get_column(struct d9_decode *d, const struct d9_plan *plan, unsigned id, struct d9_plan_column column)
{
	struct d9_cursor c;
	if (!get_column_bytes(d, &c))
		return false;
	struct d9_column_dst dst = {d->rows[id], D9_ROW_STRIDE(plan), d->count[id], column.off, column.size};
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
static bool get_sites(struct d9_decode *d, const struct d9_plan *plan, unsigned id)
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
		memcpy(d->rows[id] + (size_t)place * D9_ROW_STRIDE(plan) + offsetof(struct d9_rec, site), &r->sites[i],
		       4);
	}
	return true;
}

static bool get_columns(struct d9_decode *d, const struct d9_plan *plan, unsigned id)
{
	struct d9_plan_column t = {plan->t_codec, 8, D9_ROW_T(plan)};
	bool good = get_sites(d, plan, id) && get_column(d, plan, id, t);
	for (unsigned i = 0; good && i < plan->n_columns; i++)
		good = get_column(d, plan, id, plan->column[i]);
	return good;
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
static int keep_block(struct d9_decode *d, d9_u64 at)
{
	struct d9_segr *r = d->r;
	for (const struct d9_segr_kept *k = r->kept; k; k = k->next)
		if (k->at == at) {
			d->raw = k->raw;
			return 0;
		}
	struct d9_segr_kept *k = malloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	*k = (struct d9_segr_kept){at, r->raw, r->kept};
	r->kept = k;
	d->raw = r->raw;
	r->raw = 0;
	r->raw_cap = 0;
	return 0;
}

static bool has_blobs(const struct d9_decode *d)
{
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++)
		if (d->count[id] && d->r->plan[id]->is_blob)
			return true;
	return false;
}

/* ---- a block --------------------------------------------------------------------------------- */

static void begin(struct d9_decode *d, struct d9_segr *r, const struct d9_block_header *h)
{
	d->r = r;
	d->h = *h;
	d->c = (struct d9_cursor){r->raw, r->raw + h->raw};
	d->raw = r->raw;
}

int d9_segr_decode_runs(struct d9_decode *d, struct d9_segr *r, const struct d9_block_header *h)
{
	begin(d, r, h);
	return get_runs(d);
}

int d9_segr_decode(struct d9_decode *d, struct d9_segr *r, const struct d9_block_header *h, d9_u64 at)
{
	int error = d9_segr_decode_runs(d, r, h);
	if (!error)
		error = get_types(d);
	for (unsigned id = 0; !error && id <= D9_EVENT_ID_MAX; id++)
		if (d->count[id] && !get_columns(d, r->plan[id], id))
			error = -EBADMSG;
	return !error && has_blobs(d) ? keep_block(d, at) : error;
}

/* ---- delivery -------------------------------------------------------------------------------- */

static d9_u64 load64(const d9_u8 *p)
{
	d9_u64 v;
	memcpy(&v, p, 8);
	return v;
}

/* Makes a row a record: t, the TIME fields that count from it, head. */
static void finish_row(const struct d9_plan *plan, d9_u8 *row, d9_u64 *run_t)
{
	struct d9_rec *rec = (struct d9_rec *)row;
	d9_u64 t = load64(row + D9_ROW_T(plan));
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

static int find_tail(struct d9_decode *d, const struct d9_plan *plan, const d9_u8 *row, struct d9_bytes *ret)
{
	d9_u64 ref = load64(row + D9_ROW_TAIL(plan));
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

static int deliver_run(struct d9_decode *d, const struct d9_run *run, const d9_u8 **type, d9_segr_fn *fn, void *ctx)
{
	struct d9_segr *r = d->r;
	struct d9_segr_event ev = {.clock = d->h.clock, .run = *run};
	d9_u64 run_t = d->h.t_min;
	for (; ev.index < run->n; ev.index++) {
		unsigned id = *(*type)++;
		const struct d9_plan *plan = r->plan[id];
		d9_u8 *row = d->rows[id] + (size_t)*d->next[id]++ * D9_ROW_STRIDE(plan);
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

int d9_segr_deliver(struct d9_decode *d, d9_segr_fn *fn, void *ctx)
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
