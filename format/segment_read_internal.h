/*
 * What the parts of the segment reader share; see segment_read.c for the way through them.
 *
 *   segment_read.c    opening, closing, iterating
 *   segment_blocks.c  the file's bytes, whole blocks among them, unpacked
 *   segment_plan.c    the file's own table of events: how its columns are to be read
 *   segment_decode.c  a block's columns to rows, rows and blobs to records
 */
#ifndef D9_FORMAT_SEGMENT_READ_INTERNAL_H
#define D9_FORMAT_SEGMENT_READ_INTERNAL_H
#include "codec.h"
#include "segment_read.h"

#include <stdlib.h>

#define D9_PLAN_FIELDS_MAX 64u

struct d9_plan_column {
	d9_u8 codec, size; /* size in the row; 0: not wanted, skip its bytes */
	d9_u16 off;
};

/* How one event of the file is decoded.  A row is this build's struct, then three words of ours. */
struct d9_plan {
	bool dropped; /* this build has no such event */
	bool is_blob;
	d9_u8 t_codec, site_codec, id; /* id in this build */
	d9_u8 n_columns, n_before;
	d9_u16 size, dur_off;
	struct d9_plan_column column[D9_PLAN_FIELDS_MAX];
	d9_u16 before_off[D9_PLAN_FIELDS_MAX]; /* TIME fields, which need t */
};
#define D9_ROW_T(plan) ((plan)->size)
#define D9_ROW_DUR(plan) ((plan)->size + 8u)
#define D9_ROW_TAIL(plan) ((plan)->size + 16u) /* blob id, or where the bytes of a blob are: offset << 32 | n */
#define D9_ROW_STRIDE(plan) ((plan)->size + 24u)

/* Bytes of the file: a buffer of the caller's, or a descriptor and a window onto it. */
struct d9_segr_source {
	const d9_u8 *mem;
	int fd;
	d9_u64 size;
	d9_u8 *window;
	size_t window_cap, window_n;
	d9_u64 window_at;
};

/* An unpacked block that tails point into; kept until the reader is closed. */
struct d9_segr_kept {
	d9_u64 at;
	d9_u8 *raw;
	struct d9_segr_kept *next;
};

struct d9_segr {
	struct d9_seg_header header;
	struct d9_segr_source src;
	struct d9_plan *plan[D9_EVENT_ID_MAX + 1]; /* by the file's event id; 0: it describes none */
	d9_u64 first_block;                        /* offset of the block after the descriptors */
	bool torn_at_start;                        /* the file ends inside its descriptors */

	struct d9_segr_stats stats;
	d9_u64 decoded;     /* records of good blocks, delivered or not */
	d9_u64 hash_budget; /* bytes that may yet be hashed in vain: keeps a hostile file from costing size squared */

	struct d9_bytes *blobs; /* by id */
	d9_u32 n_blobs;
	struct d9_segr_kept *kept;

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

/* One block on its way from bytes to rows. */
struct d9_decode {
	struct d9_segr *r;
	struct d9_block_header h;
	struct d9_cursor c;
	const d9_u8 *raw;
	const d9_u8 *types;
	d9_u32 count[D9_EVENT_ID_MAX + 1];
	d9_u8 *rows[D9_EVENT_ID_MAX + 1];  /* the event's rows, grouped by site */
	d9_u32 *next[D9_EVENT_ID_MAX + 1]; /* the place among them of the event's next record */
};

static inline bool d9_grow(void *buffer, size_t *cap, size_t want)
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

/* segment_blocks.c.  n bytes at `at`, valid until the next call; 0 with *error: -ENODATA where the file has no such bytes. */
const d9_u8 *d9_segr_bytes(struct d9_segr_source *s, d9_u64 at, size_t n, int *error);
/* A whole block at `at`?  1 with *h and *stored; 0 if not; -ENOMEM or an error of reading. */
int d9_segr_block_at(struct d9_segr *r, d9_u64 at, struct d9_block_header *h, const d9_u8 **stored);
/* The next offset from `at` on where the four bytes of a block's magic stand, or the end of the file. */
int d9_segr_find_magic(struct d9_segr *r, d9_u64 at, d9_u64 *ret);
/*
 * The first whole block at or after *at, which is moved to it.  1, 0 at the end of the file, or an error.
 * What lies between is one torn block, however much it is.
 */
int d9_segr_next_block(struct d9_segr *r, d9_u64 *at, struct d9_block_header *h, const d9_u8 **stored);
/* The block's bytes as they were before packing, in r->raw; valid until the next call for any block. */
int d9_segr_unpack(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored);

/* segment_plan.c.  Reads the unpacked block of descriptors.  0, -ENOMEM, -EBADMSG, or -EPROTO: of a kind unknown here. */
int d9_segr_read_plans(struct d9_segr *r, const struct d9_block_header *h);

/* segment_decode.c.  Of an unpacked block: its runs alone, ... */
int d9_segr_decode_runs(struct d9_decode *d, struct d9_segr *r, const struct d9_block_header *h);
/* ... or all of it, checked before the first record is delivered.  `at`: where in the file.  0, -EBADMSG, -ENOMEM. */
int d9_segr_decode(struct d9_decode *d, struct d9_segr *r, const struct d9_block_header *h, d9_u64 at);
/* Delivers its records.  0, -ENOMEM, or what fn returned. */
int d9_segr_deliver(struct d9_decode *d, d9_segr_fn *fn, void *ctx);

#endif
