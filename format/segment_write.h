/*
 * Records in, segment bytes out.  Runs wherever a drainer runs, the host process included: after
 * d9_segw_init nothing here allocates, locks, or calls anything but memcpy-like functions, LZ4 with
 * its state in our memory, and the write callback.
 *
 * One writer per thread of execution.  No globals.
 */
#ifndef D9_FORMAT_SEGMENT_WRITE_H
#define D9_FORMAT_SEGMENT_WRITE_H
#include "events.h"
#include "segment.h"

#include <stddef.h>

/* Writes all of n bytes.  0, or -errno: then the caller must call d9_segw_abandon and may retry later. */
typedef int d9_segw_sink(void *ctx, const void *bytes, size_t n);

struct d9_segw;

/* Memory a writer needs (about 2 MiB, touched only as used); the caller maps it, zeroed, 64-aligned, and frees it. */
size_t d9_segw_bytes(void);

/* Makes a writer in `mem`.  Never fails. */
struct d9_segw *d9_segw_init(void *mem);

/*
 * Begins a segment: writes header and descriptors, empties the dictionaries.
 * clock: D9_CLOCK_WORD; its shift turns raw t into ticks.  0 or the sink's error.
 */
int d9_segw_begin(struct d9_segw *w, const struct d9_seg_header *ident, d9_segw_sink *sink, void *ctx);

/*
 * Adds one record to the block being gathered.  `rec` is a whole, checked-or-not copy of a record as it lies
 * in a chunk (raw tsc times): malformed ones (length, unknown id, tail beyond the end) are refused with
 * -EBADMSG and leave the writer unchanged.  Consecutive calls with the same thread and serial extend a run.
 * begin, end: where the record lies in its chunk (0, 0 for the drainer's own records).
 * Returns 0; -ENOSPC when the block is full: call d9_segw_flush, then add again; -EOVERFLOW when the
 * segment's dictionaries are full: end this segment and begin another; -EINVAL outside a segment; the sink's
 * error until d9_segw_abandon.  `blob` records are the writer's own to make: -EBADMSG.
 */
int d9_segw_add(struct d9_segw *w, d9_u32 thread, d9_u32 serial, d9_u32 begin, d9_u32 end, const struct d9_rec *rec);

/* Writes the gathered records as one block (new dictionary entries first, in a block of their own).  Nothing new: 0, writes nothing. */
int d9_segw_flush(struct d9_segw *w);

/* Forgets what was gathered since the last flush, after an error.  Dictionary entries that are not in the file yet go with the next flush. */
void d9_segw_abandon(struct d9_segw *w);

/* Flushes, writes the footer.  The writer can begin another segment.  If it fails and nothing is gathered (any more),
   then the records are written and only the footer is not: abandon, and call it again or let it be. */
int d9_segw_end(struct d9_segw *w);

/* Bytes handed to the sink since begin, and records in blocks written since begin; gathered but not yet flushed records. */
d9_u64 d9_segw_written(const struct d9_segw *w);
d9_u64 d9_segw_records(const struct d9_segw *w);
d9_u32 d9_segw_gathered(const struct d9_segw *w);

#endif
