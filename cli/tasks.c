/* A task's life from the moments that were told of it. */
#include "tasks.h"

const char *d9_task_outcome_name(enum d9_task_outcome outcome)
{
	static const char *const names[] = {"alive", "ready", "cancelled", "over", "not known"};
	return names[outcome];
}

/* Who polled: the worker if the runtime told its number, which may go to another thread, else the thread. */
static d9_u64 poller(const struct d9_model *m, const struct d9_moment *x)
{
	d9_u32 worker = m->t->threads.v[x->thread].rt.v[x->index].worker;
	return worker != D9_NO_INDEX ? worker : 1ull << 32 | x->thread;
}

static int by_number(const void *a, const void *b)
{
	d9_u64 x = *(const d9_u64 *)a, y = *(const d9_u64 *)b;
	return x < y ? -1 : x > y;
}

static d9_u32 told_outcome(const struct d9_model *m, const struct d9_moment *poll)
{
	return m->t->threads.v[poll->thread].rt.v[poll->index].outcome;
}

static void count_pollers(const struct d9_model *m, struct d9_task *k)
{
	d9_u64 *of = d9_must_alloc(k->polls, sizeof(*of)), n = 0;
	for (size_t i = 0; i < k->n_moments; i++) {
		const struct d9_moment *x = &k->moments[i];
		if (x->what == D9_TASK_POLL && !d9_is_dropped(x->module, told_outcome(m, x)))
			of[n++] = poller(m, x);
	}
	for (size_t i = 1; i < n; i++)
		k->migrations += of[i] != of[i - 1];
	qsort(of, n, sizeof(*of), by_number);
	for (size_t i = 0; i < n; i++)
		k->workers += !i || of[i] != of[i - 1];
	free(of);
}

/* As the events have it. */
static enum d9_task_outcome outcome_of(d9_u32 told)
{
	switch (told) {
	case D9_OUTCOME_READY:
		return D9_TASK_READY;
	case D9_OUTCOME_CANCELLED:
		return D9_TASK_CANCELLED;
	case D9_OUTCOME_ABORTED:
		return D9_TASK_OVER;
	default:
		return D9_TASK_ALIVE;
	}
}

static void add_poll(const struct d9_model *m, struct d9_task *k, const struct d9_moment *x, d9_u32 outcome)
{
	d9_u64 dur = x->t1 - x->t;
	k->polls += !d9_is_dropped(x->module, outcome);
	k->poll_total += dur;
	k->poll_max = dur > k->poll_max ? dur : k->poll_max;
	if (x->since) {
		k->waits++;
		k->queue_total += x->t - x->since;
		k->queue_max = x->t - x->since > k->queue_max ? x->t - x->since : k->queue_max;
	}
	if (outcome_of(outcome) != D9_TASK_ALIVE) {
		k->outcome = outcome_of(outcome);
		k->ended = x->t1;
	}
	k->idle_since = outcome != D9_OUTCOME_PENDING ? D9_NOT_KNOWN : x->t1;
	k->polled = m->t->threads.v[x->thread].rt.v[x->index].unfinished;
}

static void add(const struct d9_model *m, struct d9_task_names *names, struct d9_task *k, const struct d9_moment *x)
{
	const struct d9_trace_thread *th = &m->t->threads.v[x->thread];
	if (x->runtime != D9_NO_INDEX)
		k->runtime = x->runtime;
	if (x->what == D9_TASK_POLL) {
		add_poll(m, k, x, told_outcome(m, x));
		return;
	}
	const struct d9_trace_event *e = &th->events.v[x->index];
	if (x->what == D9_TASK_SPAWN) {
		const struct d9_ev_task_spawn *s = (const void *)e->rec;
		k->exact = d9_spawn_is_exact(s);
		k->job = s->flags & D9_SPAWN_JOB;
		k->spawned = x->t;
		k->parent = s->parent;
		k->code = e->tail.n ? 0 : s->code;
		k->name = e->tail.n ? e->tail : d9_task_name(names, m->t, x->proc, s->code);
	} else if (x->what == D9_TASK_WAKE) {
		k->wakes++;
		k->idle_since = D9_NOT_KNOWN;
	} else {
		const struct d9_ev_task_end *s = (const void *)e->rec;
		k->outcome = outcome_of(s->outcome);
		if (k->outcome == D9_TASK_ALIVE)
			k->outcome = D9_TASK_OVER;
		k->ended = x->t;
	}
}

/* A poll that takes no waker leaves those that were taken before: what it awaits has them still. */
static void find_awaited(const struct d9_task_dumps *dumps, struct d9_task *k)
{
	const struct d9_task_dump *of;
	size_t n = d9_task_dumps_in(dumps, k->proc, k->module, k->id, 0, k->idle_since, &of);
	d9_u64 poll = 0;
	for (size_t i = 0; n && i < k->n_moments; i++)
		if (k->moments[i].what == D9_TASK_POLL && k->moments[i].t <= of[n - 1].t)
			poll = k->moments[i].t;
	size_t first = n;
	while (first && of[first - 1].t >= poll)
		first--;
	k->awaiting = of + first;
	k->n_awaiting = n - first;
}

static bool is_over(const struct d9_model *m, const struct d9_task_join *of)
{
	const struct d9_moment *v;
	size_t n = d9_model_moments(m, of->proc, of->module, of->task, &v);
	for (size_t i = 0; i < n; i++)
		if (v[i].what == D9_TASK_END)
			return true;
	return false;
}

/* What it asked for in its last poll, or in the one that it is in. */
static void find_joined(const struct d9_model *m, const struct d9_task_joins *joins, struct d9_task *k)
{
	d9_u64 poll = 0;
	for (size_t i = 0; i < k->n_moments; i++)
		if (k->moments[i].what == D9_TASK_POLL)
			poll = k->moments[i].t;
	const struct d9_task_join *j =
		poll ? d9_task_joins_last(joins, k->proc, k->module, k->id, poll, D9_NOT_KNOWN) : NULL;
	k->awaited = j && !is_over(m, j) ? j->task : 0;
}

static bool is_shown(const struct d9_model *m, const struct d9_moment *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m->t->threads.v[v[i].thread].shown)
			return true;
	return false;
}

static void add_task(const struct d9_model *m, struct d9_tasks *t, const struct d9_moment *v, size_t n)
{
	if (!is_shown(m, v, n))
		return;
	struct d9_task k = {.proc = v->proc,
			    .module = v->module,
			    .runtime = D9_NO_INDEX,
			    .id = v->task,
			    .spawned = v->t,
			    .ended = D9_NOT_KNOWN,
			    .idle_since = D9_NOT_KNOWN,
			    .moments = v,
			    .n_moments = n};
	for (size_t i = 0; i < n; i++)
		add(m, &t->names, &k, &v[i]);
	/* What was woken while it was polled is runnable when the poll ends, though the wake began later than the poll. */
	const struct d9_moment *last = &v[n - 1];
	if (k.ended != D9_NOT_KNOWN || last->what != D9_TASK_POLL)
		k.idle_since = D9_NOT_KNOWN;
	/* What goes on when the part that is looked at ends; and an end or a wake may be among what was lost since. */
	if (k.idle_since != D9_NOT_KNOWN && k.idle_since > m->t->to)
		k.idle_since = D9_NOT_KNOWN;
	if (k.ended == D9_NOT_KNOWN && !k.polled && d9_model_has_hole(m, k.proc, last->t1, m->t->to)) {
		k.idle_since = D9_NOT_KNOWN;
		k.outcome = D9_TASK_LOST;
	}
	if (k.polls)
		count_pollers(m, &k);
	if (k.idle_since != D9_NOT_KNOWN)
		find_awaited(&t->dumps, &k);
	if (k.idle_since != D9_NOT_KNOWN || k.polled)
		find_joined(m, &t->joins, &k);
	d9_vec_push(&t->of, k);
}

/*
 * The outermost function of the program's own in what was seen of a poll: its future's, or one called by it if that was compiled into the
 * runtime's.  NULL: the stack does not reach up to the runtime, or a function in between has no name.
 */
static const char *outermost_own(const struct d9_stack *s)
{
	static const char poll[] = "tokio::runtime::task::";
	d9_u32 i = s->n;
	if (!i || !s->frames[i - 1].symbol || strncmp(s->frames[i - 1].symbol, poll, sizeof(poll) - 1) != 0)
		return NULL;
	while (i && s->frames[i - 1].symbol && s->frames[i - 1].plumbing)
		i--;
	return i ? s->frames[i - 1].symbol : NULL;
}

/* Of kinds of tasks that have no name: one that the stacks of their tasks give. */
static void name_by_dumps(const struct d9_model *m, struct d9_tasks *t)
{
	struct d9_map asked = {0}; /* code and site */
	for (size_t i = 0; i < t->of.n; i++) {
		const struct d9_task *k = &t->of.v[i];
		const struct d9_task_dump *of;
		size_t n = !k->code || k->job || !d9_task_name_wanted(&t->names, k->proc, k->code)
				   ? 0
				   : d9_task_dumps_in(&t->dumps, k->proc, k->module, k->id, 0, D9_NOT_KNOWN, &of);
		for (size_t d = 0; d < n; d++) {
			d9_u64 key = d9_object_key(k->proc, k->code) * 0x9e3779b97f4a7c15ull ^ of[d].site;
			if (of[d].site == D9_NO_INDEX || d9_map_get(&asked, key) != D9_MAP_EMPTY)
				continue;
			d9_map_put(&asked, key, 1);
			d9_task_name_seen(&t->names, k->proc, k->code,
					  outermost_own(d9_task_dump_stack(m, &t->dumps, &of[d])));
		}
	}
	d9_map_free(&asked);
	d9_task_names_finish(&t->names);
	for (size_t i = 0; i < t->of.n; i++)
		if (t->of.v[i].code)
			t->of.v[i].name = d9_task_name(&t->names, m->t, t->of.v[i].proc, t->of.v[i].code);
}

void d9_tasks_make(const struct d9_model *m, struct d9_tasks *ret)
{
	*ret = (struct d9_tasks){0};
	d9_task_dumps_find(m, &ret->dumps);
	d9_task_joins_find(m, &ret->joins);
	for (size_t i = 0, n; i < m->moments.n; i += n) {
		for (n = 1; i + n < m->moments.n && d9_same_task(&m->moments.v[i], &m->moments.v[i + n]);)
			n++;
		add_task(m, ret, &m->moments.v[i], n);
	}
	name_by_dumps(m, ret);
}

struct d9_tasks *d9_model_tasks(struct d9_model *m)
{
	if (!m->tasks) {
		m->tasks = d9_must_alloc(1, sizeof(*m->tasks));
		d9_tasks_make(m, m->tasks);
	}
	return m->tasks;
}

struct d9_bytes d9_model_task_name(struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u64 task)
{
	struct d9_tasks *t = d9_model_tasks(m);
	struct d9_task k = {0};
	const struct d9_moment *v;
	size_t n = d9_model_moments(m, proc, module, task, &v);
	for (size_t i = 0; i < n && !k.name.n; i++)
		if (v[i].what == D9_TASK_SPAWN)
			add(m, &t->names, &k, &v[i]);
	return k.name;
}

const char *d9_task_key(const struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u64 id, char buf[D9_TASK_KEY_BYTES])
{
	snprintf(buf, D9_TASK_KEY_BYTES, "%d:%u:%llu", proc == D9_NO_INDEX ? 0 : m->t->procs.v[proc].pid, module,
		 (unsigned long long)id);
	return buf;
}

void d9_tasks_free(struct d9_tasks *t)
{
	d9_vec_free(&t->of);
	d9_task_names_free(&t->names);
	d9_task_dumps_free(&t->dumps);
	d9_task_joins_free(&t->joins);
}
