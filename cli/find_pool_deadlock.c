/*
 * pool-deadlock: each thread of a blocking pool runs a job that waits for the end of another job, and those stand in that pool's own
 * queue: no thread is left to run them.
 *
 * That a job asked for the other's outcome last, that it is in a call since then, and that the other never began, was seen.  That nothing else
 * could let it go on was not, so the finding is inferred.
 */
#include "findings.h"
#include "tasks.h"

#define STALL_MIN_NS 100000000ull
#define CHAIN_MAX 16 /* a job may wait for a task that waits for a job */

/* A thread of the pool that is in a job. */
struct stuck {
	d9_u32 thread;
	d9_u64 job, queued, since; /* queued: what it waits for in the end; since: it has been in its call */
};

/* The poll that the thread was in when somebody looked last, NULL = none. */
static const struct d9_rt_span *polls_now(const struct d9_trace_thread *th)
{
	const struct d9_rt_span *last = th->rt.n ? &th->rt.v[th->rt.n - 1] : NULL;
	return last && last->unfinished ? last : NULL;
}

enum state { QUEUED, GOES_ON, WAITS };

/* A job that nobody began, or a task that waits for something in its turn. */
static enum state state_of(const struct d9_model *m, d9_u32 proc, d9_u32 module, d9_u64 task, d9_u64 *ret_asked_from)
{
	const struct d9_moment *v;
	size_t n = d9_model_moments(m, proc, module, task, &v);
	bool job = false, begun = false;
	*ret_asked_from = 0;
	for (size_t i = 0; i < n; i++) {
		const struct d9_moment *x = &v[i];
		const struct d9_trace_thread *th = &m->t->threads.v[x->thread];
		if (x->what == D9_TASK_END)
			return GOES_ON;
		if (x->what == D9_TASK_SPAWN)
			job |= ((const struct d9_ev_task_spawn *)(const void *)th->events.v[x->index].rec)->flags &
			       D9_SPAWN_JOB;
		if (x->what == D9_TASK_POLL) {
			begun = true;
			*ret_asked_from = x->t;
		}
	}
	return begun ? WAITS : job ? QUEUED : GOES_ON;
}

/* The queued job that the task waits for in the end, 0 = none: by what each asked for last. */
static d9_u64 waits_for(const struct d9_model *m, const struct d9_task_joins *joins, d9_u32 proc,
			const struct d9_rt_span *job, d9_u64 until)
{
	d9_u64 task = job->task, from = job->t0;
	for (int hops = 0; hops < CHAIN_MAX; hops++) {
		const struct d9_task_join *j = d9_task_joins_last(joins, proc, job->module, task, from, until);
		enum state s = j ? state_of(m, proc, job->module, j->task, &from) : GOES_ON;
		if (s == QUEUED)
			return j->task;
		if (s == GOES_ON)
			return 0;
		task = j->task;
	}
	return 0;
}

/* False: it may go on.  *ret_in: it is in a job of the pool, and stuck. */
static bool judge_thread(const struct d9_model *m, const struct d9_task_joins *joins, d9_u32 i, d9_u32 module,
			 bool *ret_in, struct stuck *ret)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	const struct d9_rt_span *job = polls_now(th), *last = th->rt.n ? &th->rt.v[th->rt.n - 1] : NULL;
	*ret_in = false;
	if (last && last->worker != D9_NO_INDEX)
		return true; /* it is a worker by now */
	if (!job)
		return !th->pending.unfinished; /* idle, unless it is gone */
	if (!d9_is_pool(job) || job->module != module || !th->pending.unfinished || th->pending.since < job->t0 ||
	    th->pending.t - th->pending.since < STALL_MIN_NS)
		return false;
	*ret = (struct stuck){i, job->task, waits_for(m, joins, th->proc, job, th->pending.since), th->pending.since};
	*ret_in = true;
	return ret->queued;
}

static bool has_been_in_pool(const struct d9_trace_thread *th, d9_u32 module)
{
	for (size_t k = 0; k < th->rt.n; k++)
		if (!th->rt.v[k].park && th->rt.v[k].module == module && d9_is_pool(&th->rt.v[k]))
			return true;
	return false;
}

static void report(struct d9_model *m, struct d9_findings *out, const struct stuck *of, size_t n)
{
	d9_u64 since = 0, to = 0;
	char dur[32];
	struct d9_finding *f = d9_finding_add(out, "pool-deadlock", of[0].thread);
	for (size_t i = 0; i < n; i++) {
		struct d9_pending *p = &m->t->threads.v[of[i].thread].pending;
		since = p->since > since ? p->since : since;
		to = p->t > to ? p->t : to;
		p->claimed = true;
		d9_finding_victim(f, of[i].thread, p->t - p->since);
		d9_finding_span(f, (struct d9_ref){of[i].thread, D9_REF_PENDING, 0});
		f->harm += p->t - p->since;
	}
	f->from = since;
	f->to = to;
	f->severity = D9_CRITICAL;
	f->inferred = true;
	d9_finding_title(f,
			 "all %zu thread%s of a pool (%s) ha%s waited %s for jobs that stand in that pool's own queue",
			 n, n == 1 ? "" : "s", m->t->threads.v[of[0].thread].name, n == 1 ? "s" : "ve",
			 d9_format_duration(to - since, dur));
	d9_finding_task(f, m, of[0].thread, polls_now(&m->t->threads.v[of[0].thread]));
	d9_finding_cause(f, m, (struct d9_ref){of[0].thread, D9_REF_PENDING, 0});
	d9_finding_n(f, "pool_threads", n);
	d9_finding_n(f, "pending_ns", to - since);
	f->try[0] = "A job must not wait for another job of its pool: await it in a task instead, or run it in place.";
	f->try[1] = "max_blocking_threads above what can wait at once only moves the limit.";
}

static void judge(struct d9_model *m, struct d9_findings *out, const struct d9_task_joins *joins, d9_u32 proc,
		  d9_u32 module)
{
	D9_VEC(struct stuck) of = {0};
	bool may_go_on = false, in;
	for (d9_u32 i = 0; i < m->t->threads.n && !may_go_on; i++) {
		struct stuck s;
		if (m->t->threads.v[i].proc != proc || !has_been_in_pool(&m->t->threads.v[i], module))
			continue;
		may_go_on = !judge_thread(m, joins, i, module, &in, &s);
		if (in && !may_go_on)
			d9_vec_push(&of, s);
	}
	if (of.n && !may_go_on)
		report(m, out, of.v, of.n);
	d9_vec_free(&of);
}

void d9_find_pool_deadlock(struct d9_model *m, struct d9_findings *out)
{
	const struct d9_task_joins *joins = &d9_model_tasks(m)->joins;
	for (size_t i = 0; joins->of.n && i < m->runtimes.n; i++)
		if (m->runtimes.v[i].module && !D9_RUNTIME_NUMBER(m->runtimes.v[i].id))
			judge(m, out, joins, m->runtimes.v[i].proc, m->runtimes.v[i].module);
}
