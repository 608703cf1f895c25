/*
 * task-leak: tasks that a program told of become more and more, and most of those that are left wait idle.
 *
 * Counted only where ends are told, for a runtime that tells of none has no task that is over; and where nothing was lost, for an
 * end may be among that.  Load that grows has more tasks too, but these are polled.
 */
#include "findings.h"
#include "tasks.h"

#define STEPS 10u /* of the time looked at: more at the end of each than before */
#define TIME_MIN_NS 1000000000ull
#define GROWN_MIN 20u /* fewer may be chance */
#define IDLE_STEPS 2u /* idle for that long at the end */

struct leak {
	d9_u64 begin, end, at[STEPS]; /* at: alive at the end of each step */
	d9_u64 ends, idle;
	const struct d9_task *worst; /* the one that is idle longest */
};

static d9_u64 step_end(const struct leak *l, unsigned i) { return l->begin + (l->end - l->begin) / STEPS * (i + 1); }

static void count(struct leak *l, const struct d9_task *k)
{
	for (unsigned i = 0; i < STEPS; i++) {
		d9_u64 t = i == STEPS - 1 ? l->end : step_end(l, i);
		l->at[i] += k->spawned <= t && (k->ended == D9_NOT_KNOWN || k->ended > t);
	}
	l->ends += k->ended != D9_NOT_KNOWN;
	if (k->idle_since == D9_NOT_KNOWN || k->idle_since > step_end(l, STEPS - 1 - IDLE_STEPS))
		return;
	l->idle++;
	if (!l->worst || k->idle_since < l->worst->idle_since)
		l->worst = k;
}

static bool grows(const struct leak *l)
{
	d9_u64 first = l->at[0], last = l->at[STEPS - 1];
	for (unsigned i = 1; i < STEPS; i++)
		if (l->at[i] <= l->at[i - 1])
			return false;
	return l->ends && last > 2 * first && last - first >= GROWN_MIN && l->idle * 2 > last;
}

static void report(struct d9_findings *out, const struct leak *l)
{
	char dur[32], name[64] = "";
	const struct d9_task *k = l->worst;
	const struct d9_moment *last = &k->moments[k->n_moments - 1];
	struct d9_finding *f = d9_finding_add(out, "task-leak", last->thread);
	f->from = l->begin;
	f->to = l->end;
	f->count = l->idle;
	if (k->name.n)
		snprintf(name, sizeof(name), ", as `%.*s`", (int)(k->name.n < 48 ? k->name.n : 48),
			 (const char *)k->name.p);
	d9_finding_title(f, "tasks only grow: from %llu to %llu in %s, and %llu of them wait idle%s",
			 (unsigned long long)l->at[0], (unsigned long long)l->at[STEPS - 1],
			 d9_format_duration(l->end - l->begin, dur), (unsigned long long)l->idle, name);
	f->cause.kind = "task";
	f->cause.proc = k->proc;
	d9_finding_n(f, "tasks_first", l->at[0]);
	d9_finding_n(f, "tasks_last", l->at[STEPS - 1]);
	d9_finding_n(f, "tasks_idle", l->idle);
	f->try[0] = "`d9 tasks --idle` lists them; `d9 task KEY` says who spawned one and who polled it last.";
	f->try[1] = "Give what they wait for a limit of time, or end them with what they serve.";
}

/* The tasks first..first+n-1 are of one process. */
static void look(struct d9_model *m, struct d9_findings *out, const struct d9_task *v, size_t n)
{
	const struct d9_trace_proc *p = v->proc == D9_NO_INDEX ? NULL : &m->t->procs.v[v->proc];
	struct leak l = {.begin = D9_NOT_KNOWN, .end = p && p->end_how && p->end_t < m->t->to ? p->end_t : m->t->to};
	for (size_t i = 0; i < n; i++)
		l.begin = v[i].spawned < l.begin ? v[i].spawned : l.begin;
	if (l.begin + TIME_MIN_NS > l.end || d9_model_has_hole(m, v->proc, l.begin, l.end))
		return;
	for (size_t i = 0; i < n; i++)
		count(&l, &v[i]);
	if (grows(&l))
		report(out, &l);
}

void d9_find_task_leak(struct d9_model *m, struct d9_findings *out)
{
	const struct d9_tasks *all = d9_model_tasks(m);
	for (size_t i = 0, n; i < all->of.n; i += n) {
		for (n = 1; i + n < all->of.n && all->of.v[i + n].proc == all->of.v[i].proc;)
			n++;
		look(m, out, &all->of.v[i], n);
	}
}
