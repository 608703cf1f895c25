/* See support.h. */
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* A test that has no memory or no files is broken, not failed. */
static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "the test itself is broken: %s\n", what);
	exit(99);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void buffer_add(struct buffer *b, const void *bytes, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = (b->n + n) * 2;
		b->p = realloc(b->p, b->cap);
		need(b->p, "no memory");
	}
	if (n)
		memcpy(b->p + b->n, bytes, n);
	b->n += n;
}

int buffer_sink(void *ctx, const void *bytes, size_t n)
{
	struct buffer *b = ctx;
	if (b->fail_at && b->n + n > b->fail_at) {
		buffer_add(b, bytes, b->fail_at > b->n ? b->fail_at - b->n : 0);
		return b->error;
	}
	buffer_add(b, bytes, n);
	return 0;
}

void buffer_free(struct buffer *b)
{
	free(b->p);
	*b = (struct buffer){0};
}

void buffer_load(struct buffer *b, const char *path)
{
	FILE *f = fopen(path, "rb");
	need(f, path);
	char part[4096];
	size_t n;
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		buffer_add(b, part, n);
	fclose(f);
}

/* ---- chance ---------------------------------------------------------------------------------- */

static d9_u64 chance_state;

void chance_seed(void)
{
	const char *s = getenv("D9_TEST_SEED");
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	chance_state = s ? strtoull(s, 0, 0) : (d9_u64)now.tv_sec * 1000000007u ^ (d9_u64)now.tv_nsec;
	printf("# D9_TEST_SEED=%llu\n", (unsigned long long)chance_state);
	fflush(stdout);
}

void chance_set(d9_u64 seed) { chance_state = seed; }

d9_u64 chance(void) /* splitmix64 */
{
	d9_u64 z = chance_state += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

d9_u64 chance_below(d9_u64 n) { return chance() % n; }

/* ---- records --------------------------------------------------------------------------------- */

unsigned event_next(unsigned id)
{
	for (id++; id <= D9_EVENT_ID_MAX; id++)
		if (d9_events[id].name && id != D9_EV_blob)
			return id;
	return 0;
}
unsigned event_first(void) { return event_next(0); }

static d9_u64 tame_value(const struct d9_field_desc *f, d9_u64 t, d9_u64 dur)
{
	switch ((enum d9_unit)f->unit) {
	case D9_UNIT_TICKS:
		return dur;
	case D9_UNIT_TIME:
		return chance_below(3) ? 0 : t - chance_below(dur + 1);
	case D9_UNIT_ADDR:
		return 0x7f0000000000ull + 64 * chance_below(5);
	case D9_UNIT_THREAD:
		return chance_below(2) ? D9_THREAD_NONE : chance_below(8);
	case D9_UNIT_RESULT:
		return chance_below(8) ? chance_below(4) : (d9_u64)-11;
	case D9_UNIT_FD:
		return chance_below(4) ? 5 + chance_below(3) : (d9_u64)-1;
	case D9_UNIT_NS:
		return chance_below(4) ? chance_below(1000000000) : D9_NOT_KNOWN;
	default:
		return chance_below(200);
	}
}

/* Any bits, and often those at the edges of what a type can hold. */
static d9_u64 wild_value(void)
{
	static const d9_u64 edges[] = {
		0,           1,   2,   ~0ull, ~0ull - 1, 1ull << 63, (1ull << 63) - 1, 1ull << 31, (1u << 31) - 1,
		0xffffffffu, 127, 128, 16383, 16384,     1u << 28,   (1u << 28) - 1};
	return chance_below(3) ? chance() >> chance_below(64) : edges[chance_below(sizeof(edges) / sizeof(*edges))];
}

static void make_tail(struct record *rec, unsigned size, d9_u32 *len)
{
	static const char *const words[] = {"tokio-worker", "", "a name", "another name", "GET /"};
	if (chance_below(3) == 0)
		return;
	d9_u8 *to = rec->bytes + size + sizeof(struct d9_tail);
	d9_u32 n, kind = D9_TAIL_STRING;
	if (chance_below(4)) {
		const char *word = words[chance_below(5)];
		n = (d9_u32)strlen(word);
		memcpy(to, word, n);
	} else {
		kind = 1 + (d9_u32)chance_below(6);
		n = (d9_u32)chance_below(chance_below(8) ? 40 : 3000);
		for (d9_u32 i = 0; i < n; i++)
			to[i] = (d9_u8)chance();
	}
	struct d9_tail tail = {.kind_bytes = D9_TAIL_WORD(kind, n)};
	memcpy(rec->bytes + size, &tail, sizeof(tail));
	*len += (d9_u32)sizeof(tail) + ((n + 7) & ~7u);
}

void record_make(struct record *rec, unsigned id, enum values values, d9_u64 *now)
{
	const struct d9_event_desc *e = &d9_events[id];
	memset(rec, 0, sizeof(*rec));
	d9_u64 dur = chance_below(100000);
	*now += chance_below(30000) + (chance_below(10) ? dur : 0);
	struct d9_rec head = {.t = *now};
	head.site = (d9_u32)(chance_below(3) ? 1024 + chance_below(6) : chance_below(20));
	if (e->kind == D9_KIND_META && chance_below(2))
		head.t = 0;
	if (values == VALUES_WILD) {
		head.t = wild_value();
		head.site = (d9_u32)wild_value();
	}
	unsigned off = sizeof(head);
	for (unsigned i = 0; i < e->n_fields; off += e->fields[i++].size) {
		d9_u64 v = values == VALUES_WILD ? wild_value() : tame_value(&e->fields[i], head.t, dur);
		memcpy(rec->bytes + off, &v, e->fields[i].size);
	}
	d9_u32 len = off;
	if (e->has_tail)
		make_tail(rec, off, &len);
	head.head = D9_REC_HEAD(len, id) | D9_COMMITTED;
	memcpy(rec->bytes, &head, sizeof(head));
}

static d9_u64 load(const d9_u8 *p, unsigned size)
{
	d9_u64 v = 0;
	memcpy(&v, p, size);
	return v;
}

void record_expect(struct record *to, const struct record *from, unsigned shift)
{
	*to = *from;
	struct d9_rec *head = (struct d9_rec *)to->bytes;
	unsigned id = D9_REC_ID(head->head);
	const struct d9_event_desc *e = &d9_events[id];
	head->head = D9_REC_HEAD(e->size, id) | D9_COMMITTED;
	head->t >>= shift;
	bool dur_seen = false;
	unsigned off = sizeof(*head);
	for (unsigned i = 0; i < e->n_fields; off += e->fields[i++].size) {
		d9_u64 v = load(to->bytes + off, e->fields[i].size);
		if (e->fields[i].unit == D9_UNIT_TICKS && e->kind == D9_KIND_SPAN && !dur_seen) {
			v = head->t - ((record_head(from)->t - v) >> shift);
			dur_seen = true;
		} else if (e->fields[i].unit == D9_UNIT_TICKS || e->fields[i].unit == D9_UNIT_TIME) {
			v = v == D9_NOT_KNOWN ? v : v >> shift;
		}
		memcpy(to->bytes + off, &v, e->fields[i].size);
	}
}

/* ---- streams --------------------------------------------------------------------------------- */

struct d9_segw *stream_begin(struct stream *s, struct buffer *to)
{
	void *mem = aligned_alloc(64, (d9_segw_bytes() + 63) & ~(size_t)63);
	need(mem, "no memory");
	memset(mem, 0, d9_segw_bytes());
	struct d9_segw *w = d9_segw_init(mem);
	struct d9_seg_header ident = {
		.family = {1, 2}, .sequence = 3, .clock = D9_CLOCK_WORD(0, s->shift), .created_real = 4};
	need(d9_segw_begin(w, &ident, buffer_sink, to) == 0, "the sink failed at once");
	if (!s->now)
		s->now = 1ull << 40;
	return w;
}

static struct expected *stream_slot(struct stream *s)
{
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 64;
		s->all = realloc(s->all, s->cap * sizeof(*s->all));
		need(s->all, "no memory");
	}
	return &s->all[s->n++];
}

void stream_add(struct stream *s, struct d9_segw *w, unsigned id, enum values values)
{
	struct record rec;
	record_make(&rec, id, values, &s->now);
	struct expected *e = stream_slot(s);
	record_expect(&e->rec, &rec, s->shift);
	d9_u32 who = (d9_u32)(s->n / 7 % STREAM_THREADS), len = D9_REC_LEN(record_head(&rec)->head);
	e->thread = who ? D9_THREAD_ID(who, who * 3) : D9_THREAD_NONE;
	if (who && s->at[who] + len > 4064) {
		s->serial[who]++;
		s->at[who] = 0;
	}
	e->serial = s->serial[who];
	e->begin = s->at[who];
	e->end = e->begin + (who ? len : 0);
	s->at[who] = e->end;
	int r = d9_segw_add(w, e->thread, e->serial, e->begin, e->end, record_head(&rec));
	if (r == -ENOSPC) {
		need(d9_segw_flush(w) == 0, "the sink failed");
		r = d9_segw_add(w, e->thread, e->serial, e->begin, e->end, record_head(&rec));
	}
	need(r == 0, "d9_segw_add refused a good record");
}

void writer_free(struct d9_segw *w) { free(w); }

void stream_free(struct stream *s)
{
	free(s->all);
	*s = (struct stream){0};
}

void stream_write(struct stream *s, struct buffer *to, unsigned n, enum values values)
{
	struct d9_segw *w = stream_begin(s, to);
	unsigned id = 0;
	for (unsigned i = 0; i < n; i++) {
		id = i % 3 ? id : event_next(id);
		if (!id)
			id = event_first();
		stream_add(s, w, id, values);
		if (chance_below(400) == 0)
			need(d9_segw_flush(w) == 0, "the sink failed");
	}
	need(d9_segw_end(w) == 0, "the sink failed");
	writer_free(w);
}

struct compare {
	const struct stream *s;
	bool damaged;
	char *what;
	size_t n_what;
	size_t next[STREAM_THREADS]; /* by thread: where to look for its next one */
	size_t n;
};

static const char *difference(const struct compare *c, const struct d9_segr_event *ev, const struct expected *e)
{
	const struct d9_event_desc *d = &d9_events[ev->id];
	struct d9_tail tail = {0};
	if (D9_REC_ID(record_head(&e->rec)->head) != ev->id)
		return "is of another event";
	if (memcmp(e->rec.bytes, ev->rec, d->size))
		return "has another content";
	if (ev->run.serial != e->serial || ev->run.begin > e->begin || ev->run.end < e->end)
		return "is in a run that does not hold it";
	if (d->has_tail)
		memcpy(&tail, e->rec.bytes + d->size, sizeof(tail));
	if (c->damaged && !ev->tail.kind)
		return 0;
	if (ev->tail.kind != D9_TAIL_KIND(tail.kind_bytes) || ev->tail.n != D9_TAIL_BYTES(tail.kind_bytes) ||
	    (ev->tail.n && memcmp(ev->tail.p, e->rec.bytes + d->size + sizeof(tail), ev->tail.n)))
		return "has another tail";
	return 0;
}

static int compare_event(void *ctx, const struct d9_segr_event *ev)
{
	struct compare *c = ctx;
	if (ev->id == D9_EV_blob)
		return 0;
	unsigned who = ev->run.thread == D9_THREAD_NONE ? 0 : D9_THREAD_SLOT(ev->run.thread);
	const char *wrong = "was never written";
	for (size_t *i = &c->next[who % STREAM_THREADS]; *i < c->s->n; ++*i) {
		const struct expected *e = &c->s->all[*i];
		if (e->thread != ev->run.thread)
			continue;
		wrong = difference(c, ev, e);
		if (!wrong || !c->damaged)
			break;
	}
	c->next[who % STREAM_THREADS]++;
	c->n++;
	return wrong ? snprintf(c->what, c->n_what, "record %zu, a %s of thread %#x, %s", c->n, d9_events[ev->id].name,
				ev->run.thread, wrong)
		     : 0;
}

int stream_compare(const struct stream *s, const void *bytes, size_t n, bool damaged, char *what, size_t n_what,
		   struct d9_segr_stats *stats)
{
	struct d9_segr *r;
	struct compare c = {.s = s, .damaged = damaged, .what = what, .n_what = n_what};
	what[0] = 0;
	memset(stats, 0, sizeof(*stats));
	int error = d9_segr_open_memory(bytes, n, &r, what, n_what);
	if (error)
		return error;
	int result = d9_segr_each(r, compare_event, &c);
	d9_segr_stats(r, stats);
	d9_segr_close(r);
	if (result == 0 && !damaged && c.n != s->n)
		result = snprintf(what, n_what, "%zu records of %zu came back", c.n, s->n);
	return result;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

size_t blocks_of(const struct buffer *b, struct block *ret, size_t max)
{
	size_t n = 0, at = sizeof(struct d9_seg_header);
	for (; n < max && at < b->n; n++) {
		memcpy(&ret[n].h, b->p + at, sizeof(ret[n].h));
		ret[n].at = at;
		at = ret[n].end = at + sizeof(ret[n].h) + ret[n].h.stored;
	}
	return n;
}

void block_seal(struct buffer *b, size_t at)
{
	struct d9_block_header h;
	memcpy(&h, b->p + at, sizeof(h));
	h.checksum = 0;
	memcpy(b->p + at, &h, sizeof(h));
	h.checksum = XXH3_64bits(b->p + at, sizeof(h) + h.stored);
	memcpy(b->p + at, &h, sizeof(h));
}

void header_seal(struct buffer *b)
{
	struct d9_seg_header h;
	memcpy(&h, b->p, sizeof(h));
	h.checksum = XXH3_64bits(&h, offsetof(struct d9_seg_header, checksum));
	memcpy(b->p, &h, sizeof(h));
}

int suite_run(Suite *suite)
{
	chance_seed();
	SRunner *runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void dump_value(FILE *to, const struct d9_field_desc *f, const d9_u8 *p)
{
	d9_u64 v = load(p, f->size);
	if (f->is_signed)
		fprintf(to, " %s=%lld", f->name, f->size == 4 ? (long long)(d9_i32)v : (long long)v);
	else
		fprintf(to, " %s=%llu", f->name, (unsigned long long)v);
}

static int dump_event(void *ctx, const struct d9_segr_event *ev)
{
	FILE *to = ctx;
	const struct d9_event_desc *e = &d9_events[ev->id];
	fprintf(to, "%x/%u[%u-%u]#%u %s t=%llu site=%u", ev->run.thread, ev->run.serial, ev->run.begin, ev->run.end,
		ev->index, e->name, (unsigned long long)ev->rec->t, ev->rec->site);
	unsigned off = sizeof(struct d9_rec);
	for (unsigned i = 0; i < e->n_fields; off += e->fields[i++].size)
		dump_value(to, &e->fields[i], (const d9_u8 *)ev->rec + off);
	if (ev->tail.kind)
		fprintf(to, " tail=%u:", ev->tail.kind);
	for (d9_u32 i = 0; i < ev->tail.n; i++)
		fprintf(to, "%02x", ev->tail.p[i]);
	fputc('\n', to);
	return 0;
}

int dump_segment(FILE *to, const void *bytes, size_t n)
{
	struct d9_segr *r;
	char err[256];
	int error = d9_segr_open_memory(bytes, n, &r, err, sizeof(err));
	if (error) {
		fprintf(to, "%s\n", err);
		return error;
	}
	const struct d9_seg_header *h = d9_segr_header(r);
	fprintf(to, "segment %u.%u family=%llx-%llx sequence=%u clock=%u created=%llu\n", h->major, h->minor,
		(unsigned long long)h->family[0], (unsigned long long)h->family[1], h->sequence, h->clock,
		(unsigned long long)h->created_real);
	error = d9_segr_each(r, dump_event, to);
	struct d9_segr_stats s;
	d9_segr_stats(r, &s);
	fprintf(to, "end records=%llu blocks=%llu torn=%llu unknown=%llu lost_tails=%llu t=%llu..%llu footer=%d\n",
		(unsigned long long)s.records, (unsigned long long)s.blocks, (unsigned long long)s.torn_blocks,
		(unsigned long long)s.unknown_events, (unsigned long long)s.lost_tails, (unsigned long long)s.t_min,
		(unsigned long long)s.t_max, s.has_footer);
	d9_segr_close(r);
	return error;
}

void print_event(FILE *to, unsigned id)
{
	const struct d9_event_desc *e = &d9_events[id];
	fprintf(to, "%u %s %s\n", id, e->name, e->kind_name);
	for (unsigned i = 0; i < e->n_fields + e->has_tail; i++)
		fprintf(to, "%u %s.%s %s %s\n", id, e->name, e->fields[i].name, e->fields[i].type,
			e->fields[i].unit_name);
}
