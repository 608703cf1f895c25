/* See kernel_groups.h. */
#include "kernel_groups.h"

d9_u64 d9_waited_by(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
	d9_u64 sum = 0;
	for (size_t i = 0; i < k->runq.n; i++)
		sum += k->runq.v[i].t1 - k->runq.v[i].t0;
	return k->sums && d9_model_is_whole(m) && k->sums->total > sum ? k->sums->total : sum;
}

static void add_thread(const struct d9_model *m, struct d9_wait_group *g, d9_u32 thread)
{
	d9_u64 waited = d9_waited_by(m, thread);
	g->waited += waited;
	g->ran += m->threads[thread].busy;
	d9_vec_push(&g->threads, thread);
	if (waited > g->most) {
		g->most = waited;
		g->threads.v[g->threads.n - 1] = g->threads.v[0];
		g->threads.v[0] = thread;
	}
}

d9_wait_groups d9_wait_groups_gather(const struct d9_model *m, d9_wait_key_fn *key_of)
{
	d9_wait_groups all = {0};
	struct d9_map index = {0}, procs = {0};
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->proc == D9_NO_INDEX || m->threads[i].role == D9_ROLE_RECORDER ||
		    (!th->kernel.watched.n && !th->kernel.by_perf))
			continue;
		d9_u64 key = key_of(m, i);
		if (key == D9_NOT_KNOWN)
			continue;
		d9_u32 k = d9_map_get(&index, key);
		if (k == D9_MAP_EMPTY) {
			k = (d9_u32)all.n;
			d9_vec_push(&all, (struct d9_wait_group){.proc = th->proc});
			d9_map_put(&index, key, k);
		}
		add_thread(m, &all.v[k], i);
		d9_u64 member = (d9_u64)k << 32 | th->proc;
		all.v[k].n_procs += d9_map_get(&procs, member) == D9_MAP_EMPTY;
		d9_map_put(&procs, member, 0);
	}
	d9_map_free(&index);
	d9_map_free(&procs);
	return all;
}

void d9_wait_groups_free(d9_wait_groups *all)
{
	for (size_t i = 0; i < all->n; i++)
		d9_vec_free(&all->v[i].threads);
	d9_vec_free(all);
}

const char *d9_wait_group_procs(const struct d9_model *m, const struct d9_wait_group *g, char *buf, size_t n)
{
	if (g->n_procs == 1)
		snprintf(buf, n, "pid %d", m->t->procs.v[g->proc].pid);
	else
		snprintf(buf, n, "%zu processes", g->n_procs);
	return buf;
}
