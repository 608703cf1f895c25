/* Spans: finished calls, parks, polls and calls that have not ended, in one form. */
#include "kernel_who.h"
#include "show.h"
#include "syscall_name.h"

#include <unistd.h>

struct d9_ref_info d9_ref_info(const struct d9_model *m, struct d9_ref ref)
{
	const struct d9_trace *t = m->t;
	const struct d9_trace_thread *th = &t->threads.v[ref.thread];
	const struct d9_model_thread *mt = &m->threads[ref.thread];
	struct d9_ref_info r = {.fd = -1, .hook = D9_NO_INDEX, .site = D9_NO_INDEX, .ended = true};
	if (ref.what == D9_REF_POLL) {
		const struct d9_poll *p = &mt->polls.v[ref.index];
		r.t0 = p->t0, r.t1 = p->t1, r.kind = D9_KIND_POLL_SPAN, r.ended = p->ended;
		return r;
	}
	if (ref.what == D9_REF_QUEUE) {
		const struct d9_queued *q = &mt->queued.v[ref.index];
		r.t0 = q->t0, r.t1 = q->t1, r.task = th->rt.v[q->rt].task, r.kind = D9_KIND_QUEUE;
		return r;
	}
	if (ref.what == D9_REF_RUNQ) {
		const struct d9_runq *q = &th->kernel.runq.v[ref.index];
		r.t0 = q->t0, r.t1 = q->t1, r.kind = D9_KIND_RUNQ;
		r.who = q->prev > 0 ? t->names.v[q->name] : NULL;
		return r;
	}
	if (ref.what == D9_REF_OFFCPU) {
		const struct d9_offcpu *o = d9_offcpu_at(m, ref);
		r.t0 = o->t0, r.t1 = o->t1, r.kind = D9_KIND_OFFCPU, r.nr = o->nr;
		r.fd = d9_syscall_has_fd(o->nr) ? (d9_i32)o->arg0 : -1;
		r.stack = &t->tails.v[o->stack];
		r.own_stack = r.stack->n;
		return r;
	}
	if (ref.what == D9_REF_PENDING) {
		const struct d9_pending *p = &th->pending;
		r.t0 = p->since, r.t1 = p->t, r.object = p->object, r.fd = p->fd, r.site = p->site, r.ended = false;
		r.stack = &t->sites.v[p->site].stack;
		r.own_stack = r.stack->n && d9_model_pending_is_first(m, ref.thread);
	} else if (ref.what == D9_REF_PARK && mt->parks.v[ref.index].site == D9_NO_INDEX) {
		const struct d9_park *p = &mt->parks.v[ref.index];
		r.t0 = p->t0, r.t1 = p->t1, r.kind = D9_KIND_PARK;
		return r;
	} else {
		bool park = ref.what == D9_REF_PARK;
		const struct d9_span *s = &th->spans.v[park ? mt->parks.v[ref.index].span : ref.index];
		r.t0 = park ? mt->parks.v[ref.index].t0 : ref.what == D9_REF_WAKE ? s->waker_t : s->t0;
		r.t1 = s->t1, r.object = s->object, r.fd = s->fd, r.site = s->site, r.result = s->result,
		r.has_result = true;
		r.stack = d9_show_span_stack(t, s);
		r.own_stack = s->stack;
	}
	r.hook = t->sites.v[r.site].hook;
	r.kind = ref.what == D9_REF_PARK   ? D9_KIND_PARK
		 : ref.what == D9_REF_WAKE ? D9_KIND_WAKE
					   : t->sites.v[r.site].kind;
	return r;
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

void d9_show_object_json(struct d9_json *j, d9_u64 object, d9_i32 fd)
{
	if (object)
		d9_json_addr(j, "object", object);
	else
		d9_json_null(j, "object");
	if (fd >= 0 && !object)
		d9_json_i64(j, "fd", fd);
	else
		d9_json_null(j, "fd");
}

static void inside_json(struct d9_json *j, const struct d9_model *m, d9_u32 thread, const struct d9_poll *p)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_json_array(j, "inside");
	const struct d9_poll none = {0};
	D9_EACH_CALL (i, th, p ? p : &none, D9_SPAN_NO_CALL) {
		const struct d9_span *s = &th->spans.v[i];
		d9_json_object(j, NULL);
		d9_json_str(j, "hook", m->t->hooks.v[s->hook].name);
		d9_json_u64(j, "t_ns", s->t0);
		d9_json_u64(j, "dur_ns", d9_span_dur(s));
		d9_show_object_json(j, s->object, s->fd);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

/* Of a wait all that was no waiting for a CPU. */
static struct d9_split split_wait(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 t1)
{
	struct d9_split s = {
		.blocked = t1 - t0, .on_cpu = D9_NOT_KNOWN, .runnable = D9_NOT_KNOWN, .unexplained = D9_NOT_KNOWN};
	if (!d9_model_watched(m, thread, t0, t1))
		return s;
	s.runnable = d9_model_runq_in(m, thread, t0, t1);
	s.blocked -= s.runnable;
	return s;
}

static struct d9_split split(const struct d9_model *m, struct d9_ref ref, const struct d9_ref_info *r)
{
	d9_u64 dur = r->t1 - r->t0;
	if (ref.what == D9_REF_POLL)
		return d9_model_split(m, ref.thread, &m->threads[ref.thread].polls.v[ref.index]);
	if (ref.what == D9_REF_QUEUE) /* a task stood there, no thread */
		return (struct d9_split){.on_cpu = D9_NOT_KNOWN, .runnable = D9_NOT_KNOWN, .unexplained = D9_NOT_KNOWN};
	if (ref.what == D9_REF_RUNQ)
		return (struct d9_split){.runnable = dur};
	if (ref.what == D9_REF_OFFCPU) {
		const struct d9_offcpu *o = d9_offcpu_at(m, ref);
		return (struct d9_split){.blocked = d9_offcpu_blocked(o),
					 .runnable = o->flags & D9_KERNEL_BY_PERF ? D9_NOT_KNOWN : o->t1 - o->woken};
	}
	return split_wait(m, ref.thread, r->t0, r->t1);
}

/* Who was seen to have the CPU in what of it the thread could run. */
static void who_had_cpu(struct d9_who *ret, const struct d9_model *m, struct d9_ref ref, const struct d9_ref_info *r,
			const struct d9_split *s)
{
	const struct d9_kernel_side *k = &m->t->threads.v[ref.thread].kernel;
	size_t i = D9_FIRST_AFTER(k->runq.v, k->runq.n, t1, r->t0);
	*ret = (struct d9_who){.m = m};
	if (!s->runnable || s->runnable == D9_NOT_KNOWN)
		return;
	d9_who_begin(ret, m, false);
	for (; i < k->runq.n && k->runq.v[i].t0 < r->t1; i++) {
		struct d9_runq within = k->runq.v[i];
		within.had = d9_overlap(within.t1 - within.had, within.t1, r->t0, r->t1);
		d9_who_add(ret, &within);
	}
	d9_who_finish(ret);
}

static void split_json(struct d9_json *j, const struct d9_model *m, struct d9_ref ref, const struct d9_ref_info *r)
{
	struct d9_split s = split(m, ref, r);
	d9_json_known(j, "on_cpu_ns", s.on_cpu);
	d9_json_known(j, "runnable_ns", s.runnable);
	d9_json_u64(j, "blocked_ns", s.blocked);
	d9_json_known(j, "unexplained_ns", s.unexplained);
	d9_json_array(j, "had_cpu");
	struct d9_who who;
	who_had_cpu(&who, m, ref, r, &s);
	for (size_t i = 0; i < who.had.n; i++) {
		d9_json_object(j, NULL);
		d9_json_str(j, "name", m->t->names.v[who.had.v[i].name]);
		d9_json_u64(j, "total_ns", who.had.v[i].total);
		d9_json_end_object(j);
	}
	d9_who_fini(&who);
	d9_json_end_array(j);
}

d9_u64 d9_show_task(const struct d9_model *m, struct d9_ref ref)
{
	struct d9_ref_info r = d9_ref_info(m, ref);
	d9_u64 task = r.task ? r.task : d9_model_task(m, ref.thread, r.t0, r.t1);
	return task ? task : D9_NOT_KNOWN;
}

void d9_show_span_json(struct d9_json *j, const char *key, const struct d9_model *m, struct d9_ref ref)
{
	struct d9_ref_info r = d9_ref_info(m, ref);
	d9_json_object(j, key);
	d9_json_i64(j, "pid", d9_show_pid(m, ref.thread));
	d9_json_i64(j, "tid", d9_show_tid(m, ref.thread));
	d9_json_str(j, "kind", d9_kind_name(r.kind));
	char call[32];
	d9_json_str(j, "hook",
		    r.kind == D9_KIND_OFFCPU && r.nr >= 0 ? d9_syscall_name(r.nr, call)
		    : r.hook == D9_NO_INDEX               ? NULL
							  : m->t->hooks.v[r.hook].name);
	d9_json_u64(j, "t_ns", r.t0);
	d9_json_u64(j, "dur_ns", r.t1 - r.t0);
	d9_json_bool(j, "ended", r.ended);
	d9_show_object_json(j, r.object, r.fd);
	if (r.has_result)
		d9_json_i64(j, "result", r.result);
	else
		d9_json_null(j, "result");
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	d9_show_resolve(m->t, m->t->threads.v[ref.thread].proc, r.stack,
			r.site == D9_NO_INDEX ? 0 : m->t->sites.v[r.site].ra, s);
	d9_show_frames_json(j, "stack", s);
	free(s);
	d9_show_whose_json(j, r.stack, r.site == D9_NO_INDEX ? 0 : m->t->sites.v[r.site].ra, r.own_stack);
	d9_json_known(j, "task", d9_show_task(m, ref));
	split_json(j, m, ref, &r);
	inside_json(j, m, ref.thread, ref.what == D9_REF_POLL ? &m->threads[ref.thread].polls.v[ref.index] : NULL);
	d9_json_end_object(j);
}

/* ---- text ------------------------------------------------------------------------------------------ */

bool d9_show_colour(FILE *f)
{
	const char *no = getenv("NO_COLOR");
	return isatty(fileno(f)) && !(no && *no);
}

d9_i32 d9_show_pid(const struct d9_model *m, d9_u32 thread)
{
	d9_u32 proc = m->t->threads.v[thread].proc;
	return proc == D9_NO_INDEX ? 0 : m->t->procs.v[proc].pid;
}

d9_i32 d9_show_tid(const struct d9_model *m, d9_u32 thread) { return m->t->threads.v[thread].tid; }

const char *d9_show_thread(const struct d9_model *m, d9_u32 thread, char *buf, size_t n)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_model_thread *mt = &m->threads[thread];
	if (mt->role == D9_ROLE_WORKER && th->role == 1)
		snprintf(buf, n, "event loop of %s (%d)", *th->name ? th->name : "main", th->tid);
	else if (mt->role == D9_ROLE_WORKER)
		snprintf(buf, n, "worker %u, %s (%d)", mt->worker, th->name, th->tid);
	else
		snprintf(buf, n, "%s (%d)", *th->name ? th->name : "thread", th->tid);
	return buf;
}

void d9_show_who_json(struct d9_json *j, const struct d9_model *m, d9_u32 thread)
{
	d9_json_i64(j, "pid", d9_show_pid(m, thread));
	d9_json_i64(j, "tid", d9_show_tid(m, thread));
	d9_json_str(j, "name", m->t->threads.v[thread].name);
}

void d9_show_when_text(const struct d9_model *m, d9_u32 thread, d9_u64 t0, d9_u64 dur)
{
	char buf[32];
	d9_u64 us = (t0 - (t0 < m->t->t_begin ? t0 : m->t->t_begin)) / 1000;
	printf("  %10s  %5llu.%06llu s %8d %-15.15s ", d9_format_duration(dur, buf), (unsigned long long)(us / 1000000),
	       (unsigned long long)(us % 1000000), d9_show_tid(m, thread), m->t->threads.v[thread].name);
}

static void what_text(FILE *f, const struct d9_model *m, const struct d9_ref_info *r)
{
	char what[96], call[32];
	if (r->kind == D9_KIND_RUNQ || r->kind == D9_KIND_OFFCPU) {
		bool runq = r->kind == D9_KIND_RUNQ;
		snprintf(what, sizeof(what), "%s%s%.40s", d9_kind_name(r->kind),
			 runq && r->who ? ": "
			 : runq         ? ""
					: " in ",
			 runq ? (r->who ? r->who : "") : d9_syscall_name(r->nr, call));
		fprintf(f, " %-30s", what);
		return;
	}
	int n = snprintf(what, sizeof(what), "%s",
			 r->hook == D9_NO_INDEX ? d9_kind_name(r->kind) : m->t->hooks.v[r->hook].name);
	if (r->object)
		snprintf(what + n, sizeof(what) - (size_t)n, " 0x%llx", (unsigned long long)r->object);
	else if (r->fd >= 0)
		snprintf(what + n, sizeof(what) - (size_t)n, " fd %d", r->fd);
	else if (r->task)
		snprintf(what + n, sizeof(what) - (size_t)n, " task %llu", (unsigned long long)r->task);
	fprintf(f, " %-30s", what);
}

#define PART_MIN 20 /* a twentieth of it is worth a word */

static bool part_text(FILE *f, const char *what, d9_u64 ns, d9_u64 of, bool *begun)
{
	char dur[32];
	if (!ns || ns == D9_NOT_KNOWN || ns < of / PART_MIN)
		return false;
	fprintf(f, "%s%s %s", *begun ? ", " : " [", what, d9_format_duration(ns, dur));
	return *begun = true;
}

/* Of a poll all parts; of a wait what it could have run: the rest is the wait.  Nothing where it is not known, or goes without saying. */
static void split_text(FILE *f, const struct d9_model *m, struct d9_ref ref, const struct d9_ref_info *r)
{
	struct d9_split s = split(m, ref, r);
	struct d9_who who;
	bool poll = ref.what == D9_REF_POLL, begun = false;
	char names[120];
	if (!poll && (ref.what == D9_REF_RUNQ || s.runnable == D9_NOT_KNOWN))
		return;
	if (poll)
		part_text(f, "on CPU", s.on_cpu, r->t1 - r->t0, &begun);
	if (part_text(f, "without a CPU", s.runnable, r->t1 - r->t0, &begun)) {
		who_had_cpu(&who, m, ref, r, &s);
		if (who.had.n)
			fprintf(f, " (%s%s)",
				who.seen >= s.runnable / 2 ? "" : "last: ", d9_who_names(&who, names, sizeof(names)));
		d9_who_fini(&who);
	}
	if (poll)
		part_text(f, "blocked", s.blocked, r->t1 - r->t0, &begun);
	if (begun)
		putc(']', f);
}

void d9_show_span_text(FILE *f, const struct d9_model *m, struct d9_ref ref)
{
	struct d9_ref_info r = d9_ref_info(m, ref);
	char dur[32], where[160];
	d9_u64 us = (r.t0 - m->t->t_begin) / 1000;
	fprintf(f, "  %9s%c %5llu.%06llu s %8d %-15.15s", d9_format_duration(r.t1 - r.t0, dur), r.ended ? ' ' : '+',
		(unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000), d9_show_tid(m, ref.thread),
		m->t->threads.v[ref.thread].name);
	what_text(f, m, &r);
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	d9_show_resolve(m->t, m->t->threads.v[ref.thread].proc, r.stack,
			r.site == D9_NO_INDEX ? 0 : m->t->sites.v[r.site].ra, s);
	d9_show_headline(s, 2, where, sizeof(where));
	fprintf(f, " %s%s", where, *where ? d9_show_whose(r.stack, r.own_stack, r.ended) : "");
	free(s);
	split_text(f, m, ref, &r);
	putc('\n', f);
}

void d9_show_why_empty(const struct d9_model *m, d9_u32 kind)
{
	if (kind == D9_KIND_RUNQ || kind == D9_KIND_OFFCPU)
		d9_warn("no %s here: %s", d9_kind_name(kind),
			d9_trace_has_kernel(m->t) ? "the kernel's side saw none that was long enough to be told of"
						  : D9_NO_KERNEL_SIDE);
	if (kind == D9_KIND_QUEUE && !m->runtimes.n)
		fprintf(stderr, "d9: no queue here: no program of this recording told of its tasks (shim/d9.h)\n");
}

void d9_show_by_perf(const struct d9_model *m)
{
	if (d9_trace_shows_perf(m->t))
		printf("  %s\n\n", D9_BY_PERF);
}

/* ---- the longest ------------------------------------------------------------------------------------ */

struct ranked {
	struct d9_ref ref;
	d9_u64 dur;
};
/* A heap with the shortest on top. */
struct ranking {
	struct ranked *v;
	size_t n, max, cap;
	d9_u64 longer;
};

static void sift(struct ranking *h, size_t i)
{
	for (size_t c; (c = 2 * i + 1) < h->n; i = c) {
		c += c + 1 < h->n && h->v[c + 1].dur < h->v[c].dur;
		if (h->v[i].dur <= h->v[c].dur)
			return;
		struct ranked swap = h->v[i];
		h->v[i] = h->v[c];
		h->v[c] = swap;
	}
}

static void offer(struct ranking *h, d9_u64 dur, struct d9_ref ref)
{
	if (dur < h->longer || !h->max || (h->n == h->max && dur <= h->v[0].dur))
		return;
	if (h->n == h->max) {
		h->v[0] = (struct ranked){ref, dur};
		sift(h, 0);
		return;
	}
	if (h->n == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 64;
		h->v = d9_must_resize(h->v, h->cap, sizeof(*h->v));
	}
	size_t i = h->n++;
	for (; i && h->v[(i - 1) / 2].dur > dur; i = (i - 1) / 2)
		h->v[i] = h->v[(i - 1) / 2];
	h->v[i] = (struct ranked){ref, dur};
}

static void offer_thread(struct ranking *h, const struct d9_model *m, d9_u32 i, d9_u32 kind)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	const struct d9_model_thread *mt = &m->threads[i];
	bool all = kind == D9_N_KINDS;
	if (kind == D9_KIND_PARK)
		for (d9_u32 k = 0; k < mt->parks.n; k++)
			offer(h, mt->parks.v[k].t1 - mt->parks.v[k].t0, (struct d9_ref){i, D9_REF_PARK, k});
	if (kind == D9_KIND_RUNQ)
		for (d9_u32 k = 0; k < th->kernel.runq.n; k++)
			offer(h, th->kernel.runq.v[k].t1 - th->kernel.runq.v[k].t0, (struct d9_ref){i, D9_REF_RUNQ, k});
	if (kind == D9_KIND_OFFCPU)
		for (d9_u32 k = 0; k < th->kernel.offcpu.n; k++)
			offer(h, th->kernel.offcpu.v[k].t1 - th->kernel.offcpu.v[k].t0,
			      (struct d9_ref){i, D9_REF_OFFCPU, k});
	if (kind == D9_KIND_QUEUE)
		for (d9_u32 k = 0; k < mt->queued.n; k++)
			offer(h, mt->queued.v[k].t1 - mt->queued.v[k].t0, (struct d9_ref){i, D9_REF_QUEUE, k});
	if ((all || kind == D9_KIND_POLL_SPAN) && mt->role == D9_ROLE_WORKER)
		for (d9_u32 k = 0; k < mt->polls.n; k++)
			offer(h, mt->polls.v[k].t1 - mt->polls.v[k].t0, (struct d9_ref){i, D9_REF_POLL, k});
	for (d9_u32 k = 0; k < th->spans.n; k++) {
		const struct d9_span *s = &th->spans.v[k];
		if (all ? !(s->flags & D9_SPAN_NO_CALL) : s->kind == kind)
			offer(h, d9_span_dur(s), (struct d9_ref){i, D9_REF_SPAN, k});
		else if (kind == D9_KIND_WAKE && d9_span_has_wake(s))
			offer(h, s->t1 - s->waker_t, (struct d9_ref){i, D9_REF_WAKE, k});
	}
	if (!th->pending.unfinished)
		return;
	bool parked = d9_model_pending_parks(m, i);
	if (all ? !parked : m->t->sites.v[th->pending.site].kind == kind || (kind == D9_KIND_PARK && parked))
		offer(h, th->pending.t - th->pending.since, (struct d9_ref){i, D9_REF_PENDING, 0});
}

static int longest_first(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->dur != y->dur)
		return x->dur > y->dur ? -1 : 1;
	if (x->ref.thread != y->ref.thread)
		return x->ref.thread < y->ref.thread ? -1 : 1;
	return x->ref.index < y->ref.index ? -1 : x->ref.index > y->ref.index;
}

struct d9_ref *d9_show_longest(const struct d9_model *m, d9_u32 kind, d9_u64 longer_ns, size_t *ret_n)
{
	struct ranking h = {.max = *ret_n, .longer = longer_ns};
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (m->t->threads.v[i].shown && m->threads[i].role != D9_ROLE_RECORDER)
			offer_thread(&h, m, i, kind);
	if (h.n)
		qsort(h.v, h.n, sizeof(*h.v), longest_first);
	struct d9_ref *refs = d9_must_alloc(h.n + 1, sizeof(*refs));
	for (size_t i = 0; i < h.n; i++)
		refs[i] = h.v[i].ref;
	*ret_n = h.n;
	free(h.v);
	return refs;
}
