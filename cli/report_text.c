/* The report for people: who ran, what went wrong, then the tables. */
#include "clean.h"
#include "report.h"
#include "tasks.h"

#define THREADS_MAX 12
#define LOCKS_MAX 8
#define CALLS_MAX 12
#define RUNTIMES_MAX 12

struct paint {
	const char *bold, *red, *yellow, *dim, *off;
};

static struct paint paint_for(FILE *f)
{
	if (!d9_show_colour(f))
		return (struct paint){"", "", "", "", ""};
	return (struct paint){"\033[1m", "\033[1;31m", "\033[1;33m", "\033[2m", "\033[0m"};
}

static void section(const struct paint *c, const char *title) { printf("\n%s%s%s\n", c->bold, title, c->off); }

/* ---- who ran --------------------------------------------------------------------------------------------- */

static const char *share(d9_u64 part, d9_u64 whole, char buf[16])
{
	if (part == D9_NOT_KNOWN || !whole)
		snprintf(buf, 16, "-");
	else if (part && part * 200 < whole)
		snprintf(buf, 16, "<1 %%");
	else
		snprintf(buf, 16, "%.0f %%", 100.0 * (double)part / (double)whole);
	return buf;
}

static void thread_line(const struct d9_model *m, d9_u32 i)
{
	const struct d9_trace_thread *th = &m->t->threads.v[i];
	const struct d9_model_thread *mt = &m->threads[i];
	char wall[32], b[5][16], busy[24], role[24];
	if (mt->role == D9_ROLE_WORKER)
		snprintf(role, sizeof(role), "worker %u", mt->worker);
	else
		snprintf(role, sizeof(role), "%s", d9_role_name(mt->role));
	snprintf(busy, sizeof(busy), "%s%s", mt->busy_at_most && mt->busy ? "<=" : "", share(mt->busy, mt->wall, b[0]));
	printf("  %8d  %-15.15s  %-9s %9s %7s %7s %8s %9s %12s %9zu", th->tid, th->name, role,
	       d9_format_duration(mt->wall, wall), busy, share(mt->parked, mt->wall, b[1]),
	       share(mt->blocked, mt->wall, b[2]), share(mt->runnable, mt->wall, b[3]),
	       share(mt->unexplained, mt->wall, b[4]), mt->polls.n);
	if (th->pending.unfinished && !d9_model_pending_parks(m, i))
		printf("  still in %s", m->t->hooks.v[m->t->sites.v[th->pending.site].hook].name);
	putchar('\n');
}

static const struct d9_model *order_model;

/* Those that did or waited for something first. */
static int busiest_first(const void *a, const void *b)
{
	const struct d9_model_thread *x = &order_model->threads[*(const d9_u32 *)a],
				     *y = &order_model->threads[*(const d9_u32 *)b];
	bool wx = x->role == D9_ROLE_WORKER, wy = y->role == D9_ROLE_WORKER;
	if (wx != wy)
		return wx ? -1 : 1;
	d9_u64 p = x->busy + x->blocked, q = y->busy + y->blocked;
	if (p != q)
		return p > q ? -1 : 1;
	return *(const d9_u32 *)a < *(const d9_u32 *)b ? -1 : 1;
}

static void command_line(const struct d9_trace_proc *p)
{
	const char *end = p->exe + p->exe_bytes, *arg = p->exe + strlen(p->exe) + 1;
	printf("%s", *p->exe ? p->exe : "(unknown program)");
	if (arg < end)
		arg += strlen(arg) + 1; /* argv[0] repeats the name */
	for (int n = 0; arg < end && n < 6; arg += strlen(arg) + 1, n++) {
		putchar(' ');
		printf("%.60s", arg);
	}
}

static void runtimes(const struct d9_model *m, d9_u32 proc)
{
	char a[32], b[32];
	size_t shown = 0;
	for (size_t i = 0; i < m->runtimes.n; i++) {
		const struct d9_runtime *r = &m->runtimes.v[i];
		if (r->proc != proc || shown++ >= RUNTIMES_MAX)
			continue;
		if (r->module)
			printf("  Tokio, module %u, ", r->module);
		d9_u32 number = r->module ? D9_RUNTIME_NUMBER(r->id) : r->id;
		if (r->module && !number) {
			printf("blocking pools: %llu jobs, %s in all (longest %s)\n", (unsigned long long)r->tasks,
			       d9_format_duration(r->poll_total, a), d9_format_duration(r->poll_max, b));
			continue;
		}
		printf("%sruntime %u: %llu workers, %llu tasks, %llu polls in %s (longest %s), %llu wakes\n",
		       r->module ? "" : "  ", number, (unsigned long long)r->workers, (unsigned long long)r->tasks,
		       (unsigned long long)r->polls, d9_format_duration(r->poll_total, a),
		       d9_format_duration(r->poll_max, b), (unsigned long long)r->wakes);
	}
	if (shown > RUNTIMES_MAX)
		printf("  and %zu more runtimes: --json\n", shown - RUNTIMES_MAX);
}

static void process(const struct d9_report *r, d9_u32 i)
{
	const struct d9_model *m = r->m;
	const struct d9_trace_proc *p = &m->t->procs.v[i];
	char end[24];
	d9_u64 code;
	printf("  pid %d  ", p->pid);
	command_line(p);
	const char *how = d9_report_end(p, end, &code);
	printf("  [%s", strcmp(how, "unknown") ? how : "end not seen");
	if (code != D9_NOT_KNOWN)
		printf(" %llu", (unsigned long long)code);
	printf("]\n");
	runtimes(m, i);
	if (d9_is_unhooked(m->t, i)) {
		printf("  not seen: %s\n", D9_UNHOOKED);
		return;
	}
	D9_VEC(d9_u32) list = {0};
	for (d9_u32 k = 0; k < m->t->threads.n; k++)
		if (m->t->threads.v[k].proc == i && m->t->threads.v[k].shown)
			d9_vec_push(&list, k);
	if (!list.n)
		return;
	order_model = m;
	qsort(list.v, list.n, sizeof(*list.v), busiest_first);
	printf("  %8s  %-15s  %-9s %9s %7s %7s %8s %9s %12s %9s\n", "tid", "thread", "role", "wall", "busy", "parked",
	       "blocked", "runnable", "unexplained", "polls");
	for (size_t k = 0; k < list.n && k < THREADS_MAX; k++)
		thread_line(m, list.v[k]);
	if (list.n > THREADS_MAX)
		printf("  %8s  and %zu more threads\n", "", list.n - THREADS_MAX);
	d9_vec_free(&list);
}

/* ---- findings ------------------------------------------------------------------------------------------- */

static void measured(const struct d9_finding *f)
{
	char buf[32];
	printf("      measured: ");
	for (size_t i = 0; i < f->measured.n; i++) {
		const struct d9_measured *v = &f->measured.v[i];
		size_t n = strlen(v->key);
		bool ns = n > 3 && !strcmp(v->key + n - 3, "_ns");
		printf("%s%.*s ", i ? ", " : "", (int)(ns ? n - 3 : n), v->key);
		if (v->is_real)
			printf("%.3g", v->real);
		else if (v->n == D9_NOT_KNOWN)
			printf("?");
		else if (ns)
			printf("%s", d9_format_duration(v->n, buf));
		else
			printf("%llu", (unsigned long long)v->n);
	}
	putchar('\n');
}

static void cause_stack(const struct d9_model *m, const struct d9_finding *f, bool stacks)
{
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	char line[512];
	d9_show_resolve(m->t, f->cause.proc, f->cause.stack, f->cause.ra, s);
	const char *whose = d9_show_whose(f->cause.stack, f->cause.own_stack, f->cause.ended);
	if (!stacks && s->n)
		printf("      where: %s%s\n", d9_show_headline(s, 3, line, sizeof(line)), whose);
	for (d9_u32 i = 0; stacks && i < s->n; i++)
		printf("      %s %s%s\n", i ? "      " : "where:", d9_show_frame(&s->frames[i], line, sizeof(line)),
		       i ? "" : whose);
	free(s);
}

/* The task that was polled meanwhile. */
static void polled_task(struct d9_model *m, const struct d9_finding *f)
{
	if (!f->spans.n)
		return;
	struct d9_ref_info r = d9_ref_info(m, f->spans.v[0]);
	const struct d9_rt_span *poll = d9_model_task_poll(m, f->spans.v[0].thread, r.t0, r.t1);
	if (!poll)
		return;
	d9_u32 proc = m->t->threads.v[f->spans.v[0].thread].proc;
	struct d9_bytes b = d9_model_task_name(m, proc, poll->module, poll->task);
	char key[D9_TASK_KEY_BYTES], *name = d9_clean_copy(b.p, b.n);
	printf("      task:  %s  %s\n", d9_task_key(m, proc, poll->module, poll->task, key), name);
	free(name);
}

static void victims(const struct d9_model *m, const struct d9_finding *f)
{
	char dur[32];
	if (!f->victims.n)
		return;
	printf("      victims: ");
	for (size_t i = 0; i < f->victims.n && i < 6; i++)
		printf("%s%s %d (%s)", i ? ", " : "", m->t->threads.v[f->victims.v[i].thread].name,
		       d9_show_tid(m, f->victims.v[i].thread), d9_format_duration(f->victims.v[i].waited, dur));
	if (f->victims.n > 6)
		printf(" and %zu more", f->victims.n - 6);
	putchar('\n');
}

static void finding(const struct d9_report *r, const struct paint *c, size_t i, bool stacks)
{
	const struct d9_finding *f = &r->findings.of.v[i];
	const char *colour = f->severity == D9_CRITICAL ? c->red : f->severity == D9_WARNING ? c->yellow : c->dim;
	printf("  %zu %s%-8s %s%s  %s\n", i + 1, colour, d9_severity_name(f->severity), f->id, c->off, f->title);
	d9_u64 ms = (f->from - r->m->t->t_begin) / 1000000;
	printf("      %s %llu.%03llu s", f->count > 1 ? "worst at" : "at", (unsigned long long)(ms / 1000),
	       (unsigned long long)(ms % 1000));
	if (f->count > 1)
		printf(", %llu in all", (unsigned long long)f->count);
	printf("%s\n", f->inferred ? "; inferred" : "");
	polled_task(r->m, f);
	cause_stack(r->m, f, stacks);
	victims(r->m, f);
	measured(f);
	for (size_t k = 0; k < 4 && f->try[k]; k++)
		printf("      %s %s\n", k ? "    " : "try:", f->try[k]);
}

/* ---- tables ---------------------------------------------------------------------------------------------- */

static void hist_line(const struct d9_hist *h, d9_u32 kind)
{
	char b[5][32];
	printf("  %-10s %10llu %10s %10s %10s %10s %10s\n", d9_kind_name(kind), (unsigned long long)h->count,
	       d9_format_duration(d9_hist_quantile(h, 0.5), b[0]), d9_format_duration(d9_hist_quantile(h, 0.9), b[1]),
	       d9_format_duration(d9_hist_quantile(h, 0.99), b[2]), d9_format_duration(h->max, b[3]),
	       d9_format_duration(h->total, b[4]));
}

static void locks(const struct d9_report *r, const struct paint *c)
{
	size_t n;
	char a[32], b[32];
	const struct d9_model *m = r->m;
	const struct d9_lock **v = d9_show_locks(m, &n);
	if (n)
		section(c, "Waited for (locks, conditions, semaphores; away from where threads park)");
	if (n)
		printf("  %-18s %-7s %8s %10s %10s  %s\n", "object", "kind", "waits", "total", "longest", "held by");
	for (size_t i = 0; i < n && i < LOCKS_MAX; i++) {
		const struct d9_lock *l = v[i];
		printf("  0x%-16llx %-7s %8llu %10s %10s  ", (unsigned long long)l->object, d9_kind_name(l->kind),
		       (unsigned long long)l->waits, d9_format_duration(l->total, a), d9_format_duration(l->max, b));
		for (size_t k = 0; k < l->holders.n && k < 4; k++)
			printf("%s%d", k ? " " : "", d9_show_tid(m, l->holders.v[k].thread));
		printf("%s%s",
		       !l->holders.n      ? "nobody seen"
		       : l->holders.n > 4 ? " ..."
					  : "",
		       l->pending.n ? "; waiting still:" : "");
		for (size_t k = 0; k < l->pending.n && k < 4; k++)
			printf(" %d", d9_show_tid(m, l->pending.v[k]));
		const char *name = d9_show_lock_name(m, l);
		printf("%s%s\n", name ? "  " : "", name ? name : "");
	}
	if (n > LOCKS_MAX)
		printf("  and %zu more: d9 locks\n", n - LOCKS_MAX);
	free(v);
}

static void calls(const struct d9_report *r, const struct paint *c)
{
	char a[32], b[32];
	if (!r->calls.n)
		return;
	section(c, "Calls");
	printf("  %-26s %-8s %10s %10s %10s %8s\n", "hook", "kind", "calls", "total", "longest", "errors");
	for (size_t i = 0; i < r->calls.n && i < CALLS_MAX; i++) {
		const struct d9_call_row *k = &r->calls.v[i];
		const struct d9_trace_hook *h = &r->m->t->hooks.v[k->hook];
		printf("  %-26s %-8s %10llu %10s %10s %8llu\n", h->name, d9_kind_name(h->kind),
		       (unsigned long long)k->count, d9_format_duration(k->total, a), d9_format_duration(k->max, b),
		       (unsigned long long)k->errors);
	}
	if (r->calls.n > CALLS_MAX)
		printf("  and %zu more kinds of calls\n", r->calls.n - CALLS_MAX);
}

static void honest(const struct d9_report *r, const struct paint *c)
{
	const struct d9_trace *t = r->m->t;
	if (r->dropped || t->torn_blocks) {
		section(c, "Lost");
		if (r->dropped > r->dropped_kernel)
			printf("  %llu events were not recorded for want of memory (D9_MEM_MB)\n",
			       (unsigned long long)(r->dropped - r->dropped_kernel));
		if (r->dropped_kernel)
			printf("  %llu events of the kernel's side were lost (raise d9-kernel's --runq-min and "
			       "--offcpu-min)\n",
			       (unsigned long long)r->dropped_kernel);
		if (t->torn_blocks)
			printf("  %llu blocks are damaged or unfinished\n", (unsigned long long)t->torn_blocks);
	}
	if (r->unseen.n)
		section(c, "Not seen");
	for (size_t i = 0; i < r->unseen.n; i++)
		printf("  %-10s %s\n", r->unseen.v[i].what, r->unseen.v[i].detail);
}

void d9_report_text(const struct d9_report *r, bool stacks)
{
	const struct d9_trace *t = r->m->t;
	struct paint c = paint_for(stdout);
	char start[40], dur[32];
	size_t n_procs = 0, n_threads = 0;
	for (size_t i = 0; i < t->procs.n; i++)
		n_procs += t->procs.v[i].shown;
	for (size_t i = 0; i < t->threads.n; i++)
		n_threads += t->threads.v[i].shown && t->threads.v[i].proc != D9_NO_INDEX;
	printf("%s%s%s  from %s, %s, %zu process%s, %zu thread%s\n", c.bold, t->session, c.off,
	       d9_report_start(t, start), d9_format_duration(t->to - t->from, dur), n_procs, n_procs == 1 ? "" : "es",
	       n_threads, n_threads == 1 ? "" : "s");
	section(&c, "Who ran");
	for (d9_u32 i = 0; i < t->procs.n; i++)
		if (t->procs.v[i].shown)
			process(r, i);
	section(&c, "Findings");
	if (!r->findings.of.n)
		printf("  none\n");
	for (size_t i = 0; i < r->findings.of.n; i++)
		finding(r, &c, i, stacks);
	section(&c, "How long");
	printf("  %-10s %10s %10s %10s %10s %10s %10s\n", "kind", "count", "p50", "p90", "p99", "longest", "total");
	for (d9_u32 k = 0; k < D9_N_KINDS; k++)
		if (r->hists[k].count)
			hist_line(&r->hists[k], k);
	if (r->n_worst)
		section(&c, "Longest, away from where threads park");
	for (size_t i = 0; i < r->n_worst; i++)
		d9_show_span_text(stdout, r->m, r->worst[i]);
	locks(r, &c);
	calls(r, &c);
	honest(r, &c);
}
