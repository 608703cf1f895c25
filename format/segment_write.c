/*
 * Records in, segment bytes out: see segment_write.h for who may call what.
 *
 * d9_segw_add copies a record's fixed part into the gather and its tail into the dictionary; d9_segw_flush
 * turns the gather by 90 degrees.  Nothing here allocates or keeps more than 512 bytes on the stack: the
 * thread that drains may be the program's own, with a stack as small as the program chose.
 *
 * Invariants
 *   at[i], next[i]     of record i as added; i < n <= D9_BLOCK_RECORDS_MAX
 *   gather             fixed parts, each followed by a word with the blob's id where the event has a tail
 *   runs               each stands for records begin..end of one chunk without a hole, so that
 *                      (thread, serial, begin, end) names them exactly
 *   pending blobs      are in the dictionary and not yet in the file; only a block that reached the sink
 *                      takes them off the list, so an abandoned block leaves no reference without a blob
 *   error              once the sink has failed nothing is added or written until d9_segw_abandon
 */
#include "segment_write.h"
#include "codec.h"

#include <errno.h>
#include <lz4.h>
#include <xxhash.h>

#define GATHER_BYTES (256u << 10) /* 4096 spans: the transposed block stays in the L2 cache and in LZ4's window */
#define RUNS_MAX 2048u
#define RUN_BYTES_MAX 25u /* five numbers of 32 bits */
#define BLOB_AREA_BYTES (128u << 10)
#define BLOB_BYTES_MAX 32768u /* a record's length has 15 bits */
#define COLUMN_PREFIX 3u
/* A number of 32 (64) bits takes up to 5 (10) bytes, so fields grow by a quarter; t takes 11 with site 5 and type 1 in 16. */
#define RAW_BYTES (384u << 10)
_Static_assert(GATHER_BYTES / 4 * 5 + RUNS_MAX * RUN_BYTES_MAX + D9_EVENT_ID_MAX * 16 * COLUMN_PREFIX + 64 <= RAW_BYTES,
	       "a full gather fits when transposed");
/* A pending blob takes at least 8 bytes of the area, and type 1, id 3, kind 2, length 3 in the block. */
_Static_assert(BLOB_AREA_BYTES + BLOB_AREA_BYTES / 8 * 9 + RUN_BYTES_MAX + 64 <= RAW_BYTES, "all pending blobs fit");
_Static_assert(RAW_BYTES < 1u << 21, "a column's length fits its prefix");

#define DICT_SLOTS 32768u
#define DICT_MAX 24576u
#define LZ4_ACCELERATION 1
#define LZ4_STATE_BYTES 16416u
_Static_assert(LZ4_STATE_BYTES >= sizeof(LZ4_stream_t), "LZ4's state");
#define TICK_FIELDS_MAX 6u
#define RUN_CACHE 1024u
#define GATHERED_MAX 512u /* of one record */

/* What add and flush need to know of an event, in 16 bytes. */
struct plan {
	d9_u16 size;     /* NOT_KNOWN: no such event, or not for others to make */
	d9_u16 gathered; /* size, and a word for the blob's id if there may be a tail */
	d9_u8 has_tail, t_codec, dur_off, n_ticks;
	d9_u8 ticks_off[TICK_FIELDS_MAX]; /* TICKS and TIME fields but a span's duration */
};
#define NOT_KNOWN 0xffff /* no record is that long */

/* A run and its records: a list through next[], so that records of a thread that came in pieces are one run. */
struct run {
	struct d9_run run;
	d9_u16 first, last;
};

struct d9_segw {
	d9_segw_sink *sink;
	void *sink_ctx;
	bool begun;
	int error; /* why nothing is taken or written: -EINVAL outside a segment, the sink's until abandon */
	d9_u32 clock, shift;
	d9_u64 written, records, blocks;
	d9_u64 seg_t_min, seg_t_max;

	/* the block being gathered */
	d9_u32 n, n_bytes, n_runs, last_run;
	d9_u64 t_min, t_max; /* ticks; t_min > t_max: none */
	d9_u32 count[D9_EVENT_ID_MAX + 1];
	d9_u16 run_cache[RUN_CACHE]; /* by thread: its newest run + 1 */

	/* blobs that are not yet in the file: {tail word, pad, bytes, zeros up to a multiple of 8} each */
	d9_u32 pending_bytes, n_pending;

	/* dictionary: slot = epoch << 16 | id, so that a new segment need not clear it */
	d9_u32 n_ids, epoch;

	struct plan plan[D9_EVENT_ID_MAX + 1];
	d9_u32 row_next[D9_EVENT_ID_MAX + 1]; /* at flush: where the event's next record goes in row[] */
	d9_u32 group_next[D9_SITE_GROUPS];
	struct d9_codec_table table;

	_Alignas(64) d9_u64 gap[D9_BLOCK_RECORDS_MAX]; /* by row */
	d9_u64 gap_by_site[D9_BLOCK_RECORDS_MAX];
	d9_u32 at[D9_BLOCK_RECORDS_MAX];  /* as added */
	d9_u32 row[D9_BLOCK_RECORDS_MAX]; /* event by event */
	d9_u32 row_by_site[D9_BLOCK_RECORDS_MAX];
	d9_u16 next[D9_BLOCK_RECORDS_MAX]; /* as added: the next record of the run */
	d9_u8 group[D9_BLOCK_RECORDS_MAX]; /* by row: D9_SITE_GROUP */
	d9_u16 run_order[RUNS_MAX];
	struct run runs[RUNS_MAX];

	_Alignas(64) d9_u8 gather[GATHER_BYTES];
	_Alignas(64) d9_u8 pending[BLOB_AREA_BYTES];
	_Alignas(64) d9_u32 slots[DICT_SLOTS];
	d9_u64 keys[DICT_MAX + 1][2];
	_Alignas(64) d9_u64 lz4[LZ4_STATE_BYTES / 8];
	/* Room for headers before both, so that a block goes to the sink in one piece whether packed or not. */
	_Alignas(64) d9_u8 raw_head[sizeof(struct d9_seg_header) + sizeof(struct d9_block_header)];
	d9_u8 raw[RAW_BYTES];
	_Alignas(64) d9_u8 out_head[sizeof(struct d9_seg_header) + sizeof(struct d9_block_header)];
	d9_u8 out[LZ4_COMPRESSBOUND(RAW_BYTES)];
};
_Static_assert(offsetof(struct d9_segw, raw) == offsetof(struct d9_segw, raw_head) + 120, "no hole before raw");
_Static_assert(offsetof(struct d9_segw, out) == offsetof(struct d9_segw, out_head) + 120, "no hole before out");
_Static_assert(DICT_MAX < 1u << 16, "an id fits a slot");
_Static_assert(D9_BLOCK_RECORDS_MAX <= 1u << 16 && RUNS_MAX < 1u << 16, "numbers of records and runs have 16 bits");
_Static_assert(D9_SITE_GROUPS <= 256, "a group fits a byte");

/* What the plans assume of every event: it fits, its times are 64 bits wide and there is room to name them. */
#define IS_TICKS(unit) (D9_UNIT_##unit == D9_UNIT_TICKS || D9_UNIT_##unit == D9_UNIT_TIME)
#define D9_EVENT(id, name, kind, since, doc)                                                   \
	_Static_assert(sizeof(struct d9_ev_##name) + 8 <= GATHERED_MAX, #name " is too long"); \
	_Static_assert(0
#define D9_FIELD(type, field, unit, since, doc) +(IS_TICKS(unit) ? sizeof(d9_##type) == 8 ? 1 : 100 : 0)
#define D9_TAIL(field, unit, since, doc)
#define D9_END(name) <= TICK_FIELDS_MAX, #name " has a time of 32 bits or too many");
#include "events.def"
#undef D9_EVENT
#undef D9_FIELD
#undef D9_TAIL
#undef D9_END

/* ---- small things ---------------------------------------------------------------------------- */

/* "Not known" stays that in any unit. */
static inline d9_u64 to_ticks(d9_u64 v, d9_u32 shift) { return v == D9_NOT_KNOWN ? v : v >> shift; }

static inline d9_u64 load64(const void *p)
{
	d9_u64 v;
	memcpy(&v, p, 8);
	return v;
}

static inline void store64(void *p, d9_u64 v) { memcpy(p, &v, 8); }

static d9_u8 *put_text(d9_u8 *p, const char *s)
{
	d9_u32 n = 0;
	while (s[n])
		n++;
	p = d9_uvar_put(p, n);
	memcpy(p, s, n);
	return p + n;
}

/* A column is its length and its bytes.  The length is known last, so it has a fixed width where it is not 0. */
static d9_u8 *close_column(d9_u8 *column, const d9_u8 *end)
{
	d9_u32 n = (d9_u32)(end - (column + COLUMN_PREFIX));
	if (n == 0) {
		*column = 0;
		return column + 1;
	}
	column[0] = (d9_u8)(n | 0x80);
	column[1] = (d9_u8)(n >> 7 | 0x80);
	column[2] = (d9_u8)(n >> 14);
	return column + COLUMN_PREFIX + n;
}

/* Forgets the gathered block, not the blobs that it brought. */
static void clear_block(struct d9_segw *w)
{
	w->n = w->n_bytes = w->n_runs = 0;
	w->last_run = 0;
	w->t_min = ~0ull;
	w->t_max = 0;
	memset(w->count, 0, sizeof(w->count));
	memset(w->run_cache, 0, sizeof(w->run_cache));
}

static int send(struct d9_segw *w, const void *bytes, size_t n)
{
	int r = w->sink(w->sink_ctx, bytes, n);
	if (r) {
		w->error = r;
		return r;
	}
	w->written += n;
	return 0;
}

/* Packs raw..raw_end into a block and sends it; `lead` bytes that stand before the block's header go with it. */
static int send_block(struct d9_segw *w, struct d9_block_header *h, const d9_u8 *raw_end, const void *lead,
		      size_t lead_bytes)
{
	h->magic = D9_BLOCK_MAGIC;
	h->raw = h->stored = (d9_u32)(raw_end - w->raw);
	h->clock = w->clock;
	d9_u8 *body = w->raw;
	int packed = LZ4_compress_fast_extState(w->lz4, (const char *)w->raw, (char *)w->out, (int)h->raw,
						(int)sizeof(w->out), LZ4_ACCELERATION);
	if (packed > 0 && (d9_u32)packed < h->raw) {
		h->stored = (d9_u32)packed;
		h->flags |= D9_BLOCK_LZ4;
		body = w->out;
	}
	d9_u8 *head = body - sizeof(*h);
	memcpy(head, h, sizeof(*h));
	h->checksum = XXH3_64bits(head, sizeof(*h) + h->stored);
	memcpy(head, h, sizeof(*h));
	if (lead_bytes)
		memcpy(head - lead_bytes, lead, lead_bytes);
	int r = send(w, head - lead_bytes, lead_bytes + sizeof(*h) + h->stored);
	if (r == 0) {
		w->blocks++;
		w->records += h->n_records;
	}
	return r;
}

/* ---- begin: header and descriptors ----------------------------------------------------------- */

static void make_plan(struct plan *plan, const struct d9_event_desc *e)
{
	plan->size = e->size;
	plan->gathered = (d9_u16)(e->size + (e->has_tail ? 8 : 0));
	plan->has_tail = e->has_tail;
	plan->t_codec = (d9_u8)d9_codec_of_t(e);
	unsigned off = sizeof(struct d9_rec);
	for (unsigned i = 0; i < e->n_fields; off += e->fields[i++].size) {
		const struct d9_field_desc *f = &e->fields[i];
		if (f->unit != D9_UNIT_TICKS && f->unit != D9_UNIT_TIME)
			continue;
		if (e->kind == D9_KIND_SPAN && f->unit == D9_UNIT_TICKS && !plan->dur_off)
			plan->dur_off = (d9_u8)off;
		else
			plan->ticks_off[plan->n_ticks++] = (d9_u8)off;
	}
}

size_t d9_segw_bytes(void) { return sizeof(struct d9_segw); }

struct d9_segw *d9_segw_init(void *mem)
{
	struct d9_segw *w = mem;
	w->error = -EINVAL;
	w->epoch = 0;
	w->begun = false;
	w->n_pending = w->pending_bytes = 0;
	w->written = w->records = w->blocks = 0;
	memset(w->plan, 0, sizeof(w->plan));
	memset(w->slots, 0, sizeof(w->slots));
	clear_block(w);
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		w->plan[id].size = NOT_KNOWN;
		if (d9_events[id].name && id != D9_EV_blob) /* blobs are made here and nowhere else */
			make_plan(&w->plan[id], &d9_events[id]);
	}
	return w;
}

static d9_u8 *put_field(d9_u8 *p, const char *name, const char *type, const char *unit, enum d9_codec codec)
{
	p = put_text(p, name);
	p = put_text(p, type);
	p = put_text(p, unit);
	return d9_uvar_put(p, codec);
}

static d9_u8 *put_descriptor(d9_u8 *p, d9_u32 id, const struct d9_event_desc *e)
{
	bool is_blob = id == D9_EV_blob;
	p = d9_uvar_put(p, id);
	p = put_text(p, e->name);
	p = put_text(p, e->kind_name);
	p = d9_uvar_put(p, e->size);
	p = d9_uvar_put(p, d9_codec_of_t(e));
	p = d9_uvar_put(p, D9_CODEC_OF_SITE);
	unsigned n = e->n_fields + e->has_tail;
	p = d9_uvar_put(p, n + is_blob);
	for (unsigned i = 0; i < n; i++) {
		const struct d9_field_desc *f = &e->fields[i];
		p = put_field(p, f->name, f->type, f->unit_name, d9_codec_of_field(f));
	}
	return is_blob ? put_field(p, "bytes", "tail", "DATA", D9_CODEC_BYTES) : p;
}

static d9_u8 *put_descriptors(d9_u8 *p)
{
	d9_u32 n = 0;
	for (unsigned id = 1; id <= D9_EVENT_ID_MAX; id++)
		n += d9_events[id].name != 0;
	p = d9_uvar_put(p, n);
	for (unsigned id = 1; id <= D9_EVENT_ID_MAX; id++)
		if (d9_events[id].name)
			p = put_descriptor(p, id, &d9_events[id]);
	return p;
}

static void empty_dictionary(struct d9_segw *w)
{
	w->n_ids = w->n_pending = w->pending_bytes = 0;
	w->epoch = (w->epoch + 1) & 0xffff;
	if (w->epoch == 0) {
		memset(w->slots, 0, sizeof(w->slots));
		w->epoch = 1;
	}
}

int d9_segw_begin(struct d9_segw *w, const struct d9_seg_header *ident, d9_segw_sink *sink, void *ctx)
{
	struct d9_seg_header h = *ident;
	h.magic = D9_SEG_MAGIC;
	h.major = D9_SEG_MAJOR;
	h.minor = D9_SEG_MINOR;
	h.header_bytes = sizeof(h);
	h.checksum = XXH3_64bits(&h, offsetof(struct d9_seg_header, checksum));
	w->sink = sink;
	w->sink_ctx = ctx;
	w->error = 0;
	w->clock = h.clock;
	w->shift = h.clock & 63;
	w->written = w->records = w->blocks = 0;
	w->seg_t_min = ~0ull;
	w->seg_t_max = 0;
	clear_block(w);
	empty_dictionary(w);
	struct d9_block_header b = {.kind = D9_BLOCK_DESCRIPTORS};
	int r = send_block(w, &b, put_descriptors(w->raw), &h, sizeof(h));
	w->begun = r == 0;
	return r;
}

/* ---- add ------------------------------------------------------------------------------------- */

/* 0 with *ret = the blob's id, -ENOSPC, -EOVERFLOW. */
static int intern(struct d9_segw *w, d9_u32 kind, const d9_u8 *bytes, d9_u32 n, d9_u32 *ret)
{
	XXH128_hash_t hash = XXH3_128bits(bytes, n);
	d9_u64 key = hash.low64 ^ kind * 0x9e3779b97f4a7c15ull;
	d9_u32 i = (d9_u32)key % DICT_SLOTS;
	/* 128 bits stand for the bytes: two different tails with one key are not to be expected in the life of anything. */
	for (; w->slots[i] >> 16 == w->epoch; i = (i + 1) % DICT_SLOTS) {
		d9_u32 id = w->slots[i] & 0xffff;
		if (w->keys[id][0] == key && w->keys[id][1] == hash.high64) {
			*ret = id;
			return 0;
		}
	}
	if (w->n_ids == DICT_MAX)
		return -EOVERFLOW;
	d9_u32 room = (8 + n + 7) & ~7u;
	if (room > BLOB_AREA_BYTES - w->pending_bytes)
		return -ENOSPC;
	d9_u8 *p = w->pending + w->pending_bytes;
	struct d9_tail tail = {.kind_bytes = D9_TAIL_WORD(kind, n)};
	memcpy(p, &tail, sizeof(tail));
	memcpy(p + sizeof(tail), bytes, n);
	w->pending_bytes += room;
	w->n_pending++;
	d9_u32 id = ++w->n_ids;
	w->slots[i] = w->epoch << 16 | id;
	w->keys[id][0] = key;
	w->keys[id][1] = hash.high64;
	*ret = id;
	return 0;
}

/*
 * What follows the fixed part of a record: 0 with *blob, its id or 0; -EBADMSG: the record is not what its
 * event says, or its tail is longer than it; -ENOSPC, -EOVERFLOW as intern.
 */
static int take_tail(struct d9_segw *w, const struct plan *plan, const struct d9_rec *rec, d9_u32 *blob)
{
	d9_u32 len = D9_REC_LEN(rec->head);
	struct d9_tail tail;
	if (!plan->has_tail || len % 8 || len < plan->size + sizeof(tail))
		return -EBADMSG;
	memcpy(&tail, (const d9_u8 *)rec + plan->size, sizeof(tail));
	d9_u32 kind = D9_TAIL_KIND(tail.kind_bytes), n = D9_TAIL_BYTES(tail.kind_bytes);
	if (n > len - plan->size - sizeof(tail))
		return -EBADMSG;
	return kind ? intern(w, kind, (const d9_u8 *)rec + plan->size + sizeof(tail), n, blob) : 0;
}

static bool continues(const struct d9_segw *w, d9_u32 run, d9_u32 thread, d9_u32 serial, d9_u32 begin)
{
	const struct d9_run *r = &w->runs[run].run;
	return run < w->n_runs && r->thread == thread && r->serial == serial && r->end == begin;
}

/* The run that a record belongs to, or a new one, still empty; RUNS_MAX: there is no room for it. */
static d9_u32 find_run(struct d9_segw *w, d9_u32 thread, d9_u32 serial, d9_u32 begin)
{
	d9_u32 i = w->run_cache[thread % RUN_CACHE] - 1u;
	if (i < w->n_runs && continues(w, i, thread, serial, begin))
		return i;
	if (w->n_runs == RUNS_MAX)
		return RUNS_MAX;
	i = w->n_runs++;
	w->runs[i].run = (struct d9_run){.thread = thread, .serial = serial, .begin = begin, .end = begin};
	w->run_cache[thread % RUN_CACHE] = (d9_u16)(i + 1);
	return i;
}

/* Appends record number w->n to the run. */
static inline void extend_run(struct d9_segw *w, d9_u32 i, d9_u32 end)
{
	struct run *run = &w->runs[i];
	if (run->run.n++)
		w->next[run->last] = (d9_u16)w->n;
	else
		run->first = (d9_u16)w->n;
	run->last = (d9_u16)w->n;
	run->run.end = end;
	w->last_run = i;
}

static inline void note_time(struct d9_segw *w, d9_u64 t)
{
	if (!t)
		return;
	t >>= w->shift;
	w->t_min = t < w->t_min ? t : w->t_min;
	w->t_max = t > w->t_max ? t : w->t_max;
}

int d9_segw_add(struct d9_segw *w, d9_u32 thread, d9_u32 serial, d9_u32 begin, d9_u32 end, const struct d9_rec *rec)
{
	if (w->error)
		return w->error;
	d9_u32 id = D9_REC_ID(rec->head), blob = 0;
	if (id > D9_EVENT_ID_MAX || end < begin)
		return -EBADMSG;
	const struct plan *plan = &w->plan[id];
	if (w->n == D9_BLOCK_RECORDS_MAX || w->n_bytes > GATHER_BYTES - GATHERED_MAX)
		return -ENOSPC;
	if (D9_REC_LEN(rec->head) != plan->size) {
		int r = take_tail(w, plan, rec, &blob);
		if (r)
			return r;
	}
	d9_u32 run = w->last_run;
	if (!continues(w, run, thread, serial, begin) && (run = find_run(w, thread, serial, begin)) == RUNS_MAX)
		return -ENOSPC;
	extend_run(w, run, end);
	w->at[w->n++] = w->n_bytes;
	w->count[id]++;
	d9_u8 *to = w->gather + w->n_bytes;
	w->n_bytes += plan->gathered;
	/* The word of the blob is written first and always: only an event with a tail has it, else the record lies over it. */
	store64(to + plan->gathered - 8, blob);
	memcpy(to, rec, plan->size);
	note_time(w, rec->t);
	return 0;
}

/* ---- flush ----------------------------------------------------------------------------------- */

/* The drainer's own runs go first: what they define is what the others refer to. */
static void order_runs(struct d9_segw *w)
{
	d9_u32 k = 0;
	for (int own = 1; own >= 0; own--)
		for (d9_u32 i = 0; i < w->n_runs; i++)
			if ((w->runs[i].run.thread == D9_THREAD_NONE) == own)
				w->run_order[k++] = (d9_u16)i;
}

static d9_u8 *put_runs(const struct d9_segw *w, d9_u8 *p)
{
	d9_u32 thread = 0, serial = 0;
	for (d9_u32 i = 0; i < w->n_runs; i++) {
		const struct d9_run *run = &w->runs[w->run_order[i]].run;
		p = d9_uvar_put(p, d9_zigzag((d9_u64)run->thread - thread));
		p = d9_uvar_put(p, d9_zigzag((d9_u64)run->serial - serial));
		p = d9_uvar_put(p, run->begin);
		p = d9_uvar_put(p, run->end - run->begin);
		p = d9_uvar_put(p, run->n);
		thread = run->thread;
		serial = run->serial;
	}
	return p;
}

/* Turns the raw times of a gathered record into ticks.  Returns what its t column holds. */
static inline d9_u64 quantise(const struct d9_segw *w, const struct plan *plan, struct d9_rec *rec, d9_u64 *run_t)
{
	d9_u64 raw_t = rec->t, t = raw_t >> w->shift, from = t;
	d9_u8 *bytes = (d9_u8 *)rec;
	rec->t = t;
	if (plan->t_codec == D9_CODEC_T_GAP) {
		/* Both ends are quantised, and the duration is their difference: so spans that touch still do. */
		from = (raw_t - load64(bytes + plan->dur_off)) >> w->shift;
		store64(bytes + plan->dur_off, t - from);
	}
	for (unsigned i = 0; i < plan->n_ticks; i++) {
		d9_u64 v = load64(bytes + plan->ticks_off[i]);
		if (v)
			store64(bytes + plan->ticks_off[i], to_ticks(v, w->shift));
	}
	d9_u64 gap = from - *run_t;
	if (plan->t_codec != D9_CODEC_T)
		*run_t = t;
	return gap;
}

/* Writes the type of each record in the order of the runs, and sorts the records by event. */
static d9_u8 *put_types(struct d9_segw *w, d9_u8 *p)
{
	d9_u32 start = 0;
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		w->row_next[id] = start;
		start += w->count[id];
	}
	for (d9_u32 k = 0; k < w->n_runs; k++) {
		const struct run *run = &w->runs[w->run_order[k]];
		d9_u64 run_t = w->t_min;
		d9_u32 i = run->first;
		for (d9_u32 left = run->run.n; left; left--, i = w->next[i]) {
			struct d9_rec *rec = (struct d9_rec *)(w->gather + w->at[i]);
			d9_u32 id = D9_REC_ID(rec->head), row = w->row_next[id]++;
			*p++ = (d9_u8)id;
			w->row[row] = w->at[i];
			w->group[row] = (d9_u8)D9_SITE_GROUP(rec->site);
			w->gap[row] = quantise(w, &w->plan[id], rec, &run_t);
		}
	}
	return p;
}

static d9_u8 *put_column(struct d9_segw *w, enum d9_codec codec, const struct d9_column_src *src, d9_u8 *p)
{
	return close_column(p, d9_codec_put(codec, src, &w->table, p + COLUMN_PREFIX));
}

static d9_u8 *put_t(struct d9_segw *w, const struct d9_column_src *src, const d9_u64 *gap, enum d9_codec codec,
		    d9_u8 *p)
{
	if (codec == D9_CODEC_T)
		return put_column(w, D9_CODEC_UINT, src, p);
	d9_u8 *q = p + COLUMN_PREFIX;
	for (d9_u32 i = 0; i < src->n; i++)
		q = d9_forward_put(q, gap[i]);
	return close_column(p, q);
}

/* Sorts an event's rows and gaps by the group of their site; records of one group keep their order. */
static void group_by_site(struct d9_segw *w, d9_u32 row, d9_u32 n)
{
	d9_u32 *next = w->group_next;
	memset(next, 0, sizeof(w->group_next));
	for (d9_u32 i = row; i < row + n; i++)
		next[w->group[i]]++;
	d9_u32 start = row;
	for (unsigned g = 0; g < D9_SITE_GROUPS; g++) {
		d9_u32 members = next[g];
		next[g] = start;
		start += members;
	}
	for (d9_u32 i = row; i < row + n; i++) {
		d9_u32 to = next[w->group[i]]++;
		w->row_by_site[to] = w->row[i];
		w->gap_by_site[to] = w->gap[i];
	}
}

/* All columns of one event: site, t, fields, tail. */
static d9_u8 *put_event(struct d9_segw *w, unsigned id, d9_u32 row, d9_u8 *p)
{
	const struct d9_event_desc *e = &d9_events[id];
	struct d9_column_src src = {.base = w->gather, .at = w->row + row, .n = w->count[id]};
	src.off = offsetof(struct d9_rec, site);
	src.size = 4;
	p = put_column(w, D9_CODEC_OF_SITE, &src, p);
	group_by_site(w, row, src.n);
	src.at = w->row_by_site + row;
	src.off = offsetof(struct d9_rec, t);
	src.size = 8;
	p = put_t(w, &src, w->gap_by_site + row, w->plan[id].t_codec, p);
	src.off = sizeof(struct d9_rec);
	for (unsigned i = 0; i < e->n_fields + e->has_tail; i++) {
		const struct d9_field_desc *f = &e->fields[i];
		src.size = f->is_tail ? 4 : f->size;
		src.is_signed = f->is_signed;
		p = put_column(w, d9_codec_of_field(f), &src, p);
		src.off += src.size;
	}
	return p;
}

static int flush_events(struct d9_segw *w)
{
	if (w->t_min > w->t_max)
		w->t_min = w->t_max = 0;
	order_runs(w);
	d9_u8 *p = put_types(w, put_runs(w, w->raw));
	d9_u32 row = 0;
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		if (w->count[id])
			p = put_event(w, id, row, p);
		row += w->count[id];
	}
	struct d9_block_header h = {.kind = D9_BLOCK_EVENTS, .n_records = w->n, .n_runs = w->n_runs};
	h.t_min = w->t_min;
	h.t_max = w->t_max;
	int r = send_block(w, &h, p, 0, 0);
	if (r)
		return r;
	if (w->t_max) {
		w->seg_t_min = w->t_min < w->seg_t_min ? w->t_min : w->seg_t_min;
		w->seg_t_max = w->t_max > w->seg_t_max ? w->t_max : w->seg_t_max;
	}
	clear_block(w);
	return 0;
}

static const struct d9_tail *pending_at(const struct d9_segw *w, d9_u32 at)
{
	return (const struct d9_tail *)(w->pending + at);
}
static d9_u32 pending_next(const struct d9_segw *w, d9_u32 at)
{
	return at + ((8 + D9_TAIL_BYTES(pending_at(w, at)->kind_bytes) + 7) & ~7u);
}

/* The columns of `blob` in the order of its descriptor: site, t, id, kind, bytes. */
static d9_u8 *put_blobs(const struct d9_segw *w, d9_u8 *p)
{
	p = close_column(p, p + COLUMN_PREFIX);
	p = close_column(p, p + COLUMN_PREFIX);
	d9_u8 *q = d9_uvar_put(p + COLUMN_PREFIX, d9_zigzag(w->n_ids - w->n_pending + 1));
	for (d9_u32 i = 1; i < w->n_pending; i++)
		q = d9_uvar_put(q, d9_zigzag(1));
	p = close_column(p, q);
	q = p + COLUMN_PREFIX;
	for (d9_u32 at = 0; at < w->pending_bytes; at = pending_next(w, at))
		q = d9_uvar_put(q, D9_TAIL_KIND(pending_at(w, at)->kind_bytes));
	p = close_column(p, q);
	q = p + COLUMN_PREFIX;
	for (d9_u32 at = 0; at < w->pending_bytes; at = pending_next(w, at))
		q = d9_uvar_put(q, D9_TAIL_BYTES(pending_at(w, at)->kind_bytes));
	for (d9_u32 at = 0; at < w->pending_bytes; at = pending_next(w, at)) {
		d9_u32 n = D9_TAIL_BYTES(pending_at(w, at)->kind_bytes);
		memcpy(q, w->pending + at + 8, n);
		q += n;
	}
	return close_column(p, q);
}

static int flush_blobs(struct d9_segw *w)
{
	if (!w->n_pending)
		return 0;
	d9_u8 *p = w->raw;
	p = d9_uvar_put(p, d9_zigzag(D9_THREAD_NONE));
	memset(p, 0, 3); /* serial, begin, end */
	p = d9_uvar_put(p + 3, w->n_pending);
	memset(p, D9_EV_blob, w->n_pending);
	p = put_blobs(w, p + w->n_pending);
	struct d9_block_header h = {.kind = D9_BLOCK_EVENTS, .n_records = w->n_pending, .n_runs = 1};
	int r = send_block(w, &h, p, 0, 0);
	if (r == 0)
		w->n_pending = w->pending_bytes = 0;
	return r;
}

int d9_segw_flush(struct d9_segw *w)
{
	if (w->error)
		return w->error;
	int r = flush_blobs(w);
	if (r == 0 && w->n)
		r = flush_events(w);
	return r;
}

void d9_segw_abandon(struct d9_segw *w)
{
	clear_block(w);
	w->error = w->begun ? 0 : -EINVAL;
}

int d9_segw_end(struct d9_segw *w)
{
	int r = d9_segw_flush(w);
	if (r)
		return r;
	struct d9_block_header h = {.kind = D9_BLOCK_FOOTER};
	if (w->seg_t_min <= w->seg_t_max) {
		h.t_min = w->seg_t_min;
		h.t_max = w->seg_t_max;
	}
	d9_u8 *p = d9_uvar_put(w->raw, w->blocks);
	p = d9_uvar_put(p, w->records);
	p = d9_uvar_put(p, w->written);
	r = send_block(w, &h, p, 0, 0);
	if (r == 0) {
		w->begun = false;
		w->error = -EINVAL;
	}
	return r;
}

d9_u64 d9_segw_written(const struct d9_segw *w) { return w->written; }
d9_u64 d9_segw_records(const struct d9_segw *w) { return w->records; }
d9_u32 d9_segw_gathered(const struct d9_segw *w) { return w->n; }
