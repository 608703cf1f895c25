/*
 * blocking-call: a worker sat in a call instead of coming back.  driver-starved: the same, by the worker
 * that had just polled for events, while its siblings were parked and none of them polled.
 *
 * A call that was only long because the thread had no CPU is no blocking call.
 */
#include "findings.h"

struct incident {
	d9_u32 thread, poll; /* of the worst; poll: index */
	struct d9_ref ref;   /* the call: a span, or a pending one */
	struct d9_span call;
	d9_u64 blocked, poll_ns; /* of the worst */
	d9_u64 count, total;
	d9_u64 late; /* driver-starved: nobody polled for so long */
	d9_u32 idle;
	bool starved;
};
typedef D9_VEC(struct incident) incidents;

/*
 * Calls that take long only if something is wrong, or if the thread lost its CPU inside them; and waits for a lock,
 * whose holder may have lost its own.  Without a measurement only long ones are believed.
 */
static bool is_doubtful(d9_u32 kind)
{
	switch (d9_kind_class(kind)) {
	case D9_CLASS_LOCK:
	case D9_CLASS_SIGNAL:
		return true;
	case D9_CLASS_IO:
		return kind != D9_FAMILY_sync && kind != D9_FAMILY_dns && kind != D9_FAMILY_connect &&
		       kind != D9_FAMILY_flock;
	default:
		return false;
	}
}

/*
 * Run delay is read now and then: what of it fell into the call is not known, only that the rest of the call is more
 * than the call was blocked for certain.  A stretch of 100 ms is longer than threads wait for a CPU unless the delay
 * around it says so.
 */
bool d9_only_starved_of_cpu(const struct d9_model *m, d9_u32 thread, const struct d9_span *s)
{
	d9_u64 delay, window, dur = d9_span_dur(s);
	enum d9_class c = d9_kind_class(s->kind);
	if (c == D9_CLASS_SLEEP && dur >= 2 * D9_WARN_NS)
		return false; /* it asked for it */
	if (c == D9_CLASS_LOCK || c == D9_CLASS_SIGNAL)
		return dur < D9_CRITICAL_NS; /* its holder's delay counts, not its own */
	if (!d9_model_run_delay(m, thread, s->t0, s->t1, &delay, &window))
		return is_doubtful(s->kind) && dur < D9_CRITICAL_NS;
	if (dur >= 2 * D9_CRITICAL_NS)
		return window < dur * 2 && delay * 4 >= dur * 3;
	return dur < delay + D9_WARN_NS;
}

/*
 * A call that takes long only if something is wrong may take long in the kernel itself: packets that came for others are handled in a send.
 * The kernel's side tells of sleeps half as long, and told of none in it.
 */
static bool did_not_sleep(const struct d9_model *m, d9_u32 thread, const struct d9_span *s)
{
	const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
	size_t i = D9_FIRST_AFTER(k->offcpu.v, k->offcpu.n, t1, s->t0);
	if (!d9_model_watched(m, thread, s->t0, s->t1) || (i < k->offcpu.n && k->offcpu.v[i].t0 < s->t1))
		return false;
	for (i = 0; i < k->offcpu.n; i++)
		if (d9_offcpu_blocked(&k->offcpu.v[i]) <= d9_span_dur(s) / 2)
			return true;
	return false;
}

/* The hook whose unclaimed calls took longest in the poll: its longest call, and their sum. */
static d9_u32 main_call(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p, d9_u64 *ret_sum)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u32 longest = D9_NO_INDEX;
	d9_u64 sum = 0;
	D9_EACH_CALL (i, th, p, D9_SPAN_NO_CALL | D9_SPAN_CLAIMED)
		if (longest == D9_NO_INDEX || d9_span_dur(&th->spans.v[i]) > d9_span_dur(&th->spans.v[longest]))
			longest = i;
	D9_EACH_CALL (i, th, p, D9_SPAN_NO_CALL | D9_SPAN_CLAIMED)
		if (th->spans.v[i].hook == th->spans.v[longest].hook)
			sum += d9_span_dur(&th->spans.v[i]);
	*ret_sum = sum;
	return longest;
}

/* The call that a task's poll, which has not ended, sits in.  Not one at home: what is polled there may run a runtime in turn. */
static bool sits_in_call(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p)
{
	const struct d9_pending *c = &m->t->threads.v[thread].pending;
	return p->rt && !p->ended && c->unfinished && !c->claimed && c->since >= p->t0 &&
	       !d9_model_pending_parks(m, thread);
}

/* Did another thread poll as this worker while the call went on? */
static bool is_replaced(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p, const struct d9_span *call)
{
	const struct d9_rt_span *r = d9_poll_told(m, thread, p);
	for (d9_u32 i = 0; r && r->worker != D9_NO_INDEX && i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (i == thread || th->proc != m->t->threads.v[thread].proc)
			continue;
		for (size_t k = D9_FIRST_AFTER(th->rt.v, th->rt.n, t1, call->t0);
		     k < th->rt.n && th->rt.v[k].t0 < call->t1; k++)
			if (!th->rt.v[k].park && th->rt.v[k].module == r->module && th->rt.v[k].runtime == r->runtime &&
			    th->rt.v[k].worker == r->worker)
				return true;
	}
	return false;
}

/*
 * In tokio::task::block_in_place another thread has the worker's place until the call is over.  It may have nothing to poll; then
 * the name among the callers tells.  known: by stack.
 */
static bool is_relieved(const struct d9_model *m, struct d9_map *known, d9_u32 thread, const struct d9_span *call)
{
	d9_u64 key = call->stack ? 1ull << 32 | call->stack : call->site;
	d9_u32 was = d9_map_get(known, key);
	if (was != D9_MAP_EMPTY)
		return was;
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	bool relieved = false;
	d9_show_resolve(m->t, m->t->threads.v[thread].proc, d9_show_span_stack(m->t, call), 0, s);
	for (d9_u32 i = 0; i < s->n; i++)
		relieved |= s->frames[i].symbol && strstr(s->frames[i].symbol, "block_in_place");
	d9_map_put(known, key, relieved);
	free(s);
	return relieved;
}

/* What held the poll up most, and for how long.  False: no call. */
static bool find_call(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p, struct incident *in)
{
	d9_u32 call = main_call(m, thread, p, &in->blocked);
	in->ref = (struct d9_ref){thread, D9_REF_SPAN, call};
	if (call != D9_NO_INDEX)
		in->call = *d9_model_span(m, thread, call);
	struct d9_span now = sits_in_call(m, thread, p) ? d9_model_pending(m, thread) : (struct d9_span){0};
	if (d9_span_dur(&now) > in->blocked) {
		in->ref = (struct d9_ref){thread, D9_REF_PENDING, 0};
		in->call = now;
		in->blocked = d9_span_dur(&now);
	}
	return in->blocked > 0;
}

/* ---- driver-starved ---------------------------------------------------------------------------- */

/* The park of the thread that covers the moment, or NULL. */
static const struct d9_park *park_at(const struct d9_model_thread *mt, d9_u64 t)
{
	size_t i = D9_FIRST_AFTER(mt->parks.v, mt->parks.n, t1, t);
	return i < mt->parks.n && mt->parks.v[i].t0 <= t ? &mt->parks.v[i] : NULL;
}

static bool is_event_park(const struct d9_model *m, const struct d9_park *p)
{
	return p->site != D9_NO_INDEX && d9_kind_class(m->t->sites.v[p->site].kind) == D9_CLASS_EVENT;
}

/* When a thread of the process was next in an event wait on the descriptor at or after t0; t1 if not before t1. */
static d9_u64 next_poller(const struct d9_model *m, d9_u32 proc, d9_i32 fd, d9_u64 t0, d9_u64 t1)
{
	d9_u64 next = t1;
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->proc != proc)
			continue;
		const struct d9_pending *c = &th->pending;
		if (c->unfinished && c->fd == fd && c->since < next && d9_model_pending_parks(m, i) &&
		    d9_kind_class(m->t->sites.v[c->site].kind) == D9_CLASS_EVENT)
			next = c->since > t0 ? c->since : t0;
		for (d9_u32 k = d9_model_first_span(m, i, t0); k < th->spans.n && th->spans.v[k].t0 < next; k++) {
			const struct d9_span *s = &th->spans.v[k];
			if (s->flags & D9_SPAN_PARK && s->fd == fd && d9_kind_class(s->kind) == D9_CLASS_EVENT) {
				next = s->t0 > t0 ? s->t0 : t0;
				break;
			}
		}
	}
	return next;
}

static bool waits_alone(const struct d9_lock *l, d9_u32 thread)
{
	bool alone = true;
	for (size_t i = 0; i < l->waiters.n; i++)
		alone &= l->waiters.v[i].thread == thread;
	for (size_t i = 0; i < l->pending.n; i++)
		alone &= l->pending.v[i] == thread;
	return alone;
}

/*
 * A sibling without a poller of its own: same name, waiting at moment t for an object that it alone waits for.  (A
 * pool for blocking work waits for one object, or says so.)
 */
static bool is_idle_sibling(struct d9_model *m, d9_u32 worker, d9_u32 i, d9_u64 t)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	if (strcmp(th->name, m->t->threads.v[worker].name) != 0)
		return false;
	d9_u32 k = d9_model_first_span(m, i, t), site = D9_NO_INDEX;
	d9_u64 object = 0;
	if (k < th->spans.n && th->spans.v[k].t0 <= t)
		site = th->spans.v[k].site, object = th->spans.v[k].object;
	else if (th->pending.unfinished && th->pending.since <= t)
		site = th->pending.site, object = th->pending.object;
	if (site == D9_NO_INDEX || !object || d9_kind_class(m->t->sites.v[site].kind) != D9_CLASS_SIGNAL)
		return false;
	const struct d9_lock *l = d9_model_lock(m, th->proc, object);
	return !l || (!l->like_lock && waits_alone(l, i));
}

static void judge_driver(struct d9_model *m, d9_u32 thread, const struct d9_poll *p, d9_u32 park, struct incident *in)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	const struct d9_park *before = &mt->parks.v[park];
	if (!is_event_park(m, before) || before->span >= th->spans.n)
		return;
	const struct d9_span *s = &in->call;
	d9_u64 until = next_poller(m, th->proc, th->spans.v[before->span].fd, before->t1,
				   p->t1 > s->t1 ? p->t1 : s->t1),
	       middle = s->t0 + d9_span_dur(s) / 2;
	if (until < s->t1 || d9_model_has_hole(m, th->proc, before->t1, until))
		return; /* somebody polled, or may have */
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (i == thread || m->t->threads.v[i].proc != th->proc)
			continue;
		if (m->threads[i].role != D9_ROLE_WORKER) {
			in->idle += is_idle_sibling(m, thread, i, middle);
			continue;
		}
		const struct d9_park *o = park_at(&m->threads[i], middle);
		in->idle += (o && !is_event_park(m, o)) ||
			    (!o && m->t->threads.v[i].pending.unfinished &&
			     m->t->threads.v[i].pending.since <= middle && d9_model_pending_parks(m, i));
	}
	in->starved = in->idle > 0;
	in->late = until - before->t1;
}

/* ---- incidents ---------------------------------------------------------------------------------- */

static bool same_cause(const struct d9_model *m, const struct incident *a, const struct incident *b)
{
	return a->starved == b->starved && m->t->threads.v[a->thread].proc == m->t->threads.v[b->thread].proc &&
	       a->call.site == b->call.site;
}

static void merge(const struct d9_model *m, incidents *all, const struct incident *in)
{
	for (size_t i = 0; i < all->n; i++) {
		struct incident *o = &all->v[i];
		if (!same_cause(m, o, in))
			continue;
		d9_u64 count = o->count + 1, total = o->total + in->blocked;
		if (in->blocked > o->blocked)
			*o = *in;
		o->count = count;
		o->total = total;
		return;
	}
	d9_vec_push(all, *in);
}

static void look(struct d9_model *m, d9_u32 thread, incidents *all, struct d9_map *relieved)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	size_t park = 0;
	for (d9_u32 i = 0; i < mt->polls.n; i++) {
		const struct d9_poll *p = &mt->polls.v[i];
		struct incident in = {.thread = thread, .poll = i, .poll_ns = p->t1 - p->t0, .count = 1};
		if (in.poll_ns < D9_WARN_NS || d9_poll_is_job(m, thread, p) || !find_call(m, thread, p, &in) ||
		    in.blocked < D9_WARN_NS || d9_only_starved_of_cpu(m, thread, &in.call))
			continue;
		if (in.ref.what == D9_REF_SPAN && is_doubtful(in.call.kind) && did_not_sleep(m, thread, &in.call))
			continue;
		if (is_replaced(m, thread, p, &in.call) || is_relieved(m, relieved, thread, &in.call))
			continue;
		in.total = in.blocked;
		struct d9_split s = d9_model_split(m, thread, p);
		if (s.on_cpu != D9_NOT_KNOWN && s.on_cpu > in.blocked)
			continue; /* it computed for longer: long-poll */
		while (park + 1 < mt->parks.n && mt->parks.v[park + 1].t1 <= p->t0)
			park++;
		if (mt->parks.n && mt->parks.v[park].t1 <= p->t0)
			judge_driver(m, thread, p, (d9_u32)park, &in);
		merge(m, all, &in);
	}
}

static const char *advice(d9_u32 kind)
{
	switch (d9_kind_class(kind)) {
	case D9_CLASS_SLEEP:
		return "Use the runtime's own timer or wait instead of a call that puts the thread to sleep.";
	case D9_CLASS_LOCK:
	case D9_CLASS_SIGNAL:
		return "Use a lock or channel of the runtime, or make sure that nobody holds this one for long.";
	default:
		return "Make the descriptor non-blocking, or move the call to the runtime's pool for blocking work.";
	}
}

static void report(struct d9_model *m, struct d9_findings *out, const struct incident *in)
{
	const char *hook = m->t->hooks.v[in->call.hook].name;
	const char *sat = in->ref.what == D9_REF_PENDING ? "has sat" : "sat",
		   *so_far = in->ref.what == D9_REF_PENDING ? " so far" : "";
	const struct d9_poll *p = &m->threads[in->thread].polls.v[in->poll];
	struct d9_finding *f = d9_finding_add(out, in->starved ? "driver-starved" : "blocking-call", in->thread);
	char who[96], dur[32];
	d9_show_thread(m, in->thread, who, sizeof(who));
	d9_format_duration(in->blocked, dur);
	f->severity = d9_severity_of(in->blocked);
	f->from = p->t0;
	f->to = p->t1;
	f->count = in->count;
	f->harm = in->total * (1 + in->idle);
	d9_finding_n(f, "blocked_ns", in->blocked);
	if (in->starved) {
		d9_finding_title(f, "%s %s in %s for %s%s and nobody else polled for events; %u workers were idle", who,
				 sat, hook, dur, so_far, in->idle);
		d9_finding_n(f, "late_ns", in->late);
		d9_finding_n(f, "idle_workers", in->idle);
	} else {
		d9_finding_title(f, "%s %s in %s for %s%s", who, sat, hook, dur, so_far);
		d9_finding_n(f, "poll_ns", in->poll_ns);
	}
	d9_finding_n(f, "total_ns", in->total);
	d9_finding_task(f, m, in->thread, d9_poll_told(m, in->thread, p));
	d9_finding_cause(f, m, in->ref);
	d9_finding_span(f, (struct d9_ref){in->thread, D9_REF_POLL, in->poll});
	d9_finding_span(f, in->ref);
	f->try[0] = advice(in->call.kind);
	if (in->starved)
		f->try[1] = "A runtime that hands its I/O driver over before a poll would keep timers and sockets "
			    "alive meanwhile.";
}

void d9_find_blocking_call(struct d9_model *m, struct d9_findings *out)
{
	incidents all = {0};
	struct d9_map relieved = {0};
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (m->threads[i].role == D9_ROLE_WORKER)
			look(m, i, &all, &relieved);
	for (size_t i = 0; i < all.n; i++)
		report(m, out, &all.v[i]);
	d9_vec_free(&all);
	d9_map_free(&relieved);
}
