#include "report.h"

#include <time.h>

/* ---- calls -------------------------------------------------------------------------------------------- */

/* Calls that were too short to be recorded one by one. */
static void add_counted_calls(const struct d9_trace *t, const struct d9_trace_thread *th, struct d9_call_row *rows)
{
	bool whole = t->from == t->t_begin && t->to == t->t_end;
	for (size_t i = 0; i < th->calls.n && whole; i++) { /* these are sums since the thread began */
		const struct d9_calls *c = &th->calls.v[i];
		struct d9_call_row *r = &rows[c->hook];
		r->count += c->count;
		r->total += c->total_ns;
		r->max = c->max_ns > r->max ? c->max_ns : r->max;
		r->errors += c->errors;
	}
}

static int longest_total(const void *a, const void *b)
{
	const struct d9_call_row *x = a, *y = b;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->hook < y->hook ? -1 : x->hook > y->hook;
}

static void gather_calls(struct d9_report *r, struct d9_call_row *rows)
{
	const struct d9_trace *t = r->m->t;
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.v[i].shown)
			add_counted_calls(t, &t->threads.v[i], rows);
	for (d9_u32 i = 0; i < t->hooks.n; i++) {
		rows[i].hook = i;
		if (rows[i].count)
			d9_vec_push(&r->calls, rows[i]);
	}
	if (r->calls.n)
		qsort(r->calls.v, r->calls.n, sizeof(*r->calls.v), longest_total);
}

/* ---- descriptors, waits, losses --------------------------------------------------------------------- */

static void add_span(struct d9_report *r, const struct d9_span *s, struct d9_call_row *row)
{
	d9_u64 dur = d9_span_dur(s);
	row->count++;
	row->total += dur;
	row->max = dur > row->max ? dur : row->max;
	row->errors += s->result < 0;
	if (!(s->flags & D9_SPAN_NO_CALL))
		d9_hist_add(&r->waits, dur);
}

/* One pass for all that comes from every span. */
static void gather_spans(struct d9_report *r, struct d9_call_row *rows)
{
	const struct d9_trace *t = r->m->t;
	d9_i32 fd_max = -1;
	for (d9_u32 i = 0; i < t->threads.n; i++) {
		const struct d9_trace_thread *th = &t->threads.v[i];
		for (d9_u32 k = 0; k < th->spans.n && th->shown; k++) {
			const struct d9_span *s = &th->spans.v[k];
			fd_max = s->fd > fd_max ? s->fd : fd_max;
			add_span(r, s, &rows[s->hook]);
			if (s->kind != D9_FAMILY_socket && s->kind != D9_FAMILY_accept && s->kind != D9_FAMILY_open)
				continue;
			fd_max = s->result > fd_max ? s->result : fd_max;
			if (d9_is_fd_table_growth(s))
				d9_vec_push(&r->growth, (struct d9_growth){i, k});
		}
		for (size_t k = 0; k < th->gaps.n; k++) {
			r->dropped += th->gaps.v[k].events;
			r->dropped_kernel += t->families.v[th->family].kernel ? th->gaps.v[k].events : 0;
		}
	}
	r->fd_max = fd_max < 0 ? D9_NOT_KNOWN : (d9_u64)fd_max;
}

static void add_unseen(struct d9_report *r, const char *what, const char *detail)
{
	struct d9_unseen u = {.what = what};
	snprintf(u.detail, sizeof(u.detail), "%s", detail);
	d9_vec_push(&r->unseen, u);
}

/* Why the recorder said that it would not record the program that it was about to execute. */
static const char *told_reason(const struct d9_trace *t, const char *program)
{
	char begin[256];
	int n = snprintf(begin, sizeof(begin), "warning=%.200s is not recorded: ", program);
	for (size_t i = 0; i < t->infos.n; i++)
		if (!strncmp(t->infos.v[i], begin, (size_t)n))
			return t->infos.v[i] + n;
	return NULL;
}

#define UNWATCHED_WORTH_NS 100000000u
#define UNWATCHED_WORTH_PART 50 /* one in so many */
/* Processes that d9-kernel came to late, or ended before, by the thread of which most is missing. */
static void add_unwatched(struct d9_report *r)
{
	const struct d9_trace *t = r->m->t;
	for (d9_u32 p = 0; p < t->procs.n; p++) {
		d9_u64 worst = 0, wall = 0;
		for (d9_u32 i = 0; i < t->threads.n && t->procs.v[p].shown; i++) {
			const struct d9_model_thread *mt = &r->m->threads[i];
			if (t->threads.v[i].proc != p || mt->role == D9_ROLE_RECORDER)
				continue;
			d9_u64 missing =
				mt->wall - d9_stretches_within(&t->threads.v[i].kernel.watched, mt->begin, mt->end);
			if (missing > worst) {
				worst = missing;
				wall = mt->wall;
			}
		}
		char text[160], a[32], b[32];
		if (worst < UNWATCHED_WORTH_NS || worst < wall / UNWATCHED_WORTH_PART)
			continue;
		snprintf(text, sizeof(text),
			 "pid %d: d9-kernel did not watch %s of %s; runq, offcpu and findings of the kernel's have "
			 "nothing of "
			 "that",
			 t->procs.v[p].pid, d9_format_duration(worst, a), d9_format_duration(wall, b));
		add_unseen(r, "kernel", text);
	}
}

#define OFF_WORTH_NS 1000000u /* between a process's birth and the word of the recorder that it is on lies less */
/* What the recorder itself said that it could not see, and what no part of this recording measured. */
static void gather_unseen(struct d9_report *r)
{
	const struct d9_trace *t = r->m->t;
	for (size_t i = 0; i < t->infos.n; i++) {
		if (!strncmp(t->infos.v[i], "warning=", 8))
			add_unseen(r, "warning", t->infos.v[i] + 8);
		if (!strncmp(t->infos.v[i], "unseen=", 7))
			add_unseen(r, "calls", t->infos.v[i] + 7);
	}
	for (d9_u32 i = 0; i < t->procs.n; i++) {
		d9_u64 off = t->procs.v[i].shown ? d9_model_off(r->m, &t->procs.v[i]) : 0;
		char text[120], dur[32];
		if (off < OFF_WORTH_NS)
			continue;
		snprintf(text, sizeof(text), "pid %d: recording was off for %s; nothing is said of that time",
			 t->procs.v[i].pid, d9_format_duration(off, dur));
		add_unseen(r, "off", text);
	}
	bool cpu = false, delay = false;
	for (size_t i = 0; i < t->threads.n; i++)
		for (size_t k = 0; k < t->threads.v[i].cpu.n && !delay; k++) {
			cpu = true;
			delay |= t->threads.v[i].cpu.v[k].delay != D9_NOT_KNOWN;
		}
	if (!cpu)
		add_unseen(r, "cpu-time",
			   "no thread's CPU clock was read: a long poll cannot be told from a thread without a CPU");
	else if (!delay && !d9_trace_has_helper(t))
		add_unseen(r, "run-queue", "time runnable without a CPU was not measured");
	for (d9_u32 i = 0; i < t->procs.n; i++) {
		char text[240];
		if (!t->procs.v[i].shown || !d9_is_unhooked(t, i))
			continue;
		snprintf(text, sizeof(text), "pid %d: %s", t->procs.v[i].pid, D9_UNHOOKED);
		add_unseen(r, "hooks", text);
	}
	for (d9_u32 i = 0; i < t->procs.n; i++) {
		const struct d9_trace_proc *p = &t->procs.v[i];
		char text[560];
		if (!p->shown || p->end_how != 4 || p->became != D9_NO_INDEX)
			continue;
		const char *name = p->exec && *p->exec ? p->exec : "another program", *why = told_reason(t, name);
		snprintf(text, sizeof(text), "pid %d became %.200s, which is not recorded: %.280s", p->pid, name,
			 why ? why : "`d9 check` says whether it could be, or it got another environment");
		add_unseen(r, "exec", text);
	}
	for (d9_u32 i = 0; i < t->procs.n; i++) {
		char text[320];
		if (t->procs.v[i].shown && d9_uring_told(t, i, text, sizeof(text)))
			add_unseen(r, "io-uring", text);
	}
	unsigned unhooked = 0;
	d9_i32 first = 0;
	for (size_t i = 0; i < t->procs.n; i++)
		if (t->procs.v[i].shown && t->families.v[t->procs.v[i].family].kernel && !unhooked++)
			first = t->procs.v[i].pid;
	if (unhooked) {
		char text[200], more[40] = "";
		if (unhooked > 1)
			snprintf(more, sizeof(more), " and %u more", unhooked - 1);
		snprintf(text, sizeof(text),
			 "pid %d%s: seen by the kernel's side alone, none of its calls is recorded; start it with "
			 "`d9 run` or LD_PRELOAD",
			 first, more);
		add_unseen(r, "hooks", text);
	}
	bool by_perf = d9_trace_shows_perf(t);
	if (!d9_trace_has_kernel(t))
		add_unseen(r, "kernel", "no kernel helper (d9-kernel) took part: runq and offcpu are empty");
	else if (by_perf)
		add_unseen(r, "kernel",
			   d9_trace_has_helper(t) ? "where d9-kernel did not watch, runq and offcpu were " D9_BY_PERF
						  : "runq and offcpu were " D9_BY_PERF);
	else if (d9_trace_has_helper(t))
		add_unwatched(r);
	for (size_t i = 0; i < t->procs.n; i++)
		if (t->procs.v[i].flags & 1)
			add_unseen(r, "seccomp", "a process ran under seccomp: its memory was not extended");
	if (t->unknown_events)
		add_unseen(r, "events", "the recorder is newer than this d9: some kinds of events were passed over");
}

void d9_report_make(struct d9_model *m, size_t top, struct d9_report *ret)
{
	*ret = (struct d9_report){.m = m, .top = top, .n_worst = top};
	d9_findings_make(m, &ret->findings);
	d9_hist_all(m, ret->hists);
	ret->worst = d9_show_longest(m, D9_N_KINDS, 0, &ret->n_worst);
	struct d9_call_row *rows = d9_must_alloc(m->t->hooks.n + 1, sizeof(*rows));
	gather_spans(ret, rows);
	gather_calls(ret, rows);
	free(rows);
	gather_unseen(ret);
}

void d9_report_free(struct d9_report *r)
{
	d9_findings_free(&r->findings);
	for (unsigned i = 0; i < D9_N_KINDS; i++)
		d9_hist_free(&r->hists[i]);
	d9_hist_free(&r->waits);
	free(r->worst);
	d9_vec_free(&r->calls);
	d9_vec_free(&r->growth);
	d9_vec_free(&r->unseen);
}

/* ---- words ---------------------------------------------------------------------------------------------- */

const char *d9_report_start(const struct d9_trace *t, char buf[40])
{
	time_t s = (time_t)(t->start_real / 1000000000);
	struct tm tm;
	gmtime_r(&s, &tm);
	size_t n = strftime(buf, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, 40 - n, ".%06lluZ", (unsigned long long)(t->start_real % 1000000000 / 1000));
	return buf;
}

const char *d9_report_end(const struct d9_trace_proc *p, char buf[24], d9_u64 *ret_code)
{
	static const char *const names[] = {"unknown", "exit", "_exit", "signal", "exec", "unknown"};
	*ret_code = D9_NOT_KNOWN;
	if (!p->end_how)
		return p->running ? "running" : "unknown";
	if (p->end_how == 1 || p->end_how == 2)
		*ret_code = (d9_u64)(d9_u32)p->end_code;
	if (p->end_how != 3)
		return names[p->end_how < 6 ? p->end_how : 0];
	snprintf(buf, 24, "signal:%d", p->end_code);
	return buf;
}
