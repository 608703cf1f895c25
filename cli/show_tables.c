/* Histograms and the lock table. */
#include "show.h"

void d9_show_hist_json(struct d9_json *j, const struct d9_hist *h, d9_u32 kind)
{
	d9_json_str(j, "kind", d9_kind_name(kind));
	d9_json_str(j, "unit", "ns");
	d9_show_hist_numbers_json(j, h);
}

void d9_show_hist_numbers_json(struct d9_json *j, const struct d9_hist *h)
{
	d9_json_u64(j, "count", h->count);
	d9_json_u64(j, "total_ns", h->total);
	d9_json_known(j, "min_ns", h->count ? h->min : D9_NOT_KNOWN);
	d9_json_known(j, "max_ns", h->count ? h->max : D9_NOT_KNOWN);
	d9_json_known(j, "p50_ns", h->count ? d9_hist_quantile(h, 0.5) : D9_NOT_KNOWN);
	d9_json_known(j, "p90_ns", h->count ? d9_hist_quantile(h, 0.9) : D9_NOT_KNOWN);
	d9_json_known(j, "p99_ns", h->count ? d9_hist_quantile(h, 0.99) : D9_NOT_KNOWN);
	d9_json_known(j, "p999_ns", h->count ? d9_hist_quantile(h, 0.999) : D9_NOT_KNOWN);
	d9_json_array(j, "buckets");
	for (unsigned k = 0; k < 64; k++) {
		d9_u64 n = d9_hist_bucket(h, k);
		if (!n)
			continue;
		d9_json_object(j, NULL);
		d9_json_u64(j, "lo", k ? 1ull << k : 0);
		d9_json_u64(j, "hi", k < 63 ? 2ull << k : ~0ull);
		d9_json_u64(j, "count", n);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

#define BAR 40

void d9_show_hist_bars(const struct d9_hist *h)
{
	char a[32], b[32];
	d9_u64 most = 1;
	for (unsigned k = 0; k < 64; k++)
		most = d9_hist_bucket(h, k) > most ? d9_hist_bucket(h, k) : most;
	unsigned first = 0, last = 63;
	while (first < 63 && !d9_hist_bucket(h, first))
		first++;
	while (last && !d9_hist_bucket(h, last))
		last--;
	for (unsigned k = first; k <= last; k++) {
		d9_u64 n = d9_hist_bucket(h, k);
		int stars = (int)((n * BAR + most - 1) / most);
		printf("  %9s .. %9s %10llu  %.*s\n", d9_format_duration(k ? 1ull << k : 0, a),
		       d9_format_duration(k < 63 ? 2ull << k : ~0ull, b), (unsigned long long)n, stars,
		       "########################################");
	}
}

/* ---- locks ----------------------------------------------------------------------------------------- */

static int worst_first(const void *a, const void *b)
{
	const struct d9_lock *x = *(const struct d9_lock *const *)a, *y = *(const struct d9_lock *const *)b;
	if ((x->pending.n > 0) != (y->pending.n > 0))
		return x->pending.n ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

const struct d9_lock **d9_show_locks(const struct d9_model *m, size_t *ret_n)
{
	const struct d9_lock **v = d9_must_alloc(m->locks.n + 1, sizeof(*v));
	size_t n = 0;
	for (size_t i = 0; i < m->locks.n; i++) {
		const struct d9_lock *l = &m->locks.v[i];
		bool shown = false;
		for (size_t k = 0; k < l->waiters.n; k++)
			shown |= m->t->threads.v[l->waiters.v[k].thread].shown;
		for (size_t k = 0; k < l->pending.n; k++)
			shown |= m->t->threads.v[l->pending.v[k]].shown;
		if (shown && (l->waits || l->pending.n))
			v[n++] = l;
	}
	qsort(v, n, sizeof(*v), worst_first);
	*ret_n = n;
	return v;
}

const char *d9_show_lock_name(const struct d9_model *m, const struct d9_lock *l)
{
	struct d9_maps maps = d9_trace_maps(m->t, l->proc);
	return maps.n ? d9_symbols_variable(m->t->symbols, &maps, l->object) : NULL;
}

const char *d9_show_known_by(enum d9_known_by by)
{
	static const char *const names[] = {"owner-word", "acquire", "wake"};
	return names[by];
}

static void span_stack_json(struct d9_json *j, const char *key, const struct d9_model *m, d9_u32 thread, d9_u32 span)
{
	struct d9_stack *st = d9_must_alloc(1, sizeof(*st));
	const struct d9_span *s = span == D9_NO_INDEX ? NULL : d9_model_span(m, thread, span);
	const struct d9_bytes *stack = s ? d9_show_span_stack(m->t, s) : NULL;
	d9_u64 ra = s ? m->t->sites.v[s->site].ra : 0;
	st->n = 0;
	if (s)
		d9_show_resolve(m->t, m->t->threads.v[thread].proc, stack, ra, st);
	d9_show_frames_json(j, key, st);
	free(st);
	d9_show_whose_json(j, stack, ra, s && s->stack);
}

static void holders_json(struct d9_json *j, const struct d9_model *m, const struct d9_lock *l)
{
	d9_json_array(j, "holders");
	for (size_t i = 0; i < l->holders.n; i++) {
		const struct d9_holder *h = &l->holders.v[i];
		d9_json_object(j, NULL);
		d9_json_i64(j, "tid", d9_show_tid(m, h->thread));
		d9_json_str(j, "known_by", d9_show_known_by(h->known_by));
		d9_json_u64(j, "total_ns", h->total);
		d9_json_array(j, "inside");
		for (size_t k = 0; k < h->inside.n; k++) {
			d9_json_object(j, NULL);
			d9_json_str(j, "hook", m->t->hooks.v[h->inside.v[k].hook].name);
			d9_json_u64(j, "total_ns", h->inside.v[k].total);
			d9_json_end_object(j);
		}
		d9_json_end_array(j);
		span_stack_json(j, "stack", m, h->thread, h->worst);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

static void lock_stack_json(struct d9_json *j, const struct d9_model *m, const struct d9_lock *l)
{
	if (l->waits) {
		span_stack_json(j, "stack", m, l->worst.thread, l->worst.span);
		return;
	}
	const struct d9_trace_thread *th = &m->t->threads.v[l->pending.v[0]];
	const struct d9_trace_site *site = &m->t->sites.v[th->pending.site];
	struct d9_stack *st = d9_must_alloc(1, sizeof(*st));
	d9_show_resolve(m->t, th->proc, &site->stack, site->ra, st);
	d9_show_frames_json(j, "stack", st);
	free(st);
	d9_show_whose_json(j, &site->stack, site->ra, site->stack.n && d9_model_pending_is_first(m, l->pending.v[0]));
}

static void lock_json(struct d9_json *j, const struct d9_model *m, const struct d9_lock *l)
{
	d9_json_object(j, NULL);
	d9_json_i64(j, "pid", l->proc == D9_NO_INDEX ? 0 : m->t->procs.v[l->proc].pid);
	d9_json_addr(j, "object", l->object);
	d9_json_str(j, "name", d9_show_lock_name(m, l));
	d9_json_str(j, "kind", d9_kind_name(l->kind));
	d9_json_u64(j, "waits", l->waits);
	d9_json_u64(j, "total_ns", l->total);
	d9_json_u64(j, "max_ns", l->max);
	d9_json_array(j, "waiters");
	for (size_t i = 0; i < l->waiters.n; i++) {
		d9_json_object(j, NULL);
		d9_json_i64(j, "tid", d9_show_tid(m, l->waiters.v[i].thread));
		d9_json_u64(j, "waits", l->waiters.v[i].waits);
		d9_json_u64(j, "total_ns", l->waiters.v[i].total);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
	holders_json(j, m, l);
	d9_json_array(j, "pending");
	for (size_t i = 0; i < l->pending.n; i++) {
		d9_json_object(j, NULL);
		d9_json_i64(j, "tid", d9_show_tid(m, l->pending.v[i]));
		d9_json_u64(j, "since_ns", m->t->threads.v[l->pending.v[i]].pending.since);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
	lock_stack_json(j, m, l);
	d9_json_end_object(j);
}

void d9_show_locks_json(struct d9_json *j, const struct d9_model *m)
{
	size_t n;
	const struct d9_lock **locks = d9_show_locks(m, &n);
	d9_json_array(j, "locks");
	for (size_t i = 0; i < n; i++)
		lock_json(j, m, locks[i]);
	d9_json_end_array(j);
	free(locks);
}
