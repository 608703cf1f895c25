/*
 * Where a thread is at home.  The place at which it waits most often for events (else for an object) is
 * its home; other places close by in the code are homes too; what waits deeper inside is a blocking
 * call, even by the same function on the way to the same descriptor.
 *
 * Numbers R1 to R6 are the rules of docs/MODEL.md.
 */
#include "model_internal.h"

#define FUNCTION_BYTES 4096u /* two calls of one frame are no further apart */

struct site_use {
	d9_u64 count, total, longest;
	bool home;
	bool between; /* a wait there was between polls of tasks, by a worker of their runtime */
};
struct saved_use {
	d9_u32 site;
	struct site_use use;
};
struct scratch {
	struct site_use *use; /* by site */
	D9_VEC(d9_u32) touched;
	D9_VEC(struct saved_use) saved; /* of all threads, one after the other: counted once, asked twice */
	size_t *saved_end;              /* by thread */
	bool *home_somewhere;           /* by site: R4 found it to be home on some thread */
};

/* ---- R4: distance in the code --------------------------------------------------------------- */

static const struct d9_chain *chain_of(struct d9_model *m, d9_u32 site)
{
	struct d9_chain *c = &m->chains[site];
	if (c->made)
		return c;
	c->made = true;
	const struct d9_trace_site *s = &m->t->sites.v[site];
	if (!s->stack.n)
		return c;
	d9_u64 frames[128];
	struct d9_maps maps = d9_trace_maps(m->t, s->proc);
	c->n = (d9_u32)d9_symbols_unwind(m->t->symbols, &maps, s->stack.kind, s->stack.p, s->stack.n, frames, 128);
	c->frames = d9_must_alloc(c->n + 1, sizeof(d9_u64));
	memcpy(c->frames, frames, c->n * sizeof(d9_u64));
	return c;
}

/*
 * How many frames of a chain there are from its innermost one to where the other's outermost one is: all but those
 * that a copied stack that was cut off does not have.  0: nowhere.
 */
static d9_u32 shared_length(const struct d9_chain *c, const struct d9_chain *cut)
{
	d9_u32 n = c->n;
	while (n && cut->n && c->frames[n - 1] != cut->frames[cut->n - 1])
		n--;
	return n;
}

int d9_model_distance(struct d9_model *m, d9_u32 base, d9_u32 other, int *ret_base_left)
{
	const struct d9_chain *b = chain_of(m, base), *o = chain_of(m, other);
	d9_u32 nb = shared_length(b, o), no = o->n, common = 0;
	if (!nb) {
		nb = b->n;
		no = shared_length(o, b);
	}
	while (common < nb && common < no && b->frames[nb - 1 - common] == o->frames[no - 1 - common])
		common++;
	if (!common)
		return -1;
	*ret_base_left = (int)(nb - common);
	return (int)(no - common);
}

static d9_u32 apart(d9_u32 a, d9_u32 b) { return a > b ? a - b : b - a; }

/* The same call at nearly the same depth: interpreted and compiled frames differ by a little (R3). */
static bool same_place(const struct d9_trace_site *a, const struct d9_trace_site *b)
{
	return a->hook == b->hook && a->ra == b->ra && a->ra && apart(a->depth, b->depth) <= D9_SAME_DEPTH_BYTES;
}

/* One frame that makes the call at two places: libuv looks without waiting before it waits. */
static bool same_frame(const struct d9_trace_site *a, const struct d9_trace_site *b)
{
	return a->hook == b->hook && a->proc == b->proc && a->depth && a->depth == b->depth && a->ra && b->ra &&
	       (a->ra > b->ra ? a->ra - b->ra : b->ra - a->ra) < FUNCTION_BYTES;
}

static bool is_near(struct d9_model *m, d9_u32 home, d9_u32 site)
{
	const struct d9_trace_site *h = &m->t->sites.v[home], *s = &m->t->sites.v[site];
	if (same_place(h, s) || same_frame(h, s))
		return true;
	int left = 0, d = d9_model_distance(m, home, site, &left);
	if (d >= 0)
		return d <= 2 || (d <= 4 && d <= left && d9_kind_class(s->kind) == D9_CLASS_SIGNAL);
	if (chain_of(m, home)->n && chain_of(m, site)->n)
		return false;
	/* No stacks to compare: a wait of the same kind at the same depth is taken for the same loop's. */
	return s->ra && h->depth && s->depth && apart(h->depth, s->depth) <= D9_SAME_DEPTH_BYTES &&
	       d9_kind_class(s->kind) == d9_kind_class(h->kind);
}

/* ---- workers that are known by their polls -------------------------------------------------------- */

bool d9_polls_as_worker(const struct d9_trace_thread *th)
{
	for (size_t i = 0; i < th->rt.n; i++)
		if (!th->rt.v[i].park && th->rt.v[i].worker != D9_NO_INDEX)
			return true;
	return false;
}

/* Such a worker does nothing but park between its tasks' polls, and wait for the runtime's own locks. */
static void mark_between(const struct d9_model *m, d9_u32 thread, struct site_use *use, d9_u32 site, d9_u64 t0,
			 d9_u64 t1)
{
	enum d9_class c = d9_kind_class(m->t->sites.v[site].kind);
	if (!use->between && (c == D9_CLASS_SIGNAL || c == D9_CLASS_EVENT))
		use->between = !d9_model_task_poll(m, thread, t0, t1);
}

/* Are other tasks polled within the poll, as by a block_on in it?  An inner poll ends before its outer one. */
static bool runs_others(const struct d9_trace_thread *th, const struct d9_rt_span *poll)
{
	const struct d9_rt_span *before = poll - 1;
	return poll > th->rt.v && !before->park && before->t0 >= poll->t0;
}

/*
 * Whoever waits for an object within a task's poll has not parked: the task waits for a lock, or for another thread.  A job of a pool is
 * as long as its author likes, and may be a loop; so may a poll in which others are polled.
 */
static bool waits_in_poll(const struct d9_model *m, d9_u32 thread, d9_u32 site, d9_u64 t0, d9_u64 t1)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	if (!th->rt.n || d9_kind_class(m->t->sites.v[site].kind) != D9_CLASS_SIGNAL)
		return false;
	const struct d9_rt_span *poll = d9_model_task_poll(m, thread, t0, t1);
	return poll && !d9_is_pool(poll) && !runs_others(th, poll);
}

/* ---- R1: home ---------------------------------------------------------------------------------- */

static bool waits_for_lock(const struct d9_model *m, d9_u32 thread, const struct d9_span *s)
{
	if (!s->object || d9_kind_class(s->kind) != D9_CLASS_SIGNAL)
		return false;
	const struct d9_lock *l = d9_model_lock(m, m->t->threads.v[thread].proc, s->object);
	return (l && l->like_lock) || d9_model_waits_behind(m, s->site);
}

/* Spans end in order; one that ends after a later one began lies within it, as a signal handler's does. */
static void mark_nested(struct d9_trace_thread *th)
{
	d9_u64 floor = D9_NOT_KNOWN;
	for (size_t i = th->spans.n; i-- > 0;) {
		struct d9_span *s = &th->spans.v[i];
		if (s->t1 > floor)
			s->flags |= D9_SPAN_NESTED;
		else
			floor = s->t0 < floor ? s->t0 : floor;
	}
}

static void count_sites(struct d9_model *m, d9_u32 thread, struct scratch *sc)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	bool worker = d9_polls_as_worker(th);
	sc->touched.n = 0;
	for (size_t i = 0; i < th->spans.n; i++) {
		const struct d9_span *s = &th->spans.v[i];
		if (s->flags & D9_SPAN_NESTED || waits_in_poll(m, thread, s->site, s->t0, s->t1))
			continue;
		struct site_use *u = &sc->use[s->site];
		if (!u->count++)
			d9_vec_push(&sc->touched, s->site);
		d9_u64 dur = d9_span_dur(s);
		u->total += dur;
		u->longest = dur > u->longest ? dur : u->longest;
		if (worker)
			mark_between(m, thread, u, s->site, s->t0, s->t1);
	}
	if (th->pending.unfinished && !waits_in_poll(m, thread, th->pending.site, th->pending.since, th->pending.t)) {
		struct site_use *u = &sc->use[th->pending.site];
		if (!u->count++)
			d9_vec_push(&sc->touched, th->pending.site);
		u->total += th->pending.t - th->pending.since;
		if (worker)
			mark_between(m, thread, u, th->pending.site, th->pending.since, th->pending.t);
	}
}

/* The object that a thread waits for at a site: that of the last wait there. */
static const struct d9_span *last_at(const struct d9_trace_thread *th, d9_u32 site)
{
	for (size_t i = th->spans.n; i-- > 0;)
		if (th->spans.v[i].site == site)
			return &th->spans.v[i];
	return NULL;
}

/*
 * A home is where one comes back to.  Once or twice is enough for a condition that others wait for too, as pools do,
 * or where a thread waits still when the recording ends, having nothing that others want.
 */
static bool is_seldom(const struct d9_model *m, d9_u32 thread, d9_u32 site, const struct site_use *u, d9_u64 object)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_lock *l = d9_model_lock(m, th->proc, object);
	if (u->count >= 3)
		return false;
	if (m->t->sites.v[site].kind != D9_FAMILY_cond || (l && l->gil))
		return true;
	if (d9_map_get(&m->wanted_map, (d9_u64)th->proc << 32 | (d9_u32)th->tid) != D9_MAP_EMPTY)
		return true;
	bool waits_still = th->pending.unfinished && th->pending.site == site;
	return !waits_still && (!l || l->waiters.n + l->pending.n < 2);
}

static d9_u32 best_site(const struct d9_model *m, d9_u32 thread, const struct scratch *sc, enum d9_class class)
{
	d9_u32 best = D9_NO_INDEX;
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (size_t i = 0; i < sc->touched.n; i++) {
		d9_u32 site = sc->touched.v[i];
		if (d9_kind_class(m->t->sites.v[site].kind) != class)
			continue;
		const struct d9_span *s = class == D9_CLASS_SIGNAL ? last_at(th, site) : NULL;
		if (s && waits_for_lock(m, thread, s))
			continue;
		if (class == D9_CLASS_SIGNAL && !sc->use[site].between &&
		    is_seldom(m, thread, site, &sc->use[site], s ? s->object : th->pending.object))
			continue;
		const struct site_use *u = &sc->use[site], *b = best == D9_NO_INDEX ? NULL : &sc->use[best];
		if (!b || u->count > b->count || (u->count == b->count && u->total > b->total))
			best = site;
	}
	return best;
}

static void find_homes(struct d9_model *m, d9_u32 thread, struct scratch *sc)
{
	struct d9_model_thread *mt = &m->threads[thread];
	for (size_t i = 0; i < sc->touched.n; i++) {
		d9_u32 site = sc->touched.v[i];
		enum d9_class c = d9_kind_class(m->t->sites.v[site].kind);
		if (site == mt->home || (c != D9_CLASS_EVENT && c != D9_CLASS_SIGNAL))
			continue;
		const struct d9_span *s = last_at(&m->t->threads.v[thread], site);
		if (s && waits_for_lock(m, thread, s))
			continue;
		bool same = same_place(&m->t->sites.v[mt->home], &m->t->sites.v[site]);
		if (same || sc->use[site].between || (sc->use[site].count >= 3 && is_near(m, mt->home, site)))
			d9_vec_push(&mt->homes, site);
	}
	for (size_t i = 0; i < mt->homes.n; i++)
		sc->home_somewhere[mt->homes.v[i]] = true;
}

/* Event waits that never waited, and sleeps that did: a loop that looks around now and then, not one that is blocked. */
static bool only_looks(const struct d9_model *m, const struct scratch *sc, d9_u32 home)
{
	if (d9_kind_class(m->t->sites.v[home].kind) != D9_CLASS_EVENT || sc->use[home].longest >= D9_LOOK_NS)
		return false;
	d9_u64 slept = 0;
	for (size_t i = 0; i < sc->touched.n; i++) {
		enum d9_class c = d9_kind_class(m->t->sites.v[sc->touched.v[i]].kind);
		const struct site_use *u = &sc->use[sc->touched.v[i]];
		if ((c == D9_CLASS_SLEEP || c == D9_CLASS_SIGNAL) && !u->home && u->count * 4 >= sc->use[home].count)
			slept += u->total;
	}
	return slept > 4 * sc->use[home].total;
}

static void find_home(struct d9_model *m, d9_u32 thread, struct scratch *sc)
{
	struct d9_model_thread *mt = &m->threads[thread];
	count_sites(m, thread, sc);
	mt->home = best_site(m, thread, sc, D9_CLASS_EVENT);
	if (mt->home == D9_NO_INDEX)
		mt->home = best_site(m, thread, sc, D9_CLASS_SIGNAL);
	if (mt->home != D9_NO_INDEX) {
		d9_vec_push(&mt->homes, mt->home);
		find_homes(m, thread, sc);
		const struct d9_span *s = last_at(&m->t->threads.v[thread], mt->home);
		mt->home_fd = s ? s->fd : m->t->threads.v[thread].pending.fd;
		mt->home_object = s ? s->object : m->t->threads.v[thread].pending.object;
	}
	for (size_t i = 0; i < sc->touched.n; i++) {
		d9_vec_push(&sc->saved, (struct saved_use){sc->touched.v[i], sc->use[sc->touched.v[i]]});
		sc->use[sc->touched.v[i]] = (struct site_use){0};
	}
}

static void restore_counts(d9_u32 thread, struct scratch *sc)
{
	sc->touched.n = 0;
	for (size_t i = thread ? sc->saved_end[thread - 1] : 0; i < sc->saved_end[thread]; i++) {
		sc->use[sc->saved.v[i].site] = sc->saved.v[i].use;
		d9_vec_push(&sc->touched, sc->saved.v[i].site);
	}
}

/* A place that is home to one thread is home to its siblings, however seldom they were there. */
static void add_shared_homes(struct d9_model *m, d9_u32 thread, struct scratch *sc)
{
	struct d9_model_thread *mt = &m->threads[thread];
	restore_counts(thread, sc);
	for (size_t i = 0; i < mt->homes.n; i++)
		sc->use[mt->homes.v[i]].home = true;
	for (size_t i = 0; i < sc->touched.n; i++) {
		d9_u32 site = sc->touched.v[i];
		if (sc->home_somewhere[site] && !sc->use[site].home && m->t->sites.v[site].ra) {
			d9_vec_push(&mt->homes, site);
			sc->use[site].home = true;
		}
	}
	mt->polling = only_looks(m, sc, mt->home);
	for (size_t i = 0; i < sc->touched.n; i++)
		sc->use[sc->touched.v[i]] = (struct site_use){0};
}

/* ---- parks ------------------------------------------------------------------------------------- */

/*
 * R5: a look that found nothing, and the wait right after it, are one park.  A wait that timed out is no look: a loop
 * with nothing to do comes back as often as it says.
 */
static bool continues(const struct d9_park *before, bool looked, const struct d9_span *s)
{
	return before->site == s->site && looked && s->t0 - before->t1 < D9_PROBE_GAP_NS &&
	       d9_kind_class(s->kind) == D9_CLASS_EVENT;
}

static void collect_parks(struct d9_model *m, d9_u32 thread, const struct scratch *sc)
{
	struct d9_trace_thread *th = &m->t->threads.v[thread];
	struct d9_model_thread *mt = &m->threads[thread];
	bool looked = false;
	for (size_t i = 0; i < th->spans.n; i++) {
		struct d9_span *s = &th->spans.v[i];
		if (!sc->use[s->site].home || s->flags & D9_SPAN_NESTED)
			continue;
		if (waits_for_lock(m, thread, s) || waits_in_poll(m, thread, s->site, s->t0, s->t1))
			continue;
		s->flags |= D9_SPAN_PARK;
		struct d9_park *last = mt->parks.n ? &mt->parks.v[mt->parks.n - 1] : NULL;
		if (last && continues(last, looked, s)) {
			last->t1 = s->t1;
			last->span = (d9_u32)i;
		} else {
			d9_vec_push(&mt->parks, (struct d9_park){s->t0, s->t1, (d9_u32)i, s->site});
		}
		looked = s->result == 0 && s->t1 - s->t0 < D9_LOOK_NS;
	}
}

static void reported_parks(struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (size_t i = 0; i < th->rt.n; i++)
		if (th->rt.v[i].park) {
			d9_u32 after = d9_model_first_span(m, thread, th->rt.v[i].t1);
			d9_vec_push(&m->threads[thread].parks, (struct d9_park){th->rt.v[i].t0, th->rt.v[i].t1,
										after ? after - 1 : 0, D9_NO_INDEX});
		}
	for (size_t i = 0, k = 0; i < m->threads[thread].parks.n; i++) {
		const struct d9_park *p = &m->threads[thread].parks.v[i];
		for (; k < th->spans.n && th->spans.v[k].t1 <= p->t1; k++)
			if (th->spans.v[k].t0 >= p->t0)
				m->t->threads.v[thread].spans.v[k].flags |= D9_SPAN_PARK;
	}
}

static bool has_reported_parks(const struct d9_trace_thread *th)
{
	for (size_t i = 0; i < th->rt.n; i++)
		if (th->rt.v[i].park)
			return true;
	return false;
}

bool d9_model_pending_parks(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	const struct d9_pending *p = &m->t->threads.v[thread].pending;
	for (size_t i = 0; i < mt->homes.n; i++)
		if (mt->homes.v[i] == p->site)
			return !waits_in_poll(m, thread, p->site, p->since, p->t);
	return false;
}

void d9_parks_find(struct d9_model *m)
{
	size_t n_sites = m->t->sites.n;
	struct scratch sc = {.use = d9_must_alloc(n_sites + 1, sizeof(*sc.use)),
			     .home_somewhere = d9_must_alloc(n_sites + 1, sizeof(bool)),
			     .saved_end = d9_must_alloc(m->t->threads.n + 1, sizeof(size_t))};
	m->chains = d9_must_alloc(n_sites + 1, sizeof(*m->chains));
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		m->threads[i].home = D9_NO_INDEX;
		m->threads[i].home_fd = -1;
		mark_nested(&m->t->threads.v[i]);
		if (m->t->threads.v[i].role != 2)
			find_home(m, i, &sc);
		sc.saved_end[i] = sc.saved.n;
	}
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		struct d9_model_thread *mt = &m->threads[i];
		if (mt->home == D9_NO_INDEX)
			continue;
		add_shared_homes(m, i, &sc);
		if (has_reported_parks(&m->t->threads.v[i])) {
			reported_parks(m, i);
			continue;
		}
		for (size_t k = 0; k < mt->homes.n; k++)
			sc.use[mt->homes.v[k]].home = true;
		collect_parks(m, i, &sc);
		for (size_t k = 0; k < mt->homes.n; k++)
			sc.use[mt->homes.v[k]].home = false;
	}
	free(sc.use);
	free(sc.home_somewhere);
	free(sc.saved_end);
	d9_vec_free(&sc.saved);
	d9_vec_free(&sc.touched);
}
