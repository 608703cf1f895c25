/*
 * What a stamp costs on its way to disk and back: encode (add, transpose, LZ4, checksum), decode, bytes.  A
 * span counts as two stamps.  The stream is synthetic: four threads of an epoll server, each round an
 * epoll_wait, then reads and writes on 2-4 descriptors, every few rounds a wait for a futex that another
 * thread woke; gaps of 1-50 us with 1 ns jitter.  Not a test: it has no verdict, it prints figures.
 */
#include "format/segment_read.h"
#include "format/segment_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_SPANS 400000u
#define N_THREADS 4u
#define CHUNK_SPANS (4064u / sizeof(struct d9_ev_span))
#define TSC_PER_NS 2.445
#define SHIFT 4 /* 6.5 ns */
#define ROUNDS 21

struct chunk {
	d9_u32 thread, serial, n;
	struct d9_ev_span span[CHUNK_SPANS];
};
static struct chunk *chunks;
static size_t n_chunks;
static d9_u64 state = 1;

static d9_u64 below(d9_u64 n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

static d9_u64 cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* what others take from us is not ours */
	return (d9_u64)t.tv_sec * 1000000000u + (d9_u64)t.tv_nsec;
}

/* One thread of the server, and the chunk that it fills. */
struct thread {
	struct chunk *chunk;
	d9_u32 id, serial;
	double ns;
	d9_u32 step, fd;
};

static void emit(struct thread *t, d9_u32 site, double gap_ns, double dur_ns, struct d9_ev_span span)
{
	if (!t->chunk || t->chunk->n == CHUNK_SPANS) {
		t->chunk = &chunks[n_chunks++];
		*t->chunk = (struct chunk){.thread = t->id, .serial = t->serial++};
	}
	t->ns += gap_ns + dur_ns;
	span.rec.head = D9_REC_HEAD(sizeof(span), D9_EV_span) | D9_COMMITTED;
	span.rec.site = site;
	span.rec.t = (d9_u64)(t->ns * TSC_PER_NS);
	span.dur = (d9_u64)(dur_ns * TSC_PER_NS);
	if (span.waker_t)
		span.waker_t = span.rec.t - (d9_u64)(TSC_PER_NS * (double)(2000 + below(6000)));
	t->chunk->span[t->chunk->n++] = span;
}

/* 1-50 us, the short ones more often, as in a real service. */
static double gap(void)
{
	double x = (double)(below(1000000) + 1) / 1e6;
	return 1000 + 49000 * x * x * x;
}

static void step(struct thread *t)
{
	struct d9_ev_span io = {.fd = (d9_i32)t->fd, .waker = D9_THREAD_NONE};
	switch (t->step++ % 4) {
	case 0:
		io.fd = 4;
		io.result = below(8) ? 1 : 2;
		emit(t, 1024, (double)(300 + below(500)), gap(), io);
		t->fd = 8 + (d9_u32)below(4);
		return;
	case 1:
		io.result = below(4) ? 64 : (d9_i32)(40 + below(100));
		emit(t, 1025, (double)(150 + below(200)), (double)(400 + below(900)), io);
		return;
	case 2:
		io.result = 512;
		emit(t, 1026, gap(), (double)(2000 + below(3000)), io);
		return;
	default:
		if (below(4))
			return;
		io = (struct d9_ev_span){.object = 0x7f5512340000ull + 64 * below(3), .fd = -1, .waker_t = 1};
		io.waker = D9_THREAD_ID(1 + below(N_THREADS), 0);
		emit(t, 1027, gap(), gap(), io);
	}
}

static void make_stream(void)
{
	struct thread threads[N_THREADS] = {0};
	chunks = calloc(N_SPANS / CHUNK_SPANS + 2 * N_THREADS, sizeof(*chunks));
	for (d9_u32 i = 0; i < N_THREADS; i++)
		threads[i] = (struct thread){.id = D9_THREAD_ID(i + 1, 0), .ns = 3e12};
	for (d9_u32 i = 0; n_chunks < N_SPANS / CHUNK_SPANS; i++)
		step(&threads[i % N_THREADS]);
}

static d9_u8 *file;
static size_t file_n;
static int to_memory(void *ctx, const void *bytes, size_t n)
{
	(void)ctx;
	memcpy(file + file_n, bytes, n);
	file_n += n;
	return 0;
}

static d9_u64 add_chunk(struct d9_segw *w, const struct chunk *c)
{
	d9_u32 at = 0;
	for (d9_u32 i = 0; i < c->n; i++) {
		d9_u32 end = at + (d9_u32)sizeof(c->span[i]);
		while (d9_segw_add(w, c->thread, c->serial, at, end, &c->span[i].rec) == -ENOSPC)
			d9_segw_flush(w);
		at = end;
	}
	return c->n;
}

static d9_u64 encode(struct d9_segw *w)
{
	struct d9_seg_header ident = {.clock = D9_CLOCK_WORD(0, SHIFT)};
	d9_u64 n = 0;
	file_n = 0;
	d9_segw_begin(w, &ident, to_memory, 0);
	for (size_t i = 0; i < n_chunks; i++)
		n += add_chunk(w, &chunks[i]);
	d9_segw_end(w);
	return n;
}

static int count(void *ctx, const struct d9_segr_event *ev)
{
	d9_u64 *sum = ctx;
	*sum += ev->rec->t;
	return 0;
}

static d9_u64 decode(void)
{
	struct d9_segr *r;
	struct d9_segr_stats stats;
	d9_u64 sum = 0;
	char err[256];
	if (d9_segr_open_memory(file, file_n, &r, err, sizeof(err)) || d9_segr_each(r, count, &sum))
		exit(1);
	d9_segr_stats(r, &stats);
	d9_segr_close(r);
	return stats.records;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

int main(void)
{
	make_stream();
	file = malloc((size_t)N_SPANS * 64);
	void *mem = aligned_alloc(64, (d9_segw_bytes() + 63) & ~(size_t)63);
	if (!file || !mem)
		return 1;
	memset(mem, 0, d9_segw_bytes());
	struct d9_segw *w = d9_segw_init(mem);
	double in[ROUNDS], out[ROUNDS];
	d9_u64 n = 0, back = 0;
	for (int i = 0; i < ROUNDS; i++) {
		d9_u64 t0 = cpu_ns();
		n = encode(w);
		d9_u64 t1 = cpu_ns();
		back = decode();
		in[i] = (double)(t1 - t0) / (2.0 * (double)n);
		out[i] = (double)(cpu_ns() - t1) / (2.0 * (double)n);
	}
	if (back != n)
		return 1;
	qsort(in, ROUNDS, sizeof(*in), by_value);
	qsort(out, ROUNDS, sizeof(*out), by_value);
	printf("stamps            %llu (%llu spans), medians of %d rounds\n", (unsigned long long)(2 * n),
	       (unsigned long long)n, ROUNDS);
	printf("encode + LZ4      %.1f ns/stamp, best %.1f  (bar 25)\n", in[ROUNDS / 2], in[0]);
	printf("decode            %.1f ns/stamp, best %.1f = %.0f M/s, best %.0f  (bar 20 M/s)\n", out[ROUNDS / 2],
	       out[0], 1e3 / out[ROUNDS / 2], 1e3 / out[0]);
	printf("on disk           %.2f bytes/stamp  (bar 2.5)\n", (double)file_n / (2.0 * (double)n));
	printf("writer's memory   %zu KiB\n", d9_segw_bytes() >> 10);
	return 0;
}
