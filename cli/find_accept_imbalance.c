/*
 * accept-imbalance: siblings (event loops with a descriptor of their own, parked at the same place in the
 * code) of which one accepts most connections.  Threads that share one epoll descriptor are no siblings in
 * this sense: their runtime spreads the work after the accept.  Nor are those whose connections one thread accepts to
 * hand them out (memcached): then the others move the bytes.
 */
#include "findings.h"

#define COUNT_MIN 64

struct sibling {
	d9_u32 thread;
	d9_u64 accepts, transfers;
};
struct family {
	D9_VEC(struct sibling) of;
	bool shared; /* two of one process on one descriptor */
};

#define ACCEPTS D9_KIND_BIT(D9_FAMILY_accept)
#define TRANSFERS                                                                                  \
	(D9_KIND_BIT(D9_FAMILY_recv) | D9_KIND_BIT(D9_FAMILY_send) | D9_KIND_BIT(D9_FAMILY_read) | \
	 D9_KIND_BIT(D9_FAMILY_write))

/* Calls of these kinds that did not fail, recorded or counted. */
static d9_u64 calls_of(const struct d9_model *m, d9_u32 thread, d9_u64 kinds)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u64 n = 0;
	for (size_t i = 0; i < th->calls.n; i++)
		if (kinds & D9_KIND_BIT(m->t->hooks.v[th->calls.v[i].hook].kind))
			n += th->calls.v[i].count - th->calls.v[i].errors;
	for (size_t i = 0; th->kinds & kinds && i < th->spans.n; i++)
		n += (kinds & D9_KIND_BIT(th->spans.v[i].kind)) && th->spans.v[i].result >= 0;
	return n;
}

static void add(struct d9_model *m, struct family *f, d9_u32 thread)
{
	for (size_t i = 0; i < f->of.n; i++) {
		d9_u32 o = f->of.v[i].thread;
		f->shared |= m->t->threads.v[o].proc == m->t->threads.v[thread].proc &&
			     m->threads[o].home_fd == m->threads[thread].home_fd;
	}
	d9_vec_push(&f->of, (struct sibling){thread, calls_of(m, thread, ACCEPTS), calls_of(m, thread, TRANSFERS)});
}

static void judge(struct d9_model *m, struct d9_findings *out, const struct family *fam)
{
	d9_u64 total = 0, transfers = 0;
	const struct sibling *top = &fam->of.v[0];
	for (size_t i = 0; i < fam->of.n; i++) {
		total += fam->of.v[i].accepts;
		transfers += fam->of.v[i].transfers;
		top = fam->of.v[i].accepts > top->accepts ? &fam->of.v[i] : top;
	}
	double share = total ? (double)top->accepts / (double)total : 0;
	if (fam->of.n < 2 || fam->shared || total < COUNT_MIN || share < (fam->of.n == 2 ? 0.9 : 0.7))
		return;
	d9_u64 by_others = transfers - top->transfers;
	if (by_others > top->transfers && by_others >= total)
		return;
	struct d9_finding *f = d9_finding_add(out, "accept-imbalance", top->thread);
	const struct d9_model_thread *mt = &m->threads[top->thread];
	char who[96];
	f->from = mt->begin;
	f->to = mt->end;
	f->count = top->accepts;
	f->harm = (d9_u64)((double)mt->busy * (share - 1.0 / (double)fam->of.n));
	d9_finding_title(f, "%s accepted %.0f %% of %llu connections; it has %zu siblings",
			 d9_show_thread(m, top->thread, who, sizeof(who)), share * 100, (unsigned long long)total,
			 fam->of.n - 1);
	f->cause.kind = d9_kind_name(D9_FAMILY_accept);
	f->cause.fd = mt->home_fd;
	d9_finding_real(f, "share", share);
	d9_finding_n(f, "count", total);
	f->try[0] = "Give each worker a listening socket of its own (SO_REUSEPORT).";
	f->try[1] = "Without that: accept one connection per wake-up, or wait with EPOLLEXCLUSIVE on one shared epoll "
		    "descriptor.";
}

void d9_find_accept_imbalance(struct d9_model *m, struct d9_findings *out)
{
	D9_VEC(struct family) all = {0};
	struct d9_map map = {0}; /* family and place -> all */
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_model_thread *mt = &m->threads[i];
		if (mt->role != D9_ROLE_WORKER || mt->home == D9_NO_INDEX || mt->home_fd < 0)
			continue;
		d9_u64 key = (d9_u64)m->t->threads.v[i].family << 48 ^ m->t->sites.v[mt->home].ra;
		d9_u32 k = d9_map_get(&map, key);
		if (k == D9_MAP_EMPTY) {
			k = (d9_u32)all.n;
			d9_vec_push(&all, (struct family){.shared = false});
			d9_map_put(&map, key, k);
		}
		add(m, &all.v[k], i);
	}
	for (size_t i = 0; i < all.n; i++) {
		judge(m, out, &all.v[i]);
		d9_vec_free(&all.v[i].of);
	}
	d9_vec_free(&all);
	d9_map_free(&map);
}
