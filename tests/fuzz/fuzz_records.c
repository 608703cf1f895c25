/*
 * Any bytes as records that lie in an arena, which whoever may write to it may have made.  What the writer
 * takes it must write, and the reader must give back, each one.
 *
 * The first byte is the clock's shift.  Then per record: thread, serial, what to do first, event, length,
 * and the record's bytes.
 */
#include "format/segment_read.h"
#include "format/segment_write.h"
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct d9_segw *writer;
static d9_u8 *file;
static size_t file_n, file_cap;

static int keep(void *ctx, const void *bytes, size_t n)
{
	(void)ctx;
	if (file_n + n > file_cap) {
		file_cap = 2 * (file_n + n);
		file = realloc(file, file_cap);
		if (!file)
			abort();
	}
	memcpy(file + file_n, bytes, n);
	file_n += n;
	return 0;
}

static int count(void *ctx, const struct d9_segr_event *ev)
{
	*(d9_u64 *)ctx += ev->id != D9_EV_blob;
	return 0;
}

static void check(d9_u64 added)
{
	struct d9_segr *r;
	struct d9_segr_stats stats;
	d9_u64 n = 0;
	if (d9_segr_open_memory(file, file_n, &r, 0, 0) || d9_segr_each(r, count, &n))
		abort();
	d9_segr_stats(r, &stats);
	if (n != added || stats.torn_blocks || stats.lost_tails || stats.unknown_events || !stats.has_footer ||
	    file_n != d9_segw_written(writer) || stats.records != d9_segw_records(writer))
		abort();
	d9_segr_close(r);
}

/* One record of the input; returns what is left of it. */
static size_t add(const uint8_t *p, size_t left, d9_u64 *added)
{
	static _Alignas(8) d9_u8 rec[32768];
	d9_u32 len = (d9_u32)p[4] * 8;
	size_t have = left - 5 < len ? left - 5 : len;
	memset(rec, 0, len + sizeof(struct d9_rec));
	memcpy(rec, p + 5, have);
	struct d9_rec *head = (struct d9_rec *)rec;
	head->head = D9_REC_HEAD(len, p[3]) | D9_COMMITTED;
	if (p[2] & 1 && d9_segw_flush(writer))
		abort();
	d9_u32 thread = p[0] ? p[0] : D9_THREAD_NONE, begin = p[2] / 2 * 8u;
	int r = d9_segw_add(writer, thread, p[1], begin, begin + len, head);
	if (r == -ENOSPC) {
		d9_segw_flush(writer);
		r = d9_segw_add(writer, thread, p[1], begin, begin + len, head);
	}
	if (r && r != -EBADMSG)
		abort();
	*added += r == 0;
	return left - 5 - have;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!writer) {
		void *mem = aligned_alloc(64, (d9_segw_bytes() + 63) & ~(size_t)63);
		if (!mem)
			abort();
		memset(mem, 0, d9_segw_bytes());
		writer = d9_segw_init(mem);
	}
	if (size < 1)
		return 0;
	struct d9_seg_header ident = {.clock = D9_CLOCK_WORD(0, data[0] & 63)};
	d9_u64 added = 0;
	file_n = 0;
	if (d9_segw_begin(writer, &ident, keep, 0))
		abort();
	for (size_t left = size - 1; left > 5;)
		left = add(data + size - left, left, &added);
	if (d9_segw_end(writer))
		abort();
	check(added);
	return 0;
}
