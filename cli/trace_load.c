/*
 * Segments to arrays.  Each folder is one family: its ids (threads, processes, sites, hooks) become
 * indices of the session as they are met.  While segments are being read times stay raw (cycles of the
 * family's clock); trace_finish.c turns them into ns when all readings of the clock are known.
 */
#include "clean.h"
#include "trace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LAST_SITES 64

/* One of the kernel's side, until it is taken. */
struct kernel_file {
	struct d9_segr *r;
	const struct d9_folder *folder;
};
struct d9_loader {
	struct d9_trace *t;
	d9_u32 family;
	D9_VEC(struct kernel_file) kernel;
	struct d9_map procs, modules; /* ids of this family -> indices */
	struct d9_map hook_names;     /* hash of family and name -> index, over the session */
	struct d9_map drained;        /* thread, serial -> bytes in segments */
	struct d9_map places;         /* hash of what a site is -> index, of this family */
	d9_u32 last_id, last_index;   /* thread of the run before */
	struct {
		d9_u32 id, index;
	} last_sites[LAST_SITES]; /* by id: spans come from few places */
};

struct d9_loader *d9_loader_new(struct d9_trace *t)
{
	struct d9_loader *l = d9_must_alloc(1, sizeof(*l));
	l->t = t;
	return l;
}

static void forget_family(struct d9_loader *l)
{
	d9_map_free(&l->procs);
	d9_map_free(&l->modules);
	d9_map_free(&l->drained);
	d9_map_free(&l->places);
	l->last_id = l->last_index = D9_NO_INDEX;
	memset(l->last_sites, 0xff, sizeof(l->last_sites));
}

void d9_loader_free(struct d9_loader *l)
{
	if (!l)
		return;
	forget_family(l);
	d9_map_free(&l->hook_names);
	d9_vec_free(&l->kernel);
	free(l);
}

static d9_u64 raw(d9_u32 clock, d9_u64 ticks) { return ticks << (clock & 63); }

/* ---- ids to indices ---------------------------------------------------------------------------- */

static d9_u32 proc_index(struct d9_loader *l, d9_u32 id)
{
	d9_u32 i = id == D9_NO_INDEX ? D9_NO_INDEX : d9_map_get(&l->procs, id);
	if (i != D9_NO_INDEX || id == D9_NO_INDEX)
		return i;
	d9_vec_push(&l->t->procs,
		    (struct d9_trace_proc){
			    .became = D9_NO_INDEX, .id = id, .family = l->family, .parent = D9_NO_INDEX, .exe = ""});
	i = (d9_u32)l->t->procs.n - 1;
	d9_map_put(&l->procs, id, i);
	return i;
}

static d9_u32 thread_index(struct d9_loader *l, d9_u32 id)
{
	if (id == l->last_id && l->last_index != D9_NO_INDEX)
		return l->last_index;
	struct d9_map *threads = &l->t->families.v[l->family].threads;
	d9_u32 i = d9_map_get(threads, id);
	if (i == D9_NO_INDEX) {
		d9_vec_push(&l->t->threads, (struct d9_trace_thread){.id = id,
								     .family = l->family,
								     .proc = D9_NO_INDEX,
								     .name = id == D9_THREAD_NONE ? "(recorder)" : "",
								     .role = id == D9_THREAD_NONE ? 2 : 0});
		i = (d9_u32)l->t->threads.n - 1;
		d9_map_put(threads, id, i);
	}
	l->last_id = id;
	l->last_index = i;
	return i;
}

/* Valid until the next thread is met. */
static struct d9_trace_thread *thread_at(struct d9_loader *l, d9_u32 id)
{
	d9_u32 i = thread_index(l, id);
	return &l->t->threads.v[i];
}

static d9_u32 hook_named(struct d9_loader *l, const char *family, const char *name, d9_u32 flags)
{
	d9_u64 key = d9_map_bytes(d9_map_bytes(D9_MAP_NO_BYTES, family, strlen(family) + 1), name, strlen(name));
	d9_u32 i = d9_map_get(&l->hook_names, key);
	if (i != D9_NO_INDEX)
		return i;
	int kind = d9_kind_find(family);
	d9_vec_push(&l->t->hooks,
		    (struct d9_trace_hook){.name = d9_bump_str(l->t, name, strlen(name)),
					   .kind = kind < 0 || kind >= D9_N_FAMILIES ? D9_KIND_OTHER : (d9_u32)kind,
					   .flags = flags});
	i = (d9_u32)l->t->hooks.n - 1;
	d9_map_put(&l->hook_names, key, i);
	return i;
}

static d9_u32 hook_index(struct d9_loader *l, d9_u32 id)
{
	d9_u32 i = d9_map_get(&l->t->families.v[l->family].hooks, id);
	if (i != D9_NO_INDEX)
		return i;
	char name[24];
	snprintf(name, sizeof(name), "hook %u", id);
	i = hook_named(l, "other", name, 0);
	d9_map_put(&l->t->families.v[l->family].hooks, id, i);
	return i;
}

/* A number below D9_SITE_FIRST is a hook whose caller is not known. */
static d9_u32 find_site(struct d9_loader *l, d9_u32 id)
{
	d9_u32 i = d9_map_get(&l->t->families.v[l->family].sites, id);
	if (i != D9_NO_INDEX)
		return i;
	d9_u32 hook = hook_index(l, id < D9_SITE_FIRST ? id : 0);
	d9_vec_push(&l->t->sites,
		    (struct d9_trace_site){.hook = hook, .proc = D9_NO_INDEX, .kind = l->t->hooks.v[hook].kind});
	i = (d9_u32)l->t->sites.n - 1;
	d9_map_put(&l->t->families.v[l->family].sites, id, i);
	return i;
}

static d9_u32 site_index(struct d9_loader *l, d9_u32 id)
{
	/* Any number may stand in a record, also the one that says that a place here is free. */
	if (l->last_sites[id % LAST_SITES].id != id || l->last_sites[id % LAST_SITES].index == D9_NO_INDEX) {
		l->last_sites[id % LAST_SITES].index = find_site(l, id);
		l->last_sites[id % LAST_SITES].id = id;
	}
	return l->last_sites[id % LAST_SITES].index;
}

/* ---- META ---------------------------------------------------------------------------------------- */

static const char *tail_str(struct d9_loader *l, const struct d9_bytes *b, size_t *n)
{
	*n = b->n;
	return d9_clean(d9_bump_str(l->t, b->p, b->n), b->n);
}

static void take_proc(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_proc *e = (const void *)ev->rec;
	d9_u32 i = proc_index(l, e->id);
	if (l->t->procs.v[i].generation && e->generation && l->t->procs.v[i].generation != e->generation) {
		/* the place in the table has a new tenant */
		d9_vec_push(&l->t->procs,
			    (struct d9_trace_proc){.became = D9_NO_INDEX, .id = e->id, .family = l->family, .exe = ""});
		i = (d9_u32)l->t->procs.n - 1;
		d9_map_put(&l->procs, e->id, i);
	}
	d9_u32 parent = proc_index(l, e->parent);
	struct d9_trace_proc *p = &l->t->procs.v[i];
	bool first = !p->generation && !p->pid;
	p->generation = e->generation;
	p->start = e->start;
	p->born = raw(ev->clock, e->born);
	p->parent = parent == i ? D9_NO_INDEX : parent;
	p->pid = e->pid;
	p->ppid = e->ppid;
	p->uid = e->uid;
	p->flags = e->flags;
	if (first || ev->tail.n > p->exe_bytes)
		p->exe = tail_str(l, &ev->tail, &p->exe_bytes);
}

/* A program names its threads as it likes, and names end up on terminals. */
static const char *clean_name(struct d9_loader *l, const char *had, const struct d9_bytes *b)
{
	char name[64];
	size_t n = 0;
	for (; n < b->n && n + 1 < sizeof(name) && b->p[n]; n++)
		name[n] = (char)b->p[n];
	name[n] = '\0';
	d9_clean(name, n);
	return strcmp(had, name) ? d9_bump_str(l->t, name, n) : had;
}

static void take_thread(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_thread *e = (const void *)ev->rec;
	d9_u32 proc = proc_index(l, e->proc);
	struct d9_trace_thread *t = thread_at(l, e->id);
	t->proc = proc;
	t->tid = e->tid;
	t->role = e->role;
	t->born = raw(ev->clock, e->born);
	t->name = clean_name(l, t->name, &ev->tail);
}

/* It may come before or after the thread itself. */
static void take_kernel_thread(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_kernel_thread *e = (const void *)ev->rec;
	struct d9_trace_thread *t = thread_at(l, e->id);
	t->kernel_tid = e->tid;
	t->kernel_pid = e->pid;
}

static void take_module(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_module *e = (const void *)ev->rec;
	d9_u32 proc = proc_index(l, e->proc), i = d9_map_get(&l->modules, e->id);
	if (i == D9_NO_INDEX) {
		size_t n;
		const char *id = tail_str(l, &ev->tail, &n), *path = id + strlen(id) + (strlen(id) < n);
		d9_vec_push(&l->t->modules, (struct d9_trace_module){.map = {e->start, e->end, e->offset, path, id},
								     .id = e->id,
								     .family = l->family,
								     .proc = proc,
								     .from = raw(ev->clock, e->from)});
		i = (d9_u32)l->t->modules.n - 1;
		d9_map_put(&l->modules, e->id, i);
	}
	l->t->modules.v[i].until = e->until ? raw(ev->clock, e->until) : 0;
}

static void take_hook(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_hook *e = (const void *)ev->rec;
	if (d9_map_get(&l->t->families.v[l->family].hooks, e->id) != D9_NO_INDEX)
		return;
	size_t n;
	const char *family = tail_str(l, &ev->tail, &n), *name = family + strlen(family) + (strlen(family) < n);
	d9_map_put(&l->t->families.v[l->family].hooks, e->id, hook_named(l, family, name, e->flags));
}

/*
 * Two threads that come to a place for the first time in the same moment give it a number each: the second becomes the first's.  Not those
 * of task dumps, which are told apart by what lies further up.
 */
static void join_sites(struct d9_loader *l, const struct d9_ev_site *e, d9_u32 hook, d9_u32 proc)
{
	if (!e->ra || !e->depth || !strcmp(l->t->hooks.v[hook].name, "task_dump"))
		return;
	d9_u64 key = (e->ra ^ (d9_u64)e->depth << 40) * 31 + ((d9_u64)hook << 32 | proc);
	d9_u32 first = d9_map_get(&l->places, key);
	const struct d9_trace_site *s = first == D9_MAP_EMPTY ? NULL : &l->t->sites.v[first];
	if (s && s->ra == e->ra && s->depth == e->depth && s->hook == hook && s->proc == proc)
		d9_map_put(&l->t->families.v[l->family].sites, e->id, first);
	else
		d9_map_put(&l->places, key, site_index(l, e->id));
}

static void take_site(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_site *e = (const void *)ev->rec;
	d9_u32 hook = hook_index(l, e->hook), proc = proc_index(l, e->proc);
	if (d9_map_get(&l->t->families.v[l->family].sites, e->id) == D9_MAP_EMPTY)
		join_sites(l, e, hook, proc);
	d9_u32 i = site_index(l, e->id);
	struct d9_trace_site *s = &l->t->sites.v[i];
	*s = (struct d9_trace_site){.ra = e->ra,
				    .hook = hook,
				    .depth = e->depth,
				    .proc = proc,
				    .kind = l->t->hooks.v[hook].kind,
				    .stack = ev->tail.n ? ev->tail : s->stack};
}

static void take_info(struct d9_loader *l, const struct d9_segr_event *ev)
{
	size_t n;
	const char *text = tail_str(l, &ev->tail, &n);
	if (!strncmp(text, "tsc_hz=", 7))
		l->t->families.v[l->family].clock.hz = strtod(text + 7, NULL);
	for (size_t i = 0; i < l->t->infos.n; i++)
		if (!strcmp(l->t->infos.v[i], text))
			return;
	d9_vec_push(&l->t->infos, text);
}

static void take_clock(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_clock *e = (const void *)ev->rec;
	d9_clock_add(&l->t->families.v[l->family].clock, e->tsc, e->mono, e->real);
}

static void take_custom_type(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_custom_type *e = (const void *)ev->rec;
	struct d9_trace_family *f = &l->t->families.v[l->family];
	for (size_t i = 0; i < f->types.n; i++) /* every segment says it again */
		if (f->types.v[i].id == e->id)
			return;
	size_t n;
	const char *name = tail_str(l, &ev->tail, &n), *fields = name + strlen(name) + (strlen(name) < n);
	d9_vec_push(&f->types, (struct d9_trace_type){e->id, name, fields});
}

/* ---- events of a thread ----------------------------------------------------------------------- */

static d9_u32 tail_index(struct d9_trace *t, const struct d9_bytes *b)
{
	if (!b->n)
		return 0;
	d9_vec_push(&t->tails, *b);
	return (d9_u32)t->tails.n - 1;
}

static void take_span(struct d9_loader *l, const struct d9_segr_event *ev)
{
	const struct d9_ev_span *e = (const void *)ev->rec;
	d9_u32 site = site_index(l, e->rec.site);
	const struct d9_trace_site *s = &l->t->sites.v[site];
	d9_u32 waker = e->waker == D9_THREAD_NONE || !e->waker_t ? D9_NO_INDEX : thread_index(l, e->waker);
	struct d9_trace_thread *th = thread_at(l, ev->run.thread);
	d9_vec_room(&th->spans);
	th->spans.v[th->spans.n++] = (struct d9_span){
		.t0 = raw(ev->clock, e->dur < e->rec.t ? e->rec.t - e->dur : 0),
		.t1 = raw(ev->clock, e->rec.t),
		.object = e->object,
		.waker_t = waker == D9_NO_INDEX ? 0 : raw(ev->clock, e->waker_t),
		.result = e->result,
		.fd = e->fd,
		.site = site,
		.waker = waker,
		.owner = e->owner,
		.stack = tail_index(l->t, &ev->tail),
		.hook = (d9_u16)s->hook,
		.kind = (d9_u8)s->kind,
	};
}

static void take_calls(struct d9_loader *l, struct d9_trace_thread *th, const struct d9_segr_event *ev)
{
	const struct d9_ev_calls *e = (const void *)ev->rec;
	d9_u32 hook = hook_index(l, e->hook);
	struct d9_calls c = {e->count, raw(ev->clock, e->total), raw(ev->clock, e->max), hook, e->errors};
	for (size_t i = 0; i < th->calls.n; i++)
		if (th->calls.v[i].hook == hook) {
			if (c.count >= th->calls.v[i].count)
				th->calls.v[i] = c;
			return;
		}
	d9_vec_push(&th->calls, c);
}

static void take_held(struct d9_trace_thread *th, const struct d9_segr_event *ev)
{
	const struct d9_ev_held *e = (const void *)ev->rec;
	struct d9_held_object h = {e->object, raw(ev->clock, e->since), raw(ev->clock, e->rec.t)};
	for (size_t i = 0; i < th->held.n; i++)
		if (th->held.v[i].object == h.object) {
			th->held.v[i] = h;
			return;
		}
	d9_vec_push(&th->held, h);
}

static void take_rt(struct d9_trace_thread *th, const struct d9_segr_event *ev)
{
	struct d9_rt_span s = {.t1 = raw(ev->clock, ev->rec->t), .park = ev->id == D9_EV_park, .outcome = D9_NO_INDEX};
	d9_u64 dur;
	if (s.park) {
		const struct d9_ev_park *e = (const void *)ev->rec;
		dur = e->dur, s.runtime = e->runtime, s.worker = e->worker;
	} else {
		const struct d9_ev_poll *e = (const void *)ev->rec;
		dur = e->dur, s.runtime = e->runtime, s.worker = e->worker, s.task = e->task, s.outcome = e->outcome;
		s.module = e->module;
	}
	s.t0 = raw(ev->clock, dur < ev->rec->t ? ev->rec->t - dur : 0);
	d9_vec_push(&th->rt, s);
}

static void take_exit(struct d9_loader *l, struct d9_trace_thread *th, const struct d9_segr_event *ev)
{
	const struct d9_ev_exit *e = (const void *)ev->rec;
	d9_u32 proc = th->proc;
	if (proc == D9_NO_INDEX && l->procs.n == 1)
		for (size_t i = 0; i < l->procs.cap; i++)
			if (l->procs.v[i].value != D9_MAP_EMPTY)
				proc = l->procs.v[i].value;
	if (proc == D9_NO_INDEX)
		return;
	struct d9_trace_proc *p = &l->t->procs.v[proc];
	if (p->end_how && e->how == 5)
		return; /* "gone" says less than what the process itself said */
	p->end_how = e->how;
	p->end_code = e->code;
	p->end_t = raw(ev->clock, e->rec.t);
}

static void keep(struct d9_loader *l, struct d9_trace_thread *th, const struct d9_segr_event *ev)
{
	size_t n = d9_events[ev->id].size;
	struct d9_rec *copy = d9_bump(l->t, n);
	memcpy(copy, ev->rec, n);
	d9_vec_push(&th->events, (struct d9_trace_event){.t = raw(ev->clock, ev->rec->t),
							 .rec = copy,
							 .tail = ev->tail,
							 .clock = ev->clock,
							 .family = l->family,
							 .id = ev->id,
							 .seq = (d9_u32)th->events.n});
}

static void take_other(struct d9_loader *l, struct d9_trace_thread *th, const struct d9_segr_event *ev)
{
	const struct d9_rec *rec = ev->rec;
	switch (ev->id) {
	case D9_EV_pending: {
		const struct d9_ev_pending *e = (const void *)rec;
		th->pending = (struct d9_pending){.t = raw(ev->clock, rec->t),
						  .since = raw(ev->clock, e->since),
						  .object = e->object,
						  .fd = e->fd,
						  .owner = e->owner,
						  .site = site_index(l, rec->site)};
		break;
	}
	case D9_EV_in_poll: {
		const struct d9_ev_in_poll *e = (const void *)rec;
		th->in_poll = (struct d9_rt_span){.t0 = raw(ev->clock, e->since),
						  .t1 = raw(ev->clock, rec->t),
						  .task = e->task,
						  .module = e->module,
						  .runtime = e->runtime,
						  .worker = e->worker,
						  .outcome = D9_NO_INDEX,
						  .unfinished = true};
		break;
	}
	case D9_EV_cpu: {
		const struct d9_ev_cpu *e = (const void *)rec;
		d9_vec_push(&th->cpu, (struct d9_cpu){raw(ev->clock, rec->t), e->run, e->delay});
		break;
	}
	case D9_EV_calls:
		take_calls(l, th, ev);
		break;
	case D9_EV_gap:
		d9_vec_push(&th->gaps,
			    (struct d9_gap){raw(ev->clock, ((const struct d9_ev_gap *)rec)->since),
					    raw(ev->clock, rec->t), ((const struct d9_ev_gap *)rec)->events});
		break;
	case D9_EV_held:
		take_held(th, ev);
		break;
	case D9_EV_exit:
		take_exit(l, th, ev);
		break;
	case D9_EV_exec:
		if (th->proc != D9_NO_INDEX) {
			struct d9_trace_proc *p = &l->t->procs.v[th->proc];
			p->exec = tail_str(l, &ev->tail, &(size_t){0});
			if (((const struct d9_ev_exec *)rec)->pid == p->pid) /* else its child's, after vfork */
				p->exec_t = raw(ev->clock, rec->t);
		}
		break;
	case D9_EV_park:
	case D9_EV_poll:
		take_rt(th, ev);
		break;
	case D9_EV_control:
		d9_vec_push(
			&l->t->families.v[l->family].switches,
			(struct d9_switched){raw(ev->clock, rec->t), ((const struct d9_ev_control *)rec)->mask != 0});
		break;
	}
	keep(l, th, ev);
}

static int take(void *ctx, const struct d9_segr_event *ev)
{
	struct d9_loader *l = ctx;
	switch (ev->id) {
	case D9_EV_span:
		take_span(l, ev);
		return 0;
	case D9_EV_proc:
		take_proc(l, ev);
		return 0;
	case D9_EV_thread:
		take_thread(l, ev);
		return 0;
	case D9_EV_module:
		take_module(l, ev);
		return 0;
	case D9_EV_hook:
		take_hook(l, ev);
		return 0;
	case D9_EV_site:
		take_site(l, ev);
		return 0;
	case D9_EV_clock:
		take_clock(l, ev);
		return 0;
	case D9_EV_info:
		take_info(l, ev);
		return 0;
	case D9_EV_custom_type:
		take_custom_type(l, ev);
		return 0;
	case D9_EV_blob:
		return 0;
	default:
		take_other(l, thread_at(l, ev->run.thread), ev);
		return 0;
	}
}

/* What the kernel's side has no business to say, hooked calls and tasks, it does not say here either. */
static int take_kernel(void *ctx, const struct d9_segr_event *ev)
{
	struct d9_loader *l = ctx;
	switch (ev->id) {
	case D9_EV_proc:
	case D9_EV_thread:
	case D9_EV_module:
	case D9_EV_clock:
	case D9_EV_info:
		return take(ctx, ev);
	case D9_EV_kernel_thread:
		take_kernel_thread(l, ev);
		return 0;
	case D9_EV_gap: /* a loss of the helper's; the thread's own calls were recorded all the same */
		take_other(l, thread_at(l, D9_THREAD_NONE), ev);
		return 0;
	case D9_EV_cpu:
	case D9_EV_exit:
		take_other(l, thread_at(l, ev->run.thread), ev);
		return 0;
	default:
		if (ev->id >= D9_EV_runq)
			take_other(l, thread_at(l, ev->run.thread), ev);
		return 0;
	}
}

/* ---- files -------------------------------------------------------------------------------------- */

static int take_run(void *ctx, const struct d9_run *run)
{
	struct d9_loader *l = ctx;
	d9_u64 key = (d9_u64)run->thread << 32 | run->serial;
	d9_u32 had = d9_map_get(&l->drained, key);
	if (had == D9_MAP_EMPTY || had < run->end)
		d9_map_put(&l->drained, key, run->end);
	return 0;
}

static d9_u32 drained(void *ctx, d9_u32 thread, d9_u32 serial)
{
	const struct d9_loader *l = ctx;
	d9_u32 n = d9_map_get(&l->drained, (d9_u64)thread << 32 | serial);
	return n == D9_MAP_EMPTY ? 0 : n;
}

static int take_segment(struct d9_loader *l, struct d9_segr *r)
{
	struct d9_trace_family *f = &l->t->families.v[l->family];
	d9_vec_push(&f->readers, r);
	const struct d9_seg_header *h = d9_segr_header(r);
	memcpy(f->id, h->family, sizeof(f->id));
	int e = d9_segr_each(r, f->kernel ? take_kernel : take, l);
	struct d9_segr_stats st;
	d9_segr_stats(r, &st);
	l->t->torn_blocks += st.torn_blocks;
	l->t->unknown_events += st.unknown_events;
	l->t->records += st.records;
	return e;
}

static void note_running(struct d9_loader *l, const struct d9_running *running)
{
	for (size_t i = 0; i < l->t->procs.n; i++) {
		struct d9_trace_proc *p = &l->t->procs.v[i];
		if (p->family != l->family)
			continue;
		p->running = !running->told && running->drained;
		for (size_t k = 0; k < running->generations.n; k++)
			p->running |= running->generations.v[k] == p->generation;
	}
}

/* 0, or what kept it from being read: told, for the segments are worth reading without it. */
static int take_arena(struct d9_loader *l, const struct d9_folder *folder)
{
	struct d9_trace_family *f = &l->t->families.v[l->family];
	for (size_t i = 0; i < f->readers.n; i++)
		d9_segr_each_run(f->readers.v[i], take_run, l);
	size_t n = strlen(folder->path) + sizeof("/arena");
	char *path = d9_must_alloc(n, 1), err[256] = "";
	snprintf(path, n, "%s/arena", folder->path);
	void *bytes = NULL;
	size_t n_bytes = 0;
	struct d9_running running = {.told = false};
	int r = d9_arena_input(path, drained, l, &running, &bytes, &n_bytes, err, sizeof(err));
	free(path);
	if (r < 0) {
		if (r != -ENOENT)
			d9_trace_warn(l->t, "the memory of %s is left out: %s", folder->name, err);
		return r == -ENOENT ? 0 : r;
	}
	d9_vec_push(&f->memories, bytes);
	struct d9_segr *reader;
	r = d9_segr_open_memory(bytes, n_bytes, &reader, err, sizeof(err));
	if (r < 0)
		d9_trace_warn(l->t, "the memory of %s is left out: %s", folder->name, err);
	else
		take_segment(l, reader);
	note_running(l, &running);
	d9_vec_free(&running.generations);
	return r < 0 ? r : 0;
}

static int open_segment(struct d9_loader *l, const struct d9_folder *folder, int dirfd, const char *name,
			struct d9_segr **ret)
{
	char err[256] = "";
	int e = folder->is_file ? d9_segr_open(folder->path, ret, err, sizeof(err))
				: d9_segr_open_at(dirfd, name, ret, err, sizeof(err));
	if (e < 0 && e != -ENOENT) /* evicted since the folder was listed */
		d9_trace_warn(l->t, "%s is left out: %s", folder->is_file ? folder->path : name, err);
	return e;
}

static void begin_family(struct d9_loader *l, const struct d9_folder *folder, bool kernel)
{
	forget_family(l);
	d9_vec_push(&l->t->families, (struct d9_trace_family){.folder = strdup(folder->name), .kernel = kernel});
	l->family = (d9_u32)l->t->families.n - 1;
}

static int open_folder(const struct d9_folder *folder)
{
	int fd = folder->is_file ? -1 : open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 && !folder->is_file ? -errno : fd;
}

static int open_and_take(struct d9_loader *l, const struct d9_folder *folder, int dirfd, const char *name)
{
	struct d9_segr *r;
	int e = open_segment(l, folder, dirfd, name, &r);
	return e < 0 ? e : take_segment(l, r);
}

int d9_load_service(struct d9_loader *l, const struct d9_folder *folder)
{
	struct d9_trace *t = l->t;
	begin_family(l, folder, false);
	bool first = !folder->segments.n || !strcmp(folder->segments.v[0], "s-000001.d9");
	int first_error = 0, fd = open_folder(folder);
	if (folder->is_file) {
		first_error = open_and_take(l, folder, -1, NULL);
	} else {
		if (fd < 0)
			return fd;
		for (size_t i = 0; i < folder->segments.n; i++) {
			int e = open_and_take(l, folder, fd, folder->segments.v[i]);
			first_error = first_error ? first_error : e;
		}
		close(fd);
		int e = folder->has_arena ? take_arena(l, folder) : 0;
		first_error = first_error ? first_error : e;
	}
	t->families.v[l->family].from_start = first && !folder->is_file && !first_error;
	if (t->families.v[l->family].readers.n)
		return 0;
	return first_error ? first_error : -ENOENT;
}

static bool is_perf(const struct d9_segr *r) { return d9_segr_header(r)->compat & D9_SEG_BY_PERF; }

/* Helpers that watched one process share its folder, and count their files together. */
static bool same_family(const struct kernel_file *a, const struct kernel_file *b)
{
	return a->folder == b->folder && is_perf(a->r) == is_perf(b->r) &&
	       !memcmp(d9_segr_header(a->r)->family, d9_segr_header(b->r)->family,
		       sizeof(d9_segr_header(a->r)->family));
}

int d9_open_kernel(struct d9_loader *l, const struct d9_folder *folder)
{
	size_t before = l->kernel.n;
	int first_error = 0, fd = open_folder(folder);
	if (fd < 0 && !folder->is_file)
		return fd;
	for (size_t i = 0; i < folder->kernel.n; i++) {
		struct kernel_file f = {.folder = folder};
		int e = open_segment(l, folder, fd, folder->kernel.v[i], &f.r);
		if (!e)
			d9_vec_push(&l->kernel, f);
		first_error = first_error ? first_error : e;
	}
	if (fd >= 0)
		close(fd);
	return l->kernel.n > before ? 0 : first_error ? first_error : -ENOENT;
}

/* Takes the file and all that are of its family. */
static void take_family(struct d9_loader *l, size_t first)
{
	const struct kernel_file of = l->kernel.v[first];
	begin_family(l, of.folder, true);
	l->t->families.v[l->family].by_perf = is_perf(of.r);
	for (size_t i = first; i < l->kernel.n; i++) {
		struct kernel_file *f = &l->kernel.v[i];
		if (!f->r || !same_family(f, &of))
			continue;
		(void)take_segment(l, f->r);
		f->r = NULL;
	}
}

void d9_load_kernel(struct d9_loader *l)
{
	for (int perf = 0; perf < 2; perf++) /* where two watched the first is believed */
		for (size_t i = 0; i < l->kernel.n; i++)
			if (l->kernel.v[i].r && is_perf(l->kernel.v[i].r) == perf)
				take_family(l, i);
}
