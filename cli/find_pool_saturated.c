/*
 * pool-saturated: all threads of a pool sat in the same long call at the same time, while the event loop of
 * their process had nothing to do but wait for them.
 *
 * A pool here is threads that made the same call and that wait for work at one place (a condition, a semaphore, a
 * futex that is no lock); one of them that waits there meanwhile proves that there was room.  What was queued is recorded of
 * Tokio's jobs alone, and proves that there was none; of other pools the finding is inferred and the queue's delay is not known.
 */
#include "findings.h"

#define CALL_MIN_NS 50000000ull
#define STALL_MIN_NS 100000000ull
#define JOBS_GAP_NS 10000000ull /* one job after the other without a wait between */
#define THREADS_MAX 256

struct stretch {
	d9_u32 thread, site, span;
	d9_u64 t0, t1;
};
typedef D9_VEC(struct stretch) stretches;

/* Calls that a job makes; a thread that waits for a peer may just be idle. */
static bool is_job(d9_u32 kind)
{
	enum d9_class c = d9_kind_class(kind);
	return c == D9_CLASS_SLEEP || kind == D9_FAMILY_open || kind == D9_FAMILY_sync || kind == D9_FAMILY_dns ||
	       kind == D9_FAMILY_path || kind == D9_FAMILY_flock || kind == D9_FAMILY_connect;
}

static bool may_be_pool_thread(const struct d9_model *m, d9_u32 i)
{
	enum d9_role r = m->threads[i].role;
	return (r == D9_ROLE_OTHER || r == D9_ROLE_POOL) && m->t->threads.v[i].role == 0;
}

static void gather(const struct d9_model *m, d9_u32 thread, stretches *all)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	size_t first = all->n;
	for (d9_u32 k = 0; k < th->spans.n; k++) {
		const struct d9_span *s = &th->spans.v[k];
		if (!is_job(s->kind) || d9_span_dur(s) < CALL_MIN_NS || s->flags & (D9_SPAN_NESTED | D9_SPAN_CLAIMED))
			continue;
		struct stretch *last = all->n > first ? &all->v[all->n - 1] : NULL;
		if (last && last->site == s->site && s->t0 - last->t1 < JOBS_GAP_NS)
			last->t1 = s->t1;
		else
			d9_vec_push(all, (struct stretch){thread, s->site, k, s->t0, s->t1});
	}
}

/* ---- where a pool's threads wait for work ------------------------------------------------------- */

static bool is_work_wait(struct d9_model *m, d9_u32 thread, d9_u32 site, d9_u64 object)
{
	if (d9_kind_class(m->t->sites.v[site].kind) != D9_CLASS_SIGNAL || !object)
		return false;
	const struct d9_lock *l = d9_model_lock(m, m->t->threads.v[thread].proc, object);
	return !l || (!l->like_lock && !l->gil);
}

static bool waits_at(struct d9_model *m, d9_u32 thread, d9_u32 site)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	if (th->pending.unfinished && th->pending.site == site)
		return is_work_wait(m, thread, site, th->pending.object);
	for (size_t k = th->spans.n; k-- > 0;)
		if (th->spans.v[k].site == site && is_work_wait(m, thread, site, th->spans.v[k].object))
			return true;
	return false;
}

/* Was there always work for the thread? */
static bool never_waits(struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (size_t k = 0; k < th->spans.n; k++)
		if (is_work_wait(m, thread, th->spans.v[k].site, th->spans.v[k].object))
			return false;
	return !th->pending.unfinished || !is_work_wait(m, thread, th->pending.site, th->pending.object);
}

/* A place where this thread has waited, and all others too but those that never had to; or D9_NO_INDEX. */
static d9_u32 wait_of(struct d9_model *m, const struct stretch *const *of, size_t n, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u32 last = D9_NO_INDEX;
	for (size_t k = th->spans.n; k-- > 0;) {
		const struct d9_span *s = &th->spans.v[k];
		if (s->site == last || !is_work_wait(m, thread, s->site, s->object))
			continue;
		last = s->site;
		size_t all = 0;
		while (all < n && (waits_at(m, of[all]->thread, s->site) || never_waits(m, of[all]->thread)))
			all++;
		if (all == n)
			return s->site;
	}
	return D9_NO_INDEX;
}

static d9_u32 common_wait(struct d9_model *m, const struct stretch *const *of, size_t n)
{
	d9_u32 site = D9_NO_INDEX;
	for (size_t i = 0; i < n && site == D9_NO_INDEX; i++)
		site = wait_of(m, of, n, of[i]->thread);
	return site;
}

static bool sits_at(const struct d9_model *m, d9_u32 thread, d9_u32 site, d9_u64 t)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u32 k = d9_model_first_span(m, thread, t);
	if (k < th->spans.n && th->spans.v[k].t0 <= t)
		return th->spans.v[k].site == site;
	return th->pending.unfinished && th->pending.since <= t && th->pending.site == site;
}

static bool loop_was_idle(const struct d9_model *m, d9_u32 proc, d9_u64 t0, d9_u64 t1)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_model_thread *mt = &m->threads[i];
		if (m->t->threads.v[i].proc != proc || mt->home == D9_NO_INDEX ||
		    d9_kind_class(m->t->sites.v[mt->home].kind) != D9_CLASS_EVENT)
			continue;
		d9_u64 parked = 0;
		for (size_t k = 0; k < mt->parks.n; k++)
			parked += d9_overlap(mt->parks.v[k].t0, mt->parks.v[k].t1, t0, t1);
		if (parked * 10 >= (t1 - t0) * 7)
			return true;
	}
	return false;
}

/* How long the job that waited longest for one of these threads stood in the queue meanwhile, of runtimes whose jobs are seen. */
static d9_u64 queue_wait(const struct d9_model *m, const struct stretch *const *of, size_t n, d9_u64 t0, d9_u64 t1)
{
	d9_u64 longest = D9_NOT_KNOWN;
	for (size_t i = 0; i < n; i++) {
		const struct d9_model_thread *mt = &m->threads[of[i]->thread];
		for (size_t k = 0; k < mt->queued.n; k++) {
			const struct d9_queued *q = &mt->queued.v[k];
			if (!d9_is_pool(&m->t->threads.v[of[i]->thread].rt.v[q->rt]) ||
			    d9_overlap(q->t0, q->t1, t0, t1) < D9_WARN_NS)
				continue;
			if (longest == D9_NOT_KNOWN || q->t1 - q->t0 > longest)
				longest = q->t1 - q->t0;
		}
	}
	return longest;
}

static bool is_one_of(const struct stretch *const *of, size_t n, d9_u32 thread)
{
	for (size_t i = 0; i < n; i++)
		if (of[i]->thread == thread)
			return true;
	return false;
}

/* A job waited for one of these threads while they, and no others, ran jobs: then they are the pool, and it had no room. */
static bool is_seen_full(const struct d9_model *m, const struct stretch *const *of, size_t n, d9_u64 t0, d9_u64 t1)
{
	if (queue_wait(m, of, n, t0, t1) == D9_NOT_KNOWN)
		return false;
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->proc != m->t->threads.v[of[0]->thread].proc || is_one_of(of, n, i))
			continue;
		for (size_t k = D9_FIRST_AFTER(th->rt.v, th->rt.n, t1, t0); k < th->rt.n && th->rt.v[k].t0 < t1; k++)
			if (!th->rt.v[k].park && d9_is_pool(&th->rt.v[k]))
				return false;
	}
	return true;
}

/* A pool by what its threads do, of which none waits for work meanwhile though the event loop is idle. */
static bool looks_full(struct d9_model *m, const struct stretch *const *of, size_t n, d9_u64 t0, d9_u64 t1)
{
	d9_u32 proc = m->t->threads.v[of[0]->thread].proc, wait = common_wait(m, of, n);
	if (wait == D9_NO_INDEX || !loop_was_idle(m, proc, t0, t1))
		return false;
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (m->t->threads.v[i].proc == proc && may_be_pool_thread(m, i) &&
		    sits_at(m, i, wait, t0 + (t1 - t0) / 2))
			return false;
	return true;
}

/* ---- report ---------------------------------------------------------------------------------------- */

static void report(struct d9_model *m, struct d9_findings *out, const struct stretch *const *of, size_t n, d9_u64 t0,
		   d9_u64 t1)
{
	const struct d9_span *s = d9_model_span(m, of[0]->thread, of[0]->span);
	struct d9_finding *f = d9_finding_add(out, "pool-saturated", of[0]->thread);
	char dur[32];
	d9_u64 waited = queue_wait(m, of, n, t0, t1);
	f->inferred = waited == D9_NOT_KNOWN;
	f->from = t0;
	f->to = t1;
	f->harm = t1 - t0;
	d9_finding_title(f, "all %zu threads of a pool (%s) sat in %s for %s; whatever was queued waited", n,
			 m->t->threads.v[of[0]->thread].name, m->t->hooks.v[s->hook].name,
			 d9_format_duration(t1 - t0, dur));
	d9_finding_cause(f, m, (struct d9_ref){of[0]->thread, D9_REF_SPAN, of[0]->span});
	d9_finding_n(f, "pool_threads", n);
	d9_finding_n(f, "queue_wait_ns", waited);
	d9_finding_n(f, "blocked_ns", t1 - t0);
	for (size_t i = 0; i < n; i++) {
		d9_finding_span(f, (struct d9_ref){of[i]->thread, D9_REF_SPAN, of[i]->span});
		for (d9_u32 k = of[i]->span; k < m->t->threads.v[of[i]->thread].spans.n; k++)
			if (d9_model_span(m, of[i]->thread, k)->site == of[i]->site &&
			    d9_model_span(m, of[i]->thread, k)->t0 < of[i]->t1)
				d9_claim(m, of[i]->thread, k);
	}
	f->try[0] = "Give slow work a pool of its own, so that short jobs do not queue behind it.";
	f->try[1] = "Or make the pool larger (UV_THREADPOOL_SIZE, max_workers, max_blocking_threads).";
}

/* All stretches at the site of `a` that overlap it: are they a pool, and the whole of it? */
static bool judge(struct d9_model *m, struct d9_findings *out, const stretches *all, const struct stretch *a)
{
	const struct stretch *of[THREADS_MAX];
	size_t n = 0;
	d9_u64 t0 = a->t0, t1 = a->t1;
	d9_u32 proc = m->t->threads.v[a->thread].proc;
	for (size_t i = 0; i < all->n && n < THREADS_MAX; i++) {
		const struct stretch *b = &all->v[i];
		if (b->site != a->site || m->t->threads.v[b->thread].proc != proc ||
		    d9_overlap(t0, t1, b->t0, b->t1) < STALL_MIN_NS)
			continue;
		t0 = b->t0 > t0 ? b->t0 : t0;
		t1 = b->t1 < t1 ? b->t1 : t1;
		of[n++] = b;
	}
	if (n < 2 || t1 - t0 < STALL_MIN_NS || d9_model_has_hole(m, proc, t0, t1) ||
	    (!is_seen_full(m, of, n, t0, t1) && !looks_full(m, of, n, t0, t1)))
		return false;
	report(m, out, of, n, t0, t1);
	return true;
}

void d9_find_pool_saturated(struct d9_model *m, struct d9_findings *out)
{
	stretches all = {0};
	struct d9_map done = {0}; /* a pool is told of once, at a site */
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (may_be_pool_thread(m, i))
			gather(m, i, &all);
	for (size_t i = 0; i < all.n; i++) {
		d9_u64 key = (d9_u64)m->t->threads.v[all.v[i].thread].proc << 32 | all.v[i].site;
		if (d9_map_get(&done, key) == D9_MAP_EMPTY && judge(m, out, &all, &all.v[i]))
			d9_map_put(&done, key, 1);
	}
	d9_vec_free(&all);
	d9_map_free(&done);
}
