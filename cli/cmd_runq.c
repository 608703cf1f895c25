/*
 * d9 runq: how long threads that could run waited for a CPU, who had it meanwhile, and from whom their wake came: their waker, or whom an
 * interrupt came upon.
 */
#include "kernel_spans.h"
#include "kernel_who.h"
#include "show.h"

#include <errno.h>

#define WORST_DEFAULT 10
#define WHO_MAX 10

struct runq {
	const struct d9_model *m;
	struct d9_who who;
	struct d9_map tids; /* of the initial PID namespace -> thread */
	struct d9_ref *worst;
	size_t n_worst;
};

static bool is_told(const struct d9_model *m, d9_u32 i)
{
	const struct d9_kernel_side *k = &m->t->threads.v[i].kernel;
	return m->t->threads.v[i].shown && (k->runq.n || (k->sums && d9_model_is_whole(m)));
}

static void gather(struct runq *r, size_t worst)
{
	const struct d9_trace *t = r->m->t;
	d9_who_begin(&r->who, r->m, false);
	for (d9_u32 i = 0; i < t->threads.n; i++) {
		const struct d9_trace_thread *th = &t->threads.v[i];
		d9_map_put(&r->tids, (d9_u32)(th->kernel_tid ? th->kernel_tid : th->tid), i);
		for (size_t k = 0; k < th->kernel.runq.n && th->shown; k++)
			d9_who_add(&r->who, &th->kernel.runq.v[k]);
	}
	d9_who_finish(&r->who);
	r->n_worst = worst;
	r->worst = d9_show_longest(r->m, D9_KIND_RUNQ, 0, &r->n_worst);
}

static const char *how(const struct d9_runq *q)
{
	return q->flags & D9_RUNQ_PREEMPTED ? "preempted"
	       : q->flags & D9_RUNQ_NEW     ? "new"
	       : q->flags & D9_RUNQ_WOKEN   ? "woken"
					    : "unknown";
}

/* Name of a thread of the recording; NULL: it is somebody else's. */
static const char *name_of(const struct runq *r, d9_i32 tid)
{
	d9_u32 i = d9_map_get(&r->tids, (d9_u32)tid);
	return i == D9_MAP_EMPTY ? NULL : r->m->t->threads.v[i].name;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

static void thread_json(struct d9_json *j, const struct d9_model *m, d9_u32 i)
{
	const struct d9_kernel_side *k = &m->t->threads.v[i].kernel;
	struct d9_hist h = {0};
	d9_u64 watched = 0;
	d9_hist_thread(m, i, D9_KIND_RUNQ, &h);
	for (size_t w = 0; w < k->watched.n; w++)
		watched += k->watched.v[w].t1 - k->watched.v[w].t0;
	d9_json_object(j, NULL);
	d9_show_who_json(j, m, i);
	d9_json_u64(j, "count", h.count);
	d9_json_u64(j, "total_ns", h.total);
	d9_json_known(j, "max_ns", h.count ? h.max : D9_NOT_KNOWN);
	d9_json_known(j, "p50_ns", h.count ? d9_hist_quantile(&h, 0.5) : D9_NOT_KNOWN);
	d9_json_known(j, "p99_ns", h.count ? d9_hist_quantile(&h, 0.99) : D9_NOT_KNOWN);
	d9_json_known(j, "schedstat_ns", k->sums && d9_model_is_whole(m) ? k->sums->by_schedstat : D9_NOT_KNOWN);
	d9_json_u64(j, "watched_ns", watched);
	d9_json_str(j, "source", k->by_perf && !k->watched.n ? "perf" : "d9-kernel");
	d9_json_end_object(j);
	d9_hist_free(&h);
}

static void worst_json(struct d9_json *j, const struct runq *r, struct d9_ref ref)
{
	const struct d9_runq *q = &r->m->t->threads.v[ref.thread].kernel.runq.v[ref.index];
	d9_json_object(j, NULL);
	d9_show_who_json(j, r->m, ref.thread);
	d9_json_u64(j, "t_ns", q->t0);
	d9_json_u64(j, "dur_ns", q->t1 - q->t0);
	d9_json_str(j, "how", how(q));
	d9_json_u64(j, "cpu", q->cpu);
	d9_json_u64(j, "from_cpu", q->from_cpu);
	if (q->prev > 0) {
		d9_json_object(j, "had_cpu");
		d9_json_i64(j, "tid", q->prev);
		d9_json_i64(j, "pid", q->prev_pid);
		d9_json_str(j, "name", r->m->t->names.v[q->name]);
		d9_json_known(j, "for_ns", q->had ? q->had : D9_NOT_KNOWN);
		d9_json_end_object(j);
	} else {
		d9_json_null(j, "had_cpu");
	}
	if (q->waker > 0) {
		d9_json_object(j, "woken_by");
		d9_json_i64(j, "tid", q->waker);
		d9_json_str(j, "name", name_of(r, q->waker));
		d9_json_end_object(j);
	} else {
		d9_json_null(j, "woken_by");
	}
	d9_json_known(j, "waking_ns", q->waking ? q->waking : D9_NOT_KNOWN);
	d9_json_str(j, "source", q->flags & D9_KERNEL_BY_PERF ? "perf" : "d9-kernel");
	d9_json_end_object(j);
}

static int write_json(const struct runq *r)
{
	struct d9_json j;
	d9_json_document(&j, stdout, "runq");
	d9_json_array(&j, "threads");
	for (d9_u32 i = 0; i < r->m->t->threads.n; i++)
		if (is_told(r->m, i))
			thread_json(&j, r->m, i);
	d9_json_end_array(&j);
	d9_json_array(&j, "had_cpu");
	for (size_t i = 0; i < r->who.had.n; i++) {
		const struct d9_had_cpu *h = &r->who.had.v[i];
		d9_json_object(&j, NULL);
		d9_json_str(&j, "name", r->m->t->names.v[h->name]);
		d9_json_bool(&j, "own", h->own);
		d9_json_u64(&j, "count", h->count);
		d9_json_u64(&j, "total_ns", h->total);
		d9_json_end_object(&j);
	}
	d9_json_end_array(&j);
	d9_json_array(&j, "worst");
	for (size_t i = 0; i < r->n_worst; i++)
		worst_json(&j, r, r->worst[i]);
	d9_json_end_array(&j);
	return d9_json_end_document(&j);
}

/* ---- text ------------------------------------------------------------------------------------------------------------- */

static void threads_text(const struct d9_model *m)
{
	char b[4][32];
	printf("  %8s  %-15s %10s %10s %10s %10s %10s\n", "tid", "thread", "waits", "total", "p50", "p99", "longest");
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		struct d9_hist h = {0};
		if (!is_told(m, i))
			continue;
		d9_hist_thread(m, i, D9_KIND_RUNQ, &h);
		printf("  %8d  %-15.15s %10llu %10s %10s %10s %10s\n", d9_show_tid(m, i), m->t->threads.v[i].name,
		       (unsigned long long)h.count, d9_format_duration(h.total, b[0]),
		       d9_format_duration(d9_hist_quantile(&h, 0.5), b[1]),
		       d9_format_duration(d9_hist_quantile(&h, 0.99), b[2]), d9_format_duration(h.max, b[3]));
		d9_hist_free(&h);
	}
}

static void who_text(const struct runq *r)
{
	char a[32];
	if (!r->who.had.n)
		return;
	printf("\n  %10s %8s  who was seen to have the CPU, up to the end of the waits that were told one by one\n",
	       "total", "waits");
	for (size_t i = 0; i < r->who.had.n && i < WHO_MAX; i++) {
		const struct d9_had_cpu *h = &r->who.had.v[i];
		printf("  %10s %8llu  %s%s\n", d9_format_duration(h->total, a), (unsigned long long)h->count,
		       r->m->t->names.v[h->name], h->own ? " (of this recording)" : "");
	}
	if (r->who.had.n > WHO_MAX)
		printf("  and %zu more: --json\n", r->who.had.n - WHO_MAX);
}

static void worst_text(const struct runq *r)
{
	char a[32];
	if (r->n_worst)
		printf("\n  %10s  %14s %8s %-15s %-9s %4s  %s\n", "waited", "at", "tid", "thread", "how", "cpu",
		       "who had it, from whom the wake came");
	for (size_t i = 0; i < r->n_worst; i++) {
		d9_u32 thread = r->worst[i].thread;
		const struct d9_runq *q = &r->m->t->threads.v[thread].kernel.runq.v[r->worst[i].index];
		d9_show_when_text(r->m, thread, q->t0, q->t1 - q->t0);
		printf("%-9s %4u  ", how(q), q->cpu);
		if (q->prev > 0)
			printf("%s %d%s%s", r->m->t->names.v[q->name], q->prev, q->had ? " for " : "",
			       q->had ? d9_format_duration(q->had, a) : "");
		else
			printf("%s", q->prev ? "not seen" : "idle");
		const char *waker = q->waker > 0 ? name_of(r, q->waker) : NULL;
		if (q->waker > 0)
			printf("; wake from %s%s%d", waker ? waker : "", waker ? " " : "", q->waker);
		putchar('\n');
	}
}

/* ---- the command -------------------------------------------------------------------------------------------------------- */

static int write_runq(const struct d9_model *m, size_t worst, bool json)
{
	struct runq r = {.m = m};
	int failed = 0;
	gather(&r, worst);
	if (json) {
		failed = write_json(&r);
	} else {
		d9_show_by_perf(m);
		threads_text(m);
		who_text(&r);
		worst_text(&r);
	}
	d9_who_fini(&r.who);
	d9_map_free(&r.tids);
	free(r.worst);
	return failed < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno)) : D9_EXIT_OK;
}

int d9_cmd_runq(const struct d9_cmd *self, int argc, char **argv)
{
	return d9_cmd_of_kernel(self, argc, argv, WORST_DEFAULT, write_runq);
}
