/*
 * Segment bytes in, records out.  For d9 and tests; may allocate.  Trusts nothing in the file: every
 * length, count and reference is checked, every error has a sentence.
 */
#ifndef D9_FORMAT_SEGMENT_READ_H
#define D9_FORMAT_SEGMENT_READ_H
#include "events.h"
#include "segment.h"

#include <stdbool.h>
#include <stddef.h>

struct d9_segr;

/* A tail or blob: bytes live as long as the reader. */
struct d9_bytes {
	d9_u32 kind; /* enum d9_tail_kind; D9_TAIL_NONE: none */
	d9_u32 n;
	const d9_u8 *p;
};

/*
 * One decoded record.  `rec` is the struct of this build's events.def (fields the file lacks are 0, fields
 * this build lacks are dropped; events this build lacks are not delivered); t and TICKS/TIME fields are
 * in ticks of `clock`.  Valid until the callback returns, except tail, which lives as long as the reader.
 */
struct d9_segr_event {
	const struct d9_rec *rec;
	d9_u16 id;
	d9_u32 clock;      /* D9_CLOCK_WORD of the block */
	struct d9_run run; /* n not used; begin..end of the whole run */
	d9_u32 index;      /* of the record within its run */
	struct d9_bytes tail;
};
/* Returns 0 to go on; anything else ends the iteration and is returned by d9_segr_each. */
typedef int d9_segr_fn(void *ctx, const struct d9_segr_event *ev);

struct d9_segr_stats {
	d9_u64 records, blocks; /* delivered; of events */
	d9_u64 torn_blocks;     /* cut off, failing their checksum, or missing by the footer's count */
	d9_u64 unknown_events;  /* records of events that this build does not have */
	d9_u64 lost_tails;      /* tails whose blob was in a torn block: delivered as none */
	d9_u64 t_min, t_max;
	bool has_footer;
};

/*
 * Opens a file (O_NOFOLLOW, regular files only) or a buffer that outlives the reader.
 * Returns 0; -errno with a sentence in err (at most n_err bytes): not a segment, a newer major version, an
 * unknown incompatible feature, no permission.
 */
int d9_segr_open(const char *path, struct d9_segr **ret, char *err, size_t n_err);
int d9_segr_open_at(int dirfd, const char *name, struct d9_segr **ret, char *err, size_t n_err);
int d9_segr_open_memory(const void *bytes, size_t n, struct d9_segr **ret, char *err, size_t n_err);
void d9_segr_close(struct d9_segr *r); /* takes NULL */

const struct d9_seg_header *d9_segr_header(const struct d9_segr *r);

/*
 * Delivers every record in the order of the file: META records before those that refer to them.  Damaged
 * blocks are counted and skipped (the search goes on at the next block magic).  0, the callback's value,
 * or -ENOMEM.
 */
int d9_segr_each(struct d9_segr *r, d9_segr_fn *fn, void *ctx);

/* What the last d9_segr_each saw. */
void d9_segr_stats(const struct d9_segr *r, struct d9_segr_stats *ret);

/* Calls fn for each run of the file (without decoding columns): how recovery knows what is already written. */
typedef int d9_segr_run_fn(void *ctx, const struct d9_run *run);
int d9_segr_each_run(struct d9_segr *r, d9_segr_run_fn *fn, void *ctx);

#endif
