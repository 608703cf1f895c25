/*
 * Old files and new ones: files of other versions of the table, the golden segment, and the lock on what has
 * been released.  Files are from D9_TEST_GOLDEN, the folder tests/golden.
 */
#include "support.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

static char *golden(const char *name)
{
	static char path[512];
	const char *dir = getenv("D9_TEST_GOLDEN");
	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "tests/golden", name);
	return path;
}

/* ---- a file whose table is another one -------------------------------------------------------- */

struct name {
	size_t at, n; /* in the unpacked descriptors */
	unsigned id;
	int field; /* -1: the event's own */
};
struct table {
	struct buffer raw;
	struct name name[512];
	size_t n;
};

static d9_u64 number(const struct buffer *b, size_t *at)
{
	d9_u64 v = 0;
	for (unsigned shift = 0;; shift += 7) {
		d9_u8 byte = b->p[(*at)++];
		v |= (d9_u64)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
}
static void skip_text(const struct buffer *b, size_t *at)
{
	size_t n = number(b, at);
	*at += n;
}
static void note_name(struct table *t, size_t *at, unsigned id, int field)
{
	size_t n = number(&t->raw, at);
	ck_assert_uint_lt(t->n, 512);
	t->name[t->n++] = (struct name){*at, n, id, field};
	*at += n;
}

/* Takes the descriptors of a segment apart: docs/FORMAT.md, "The table of events". */
static void table_read(struct table *t, const struct buffer *b)
{
	struct d9_block_header h;
	size_t start = sizeof(struct d9_seg_header), at = 0;
	memcpy(&h, b->p + start, sizeof(h));
	t->n = 0;
	t->raw = (struct buffer){.p = malloc(h.raw), .n = h.raw, .cap = h.raw};
	ck_assert_int_eq(
		LZ4_decompress_safe((char *)b->p + start + sizeof(h), (char *)t->raw.p, (int)h.stored, (int)h.raw),
		(int)h.raw);
	for (d9_u64 events = number(&t->raw, &at); events; events--) {
		unsigned id = (unsigned)number(&t->raw, &at);
		note_name(t, &at, id, -1);
		skip_text(&t->raw, &at);
		for (int i = 0; i < 3; i++)
			number(&t->raw, &at);
		int fields = (int)number(&t->raw, &at);
		for (int i = 0; i < fields; i++) {
			note_name(t, &at, id, i);
			skip_text(&t->raw, &at);
			skip_text(&t->raw, &at);
			number(&t->raw, &at);
		}
	}
	ck_assert_uint_eq(at, h.raw);
}

/* The segment with this table for its own, stored as it is. */
static void table_put(const struct table *t, const struct buffer *b, struct buffer *ret)
{
	struct d9_block_header h;
	size_t start = sizeof(struct d9_seg_header);
	memcpy(&h, b->p + start, sizeof(h));
	size_t rest = start + sizeof(h) + h.stored;
	h.stored = h.raw = (d9_u32)t->raw.n;
	h.flags = 0;
	buffer_add(ret, b->p, start);
	buffer_add(ret, &h, sizeof(h));
	buffer_add(ret, t->raw.p, t->raw.n);
	block_seal(ret, start);
	buffer_add(ret, b->p + rest, b->n - rest);
}

/* What a reader sees of the stream when it does not know one name of the table. */
static size_t forget(struct stream *s, const struct name *name)
{
	const struct d9_event_desc *e = &d9_events[name->id];
	size_t kept = 0, gone = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct expected *x = &s->all[i];
		bool hit = D9_REC_ID(record_head(&x->rec)->head) == name->id;
		unsigned off = sizeof(struct d9_rec);
		for (int k = 0; k < name->field && k < e->n_fields; k++)
			off += e->fields[k].size;
		if (hit && name->field == e->n_fields)
			memset(x->rec.bytes + e->size, 0, 8);
		else if (hit && name->field >= 0)
			memset(x->rec.bytes + off, 0, e->fields[name->field].size);
		gone += hit && name->field < 0;
		if (!hit || name->field >= 0)
			s->all[kept++] = *x;
	}
	s->n = kept;
	return gone;
}

/* Each event and each field in turn has a name that this build does not know: as in a file from a newer
   version that has it and from an older one that lacks ours.  All else must be right. */
START_TEST(names_not_known)
{
	struct stream s = {.shift = 4};
	struct buffer b = {0};
	struct table t;
	stream_write(&s, &b, 150, VALUES_TAME);
	table_read(&t, &b);
	for (size_t i = 0; i < t.n; i++) {
		if (t.name[i].id == D9_EV_blob)
			continue;
		struct stream less = s;
		less.all = malloc(s.n * sizeof(*s.all));
		memcpy(less.all, s.all, s.n * sizeof(*s.all));
		size_t gone = forget(&less, &t.name[i]);
		struct buffer other = {0};
		t.raw.p[t.name[i].at] ^= 0x20;
		table_put(&t, &b, &other);
		t.raw.p[t.name[i].at] ^= 0x20;
		char what[256];
		struct d9_segr_stats stats;
		int r = stream_compare(&less, other.p, other.n, false, what, sizeof(what), &stats);
		ck_assert_msg(r == 0, "without %.*s: %s", (int)t.name[i].n, t.raw.p + t.name[i].at, what);
		ck_assert_uint_eq(stats.unknown_events, gone);
		ck_assert_uint_eq(stats.torn_blocks, 0);
		ck_assert_uint_eq(stats.lost_tails, 0);
		buffer_free(&other);
		free(less.all);
	}
	buffer_free(&t.raw);
	buffer_free(&b);
	stream_free(&s);
}
END_TEST

/* ---- a file by another writer ----------------------------------------------------------------- */

static void put_number(struct buffer *b, d9_u64 v)
{
	for (; v >= 0x80; v >>= 7)
		buffer_add(b, &(d9_u8){(d9_u8)(v | 0x80)}, 1);
	buffer_add(b, &(d9_u8){(d9_u8)v}, 1);
}
static void put_string(struct buffer *b, const char *s)
{
	put_number(b, strlen(s));
	buffer_add(b, s, strlen(s));
}
static void put_bytes(struct buffer *b, unsigned n, const d9_u8 *bytes) { buffer_add(b, bytes, n); }
#define PUT(b, ...) put_bytes(b, sizeof((d9_u8[]){__VA_ARGS__}), (d9_u8[]){__VA_ARGS__})

static void put_event(struct buffer *b, unsigned id, const char *name, const char *kind, unsigned t_codec,
		      unsigned n_fields)
{
	put_number(b, id);
	put_string(b, name);
	put_string(b, kind);
	put_number(b, 40);
	put_number(b, t_codec);
	put_number(b, 1);
	put_number(b, n_fields);
}
static void put_field(struct buffer *b, const char *name, const char *type, const char *unit, unsigned codec)
{
	put_string(b, name);
	put_string(b, type);
	put_string(b, unit);
	put_number(b, codec);
}
static void put_block(struct buffer *to, struct d9_block_header h, struct buffer *raw)
{
	size_t at = to->n;
	h.magic = D9_BLOCK_MAGIC;
	h.stored = h.raw = (d9_u32)raw->n;
	buffer_add(to, &h, sizeof(h));
	buffer_add(to, raw->p, raw->n);
	block_seal(to, at);
	buffer_free(raw);
}
static void put_header(struct buffer *to)
{
	struct d9_seg_header h = {
		.magic = D9_SEG_MAGIC, .major = 1, .minor = 77, .header_bytes = sizeof(h), .compat = 5};
	buffer_add(to, &h, sizeof(h));
	header_seal(to);
}

/* A table with other ids, codecs and fields than ours, and a block by hand. */
static void foreign_segment(struct buffer *to)
{
	struct buffer raw = {0};
	put_header(to);
	put_number(&raw, 2);
	put_event(&raw, 5, "mystery", "POINT", 9, 1);
	put_field(&raw, "x", "u32", "COUNT", 99);
	put_event(&raw, 200, "span", "SPAN", 10, 4);
	put_field(&raw, "novel", "u64", "COUNT", 1);
	put_field(&raw, "dur", "u64", "TICKS", 1);
	put_field(&raw, "result", "i32", "RESULT", 2);
	put_field(&raw, "object", "u64", "ADDR", 3);
	put_block(to, (struct d9_block_header){.kind = D9_BLOCK_DESCRIPTORS}, &raw);
	put_block(to, (struct d9_block_header){.kind = 77}, &raw); /* of a kind not known */
	PUT(&raw, 6, 8, 8, 32, 3);                                 /* run: thread 3, serial 4, 8 to 40, 3 records */
	PUT(&raw, 200, 5, 200);
	PUT(&raw, 0, 1, 0, 2, 0xff, 0xff); /* 5: site none; t = the run's time - 1: code 0, then 0 at the end; x */
	PUT(&raw, 2, 7, 9);                /* 200: sites 7, 9 */
	PUT(&raw, 2, 11, 1);               /* t: starts 10 after t_min, then 0 after the mystery */
	PUT(&raw, 2, 1, 2);                /* novel */
	PUT(&raw, 3, 5, 0x80, 0x01);       /* dur 5, 128 */
	PUT(&raw, 1, 21);                  /* result -11, 0 */
	PUT(&raw, 2, 200, 1);              /* object 100, 100 */
	struct d9_block_header h = {
		.kind = D9_BLOCK_EVENTS, .n_records = 3, .n_runs = 1, .clock = 3, .t_min = 100, .t_max = 1};
	put_block(to, h, &raw);
}

static int check_foreign(void *ctx, const struct d9_segr_event *ev)
{
	int *n = ctx;
	const struct d9_ev_span *span = (const struct d9_ev_span *)ev->rec;
	ck_assert_int_eq(ev->id, D9_EV_span);
	ck_assert_uint_eq(ev->clock, 3);
	ck_assert_uint_eq(ev->run.thread, 3);
	ck_assert_uint_eq(ev->run.serial, 4);
	ck_assert_uint_eq(ev->run.begin, 8);
	ck_assert_uint_eq(ev->run.end, 40);
	ck_assert_uint_eq(ev->index, *n ? 2 : 0);
	ck_assert_uint_eq(span->rec.site, *n ? 9 : 7);
	ck_assert_uint_eq(span->dur, *n ? 128 : 5);
	ck_assert_uint_eq(span->rec.t, *n ? 100 + 10 + 5 - 1 + 128 : 100 + 10 + 5);
	ck_assert_int_eq(span->result, *n ? 0 : -11);
	ck_assert_uint_eq(span->object, 100);
	ck_assert_int_eq(span->fd, 0);
	ck_assert_uint_eq(span->waker_t, 0);
	ck_assert_int_eq(ev->tail.kind, D9_TAIL_NONE);
	++*n;
	return 0;
}

START_TEST(another_writer)
{
	struct buffer b = {0};
	char err[256] = "";
	foreign_segment(&b);
	struct d9_segr *r;
	int n = 0;
	struct d9_segr_stats stats;
	ck_assert_msg(d9_segr_open_memory(b.p, b.n, &r, err, sizeof(err)) == 0, "%s", err);
	ck_assert_int_eq(d9_segr_each(r, check_foreign, &n), 0);
	ck_assert_int_eq(n, 2);
	d9_segr_stats(r, &stats);
	ck_assert_uint_eq(stats.unknown_events, 1);
	ck_assert_uint_eq(stats.torn_blocks, 0);
	d9_segr_close(r);
	buffer_free(&b);
}
END_TEST

static void expect_table_refused(struct buffer *raw, int error)
{
	struct buffer b = {0};
	char err[256] = "";
	struct d9_segr *r;
	put_header(&b);
	put_block(&b, (struct d9_block_header){.kind = D9_BLOCK_DESCRIPTORS}, raw);
	ck_assert_int_eq(d9_segr_open_memory(b.p, b.n, &r, err, sizeof(err)), error);
	ck_assert_msg(strstr(err, error == -EBADMSG ? "damaged" : "newer d9"), "%s", err);
	buffer_free(&b);
}
START_TEST(tables_that_cannot_be)
{
	struct buffer raw = {0};
	put_number(&raw, 2); /* the same id twice */
	put_event(&raw, 5, "a", "POINT", 9, 0);
	put_event(&raw, 5, "b", "POINT", 9, 0);
	expect_table_refused(&raw, -EBADMSG);
	put_number(&raw, 2); /* one is missing */
	put_event(&raw, 5, "a", "POINT", 9, 0);
	expect_table_refused(&raw, -EBADMSG);
	put_number(&raw, 1); /* t in a way not known */
	put_event(&raw, 5, "a", "POINT", 55, 0);
	expect_table_refused(&raw, -EPROTONOSUPPORT);
	put_number(&raw, 1); /* a gap, and no duration */
	put_event(&raw, 5, "a", "SPAN", 10, 0);
	expect_table_refused(&raw, -EPROTONOSUPPORT);
}
END_TEST

/* ---- what has been released ------------------------------------------------------------------- */

START_TEST(golden_segment)
{
	struct buffer segment = {0}, want = {0};
	buffer_load(&segment, golden("segment-v1.d9"));
	buffer_load(&want, golden("segment-v1.txt"));
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	ck_assert_int_eq(dump_segment(f, segment.p, segment.n), 0);
	fclose(f);
	/* A version with more events and fields prints more of them; that is for the one who adds them to see. */
	ck_assert_msg(n == want.n && memcmp(text, want.p, n) == 0, "segment-v1.d9 is not read as segment-v1.txt says");
	free(text);
	buffer_free(&segment);
	buffer_free(&want);
}
END_TEST

/* The locked lines of an event must be the first lines of what it is now; its tail comes after all fields, new ones too. */
static void check_lock(const char *lock, unsigned id)
{
	char *now, prefix[16];
	size_t n, at = 0;
	FILE *f = open_memstream(&now, &n);
	if (d9_events[id].name)
		print_event(f, id);
	fclose(f);
	snprintf(prefix, sizeof(prefix), "%u ", id);
	for (const char *line = lock; *line; line = strchr(line, '\n') + 1) {
		size_t length = (size_t)(strchr(line, '\n') - line) + 1;
		if (strncmp(line, prefix, strlen(prefix)))
			continue;
		const char *tail = memmem(line, length, " tail ", 6) ? memmem(now, n, line, length) : NULL;
		if (tail)
			continue;
		ck_assert_msg(at + length <= n && memcmp(now + at, line, length) == 0,
			      "released and now changed or gone: %.*s", (int)length - 1, line);
		at += length;
	}
	free(now);
}
START_TEST(names_of_files)
{
	static const char *const segments[] = {"s-000001.d9", "k-999999.d9"}, *const others[] = {"",
												 "s",
												 "s-",
												 "s-00000",
												 "s-000001",
												 "s-000001.d",
												 "s-000001.d9x",
												 "s-0000001.d9",
												 "s-00000x.d9",
												 "S-000001.d9",
												 "x-000001.d9",
												 "s_000001.d9",
												 "s-000001.d9/",
												 "notes.d9",
												 "s-1.d9",
												 "ss-000001.d9"};
	for (size_t i = 0; i < sizeof(segments) / sizeof(*segments); i++)
		ck_assert_msg(d9_is_segment_name(segments[i]), "%s is one", segments[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ck_assert_msg(!d9_is_segment_name(others[i]), "%s is none", others[i]);
	ck_assert(d9_is_folder_name("a-0123abcf") && d9_is_folder_name("a b-c-00000000"));
	ck_assert(!d9_is_folder_name("-00000000") && !d9_is_folder_name("a-0000000g") &&
		  !d9_is_folder_name("a_00000000") && !d9_is_folder_name(""));
}
END_TEST

START_TEST(schema_lock)
{
	struct buffer lock = {0};
	buffer_load(&lock, golden("schema.lock"));
	buffer_add(&lock, "", 1);
	ck_assert_uint_gt(lock.n, 100);
	for (unsigned id = 1; id <= D9_EVENT_ID_MAX; id++)
		check_lock((const char *)lock.p, id);
	buffer_free(&lock);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("schema");
	TCase *c = tcase_create("schema");
	tcase_set_timeout(c, 240);
	suite_add_tcase(suite, c);
	tcase_add_test(c, names_not_known);
	tcase_add_test(c, names_of_files);
	tcase_add_test(c, another_writer);
	tcase_add_test(c, tables_that_cannot_be);
	tcase_add_test(c, golden_segment);
	tcase_add_test(c, schema_lock);
	return suite_run(suite);
}
