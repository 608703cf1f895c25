#include "hist.h"

static unsigned log2_of(d9_u64 ns) { return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0; }

static unsigned cell_of(d9_u64 ns)
{
	if (ns < 1u << D9_HIST_STEP_BITS)
		return (unsigned)ns;
	unsigned shift = log2_of(ns) - D9_HIST_STEP_BITS;
	return ((shift + 1) << D9_HIST_STEP_BITS) + (unsigned)(ns >> shift & ((1u << D9_HIST_STEP_BITS) - 1));
}

static d9_u64 cell_start(unsigned cell)
{
	unsigned shift = cell >> D9_HIST_STEP_BITS, low = cell & ((1u << D9_HIST_STEP_BITS) - 1);
	return shift ? (d9_u64)(low | 1u << D9_HIST_STEP_BITS) << (shift - 1) : low;
}

/* n values around ns, which are `total` in all. */
static void add_many(struct d9_hist *h, d9_u64 ns, d9_u64 n, d9_u64 total)
{
	if (!h->cell) {
		h->cell = d9_must_alloc(D9_HIST_CELLS, sizeof(*h->cell));
		h->min = ns;
	}
	h->cell[cell_of(ns)] += n;
	h->count += n;
	h->total += total;
	h->min = ns < h->min ? ns : h->min;
	h->max = ns > h->max ? ns : h->max;
}

void d9_hist_add(struct d9_hist *h, d9_u64 ns) { add_many(h, ns, 1, ns); }

void d9_hist_free(struct d9_hist *h)
{
	free(h->cell);
	*h = (struct d9_hist){0};
}

d9_u64 d9_hist_quantile(const struct d9_hist *h, double q)
{
	d9_u64 rank = (d9_u64)(q * (double)h->count), seen = 0;
	if (!h->count)
		return 0;
	rank = rank < h->count ? rank : h->count - 1;
	for (unsigned i = 0; i < D9_HIST_CELLS; i++) {
		seen += h->cell[i];
		if (seen <= rank)
			continue;
		d9_u64 v = cell_start(i) + (cell_start(i + 1) - cell_start(i)) / 2;
		return v < h->min ? h->min : v > h->max ? h->max : v;
	}
	return h->max;
}

d9_u64 d9_hist_bucket(const struct d9_hist *h, unsigned k)
{
	if (!h->cell)
		return 0;
	d9_u64 n = k == 0 ? h->cell[0] : 0;
	for (unsigned i = cell_of(1ull << k); i < D9_HIST_CELLS && cell_start(i) >> k == 1; i++)
		n += h->cell[i];
	return n;
}

/* ---- what belongs to a kind ------------------------------------------------------------------------ */

static bool has_polls(const struct d9_model *m, d9_u32 thread) { return m->threads[thread].role == D9_ROLE_WORKER; }

/*
 * Waits for a CPU, those too short to be told of as well, where the recording is read as a whole: of these only the power of two is known.
 */
static void add_runq(const struct d9_model *m, d9_u32 thread, struct d9_hist *h)
{
	const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
	d9_u64 told[D9_WAIT_BUCKETS] = {0}, total = 0;
	for (size_t i = 0; i < k->runq.n; i++) {
		d9_u64 ns = k->runq.v[i].t1 - k->runq.v[i].t0;
		d9_hist_add(h, ns);
		told[log2_of(ns)]++;
		total += ns;
	}
	if (!k->sums || !d9_model_is_whole(m))
		return;
	d9_u64 rest = k->sums->total > total ? k->sums->total - total : 0;
	for (unsigned i = 0; i < D9_WAIT_BUCKETS; i++) {
		d9_u64 n = k->sums->buckets[i];
		if (n <= told[i])
			continue;
		add_many(h, (1ull << i) + (1ull << i) / 2, n - told[i], rest);
		rest = 0;
	}
}

static void add_derived(const struct d9_model *m, d9_u32 thread, d9_u32 kind, struct d9_hist *h)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	if (kind == D9_KIND_PARK)
		for (size_t i = 0; i < mt->parks.n; i++)
			d9_hist_add(h, mt->parks.v[i].t1 - mt->parks.v[i].t0);
	if (kind == D9_KIND_QUEUE)
		for (size_t i = 0; i < mt->queued.n; i++)
			d9_hist_add(h, mt->queued.v[i].t1 - mt->queued.v[i].t0);
	if (kind == D9_KIND_RUNQ)
		add_runq(m, thread, h);
	if (kind == D9_KIND_OFFCPU) {
		const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
		for (size_t i = 0; i < k->offcpu.n; i++)
			d9_hist_add(h, k->offcpu.v[i].t1 - k->offcpu.v[i].t0);
	}
	if (kind == D9_KIND_POLL_SPAN && has_polls(m, thread))
		for (size_t i = 0; i < mt->polls.n; i++)
			d9_hist_add(h, mt->polls.v[i].t1 - mt->polls.v[i].t0);
}

void d9_hist_thread(const struct d9_model *m, d9_u32 thread, d9_u32 kind, struct d9_hist *h)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	if (kind >= D9_N_FAMILIES && kind != D9_KIND_WAKE) {
		add_derived(m, thread, kind, h);
		return;
	}
	for (size_t i = 0; i < th->spans.n; i++) {
		const struct d9_span *s = &th->spans.v[i];
		if (s->kind == kind)
			d9_hist_add(h, d9_span_dur(s));
		else if (kind == D9_KIND_WAKE && d9_span_has_wake(s))
			d9_hist_add(h, s->t1 - s->waker_t);
	}
}

void d9_hist_all(const struct d9_model *m, struct d9_hist h[D9_N_KINDS])
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (!th->shown)
			continue;
		for (size_t k = 0; k < th->spans.n; k++) {
			const struct d9_span *s = &th->spans.v[k];
			d9_hist_add(&h[s->kind], d9_span_dur(s));
			if (d9_span_has_wake(s))
				d9_hist_add(&h[D9_KIND_WAKE], s->t1 - s->waker_t);
		}
		add_derived(m, i, D9_KIND_PARK, &h[D9_KIND_PARK]);
		add_derived(m, i, D9_KIND_POLL_SPAN, &h[D9_KIND_POLL_SPAN]);
		add_derived(m, i, D9_KIND_QUEUE, &h[D9_KIND_QUEUE]);
		add_derived(m, i, D9_KIND_RUNQ, &h[D9_KIND_RUNQ]);
		add_derived(m, i, D9_KIND_OFFCPU, &h[D9_KIND_OFFCPU]);
	}
}
