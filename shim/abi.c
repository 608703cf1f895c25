/*
 * The runtime ABI: what a program says of its own tasks, spans and logs becomes records.  Called from any thread, any
 * depth, signal handlers included; nothing here blocks, allocates or changes errno.
 *
 * Begins are kept on a small stack per thread, in memory that a fork wipes; an end closes the innermost open
 * begin of its kind, so a frame that an exception left open does not shift those around it.
 */
#include "abi.h"
#include "arena.h"
#include "clock.h"
#include "format/families.h"
#include "record.h"

#include <string.h>

#define TEXT_MAX 1024u

enum frame_kind { PARK = 1, POLL, SPAN };

/* This thread's cell if the family `abi` is recorded, else NULL. */
static struct d9_cell *recording(void)
{
	struct d9_cell *me = d9_me;
	if (!(d9_load_relaxed(d9_shim.mask) & D9_MASK(abi)))
		return NULL;
	return me && me->slot ? me : d9_enter_thread();
}

/* NULL: this thread has none yet. */
static struct d9_abi_frames *frames_of(const struct d9_cell *me)
{
	d9_u32 slot = D9_THREAD_SLOT(me->thread);
	struct d9_frames *s = d9_load_acquire(&d9_shim.frames[slot / D9_FRAMES_PIECE]);
	return s ? &s[slot % D9_FRAMES_PIECE].abi : NULL;
}

/* A new innermost frame; NULL if they are nested deeper than is kept (their ends then find none). */
static struct d9_abi_frame *push(struct d9_cell *me, d9_u32 kind)
{
	struct d9_abi_frames *s = frames_of(me);
	if (!s && (!d9_frames_for(D9_THREAD_SLOT(me->thread)) || !(s = frames_of(me))))
		return NULL;
	if (s->thread != me->thread + 1) { /* the slot is new to this thread */
		s->depth = 0;
		s->thread = me->thread + 1;
	}
	if (s->depth >= D9_ABI_DEPTH) {
		s->overflow++;
		return NULL;
	}
	struct d9_abi_frame *f = &s->of[s->depth++];
	memset(f, 0, sizeof(*f));
	f->kind = kind;
	return f;
}

static bool pop(struct d9_cell *me, d9_u32 kind, struct d9_abi_frame *ret)
{
	struct d9_abi_frames *s = frames_of(me);
	if (!s || s->thread != me->thread + 1)
		return false;
	if (s->overflow) {
		s->overflow--;
		return false;
	}
	for (d9_u32 i = s->depth; i-- > 0;)
		if (s->of[i].kind == kind) {
			*ret = s->of[i];
			s->depth = i;
			return true;
		}
	return false;
}

static d9_u32 text_length(const char *s) { return s ? (d9_u32)strnlen(s, TEXT_MAX) : 0; }

/* Reserves a record of `fixed` bytes with a tail of n bytes of text, writes the tail. */
static struct d9_rec *begin_with_text(struct d9_cell *me, d9_u32 fixed, d9_u32 id, d9_u32 kind, const void *text,
				      d9_u32 n, d9_u32 *ret_len)
{
	d9_u32 padded = (n + 7) & ~7u;
	*ret_len = fixed + (d9_u32)sizeof(struct d9_tail) + padded;
	struct d9_rec *r = d9_record_begin(me, *ret_len, id);
	if (!r)
		return NULL;
	struct d9_tail *tail = (struct d9_tail *)((d9_u8 *)r + fixed);
	*tail = (struct d9_tail){D9_TAIL_WORD(kind, n), 0};
	memcpy(tail + 1, text, n);
	memset((d9_u8 *)(tail + 1) + n, 0, padded - n);
	r->site = 0;
	r->t = d9_now();
	return r;
}

void d9_abi_worker_park(uint32_t runtime, uint32_t worker)
{
	struct d9_cell *me = recording();
	struct d9_abi_frame *f = me ? push(me, PARK) : NULL;
	if (!f)
		return;
	f->runtime = runtime;
	f->worker = worker;
	f->t0 = d9_now();
}

void d9_abi_worker_unpark(void)
{
	struct d9_cell *me = recording();
	struct d9_abi_frame f;
	if (!me || !pop(me, PARK, &f))
		return;
	const d9_u32 len = sizeof(struct d9_ev_park);
	d9_u64 t1 = d9_now();
	struct d9_ev_park *e = (struct d9_ev_park *)d9_record_begin(me, len, D9_EV_park);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = t1;
	e->dur = t1 - f.t0;
	e->runtime = f.runtime;
	e->worker = f.worker;
	d9_record_commit(&e->rec, len, D9_EV_park);
}

void d9_abi_task_spawn(uint64_t task, uint64_t parent, uint32_t runtime, const char *name)
{
	struct d9_cell *me = recording();
	d9_u32 len;
	struct d9_ev_task_spawn *e =
		me ? (struct d9_ev_task_spawn *)begin_with_text(me, sizeof(*e), D9_EV_task_spawn, D9_TAIL_STRING, name,
								text_length(name), &len)
		   : NULL;
	if (!e)
		return;
	e->task = task;
	e->parent = parent;
	e->module = 0;
	e->runtime = runtime;
	e->made = e->code = 0;
	e->thread = D9_THREAD_NONE;
	e->flags = 1;
	d9_record_commit(&e->rec, len, D9_EV_task_spawn);
}

static void show_poll(struct d9_cell *me)
{
	const struct d9_abi_frames *s = frames_of(me);
	struct d9_in_poll *p = &me->slot->poll;
	for (d9_u32 i = s ? s->depth : 0; i-- > 0;)
		if (s->of[i].kind == POLL) {
			p->task = s->of[i].id;
			p->module = 0;
			p->runtime = s->of[i].runtime;
			p->worker = s->of[i].worker;
			p->t0 = s->of[i].t0;
			d9_store_release(&p->active, 1);
			return;
		}
	d9_store_release(&p->active, 0);
}

void d9_abi_poll_begin(uint64_t task, uint32_t runtime, uint32_t worker)
{
	struct d9_cell *me = recording();
	struct d9_abi_frame *f = me ? push(me, POLL) : NULL;
	if (!f)
		return;
	f->id = task;
	f->runtime = runtime;
	f->worker = worker;
	f->t0 = d9_now();
	show_poll(me);
}

void d9_abi_poll_end(uint32_t outcome)
{
	struct d9_cell *me = recording();
	struct d9_abi_frame f;
	if (!me || !pop(me, POLL, &f))
		return;
	d9_u64 t1 = d9_now();
	show_poll(me);
	const d9_u32 len = sizeof(struct d9_ev_poll);
	struct d9_ev_poll *e = (struct d9_ev_poll *)d9_record_begin(me, len, D9_EV_poll);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = t1;
	e->dur = t1 - f.t0;
	e->task = f.id;
	e->module = 0;
	e->runtime = f.runtime;
	e->worker = f.worker;
	e->outcome = outcome;
	d9_record_commit(&e->rec, len, D9_EV_poll);
}

void d9_abi_wake(uint64_t task, uint64_t by, uint32_t runtime)
{
	struct d9_cell *me = recording();
	const d9_u32 len = sizeof(struct d9_ev_wake);
	struct d9_ev_wake *e = me ? (struct d9_ev_wake *)d9_record_begin(me, len, D9_EV_wake) : NULL;
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = d9_now();
	e->task = task;
	e->by = by;
	e->module = 0;
	e->runtime = runtime;
	e->flags = e->pad = 0;
	d9_record_commit(&e->rec, len, D9_EV_wake);
}

void d9_abi_task_end(uint64_t task, uint32_t outcome)
{
	struct d9_cell *me = recording();
	const d9_u32 len = sizeof(struct d9_ev_task_end);
	struct d9_ev_task_end *e = me ? (struct d9_ev_task_end *)d9_record_begin(me, len, D9_EV_task_end) : NULL;
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = d9_now();
	e->task = task;
	e->module = 0;
	e->outcome = outcome;
	d9_record_commit(&e->rec, len, D9_EV_task_end);
}

void d9_abi_span_begin(const char *name, uint64_t id)
{
	struct d9_cell *me = recording();
	struct d9_abi_frame *f = me ? push(me, SPAN) : NULL;
	if (!f)
		return;
	d9_u32 n = text_length(name);
	memcpy(f->name, name, n < sizeof(f->name) - 1 ? n : sizeof(f->name) - 1);
	f->id = id;
	f->t0 = d9_now();
}

void d9_abi_span_end(void)
{
	struct d9_cell *me = recording();
	struct d9_abi_frame f;
	if (!me || !pop(me, SPAN, &f))
		return;
	d9_u64 t1 = d9_now();
	d9_u32 len;
	struct d9_ev_app_span *e = (struct d9_ev_app_span *)begin_with_text(
		me, sizeof(*e), D9_EV_app_span, D9_TAIL_STRING, f.name, (d9_u32)strlen(f.name), &len);
	if (!e)
		return;
	e->rec.t = t1;
	e->dur = t1 - f.t0;
	e->id = f.id;
	d9_record_commit(&e->rec, len, D9_EV_app_span);
}

void d9_abi_log_line(uint32_t level, const char *text)
{
	struct d9_cell *me = recording();
	d9_u32 len;
	struct d9_ev_log *e = me ? (struct d9_ev_log *)begin_with_text(me, sizeof(*e), D9_EV_log, D9_TAIL_STRING, text,
								       text_length(text), &len)
				 : NULL;
	if (!e)
		return;
	e->level = level;
	e->pad = 0;
	d9_record_commit(&e->rec, len, D9_EV_log);
}

void d9_abi_counter(const char *name, int64_t value)
{
	struct d9_cell *me = recording();
	d9_u32 len;
	struct d9_ev_counter *e =
		me ? (struct d9_ev_counter *)begin_with_text(me, sizeof(*e), D9_EV_counter, D9_TAIL_STRING, name,
							     text_length(name), &len)
		   : NULL;
	if (!e)
		return;
	e->value = value;
	d9_record_commit(&e->rec, len, D9_EV_counter);
}

static bool same_type(const struct d9_type_entry *t, const char *text, d9_u32 n)
{
	return d9_load_acquire(&t->ready) && t->bytes == n && !memcmp(t->text, text, n);
}

uint32_t d9_abi_event_type(const char *name, const char *fields)
{
	char text[sizeof(((struct d9_type_entry *)0)->text)];
	d9_u32 a = text_length(name), b = text_length(fields), n = a + 1 + b;
	if (!d9_shim.v.h || n > sizeof(text))
		return D9_THREAD_NONE;
	memcpy(text, name, a);
	text[a] = 0;
	memcpy(text + a + 1, fields, b);
	d9_u32 known = d9_load_acquire(&d9_shim.v.h->type_next);
	/* Declared again, by a forked child perhaps: the same number. */
	for (d9_u32 i = 0; i < known && i < D9_N_TYPES; i++)
		if (same_type(&d9_shim.v.types[i], text, n))
			return i;
	d9_u32 i = d9_add_relaxed(&d9_shim.v.h->type_next, 1);
	if (i >= D9_N_TYPES)
		return D9_THREAD_NONE;
	struct d9_type_entry *t = &d9_shim.v.types[i];
	memcpy(t->text, text, n);
	t->bytes = n;
	d9_store_release(&t->ready, 1);
	return i;
}

void d9_abi_event(uint32_t type, const void *data, size_t bytes)
{
	struct d9_cell *me = recording();
	d9_u32 len;
	if (!me || type >= D9_N_TYPES)
		return;
	struct d9_ev_custom *e = (struct d9_ev_custom *)begin_with_text(
		me, sizeof(*e), D9_EV_custom, D9_TAIL_DATA, data, bytes < TEXT_MAX ? (d9_u32)bytes : TEXT_MAX, &len);
	if (!e)
		return;
	e->type = type;
	e->pad = 0;
	d9_record_commit(&e->rec, len, D9_EV_custom);
}
