/* The model's steps in order, and where each thread's time went. */
#include "model_internal.h"
#include "tasks.h"

static void set_bounds(struct d9_model *m)
{
	for (size_t i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		struct d9_model_thread *mt = &m->threads[i];
		mt->begin = th->first > m->t->from ? th->first : m->t->from;
		mt->end = th->last < m->t->to ? th->last : m->t->to;
		if (mt->end < mt->begin)
			mt->end = mt->begin;
		mt->wall = mt->end - mt->begin;
	}
}

/* CPU time and run delay gained between the bounds, as far as they were read; after the last reading: all of the time. */
static d9_u64 cpu_gained(const struct d9_trace_thread *th, const struct d9_model_thread *mt, d9_u64 *ret_delay,
			 bool *ret_read)
{
	const struct d9_cpu *last = NULL, *last_delay = NULL;
	d9_u64 run0 = 0, delay0 = 0;
	for (size_t i = 0; i < th->cpu.n && th->cpu.v[i].t <= mt->end; i++) {
		const struct d9_cpu *c = &th->cpu.v[i];
		if (c->t < mt->begin) {
			run0 = c->run;
			delay0 = c->delay == D9_NOT_KNOWN ? delay0 : c->delay;
		} else {
			last = c;
			last_delay = c->delay == D9_NOT_KNOWN ? last_delay : c;
		}
	}
	*ret_read = last;
	*ret_delay = last_delay ? (last_delay->delay > delay0 ? last_delay->delay - delay0 : 0) : D9_NOT_KNOWN;
	return last ? (last->run > run0 ? last->run - run0 : 0) : 0;
}

static void sum_thread(struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	struct d9_model_thread *mt = &m->threads[i];
	for (size_t k = 0; k < mt->parks.n; k++)
		mt->parked += d9_overlap(mt->parks.v[k].t0, mt->parks.v[k].t1, mt->begin, mt->end);
	for (size_t k = 0; k < th->spans.n; k++)
		if (!(th->spans.v[k].flags & D9_SPAN_NO_CALL))
			mt->blocked += d9_overlap(th->spans.v[k].t0, th->spans.v[k].t1, mt->begin, mt->end);
	if (th->pending.unfinished)
		*(d9_model_pending_parks(m, i) ? &mt->parked : &mt->blocked) +=
			d9_overlap(th->pending.since, th->pending.t, mt->begin, mt->end);
	struct d9_kernel_time k = {0};
	d9_u64 delay, run, dark = d9_hole_time(&mt->holes, mt->begin, mt->end);
	bool read, all;
	run = cpu_gained(th, mt, &delay, &read);
	/* Where the kernel's side saw a part of its time, the rest of its waits for a CPU must be known from elsewhere. */
	bool watched = d9_kernel_in_thread(m, i, &k, &all) && (all || (read && delay != D9_NOT_KNOWN));
	if (watched) { /* who was woken and not run yet neither parks nor is blocked */
		mt->parked -= k.in_parks < mt->parked ? k.in_parks : mt->parked;
		mt->blocked -= k.in_calls < mt->blocked ? k.in_calls : mt->blocked;
		mt->blocked += k.unhooked;
	}
	if (mt->parked > mt->wall)
		mt->parked = mt->wall;
	if (mt->blocked > mt->wall - mt->parked)
		mt->blocked = mt->wall - mt->parked;
	d9_u64 rest = mt->wall - mt->parked - mt->blocked;
	mt->runnable = mt->unexplained = D9_NOT_KNOWN;
	if (watched) {
		mt->runnable = k.runnable < rest ? k.runnable : rest;
		rest -= mt->runnable;
	}
	if (!read) /* no more than this, and not known to be that */
		run = rest > dark ? rest - dark : 0;
	mt->busy = run > rest ? rest : run;
	mt->busy_at_most = !read;
	if (!read)
		return;
	rest -= mt->busy;
	if (watched || delay != D9_NOT_KNOWN) {
		d9_u64 had = watched ? mt->runnable : 0, more = delay > had ? delay - had : 0;
		if (all)
			more = k.untold;
		more = more < rest ? more : rest;
		mt->runnable = had + more;
		rest -= more;
	}
	mt->unexplained = rest;
}

struct d9_span d9_model_pending(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_pending *p = &m->t->threads.v[thread].pending;
	const struct d9_trace_site *site = &m->t->sites.v[p->site];
	return (struct d9_span){.t0 = p->since,
				.t1 = p->t,
				.object = p->object,
				.fd = p->fd,
				.site = p->site,
				.waker = D9_NO_INDEX,
				.owner = p->owner,
				.hook = (d9_u16)site->hook,
				.kind = (d9_u8)site->kind};
}

static bool was_there(const struct d9_trace_thread *th, d9_u32 site, d9_u32 hook)
{
	for (size_t i = 0; i < th->spans.n; i++)
		if (th->spans.v[i].site == site)
			return true;
	for (size_t i = 0; i < th->calls.n; i++) /* those are of any place */
		if (th->calls.v[i].hook == hook && th->calls.v[i].count)
			return true;
	return false;
}

/* Did one thread of the family call from there, once, and is it there still? */
static bool is_met_once(const struct d9_model *m, d9_u32 family, d9_u32 site)
{
	unsigned waiting = 0;
	if (!m->t->families.v[family].from_start || !d9_model_is_whole(m) || m->t->torn_blocks)
		return false;
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->family != family)
			continue;
		waiting += th->pending.unfinished && th->pending.site == site;
		if (waiting > 1 || th->gaps.n || was_there(th, site, m->t->sites.v[site].hook))
			return false;
	}
	return true;
}

bool d9_model_pending_is_first(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u8 *known = &m->met_once[th->pending.site]; /* each call in flight asks, some more than once */
	if (!*known)
		*known = is_met_once(m, th->family, th->pending.site) ? 2 : 1;
	return *known == 2;
}

struct d9_model *d9_model_new(struct d9_trace *t)
{
	struct d9_model *m = d9_must_alloc(1, sizeof(*m));
	m->t = t;
	m->threads = d9_must_alloc(t->threads.n + 1, sizeof(*m->threads));
	m->met_once = d9_must_alloc(t->sites.n + 1, 1);
	set_bounds(m);
	d9_holes_find(m);
	d9_objects_gather(m);
	d9_parks_find(m);
	d9_objects_finish(m);
	d9_pools_find(m);
	d9_polls_find(m);
	d9_tasks_find(m);
	for (d9_u32 i = 0; i < t->threads.n; i++)
		sum_thread(m, i);
	return m;
}

void d9_model_free(struct d9_model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->t->threads.n; i++) {
		d9_vec_free(&m->threads[i].homes);
		d9_vec_free(&m->threads[i].parks);
		d9_vec_free(&m->threads[i].polls);
		d9_vec_free(&m->threads[i].queued);
	}
	for (size_t i = 0; i < m->pools.n; i++)
		d9_vec_free(&m->pools.v[i].threads);
	for (size_t i = 0; m->chains && i < m->t->sites.n; i++)
		free(m->chains[i].frames);
	d9_holes_free(m);
	d9_objects_free(m);
	d9_vec_free(&m->pools);
	d9_vec_free(&m->runtimes);
	d9_map_free(&m->runtime_map);
	if (m->tasks)
		d9_tasks_free(m->tasks);
	free(m->tasks);
	d9_vec_free(&m->moments);
	d9_vec_free(&m->left);
	free(m->chains);
	free(m->met_once);
	free(m->tail_says);
	free(m->threads);
	free(m);
}

int d9_model_open(const struct d9_read_opts *o, struct d9_model **ret)
{
	struct d9_trace *t;
	int r = d9_trace_open(o, &t);
	if (!r)
		*ret = d9_model_new(t);
	return r;
}

void d9_model_close(struct d9_model *m)
{
	struct d9_trace *t = m->t;
	d9_model_free(m);
	d9_trace_free(t);
}
