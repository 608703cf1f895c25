/*
 * How a runtime spreads its tasks over its workers.  worker-imbalance: one polls much more than another.  task-migration: a task
 * goes from one worker to another at most of its polls, and often, so that its memory follows it.  Neither is a fault by itself.
 */
#include "findings.h"
#include "tasks.h"

#define POLLS_MIN 1000u /* fewer say little */
#define TIMES_MIN 3u    /* as many polls as the worker with fewest */
#define PER_MS_MIN 1.0

/* ---- worker-imbalance --------------------------------------------------------------------------- */

struct worker {
	d9_u32 number, thread; /* thread: the first that polled as this worker */
	d9_u64 polls;
};
struct group { /* of a runtime */
	D9_VEC(struct worker) of;
};
#define WORKERS_MAX 4096u /* of a recording that means well */

static void count_poll(struct group *g, d9_u32 worker, d9_u32 thread)
{
	size_t i = 0;
	while (i < g->of.n && g->of.v[i].number != worker)
		i++;
	if (i == WORKERS_MAX)
		return;
	if (i == g->of.n)
		d9_vec_push(&g->of, (struct worker){.number = worker, .thread = thread});
	g->of.v[i].polls++;
}

static void judge_workers(struct d9_findings *out, const struct d9_model *m, d9_u32 proc, const struct group *g)
{
	const struct worker *most = g->of.n ? &g->of.v[0] : NULL, *fewest = most;
	d9_u64 total = 0;
	for (size_t i = 0; i < g->of.n; i++) {
		most = g->of.v[i].polls > most->polls ? &g->of.v[i] : most;
		fewest = g->of.v[i].polls < fewest->polls ? &g->of.v[i] : fewest;
		total += g->of.v[i].polls;
	}
	if (g->of.n < 2 || total < POLLS_MIN || most->polls <= TIMES_MIN * fewest->polls ||
	    d9_model_has_hole(m, proc, m->t->from, m->t->to))
		return;
	struct d9_finding *f = d9_finding_add(out, "worker-imbalance", most->thread);
	f->severity = D9_INFO;
	f->from = m->threads[most->thread].begin;
	f->to = m->threads[most->thread].end;
	f->count = most->polls;
	d9_finding_title(f, "worker %u polled %llu times of %llu, worker %u only %llu times", most->number,
			 (unsigned long long)most->polls, (unsigned long long)total, fewest->number,
			 (unsigned long long)fewest->polls);
	f->cause.kind = "poll";
	f->cause.proc = proc;
	d9_finding_real(f, "share", (double)most->polls / (double)total);
	d9_finding_n(f, "count", total);
	f->try[0] = "With little to do that is how a runtime saves wake-ups; else look for tasks that are bound to a "
		    "worker.";
}

void d9_find_worker_imbalance(struct d9_model *m, struct d9_findings *out)
{
	struct group *all = d9_must_alloc(m->runtimes.n + 1, sizeof(*all));
	for (d9_u32 i = 0; m->runtimes.n && i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		for (size_t k = 0; k < th->rt.n; k++) {
			const struct d9_rt_span *r = &th->rt.v[k];
			if (!r->park && r->worker != D9_NO_INDEX)
				count_poll(&all[d9_model_runtime(m, th->proc, r->module, r->runtime)], r->worker, i);
		}
	}
	for (size_t i = 0; i < m->runtimes.n; i++) {
		judge_workers(out, m, m->runtimes.v[i].proc, &all[i]);
		d9_vec_free(&all[i].of);
	}
	free(all);
}

/* ---- task-migration ----------------------------------------------------------------------------- */

static double per_ms(const struct d9_model *m, const struct d9_task *k)
{
	d9_u64 end = k->ended == D9_NOT_KNOWN ? m->t->to : k->ended, ns = end > k->spawned ? end - k->spawned : 1;
	return (double)k->migrations * 1e6 / (double)ns;
}

static void report_task(struct d9_findings *out, const struct d9_model *m, const struct d9_task *k, d9_u64 count)
{
	const struct d9_moment *last = &k->moments[k->n_moments - 1];
	struct d9_finding *f = d9_finding_add(out, "task-migration", last->thread);
	f->severity = D9_INFO;
	f->from = k->spawned;
	f->to = last->t1;
	f->count = count;
	d9_finding_title(f, "task %llu went from one of %u workers to another at %u of its %llu polls",
			 (unsigned long long)k->id, k->workers, k->migrations, (unsigned long long)k->polls);
	f->cause.kind = "task";
	f->cause.proc = k->proc;
	d9_finding_n(f, "migrations", k->migrations);
	d9_finding_real(f, "per_ms", per_ms(m, k));
	d9_finding_n(f, "workers", k->workers);
	f->try[0] = "`d9 task KEY` shows on which worker it was polled and who woke it.";
	f->try[1] = "Tasks that wake each other often are best in one, or in a LocalSet or a runtime of one thread.";
}

/* One for each process: of the task that moved most. */
void d9_find_task_migration(struct d9_model *m, struct d9_findings *out)
{
	const struct d9_tasks *all = d9_model_tasks(m);
	for (size_t i = 0, n; i < all->of.n; i += n) {
		const struct d9_task *worst = NULL;
		d9_u64 count = 0;
		for (n = 0; i + n < all->of.n && all->of.v[i + n].proc == all->of.v[i].proc; n++) {
			const struct d9_task *k = &all->of.v[i + n];
			if (k->polls < POLLS_MIN || (d9_u64)k->migrations * 2 < k->polls || per_ms(m, k) < PER_MS_MIN)
				continue;
			worst = !worst || k->migrations > worst->migrations ? k : worst;
			count++;
		}
		if (worst)
			report_task(out, m, worst, count);
	}
}
