/*
 * wake-delay: tasks that could run waited for a worker, for all workers of their runtime were busy with other tasks: on a CPU, or sitting
 * in calls in those tasks' polls.  Which of the two it was, is told; it is not the same remedy.
 *
 * Not where one poll took most of that time: then it is the cause, and found by what held it up.  Nor where a worker was parked
 * meanwhile, or where what the workers did not get was a CPU.
 */
#include "findings.h"
#include "runtime_waits.h"

#define JUDGED 256u /* of the longest waits of a runtime */

/*
 * Did the worker poll one task of the runtime after the other from t0 to t1?  *polls: adds how many.  What it did between them, for
 * no task, may have been anything.
 */
static bool is_busy(const struct d9_model *m, d9_u32 thread, const struct d9_runtime *of, d9_u64 t0, d9_u64 t1,
		    d9_u64 *polls)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u64 polled = 0, longest = 0, delay, window, until = t0;
	for (size_t i = D9_FIRST_AFTER(th->rt.v, th->rt.n, t1, t0); i < th->rt.n && until < t1; i++) {
		const struct d9_rt_span *r = &th->rt.v[i];
		bool inner = i + 1 < th->rt.n && th->rt.v[i + 1].t0 <= r->t0;
		if (r->park || inner || r->module != of->module || r->runtime != of->id)
			continue;
		d9_u64 o = d9_overlap(r->t0, r->t1, t0, t1);
		polled += o;
		longest = o > longest ? o : longest;
		*polls += o > 0;
		until = r->t1;
	}
	return polled * 10 >= (t1 - t0) * 7 && longest * 2 < t1 - t0 &&
	       d9_model_run_delay(m, thread, t0, t1, &delay, &window) && delay * 2 < t1 - t0;
}

static bool is_for_want_of_workers(const struct d9_model *m, const struct d9_runtime *of,
				   const struct d9_runtime_waits *g, const struct d9_late *w, d9_u64 *ret_polls)
{
	*ret_polls = 0;
	for (size_t i = 0; i < g->workers.n; i++)
		if (!is_busy(m, g->workers.v[i], of, w->t0, w->t1, ret_polls))
			return false;
	return g->workers.n && !d9_model_has_hole(m, of->proc, w->t0, w->t1);
}

static int longest_first(const void *a, const void *b)
{
	const struct d9_late *x = a, *y = b;
	d9_u64 p = x->t1 - x->t0, q = y->t1 - y->t0;
	return p != q ? (p > q ? -1 : 1) : x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

/* ---- what the workers did meanwhile -------------------------------------------------------------- */

/* A call in a task's poll, or a pending one; then all with its hook and object. */
struct call {
	d9_u32 hook;
	d9_u64 object, total, longest;
	struct d9_ref ref; /* of the longest */
};
struct spent {
	d9_u64 whole, blocked, on_cpu, runnable; /* of all workers together; D9_NOT_KNOWN where it was not measured */
	D9_VEC(struct call) calls;
};

static int by_call(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	return d9_by(x->hook, y->hook) ?: d9_by(x->object, y->object);
}

static void add_call(const struct d9_model *m, struct spent *s, struct d9_ref ref, const struct d9_span *c,
		     const struct d9_late *w)
{
	d9_u64 o = d9_overlap(c->t0, c->t1, w->t0, w->t1);
	if (o && d9_model_task_poll(m, ref.thread, c->t0, c->t1))
		d9_vec_push(&s->calls, (struct call){c->hook, c->object, o, o, ref});
}

static void add_known(d9_u64 *sum, d9_u64 of)
{
	*sum = *sum == D9_NOT_KNOWN || of == D9_NOT_KNOWN ? D9_NOT_KNOWN : *sum + of;
}

static void add_worker(const struct d9_model *m, struct spent *s, d9_u32 thread, const struct d9_late *w)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	bool sits = th->pending.unfinished && !d9_model_pending_parks(m, thread);
	struct d9_poll p = {.t0 = w->t0, .t1 = w->t1, .ended = !sits};
	p.first = d9_model_first_span(m, thread, w->t0);
	while (p.first + p.n < th->spans.n && th->spans.v[p.first + p.n].t0 < w->t1)
		p.n++;
	struct d9_split of = d9_model_split(m, thread, &p);
	s->whole += w->t1 - w->t0;
	s->blocked += of.blocked;
	add_known(&s->on_cpu, of.on_cpu);
	add_known(&s->runnable, of.runnable);
	D9_EACH_CALL (i, th, &p, D9_SPAN_NO_CALL)
		add_call(m, s, (struct d9_ref){thread, D9_REF_SPAN, i}, &th->spans.v[i], w);
	struct d9_span now = d9_model_pending(m, thread);
	if (sits)
		add_call(m, s, (struct d9_ref){thread, D9_REF_PENDING, 0}, &now, w);
}

/* The hook, and its object if it has one, in whose calls the workers sat longest; NULL: in none. */
static const struct call *most_in(struct spent *s)
{
	const struct call *best = NULL;
	struct call *c = NULL;
	if (s->calls.n)
		qsort(s->calls.v, s->calls.n, sizeof(*s->calls.v), by_call);
	for (size_t i = 0; i < s->calls.n; i++) {
		struct call *x = &s->calls.v[i];
		if (!c || by_call(c, x)) {
			c = x;
		} else {
			c->total += x->total;
			if (x->longest > c->longest)
				c->longest = x->longest, c->ref = x->ref;
		}
		best = !best || c->total > best->total ? c : best;
	}
	return best;
}

/* ---- report -------------------------------------------------------------------------------------- */

static const char *name_of_call(const struct d9_model *m, d9_u32 proc, const struct call *c, char *buf, size_t n)
{
	const struct d9_lock *l = c->object ? d9_model_lock(m, proc, c->object) : NULL;
	const char *hook = m->t->hooks.v[c->hook].name, *lock = l ? d9_show_lock_name(m, l) : NULL;
	if (lock)
		snprintf(buf, n, "%s on `%.40s`", hook, lock);
	else if (l)
		snprintf(buf, n, "%s on 0x%llx", hook, (unsigned long long)c->object);
	else
		snprintf(buf, n, "%s", hook);
	return buf;
}

/* Adds a part of the workers' time that is worth a word. */
static void add_part(struct d9_finding *f, const struct spent *s, d9_u64 ns, const char *what)
{
	char dur[32], whole[32];
	bool first = !strchr(f->title, ':');
	size_t n = strlen(f->title);
	if (ns == D9_NOT_KNOWN || ns * 20 < s->whole)
		return;
	if (first)
		n += (size_t)snprintf(f->title + n, sizeof(f->title) - n, ": of %s ",
				      d9_format_duration(s->whole, whole));
	snprintf(f->title + n, sizeof(f->title) - n, "%s%s %s", first ? "" : ", ", d9_format_duration(ns, dur), what);
}

static void title_of(const struct d9_model *m, struct d9_finding *f, const struct d9_late *w, size_t workers,
		     d9_u64 polls, const struct spent *s, const struct call *most)
{
	char dur[32], call[128], blocked[160] = "blocked";
	d9_finding_title(f, "a task that could run waited %s for one of %zu workers, which polled %llu times meanwhile",
			 d9_format_duration(w->t1 - w->t0, dur), workers, (unsigned long long)polls);
	if (most)
		snprintf(blocked, sizeof(blocked), "blocked, most in %s",
			 name_of_call(m, m->t->threads.v[w->thread].proc, most, call, sizeof(call)));
	add_part(f, s, s->on_cpu, "on a CPU");
	add_part(f, s, s->runnable, "without one");
	add_part(f, s, s->blocked, blocked);
}

static const char *advice(const struct d9_model *m, const struct call *c)
{
	switch (d9_kind_class(m->t->hooks.v[c->hook].kind)) {
	case D9_CLASS_LOCK:
	case D9_CLASS_SIGNAL:
		return "The workers waited in their tasks' polls: `d9 locks` tells for what, and who held it.";
	default:
		return "The workers sat in calls in their tasks' polls: await what they wait for, or hand it to a pool "
		       "for blocking work.";
	}
}

static void report(const struct d9_model *m, struct d9_findings *out, const struct d9_runtime *of,
		   const struct d9_runtime_waits *g, const struct d9_late *w, d9_u64 polls, d9_u64 count, d9_u64 total)
{
	struct d9_finding *f = d9_finding_add(out, "wake-delay", w->thread);
	struct spent s = {0};
	for (size_t i = 0; i < g->workers.n; i++)
		add_worker(m, &s, g->workers.v[i], w);
	const struct call *most = most_in(&s);
	f->severity = d9_severity_of(w->t1 - w->t0);
	f->from = w->t0;
	f->to = w->t1;
	f->count = count;
	f->harm = total;
	title_of(m, f, w, g->workers.n, polls, &s, most);
	bool blocked = most && s.blocked * 2 >= s.whole;
	if (blocked)
		d9_finding_cause(f, m, most->ref);
	f->cause.kind = "queue";
	f->cause.proc = of->proc;
	d9_finding_n(f, "wake_ns", w->t1 - w->t0);
	d9_finding_n(f, "count", count);
	d9_finding_n(f, "workers", g->workers.n);
	d9_finding_n(f, "on_cpu_ns", s.on_cpu);
	d9_finding_n(f, "blocked_ns", s.blocked);
	d9_finding_n(f, "runnable_ns", s.runnable);
	f->try[0] = blocked ? advice(m, most) : "`d9 tasks --most-polls` lists what the workers were busy with.";
	f->try[1] =
		blocked ? NULL : "Give the runtime more workers if there are CPUs for them, or take in less at a time.";
	d9_vec_free(&s.calls);
}

static void judge(const struct d9_model *m, struct d9_findings *out, const struct d9_runtime *of,
		  struct d9_runtime_waits *g)
{
	const struct d9_late *worst = NULL;
	d9_u64 count = 0, total = 0, polls, polls_then = 0;
	if (g->late.n)
		qsort(g->late.v, g->late.n, sizeof(*g->late.v), longest_first);
	for (size_t i = 0; i < g->late.n && i < JUDGED; i++) {
		const struct d9_late *w = &g->late.v[i];
		if (!is_for_want_of_workers(m, of, g, w, &polls))
			continue;
		count++;
		total += w->t1 - w->t0;
		if (!worst) {
			worst = w;
			polls_then = polls;
		}
	}
	if (worst)
		report(m, out, of, g, worst, polls_then, count, total);
}

void d9_find_wake_delay(struct d9_model *m, struct d9_findings *out)
{
	struct d9_runtime_waits *all = d9_runtime_waits(m, D9_WARN_NS);
	for (size_t i = 0; i < m->runtimes.n; i++)
		judge(m, out, &m->runtimes.v[i], &all[i]);
	d9_runtime_waits_free(m, all);
}
