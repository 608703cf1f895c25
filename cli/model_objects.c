/*
 * Waits by object.  An object on which threads wait is a lock if those that wake are those that wait: who
 * leaves a lock lets the next one in.  A queue is fed by others.  Holders are known from the owner word
 * of the lock, from having taken it without a wait, or from having woken the next one; what none of
 * these shows is not claimed.
 */
#include "model_internal.h"

#define NAMES_ASKED 8 /* of the frames around a wait */

static bool is_object_wait(const struct d9_span *s)
{
	enum d9_class c = d9_kind_class(s->kind);
	return s->object && (c == D9_CLASS_LOCK || c == D9_CLASS_SIGNAL);
}

static struct d9_lock *lock_of(struct d9_model *m, d9_u32 proc, d9_u64 object, d9_u32 kind)
{
	d9_u64 key = d9_object_key(proc, object);
	d9_u32 i = d9_map_get(&m->lock_map, key);
	if (i == D9_MAP_EMPTY) {
		d9_vec_push(&m->locks, (struct d9_lock){.proc = proc, .object = object, .kind = kind});
		i = (d9_u32)m->locks.n - 1;
		d9_map_put(&m->lock_map, key, i);
	}
	return &m->locks.v[i];
}

struct d9_lock *d9_model_lock(const struct d9_model *m, d9_u32 proc, d9_u64 object)
{
	d9_u32 i = d9_map_get(&m->lock_map, d9_object_key(proc, object));
	return i == D9_MAP_EMPTY ? NULL : &m->locks.v[i];
}

static void map_tids(struct d9_model *m)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->proc == D9_NO_INDEX)
			continue;
		d9_u64 key = (d9_u64)th->proc << 32 | (d9_u32)th->tid;
		d9_map_put(&m->tid_map, key, d9_map_get(&m->tid_map, key) == D9_MAP_EMPTY ? i : D9_NO_INDEX - 1);
		if (th->pending.unfinished && th->pending.owner)
			d9_map_put(&m->wanted_map, (d9_u64)th->proc << 32 | th->pending.owner, i);
	}
}

d9_u32 d9_model_thread_of_tid(const struct d9_model *m, d9_u32 proc, d9_u32 tid, d9_u64 t_ns)
{
	d9_u32 i = d9_map_get(&m->tid_map, (d9_u64)proc << 32 | tid);
	return i == D9_NO_INDEX - 1 ? d9_trace_thread_of_tid(m->t, proc, tid, t_ns) : i;
}

d9_u32 d9_model_holder_of(const struct d9_model *m, d9_u32 thread, const struct d9_span *s, enum d9_known_by *ret_by)
{
	d9_u32 proc = m->t->threads.v[thread].proc;
	d9_u32 h = s->owner ? d9_model_thread_of_tid(m, proc, s->owner, s->t0) : D9_NO_INDEX;
	if (h != D9_NO_INDEX && h != thread) {
		*ret_by = D9_KNOWN_OWNER_WORD;
		return h;
	}
	*ret_by = D9_KNOWN_WAKE;
	return s->waker != thread ? s->waker : D9_NO_INDEX;
}

/*
 * A Python interpreter's lock is a condition in its `_PyRuntime`: in the data of the interpreter, which lies behind
 * its code.  Other conditions lie on the heap.
 */
static bool is_gil(const struct d9_model *m, const struct d9_lock *l)
{
	if (l->kind != D9_FAMILY_cond)
		return false;
	struct d9_maps maps = d9_trace_maps(m->t, l->proc);
	for (size_t i = 0; i < maps.n; i++) {
		const char *base = strrchr(maps.maps[i].path, '/');
		base = base ? base + 1 : maps.maps[i].path;
		if (!strncmp(base, "python3", 7) || !strncmp(base, "libpython3", 10))
			if (l->object >= maps.maps[i].end && l->object < maps.maps[i].end + (16u << 20))
				return true;
	}
	return false;
}

/* ---- what names say --------------------------------------------------------------------------- */

static bool contains_one(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (strstr(s, *words))
			return true;
	return false;
}

static bool is_of_crate(const char *name, const char *crate)
{
	return !strncmp(name + strspn(name, "<"), crate, strlen(crate));
}

/*
 * A futex is a lock, a condition or a parked thread, and only the caller's name tells.
 *
 * parking_lot's threads each have one word, at which they wait for whatever it is.  Its core parks them; what for is said by the function that
 * asked for that, into which the core may be compiled.
 */
enum d9_site_says d9_names_say(const struct d9_frame *frames, size_t n)
{
	static const char *const condition[] = {"ondvar", "ondition", "CondVar", NULL};
	static const char *const lock[] = {"lock_contended", "lock_slow", "Mutex", "RwLock", "ReentrantLock", NULL};
	static const char *const no_lock[] = {"::park", "Parker", "park_timeout", "Semaphore", "::recv",
					      "::join", NULL};
	bool own_word = false;
	for (size_t i = 0; i < n && i < NAMES_ASKED; i++) {
		const char *name = frames[i].symbol;
		if (!name)
			continue;
		bool core = is_of_crate(name, "parking_lot_core::");
		own_word |= core || is_of_crate(name, "parking_lot::");
		if (core)
			continue;
		if (contains_one(name, condition))
			return D9_SAYS_NO_LOCK;
		if (contains_one(name, lock))
			return own_word ? D9_SAYS_LOCK_BEHIND : D9_SAYS_LOCK;
		if (own_word || contains_one(name, no_lock))
			return D9_SAYS_NO_LOCK;
	}
	return own_word ? D9_SAYS_NO_LOCK : D9_SAYS_NOTHING;
}

static enum d9_site_says ask_site(const struct d9_model *m, d9_u32 site)
{
	const struct d9_trace_site *s = &m->t->sites.v[site];
	struct d9_maps maps = d9_trace_maps(m->t, s->proc);
	struct d9_frame frames[24];
	size_t n = s->stack.n
			   ? d9_symbols_stack(m->t->symbols, &maps, s->stack.kind, s->stack.p, s->stack.n, frames, 24)
			   : 0;
	return d9_names_say(frames, n);
}

static enum d9_site_says site_says(const struct d9_model *m, d9_u32 site)
{
	if (!m->site_says[site])
		m->site_says[site] = (d9_u8)(ask_site(m, site) + 1);
	return (enum d9_site_says)(m->site_says[site] - 1);
}

bool d9_model_waits_behind(const struct d9_model *m, d9_u32 site)
{
	return m->t->sites.v[site].kind == D9_FAMILY_futex && site_says(m, site) == D9_SAYS_LOCK_BEHIND;
}

static void judge_kind(struct d9_model *m, struct d9_lock *l)
{
	l->gil = is_gil(m, l);
	if (l->gil || d9_kind_class(l->kind) == D9_CLASS_LOCK) {
		l->like_lock = l->maybe_lock = true;
		return;
	}
	if (l->kind == D9_FAMILY_cond)
		return;
	d9_u32 site = l->wait.n ? d9_model_span(m, l->wait.v[0].thread, l->wait.v[0].span)->site
				: m->t->threads.v[l->pending.v[0]].pending.site;
	enum d9_site_says says = site_says(m, site);
	bool among_waiters = l->waiters.n > 1 && l->wakes_by_waiters;
	l->like_lock = says == D9_SAYS_LOCK ||
		       (says == D9_SAYS_NOTHING && among_waiters && l->wakes_by_waiters >= 9 * l->wakes_by_others);
	l->maybe_lock = l->like_lock || (says == D9_SAYS_NOTHING && among_waiters);
}

/* ---- step 1: all waits -------------------------------------------------------------------------- */

static d9_u64 kinds_of_object_waits(void)
{
	d9_u64 kinds = 0;
	for (unsigned k = 0; k < D9_N_FAMILIES; k++)
		if (d9_kind_class(k) == D9_CLASS_LOCK || d9_kind_class(k) == D9_CLASS_SIGNAL)
			kinds |= D9_KIND_BIT(k);
	return kinds;
}

static void gather_thread(struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	d9_u64 last_object = 0;
	struct d9_lock *l = NULL;
	for (d9_u32 k = 0; k < th->spans.n; k++) {
		const struct d9_span *s = &th->spans.v[k];
		if (!is_object_wait(s))
			continue;
		if (!l || s->object != last_object)
			l = lock_of(m, th->proc, s->object, s->kind);
		last_object = s->object;
		d9_vec_push(&l->wait, (struct d9_wait){i, k});
		if (!l->waiters.n || l->waiters.v[l->waiters.n - 1].thread != i)
			d9_vec_push(&l->waiters, (struct d9_waiter){.thread = i});
	}
}

static void gather_pending(struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	if (!th->pending.unfinished || !th->pending.object)
		return;
	d9_u32 kind = m->t->sites.v[th->pending.site].kind;
	if (kinds_of_object_waits() & D9_KIND_BIT(kind))
		d9_vec_push(&lock_of(m, th->proc, th->pending.object, kind)->pending, i);
}

/* Waits were gathered thread by thread, so waiters are in the order of their numbers. */
static bool is_waiter(const struct d9_lock *l, d9_u32 thread)
{
	size_t lo = 0, hi = l->waiters.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (l->waiters.v[mid].thread < thread)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < l->waiters.n && l->waiters.v[lo].thread == thread;
}

static void count_wakers(const struct d9_model *m, struct d9_lock *l)
{
	for (size_t k = 0; k < l->wait.n; k++) {
		d9_u32 waker = d9_model_span(m, l->wait.v[k].thread, l->wait.v[k].span)->waker;
		bool waits = waker != D9_NO_INDEX && is_waiter(l, waker);
		l->wakes_by_waiters += waits;
		l->wakes_by_others += waker != D9_NO_INDEX && !waits;
	}
}

void d9_objects_gather(struct d9_model *m)
{
	d9_u64 kinds = kinds_of_object_waits();
	m->site_says = d9_must_alloc(m->t->sites.n + 1, 1);
	map_tids(m);
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (m->t->threads.v[i].kinds & kinds)
			gather_thread(m, i);
		gather_pending(m, i);
	}
	for (size_t i = 0; i < m->locks.n; i++) {
		count_wakers(m, &m->locks.v[i]);
		judge_kind(m, &m->locks.v[i]);
	}
}

/* ---- step 2: without the parks ---------------------------------------------------------------- */

static struct d9_waiter *waiter_of(struct d9_lock *l, d9_u32 thread)
{
	if (!l->waiters.n || l->waiters.v[l->waiters.n - 1].thread != thread)
		d9_vec_push(&l->waiters, (struct d9_waiter){.thread = thread});
	return &l->waiters.v[l->waiters.n - 1];
}

static void sum_waits(struct d9_model *m, struct d9_lock *l)
{
	size_t n = 0;
	l->waiters.n = 0;
	for (size_t i = 0; i < l->wait.n; i++) {
		struct d9_wait w = l->wait.v[i];
		const struct d9_span *s = d9_model_span(m, w.thread, w.span);
		if (s->flags & D9_SPAN_PARK)
			continue;
		l->wait.v[n++] = w;
		d9_u64 dur = d9_span_dur(s);
		struct d9_waiter *who = waiter_of(l, w.thread);
		who->waits++;
		who->total += dur;
		l->waits++;
		l->total += dur;
		if (dur >= l->max) {
			l->max = dur;
			l->worst = w;
		}
	}
	l->wait.n = n;
	for (size_t i = n = 0; i < l->pending.n; i++)
		if (!d9_model_pending_parks(m, l->pending.v[i]))
			l->pending.v[n++] = l->pending.v[i];
	l->pending.n = n;
}

struct held_while {
	d9_u32 holder;
	enum d9_known_by by;
	d9_u64 t0, t1;
};

static int by_holder(const void *a, const void *b)
{
	const struct held_while *x = a, *y = b;
	if (x->holder != y->holder)
		return x->holder < y->holder ? -1 : 1;
	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

static void add_inside(struct d9_holder *h, d9_u32 hook, d9_u64 total)
{
	for (size_t i = 0; i < h->inside.n; i++)
		if (h->inside.v[i].hook == hook) {
			h->inside.v[i].total += total;
			return;
		}
	d9_vec_push(&h->inside, (struct d9_inside){hook, total});
}

static void look_inside(const struct d9_model *m, struct d9_holder *h, d9_u64 t0, d9_u64 t1, d9_u64 *worst)
{
	const struct d9_trace_thread *th = &m->t->threads.v[h->thread];
	for (d9_u32 i = d9_model_first_span(m, h->thread, t0);
	     (i = d9_model_next_call(m, h->thread, i, t1)) != D9_NO_INDEX; i++) {
		const struct d9_span *s = &th->spans.v[i];
		d9_u64 o = d9_overlap(s->t0, s->t1, t0, t1);
		if (!o)
			continue;
		add_inside(h, s->hook, o);
		if (o > *worst) {
			*worst = o;
			h->worst = i;
		}
	}
}

static void find_holders(struct d9_model *m, struct d9_lock *l)
{
	D9_VEC(struct held_while) all = {0};
	for (size_t i = 0; i < l->wait.n; i++) {
		const struct d9_span *s = d9_model_span(m, l->wait.v[i].thread, l->wait.v[i].span);
		enum d9_known_by by;
		d9_u32 h = d9_model_holder_of(m, l->wait.v[i].thread, s, &by);
		if (h != D9_NO_INDEX)
			d9_vec_push(&all, (struct held_while){h, by, s->t0, s->t1});
	}
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), by_holder);
	struct d9_holder *h = NULL;
	d9_u64 end = 0, worst = 0;
	for (size_t i = 0; i < all.n; i++) {
		const struct held_while *w = &all.v[i];
		if (!h || h->thread != w->holder) {
			d9_vec_push(&l->holders,
				    (struct d9_holder){.thread = w->holder, .known_by = w->by, .worst = D9_NO_INDEX});
			h = &l->holders.v[l->holders.n - 1];
			end = worst = 0;
		}
		d9_u64 t0 = w->t0 > end ? w->t0 : end;
		if (w->t1 <= t0)
			continue;
		h->total += w->t1 - t0;
		look_inside(m, h, t0, w->t1, &worst);
		end = w->t1;
	}
	d9_vec_free(&all);
}

/* Who holds an object that nobody has waited out yet: the owner word of the waiting, or what the thread said it holds. */
static void find_silent_holders(struct d9_model *m)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		for (size_t k = 0; k < th->held.n; k++) {
			struct d9_lock *l = d9_model_lock(m, th->proc, th->held.v[k].object);
			bool known = !l || (!l->pending.n && !l->waits);
			for (size_t h = 0; l && h < l->holders.n; h++)
				known |= l->holders.v[h].thread == i;
			if (!known)
				d9_vec_push(&l->holders, (struct d9_holder){.thread = i,
									    .known_by = D9_KNOWN_ACQUIRE,
									    .worst = D9_NO_INDEX});
		}
		d9_u32 h = th->pending.unfinished && th->pending.owner
				   ? d9_model_thread_of_tid(m, th->proc, th->pending.owner, th->pending.since)
				   : D9_NO_INDEX;
		struct d9_lock *l = h == D9_NO_INDEX ? NULL : d9_model_lock(m, th->proc, th->pending.object);
		if (!l)
			continue;
		size_t at = 0;
		while (at < l->holders.n && l->holders.v[at].thread != h)
			at++;
		if (at == l->holders.n)
			d9_vec_push(
				&l->holders,
				(struct d9_holder){.thread = h, .known_by = D9_KNOWN_OWNER_WORD, .worst = D9_NO_INDEX});
		if (th->pending.t - th->pending.since > l->holders.v[at].total)
			l->holders.v[at].total = th->pending.t - th->pending.since;
	}
}

void d9_objects_finish(struct d9_model *m)
{
	for (size_t i = 0; i < m->locks.n; i++) {
		sum_waits(m, &m->locks.v[i]);
		find_holders(m, &m->locks.v[i]);
	}
	find_silent_holders(m);
}

void d9_objects_free(struct d9_model *m)
{
	for (size_t i = 0; i < m->locks.n; i++) {
		struct d9_lock *l = &m->locks.v[i];
		for (size_t k = 0; k < l->holders.n; k++)
			d9_vec_free(&l->holders.v[k].inside);
		d9_vec_free(&l->wait);
		d9_vec_free(&l->waiters);
		d9_vec_free(&l->holders);
		d9_vec_free(&l->pending);
	}
	d9_vec_free(&m->locks);
	free(m->site_says);
	d9_map_free(&m->lock_map);
	d9_map_free(&m->tid_map);
	d9_map_free(&m->wanted_map);
}
