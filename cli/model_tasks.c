/*
 * What a program said of its own tasks (d9.h), or the recorder saw of a runtime's: the runtimes of each process, and how
 * long each task stood in a queue: from the wake that made it runnable to the beginning of the poll that followed.  A task that is
 * woken while it is polled is queued from that poll's end on; of several wakes the first counts.
 */
#include "model_internal.h"

static void add_polls(struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (d9_u32 i = 0; i < th->rt.n; i++) {
		const struct d9_rt_span *r = &th->rt.v[i];
		if (!r->park)
			d9_vec_push(&m->moments, (struct d9_moment){.what = D9_TASK_POLL,
								    .t = r->t0,
								    .t1 = r->t1,
								    .task = r->task,
								    .proc = th->proc,
								    .module = r->module,
								    .runtime = r->runtime,
								    .thread = thread,
								    .by_thread = thread,
								    .index = i});
	}
}

/* A runtime's task is seen for the first time when it is polled; when it was made may be known from then. */
static void made_by(const struct d9_model *m, const struct d9_trace_thread *th, const struct d9_trace_event *told,
		    struct d9_moment *x)
{
	const struct d9_ev_task_spawn *e = (const void *)told->rec;
	d9_u64 made = e->made ? d9_trace_ns(m->t, th->family, told->clock, e->made) : 0;
	if (!made || made > x->t)
		return;
	d9_u32 by = d9_trace_thread_index(m->t, th->family, e->thread);
	x->t = x->t1 = made;
	x->by_thread = by == D9_NO_INDEX ? x->thread : by;
}

static void add_told(struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (d9_u32 i = 0; i < th->events.n; i++) {
		const struct d9_rec *rec = th->events.v[i].rec;
		struct d9_moment x = {.t = th->events.v[i].t,
				      .t1 = th->events.v[i].t,
				      .proc = th->proc,
				      .runtime = D9_NO_INDEX,
				      .thread = thread,
				      .by_thread = thread,
				      .index = i};
		if (th->events.v[i].id == D9_EV_wake) {
			const struct d9_ev_wake *e = (const void *)rec;
			x.what = D9_TASK_WAKE, x.task = e->task, x.module = e->module, x.runtime = e->runtime;
		} else if (th->events.v[i].id == D9_EV_task_spawn) {
			const struct d9_ev_task_spawn *e = (const void *)rec;
			x.what = D9_TASK_SPAWN, x.task = e->task, x.module = e->module, x.runtime = e->runtime;
			made_by(m, th, &th->events.v[i], &x);
		} else if (th->events.v[i].id == D9_EV_task_end) {
			const struct d9_ev_task_end *e = (const void *)rec;
			x.what = D9_TASK_END, x.task = e->task, x.module = e->module;
		} else
			continue;
		d9_vec_push(&m->moments, x);
	}
}

int d9_moment_order(const void *a, const void *b)
{
	const struct d9_moment *x = a, *y = b;
	int r = d9_by(x->proc, y->proc) ?: d9_by(x->module, y->module) ?: d9_by(x->task, y->task) ?: d9_by(x->t, y->t);
	return r ?: (int)x->what - (int)y->what; /* in the order of a life */
}

size_t d9_model_moments(const struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u64 task, const struct d9_moment **ret)
{
	const struct d9_moment wanted = {.proc = proc, .module = module, .task = task};
	size_t first = d9_first_from(m->moments.v, m->moments.n, sizeof(wanted), &wanted, d9_moment_order), end = first;
	while (end < m->moments.n && d9_same_task(&m->moments.v[end], &wanted))
		end++;
	*ret = m->moments.n ? m->moments.v + first : NULL;
	return end - first;
}

static bool is_made(const struct d9_model *m, const struct d9_moment *x)
{
	return x->what == D9_TASK_SPAWN &&
	       d9_spawn_is_exact((const void *)m->t->threads.v[x->thread].events.v[x->index].rec);
}

#define CLOCKS_NS \
	100000u /* a wake's time may be read a little after the poll that it asked for began, and even ended */

/* The task that had this moment last was runnable from `since` on; polled: end of its last poll. */
static void leave(struct d9_model *m, const struct d9_moment *last, d9_u64 since, d9_u64 polled)
{
	if (since > polled + CLOCKS_NS && last->runtime != D9_NO_INDEX)
		d9_vec_push(&m->left, (struct d9_left){.proc = last->proc,
						       .module = last->module,
						       .runtime = last->runtime,
						       .thread = last->thread,
						       .task = last->task,
						       .t0 = since});
}

/*
 * Since when each poll's task stood in the queue.  What a runtime of its own makes is runnable at once; a program that tells may mean less.
 * Tokio does not wake what stands in the queue: if it wakes a task again, what asked for it before was polled.
 */
static void find_since(struct d9_model *m)
{
	d9_u64 since = 0, polled = 0; /* runnable since, 0 = not; end of the last poll */
	bool guessed = false;         /* since: the poll says that there was a wake, and none was seen yet */
	bool over = false;            /* a wake's time may be read after it */
	for (size_t i = 0; i < m->moments.n; i++) {
		struct d9_moment *x = &m->moments.v[i];
		if (!i || !d9_same_task(x, x - 1))
			since = polled = guessed = over = 0;
		over |= x->what == D9_TASK_END;
		if (x->module && is_made(m, x))
			since = x->t;
		if (x->what == D9_TASK_WAKE && (!since || guessed || x->module)) {
			since = x->t > polled ? x->t : polled;
			guessed = false;
		}
		if (x->what == D9_TASK_POLL) {
			/* Of what was lost meanwhile, or in those very moments, a poll or a wake in between may be missing. */
			if (since && since <= x->t && !d9_model_has_hole(m, x->proc, since - 1, x->t + 1)) {
				x->since = since;
				d9_vec_push(&m->threads[x->thread].queued, (struct d9_queued){since, x->t, x->index});
			}
			polled = x->t1;
			/* The wake itself may have been compiled into the poll. */
			guessed = m->t->threads.v[x->thread].rt.v[x->index].outcome == D9_OUTCOME_WOKEN;
			since = guessed ? polled : 0;
		}
		if (!over && (i + 1 == m->moments.n || !d9_same_task(x, x + 1)))
			leave(m, x, since, polled);
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct d9_queued *x = a, *y = b;
	return x->t0 != y->t0 ? (x->t0 < y->t0 ? -1 : 1) : x->t1 < y->t1 ? -1 : x->t1 > y->t1;
}

static bool may_be_life(const struct d9_model *m, const struct d9_moment *x)
{
	return x->what == D9_TASK_SPAWN && x->module &&
	       ((const struct d9_ev_task_spawn *)(const void *)m->t->threads.v[x->thread].events.v[x->index].rec)
			       ->flags &
		       D9_SPAWN_LIFE;
}

/* What may have been a worker's life, and was never polled as a job, was one. */
static void drop_lives(struct d9_model *m)
{
	size_t n = 0;
	for (size_t i = 0; i < m->moments.n; i++) {
		const struct d9_moment *x = &m->moments.v[i];
		bool alone = (!i || !d9_same_task(x, x - 1)) && (i + 1 == m->moments.n || !d9_same_task(x, x + 1));
		if (!alone || !may_be_life(m, x))
			m->moments.v[n++] = *x;
	}
	m->moments.n = n;
}

static void find_moments(struct d9_model *m)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		add_polls(m, i);
		add_told(m, i);
	}
	if (m->moments.n)
		qsort(m->moments.v, m->moments.n, sizeof(*m->moments.v), d9_moment_order);
	drop_lives(m);
	find_since(m);
	for (size_t i = 0; i < m->t->threads.n; i++)
		if (m->threads[i].queued.n)
			qsort(m->threads[i].queued.v, m->threads[i].queued.n, sizeof(struct d9_queued), by_begin);
}

/* ---- runtimes --------------------------------------------------------------------------------------- */

/* One thing said of a runtime; each id counts once. */
struct said {
	enum { WORKER, TASK } what;
	d9_u32 runtime; /* index in the model */
	d9_u64 id;
};
typedef D9_VEC(struct said) saying;

/* Processes and modules of a recording that means well are far fewer. */
static d9_u64 runtime_key(d9_u32 proc, d9_u32 module, d9_u32 id)
{
	return (d9_u64)(proc & 0xffffff) << 40 | (d9_u64)(module & 0xff) << 32 | id;
}

d9_u32 d9_model_runtime(const struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u32 id)
{
	return d9_map_get(&m->runtime_map, runtime_key(proc, module, id));
}

static d9_u32 runtime_of(struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u32 id)
{
	d9_u32 i = d9_model_runtime(m, proc, module, id);
	if (i != D9_MAP_EMPTY)
		return i;
	d9_vec_push(&m->runtimes, (struct d9_runtime){.proc = proc, .module = module, .id = id});
	i = (d9_u32)m->runtimes.n - 1;
	d9_map_put(&m->runtime_map, runtime_key(proc, module, id), i);
	return i;
}

static void add_workers(struct d9_model *m, d9_u32 thread, saying *said)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	for (size_t i = 0; i < th->rt.n; i++) {
		d9_u32 r = runtime_of(m, th->proc, th->rt.v[i].module, th->rt.v[i].runtime);
		if (th->rt.v[i].worker != D9_NO_INDEX && m->threads[thread].role == D9_ROLE_WORKER)
			m->threads[thread].worker = th->rt.v[i].worker; /* the runtime's own number */
		if (th->rt.v[i].worker != D9_NO_INDEX)
			d9_vec_push(said, (struct said){WORKER, r, th->rt.v[i].worker});
	}
}

static void add_moment(struct d9_model *m, const struct d9_moment *x, saying *said)
{
	if (x->what == D9_TASK_END)
		return; /* does not say of which runtime */
	d9_u32 r = runtime_of(m, x->proc, x->module, x->runtime);
	struct d9_runtime *of = &m->runtimes.v[r];
	d9_vec_push(said, (struct said){TASK, r, x->task});
	of->wakes += x->what == D9_TASK_WAKE;
	if (x->what != D9_TASK_POLL)
		return;
	of->polls += !d9_is_dropped(x->module, m->t->threads.v[x->thread].rt.v[x->index].outcome);
	of->poll_total += x->t1 - x->t;
	of->poll_max = x->t1 - x->t > of->poll_max ? x->t1 - x->t : of->poll_max;
}

static int by_what(const void *a, const void *b)
{
	const struct said *x = a, *y = b;
	return d9_by(x->what, y->what) ?: d9_by(x->runtime, y->runtime) ?: d9_by(x->id, y->id);
}

static void count_ids(struct d9_model *m, saying *said)
{
	if (said->n)
		qsort(said->v, said->n, sizeof(*said->v), by_what);
	for (size_t i = 0; i < said->n; i++) {
		struct d9_runtime *r = &m->runtimes.v[said->v[i].runtime];
		if (!i || by_what(&said->v[i], &said->v[i - 1]))
			*(said->v[i].what == WORKER ? &r->workers : &r->tasks) += 1;
	}
}

static int by_id(const void *a, const void *b)
{
	const struct d9_runtime *x = a, *y = b;
	return d9_by(x->proc, y->proc) ?: d9_by(x->module, y->module) ?: d9_by(x->id, y->id);
}

void d9_tasks_find(struct d9_model *m)
{
	saying said = {0};
	find_moments(m);
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		add_workers(m, i, &said);
	for (size_t i = 0; i < m->moments.n; i++)
		add_moment(m, &m->moments.v[i], &said);
	count_ids(m, &said);
	if (m->runtimes.n)
		qsort(m->runtimes.v, m->runtimes.n, sizeof(*m->runtimes.v), by_id);
	for (d9_u32 i = 0; i < m->runtimes.n; i++)
		d9_map_put(&m->runtime_map,
			   runtime_key(m->runtimes.v[i].proc, m->runtimes.v[i].module, m->runtimes.v[i].id), i);
	d9_vec_free(&said);
}

const struct d9_rt_span *d9_model_task_poll(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	/* The first that ends at t1 or later: the innermost of those around it ends first. */
	size_t i = t1 ? D9_FIRST_AFTER(th->rt.v, th->rt.n, t1, t1 - 1) : 0;
	for (unsigned steps = 0; i < th->rt.n && steps < 64; i++, steps++)
		if (!th->rt.v[i].park && th->rt.v[i].t0 <= t0)
			return &th->rt.v[i];
	return NULL;
}

d9_u64 d9_model_task(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1)
{
	const struct d9_rt_span *poll = d9_model_task_poll(m, thread, t0, t1);
	return poll ? poll->task : 0;
}
