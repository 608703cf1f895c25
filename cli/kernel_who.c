/* See kernel_who.h. */
#include "kernel_who.h"

void d9_who_begin(struct d9_who *w, const struct d9_model *m, bool by_process)
{
	*w = (struct d9_who){.m = m, .by_process = by_process};
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->kernel_pid)
			d9_map_put(&w->own_pids, (d9_u32)th->kernel_pid, i);
		else if (th->proc != D9_NO_INDEX && th->kernel.watched.n)
			d9_map_put(&w->own_pids, (d9_u32)m->t->procs.v[th->proc].pid, i);
	}
}

void d9_who_add(struct d9_who *w, const struct d9_runq *q)
{
	if (q->prev <= 0)
		return;
	w->seen += q->had;
	bool own = d9_map_get(&w->own_pids, (d9_u32)q->prev_pid) != D9_MAP_EMPTY;
	w->own += own ? q->had : 0;
	d9_u64 key = w->by_process ? (d9_u32)q->prev_pid : (d9_u64)own << 32 | q->name;
	d9_u32 i = d9_map_get(&w->index, key);
	if (i == D9_MAP_EMPTY) {
		i = (d9_u32)w->had.n;
		d9_vec_push(&w->had, (struct d9_had_cpu){.name = q->name, .pid = q->prev_pid, .own = own});
		d9_map_put(&w->index, key, i);
	}
	struct d9_had_cpu *h = &w->had.v[i];
	h->count++;
	h->total += q->had;
	if (!h->most || q->had > h->most) {
		h->most = q->had;
		h->name = q->name;
		h->pid = q->prev_pid;
	}
}

static int longest_first(const void *a, const void *b)
{
	const struct d9_had_cpu *x = a, *y = b;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->name != y->name ? d9_by(x->name, y->name) : d9_by((d9_u32)x->pid, (d9_u32)y->pid);
}

void d9_who_finish(struct d9_who *w)
{
	if (w->had.n)
		qsort(w->had.v, w->had.n, sizeof(*w->had.v), longest_first);
}

void d9_who_fini(struct d9_who *w)
{
	d9_vec_free(&w->had);
	d9_map_free(&w->index);
	d9_map_free(&w->own_pids);
}

#define NAMED 3
#define WORTH_PERCENT 15 /* of what the first had */

const char *d9_who_names(const struct d9_who *w, char *buf, size_t n)
{
	size_t worth = 0, used = 0;
	d9_u32 of[NAMED]; /* several processes may have one name */
	for (size_t i = 0;
	     i < w->had.n && worth < NAMED && w->had.v[i].total / WORTH_PERCENT * 100 >= w->had.v[0].total; i++) {
		of[worth] = w->had.v[i].name;
		size_t k = 0;
		while (of[k] != of[worth])
			k++;
		worth += k == worth;
	}
	snprintf(buf, n, "nobody");
	for (size_t i = 0; i < worth && used < n; i++) {
		const char *name = w->m->t->names.v[of[i]];
		used += (size_t)snprintf(buf + used, n - used, "%s%s",
					 !i              ? ""
					 : i + 1 < worth ? ", "
							 : " and ",
					 *name ? name : "a thread without a name");
	}
	return buf;
}
