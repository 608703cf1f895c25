/*
 * Joins what the kernel's side saw to the services it watched.  Its threads and processes have numbers of its own; they are the
 * services' that have the same pid, start time and tid and lived at the same time.  A tid is used again, and an exec makes another
 * family of the same process: so each event goes to who lived at its moment.
 *
 * What only the kernel saw stays: a thread of its process without calls, or a process of its own.  Where two helpers watched the same
 * thread at the same time, the first is believed and the other adds what the first did not watch.  What was seen through perf comes last,
 * and no stretch counts as watched for it: a thread that it does not show waiting may have waited.
 */
#include "trace_internal.h"

#define CHAIN_MAX 4096 /* of one tid or pid: a file may say anything */

struct join {
	struct d9_trace *t;
	struct d9_kernel_taker taker;
	struct d9_trace_proc *was;       /* all processes, by the numbers under which they were read */
	d9_u32 *proc_of;                 /* such a number -> the one that is kept */
	d9_u32 n_procs, n_threads;       /* kept so far: all of the services', then what only the kernel saw */
	struct d9_map by_pid, by_tid;    /* pid; process and tid -> the last that is kept */
	d9_u32 *before_proc, *before_th; /* kept with the same pid, or tid, before it */
	d9_u64 *until;                   /* by kept thread: it lived up to then */
	d9_stretches *covered;           /* by kept thread: a helper watched it, losses or not */
	d9_u64 *last_life;               /* by thread as it was read: it lived up to then */
	d9_stretches *lost;              /* by family: when records were lost */
};

static bool is_kernel(const struct join *j, d9_u32 family) { return j->t->families.v[family].kernel; }
static bool is_perf(const struct join *j, d9_u32 family) { return j->t->families.v[family].by_perf; }

/* ---- what is kept ---------------------------------------------------------------------------------------------------- */

static d9_u64 tid_key(d9_u32 proc, d9_i32 tid) { return (d9_u64)proc << 32 | (d9_u32)tid; }

static void keep_proc(struct join *j, const struct d9_trace_proc *p)
{
	d9_u32 i = j->n_procs++;
	j->t->procs.v[i] = *p;
	j->before_proc[i] = d9_map_get(&j->by_pid, (d9_u32)p->pid);
	d9_map_put(&j->by_pid, (d9_u32)p->pid, i);
}

static void keep_thread(struct join *j, const struct d9_trace_thread *th, d9_u64 until)
{
	d9_u32 i = j->n_threads++;
	j->t->threads.v[i] = *th;
	j->until[i] = until;
	if (th->proc == D9_NO_INDEX)
		return;
	j->before_th[i] = d9_map_get(&j->by_tid, tid_key(th->proc, th->tid));
	d9_map_put(&j->by_tid, tid_key(th->proc, th->tid), i);
}

/* ---- processes --------------------------------------------------------------------------------------------------------- */

static bool lives_with(const struct d9_trace_proc *a, const struct d9_trace_proc *b)
{
	return (!a->end_how || a->end_t >= b->born) && (!b->end_how || b->end_t >= a->born);
}

/* The first that the process is among those that are kept, from i on back.  One without a pid was defined in a damaged block. */
static d9_u32 same_from(const struct join *j, const struct d9_trace_proc *p, d9_u32 i)
{
	if (!p->pid)
		return D9_NO_INDEX;
	for (unsigned hops = 0; i != D9_MAP_EMPTY && hops < CHAIN_MAX; hops++, i = j->before_proc[i]) {
		const struct d9_trace_proc *q = &j->t->procs.v[i];
		if (p->start && q->start ? p->start == q->start : lives_with(p, q))
			return i;
	}
	return D9_NO_INDEX;
}

#define EACH_SAME(i, j, p)                                                                             \
	for (d9_u32 i = same_from(j, p, d9_map_get(&(j)->by_pid, (d9_u32)(p)->pid)); i != D9_NO_INDEX; \
	     i = same_from(j, p, (j)->before_proc[i]))

/* Which of the programs that the process was ran at t: the last that had begun, else the first.  not_of: leaves out a family's. */
static d9_u32 proc_at(const struct join *j, const struct d9_trace_proc *p, d9_u64 t, d9_u32 not_of)
{
	d9_u32 last = D9_NO_INDEX, first = D9_NO_INDEX;
	EACH_SAME (i, j, p) {
		d9_u64 born = j->t->procs.v[i].born;
		if (j->t->procs.v[i].family == not_of)
			continue;
		if (born <= t && (last == D9_NO_INDEX || born > j->t->procs.v[last].born))
			last = i;
		if (first == D9_NO_INDEX || born < j->t->procs.v[first].born)
			first = i;
	}
	return last != D9_NO_INDEX ? last : first;
}

/* Those that only the kernel's side saw move down to where the joined ones were. */
static void join_procs(struct join *j)
{
	for (d9_u32 i = 0; i < j->t->procs.n; i++) {
		struct d9_trace_proc *p = &j->was[i];
		d9_u32 same = is_kernel(j, p->family) ? proc_at(j, p, p->born, p->family) : D9_NO_INDEX;
		j->proc_of[i] = same != D9_NO_INDEX ? same : j->n_procs;
		if (same != D9_NO_INDEX)
			free(p->name);
		else
			keep_proc(j, p);
	}
	j->t->procs.n = j->n_procs;
	for (d9_u32 i = 0; i < j->n_procs; i++) {
		struct d9_trace_proc *p = &j->t->procs.v[i];
		if (!is_kernel(j, p->family) || p->parent == D9_NO_INDEX)
			continue;
		p->parent = j->proc_of[p->parent] == i ? D9_NO_INDEX : j->proc_of[p->parent];
	}
}

/* ---- lives --------------------------------------------------------------------------------------------------------------- */

/* The last moment of which anything is known in a helper's files; and when it lost records. */
static d9_u64 end_of_family(struct join *j, d9_u32 family)
{
	const struct d9_clock_map *clock = &j->t->families.v[family].clock;
	d9_u64 end = clock->n ? clock->v[clock->n - 1].mono : 0;
	for (size_t i = 0; i < j->t->threads.n; i++) {
		const struct d9_trace_thread *th = &j->t->threads.v[i];
		if (th->family != family)
			continue;
		end = th->last > end ? th->last : end;
		for (size_t k = 0; k < th->gaps.n; k++)
			d9_vec_push(&j->lost[family], (struct d9_stretch){th->gaps.v[k].since, th->gaps.v[k].t});
	}
	d9_stretches_merge(&j->lost[family]);
	return end;
}

/* A helper has another number for a process that runs another program now, and for its thread. */
static d9_u64 life_key(const struct d9_trace_proc *p, const struct d9_trace_thread *th)
{
	return (tid_key((d9_u32)p->pid, th->tid) * 31 + p->start) * 31 + th->family;
}

/*
 * A thread lived until its helper met the next one of its tid, its process ended, or the helper itself: that it did not run any more says
 * nothing.
 */
static void find_lives(struct join *j)
{
	struct d9_map next = {0}; /* life_key -> the thread after it */
	d9_u64 *ends = d9_must_alloc(j->t->families.n + 1, sizeof(*ends));
	for (d9_u32 f = 0; f < j->t->families.n; f++)
		ends[f] = is_kernel(j, f) ? end_of_family(j, f) : 0;
	for (d9_u32 i = (d9_u32)j->t->threads.n; i-- > 0;) {
		const struct d9_trace_thread *th = &j->t->threads.v[i];
		j->last_life[i] = is_kernel(j, th->family) ? ends[th->family] : th->last;
		if (!is_kernel(j, th->family) || th->proc == D9_NO_INDEX)
			continue;
		const struct d9_trace_proc *p = &j->was[th->proc];
		d9_u64 key = life_key(p, th);
		d9_u32 after = d9_map_get(&next, key);
		if (after != D9_MAP_EMPTY && j->t->threads.v[after].first > th->first)
			j->last_life[i] = j->t->threads.v[after].first - 1;
		if (p->end_how && p->end_how != 4 && p->end_t < j->last_life[i])
			j->last_life[i] = p->end_t > th->first ? p->end_t : th->first;
		d9_map_put(&next, key, i);
	}
	d9_map_free(&next);
	free(ends);
}

/* ---- threads ------------------------------------------------------------------------------------------------------------- */

typedef D9_VEC(d9_u32) d9_indices;

static const struct d9_trace_thread *by_first_in;
static int by_first(const void *a, const void *b)
{
	d9_u32 x = *(const d9_u32 *)a, y = *(const d9_u32 *)b;
	d9_u64 s = by_first_in[x].first, t = by_first_in[y].first;
	return s != t ? d9_by(s, t) : d9_by(x, y);
}

/* The kept threads that it was, in the order in which they began. */
static void find_same(const struct join *j, const struct d9_trace_thread *th, d9_u64 until, d9_indices *ret)
{
	ret->n = 0;
	EACH_SAME (p, j, &j->was[th->proc]) {
		d9_u32 i = d9_map_get(&j->by_tid, tid_key(p, th->tid));
		for (unsigned hops = 0; i != D9_MAP_EMPTY && hops < CHAIN_MAX; hops++, i = j->before_th[i])
			if (j->t->threads.v[i].first <= until && j->until[i] >= th->first)
				d9_vec_push(ret, i);
	}
	by_first_in = j->t->threads.v;
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_first);
}

static void add_sums(struct d9_kernel_side *to, const struct d9_runq_sums *more)
{
	if (!to->sums) {
		to->sums = (struct d9_runq_sums *)more; /* both live as long as the trace */
		return;
	}
	struct d9_runq_sums *s = to->sums;
	s->count += more->count;
	s->total += more->total;
	s->max = more->max > s->max ? more->max : s->max;
	s->by_schedstat = s->by_schedstat == D9_NOT_KNOWN || more->by_schedstat == D9_NOT_KNOWN
				  ? D9_NOT_KNOWN
				  : s->by_schedstat + more->by_schedstat;
	for (unsigned i = 0; i < D9_WAIT_BUCKETS; i++)
		s->buckets[i] += more->buckets[i];
}

/* What the helper saw of the thread between these moments, where none did before it. */
static void give(struct join *j, d9_u32 to, const struct d9_trace_thread *from, struct d9_stretch life, bool whole)
{
	struct d9_trace_thread *th = &j->t->threads.v[to];
	d9_stretches *covered = &j->covered[to], fresh = {0};
#define TAKE(array, moment)                                                                     \
	for (size_t i = 0; i < from->array.n; i++)                                              \
		if (from->array.v[i].moment >= life.t0 && from->array.v[i].moment <= life.t1 && \
		    !d9_stretches_hold(covered, from->array.v[i].moment))                       \
			d9_vec_push(&th->array, from->array.v[i]);
	TAKE(kernel.runq, t1)
	TAKE(kernel.offcpu, t1)
	TAKE(events, t)
	TAKE(cpu, t)
#undef TAKE
	d9_u64 t0 = from->first > life.t0 ? from->first : life.t0;
	d9_stretches_add_rest(&fresh, t0, life.t1, covered);
	if (whole && from->kernel.sums &&
	    (!th->kernel.sums || (fresh.n == 1 && fresh.v[0].t0 == t0 && fresh.v[0].t1 == life.t1)))
		add_sums(&th->kernel, from->kernel.sums);
	for (size_t i = 0; i < fresh.n && !is_perf(j, from->family); i++)
		d9_stretches_add_rest(&th->kernel.watched, fresh.v[i].t0, fresh.v[i].t1, &j->lost[from->family]);
	th->kernel.by_perf |= is_perf(j, from->family) && fresh.n;
	if (t0 < life.t1)
		d9_vec_push(covered, (struct d9_stretch){t0, life.t1});
	d9_stretches_merge(covered);
	d9_stretches_merge(&th->kernel.watched);
	d9_vec_free(&fresh);
	th->kernel_tid = th->kernel_tid ? th->kernel_tid : from->kernel_tid;
	th->kernel_pid = th->kernel_pid ? th->kernel_pid : from->kernel_pid;
	th->name = *th->name ? th->name : from->name;
}

static void free_joined(struct d9_trace_thread *th)
{
	d9_vec_free(&th->kernel.runq);
	d9_vec_free(&th->kernel.offcpu);
	d9_vec_free(&th->events);
	d9_vec_free(&th->cpu);
	d9_vec_free(&th->gaps);
}

/* One that nobody else saw: all that it has is its own already. */
static void keep_own(struct join *j, struct d9_trace_thread *th, d9_u64 until)
{
	if (th->proc != D9_NO_INDEX) {
		d9_u32 proc = proc_at(j, &j->was[th->proc], th->first, D9_NO_INDEX);
		th->proc = proc != D9_NO_INDEX ? proc : j->proc_of[th->proc];
	}
	th->kernel.by_perf = is_perf(j, th->family);
	if (!th->kernel.by_perf)
		d9_stretches_add_rest(&th->kernel.watched, th->first, until, &j->lost[th->family]);
	d9_vec_push(&j->covered[j->n_threads], (struct d9_stretch){th->first, until});
	keep_thread(j, th, until);
}

static void join_threads(struct join *j)
{
	d9_indices same = {0};
	for (d9_u32 i = 0; i < j->t->threads.n; i++) {
		struct d9_trace_thread th = j->t->threads.v[i];
		if (!is_kernel(j, th.family)) {
			keep_thread(j, &th, th.last);
			continue;
		}
		same.n = 0;
		if (th.proc != D9_NO_INDEX)
			find_same(j, &th, j->last_life[i], &same);
		if (!same.n) {
			keep_own(j, &th, j->last_life[i]);
			continue;
		}
		for (size_t k = 0; k < same.n; k++) {
			d9_u64 end = k + 1 < same.n ? j->t->threads.v[same.v[k + 1]].first - 1 : j->last_life[i];
			struct d9_stretch life = {k ? j->t->threads.v[same.v[k]].first : 0, end};
			give(j, same.v[k], &th, life, same.n == 1);
		}
		free_joined(&th);
	}
	j->t->threads.n = j->n_threads;
	d9_vec_free(&same);
}

/* ---- quotas, modules ---------------------------------------------------------------------------------------------------- */

static void take_quota(struct join *j, const struct d9_map *procs, const struct d9_trace_event *ev)
{
	const struct d9_ev_quota *e = (const void *)ev->rec;
	d9_u32 proc = d9_map_get(procs, (d9_u64)ev->family << 32 | e->proc);
	if (proc == D9_MAP_EMPTY)
		return;
	struct d9_trace *t = j->t;
	d9_u32 cgroup = d9_kernel_name(&j->taker, &ev->tail);
	d9_vec_push(&t->quotas, (struct d9_quota){.t = ev->t,
						  .periods = e->periods,
						  .throttled = e->throttled,
						  .throttled_ns = e->throttled_ns,
						  .quota = e->quota,
						  .period = e->period,
						  .proc = j->proc_of[proc],
						  .family = ev->family,
						  .cgroup = cgroup});
}

static int quota_order(const void *a, const void *b)
{
	const struct d9_quota *x = a, *y = b;
	if (x->proc != y->proc)
		return d9_by(x->proc, y->proc);
	if (x->family != y->family)
		return d9_by(x->family, y->family);
	return x->cgroup != y->cgroup ? d9_by(x->cgroup, y->cgroup) : d9_by(x->t, y->t);
}

static void take_quotas(struct join *j, size_t n_was)
{
	struct d9_map procs = {0}; /* family and number -> process as read */
	for (d9_u32 i = 0; i < n_was; i++)
		if (is_kernel(j, j->was[i].family))
			d9_map_put(&procs, (d9_u64)j->was[i].family << 32 | j->was[i].id, i);
	for (size_t i = 0; i < j->t->threads.n; i++) {
		const struct d9_trace_thread *th = &j->t->threads.v[i];
		for (size_t k = 0; k < th->events.n && is_kernel(j, th->family); k++)
			if (th->events.v[k].id == D9_EV_quota)
				take_quota(j, &procs, &th->events.v[k]);
	}
	if (j->t->quotas.n)
		qsort(j->t->quotas.v, j->t->quotas.n, sizeof(*j->t->quotas.v), quota_order);
	d9_map_free(&procs);
}

/* Of a joined process its own recorder told. */
static void keep_modules(struct join *j)
{
	for (size_t i = 0; i < j->t->modules.n; i++) {
		struct d9_trace_module *m = &j->t->modules.v[i];
		if (!is_kernel(j, m->family) || m->proc == D9_NO_INDEX)
			continue;
		d9_u32 kept = j->proc_of[m->proc];
		m->proc = is_kernel(j, j->t->procs.v[kept].family) ? kept : D9_NO_INDEX;
	}
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------ */

static void join_fini(struct join *j, size_t n_threads)
{
	for (size_t i = 0; i < n_threads; i++)
		d9_vec_free(&j->covered[i]);
	for (size_t i = 0; i < j->t->families.n; i++)
		d9_vec_free(&j->lost[i]);
	d9_kernel_taker_fini(&j->taker);
	d9_map_free(&j->by_pid);
	d9_map_free(&j->by_tid);
	free(j->was);
	free(j->proc_of);
	free(j->before_proc);
	free(j->before_th);
	free(j->until);
	free(j->covered);
	free(j->last_life);
	free(j->lost);
}

void d9_kernel_join(struct d9_trace *t)
{
	size_t n_procs = t->procs.n + 1, n_threads = t->threads.n + 1;
	if (!d9_trace_has_kernel(t))
		return;
	struct join j = {.t = t,
			 .taker.t = t,
			 .was = d9_must_alloc(n_procs, sizeof(*j.was)),
			 .proc_of = d9_must_alloc(n_procs, sizeof(*j.proc_of)),
			 .before_proc = d9_must_alloc(n_procs, sizeof(*j.before_proc)),
			 .before_th = d9_must_alloc(n_threads, sizeof(*j.before_th)),
			 .until = d9_must_alloc(n_threads, sizeof(*j.until)),
			 .covered = d9_must_alloc(n_threads, sizeof(*j.covered)),
			 .last_life = d9_must_alloc(n_threads, sizeof(*j.last_life)),
			 .lost = d9_must_alloc(t->families.n, sizeof(*j.lost))};
	if (t->procs.n)
		memcpy(j.was, t->procs.v, t->procs.n * sizeof(*j.was));
	for (size_t i = 0; i < t->threads.n; i++)
		if (is_kernel(&j, t->threads.v[i].family))
			d9_kernel_take(&j.taker, &t->threads.v[i]);
	find_lives(&j);
	join_procs(&j);
	take_quotas(&j, n_procs - 1);
	join_threads(&j);
	keep_modules(&j);
	for (size_t i = 0; i < t->threads.n; i++) {
		d9_kernel_settle(&t->threads.v[i].kernel);
		d9_trace_order_events(&t->threads.v[i]);
		d9_trace_order_cpu(&t->threads.v[i]);
	}
	for (size_t i = 0; i < t->families.n; i++)
		if (t->families.v[i].kernel) /* its numbers are nobody's now */
			d9_map_free(&t->families.v[i].threads);
	join_fini(&j, n_threads);
}
