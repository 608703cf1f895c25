/*
 * See tokio_tasks.h.
 *
 * word         written by                        read by           ordering, and what breaks without it
 * seen[]       who meets a task first            who meets it      CAS: one of them is the first
 * makers[]     who allocates                     the first poll    address last (release) and first (acquire), both ways, and BUSY while it is written: a mixture is never believed
 */
#include "tokio_tasks.h"

#define SEEN_BITS 16
#define SEEN_WORDS (1u << SEEN_BITS)
#define MAKERS_BITS 14
#define MAKER_PROBES 8u /* places at which an address may stand */
#define BUSY 1ull

/* ---- the first time -------------------------------------------------------------------------------------- */

/*
 * Numbers of tasks go up, so they find their bit by themselves: a word has those of 32 tasks, and above them which 32 of all that
 * come to lie there.  Lazily backed, and a line of the cache for 256 tasks in a row.
 */
bool d9_tokio_first(d9_u32 copy, d9_u64 id)
{
	d9_u64 *seen = d9_load_relaxed(&d9_tokio_copies[copy].seen);
	if (__builtin_expect(!seen, 0))
		return false; /* given back to a limit: nothing is recorded any more */
	d9_u64 *w = &seen[id >> 5 & (SEEN_WORDS - 1)], was = d9_load_relaxed(w);
	d9_u64 turn = id >> (5 + SEEN_BITS) << 32, bit = 1ull << (id & 31), now;
	do {
		if (was >> 32 << 32 > turn || (was >> 32 << 32 == turn && was & bit))
			return false;
		now = was >> 32 << 32 == turn ? was | bit : turn | bit;
	} while (!d9_cas_acq_rel(w, &was, now));
	return true;
}

/* ---- who made it ------------------------------------------------------------------------------------------- */

#define MAKERS (1u << MAKERS_BITS)
static struct d9_tokio_maker *makers; /* there before any table is patched */

static struct d9_tokio_maker *maker_at(const void *p, d9_u32 probe)
{
	d9_u64 home = ((d9_u64)p >> 7) * 0x9e3779b97f4a7c15ull >> (64 - MAKERS_BITS);
	return &makers[(home + probe) & (MAKERS - 1)];
}

/* Where it stands already, else where nothing does, else in the place of another; address BUSY.  NULL: two threads, or a handler. */
static struct d9_tokio_maker *take_place(const void *p)
{
	struct d9_tokio_maker *m = maker_at(p, 0);
	for (d9_u32 k = MAKER_PROBES; k-- > 0;) {
		struct d9_tokio_maker *at = maker_at(p, k);
		d9_u64 address = d9_load_relaxed(&at->address);
		if (address == (d9_u64)p) {
			m = at;
			break;
		}
		m = address ? m : at;
	}
	d9_u64 was = d9_load_relaxed(&m->address);
	return was != BUSY && d9_cas_acq_rel(&m->address, &was, BUSY) ? m : NULL;
}

/* What is known of the address is of a task that is gone. */
static void forget_made(const void *p)
{
	for (d9_u32 k = 0; k < MAKER_PROBES; k++) {
		d9_u64 was = (d9_u64)p;
		if (d9_load_relaxed(&maker_at(p, k)->address) == was)
			(void)d9_cas_acq_rel(&maker_at(p, k)->address, &was, 0);
	}
}

void d9_tokio_made(const void *p, size_t bytes)
{
	struct d9_cell *me = d9_me;
	if (!makers)
		return; /* given back to a limit */
	if (!(d9_load_relaxed(d9_shim.mask) & D9_MASK(abi)) || ((!me || !me->slot) && !(me = d9_enter_thread()))) {
		forget_made(p);
		return;
	}
	struct d9_tokio_maker *m = take_place(p);
	if (!m)
		return;
	const struct d9_task_frame *f = d9_tokio_current(me);
	m->bytes = bytes;
	m->t = d9_now();
	m->thread = me->thread;
	m->parent = f ? f->id : 0;
	m->module = f ? f->module : 0;
	d9_store_release(&m->address, (d9_u64)p);
}

bool d9_tokio_maker_of(const struct d9_tokio_header *task, const struct d9_tokio_slot *s, struct d9_tokio_maker *ret)
{
	struct d9_tokio_maker *m = NULL;
	for (d9_u32 k = 0; k < MAKER_PROBES && !m; k++)
		if (d9_load_acquire(&maker_at(task, k)->address) == (d9_u64)task)
			m = maker_at(task, k);
	if (!m)
		return false;
	*ret = *m;
	d9_u64 was = (d9_u64)task;
	if (ret->address != was || !d9_cas_acq_rel(&m->address, &was, 0))
		return false;
	/* A cell ends with its trailer, rounded up to its alignment. */
	return ret->bytes > s->trailer_offset && ret->bytes - s->trailer_offset <= 256;
}

bool d9_tokio_room_for(d9_u32 copy)
{
	d9_u64 **seen = &d9_tokio_copies[copy].seen;
	return (makers || d9_map_kept(MAKERS * sizeof(*makers), (void **)&makers)) &&
	       (*seen || d9_map_kept(SEEN_WORDS * sizeof(**seen), (void **)seen));
}

/* ---- workers ------------------------------------------------------------------------------------------------ */

/*
 * A worker's thread is a job of the blocking pool whose closure holds one thing, its Arc<Worker>: two counts, then in some order the
 * Arc of the scheduler's handle, the worker's index and its core, or 0 if another thread was faster (block_in_place, whose caller came back).
 */
#define INDEX_MAX 4096u
#define COUNT_MAX (1ull << 32)
#define WORKER_COUNT_MAX 64u

static bool is_pointer(d9_u64 v) { return v >= 65536 && v < 1ull << 47 && !(v & 7); }
static bool is_count(d9_u64 v, d9_u64 least) { return v >= least && v < COUNT_MAX; }

/* Every worker has the handle, and the runtime has it. */
static bool is_handle(d9_u64 arc)
{
	const d9_u64 *w = (const d9_u64 *)arc;
	return is_pointer(arc) && d9_can_read(w) && d9_can_read(w + 1) && is_count(w[0], 2) && is_count(w[1], 1);
}

static enum d9_tokio_likeness holds_worker(d9_u64 arc, struct d9_tokio_worker *ret)
{
	const d9_u64 *w = (const d9_u64 *)arc;
	d9_u32 pointers = 0, numbers = 0;
	bool handle = false, zero = false;
	*ret = (struct d9_tokio_worker){.index = 0};
	/* Of the thread that begins, and of callers of block_in_place; nobody else has it, and nobody weakly. */
	if (!is_pointer(arc) || !d9_can_read(w) || !d9_can_read(w + 4) || w[0] - 1 >= WORKER_COUNT_MAX || w[1] != 1)
		return D9_TOKIO_UNLIKE;
	for (d9_u32 i = 2; i < 5; i++)
		if (w[i] < INDEX_MAX) {
			ret->index = w[i] > ret->index ? (d9_u32)w[i] : ret->index;
			zero |= !w[i];
			numbers++;
		} else if (pointers < 2 && is_pointer(w[i])) {
			handle |= is_handle(w[i]);
			ret->handle[pointers++] = w[i];
		}
	if (!handle)
		return D9_TOKIO_UNLIKE;
	return numbers == 1 && pointers == 2           ? D9_TOKIO_LIKE
	       : numbers == 2 && pointers == 1 && zero ? D9_TOKIO_TAKEN
						       : D9_TOKIO_UNLIKE;
}

enum d9_tokio_likeness d9_tokio_is_worker(const struct d9_tokio_header *job, const struct d9_tokio_slot *s,
					  struct d9_tokio_worker *ret)
{
	const char *stage = (const char *)job + s->id_offset + 8, *end = (const char *)job + s->trailer_offset;
	/* As small as a job can be: its number, then one word or what takes the place of it, what it returned. */
	if (end - stage > 48)
		return D9_TOKIO_UNLIKE;
	for (; stage < end; stage += 8) {
		enum d9_tokio_likeness like = holds_worker(*(const d9_u64 *)stage, ret);
		if (like != D9_TOKIO_UNLIKE)
			return like;
	}
	return D9_TOKIO_UNLIKE;
}
