/*
 * Any bytes as a segment.  The reader is built so that it takes every checksum for right: a fuzzer cannot
 * guess them, and behind them is what is to be searched.
 */
#include "format/segment_read.h"
#include "fuzz.h"

#include <stdlib.h>

static volatile d9_u8 sink;

static void touch(const void *bytes, size_t n)
{
	const d9_u8 *p = bytes;
	d9_u8 sum = 0;
	for (size_t i = 0; i < n; i++)
		sum = (d9_u8)(sum + p[i]);
	sink = sum;
}

/* What the interface promises of every record. */
static int look(void *ctx, const struct d9_segr_event *ev)
{
	d9_u64 *n = ctx;
	if (!d9_event_name(ev->id) || D9_REC_ID(ev->rec->head) != ev->id || ev->index >= ev->run.n ||
	    D9_REC_LEN(ev->rec->head) != d9_events[ev->id].size || ev->run.end < ev->run.begin)
		abort();
	touch(ev->rec, D9_REC_LEN(ev->rec->head));
	touch(ev->tail.p, ev->tail.n);
	++*n;
	return 0;
}

static int count_records(void *ctx, const struct d9_run *run)
{
	*(d9_u64 *)ctx += run->n;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct d9_segr *r;
	char err[200];
	err[0] = 0;
	if (d9_segr_open_memory(data, size, &r, err, sizeof(err))) {
		if (!err[0])
			abort();
		return 0;
	}
	struct d9_segr_stats stats, again;
	d9_u64 n = 0, m = 0, in_runs = 0;
	if (d9_segr_each(r, look, &n))
		abort();
	d9_segr_stats(r, &stats);
	if (d9_segr_each(r, look, &m))
		abort();
	d9_segr_stats(r, &again);
	if (n != m || n != stats.records || again.torn_blocks != stats.torn_blocks)
		abort();
	if (d9_segr_each_run(r, count_records, &in_runs) || in_runs < n)
		abort();
	d9_segr_close(r);
	return 0;
}
