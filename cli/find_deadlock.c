/*
 * deadlock-cycle and self-deadlock, from calls that had not returned when the recording ended.
 *
 * A thread's next is whoever holds what it waits for: by the lock's owner word, or because that thread said
 * that it holds it.  Two links are concluded rather than seen, and make the finding `inferred`: a thread
 * that waits on a condition while it owns a lock that others wait for, is taken to wait for one of them;
 * a thread in a lock's slow path of which no other thread ever touched the object, waits for itself.
 */
#include "findings.h"

#define SEEN_MIN_NS 100000000ull
#define INFERRED_MIN_NS 400000000ull

struct edge {
	d9_u32 next; /* D9_NO_INDEX = none */
	bool inferred;
	bool in_cycle;
};

static d9_u64 pending_ns(const struct d9_model *m, d9_u32 i)
{
	const struct d9_pending *p = &m->t->threads.v[i].pending;
	return p->t - p->since;
}

static d9_u32 pending_kind(const struct d9_model *m, d9_u32 i)
{
	return m->t->sites.v[m->t->threads.v[i].pending.site].kind;
}

/* It comes back by itself. */
static bool has_deadline(const struct d9_model *m, d9_u32 i)
{
	const char *hook = m->t->hooks.v[m->t->sites.v[m->t->threads.v[i].pending.site].hook].name;
	return strstr(hook, "timed") || strstr(hook, "clock");
}

static bool is_stuck(const struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	if (!th->pending.unfinished || !th->pending.object || pending_ns(m, i) < SEEN_MIN_NS)
		return false;
	enum d9_class c = d9_kind_class(pending_kind(m, i));
	return (c == D9_CLASS_LOCK || c == D9_CLASS_SIGNAL) && !has_deadline(m, i);
}

static bool says_it_holds(const struct d9_trace_thread *th, d9_u64 object)
{
	for (size_t i = 0; i < th->held.n; i++)
		if (th->held.v[i].object == object && th->held.v[i].t + 1000000000 >= th->last)
			return true;
	return false;
}

/* Posted by threads that never wait for it: a semaphore that hands out work, which whoever took it does not give back. */
static bool is_signal(const struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	const struct d9_lock *l = d9_model_lock(m, th->proc, th->pending.object);
	return pending_kind(m, i) == D9_FAMILY_sem && l && l->wakes_by_others > l->wakes_by_waiters;
}

static d9_u32 holder_of_pending(const struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	if (pending_kind(m, i) == D9_FAMILY_cond || is_signal(m, i))
		return D9_NO_INDEX;
	if (th->pending.owner)
		return d9_model_thread_of_tid(m, th->proc, th->pending.owner, th->pending.since);
	for (d9_u32 k = 0; k < m->t->threads.n; k++)
		if (m->t->threads.v[k].proc == th->proc && says_it_holds(&m->t->threads.v[k], th->pending.object))
			return k;
	return D9_NO_INDEX;
}

/* Somebody who is kept waiting by this thread, which itself waits on a condition. */
static d9_u32 kept_waiting_by(const struct d9_model *m, const struct edge *edges, d9_u32 i)
{
	if (pending_kind(m, i) != D9_FAMILY_cond || pending_ns(m, i) < INFERRED_MIN_NS)
		return D9_NO_INDEX;
	for (d9_u32 k = 0; k < m->t->threads.n; k++)
		if (k != i && edges[k].next == i && !edges[k].inferred && pending_ns(m, k) >= INFERRED_MIN_NS)
			return k;
	return D9_NO_INDEX;
}

static struct edge *make_edges(const struct d9_model *m)
{
	struct edge *edges = d9_must_alloc(m->t->threads.n + 1, sizeof(*edges));
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		edges[i].next = is_stuck(m, i) ? holder_of_pending(m, i) : D9_NO_INDEX;
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (edges[i].next == D9_NO_INDEX && is_stuck(m, i)) {
			edges[i].next = kept_waiting_by(m, edges, i);
			edges[i].inferred = edges[i].next != D9_NO_INDEX;
		}
	return edges;
}

/* ---- report --------------------------------------------------------------------------------------- */

static bool leads_to(const struct edge *edges, d9_u32 from, d9_u32 to, size_t n)
{
	for (size_t hops = 0; from != D9_NO_INDEX && hops <= n; hops++, from = edges[from].next)
		if (from == to)
			return true;
	return false;
}

static void add_stuck(struct d9_finding *f, struct d9_model *m, d9_u32 i)
{
	m->t->threads.v[i].pending.claimed = true;
	d9_finding_victim(f, i, pending_ns(m, i));
	d9_finding_span(f, (struct d9_ref){i, D9_REF_PENDING, 0});
	f->harm += pending_ns(m, i);
	if (m->t->threads.v[i].pending.since < f->from)
		f->from = m->t->threads.v[i].pending.since;
	if (m->t->threads.v[i].pending.t > f->to)
		f->to = m->t->threads.v[i].pending.t;
}

static void title_of_cycle(const struct d9_model *m, struct d9_finding *f, const struct edge *edges, d9_u32 start,
			   unsigned n)
{
	char text[160];
	size_t used = 0;
	d9_u32 i = start;
	for (unsigned k = 0; k <= n && used < sizeof(text) - 40; k++, i = edges[i].next) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s (%d)", k ? " -> " : "",
					 *th->name ? th->name : "thread", th->tid);
	}
	d9_finding_title(f, "%u threads wait for each other: %s", n, text);
}

static void report_cycle(struct d9_model *m, struct d9_findings *out, struct edge *edges, d9_u32 start)
{
	unsigned n = 0;
	bool inferred = false;
	d9_u64 longest = 0;
	d9_u32 i = start;
	do {
		edges[i].in_cycle = true;
		inferred |= edges[i].inferred;
		longest = pending_ns(m, i) > longest ? pending_ns(m, i) : longest;
		i = edges[i].next;
		n++;
	} while (i != start);
	struct d9_finding *f = d9_finding_add(out, n == 1 ? "self-deadlock" : "deadlock-cycle", start);
	f->from = D9_NOT_KNOWN;
	do {
		add_stuck(f, m, i);
		i = edges[i].next;
	} while (i != start);
	for (i = 0; i < m->t->threads.n; i++)
		if (edges[i].next != D9_NO_INDEX && !edges[i].in_cycle && leads_to(edges, i, start, m->t->threads.n))
			add_stuck(f, m, i);
	f->severity = D9_CRITICAL;
	f->inferred = inferred;
	d9_finding_cause(f, m, (struct d9_ref){start, D9_REF_PENDING, 0});
	d9_finding_n(f, "pending_ns", longest);
	if (n == 1) {
		char who[96], dur[32];
		d9_finding_title(f, "%s has waited %s for a lock that it holds itself",
				 d9_show_thread(m, start, who, sizeof(who)), d9_format_duration(longest, dur));
		f->try[0] = "Release the lock before calling what takes it again, or make it recursive.";
		return;
	}
	title_of_cycle(m, f, edges, start, n);
	d9_finding_n(f, "cycle", n);
	d9_finding_n(f, "waiters", f->victims.n);
	f->try[0] = "Take the locks in one order everywhere.";
	f->try[1] = inferred ? "Never wait on a condition while holding a lock that its signallers need." : NULL;
}

/* ---- the lonely waiter ------------------------------------------------------------------------------ */

/* It is a lock, by its kind or its name, and this is all that was ever seen of it. */
static bool nobody_else_touched(const struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	const struct d9_lock *l = d9_model_lock(m, th->proc, th->pending.object);
	if (!l || !l->like_lock || l->gil || l->waits || l->pending.n > 1 || l->holders.n)
		return false;
	for (size_t k = 0; k < l->waiters.n; k++)
		if (l->waiters.v[k].thread != i)
			return false;
	return true;
}

/* The task's poll that the thread is stuck in, or NULL. */
static const struct d9_rt_span *stuck_in(const struct d9_model *m, d9_u32 i)
{
	const struct d9_pending *p = &m->t->threads.v[i].pending;
	return d9_model_task_poll(m, i, p->since, p->t);
}

static bool runs_in(struct d9_model *m, d9_u32 i, const char *function)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	bool found = false;
	d9_show_resolve(m->t, th->proc, &m->t->sites.v[th->pending.site].stack, 0, s);
	for (d9_u32 k = 0; k < s->n; k++)
		found |= s->frames[k].symbol && strstr(s->frames[k].symbol, function);
	free(s);
	return found;
}

/* Its callers' names say so if they are its own, or it polls tasks of a runtime that has no workers and whose tasks nobody else ever polled. */
static bool is_whole_runtime(struct d9_model *m, d9_u32 i)
{
	const struct d9_rt_span *in = stuck_in(m, i);
	if (d9_model_pending_is_first(m, i) && runs_in(m, i, "scheduler::current_thread::"))
		return true;
	if (!in || !in->module || d9_is_pool(in))
		return false;
	for (d9_u32 k = 0; k < m->t->threads.n; k++) {
		const struct d9_trace_thread *th = &m->t->threads.v[k];
		for (size_t n = 0; n < th->rt.n && th->proc == m->t->threads.v[i].proc; n++)
			if (th->rt.v[n].module == in->module && th->rt.v[n].runtime == in->runtime &&
			    (k != i || th->rt.v[n].worker != D9_NO_INDEX))
				return false;
	}
	return true;
}

static const char *name_of_lock(const struct d9_model *m, d9_u32 i, char *buf, size_t n)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	const char *name = d9_show_lock_name(m, d9_model_lock(m, th->proc, th->pending.object));
	if (name)
		snprintf(buf, n, "`%s`", name);
	else
		snprintf(buf, n, "%s 0x%llx", d9_kind_name(pending_kind(m, i)), (unsigned long long)th->pending.object);
	return buf;
}

static void report_lonely(struct d9_model *m, struct d9_findings *out, d9_u32 i)
{
	struct d9_finding *f = d9_finding_add(out, "self-deadlock", i);
	char who[96], dur[32], lock[80];
	f->from = D9_NOT_KNOWN;
	add_stuck(f, m, i);
	f->severity = D9_CRITICAL;
	f->inferred = true;
	d9_finding_title(f, "%s has waited %s for %s; no holder seen%s", d9_show_thread(m, i, who, sizeof(who)),
			 d9_format_duration(pending_ns(m, i), dur), name_of_lock(m, i, lock, sizeof(lock)),
			 is_whole_runtime(m, i) ? "; only thread of its runtime" : "");
	d9_finding_task(f, m, i, stuck_in(m, i));
	d9_finding_cause(f, m, (struct d9_ref){i, D9_REF_PENDING, 0});
	d9_finding_n(f, "pending_ns", pending_ns(m, i));
	f->try[0] = "A guard kept across an await: drop it before, or use a lock of the runtime.";
}

void d9_find_deadlock(struct d9_model *m, struct d9_findings *out)
{
	struct edge *edges = make_edges(m);
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (edges[i].next != D9_NO_INDEX && !edges[i].in_cycle &&
		    leads_to(edges, edges[i].next, i, m->t->threads.n))
			report_cycle(m, out, edges, i);
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (edges[i].next == D9_NO_INDEX && is_stuck(m, i) && pending_ns(m, i) >= INFERRED_MIN_NS &&
		    nobody_else_touched(m, i))
			report_lonely(m, out, i);
	free(edges);
}
