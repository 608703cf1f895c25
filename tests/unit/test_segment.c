/*
 * Segments there and back.  Everything is driven by the table of events, so that a new event is tested from
 * its first day; what a reader must say is worked out in support.c, not with the writer's code.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_same(const struct stream *s, const struct buffer *b)
{
	char what[256];
	struct d9_segr_stats stats;
	int r = stream_compare(s, b->p, b->n, false, what, sizeof(what), &stats);
	ck_assert_msg(r == 0, "%d: %s", r, what);
	ck_assert_msg(stats.has_footer, "there is a footer");
	ck_assert_uint_eq(stats.torn_blocks, 0);
	ck_assert_uint_eq(stats.lost_tails, 0);
	ck_assert_uint_eq(stats.unknown_events, 0);
}

static void round_trip(unsigned shift, unsigned n, enum values values)
{
	struct stream s = {.shift = shift};
	struct buffer b = {0};
	stream_write(&s, &b, n, values);
	expect_same(&s, &b);
	buffer_free(&b);
	stream_free(&s);
}

START_TEST(every_event_alone)
{
	for (unsigned id = event_first(); id; id = event_next(id)) {
		struct stream s = {.shift = 4};
		struct buffer b = {0};
		struct d9_segw *w = stream_begin(&s, &b);
		for (int i = 0; i < 50; i++)
			stream_add(&s, w, id, i < 25 ? VALUES_TAME : VALUES_WILD);
		ck_assert_int_eq(d9_segw_end(w), 0);
		expect_same(&s, &b);
		writer_free(w);
		buffer_free(&b);
		stream_free(&s);
	}
}
END_TEST

START_TEST(all_events_mixed)
{
	static const unsigned shifts[] = {0, 1, 4, 5, 63};
	for (int i = 0; i < 20; i++)
		round_trip(shifts[i % 5], (unsigned)chance_below(2000), i & 1 ? VALUES_WILD : VALUES_TAME);
	round_trip(4, 20000, VALUES_TAME);
}
END_TEST

START_TEST(nothing_at_all)
{
	struct buffer b = {0};
	struct stream s = {0};
	stream_write(&s, &b, 0, VALUES_TAME);
	expect_same(&s, &b);
	buffer_free(&b);
}
END_TEST

/* Quantised ends: a span that begins where another one ended still does. */
struct chain {
	d9_u64 end;
	int n;
};
static int touches(void *ctx, const struct d9_segr_event *ev)
{
	struct chain *c = ctx;
	const struct d9_ev_span *span = (const struct d9_ev_span *)ev->rec;
	if (c->n++)
		ck_assert_uint_eq(span->rec.t - span->dur, c->end);
	c->end = span->rec.t;
	return 0;
}
START_TEST(spans_that_touch)
{
	struct buffer b = {0};
	struct stream s = {.shift = 4};
	struct d9_segw *w = stream_begin(&s, &b);
	d9_u64 t = 123456789;
	for (d9_u32 i = 0; i < 1000; i++) {
		struct d9_ev_span span = {.rec.head = D9_REC_HEAD(sizeof(span), D9_EV_span), .dur = chance_below(1000)};
		span.rec.t = t += span.dur;
		ck_assert_int_eq(d9_segw_add(w, 1, 0, i * 56, i * 56 + 56, &span.rec), 0);
	}
	ck_assert_int_eq(d9_segw_end(w), 0);
	struct d9_segr *r;
	struct chain chain = {0};
	ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &r, 0, 0), 0);
	ck_assert_int_eq(d9_segr_each(r, touches, &chain), 0);
	ck_assert_int_eq(chain.n, 1000);
	d9_segr_close(r);
	writer_free(w);
	buffer_free(&b);
}
END_TEST

/* ---- what the drainer relies on -------------------------------------------------------------- */

static int first_is_meta(void *ctx, const struct d9_segr_event *ev)
{
	int *n = ctx;
	if (ev->id != D9_EV_blob)
		ck_assert_int_eq(ev->id == D9_EV_site, (*n)++ < 2);
	return 0;
}
/* A thread's records come before, between and after what the drainer defines; all of that is delivered first,
   and the thread's records are one run. */
START_TEST(definitions_come_first)
{
	struct buffer b = {0};
	struct stream s = {0};
	struct d9_segw *w = stream_begin(&s, &b);
	struct d9_ev_park park = {.rec = {D9_REC_HEAD(sizeof(park), D9_EV_park), 1024, 5000}, .dur = 10};
	struct d9_ev_site site = {.rec = {.head = D9_REC_HEAD(sizeof(site), D9_EV_site)}, .id = 1024};
	for (d9_u32 i = 0; i < 3; i++) {
		ck_assert_int_eq(d9_segw_add(w, 7, 1, i * 32, i * 32 + 32, &park.rec), 0);
		if (i < 2)
			ck_assert_int_eq(d9_segw_add(w, D9_THREAD_NONE, 0, 0, 0, &site.rec), 0);
	}
	ck_assert_int_eq(d9_segw_end(w), 0);
	struct block blocks[4];
	ck_assert_uint_eq(blocks_of(&b, blocks, 4), 3);
	ck_assert_uint_eq(blocks[1].h.n_runs, 2);
	struct d9_segr *r;
	int n = 0;
	ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &r, 0, 0), 0);
	ck_assert_int_eq(d9_segr_each(r, first_is_meta, &n), 0);
	ck_assert_int_eq(n, 5);
	d9_segr_close(r);
	writer_free(w);
	buffer_free(&b);
}
END_TEST

struct runs {
	struct d9_run run[8];
	int n;
};
static int take_run(void *ctx, const struct d9_run *run)
{
	struct runs *runs = ctx;
	if (runs->n < 8)
		runs->run[runs->n++] = *run;
	return 0;
}
/* A run is a stretch without a hole: what lies between two of them is not claimed to be written. */
START_TEST(runs_have_no_holes)
{
	struct buffer b = {0};
	struct stream s = {0};
	struct d9_segw *w = stream_begin(&s, &b);
	struct d9_ev_park park = {.rec = {D9_REC_HEAD(sizeof(park), D9_EV_park), 1024, 5000}, .dur = 10};
	static const d9_u32 at[][2] = {{1, 0}, {2, 0}, {1, 32}, {1, 96}, {2, 32}, {1, 128}};
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(d9_segw_add(w, at[i][0], 5, at[i][1], at[i][1] + 32, &park.rec), 0);
	ck_assert_int_eq(d9_segw_end(w), 0);
	struct d9_segr *r;
	struct runs runs = {0};
	ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &r, 0, 0), 0);
	ck_assert_int_eq(d9_segr_each_run(r, take_run, &runs), 0);
	d9_segr_close(r);
	static const struct d9_run want[] = {{1, 5, 0, 64, 2}, {2, 5, 0, 64, 2}, {1, 5, 96, 160, 2}};
	ck_assert_int_eq(runs.n, 3);
	ck_assert_mem_eq(runs.run, want, sizeof(want));
	writer_free(w);
	buffer_free(&b);
}
END_TEST

static void log_line(struct record *rec, d9_u32 kind, const char *text)
{
	struct d9_ev_log log = {.rec.t = 1000};
	struct d9_tail tail = {.kind_bytes = D9_TAIL_WORD(kind, strlen(text))};
	memset(rec, 0, sizeof(*rec));
	log.rec.head = D9_REC_HEAD(sizeof(log) + 8 + ((strlen(text) + 7) & ~7ull), D9_EV_log);
	memcpy(rec->bytes, &log, sizeof(log));
	memcpy(rec->bytes + sizeof(log), &tail, sizeof(tail));
	memcpy(rec->bytes + sizeof(log) + sizeof(tail), text, strlen(text));
}

static int count_blobs(void *ctx, const struct d9_segr_event *ev)
{
	*(int *)ctx += ev->id == D9_EV_blob;
	return 0;
}
START_TEST(same_bytes_are_one_blob_per_kind)
{
	struct buffer b = {0};
	struct stream s = {0};
	struct d9_segw *w = stream_begin(&s, &b);
	struct record rec;
	for (int i = 0; i < 30; i++) {
		log_line(&rec, i % 2 ? D9_TAIL_STRING : D9_TAIL_DATA, i % 3 ? "a" : "b");
		ck_assert_int_eq(d9_segw_add(w, 1, 0, 0, 0, record_head(&rec)), 0);
		if (i % 10 == 9)
			ck_assert_int_eq(d9_segw_flush(w), 0);
	}
	ck_assert_int_eq(d9_segw_end(w), 0);
	struct d9_segr *r;
	int n = 0;
	ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &r, 0, 0), 0);
	ck_assert_int_eq(d9_segr_each(r, count_blobs, &n), 0);
	ck_assert_int_eq(n, 4);
	d9_segr_close(r);
	writer_free(w);
	buffer_free(&b);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refused(struct d9_segw *w, const struct record *rec)
{
	d9_u32 gathered = d9_segw_gathered(w);
	ck_assert_int_eq(d9_segw_add(w, 1, 0, 0, 0, record_head(rec)), -EBADMSG);
	ck_assert_uint_eq(d9_segw_gathered(w), gathered);
}
START_TEST(malformed_records)
{
	struct buffer b = {0};
	struct stream s = {0};
	struct d9_segw *w = stream_begin(&s, &b);
	struct record rec;
	struct d9_rec *head = (struct d9_rec *)rec.bytes;
	stream_add(&s, w, D9_EV_span, VALUES_TAME);
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX + 1; id++)
		for (d9_u32 len = 0; len < 200; len += id % 2 ? 1 : 8) {
			bool known = id <= D9_EVENT_ID_MAX && d9_events[id].name && id != D9_EV_blob;
			if (known && len == d9_events[id].size)
				continue;
			if (known && d9_events[id].has_tail && len % 8 == 0 && len >= d9_events[id].size + 8u)
				continue;
			memset(&rec, 0, sizeof(rec));
			head->head = D9_REC_HEAD(len, id);
			expect_refused(w, &rec);
		}
	log_line(&rec, D9_TAIL_STRING, "12345678");
	struct d9_tail *tail = (struct d9_tail *)(rec.bytes + sizeof(struct d9_ev_log));
	tail->kind_bytes = D9_TAIL_WORD(D9_TAIL_STRING, 9);
	expect_refused(w, &rec);
	tail->kind_bytes = D9_TAIL_WORD(D9_TAIL_NONE, 0xffffff);
	expect_refused(w, &rec);
	ck_assert_int_eq(d9_segw_end(w), 0);
	expect_same(&s, &b);
	ck_assert_int_eq(d9_segw_add(w, 1, 0, 0, 0, record_head(&rec)), -EINVAL);
	ck_assert_int_eq(d9_segw_flush(w), -EINVAL);
	writer_free(w);
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

START_TEST(block_full)
{
	for (unsigned id = event_first(); id; id = event_next(id)) {
		struct buffer b = {0};
		struct stream s = {0};
		struct d9_segw *w = stream_begin(&s, &b);
		struct record rec = {0};
		struct d9_rec *head = (struct d9_rec *)rec.bytes;
		head->head = D9_REC_HEAD(d9_events[id].size, id);
		d9_u32 n = 0;
		int r;
		/* A run of its own for each record, at first. */
		while ((r = d9_segw_add(w, n, 0, 0, n < 1500 ? 1 : 0, head)) == 0)
			n++;
		ck_assert_int_eq(r, -ENOSPC);
		ck_assert_uint_eq(d9_segw_gathered(w), n);
		ck_assert_uint_le(n, D9_BLOCK_RECORDS_MAX);
		ck_assert_int_eq(d9_segw_flush(w), 0);
		ck_assert_uint_eq(d9_segw_gathered(w), 0);
		ck_assert_uint_eq(d9_segw_records(w), n);
		ck_assert_int_eq(d9_segw_add(w, 1, 0, 0, 0, head), 0);
		ck_assert_int_eq(d9_segw_end(w), 0);
		ck_assert_uint_eq(d9_segw_written(w), b.n);
		struct d9_segr *reader;
		struct d9_segr_stats stats;
		int blobs = 0;
		ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &reader, 0, 0), 0);
		ck_assert_int_eq(d9_segr_each(reader, count_blobs, &blobs), 0);
		d9_segr_stats(reader, &stats);
		ck_assert_uint_eq(stats.records, n + 1);
		ck_assert_uint_eq(stats.torn_blocks, 0);
		d9_segr_close(reader);
		writer_free(w);
		buffer_free(&b);
	}
}
END_TEST

START_TEST(block_full_of_large_values)
{
	struct buffer b = {0};
	struct stream s = {0};
	struct d9_segw *w = stream_begin(&s, &b);
	for (int i = 0; i < 12000; i++)
		stream_add(&s, w, i % 2 ? D9_EV_module : D9_EV_wake, VALUES_WILD);
	ck_assert_int_eq(d9_segw_end(w), 0);
	expect_same(&s, &b);
	writer_free(w);
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

/* Adds lines until the dictionary is full; the segment is good then, and the next one starts with none. */
START_TEST(dictionary_full)
{
	struct buffer b = {0};
	struct stream s = {0};
	struct d9_segw *w = stream_begin(&s, &b);
	struct record rec;
	char text[32];
	int r = 0;
	d9_u32 n = 0;
	for (; r == 0; n++) {
		snprintf(text, sizeof(text), "line %u", n);
		log_line(&rec, D9_TAIL_STRING, text);
		while ((r = d9_segw_add(w, 1, 0, n * 64, n * 64 + 64, record_head(&rec))) == -ENOSPC)
			ck_assert_int_eq(d9_segw_flush(w), 0);
	}
	ck_assert_int_eq(r, -EOVERFLOW);
	log_line(&rec, D9_TAIL_STRING, "line 0");
	ck_assert_msg(d9_segw_add(w, 1, 0, 0, 0, record_head(&rec)) != -EOVERFLOW, "what is in it can still be used");
	ck_assert_int_eq(d9_segw_end(w), 0);
	struct d9_segr *reader;
	struct d9_segr_stats stats;
	int blobs = 0;
	ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &reader, 0, 0), 0);
	ck_assert_int_eq(d9_segr_each(reader, count_blobs, &blobs), 0);
	d9_segr_stats(reader, &stats);
	ck_assert_int_eq(blobs, (int)n - 1);
	ck_assert_uint_eq(stats.lost_tails, 0);
	d9_segr_close(reader);
	b.n = 0;
	struct d9_seg_header ident = {0};
	ck_assert_int_eq(d9_segw_begin(w, &ident, buffer_sink, &b), 0);
	for (int i = 0; i < 500; i++)
		stream_add(&s, w, D9_EV_log, VALUES_TAME);
	ck_assert_int_eq(d9_segw_end(w), 0);
	expect_same(&s, &b);
	writer_free(w);
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

/* ---- the sink fails -------------------------------------------------------------------------- */

/* Writes a stream over a sink that fails once after fail_at bytes; what was lost is added again. */
static void write_with_failure(struct stream *s, struct buffer *b, size_t fail_at, bool cut)
{
	static struct record recs[400];
	d9_u64 now = 1ull << 40;
	struct d9_segw *w = stream_begin(s, b);
	b->fail_at = fail_at;
	b->error = -EIO;
	size_t done = 0;
	for (d9_u32 i = 0; i < 400; i++) {
		record_make(&recs[i], i % 2 ? D9_EV_log : D9_EV_span, VALUES_TAME, &now);
		ck_assert_int_eq(d9_segw_add(w, 1, 0, i * 64, i * 64 + 64, record_head(&recs[i])), 0);
		if (i % 50 != 49)
			continue;
		int r = i == 399 ? d9_segw_end(w) : d9_segw_flush(w);
		if (r == 0) {
			done = i + 1;
			continue;
		}
		ck_assert_int_eq(r, -EIO);
		ck_assert_int_eq(d9_segw_add(w, 1, 0, 0, 0, record_head(&recs[i])), -EIO);
		ck_assert_int_eq(d9_segw_flush(w), -EIO);
		bool written = d9_segw_gathered(w) == 0; /* so it was the footer that failed */
		d9_segw_abandon(w);
		b->fail_at = 0;
		if (cut)
			b->n = d9_segw_written(w);
		if (written)
			ck_assert_int_eq(d9_segw_end(w), 0);
		else
			i = (d9_u32)done - 1;
	}
	s->all = calloc(400, sizeof(*s->all));
	s->n = 400;
	for (d9_u32 i = 0; i < 400; i++) {
		s->all[i] = (struct expected){.thread = 1, .begin = i * 64, .end = i * 64 + 64};
		record_expect(&s->all[i].rec, &recs[i], s->shift);
	}
	writer_free(w);
}

START_TEST(sink_fails_and_works_again)
{
	for (size_t fail_at = 4000; fail_at < 30000; fail_at += 1 + chance_below(100)) {
		for (int cut = 0; cut < 2; cut++) {
			struct stream s = {.shift = 4};
			struct buffer b = {0};
			char what[256];
			struct d9_segr_stats stats;
			write_with_failure(&s, &b, fail_at, cut);
			int r = stream_compare(&s, b.p, b.n, false, what, sizeof(what), &stats);
			ck_assert_msg(r == 0, "fail_at %zu cut %d: %s", fail_at, cut, what);
			ck_assert_uint_eq(stats.has_footer, 1);
			if (cut)
				ck_assert_uint_eq(stats.torn_blocks, 0);
			ck_assert_uint_eq(stats.lost_tails, 0);
			buffer_free(&b);
			stream_free(&s);
		}
	}
}
END_TEST

START_TEST(sink_fails_at_once)
{
	struct buffer b = {.fail_at = 100, .error = -ENOSPC};
	void *mem = aligned_alloc(64, (d9_segw_bytes() + 63) & ~(size_t)63);
	ck_assert_ptr_nonnull(mem);
	memset(mem, 0, d9_segw_bytes());
	struct d9_segw *w = d9_segw_init(mem);
	struct d9_seg_header ident = {0};
	struct d9_ev_park park = {.rec = {D9_REC_HEAD(sizeof(park), D9_EV_park), 1024, 5000}, .dur = 10};
	ck_assert_int_eq(d9_segw_begin(w, &ident, buffer_sink, &b), -ENOSPC);
	ck_assert_int_lt(d9_segw_add(w, 1, 0, 0, 32, &park.rec), 0);
	d9_segw_abandon(w);
	ck_assert_int_eq(d9_segw_add(w, 1, 0, 0, 32, &park.rec), -EINVAL);
	b.n = b.fail_at = 0;
	ck_assert_int_eq(d9_segw_begin(w, &ident, buffer_sink, &b), 0);
	ck_assert_int_eq(d9_segw_add(w, 1, 0, 0, 32, &park.rec), 0);
	ck_assert_int_eq(d9_segw_end(w), 0);
	buffer_free(&b);
	free(mem);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static void small_segment(struct stream *s, struct buffer *b)
{
	*s = (struct stream){.shift = 4};
	struct d9_segw *w = stream_begin(s, b);
	for (int i = 0; i < 90; i++) {
		stream_add(s, w, i % 3 ? D9_EV_span : D9_EV_log, VALUES_TAME);
		if (i % 30 == 29)
			ck_assert_int_eq(d9_segw_flush(w), 0);
	}
	ck_assert_int_eq(d9_segw_end(w), 0);
	writer_free(w);
}

START_TEST(cut_at_every_byte)
{
	struct stream s;
	struct buffer b = {0};
	struct block blocks[16];
	small_segment(&s, &b);
	size_t n_blocks = blocks_of(&b, blocks, 16);
	for (size_t n = 0; n < b.n; n++) {
		d9_u64 whole = 0;
		for (size_t i = 0; i < n_blocks; i++)
			whole += blocks[i].end <= n ? blocks[i].h.n_records : 0;
		/* Memory of its own, so that a reader that looks beyond it is caught. */
		d9_u8 *part = malloc(n + !n);
		memcpy(part, b.p, n);
		char what[256];
		struct d9_segr_stats stats;
		int r = stream_compare(&s, part, n, true, what, sizeof(what), &stats);
		free(part);
		ck_assert_msg(r == 0 || (n < 64 && r == -EBADMSG), "at %zu: %s", n, what);
		ck_assert_msg(stats.records == whole, "at %zu: %llu records of %llu", n,
			      (unsigned long long)stats.records, (unsigned long long)whole);
		ck_assert_uint_eq(stats.has_footer, 0);
	}
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

START_TEST(every_bit_flipped)
{
	struct stream s;
	struct buffer b = {0};
	small_segment(&s, &b);
	for (size_t bit = 0; bit < b.n * 8; bit++) {
		char what[256];
		struct d9_segr_stats stats;
		b.p[bit / 8] ^= (d9_u8)(1u << bit % 8);
		int r = stream_compare(&s, b.p, b.n, true, what, sizeof(what), &stats);
		b.p[bit / 8] ^= (d9_u8)(1u << bit % 8);
		ck_assert_msg(r <= 0, "bit %zu: %s", bit, what);
		ck_assert_msg(r < 0 || stats.torn_blocks, "bit %zu is not noticed", bit);
		ck_assert_msg(r == 0 || what[0], "bit %zu: no sentence", bit);
	}
	expect_same(&s, &b);
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

/* Reads on behind the damage; and a block that is gone as a whole is missed by the footer's count. */
START_TEST(block_gone)
{
	struct stream s;
	struct buffer b = {0};
	struct block blocks[16];
	struct d9_segr_stats stats;
	char what[256];
	small_segment(&s, &b);
	size_t n = blocks_of(&b, blocks, 16);
	for (size_t i = 1; i + 1 < n; i++) {
		struct buffer part = {0};
		buffer_add(&part, b.p, blocks[i].at);
		buffer_add(&part, b.p + blocks[i].end, b.n - blocks[i].end);
		ck_assert_int_eq(stream_compare(&s, part.p, part.n, true, what, sizeof(what), &stats), 0);
		ck_assert_uint_eq(stats.torn_blocks, 1);
		ck_assert_uint_eq(stats.has_footer, 1);
		/* The first block of blobs has those that all others refer to, too. */
		ck_assert_uint_eq(stats.lost_tails > 0, blocks[i].h.t_max == 0);
		buffer_free(&part);
	}
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

/* Damage that a checksum cannot show, since whoever made it has put it right. */
START_TEST(forged_blocks)
{
	struct stream s;
	struct buffer b = {0};
	struct block blocks[16];
	small_segment(&s, &b);
	size_t n = blocks_of(&b, blocks, 16);
	for (int i = 0; i < 20000; i++) {
		struct buffer forged = {0};
		buffer_add(&forged, b.p, b.n);
		const struct block *block = &blocks[chance_below(n)];
		for (d9_u64 k = 1 + chance_below(3); k; k--) {
			size_t at = block->at + 8 + chance_below(block->end - block->at - 8);
			forged.p[at] = (d9_u8)(chance_below(2) ? chance() : forged.p[at] ^ 1u << chance_below(8));
		}
		struct d9_block_header h;
		memcpy(&h, forged.p + block->at, sizeof(h));
		if (h.stored == block->h.stored)
			block_seal(&forged, block->at);
		struct d9_segr_stats stats;
		char what[256];
		stream_compare(&s, forged.p, forged.n, true, what, sizeof(what), &stats);
		buffer_free(&forged);
	}
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

/* ---- opening --------------------------------------------------------------------------------- */

static void expect_sentence(const char *path, int error, const char *word)
{
	char err[256] = "";
	struct d9_segr *r;
	ck_assert_int_eq(d9_segr_open(path, &r, err, sizeof(err)), error);
	ck_assert_msg(strstr(err, word) && strstr(err, path) == err && err[strlen(err) - 1] == '.',
		      "not a sentence: %s", err);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

START_TEST(files)
{
	struct stream s;
	struct buffer b = {0};
	char dir[] = "/tmp/d9-test-XXXXXX", err[256];
	small_segment(&s, &b);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	write_file("good.d9", b.p, b.n);
	write_file("empty.d9", b.p, 0);
	write_file("text.d9", "this is a text, and it is longer than the header of a segment is.....", 69);
	ck_assert_int_eq(symlink("good.d9", "link.d9"), 0);
	ck_assert_int_eq(mkfifo("fifo.d9", 0600), 0);
	struct d9_seg_header *h = (struct d9_seg_header *)b.p;
	h->major = 2;
	header_seal(&b);
	write_file("newer.d9", b.p, b.n);
	h->major = 1;
	h->incompat = 4;
	header_seal(&b);
	write_file("feature.d9", b.p, b.n);

	struct d9_segr *r;
	int blobs = 0;
	ck_assert_int_eq(d9_segr_open("good.d9", &r, err, sizeof(err)), 0);
	ck_assert_int_eq(d9_segr_each(r, count_blobs, &blobs), 0);
	/* A file that is cut while it is read ends early. */
	ck_assert_int_eq(truncate("good.d9", 3000), 0);
	ck_assert_int_eq(d9_segr_each(r, count_blobs, &blobs), 0);
	d9_segr_close(r);
	d9_segr_close(0);
	expect_sentence("none.d9", -ENOENT, "cannot be opened");
	expect_sentence("empty.d9", -EBADMSG, "ends inside its header");
	expect_sentence("text.d9", -EBADMSG, "not a d9 segment");
	expect_sentence("link.d9", -ELOOP, "symbolic link");
	expect_sentence("fifo.d9", -EINVAL, "not a regular file");
	expect_sentence(".", -EINVAL, "not a regular file");
	expect_sentence("newer.d9", -EPROTONOSUPPORT, "use a newer d9");
	expect_sentence("feature.d9", -EPROTONOSUPPORT, "use a newer d9");
	static const char *const names[] = {"good.d9", "empty.d9", "text.d9",   "link.d9",
					    "fifo.d9", "newer.d9", "feature.d9"};
	for (int i = 0; i < 7; i++)
		unlink(names[i]);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(rmdir(dir), 0);
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

static int stop_at_third(void *ctx, const struct d9_segr_event *ev)
{
	(void)ev;
	return ++*(int *)ctx == 3 ? -42 : 0;
}
/* A second pass sees the same, and the first one's tails are still there; a callback can stop. */
static int keep_tail(void *ctx, const struct d9_segr_event *ev)
{
	struct d9_bytes *last = ctx;
	if (ev->tail.n)
		*last = ev->tail;
	return 0;
}
START_TEST(passes)
{
	struct stream s;
	struct buffer b = {0};
	struct d9_segr *r;
	small_segment(&s, &b);
	ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &r, 0, 0), 0);
	struct d9_bytes first = {0}, second = {0};
	int n = 0;
	ck_assert_int_eq(d9_segr_each(r, keep_tail, &first), 0);
	ck_assert_int_eq(d9_segr_each(r, stop_at_third, &n), -42);
	ck_assert_int_eq(n, 3);
	ck_assert_int_eq(d9_segr_each(r, keep_tail, &second), 0);
	ck_assert_uint_gt(first.n, 0);
	ck_assert_uint_eq(first.n, second.n);
	ck_assert_mem_eq(first.p, second.p, first.n);
	struct d9_segr_stats stats;
	d9_segr_stats(r, &stats);
	ck_assert_uint_eq(stats.torn_blocks, 0);
	d9_segr_close(r);
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("segment");
	TCase *c = tcase_create("segment");
	tcase_set_timeout(c, 240);
	suite_add_tcase(suite, c);
	tcase_add_test(c, every_event_alone);
	tcase_add_test(c, all_events_mixed);
	tcase_add_test(c, nothing_at_all);
	tcase_add_test(c, spans_that_touch);
	tcase_add_test(c, definitions_come_first);
	tcase_add_test(c, runs_have_no_holes);
	tcase_add_test(c, same_bytes_are_one_blob_per_kind);
	tcase_add_test(c, malformed_records);
	tcase_add_test(c, block_full);
	tcase_add_test(c, block_full_of_large_values);
	tcase_add_test(c, dictionary_full);
	tcase_add_test(c, sink_fails_and_works_again);
	tcase_add_test(c, sink_fails_at_once);
	tcase_add_test(c, cut_at_every_byte);
	tcase_add_test(c, every_bit_flipped);
	tcase_add_test(c, block_gone);
	tcase_add_test(c, forged_blocks);
	tcase_add_test(c, files);
	tcase_add_test(c, passes);
	return suite_run(suite);
}
