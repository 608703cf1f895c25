/* Opening a session, and the questions that everybody asks about it. */
#include "trace_internal.h"

#include <errno.h>
#include <stdarg.h>

/* ---- memory that lives as long as the trace --------------------------------------------------- */

struct d9_trace_bump {
	struct d9_trace_bump *next;
	size_t used, size;
	_Alignas(8) unsigned char bytes[];
};
#define BUMP_BYTES (1u << 20)

void *d9_bump(struct d9_trace *t, size_t n)
{
	n = (n + 7) & ~(size_t)7;
	struct d9_trace_bump *b = t->bump;
	if (!b || b->size - b->used < n) {
		size_t size = n > BUMP_BYTES ? n : BUMP_BYTES;
		b = d9_must_resize(NULL, sizeof(*b) + size, 1);
		*b = (struct d9_trace_bump){.next = t->bump, .size = size};
		t->bump = b;
	}
	void *p = b->bytes + b->used;
	b->used += n;
	return p;
}

char *d9_bump_str(struct d9_trace *t, const void *s, size_t n)
{
	char *p = d9_bump(t, n + 1);
	if (n)
		memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

void d9_trace_warn(struct d9_trace *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) >= 0)
		d9_vec_push(&t->warnings, text);
	va_end(ap);
}

/* ---- which part was asked for ------------------------------------------------------------------- */

static void bounds(struct d9_trace *t)
{
	t->t_begin = D9_NOT_KNOWN;
	t->t_end = 0;
	for (size_t i = 0; i < t->threads.n; i++) {
		const struct d9_trace_thread *th = &t->threads.v[i];
		if (th->last && th->first < t->t_begin)
			t->t_begin = th->first;
		if (th->last > t->t_end)
			t->t_end = th->last;
	}
	for (size_t i = 0; i < t->procs.n; i++) {
		const struct d9_trace_proc *p = &t->procs.v[i];
		if (p->born && p->born < t->t_begin)
			t->t_begin = p->born;
		if (p->end_t > t->t_end)
			t->t_end = p->end_t;
	}
	if (t->t_begin == D9_NOT_KNOWN)
		t->t_begin = t->t_end;
	if (t->families.n)
		t->start_real = d9_clock_mono_to_real(&t->families.v[0].clock, t->t_begin);
}

static d9_u64 moment(const struct d9_trace *t, const struct d9_time *x, d9_u64 unset)
{
	switch (x->kind) {
	case D9_TIME_FROM_START:
		return t->t_begin + x->ns;
	case D9_TIME_BEFORE_END:
		return t->t_end > x->ns ? t->t_end - x->ns : 0;
	case D9_TIME_REAL:
		return x->ns > t->start_real && t->families.n ? d9_clock_real_to_mono(&t->families.v[0].clock, x->ns)
							      : t->t_begin;
	default:
		return unset;
	}
}

static void cut_thread(struct d9_trace_thread *th, d9_u64 from, d9_u64 to)
{
	size_t n = 0;
	for (size_t i = 0; i < th->spans.n; i++)
		if (th->spans.v[i].t1 >= from && th->spans.v[i].t0 <= to)
			th->spans.v[n++] = th->spans.v[i];
	th->spans.n = n;
	for (size_t i = n = 0; i < th->rt.n; i++)
		if (th->rt.v[i].t1 >= from && th->rt.v[i].t0 <= to)
			th->rt.v[n++] = th->rt.v[i];
	th->rt.n = n;
	for (size_t i = n = 0; i < th->events.n; i++)
		if (th->events.v[i].t >= from && th->events.v[i].t <= to)
			th->events.v[n++] = th->events.v[i];
	th->events.n = n;
	for (size_t i = n = 0; i < th->kernel.runq.n; i++)
		if (th->kernel.runq.v[i].t1 >= from && th->kernel.runq.v[i].t0 <= to)
			th->kernel.runq.v[n++] = th->kernel.runq.v[i];
	th->kernel.runq.n = n;
	for (size_t i = n = 0; i < th->kernel.offcpu.n; i++)
		if (th->kernel.offcpu.v[i].t1 >= from && th->kernel.offcpu.v[i].t0 <= to)
			th->kernel.offcpu.v[n++] = th->kernel.offcpu.v[i];
	th->kernel.offcpu.n = n;
	for (size_t i = n = 0; i < th->gaps.n; i++)
		if (th->gaps.v[i].t >= from && th->gaps.v[i].since <= to)
			th->gaps.v[n++] = th->gaps.v[i];
	th->gaps.n = n;
	if (th->pending.since > to || th->pending.t < from)
		th->pending = (struct d9_pending){0};
}

static void mark_shown(struct d9_trace *t, const struct d9_read_opts *o)
{
	for (size_t i = 0; i < t->procs.n; i++)
		t->procs.v[i].shown = o->pid < 0 || t->procs.v[i].pid == o->pid;
	char *end = NULL;
	long tid = o->thread ? strtol(o->thread, &end, 10) : 0;
	bool by_tid = o->thread && *o->thread && !*end;
	for (size_t i = 0; i < t->threads.n; i++) {
		struct d9_trace_thread *th = &t->threads.v[i];
		th->shown = th->proc == D9_NO_INDEX ? o->pid < 0 && !o->thread : t->procs.v[th->proc].shown;
		if (o->thread && (by_tid ? th->tid != tid : strcmp(th->name, o->thread) != 0))
			th->shown = false;
	}
}

static bool empty_window(const struct d9_trace *t, const struct d9_read_opts *o)
{
	return o->from.kind != D9_TIME_UNSET && o->to.kind != D9_TIME_UNSET &&
	       moment(t, &o->from, 0) > moment(t, &o->to, 0);
}

static void apply(struct d9_trace *t, const struct d9_read_opts *o)
{
	t->from = moment(t, &o->from, t->t_begin);
	t->to = moment(t, &o->to, t->t_end);
	if (t->from < t->t_begin)
		t->from = t->t_begin;
	if (t->to > t->t_end)
		t->to = t->t_end;
	if (t->to < t->from)
		t->to = t->from;
	if (t->from > t->t_begin || t->to < t->t_end)
		for (size_t i = 0; i < t->threads.n; i++)
			cut_thread(&t->threads.v[i], t->from, t->to);
	mark_shown(t, o);
}

/* ---- open and free --------------------------------------------------------------------------------- */

static void tell_warnings(const struct d9_trace *t)
{
	for (size_t i = 0; i < t->warnings.n; i++)
		d9_warn("%s", t->warnings.v[i]);
	if (t->torn_blocks)
		fprintf(stderr, "d9: %llu damaged or unfinished block%s left out; everything else was read\n",
			(unsigned long long)t->torn_blocks, t->torn_blocks == 1 ? " is" : "s are");
}

static int load(struct d9_trace *t, const struct d9_selection *sel)
{
	struct d9_loader *l = d9_loader_new(t);
	int error = 0;
	size_t good = 0;
	for (int kernel = 0; kernel < 2; kernel++)
		for (size_t i = 0; i < sel->folders.n; i++) {
			const struct d9_folder *f = &sel->folders.v[i];
			if (kernel ? !f->kernel.n : !d9_has_service(f))
				continue;
			int r = (kernel ? d9_open_kernel : d9_load_service)(l, f);
			error = r < 0 && !error ? r : error;
			good += r >= 0;
		}
	d9_load_kernel(l);
	if (good)
		d9_trace_finish(t);
	d9_loader_free(l);
	if (good && (t->records || !t->torn_blocks))
		return D9_EXIT_OK;
	if (error == -EACCES || error == -EPERM)
		return d9_fail(D9_EXIT_PERMISSION,
			       "no permission to read the recording %s; use the user that made it, or root",
			       sel->session);
	const char *why = t->warnings.n ? t->warnings.v[0] : "no segment of it could be read";
	return d9_fail(D9_EXIT_DATA, "no data in %s: %s", sel->session, why);
}

int d9_trace_open(const struct d9_read_opts *opts, struct d9_trace **ret)
{
	struct d9_selection sel;
	int r = d9_find_session(opts, &sel);
	if (r)
		return r;
	struct d9_trace *t = d9_must_alloc(1, sizeof(*t));
	t->session = strdup(sel.session);
	d9_vec_push(&t->tails, (struct d9_bytes){0});
	d9_vec_push(&t->names, "");
	t->symbols = d9_symbols_new();
	r = load(t, &sel);
	d9_selection_free(&sel);
	if (r) {
		d9_trace_free(t);
		return r;
	}
	tell_warnings(t);
	bounds(t);
	if (empty_window(t, opts)) {
		d9_trace_free(t);
		return d9_fail(D9_EXIT_USAGE, "--from lies after --to: an empty window");
	}
	apply(t, opts);
	*ret = t;
	return D9_EXIT_OK;
}

static void free_thread(struct d9_trace_thread *th)
{
	d9_vec_free(&th->spans);
	d9_vec_free(&th->cpu);
	d9_vec_free(&th->calls);
	d9_vec_free(&th->rt);
	d9_vec_free(&th->gaps);
	d9_vec_free(&th->held);
	d9_vec_free(&th->events);
	d9_vec_free(&th->kernel.runq);
	d9_vec_free(&th->kernel.offcpu);
	d9_vec_free(&th->kernel.watched);
}

static void free_family(struct d9_trace_family *f)
{
	for (size_t i = 0; i < f->readers.n; i++)
		d9_segr_close(f->readers.v[i]);
	for (size_t i = 0; i < f->memories.n; i++)
		free(f->memories.v[i]);
	d9_vec_free(&f->types);
	d9_vec_free(&f->switches);
	d9_vec_free(&f->readers);
	d9_vec_free(&f->memories);
	d9_map_free(&f->hooks);
	d9_map_free(&f->sites);
	d9_map_free(&f->threads);
	free(f->clock.v);
	free(f->folder);
}

void d9_trace_free(struct d9_trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->threads.n; i++)
		free_thread(&t->threads.v[i]);
	for (size_t i = 0; i < t->procs.n; i++) {
		free(t->procs.v[i].name);
		free(t->procs.v[i].maps);
	}
	for (size_t i = 0; i < t->families.n; i++)
		free_family(&t->families.v[i]);
	for (size_t i = 0; i < t->warnings.n; i++)
		free(t->warnings.v[i]);
	for (struct d9_trace_bump *b = t->bump, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	d9_vec_free(&t->families);
	d9_vec_free(&t->procs);
	d9_vec_free(&t->threads);
	d9_vec_free(&t->sites);
	d9_vec_free(&t->hooks);
	d9_vec_free(&t->modules);
	d9_vec_free(&t->tails);
	d9_vec_free(&t->infos);
	d9_vec_free(&t->names);
	d9_vec_free(&t->quotas);
	d9_vec_free(&t->warnings);
	d9_symbols_free(t->symbols);
	free(t->session);
	free(t);
}

/* ---- questions ----------------------------------------------------------------------------------- */

static bool explains(const struct d9_trace *t, const struct d9_trace_module *m, d9_u32 proc)
{
	for (d9_u32 p = proc, hops = 0; p != D9_NO_INDEX && hops < 64; p = t->procs.v[p].parent, hops++)
		if (m->proc == p)
			return true;
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct d9_mapping *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* A later mapping of the same addresses replaces an earlier one. */
static void make_maps(struct d9_trace *t, d9_u32 proc)
{
	struct d9_trace_proc *p = &t->procs.v[proc];
	p->maps = d9_must_alloc(t->modules.n + 1, sizeof(*p->maps));
	for (size_t i = 0; i < t->modules.n; i++) {
		const struct d9_trace_module *m = &t->modules.v[i];
		if (m->family != p->family || !explains(t, m, proc))
			continue;
		for (size_t k = 0; k < p->n_maps; k++)
			if (p->maps[k].start < m->map.end && m->map.start < p->maps[k].end)
				p->maps[k--] = p->maps[--p->n_maps];
		p->maps[p->n_maps++] = m->map;
	}
	qsort(p->maps, p->n_maps, sizeof(*p->maps), by_start);
}

struct d9_maps d9_trace_maps(struct d9_trace *t, d9_u32 proc)
{
	if (proc == D9_NO_INDEX)
		return (struct d9_maps){0};
	struct d9_trace_proc *p = &t->procs.v[proc];
	if (!p->maps)
		make_maps(t, proc);
	return (struct d9_maps){p->maps, p->n_maps, p->pid};
}

d9_u32 d9_trace_thread_of_tid(const struct d9_trace *t, d9_u32 proc, d9_u32 tid, d9_u64 t_ns)
{
	d9_u32 best = D9_NO_INDEX;
	for (d9_u32 i = 0; i < t->threads.n; i++) {
		const struct d9_trace_thread *th = &t->threads.v[i];
		if (th->proc != proc || (d9_u32)th->tid != tid)
			continue;
		if (best == D9_NO_INDEX || (th->first <= t_ns && th->first > t->threads.v[best].first))
			best = i;
	}
	return best;
}

d9_u32 d9_trace_hook_index(const struct d9_trace *t, d9_u32 family, d9_u32 id)
{
	return d9_map_get(&t->families.v[family].hooks, id);
}

d9_u32 d9_trace_site_index(const struct d9_trace *t, d9_u32 family, d9_u32 id)
{
	return d9_map_get(&t->families.v[family].sites, id);
}

d9_u32 d9_trace_thread_index(const struct d9_trace *t, d9_u32 family, d9_u32 id)
{
	return id == D9_THREAD_NONE ? D9_NO_INDEX : d9_map_get(&t->families.v[family].threads, id);
}

bool d9_trace_has_kernel(const struct d9_trace *t)
{
	for (size_t i = 0; i < t->families.n; i++)
		if (t->families.v[i].kernel)
			return true;
	return false;
}

bool d9_trace_has_helper(const struct d9_trace *t)
{
	for (size_t i = 0; i < t->families.n; i++)
		if (t->families.v[i].kernel && !t->families.v[i].by_perf)
			return true;
	return false;
}

bool d9_trace_shows_perf(const struct d9_trace *t)
{
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.v[i].shown && t->threads.v[i].kernel.by_perf)
			return true;
	return false;
}

const char *d9_trace_info(const struct d9_trace *t, const char *key)
{
	size_t n = strlen(key);
	for (size_t i = 0; i < t->infos.n; i++)
		if (!strncmp(t->infos.v[i], key, n) && t->infos.v[i][n] == '=')
			return t->infos.v[i] + n + 1;
	return NULL;
}

d9_u64 d9_trace_ns(const struct d9_trace *t, d9_u32 family, d9_u32 clock, d9_u64 ticks)
{
	size_t cursor = 0;
	return ticks ? d9_clock_to_mono(&t->families.v[family].clock, ticks << (clock & 63), &cursor) : 0;
}
