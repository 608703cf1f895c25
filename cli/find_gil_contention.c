/*
 * gil-contention: an event loop in Python has to win the interpreter's lock back after its waits, from a
 * thread that computes.  Each wait for it is claimed, whether or not they add up to a finding: the call in
 * which the loop sat is not to blame.
 */
#include "findings.h"

#define WAIT_MIN_NS 1000000u
#define COUNT_MIN 16

struct waits {
	struct d9_hist h;
	d9_u64 from, to;
	d9_u32 worst;
};

static void gather(struct d9_model *m, const struct d9_lock *l, d9_u32 thread, struct waits *w)
{
	*w = (struct waits){.from = D9_NOT_KNOWN, .worst = D9_NO_INDEX};
	for (size_t i = 0; i < l->wait.n; i++) {
		if (l->wait.v[i].thread != thread)
			continue;
		const struct d9_span *s = d9_model_span(m, thread, l->wait.v[i].span);
		d9_claim(m, thread, l->wait.v[i].span);
		if (d9_span_dur(s) < WAIT_MIN_NS)
			continue;
		if (d9_span_dur(s) >= w->h.max)
			w->worst = l->wait.v[i].span;
		d9_hist_add(&w->h, d9_span_dur(s));
		w->from = s->t0 < w->from ? s->t0 : w->from;
		w->to = s->t1 > w->to ? s->t1 : w->to;
	}
}

/* The thread that most often let the waiter have it. */
static d9_u32 hog_of(const struct d9_model *m, const struct d9_lock *l, d9_u32 thread)
{
	struct d9_map count = {0};
	d9_u32 best = D9_NO_INDEX, best_n = 0;
	for (size_t i = 0; i < l->wait.n; i++) {
		d9_u32 waker = d9_model_span(m, l->wait.v[i].thread, l->wait.v[i].span)->waker;
		if (l->wait.v[i].thread != thread || waker == D9_NO_INDEX)
			continue;
		d9_u32 n = d9_map_get(&count, waker);
		n = n == D9_MAP_EMPTY ? 1 : n + 1;
		d9_map_put(&count, waker, n);
		if (n > best_n) {
			best = waker;
			best_n = n;
		}
	}
	d9_map_free(&count);
	return best;
}

static void report(struct d9_model *m, struct d9_findings *out, const struct d9_lock *l, d9_u32 thread,
		   const struct waits *w)
{
	struct d9_finding *f = d9_finding_add(out, "gil-contention", thread);
	d9_u64 p50 = d9_hist_quantile(&w->h, 0.5);
	d9_u32 hog = hog_of(m, l, thread);
	char who[96], hog_name[96] = "another thread", dur[32];
	if (hog != D9_NO_INDEX)
		d9_show_thread(m, hog, hog_name, sizeof(hog_name));
	f->severity = d9_severity_of(w->h.total / 4);
	f->from = w->from;
	f->to = w->to;
	f->count = w->h.count;
	f->harm = w->h.total;
	d9_finding_title(f, "%s waited %llu times for the interpreter lock, %s each, while %s computed",
			 d9_show_thread(m, thread, who, sizeof(who)), (unsigned long long)w->h.count,
			 d9_format_duration(p50, dur), hog_name);
	d9_finding_cause(f, m, (struct d9_ref){thread, D9_REF_SPAN, w->worst});
	f->cause.owner_tid = hog == D9_NO_INDEX ? 0 : (d9_u32)d9_show_tid(m, hog);
	f->inferred = hog == D9_NO_INDEX;
	d9_finding_victim(f, thread, w->h.total);
	d9_finding_n(f, "wait_p50_ns", p50);
	d9_finding_n(f, "count", w->h.count);
	d9_finding_n(f, "total_ns", w->h.total);
	d9_finding_span(f, (struct d9_ref){thread, D9_REF_SPAN, w->worst});
	f->try[0] = "Move the computation to another process, or to code that releases the interpreter lock.";
	f->try[1] = "sys.setswitchinterval makes each wait shorter, at a price.";
}

void d9_find_gil_contention(struct d9_model *m, struct d9_findings *out)
{
	for (size_t i = 0; i < m->locks.n; i++) {
		const struct d9_lock *l = &m->locks.v[i];
		for (size_t k = 0; l->gil && k < l->waiters.n; k++) {
			d9_u32 thread = l->waiters.v[k].thread;
			struct waits w;
			gather(m, l, thread, &w);
			if (m->threads[thread].role == D9_ROLE_WORKER && w.h.count >= COUNT_MIN &&
			    w.h.total * 10 >= m->threads[thread].wall)
				report(m, out, l, thread, &w);
			d9_hist_free(&w.h);
		}
	}
}
