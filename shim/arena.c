/* Slow paths of the session memory; see arena.h for who may touch what. */
#include "arena.h"
#include "clock.h"
#include "perf_host.h"
#include "sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define D9_STOCK 8u /* chunks that are backed before a system call filter comes */

static const d9_u64 off;
static struct d9_private dormant = {.alive = D9_REFUSED};
struct d9_shim d9_shim = {.mask = &off, .priv = &dormant};
__thread struct d9_cell *d9_me;

bool d9_back(const void *p, d9_u64 n)
{
	d9_u64 a = (d9_u64)p & ~4095ull, end = ((d9_u64)p + n + 4095) & ~4095ull;
	if (d9_shim.populate)
		return d9_sys3(SYS_madvise, (long)a, (long)(end - a), D9_MADV_POPULATE_WRITE) == 0;
	for (; a < end; a += 4096) /* before 5.14 */
		if (d9_add_zero(a))
			return false;
	return true;
}

void *d9_map(d9_u64 bytes)
{
	bool locked = d9_load_relaxed(&d9_shim.priv->future_locked);
	long m = d9_sys6(SYS_mmap, 0, (long)bytes, locked ? PROT_NONE : PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m < 0 && m > -4096)
		return NULL;
	if (locked) { /* what cannot be accessed is not brought in */
		(void)d9_sys2(SYS_munlock, m, (long)bytes);
		(void)d9_sys3(SYS_mprotect, m, (long)bytes, PROT_READ | PROT_WRITE);
	}
	return (void *)m;
}

void *d9_map_private(d9_u64 bytes)
{
	void *p = d9_map(bytes);
	long m = (long)p;
	if (!p)
		return NULL;
	/* Before 4.14 a forked child could not be told from its parent. */
	if (d9_sys3(SYS_madvise, m, (long)bytes, MADV_WIPEONFORK)) {
		(void)d9_sys2(SYS_munmap, m, (long)bytes);
		return NULL;
	}
	(void)d9_sys3(SYS_madvise, m, (long)bytes, MADV_NOHUGEPAGE);
	return (void *)m;
}

void *d9_map_kept(d9_u64 bytes, void **where)
{
	struct d9_shim *s = &d9_shim;
	void *p = s->n_kept < D9_N_KEPT ? d9_map(D9_PAGES(bytes)) : NULL;
	if (!p)
		return NULL;
	s->kept[s->n_kept] = (struct d9_kept){(d9_u64)p, D9_PAGES(bytes), where};
	if (where)
		d9_store_release(where, p);
	d9_store_release(&s->n_kept, s->n_kept + 1);
	return p;
}

bool d9_frames_for(d9_u32 slot)
{
	struct d9_frames **piece = &d9_shim.frames[slot / D9_FRAMES_PIECE];
	struct d9_frames *none = NULL;
	if (d9_load_acquire(piece))
		return true;
	struct d9_frames *m = d9_shim.priv->nosys ? NULL : d9_map_private(D9_FRAMES_BYTES);
	if (m && !d9_cas_acq_rel(piece, &none, m)) /* a handler or another thread was quicker */
		(void)d9_sys2(SYS_munmap, (long)m, (long)D9_FRAMES_BYTES);
	return m != NULL;
}

d9_u64 d9_arena_held(bool private_alone)
{
	d9_u64 n = d9_private_bytes(d9_shim.v.n_threads);
	for (d9_u32 i = 1; i < D9_N_THREADS / D9_FRAMES_PIECE; i++)
		n += d9_load_relaxed(&d9_shim.frames[i]) ? D9_FRAMES_BYTES : 0;
	for (d9_u32 i = 0; i < d9_load_acquire(&d9_shim.n_kept); i++)
		n += d9_shim.kept[i].where ? d9_shim.kept[i].bytes : 0;
	return private_alone ? n : n + d9_arena_bytes(d9_shim.v.n_chunks);
}

void d9_arena_close(void)
{
	struct d9_view v = d9_shim.v;
	struct d9_private *pr = d9_shim.priv;
	long bytes = (long)d9_private_bytes(v.n_threads);
	d9_perf_host_leave();
	d9_store_release(&d9_shim.mask, &off);
	d9_store_relaxed(&d9_shim.waited, 0);
	d9_me = NULL;
	d9_shim.priv = &dormant;
	d9_shim.v = (struct d9_view){0};
	d9_shim.cells = NULL;
	for (d9_u32 i = 0; i < D9_N_THREADS / D9_FRAMES_PIECE; i++) {
		if (i && d9_shim.frames[i])
			(void)d9_sys2(SYS_munmap, (long)d9_shim.frames[i], (long)D9_FRAMES_BYTES);
		d9_shim.frames[i] = NULL;
	}
	for (d9_u32 i = 0; i < d9_shim.n_kept; i++) {
		struct d9_kept *k = &d9_shim.kept[i];
		if (!k->where)
			continue;
		d9_store_release(k->where, NULL);
		(void)d9_sys2(SYS_munmap, (long)k->at, (long)k->bytes);
		*k = (struct d9_kept){0};
	}
	(void)d9_sys2(SYS_munmap, (long)pr, bytes);
	(void)d9_sys2(SYS_munmap, (long)v.h, (long)d9_arena_bytes(v.n_chunks));
}

void d9_count_drop(struct d9_cell *me)
{
	d9_local_add64(&me->slot->drops, 1);
	d9_add_relaxed(&d9_shim.v.h->drops, 1);
}

/*
 * Where in its descriptor glibc keeps the thread's id: looked for once, and believed as long as it is right.  Under a system
 * call filter the kernel cannot be asked.
 */
void d9_find_tid(void)
{
	const d9_i32 *self = (const d9_i32 *)d9_thread_self();
	d9_i32 tid = (d9_i32)d9_sys0(SYS_gettid);
	for (d9_u32 i = 16; i < 256 && !d9_shim.tid_offset; i++)
		if (d9_load_relaxed(&self[i]) == tid)
			d9_shim.tid_offset = i;
}

/* 0: cannot be known. */
static d9_i32 own_tid(bool nosys)
{
	d9_u32 i = d9_load_relaxed(&d9_shim.tid_offset);
	d9_i32 kept = i ? d9_load_relaxed((const d9_i32 *)d9_thread_self() + i) : 0;
	if (nosys)
		return kept;
	d9_i32 tid = (d9_i32)d9_sys0(SYS_gettid);
	if (kept != tid && i)
		d9_store_relaxed(&d9_shim.tid_offset, 0);
	return tid;
}

/* What the kernel knows of a process.  Under a filter: what its parent was, and that only its forking thread is here. */
static bool identify(struct d9_proc *p, struct d9_private *pr)
{
	if (pr->nosys) {
		const struct d9_proc *parent = &d9_shim.v.procs[d9_shim.last_proc];
		p->pid = pr->pid = own_tid(true);
		p->ppid = parent->pid;
		p->uid = parent->uid;
		return p->pid != 0;
	}
	p->pid = pr->pid = (d9_i32)d9_sys0(SYS_getpid);
	p->ppid = (d9_i32)d9_sys0(SYS_getppid);
	p->uid = (d9_u32)d9_sys0(SYS_geteuid);
	return true;
}

/* This image's entry in the process table: at start, and in a forked child at its first event. */
static bool enter_process(void)
{
	struct d9_private *pr = d9_shim.priv;
	struct d9_arena_header *h = d9_shim.v.h;
	d9_u32 seen = D9_OUTSIDE;
	/* A handler or a thread got here first; if it is not done, this one event is lost. */
	if (!d9_cas_acq_rel(&pr->alive, &seen, D9_ENTERING))
		return seen == D9_INSIDE;
	if (d9_shim.last_proc != ~0u) /* a filter outlives fork; what said so here did not */
		pr->nosys = !!(d9_shim.v.procs[d9_shim.last_proc].flags & D9_PROC_SECCOMP);
	d9_u32 i = d9_add_relaxed(&h->proc_next, 1);
	struct d9_proc *p = &d9_shim.v.procs[i];
	if (i >= D9_N_PROCS || (!pr->nosys && !d9_back(p, sizeof(*p))) || !identify(p, pr)) {
		d9_add_relaxed(&h->unrecorded, 1);
		d9_store_release(&pr->alive, D9_REFUSED);
		return false;
	}
	p->parent = d9_shim.last_proc;
	p->generation = d9_add_relaxed(&h->generation_next, 1);
	p->born_tsc = d9_now();
	p->flags = pr->nosys ? D9_PROC_SECCOMP : 0;
	d9_store_release(&p->state, D9_PROC_LIVE);
	pr->proc = d9_shim.last_proc = i;
	d9_store_relaxed(&d9_shim.wake_proc, (d9_u64)(i & 0xffff) << 48);
	d9_store_release(&pr->alive, D9_INSIDE);
	d9_perf_host_enter();
	return true;
}

static bool take_slot(d9_u32 i)
{
	d9_u32 free_state = D9_SLOT_FREE;
	return d9_load_relaxed(&d9_shim.v.threads[i].state) == D9_SLOT_FREE &&
	       d9_cas_acq_rel(&d9_shim.v.threads[i].state, &free_state, D9_SLOT_TAKEN);
}

/* A free thread slot, or -1.  Slots that were used before first, near where the drainer freed one last. */
static int find_slot(void)
{
	struct d9_arena_header *h = d9_shim.v.h;
	d9_u32 used = d9_load_acquire(&h->thread_next), hint = d9_load_relaxed(&h->thread_free_hint),
	       n = d9_shim.v.n_threads;
	if (used > n)
		used = n;
	d9_u32 look = used < n ? 16 : used; /* while there are new ones, do not search long */
	for (d9_u32 k = 0; k < look && k < used; k++)
		if (take_slot((hint + k) % used))
			return (int)((hint + k) % used);
	while (used < n) {
		if (!d9_shim.priv->nosys && !d9_back(&d9_shim.v.threads[used], sizeof(struct d9_thread)))
			return -1;
		if (d9_cas_acq_rel(&h->thread_next, &used, used + 1) && take_slot(used))
			return (int)used;
	}
	return -1;
}

static bool fill_slot(struct d9_thread *s, struct d9_private *pr)
{
	if (!s->use)
		s->use = 1; /* so that no thread's id is 0, which is what a page that is new says */
	s->proc = pr->proc;
	s->tid = own_tid(pr->nosys);
	if (!s->tid)
		return false;
	s->role = s->tid == pr->pid;
	d9_store_relaxed(&s->drops, 0);
	s->call.site = 0;
	s->poll.active = 0;
	s->call_owner = 0;
	s->calls_open = 0;
	memset(s->held, 0, sizeof(s->held));
	memset(s->comm, 0, sizeof(s->comm));
	if (!pr->nosys)
		(void)d9_sys3(SYS_prctl, 16 /* PR_GET_NAME */, (long)s->comm, 0);
	s->name_version++;
	s->born_tsc = d9_now();
	d9_store_release(&s->state, D9_SLOT_LIVE);
	return true;
}

/* A forked child that is not to be recorded takes itself out at its first event. */
static bool left_out(struct d9_private *pr)
{
	if (!d9_shim.forks_left_out || d9_shim.last_proc == ~0u)
		return false;
	d9_store_release(&d9_shim.mask, &off);
	d9_store_release(&pr->alive, D9_REFUSED);
	return true;
}

struct d9_cell *d9_enter_thread(void)
{
	struct d9_private *pr = d9_shim.priv;
	struct d9_arena_header *h = d9_shim.v.h;
	if (!h)
		return NULL;
	d9_u32 alive = d9_load_acquire(&pr->alive);
	if (alive == D9_OUTSIDE && left_out(pr))
		return NULL;
	if (alive != D9_INSIDE && (alive != D9_OUTSIDE || !enter_process())) {
		d9_add_relaxed(&h->drops, 1);
		return NULL;
	}
	struct d9_cell *me = d9_me;
	if (me && me->slot)
		return me;
	d9_u32 epoch = d9_load_acquire(&h->free_epoch) + 1;
	if (d9_load_relaxed(&pr->refused_epoch) == epoch) {
		d9_add_relaxed(&h->drops, 1);
		return NULL;
	}
	int i = find_slot();
	if (i < 0) {
		d9_store_relaxed(&pr->refused_epoch, epoch);
		d9_add_relaxed(&h->unrecorded, 1);
		return NULL;
	}
	struct d9_thread *s = &d9_shim.v.threads[i];
	if (!fill_slot(s, pr)) {
		d9_store_release(&s->state, D9_SLOT_FREE);
		d9_add_relaxed(&h->unrecorded, 1);
		return NULL;
	}
	me = &d9_shim.cells[i];
	struct d9_cell *handler = d9_me;
	if (handler && handler->slot) { /* a signal handler on this thread was quicker: one slot is enough */
		d9_store_release(&s->state, D9_SLOT_DEAD);
		return handler;
	}
	memset(me, 0, sizeof(*me));
	me->thread = D9_THREAD_ID((d9_u32)i, s->use);
	me->slot = s;
	d9_compiler_barrier();
	d9_me = me;
	d9_u32 nobody = 0;
	(void)d9_cas_acq_rel(&d9_shim.v.procs[pr->proc].leader_thread, &nobody, me->thread + 1);
	return me;
}

static void wake_drainer(struct d9_arena_header *h)
{
	d9_u32 full = d9_add_relaxed(&h->chunks_full, 1);
	if (full < d9_shim.v.n_chunks / 8 || full % 64 || d9_shim.priv->nosys)
		return;
	d9_add_relaxed(&h->drain_wake, 1);
	(void)d9_sys6(SYS_futex, (long)&h->drain_wake, FUTEX_WAKE, 1, 0, 0, 0);
}

/* Takes chunk i if it is free; one without a page only while *can_back. */
static bool take_chunk(d9_u32 i, d9_u32 slot, bool *can_back)
{
	struct d9_chunk_entry *e = &d9_shim.v.entries[i];
	d9_u32 was = d9_load_relaxed(&e->state);
	d9_u32 state = D9_CHUNK_STATE(was);
	if (state > D9_CHUNK_BACKED || (state == D9_CHUNK_FREE && !*can_back))
		return false;
	if (!d9_cas_acq_rel(&e->state, &was, D9_CHUNK_WORD(slot, D9_CHUNK_ACTIVE)))
		return false;
	if (state == D9_CHUNK_BACKED || d9_back(&d9_shim.v.chunks[i], D9_CHUNK_BYTES))
		return true;
	d9_store_release(&e->state, D9_CHUNK_FREE);
	*can_back = false; /* the tmpfs is full: go on, there may be chunks that have their page */
	return false;
}

/* rec[] is zero already: a page that is new, or one that the drainer emptied. */
static void prepare_chunk(d9_u32 i, struct d9_cell *me)
{
	struct d9_chunk *c = &d9_shim.v.chunks[i];
	/* Before anything else changes: a drainer must not take it for the old owner's. */
	d9_store_relaxed(&c->thread, D9_THREAD_NONE);
	d9_compiler_barrier();
	d9_store_relaxed(&d9_shim.v.entries[i].drained, 0);
	c->serial = ++me->serial;
	c->generation = d9_shim.v.procs[d9_shim.priv->proc].generation;
	c->claimed_tsc = d9_now();
	d9_store_release(&c->thread, me->thread); /* from here on a drainer believes the content */
}

/* The chunk that a cursor stands in; a cursor at a chunk's end is still in it. */
static d9_u32 chunk_of(const d9_u8 *cursor)
{
	return (d9_u32)((d9_u64)(cursor - 1 - (d9_u8 *)d9_shim.v.chunks) / D9_CHUNK_BYTES);
}

bool d9_claim_chunk(struct d9_cell *me)
{
	struct d9_arena_header *h = d9_shim.v.h;
	d9_u32 epoch = d9_load_acquire(&h->free_epoch) + 1, n = d9_shim.v.n_chunks, slot = D9_THREAD_SLOT(me->thread);
	if (me->full_epoch == epoch)
		return false; /* full, and nothing was freed since: no search.  A storm on a full arena would live-lock */
	d9_u8 *old = *(d9_u8 *volatile *)&me->cursor;
	d9_u32 hint = d9_add_relaxed(&h->chunk_hint, 1);
	bool can_back = !d9_shim.priv->nosys;
	for (d9_u32 k = 0; k < n; k++) {
		d9_u32 i = (hint + k) % n;
		if (!take_chunk(i, slot, &can_back))
			continue;
		prepare_chunk(i, me);
		if (!d9_local_cas64((d9_u64 *)&me->cursor, (d9_u64)old, (d9_u64)d9_shim.v.chunks[i].rec)) {
			/* A signal handler gave this thread a chunk meanwhile: use that one. */
			d9_store_relaxed(&d9_shim.v.chunks[i].thread, D9_THREAD_NONE);
			d9_store_release(&d9_shim.v.entries[i].state, D9_CHUNK_WORD(0, D9_CHUNK_BACKED));
		} else if (old) {
			/* Whoever moved the cursor out of a chunk, and nobody else, says that it is full. */
			d9_store_release(&d9_shim.v.entries[chunk_of(old)].state, D9_CHUNK_WORD(slot, D9_CHUNK_FULL));
			wake_drainer(h);
		}
		return true;
	}
	me->full_epoch = epoch;
	return false;
}

void d9_stock_chunks(struct d9_cell *me)
{
	d9_u32 n = d9_shim.v.n_chunks, hint = d9_load_relaxed(&d9_shim.v.h->chunk_hint), have = 0;
	bool can_back = true;
	for (d9_u32 k = 0; k < n && have < D9_STOCK && can_back; k++) {
		d9_u32 i = (hint + k) % n;
		if (!take_chunk(i, D9_THREAD_SLOT(me->thread), &can_back))
			continue;
		d9_store_release(&d9_shim.v.entries[i].state, D9_CHUNK_WORD(0, D9_CHUNK_BACKED));
		have++;
	}
}

d9_u32 d9_pin_chunk(struct d9_cell *me)
{
	struct d9_arena_header *h = d9_shim.v.h;
	d9_u32 n = d9_shim.v.n_chunks, hint = d9_add_relaxed(&h->chunk_hint, 1);
	bool can_back = !d9_shim.priv->nosys;
	if (d9_load_relaxed(&h->chunks_pinned) >= n / 16)
		return 0;
	for (d9_u32 k = 0; k < n; k++) {
		d9_u32 i = (hint + k) % n;
		if (!take_chunk(i, D9_THREAD_SLOT(me->thread), &can_back))
			continue;
		struct d9_chunk *c = &d9_shim.v.chunks[i];
		memset(c, 0, sizeof(*c));
		c->thread = D9_THREAD_NONE; /* while ACTIVE: nothing here for a drainer */
		d9_add_relaxed(&h->chunks_pinned, 1);
		d9_store_release(&d9_shim.v.entries[i].state, D9_CHUNK_WORD(0, D9_CHUNK_PINNED));
		return i + 1;
	}
	return 0;
}
