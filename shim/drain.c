/*
 * One pass over the arena.  A record leaves it in three steps: copied and checked into the block being gathered;
 * written with its block; only then forgotten by the arena.  A drainer that dies in between leaves it in both
 * places, and its key (thread, serial, offset) tells the reader that it is one.
 */
#include "drain_internal.h"
#include "clock.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>

size_t d9_drain_bytes(void) { return sizeof(struct d9_drain) + d9_segw_bytes(); }

bool d9_drain_check(const struct d9_arena_header *h, d9_u64 bytes)
{
	return bytes >= D9_HEADER_BYTES && d9_is_arena_header(h, bytes) && h->clock_kind <= D9_CLOCK_MONOTONIC &&
	       h->clock_shift < 32;
}

struct d9_drain *d9_drain_init(void *mem, void *arena, d9_u32 n_chunks, const struct d9_drain_options *o)
{
	struct d9_drain *d = mem;
	d9_view_init(&d->v, arena, n_chunks);
	d->o = *o;
	if (o->path) { /* a copy: its owner may move */
		struct d9_text t = d9_text_in(d->path, sizeof(d->path));
		d9_text_str(&t, o->path);
		d->o.path = d->path;
	}
	d->fd = -1;
	d->w = d9_segw_init(d->writer);
	return d;
}

d9_u64 d9_drain_now(const struct d9_drain *d)
{
	if (d->o.sink)
		return d->t_copy; /* a copy: its own time has stopped */
	return d->v.h->clock_kind == D9_CLOCK_TSC ? d9_tsc() : d9_mono_ns();
}

static void forget_taken(struct d9_drain *d) { d->n_taken = 0; }

/* The block is written: the arena may forget what was in it. */
static void commit_taken(struct d9_drain *d)
{
	d9_u32 lowest = ~0u;
	if (d->part.done) /* else it would be written a second time, should the next block fail */
		d9_store_release(&d->v.entries[d->part.chunk].drained, d->part.upto);
	for (d9_u32 i = 0; i < d->n_taken; i++) {
		struct d9_chunk_entry *e = &d->v.entries[d->taken[i].chunk];
		d9_store_release(&e->drained, d->taken[i].upto);
		if (!d->taken[i].done)
			continue;
		bool was_full = D9_CHUNK_STATE(d9_load_relaxed(&e->state)) == D9_CHUNK_FULL;
		struct d9_chunk *c = &d->v.chunks[d->taken[i].chunk];
		d9_store_release(&c->thread, D9_THREAD_NONE);
		/* Here and not by the next owner: 4 KiB at once would make one of its calls wait for memory that is in our cache. */
		memset(c->rec, 0, sizeof(c->rec));
		d9_store_release(&e->state, D9_CHUNK_WORD(0, D9_CHUNK_BACKED));
		if (was_full)
			d9_add_relaxed(&d->v.h->chunks_full, -1u);
		if (d->taken[i].chunk < lowest)
			lowest = d->taken[i].chunk;
	}
	d->n_taken = 0;
	if (lowest == ~0u)
		return;
	/* The next claims reuse what was just read: memory that is in the cache, and a small part of the budget. */
	if (lowest < d9_load_relaxed(&d->v.h->chunk_hint) % d->v.n_chunks)
		d9_store_relaxed(&d->v.h->chunk_hint, lowest);
	d9_add_acq_rel(&d->v.h->free_epoch, 1);
}

int d9_drain_flush(struct d9_drain *d)
{
	int r = d9_segw_flush(d->w);
	if (r) {
		forget_taken(d);
		d9_drain_failed(d, r, "cannot write ");
		return r;
	}
	commit_taken(d);
	return 0;
}

/* Adds a record to the block; a full block is written first.  A record that is malformed is left out. */
int d9_drain_add(struct d9_drain *d, d9_u32 thread, d9_u32 serial, d9_u32 begin, d9_u32 end, const struct d9_rec *rec)
{
	int r = d9_segw_add(d->w, thread, serial, begin, end, rec);
	if (r == -ENOSPC) {
		r = d9_drain_flush(d);
		if (!r)
			r = d9_segw_add(d->w, thread, serial, begin, end, rec);
	}
	return r == -EBADMSG ? 0 : r;
}

/* Adds one record of a chunk, with what it refers to; when the segment's dictionaries are full, in the next segment. */
static int add_record(struct d9_drain *d, d9_u32 thread, d9_u32 serial, d9_u32 begin, const struct d9_rec *rec)
{
	d9_u32 len = D9_REC_LEN(rec->head);
	for (int tries = 0;; tries++) {
		int r = d9_define_for(d, thread, rec);
		if (!r)
			r = d9_drain_add(d, thread, serial, begin, begin + len, rec);
		if (r != -EOVERFLOW || tries)
			return r;
		r = d9_drain_end_segment(d);
		if (!r)
			r = d9_drain_open_segment(d);
		if (r)
			return r;
	}
}

static void seen_time(struct d9_drain *d, d9_u32 slot, d9_u64 t)
{
	if (t > d->t_last)
		d->t_last = t;
	if (t > d->thread_seen[slot])
		d->thread_seen[slot] = t;
}

/*
 * Copies the committed records of chunk i from *off on.  A reserved record that is not committed may still be (its thread
 * was interrupted there), so nothing beyond it is taken while the thread lives.  *ret_end: nothing follows.
 *
 * What came after t_pass is left to the next one: a thread that goes on meanwhile would have its next chunk taken and
 * the rest of this one not, and the two could end up in two segments of which the budget takes the wrong one first.
 */
static int take_records(struct d9_drain *d, d9_u32 i, d9_u32 thread, d9_u32 serial, bool dead, d9_u32 *off,
			bool *ret_end)
{
	struct d9_chunk *c = &d->v.chunks[i];
	*ret_end = false;
	while (*off + sizeof(struct d9_rec) <= D9_CHUNK_RECORDS) {
		struct d9_rec *at = (struct d9_rec *)(c->rec + *off);
		d9_u32 head = d9_load_acquire(&at->head), len = D9_REC_LEN(head);
		if (!head || len < sizeof(struct d9_rec) || len % 8 || *off + len > D9_CHUNK_RECORDS)
			break;
		if (!(head & D9_COMMITTED)) {
			if (!dead)
				return 0;
			*off += len;
			continue;
		}
		struct d9_rec *rec = (struct d9_rec *)d->copy;
		memcpy(rec, at, len);
		rec->head = head; /* the length that was checked, whatever is there by now */
		if (rec->t > d->t_pass)
			return 0;
		d->part = (struct d9_taken){i, *off, true};
		int r = add_record(d, thread, serial, *off, rec);
		if (r)
			return r;
		seen_time(d, D9_THREAD_SLOT(thread), rec->t);
		*off += len;
		d->moved++;
	}
	*ret_end = true;
	return 0;
}

static int take_chunk(struct d9_drain *d, d9_u32 i)
{
	struct d9_chunk_entry *e = &d->v.entries[i];
	d9_u32 word = d9_load_acquire(&e->state), state = D9_CHUNK_STATE(word);
	if (state != D9_CHUNK_ACTIVE && state != D9_CHUNK_FULL && state != D9_CHUNK_DRAINING)
		return 0;
	d9_u32 thread = d9_load_acquire(&d->v.chunks[i].thread);
	if (!thread || thread == D9_THREAD_NONE || D9_THREAD_SLOT(thread) != D9_CHUNK_OWNER(word) ||
	    D9_THREAD_SLOT(thread) >= d->v.n_threads)
		return 0; /* just claimed */
	d9_u32 serial = d->v.chunks[i].serial;
	bool dead = d->o.sink || d9_live_slot_dead(d, D9_THREAD_SLOT(thread)), end;
	d9_u32 was = d9_load_relaxed(&e->drained);
	if (d->o.drained && d->o.drained(d->o.drained_ctx, thread, serial) > was)
		was = d->o.drained(d->o.drained_ctx, thread, serial);
	d9_u32 off = was;
	if (was % 8 || was > D9_CHUNK_RECORDS)
		return 0;
	if (d->n_taken == D9_DRAIN_PENDING) {
		int r = d9_drain_flush(d);
		if (r)
			return r;
	}
	int r = take_records(d, i, thread, serial, dead, &off, &end);
	d->part.done = false;
	if (r)
		return r;
	bool done = end && (state != D9_CHUNK_ACTIVE || dead);
	if (off != was || done)
		d->taken[d->n_taken++] = (struct d9_taken){i, off, done};
	return 0;
}

static int take_chunks(struct d9_drain *d)
{
	for (d9_u32 i = 0; i < d->v.n_chunks; i++) {
		int r = take_chunk(d, i);
		if (r)
			return r;
	}
	return 0;
}

/* Each turning on or off since the last pass, at its own time. */
static int tell_switches(struct d9_drain *d)
{
	const struct d9_arena_header *h = d->v.h;
	d9_u32 next = d9_load_acquire(&h->switches_next);
	d->switches_told = h->switches_told;
	if (next - d->switches_told > D9_N_SWITCHES)
		d->switches_told = next - D9_N_SWITCHES; /* more in one pass than the ring holds: the oldest are lost */
	for (; d->switches_told != next; d->switches_told++) {
		const struct d9_switch *s = &h->switches[d->switches_told % D9_N_SWITCHES];
		struct d9_ev_control e = {{D9_REC_HEAD(sizeof(e), D9_EV_control) | D9_COMMITTED, 0, s->t}, s->mask};
		int r = d9_drain_add(d, D9_THREAD_NONE, 0, 0, 0, &e.rec);
		if (r)
			return r;
	}
	return 0;
}

static bool roll_due(const struct d9_drain *d, d9_u64 mono)
{
	/* The pass that opened it began before it was open. */
	return d9_segw_written(d->w) >= d->v.h->segment_bytes ||
	       (mono > d->opened_mono && mono - d->opened_mono >= d->v.h->rotate_secs * 1000000000ull);
}

/* What is known of threads at the end of a segment: running totals, losses, what they are in the middle of. */
static int summarize(struct d9_drain *d)
{
	int r = d9_live_totals(d);
	if (!r)
		r = d9_live_pending(d);
	return r;
}

static void heartbeat(struct d9_drain *d, d9_u64 mono)
{
	if (d->o.sink)
		return;
	struct d9_lease *l = &d->v.h->lease;
	d9_store_relaxed(&l->kind, d->o.kind);
	d9_store_relaxed(&l->pid, (d9_u32)d9_sys0(SYS_getpid));
	d9_store_release(&l->heartbeat_mono, mono);
}

static int copy_time(struct d9_drain *d)
{
	if (d->o.sink)
		d->t_copy = d9_live_copy_time(d);
	return 0;
}

/* ---- a drainer that is late ------------------------------------------------------------------------- */

/* The time of the oldest record of a full chunk that is still to be taken.  0: there is none to be seen. */
static d9_u64 oldest_in(const struct d9_drain *d, d9_u32 i)
{
	const struct d9_chunk_entry *e = &d->v.entries[i];
	d9_u32 off = d9_load_relaxed(&e->drained);
	if (D9_CHUNK_STATE(d9_load_acquire(&e->state)) != D9_CHUNK_FULL || off % 8 ||
	    off + sizeof(struct d9_rec) > D9_CHUNK_RECORDS)
		return 0;
	const struct d9_rec *rec = (const struct d9_rec *)(d->v.chunks[i].rec + off);
	return d9_load_acquire(&rec->head) & D9_COMMITTED ? rec->t : 0;
}

/*
 * Up to when a step takes what waits, in a pass that goes up to `end`: about a segment's worth, by its time.  For the budget removes
 * whole segments, the oldest first: none may be much larger than the others, and none hold what is older than the one before.
 */
static d9_u64 step_end(const struct d9_drain *d, d9_u64 end)
{
	d9_u64 some[256];
	d9_u32 full = d9_load_relaxed(&d->v.h->chunks_full);
	d9_u64 wanted = d->v.h->segment_bytes / D9_CHUNK_BYTES;
	if (d->o.sink || full / 2 < wanted)
		return end;
	d9_u32 every = full / 256 + 1, n = 0, met = 0;
	for (d9_u32 i = 0; i < d->v.n_chunks && n < 256; i++) {
		d9_u64 t = oldest_in(d, i);
		if (!t || met++ % every)
			continue;
		d9_u32 k = n++;
		for (; k && some[k - 1] > t; k--)
			some[k] = some[k - 1];
		some[k] = t;
	}
	d9_u64 at = wanted / every;
	return at < n && some[at] < end ? some[at] : end;
}

/* One step: what the arena has up to t_pass.  The last also tells of those who live and those who ended. */
static int step(struct d9_drain *d, unsigned flags, bool is_last, d9_u64 mono)
{
	int r;
	if (!d->open && (r = d9_drain_open_segment(d)))
		return r;
	if ((r = d9_define_changed(d)) || (r = tell_switches(d)) || (r = take_chunks(d)))
		return r;
	if (is_last && ((r = copy_time(d)) || (r = d9_live_gaps(d)) || (r = d9_live_ends(d, flags & D9_PASS_FINAL)) ||
			(r = d9_live_cpu(d))))
		return r;
	if (!(is_last && flags & D9_PASS_FINAL) && !roll_due(d, mono))
		return d9_drain_flush(d);
	if ((r = summarize(d)) || (r = d9_define_clock(d)) || (r = d9_drain_flush(d)) || (r = d9_drain_end_segment(d)))
		return r;
	d9_drain_evict(d);
	return 0;
}

static int pass(struct d9_drain *d, unsigned flags, d9_u64 end, d9_u64 mono)
{
	for (int before = -1;;) {
		/* A step that finds nothing, because what is oldest is not finished, is followed by the last. */
		d->t_pass = d->moved == before ? end : step_end(d, end);
		before = d->moved;
		int r = step(d, flags, d->t_pass == end, mono);
		if (r)
			return r;
		if (d->t_pass == end)
			break;
		mono = d9_mono_ns();
		heartbeat(d, mono);
	}
	d9_live_told(d);
	d9_live_free_slots(d);
	return d->moved;
}

int d9_drain_pass(struct d9_drain *d, unsigned flags)
{
	d9_u64 mono = d9_mono_ns();
	heartbeat(d, mono);
	d->moved = 0;
	if (!(flags & D9_PASS_FINAL) && d->retry_mono > mono)
		return 0;
	d9_u32 flush = d9_load_acquire(&d->v.h->flush_asked);
	/* After the order, which means all that came before it. */
	d9_u64 end = flags & D9_PASS_FINAL ? ~0ull : d9_drain_now(d);
	if (!d->o.sink && (flags & D9_PASS_FINAL || mono - d->live_mono > 1000000000u)) {
		d->live_mono = mono;
		d9_live_check(d);
	}
	int r = pass(d, flags, end, mono);
	if (r < 0) {
		forget_taken(d);
		if (d->open)
			d9_drain_failed(d, r, "cannot write ");
		return r;
	}
	d9_drain_wrote(d);
	d->v.h->events_drained += (d9_u64)r;
	d9_store_release(&d->v.h->flush_done, flush);
	return r;
}

void d9_drain_wait(struct d9_drain *d, unsigned ms)
{
	d9_u32 seen = d9_load_acquire(&d->v.h->drain_wake);
	if (d9_load_relaxed(&d->v.h->flush_asked) != d9_load_relaxed(&d->v.h->flush_done))
		return;
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
	(void)d9_sys6(SYS_futex, (long)&d->v.h->drain_wake, FUTEX_WAIT, seen, (long)&t, 0, 0);
}

void d9_drain_close(struct d9_drain *d)
{
	if (d->fd >= 0)
		(void)d9_sys1(SYS_close, d->fd);
	if (d->o.dirfd >= 0)
		(void)d9_sys1(SYS_close, d->o.dirfd);
	d->fd = d->o.dirfd = -1;
}

int d9_drain_snapshot(void *mem, void *arena_private_copy, size_t n,
		      d9_u32 (*drained)(void *ctx, d9_u32 thread, d9_u32 serial), void *ctx, d9_segw_sink *sink,
		      void *sink_ctx)
{
	const struct d9_arena_header *h = arena_private_copy;
	if (n < D9_HEADER_BYTES || !d9_drain_check(h, n))
		return -EBADMSG;
	struct d9_drain_options o = {.kind = D9_LEASE_NONE,
				     .dirfd = -1,
				     .lease_fd = -1,
				     .same_pids = true,
				     .sink = sink,
				     .sink_ctx = sink_ctx,
				     .drained = drained,
				     .drained_ctx = ctx};
	struct d9_drain *d = d9_drain_init(mem, arena_private_copy, h->n_chunks, &o);
	int r = d9_drain_pass(d, D9_PASS_FINAL);
	d9_drain_close(d);
	return r < 0 ? r : 0;
}
