/*
 * META records: every segment defines what its records refer to, so that it can be read alone after the ones
 * before it were evicted.
 */
#include "drain_internal.h"
#include "clock.h"
#include "files.h"
#include "sys.h"
#include "text.h"

#include <fcntl.h>
#include <string.h>

#define HEAD(type, bytes) (D9_REC_HEAD(bytes, D9_EV_##type) | D9_COMMITTED)

/* A META record with room for its tail. */
#define META(type, tail_bytes)                       \
	struct {                                     \
		struct d9_ev_##type e;               \
		struct d9_tail tail;                 \
		_Alignas(8) d9_u8 bytes[tail_bytes]; \
	}

/* Finishes a META record whose tail holds n bytes and adds it. */
static int add_meta(struct d9_drain *d, struct d9_rec *rec, d9_u32 id, d9_u32 fixed, d9_u32 kind, d9_u32 n)
{
	struct d9_tail *tail = (struct d9_tail *)((d9_u8 *)rec + fixed);
	d9_u32 padded = (n + 7) & ~7u;
	memset((d9_u8 *)(tail + 1) + n, 0, padded - n);
	*tail = (struct d9_tail){D9_TAIL_WORD(kind, n), 0};
	rec->head = D9_REC_HEAD(fixed + 8 + padded, id) | D9_COMMITTED;
	return d9_drain_add(d, D9_THREAD_NONE, 0, 0, 0, rec);
}
#define ADD_META(d, m, type, kind, n) add_meta(d, &(m)->e.rec, D9_EV_##type, sizeof(struct d9_ev_##type), kind, n)

static int define_info(struct d9_drain *d, const char *key, const char *value)
{
	META(info, 512) m = {0};
	struct d9_text t = d9_text_in((char *)m.bytes, sizeof(m.bytes));
	d9_text_str(&t, key);
	d9_text_char(&t, '=');
	for (; *value && t.n + 1 < t.size; value++)
		d9_text_char(&t, *value);
	return ADD_META(d, &m, info, D9_TAIL_STRING, (d9_u32)t.n);
}

/* The same of a field of the header, which a member may have left without an end. */
static int define_info_field(struct d9_drain *d, const char *key, const char *field, size_t size)
{
	char value[64] = "";
	memcpy(value, field, strnlen(field, size < sizeof(value) ? size : sizeof(value) - 1));
	return define_info(d, key, value);
}

static int define_info_number(struct d9_drain *d, const char *key, d9_u64 v)
{
	char buf[24];
	struct d9_text t = d9_text_in(buf, sizeof(buf));
	d9_text_u64(&t, v);
	return define_info(d, key, buf);
}

/* The lines of a text of the header's, one `info` each. */
static int define_lines(struct d9_drain *d, const char *key, const char *p, size_t size, d9_u32 *told)
{
	char line[400];
	const char *end = p + size;
	int r = 0;
	*told = (d9_u32)strnlen(p, size);
	while (!r && p < end && *p) {
		struct d9_text t = d9_text_in(line, sizeof(line));
		for (; p < end && *p && *p != '\n'; p++)
			d9_text_char(&t, *p);
		p += p < end && *p == '\n';
		r = define_info(d, key, line);
	}
	return r;
}

static int define_warnings(struct d9_drain *d)
{
	const struct d9_arena_header *h = d->v.h;
	return define_lines(d, "warning", h->warnings, sizeof(h->warnings), &d->warnings_told);
}

static int define_notes(struct d9_drain *d)
{
	const struct d9_arena_header *h = d->v.h;
	return define_lines(d, "note", h->notes, sizeof(h->notes), &d->notes_told);
}

static int define_facts(struct d9_drain *d)
{
	struct d9_arena_header *h = d->v.h;
	char boot[40];
	struct d9_text t = d9_text_in(boot, sizeof(boot));
	for (int i = 0; i < 16; i++)
		d9_text_hex(&t, h->boot_id[i], 2);
	int r = define_info_field(d, "version", h->shim_version, sizeof(h->shim_version));
	if (!r && h->run[0])
		r = define_info_field(d, "run", h->run, sizeof(h->run));
	if (!r)
		r = define_info(d, "boot_id", boot);
	if (!r)
		r = define_info_number(d, "started_real_ns", h->started_real);
	if (!r)
		r = define_info_number(d, "started_mono_ns", h->started_mono);
	if (!r)
		r = define_info_number(d, "clock_hz", h->tsc_hz);
	if (!r)
		r = define_info_number(d, "pid_ns", h->pid_ns);
	if (!r)
		r = define_info_number(d, "io_min_ns", h->io_min_ns);
	if (!r)
		r = define_info_number(d, "stack_min_ns", h->stack_min_ns);
	if (!r)
		r = define_warnings(d);
	return r ? r : define_notes(d);
}

static int define_hooks(struct d9_drain *d)
{
	for (d9_u32 i = 0; i < D9_N_HOOKS_MAX; i++) {
		const struct d9_hook_entry *h = &d->v.hooks[i];
		if (!h->name[0])
			continue;
		META(hook, 64) m = {.e = {.id = i, .flags = h->flags}};
		struct d9_text t = d9_text_in((char *)m.bytes, sizeof(m.bytes));
		for (size_t k = 0; k < sizeof(h->family) && h->family[k]; k++)
			d9_text_char(&t, h->family[k]);
		t.n++;
		for (size_t k = 0; k < sizeof(h->name) && h->name[k]; k++)
			d9_text_char(&t, h->name[k]);
		int r = ADD_META(d, &m, hook, D9_TAIL_STRING, (d9_u32)t.n);
		if (r)
			return r;
	}
	return 0;
}

static int define_pair(struct d9_drain *d, const struct d9_clock_pair *p)
{
	struct d9_ev_clock e = {{HEAD(clock, sizeof(e)), 0, p->tsc}, p->tsc, p->mono, p->real, p->boot, p->width};
	return d9_drain_add(d, D9_THREAD_NONE, 0, 0, 0, &e.rec);
}

/* A pair now (live), kept in the header's ring too, where a recovery finds it. */
int d9_define_clock(struct d9_drain *d)
{
	struct d9_arena_header *h = d->v.h;
	struct d9_clock_pair now;
	if (d->o.kind == D9_LEASE_NONE && !d->o.same_pids)
		return 0; /* a copy from another boot: its clock cannot be read any more */
	d9_clock_pair(h->clock_kind, &now);
	d->clock_mono = now.mono;
	h->clocks[h->clock_pairs_next % D9_N_CLOCKS] = now;
	d9_add_relaxed(&h->clock_pairs_next, 1);
	return define_pair(d, &now);
}

static int define_known_pairs(struct d9_drain *d)
{
	struct d9_arena_header *h = d->v.h;
	d9_u32 n = h->clock_pairs_next < D9_N_CLOCKS ? h->clock_pairs_next : D9_N_CLOCKS;
	for (d9_u32 i = 0; i < n; i++) {
		int r = define_pair(d, &h->clocks[i]);
		if (r)
			return r;
	}
	return 0;
}

/* A record with a long tail, built in the drainer's own memory: the stack it runs on may be small. */
static int add_long(struct d9_drain *d, d9_u32 id, d9_u32 fixed, d9_u32 kind, d9_u32 n)
{
	struct d9_rec *rec = (struct d9_rec *)d->meta;
	return add_meta(d, rec, id, fixed, kind, n);
}

static int define_proc(struct d9_drain *d, d9_u32 i)
{
	const struct d9_proc *p = &d->v.procs[i];
	struct d9_arena_header *h = d->v.h;
	d9_u32 state = d9_load_acquire(&p->state), ring = d9_load_relaxed(&p->uring) ? D9_PROC_URING : 0;
	if (!state || d->proc_defined[i] == 1 + ring)
		return 0;
	struct d9_ev_proc *e = (struct d9_ev_proc *)d->meta;
	*e = (struct d9_ev_proc){.generation = p->generation,
				 .start = p->start,
				 .born = p->born_tsc,
				 .id = i,
				 .parent = p->parent,
				 .pid = p->pid,
				 .ppid = p->ppid,
				 .uid = p->uid,
				 .flags = (p->flags & ~D9_PROC_URING) | ring};
	char *text = (char *)(e + 1) + sizeof(struct d9_tail);
	d9_u32 n = D9_CHUNK_RECORDS - (d9_u32)sizeof(*e) - 16;
	memcpy(text, h->exe_args, n);
	while (n && !text[n - 1])
		n--;
	d->proc_defined[i] = (d9_u8)(1 + ring);
	return add_long(d, D9_EV_proc, sizeof(*e), D9_TAIL_STRING, n);
}

static int define_module(struct d9_drain *d, d9_u32 i)
{
	const struct d9_module *t = &d->v.modules[i];
	if (!d9_load_acquire(&t->ready))
		return 0;
	d9_u8 want = t->until_tsc ? 2 : 1;
	if (d->module_defined[i] == want)
		return 0;
	META(module, 400)
	m = {.e = {.start = t->start,
		   .end = t->end,
		   .offset = t->offset,
		   .from = t->from_tsc,
		   .until = t->until_tsc,
		   .id = i,
		   .proc = t->proc}};
	struct d9_text text = d9_text_in((char *)m.bytes, sizeof(m.bytes));
	for (int k = 0; k < t->build_id_bytes && k < (int)sizeof(t->build_id); k++)
		d9_text_hex(&text, t->build_id[k], 2);
	text.n++;
	for (size_t k = 0; k < sizeof(t->path) && t->path[k]; k++)
		d9_text_char(&text, t->path[k]);
	d->module_defined[i] = want;
	return ADD_META(d, &m, module, D9_TAIL_STRING, (d9_u32)text.n);
}

static int define_type(struct d9_drain *d, d9_u32 i)
{
	const struct d9_type_entry *t = &d->v.types[i];
	if (d->type_defined[i] || !d9_load_acquire(&t->ready))
		return 0;
	META(custom_type, sizeof(t->text)) m = {.e = {.id = i}};
	d9_u32 n = t->bytes < sizeof(t->text) ? t->bytes : sizeof(t->text);
	memcpy(m.bytes, t->text, n);
	d->type_defined[i] = 1;
	return ADD_META(d, &m, custom_type, D9_TAIL_STRING, n);
}

/* The thread's name as the kernel has it now: programs rename threads by prctl and by /proc too. */
static void refresh_name(struct d9_drain *d, struct d9_thread *s)
{
	char path[64], name[17];
	if (!d->o.same_pids || d->o.sink || s->proc >= D9_N_PROCS)
		return;
	struct d9_text t = d9_text_in(path, sizeof(path));
	d9_text_str(&t, "/proc/");
	d9_text_u64(&t, (d9_u64)d->v.procs[s->proc].pid);
	d9_text_str(&t, "/task/");
	d9_text_u64(&t, (d9_u64)s->tid);
	d9_text_str(&t, "/comm");
	long n = d9_read_file(path, name, sizeof(name));
	if (n <= 0)
		return;
	name[n - (name[n - 1] == '\n')] = 0;
	if (strncmp(name, s->comm, sizeof(s->comm))) {
		memset(s->comm, 0, sizeof(s->comm));
		memcpy(s->comm, name, strnlen(name, sizeof(s->comm) - 1));
		s->name_version++;
	}
}

static int define_thread(struct d9_drain *d, d9_u32 id)
{
	d9_u32 slot = D9_THREAD_SLOT(id);
	struct d9_thread *s = &d->v.threads[slot];
	if (slot >= d9_load_acquire(&d->v.h->thread_next))
		return 0;
	d9_u64 key = (d9_u64)(id + 1) | (d9_u64)s->name_version << 32;
	if (d->thread_defined[slot] == key)
		return 0;
	if ((d9_u32)d->thread_defined[slot] != id + 1)
		refresh_name(d, s);
	META(thread, 16)
	m = {.e = {.rec = {.t = d9_drain_now(d)},
		   .born = s->born_tsc,
		   .id = id,
		   .proc = s->proc,
		   .tid = s->tid,
		   .role = s->role}};
	if (s->use != D9_THREAD_USE(id))
		return 0; /* reused: its records were all drained before, this one is not believable */
	memcpy(m.bytes, s->comm, sizeof(s->comm));
	d->thread_defined[slot] = (d9_u64)(id + 1) | (d9_u64)s->name_version << 32;
	if (s->proc < D9_N_PROCS && s->proc < d9_load_acquire(&d->v.h->proc_next)) {
		int r = define_proc(d, s->proc);
		if (r)
			return r;
	}
	return ADD_META(d, &m, thread, D9_TAIL_STRING, (d9_u32)strnlen(s->comm, sizeof(s->comm)));
}

/* Copies the stack of a site to `to`; its kind, *ret_n its bytes; 0: it has none. */
static d9_u32 site_stack(struct d9_drain *d, const struct d9_site *s, void *to, d9_u32 room, d9_u32 *ret_n)
{
	d9_u32 c = d9_load_acquire(&s->stack_chunk), at = s->stack_at;
	struct d9_tail tail;
	if (!c || c > d->v.n_chunks || at % 8 || at > D9_CHUNK_RECORDS - sizeof(tail))
		return D9_TAIL_NONE;
	const d9_u8 *from = d->v.chunks[c - 1].rec + at;
	memcpy(&tail, from, sizeof(tail));
	d9_u32 n = D9_TAIL_BYTES(tail.kind_bytes);
	if (!n || n > D9_CHUNK_RECORDS - at - sizeof(tail) || n > room)
		return D9_TAIL_NONE;
	memcpy(to, from + sizeof(tail), n);
	*ret_n = n;
	return D9_TAIL_KIND(tail.kind_bytes);
}

static int define_site(struct d9_drain *d, d9_u32 i)
{
	const struct d9_site *s = &d->v.sites[i];
	if (d->site_defined[i] || !d9_load_acquire(&s->ready))
		return 0;
	struct d9_ev_site *e = (struct d9_ev_site *)d->meta;
	*e = (struct d9_ev_site){
		.ra = s->ra, .id = D9_SITE_FIRST + i, .hook = s->key & 0x7fffffffu, .depth = s->depth, .proc = s->proc};
	d9_u32 n = 0, room = D9_CHUNK_RECORDS - (d9_u32)sizeof(*e) - 16;
	d9_u32 kind = site_stack(d, s, (d9_u8 *)(e + 1) + sizeof(struct d9_tail), room, &n);
	d->site_defined[i] = 1;
	if (kind != D9_TAIL_NONE)
		return add_long(d, D9_EV_site, sizeof(*e), kind, n);
	e->rec.head = HEAD(site, sizeof(*e));
	return d9_drain_add(d, D9_THREAD_NONE, 0, 0, 0, &e->rec);
}

/* What one record of `thread` refers to. */
int d9_define_for(struct d9_drain *d, d9_u32 thread, const struct d9_rec *rec)
{
	int r = define_thread(d, thread);
	if (!r && rec->site >= D9_SITE_FIRST && rec->site < D9_SITE_FIRST + D9_N_SITES)
		r = define_site(d, rec->site - D9_SITE_FIRST);
	if (!r && D9_REC_ID(rec->head) == D9_EV_custom) {
		d9_u32 type = ((const struct d9_ev_custom *)rec)->type;
		if (type < D9_N_TYPES)
			r = define_type(d, type);
	}
	if (!r && D9_REC_ID(rec->head) == D9_EV_span) { /* the waker may have written nothing itself */
		d9_u32 waker = ((const struct d9_ev_span *)rec)->waker;
		if (waker != D9_THREAD_NONE && D9_THREAD_SLOT(waker) < d->v.n_threads)
			r = define_thread(d, waker);
	}
	return r;
}

int d9_define_start(struct d9_drain *d)
{
	int r = define_facts(d);
	if (!r)
		r = define_hooks(d);
	if (!r)
		r = define_known_pairs(d);
	return r ? r : d9_define_clock(d);
}

/* What has come up since the last pass: processes, modules, and a clock pair a second. */
int d9_define_changed(struct d9_drain *d)
{
	d9_u32 procs = d9_load_acquire(&d->v.h->proc_next), modules = d9_load_acquire(&d->v.h->module_next);
	int r = 0;
	if (strnlen(d->v.h->warnings, sizeof(d->v.h->warnings)) != d->warnings_told)
		r = define_warnings(d);
	if (!r && strnlen(d->v.h->notes, sizeof(d->v.h->notes)) != d->notes_told)
		r = define_notes(d);
	for (d9_u32 i = 0; !r && i < procs && i < D9_N_PROCS; i++)
		r = define_proc(d, i);
	for (d9_u32 i = 0; !r && i < modules && i < D9_N_MODULES; i++)
		r = define_module(d, i);
	if (!r && !d->o.sink && d9_mono_ns() - d->clock_mono > 1000000000u)
		r = d9_define_clock(d);
	return r;
}
