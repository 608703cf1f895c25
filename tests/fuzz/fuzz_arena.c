/*
 * An arena in which other members, or whoever may write to the file, wrote anything: what the drainer makes of it
 * must be a segment that the reader takes, and nothing outside of the arena may be touched.
 *
 * The input is a list of changes to a small sound arena: what region, where in it, how many bytes, the bytes.
 */
#include "format/segment_read.h"
#include "fuzz.h"
#include "shim/drain.h"
#include "shim/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNKS 8u
#define THREADS 4u

static int image = -1;
static d9_u8 *base; /* a private mapping of the image */
static void *drainer;
static d9_u8 *file;
static size_t file_n, file_cap;

/* ---- a sound arena ------------------------------------------------------------------------------------- */

static d9_u32 put_span(struct d9_chunk *c, d9_u32 at, d9_u32 site, d9_u64 t, d9_u32 stack_bytes)
{
	d9_u32 len = (d9_u32)sizeof(struct d9_ev_span) + (stack_bytes ? 8 + stack_bytes : 0);
	struct d9_ev_span e = {.rec = {D9_REC_HEAD(len, D9_EV_span) | D9_COMMITTED, site, t},
			       .dur = 50,
			       .result = 1,
			       .fd = 3,
			       .waker = 1};
	struct d9_tail tail = {D9_TAIL_WORD(D9_TAIL_FRAMES, stack_bytes), 0};
	memcpy(c->rec + at, &e, sizeof(e));
	if (stack_bytes)
		memcpy(c->rec + at + sizeof(e), &tail, sizeof(tail));
	return at + len;
}

static d9_u32 put_custom(struct d9_chunk *c, d9_u32 at, d9_u64 t)
{
	d9_u32 len = (d9_u32)sizeof(struct d9_ev_custom) + 16;
	struct d9_ev_custom e = {.rec = {D9_REC_HEAD(len, D9_EV_custom) | D9_COMMITTED, 0, t}, .type = 0};
	struct d9_tail tail = {D9_TAIL_WORD(D9_TAIL_DATA, 8), 0};
	memcpy(c->rec + at, &e, sizeof(e));
	memcpy(c->rec + at + sizeof(e), &tail, sizeof(tail));
	return at + len;
}

static void make_header(struct d9_arena_header *h)
{
	h->magic = D9_ARENA_MAGIC;
	h->version = D9_ARENA_VERSION;
	h->n_chunks = CHUNKS;
	h->bytes = d9_arena_bytes(CHUNKS);
	h->clock_kind = D9_CLOCK_TSC;
	h->clock_shift = 4;
	h->tsc_hz = 2000000000;
	h->clock_pairs_next = 2;
	h->clocks[0] = (struct d9_clock_pair){1000, 1000, 1000, 1000, 10};
	h->clocks[1] = (struct d9_clock_pair){2000000, 1001000, 1001000, 1001000, 10};
	h->mask = h->configured_mask = 7;
	h->proc_next = 2;
	h->thread_next = THREADS;
	h->module_next = h->type_next = h->site_next = 1;
	strcpy(h->shim_version, "0");
	strcpy(h->warnings, "D9_X=1: no\n");
	memcpy(h->exe_args, "/bin/x\0x\0-y", 12);
}

static void make(void *arena)
{
	struct d9_view v;
	d9_view_init(&v, arena, CHUNKS);
	make_header(v.h);
	v.hooks[1] = (struct d9_hook_entry){"read", "read", D9_HOOK_SLOW};
	v.sites[5] = (struct d9_site){
		.ra = 0x1000, .key = 1 | 1u << 31, .depth = 64, .ready = 1, .stack_chunk = CHUNKS, .stack_at = 0};
	v.types[0] = (struct d9_type_entry){1, 8, "order\0a:u64"};
	v.modules[0] =
		(struct d9_module){.ready = 1, .start = 0x1000, .end = 0x2000, .build_id_bytes = 20, .path = "/bin/x"};
	for (d9_u32 i = 0; i < 2; i++)
		v.procs[i] = (struct d9_proc){.state = D9_PROC_LIVE,
					      .parent = i - 1,
					      .generation = i,
					      .pid = 0x7ffffff0 + (int)i,
					      .leader_thread = 1};
	for (d9_u32 i = 0; i < THREADS; i++) {
		v.threads[i] = (struct d9_thread){.state = D9_SLOT_LIVE,
						  .proc = i / 2,
						  .tid = 100 + (int)i,
						  .comm = "worker",
						  .calls_open = 1,
						  .drops = i,
						  .call = {D9_SITE_FIRST + 5, 3, 1500, 0, 0},
						  .held = {{0x55, 1200}}};
		v.calls[i].of[1] = (struct d9_call_count){10, 1000, 300, 1, 1, 0};
	}
	for (d9_u32 i = 0; i < CHUNKS - 1; i++) {
		struct d9_chunk *c = &v.chunks[i];
		v.entries[i].state = D9_CHUNK_WORD(i % THREADS, i < THREADS ? D9_CHUNK_ACTIVE : D9_CHUNK_FULL);
		c->thread = i % THREADS;
		c->serial = 1 + i / THREADS;
		d9_u32 at = put_span(c, 0, D9_SITE_FIRST + 5, 1300 + i, 0);
		at = put_span(c, at, 1, 1400 + i, 64);
		at = put_custom(c, at, 1500 + i);
		(void)put_span(c, at, 0, 1600 + i, 0);
	}
	v.entries[CHUNKS - 1].state = D9_CHUNK_WORD(0, D9_CHUNK_PINNED);
	struct d9_tail tail = {D9_TAIL_WORD(D9_TAIL_FRAMES, 16), 0};
	memcpy(v.chunks[CHUNKS - 1].rec, &tail, sizeof(tail));
}

static void *map(int flags)
{
	void *m = mmap(NULL, d9_arena_bytes(CHUNKS), PROT_READ | PROT_WRITE, flags, image, 0);
	if (m == MAP_FAILED)
		abort();
	return m;
}

static void make_image(void)
{
	image = memfd_create("arena", 0);
	if (image < 0 || ftruncate(image, (off_t)d9_arena_bytes(CHUNKS)))
		abort();
	void *shared = map(MAP_SHARED);
	make(shared);
	munmap(shared, d9_arena_bytes(CHUNKS));
	base = map(MAP_PRIVATE);
	drainer = calloc(1, d9_drain_bytes());
	if (!drainer)
		abort();
}

/*
 * Everything as it was.  Copying what every arena has is cheaper than page faults, of which each costs some microseconds
 * here; the sparse tables are given back instead.  The writer begins anew by itself.
 */
static void reset(void)
{
	static d9_u8 *dense;
	size_t n = d9_off_threads(CHUNKS) & ~4095ull;
	if (!dense) {
		dense = malloc(n);
		if (!dense || pread(image, dense, n, 0) != (ssize_t)n)
			abort();
	}
	memcpy(base, dense, n);
	if (madvise(base + n, d9_arena_bytes(CHUNKS) - n, MADV_DONTNEED))
		abort();
	memset(drainer, 0, d9_drain_bytes() - d9_segw_bytes());
}

/* ---- changes, and what comes of them --------------------------------------------------------------------- */

static size_t change(const uint8_t *p, size_t left)
{
	const d9_u64 begin[] = {0,
				D9_OFF_HOOKS,
				D9_OFF_CHUNK_TABLE,
				d9_off_wakers(CHUNKS),
				d9_off_sites(CHUNKS),
				d9_off_types(CHUNKS),
				d9_off_procs(CHUNKS),
				d9_off_threads(CHUNKS),
				d9_off_calls(CHUNKS),
				d9_off_modules(CHUNKS),
				d9_off_chunks(CHUNKS),
				d9_arena_bytes(CHUNKS)};
	const unsigned n_regions = sizeof(begin) / sizeof(*begin) - 1;
	unsigned region = p[0] % n_regions;
	d9_u64 at = begin[region] + ((d9_u64)p[1] | (d9_u64)p[2] << 8) % (begin[region + 1] - begin[region]);
	size_t n = p[3] % 64u;
	if (n > left - 4)
		n = left - 4;
	if (n > begin[region + 1] - at)
		n = begin[region + 1] - at;
	memcpy(base + at, p + 4, n);
	return left - 4 - n;
}

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

static int nothing(void *ctx, const struct d9_segr_event *ev)
{
	(void)ctx, (void)ev;
	return 0;
}

static void read_back(void)
{
	struct d9_segr *r;
	struct d9_segr_stats stats;
	if (d9_segr_open_memory(file, file_n, &r, 0, 0) || d9_segr_each(r, nothing, 0))
		abort();
	d9_segr_stats(r, &stats);
	if (stats.torn_blocks || stats.lost_tails || stats.unknown_events || !stats.has_footer)
		abort();
	d9_segr_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (image < 0)
		make_image();
	reset();
	for (size_t left = size; left > 4;)
		left = change(data + size - left, left);
	file_n = 0;
	if (d9_drain_snapshot(drainer, base, d9_arena_bytes(CHUNKS), NULL, NULL, keep, NULL) == 0)
		read_back();
	return 0;
}
