/*
 * Makes what lies in tests/golden, by hand and seldom: once per version of the format that is released.
 *
 *   golden write FILE   a segment with every event, always the same one
 *   golden dump FILE    a segment as text
 *   golden schema       the table of events, one line per event and field
 *   golden seeds FOLDER small segments to begin fuzzing with: an event each, packed and not
 */
#include "support.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>

static int write_segment(const char *path)
{
	struct stream s = {.shift = 4};
	struct buffer b = {0};
	chance_set(20250101);
	stream_write(&s, &b, 260, VALUES_TAME);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(b.p, 1, b.n, f) != b.n || fclose(f))
		return 1;
	buffer_free(&b);
	stream_free(&s);
	return 0;
}

static int save(const struct buffer *b, const char *folder, const char *name, const char *suffix)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s%s.d9", folder, name, suffix);
	FILE *f = fopen(path, "wb");
	return !f || fwrite(b->p, 1, b->n, f) != b->n || fclose(f);
}

static d9_u64 number(const d9_u8 *p, size_t *at)
{
	d9_u64 v = 0;
	for (unsigned shift = 0;; shift += 7) {
		d9_u8 byte = p[(*at)++];
		v |= (d9_u64)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
}
static void skip_text(const d9_u8 *p, size_t *at)
{
	size_t n = number(p, at);
	*at += n;
}
static void skip_event(const d9_u8 *p, size_t *at)
{
	number(p, at);
	skip_text(p, at);
	skip_text(p, at);
	for (int i = 0; i < 3; i++)
		number(p, at);
	for (d9_u64 fields = number(p, at); fields; fields--) {
		for (int i = 0; i < 3; i++)
			skip_text(p, at);
		number(p, at);
	}
}

/* Of a table of events, in place, those that a segment about one of them needs; returns its new length. */
static d9_u32 shorten_table(d9_u8 *raw, unsigned id)
{
	size_t at = 0, to = 1;
	d9_u64 n = number(raw, &at);
	raw[0] = 0;
	for (; n; n--) {
		size_t begin = at;
		skip_event(raw, &at);
		if (raw[begin] != id && raw[begin] != D9_EV_blob)
			continue;
		memmove(raw + to, raw + begin, at - begin);
		to += at - begin;
		raw[0]++;
	}
	return (d9_u32)to;
}

/* The same segment with its blocks stored as they are, so that a fuzzer can get at what is in them. */
static void unpack(const struct buffer *b, unsigned id, struct buffer *ret)
{
	struct block blocks[16];
	size_t n = blocks_of(b, blocks, 16);
	buffer_add(ret, b->p, sizeof(struct d9_seg_header));
	for (size_t i = 0; i < n; i++) {
		struct d9_block_header h = blocks[i].h;
		const d9_u8 *stored = b->p + blocks[i].at + sizeof(h);
		char *raw = malloc(h.raw + 1);
		if (h.flags & D9_BLOCK_LZ4)
			LZ4_decompress_safe((const char *)stored, raw, (int)h.stored, (int)h.raw);
		else
			memcpy(raw, stored, h.raw);
		h.flags = 0;
		if (h.kind == D9_BLOCK_DESCRIPTORS)
			h.raw = shorten_table((d9_u8 *)raw, id);
		h.stored = h.raw;
		size_t at = ret->n;
		buffer_add(ret, &h, sizeof(h));
		buffer_add(ret, raw, h.raw);
		block_seal(ret, at);
		free(raw);
	}
}

static int write_seeds(const char *folder)
{
	int failed = 0;
	chance_set(1);
	for (unsigned id = event_first(); id; id = event_next(id)) {
		struct stream s = {.shift = 4};
		struct buffer b = {0}, unpacked = {0};
		struct d9_segw *w = stream_begin(&s, &b);
		for (int i = 0; i < 6; i++)
			stream_add(&s, w, id, i < 5 ? VALUES_TAME : VALUES_WILD);
		d9_segw_end(w);
		unpack(&b, id, &unpacked);
		bool few = id % 8 == 0;
		failed |= save(&unpacked, folder, d9_event_name(id), "") ||
			  (few && save(&b, folder, d9_event_name(id), "-packed"));
		writer_free(w);
		buffer_free(&b);
		buffer_free(&unpacked);
		stream_free(&s);
	}
	return failed;
}

static int print_schema(void)
{
	for (unsigned id = 1; id <= D9_EVENT_ID_MAX; id++)
		if (d9_events[id].name)
			print_event(stdout, id);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "write"))
		return write_segment(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "dump")) {
		struct buffer b = {0};
		buffer_load(&b, argv[2]);
		return dump_segment(stdout, b.p, b.n) != 0;
	}
	if (argc == 3 && !strcmp(argv[1], "seeds"))
		return write_seeds(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "schema"))
		return print_schema();
	fprintf(stderr, "usage: golden write FILE | dump FILE | schema | seeds FOLDER\n");
	return 2;
}
