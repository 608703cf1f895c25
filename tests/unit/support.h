/*
 * What the tests of format/ share: a sink that can fail, a random source with a printed seed, records made
 * at random from the descriptors, and what a reader must say of them, worked out here a second time and
 * not with the writer's code.
 */
#ifndef D9_TESTS_SUPPORT_H
#define D9_TESTS_SUPPORT_H
#include "format/segment_read.h"
#include "format/segment_write.h"

#include <check.h>
#include <stdio.h>

/* Runs a suite with TAP output: what every test's main returns. */
int suite_run(Suite *suite);

/* ---- bytes ----------------------------------------------------------------------------------- */

struct buffer {
	d9_u8 *p;
	size_t n, cap;
	size_t fail_at; /* the sink fails, having written a part, once this many bytes are there; 0: never */
	int error;
};
int buffer_sink(void *ctx, const void *bytes, size_t n);
void buffer_add(struct buffer *b, const void *bytes, size_t n);
void buffer_free(struct buffer *b);
void buffer_load(struct buffer *b, const char *path);

/* ---- chance ---------------------------------------------------------------------------------- */

/* Seeds from D9_TEST_SEED or the clock, and prints the seed. */
void chance_seed(void);
void chance_set(d9_u64 seed);
d9_u64 chance(void);
d9_u64 chance_below(d9_u64 n);

/* ---- records --------------------------------------------------------------------------------- */

#define RECORD_BYTES_MAX 4096
struct record {
	_Alignas(8) d9_u8 bytes[RECORD_BYTES_MAX];
};

enum values { VALUES_TAME, VALUES_WILD };

/* A record of event `id`: plausible values (t near *now, which moves on), or any bits at all. */
void record_make(struct record *rec, unsigned id, enum values values, d9_u64 *now);
static inline const struct d9_rec *record_head(const struct record *rec) { return (const struct d9_rec *)rec->bytes; }

/* What a reader must deliver for it at this clock shift: the fixed part; the tail is at bytes + size + 8. */
void record_expect(struct record *to, const struct record *from, unsigned shift);

/* ---- a stream and what is expected of it ------------------------------------------------------ */

#define STREAM_THREADS 6
struct expected {
	d9_u32 thread, serial, begin, end;
	struct record rec;
};
struct stream {
	struct expected *all;
	size_t n, cap;
	d9_u32 shift;
	d9_u64 now;
	d9_u32 serial[STREAM_THREADS], at[STREAM_THREADS];
};

/* A writer in memory of its own, with a segment begun; clock shift as in the stream. */
struct d9_segw *stream_begin(struct stream *s, struct buffer *to);
/* Makes and adds one record of the event; flushes when asked to.  The same thread for a while, then another. */
void stream_add(struct stream *s, struct d9_segw *w, unsigned id, enum values values);
void stream_free(struct stream *s);
void writer_free(struct d9_segw *w);

/* Random events of the table, n of them, ended. */
void stream_write(struct stream *s, struct buffer *to, unsigned n, enum values values);

/*
 * Reads the segment and compares every record but blobs with the expected ones, thread by thread in order.
 * Returns 0, or says in `what` what differs.  damaged: some may be missing, and so may tails; what is there
 * must be right and in order.
 */
int stream_compare(const struct stream *s, const void *bytes, size_t n, bool damaged, char *what, size_t n_what,
		   struct d9_segr_stats *stats);

/* The blocks of an undamaged segment. */
struct block {
	size_t at, end;
	struct d9_block_header h;
};
size_t blocks_of(const struct buffer *b, struct block *ret, size_t max);
/* Puts the checksum right after a test has changed a block or a header. */
void block_seal(struct buffer *b, size_t at);
void header_seal(struct buffer *b);

unsigned event_first(void);
unsigned event_next(unsigned id); /* 0 after the last; leaves out blob, which the writer makes */

/* What schema.lock says of an event: a line for it, and one for each of its fields. */
void print_event(FILE *to, unsigned id);

/* One line per record, with every field by name: what tests/golden holds. */
int dump_segment(FILE *to, const void *bytes, size_t n);

#endif
