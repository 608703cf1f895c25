/* d9.report/1 */
#include "report.h"

static void thread_json(struct d9_json *j, const struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	const struct d9_model_thread *mt = &m->threads[i];
	d9_json_object(j, NULL);
	d9_json_i64(j, "tid", th->tid);
	d9_json_str(j, "name", th->name);
	d9_json_str(j, "role", d9_role_name(mt->role));
	d9_json_str(j, "pool", mt->pool == D9_NO_INDEX ? NULL : m->pools.v[mt->pool].name);
	d9_json_known(j, "worker", mt->worker == D9_NO_INDEX ? D9_NOT_KNOWN : mt->worker);
	char where[160];
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	if (mt->home != D9_NO_INDEX && (mt->role == D9_ROLE_WORKER || mt->role == D9_ROLE_POOL || mt->parks.n >= 4)) {
		const struct d9_trace_site *site = &m->t->sites.v[mt->home];
		char headline[128];
		d9_show_resolve(m->t, th->proc, &site->stack, site->ra, s);
		d9_show_headline(s, 1, headline, sizeof(headline));
		snprintf(where, sizeof(where), "%s%s%s", m->t->hooks.v[site->hook].name, *headline ? " in " : "",
			 headline);
		d9_json_str(j, "park_site", where);
	} else {
		d9_json_null(j, "park_site");
	}
	free(s);
	d9_json_u64(j, "wall_ns", mt->wall);
	d9_json_u64(j, "busy_ns", mt->busy);
	d9_json_u64(j, "parked_ns", mt->parked);
	d9_json_u64(j, "blocked_ns", mt->blocked);
	d9_json_known(j, "runnable_ns", mt->runnable);
	d9_json_known(j, "unexplained_ns", mt->unexplained);
	d9_json_u64(j, "polls", mt->polls.n);
	if (th->pending.unfinished) {
		d9_json_object(j, "in_call");
		d9_json_str(j, "hook", m->t->hooks.v[m->t->sites.v[th->pending.site].hook].name);
		if (th->pending.object)
			d9_json_addr(j, "object", th->pending.object);
		else
			d9_json_null(j, "object");
		d9_json_u64(j, "since_ns", th->pending.since);
		d9_json_end_object(j);
	} else {
		d9_json_null(j, "in_call");
	}
	d9_json_end_object(j);
}

static void runtimes_json(struct d9_json *j, const struct d9_model *m, d9_u32 proc)
{
	d9_json_array(j, "runtimes");
	for (size_t i = 0; i < m->runtimes.n; i++) {
		const struct d9_runtime *r = &m->runtimes.v[i];
		if (r->proc != proc)
			continue;
		d9_json_object(j, NULL);
		d9_json_u64(j, "runtime", r->id);
		d9_json_u64(j, "module", r->module);
		d9_json_u64(j, "workers", r->workers);
		d9_json_u64(j, "tasks", r->tasks);
		d9_json_u64(j, "polls", r->polls);
		d9_json_u64(j, "poll_total_ns", r->poll_total);
		d9_json_known(j, "poll_max_ns", r->polls ? r->poll_max : D9_NOT_KNOWN);
		d9_json_u64(j, "wakes", r->wakes);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

static void proc_json(struct d9_json *j, const struct d9_report *r, d9_u32 i)
{
	const struct d9_trace *t = r->m->t;
	const struct d9_trace_proc *p = &t->procs.v[i];
	char end[24];
	d9_u64 code;
	const char *how = d9_report_end(p, end, &code), *slash = strrchr(p->exe, '/');
	d9_json_object(j, NULL);
	d9_json_str(j, "id", p->name);
	d9_json_i64(j, "pid", p->pid);
	d9_json_i64(j, "ppid", p->ppid);
	d9_json_str(j, "exe", p->exe);
	d9_json_str(j, "name", slash ? slash + 1 : p->exe);
	runtimes_json(j, r->m, i);
	d9_json_str(j, "end", how);
	d9_json_known(j, "exit_code", code);
	d9_json_array(j, "threads");
	for (d9_u32 k = 0; k < t->threads.n; k++)
		if (t->threads.v[k].proc == i && t->threads.v[k].shown)
			thread_json(j, r->m, k);
	d9_json_end_array(j);
	d9_json_end_object(j);
}

static void cause_json(struct d9_json *j, const struct d9_model *m, const struct d9_finding *f)
{
	d9_json_object(j, "cause");
	d9_json_str(j, "kind", f->cause.kind);
	d9_json_str(j, "hook", f->cause.hook == D9_NO_INDEX ? NULL : m->t->hooks.v[f->cause.hook].name);
	d9_show_object_json(j, f->cause.object, f->cause.fd);
	d9_json_known(j, "owner_tid", f->cause.owner_tid ? f->cause.owner_tid : D9_NOT_KNOWN);
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	d9_show_resolve(m->t, f->cause.proc, f->cause.stack, f->cause.ra, s);
	d9_show_frames_json(j, "stack", s);
	free(s);
	d9_show_whose_json(j, f->cause.stack, f->cause.ra, f->cause.own_stack);
	d9_json_end_object(j);
}

static void measured_json(struct d9_json *j, const struct d9_finding *f)
{
	d9_json_object(j, "measured");
	for (size_t i = 0; i < f->measured.n; i++)
		if (f->measured.v[i].is_real)
			d9_json_f64(j, f->measured.v[i].key, f->measured.v[i].real);
		else
			d9_json_known(j, f->measured.v[i].key, f->measured.v[i].n);
	d9_json_end_object(j);
}

static void finding_json(struct d9_json *j, const struct d9_model *m, const struct d9_finding *f)
{
	const struct d9_model_thread *mt = &m->threads[f->thread];
	d9_json_object(j, NULL);
	d9_json_str(j, "id", f->id);
	d9_json_str(j, "severity", d9_severity_name(f->severity));
	d9_json_str(j, "certainty", f->inferred ? "inferred" : "seen");
	d9_json_str(j, "title", f->title);
	d9_json_i64(j, "pid", d9_show_pid(m, f->thread));
	d9_json_i64(j, "tid", d9_show_tid(m, f->thread));
	d9_json_str(j, "thread", m->t->threads.v[f->thread].name);
	d9_json_known(j, "worker", mt->worker == D9_NO_INDEX ? D9_NOT_KNOWN : mt->worker);
	d9_json_known(j, "task", f->spans.n ? d9_show_task(m, f->spans.v[0]) : D9_NOT_KNOWN);
	d9_json_u64(j, "from_ns", f->from);
	d9_json_u64(j, "to_ns", f->to);
	d9_json_u64(j, "dur_ns", f->to - f->from);
	d9_json_u64(j, "count", f->count);
	cause_json(j, m, f);
	d9_json_array(j, "victims");
	for (size_t i = 0; i < f->victims.n; i++) {
		d9_json_object(j, NULL);
		d9_json_i64(j, "tid", d9_show_tid(m, f->victims.v[i].thread));
		d9_json_u64(j, "waited_ns", f->victims.v[i].waited);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
	measured_json(j, f);
	d9_json_array(j, "spans");
	for (size_t i = 0; i < f->spans.n; i++)
		d9_show_span_json(j, NULL, m, f->spans.v[i]);
	d9_json_end_array(j);
	d9_json_array(j, "try");
	for (size_t i = 0; i < 4 && f->try[i]; i++)
		d9_json_str(j, NULL, f->try[i]);
	d9_json_end_array(j);
	d9_json_end_object(j);
}

static void calls_json(struct d9_json *j, const struct d9_report *r)
{
	const struct d9_trace *t = r->m->t;
	d9_json_array(j, "calls");
	for (size_t i = 0; i < r->calls.n; i++) {
		const struct d9_call_row *c = &r->calls.v[i];
		d9_json_object(j, NULL);
		d9_json_str(j, "kind", d9_kind_name(t->hooks.v[c->hook].kind));
		d9_json_str(j, "hook", t->hooks.v[c->hook].name);
		d9_json_u64(j, "count", c->count);
		d9_json_u64(j, "total_ns", c->total);
		d9_json_u64(j, "max_ns", c->max);
		d9_json_u64(j, "errors", c->errors);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
	d9_json_object(j, "fds");
	d9_json_known(j, "max", r->fd_max);
	d9_json_array(j, "growth");
	for (size_t i = 0; i < r->growth.n; i++) {
		const struct d9_span *s = d9_model_span(r->m, r->growth.v[i].thread, r->growth.v[i].span);
		d9_json_object(j, NULL);
		d9_json_i64(j, "fd", s->result);
		d9_json_str(j, "hook", t->hooks.v[s->hook].name);
		d9_json_u64(j, "t_ns", s->t0);
		d9_json_u64(j, "dur_ns", d9_span_dur(s));
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
	d9_json_end_object(j);
}

static void losses_json(struct d9_json *j, const struct d9_report *r)
{
	const struct d9_trace *t = r->m->t;
	d9_json_object(j, "losses");
	d9_json_u64(j, "dropped_events", r->dropped);
	d9_json_u64(j, "torn_blocks", t->torn_blocks);
	d9_json_array(j, "gaps");
	for (d9_u32 i = 0; i < t->threads.n; i++)
		for (size_t k = 0; k < t->threads.v[i].gaps.n; k++) {
			const struct d9_gap *g = &t->threads.v[i].gaps.v[k];
			d9_json_object(j, NULL);
			d9_json_i64(j, "tid", t->threads.v[i].tid);
			d9_json_u64(j, "from_ns", g->since);
			d9_json_u64(j, "to_ns", g->t);
			d9_json_u64(j, "events", g->events);
			d9_json_end_object(j);
		}
	d9_json_end_array(j);
	d9_json_end_object(j);
	d9_json_array(j, "unseen");
	for (size_t i = 0; i < r->unseen.n; i++) {
		d9_json_object(j, NULL);
		d9_json_str(j, "what", r->unseen.v[i].what);
		d9_json_str(j, "detail", r->unseen.v[i].detail);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

int d9_report_json(const struct d9_report *r)
{
	struct d9_json j;
	char start[40];
	const struct d9_trace *t = r->m->t;
	d9_json_document(&j, stdout, "report");
	d9_json_str(&j, "session", t->session);
	d9_json_str(&j, "start", d9_report_start(t, start));
	d9_json_u64(&j, "from_ns", t->from);
	d9_json_u64(&j, "to_ns", t->to);
	d9_json_array(&j, "processes");
	for (d9_u32 i = 0; i < t->procs.n; i++)
		if (t->procs.v[i].shown)
			proc_json(&j, r, i);
	d9_json_end_array(&j);
	d9_json_array(&j, "findings");
	for (size_t i = 0; i < r->findings.of.n; i++)
		finding_json(&j, r->m, &r->findings.of.v[i]);
	d9_json_end_array(&j);
	d9_json_object(&j, "hists");
	for (d9_u32 k = 0; k < D9_N_KINDS; k++)
		if (r->hists[k].count) {
			d9_json_object(&j, d9_kind_name(k));
			d9_show_hist_json(&j, &r->hists[k], k);
			d9_json_end_object(&j);
		}
	d9_json_end_object(&j);
	d9_json_array(&j, "worst_spans");
	for (size_t i = 0; i < r->n_worst; i++)
		d9_show_span_json(&j, NULL, r->m, r->worst[i]);
	d9_json_end_array(&j);
	d9_show_locks_json(&j, r->m);
	calls_json(&j, r);
	losses_json(&j, r);
	return d9_json_end_document(&j);
}
