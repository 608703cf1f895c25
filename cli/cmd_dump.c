/*
 * d9 dump: every event, one line each, in the order in which they began.  What a field is called and how
 * it is written follows from its descriptor alone, so a new event needs nothing here.
 */
#include "clean.h"
#include "json.h"
#include "show.h"
#include "timeline.h"

#include <errno.h>

struct dump {
	struct d9_trace *t;
	bool json, stacks;
};

/* ---- fields by descriptor ------------------------------------------------------------------------- */

struct field_value {
	char key[40];
	enum { V_U64, V_I64, V_ADDR, V_TIME, V_NULL } form;
	d9_u64 v;
};

static d9_u64 read_field(const unsigned char *p, const struct d9_field_desc *f)
{
	d9_u64 v = 0;
	memcpy(&v, p, f->size);
	return f->is_signed && f->size == 4 ? (d9_u64)(d9_i64)(d9_i32)v : v;
}

static d9_u64 ticks_to_ns(const struct dump *d, const struct d9_timeline_item *it, d9_u64 ticks)
{
	const struct d9_trace_event *e = it->event;
	d9_u64 end = e->rec->t > ticks ? e->rec->t : ticks + 1;
	return d9_trace_ns(d->t, e->family, e->clock, end) - d9_trace_ns(d->t, e->family, e->clock, end - ticks);
}

/* The thread with this id in the family, as its tid. */
static struct field_value thread_value(const struct dump *d, d9_u32 family, d9_u64 id)
{
	d9_u32 i = d9_trace_thread_index(d->t, family, (d9_u32)id);
	if (i == D9_NO_INDEX)
		return (struct field_value){.form = V_NULL};
	return (struct field_value){.form = V_I64, .v = (d9_u64)(d9_i64)d->t->threads.v[i].tid};
}

static struct field_value value_of(const struct dump *d, const struct d9_timeline_item *it,
				   const struct d9_field_desc *f, d9_u64 v)
{
	struct field_value r = {.form = f->is_signed ? V_I64 : V_U64, .v = v};
	const char *suffix = "";
	switch (f->unit) {
	case D9_UNIT_TICKS:
		r.v = ticks_to_ns(d, it, v);
		suffix = "_ns";
		break;
	case D9_UNIT_TIME:
		r.v = d9_trace_ns(d->t, it->event->family, it->event->clock, v);
		r.form = v ? V_TIME : V_NULL;
		suffix = "_ns";
		break;
	case D9_UNIT_NS:
		suffix = "_ns";
		break;
	case D9_UNIT_ADDR:
		r.form = v ? V_ADDR : V_NULL;
		break;
	case D9_UNIT_FD:
		r.form = (d9_i64)v < 0 ? V_NULL : V_I64;
		break;
	case D9_UNIT_THREAD:
		r = thread_value(d, it->event->family, v);
		break;
	}
	if (!f->is_signed && f->size == 8 && v == D9_NOT_KNOWN)
		r.form = V_NULL;
	snprintf(r.key, sizeof(r.key), "%s%s", f->name, suffix);
	return r;
}

static void put_json(struct d9_json *j, const struct field_value *v)
{
	switch (v->form) {
	case V_U64:
	case V_TIME:
		d9_json_u64(j, v->key, v->v);
		break;
	case V_I64:
		d9_json_i64(j, v->key, (d9_i64)v->v);
		break;
	case V_ADDR:
		d9_json_addr(j, v->key, v->v);
		break;
	case V_NULL:
		d9_json_null(j, v->key);
		break;
	}
}

static void put_text(const struct dump *d, const struct field_value *v)
{
	size_t n = strlen(v->key);
	char buf[32];
	if (v->form == V_NULL)
		return;
	if (v->form == V_TIME) {
		d9_i64 us = (d9_i64)(v->v - d->t->t_begin) / 1000;
		printf(" %.*s=%lld.%06lld", (int)(n - 3), v->key, (long long)(us / 1000000),
		       (long long)(us < 0 ? -us : us) % 1000000);
	} else if (n > 3 && !strcmp(v->key + n - 3, "_ns"))
		printf(" %.*s=%s", (int)(n - 3), v->key, d9_format_duration(v->v, buf));
	else if (v->form == V_ADDR)
		printf(" %s=0x%llx", v->key, (unsigned long long)v->v);
	else
		printf(" %s=%lld", v->key, (long long)v->v);
}

/* ---- tails ------------------------------------------------------------------------------------------ */

#define HEX_MAX 4096 /* of the most that a program may put into one event, and to spare */

static void hex(const struct d9_bytes *b, char *out, size_t n_out)
{
	size_t k = 0;
	for (size_t i = 0; i < b->n && k + 3 < n_out; i++)
		k += (size_t)snprintf(out + k, n_out - k, "%02x", b->p[i]);
	out[k] = '\0';
}

static void tail_json(const struct dump *d, struct d9_json *j, const struct d9_timeline_item *it, const char *key)
{
	const struct d9_bytes *b = &it->event->tail;
	if (b->kind == D9_TAIL_STRING) {
		d9_json_strn(j, key, (const char *)b->p, b->n);
	} else if (b->kind == D9_TAIL_DATA) {
		char text[HEX_MAX];
		hex(b, text, sizeof(text));
		d9_json_str(j, key, text);
	} else if (d->stacks && b->n) {
		d9_show_stack_json(j, key, d->t, it->thread->proc, b);
	}
}

/* A line stays a line whatever a program put into its strings. */
static void put_clean(const char *s, size_t n)
{
	char *copy = d9_clean_copy(s, n);
	fwrite(copy, 1, n, stdout);
	free(copy);
}

static void tail_text(const struct d9_timeline_item *it, const char *key)
{
	const struct d9_bytes *b = &it->event->tail;
	if (b->kind == D9_TAIL_STRING) {
		printf(" %s=", key);
		put_clean((const char *)b->p, b->n);
	} else if (b->kind == D9_TAIL_DATA) {
		char text[HEX_MAX];
		hex(b, text, sizeof(text));
		printf(" %s=%s", key, text);
	}
}

static void custom_field_json(void *ctx, const struct d9_custom_field *f)
{
	struct d9_json *j = ctx;
	switch (f->type) {
	case D9_CUSTOM_NONE:
		d9_json_null(j, f->name);
		break;
	case D9_CUSTOM_U64:
		d9_json_u64(j, f->name, f->v.u);
		break;
	case D9_CUSTOM_I64:
		d9_json_i64(j, f->name, f->v.i);
		break;
	case D9_CUSTOM_F64:
		d9_json_f64(j, f->name, f->v.f);
		break;
	case D9_CUSTOM_STR:
		d9_json_strn(j, f->name, f->text, f->n_text);
		break;
	}
}

static void custom_field_text(void *ctx, const struct d9_custom_field *f)
{
	(void)ctx;
	if (f->type == D9_CUSTOM_NONE)
		return;
	putchar(' ');
	put_clean(f->name, strlen(f->name));
	putchar('=');
	switch (f->type) {
	case D9_CUSTOM_U64:
		printf("%llu", (unsigned long long)f->v.u);
		break;
	case D9_CUSTOM_I64:
		printf("%lld", (long long)f->v.i);
		break;
	case D9_CUSTOM_F64:
		printf("%g", f->v.f);
		break;
	default:
		put_clean(f->text, f->n_text);
	}
}

/* The bytes as the program declared them, behind `data`, which stays for whoever takes it apart himself. */
static void custom_fields(const struct dump *d, const struct d9_timeline_item *it, struct d9_json *j)
{
	const struct d9_ev_custom *e = (const void *)it->event->rec;
	const struct d9_trace_type *type = d9_show_custom_type(d->t, it->thread->family, e->type);
	if (!type)
		return;
	if (j) {
		d9_json_str(j, "name", type->name);
		d9_json_object(j, "fields");
		d9_show_custom(type, &it->event->tail, custom_field_json, j);
		d9_json_end_object(j);
	} else {
		printf(" name=");
		put_clean(type->name, strlen(type->name));
		d9_show_custom(type, &it->event->tail, custom_field_text, NULL);
	}
}

/* ---- lines -------------------------------------------------------------------------------------------- */

static d9_i32 pid_of(const struct dump *d, const struct d9_trace_thread *th)
{
	return th->proc == D9_NO_INDEX ? 0 : d->t->procs.v[th->proc].pid;
}

static void begin_json(struct d9_json *j, const struct dump *d, const struct d9_timeline_item *it, const char *event)
{
	d9_json_line(j, stdout);
	d9_json_u64(j, "t_ns", it->t);
	if (it->thread->proc == D9_NO_INDEX) {
		d9_json_null(j, "pid");
		d9_json_null(j, "tid");
	} else {
		d9_json_i64(j, "pid", pid_of(d, it->thread));
		d9_json_i64(j, "tid", it->thread->tid);
	}
	d9_json_str(j, "event", event);
}

static void begin_text(const struct dump *d, const struct d9_timeline_item *it, const char *event)
{
	d9_i64 us = (d9_i64)(it->t - d->t->t_begin) / 1000;
	printf("%6lld.%06lld %7d %-15.15s %-10s", (long long)(us / 1000000), (long long)(us % 1000000), it->thread->tid,
	       it->thread->name, event);
}

static void site_fields(const struct dump *d, struct d9_json *j, d9_u32 site)
{
	const struct d9_trace_site *s = &d->t->sites.v[site];
	if (s->ra)
		d9_json_addr(j, "ra", s->ra);
	else
		d9_json_null(j, "ra");
}

static int span_json(const struct dump *d, const struct d9_timeline_item *it)
{
	struct d9_json j;
	const struct d9_span *s = it->span;
	begin_json(&j, d, it, "span");
	d9_json_str(&j, "kind", d9_kind_name(s->kind));
	d9_json_str(&j, "hook", d->t->hooks.v[s->hook].name);
	d9_show_object_json(&j, s->object, s->fd);
	d9_json_u64(&j, "dur_ns", s->t1 - s->t0);
	d9_json_i64(&j, "result", s->result);
	if (s->waker != D9_NO_INDEX) {
		d9_json_i64(&j, "waker", d->t->threads.v[s->waker].tid);
		d9_json_u64(&j, "waker_t_ns", s->waker_t);
	}
	if (s->owner)
		d9_json_u64(&j, "owner", s->owner);
	site_fields(d, &j, s->site);
	if (d->stacks)
		d9_show_stack_json(&j, "stack", d->t, it->thread->proc, d9_show_span_stack(d->t, s));
	return d9_json_end_document(&j);
}

static int span_text(const struct dump *d, const struct d9_timeline_item *it)
{
	const struct d9_span *s = it->span;
	char buf[32];
	begin_text(d, it, "span");
	printf(" %-20s %9s", d->t->hooks.v[s->hook].name, d9_format_duration(s->t1 - s->t0, buf));
	if (s->object)
		printf(" object=0x%llx", (unsigned long long)s->object);
	if (s->fd >= 0 && !s->object)
		printf(" fd=%d", s->fd);
	printf(" result=%d", s->result);
	if (s->waker != D9_NO_INDEX)
		printf(" woken-by=%d", d->t->threads.v[s->waker].tid);
	if (s->owner)
		printf(" owner=%u", s->owner);
	putchar('\n');
	return 0;
}

static d9_u32 hook_of_event(const struct dump *d, const struct d9_timeline_item *it, d9_u32 id)
{
	return d9_trace_hook_index(d->t, it->event->family, id);
}

static void event_fields(const struct dump *d, const struct d9_timeline_item *it, struct d9_json *j)
{
	const struct d9_event_desc *desc = &d9_events[it->event->id];
	const unsigned char *p = (const unsigned char *)(it->event->rec + 1);
	for (unsigned i = 0; i < desc->n_fields; p += desc->fields[i].size, i++) {
		if (!strcmp(desc->fields[i].name, "pad"))
			continue;
		d9_u64 v = read_field(p, &desc->fields[i]);
		struct field_value f = value_of(d, it, &desc->fields[i], v);
		if (!strcmp(f.key, "hook")) {
			d9_u32 hook = hook_of_event(d, it, (d9_u32)v);
			const char *name = hook == D9_NO_INDEX ? "?" : d->t->hooks.v[hook].name;
			if (j)
				d9_json_str(j, "hook", name);
			else
				printf(" %s", name);
		} else if (j) {
			put_json(j, &f);
		} else {
			put_text(d, &f);
		}
	}
	if (desc->has_tail && j)
		tail_json(d, j, it, desc->fields[desc->n_fields].name);
	else if (desc->has_tail)
		tail_text(it, desc->fields[desc->n_fields].name);
	if (it->event->id == D9_EV_custom)
		custom_fields(d, it, j);
}

/* A call that has not ended names its hook as a span does; the record has the site alone. */
static const struct d9_trace_site *site_of_event(const struct dump *d, const struct d9_timeline_item *it)
{
	if (!it->event->rec->site)
		return NULL;
	d9_u32 i = d9_trace_site_index(d->t, it->event->family, it->event->rec->site);
	return i == D9_NO_INDEX ? NULL : &d->t->sites.v[i];
}

static int event_json(const struct dump *d, const struct d9_timeline_item *it)
{
	struct d9_json j;
	begin_json(&j, d, it, d9_event_name(it->event->id));
	const struct d9_trace_site *s = site_of_event(d, it);
	if (s) {
		d9_json_str(&j, "kind", d9_kind_name(s->kind));
		d9_json_str(&j, "hook", d->t->hooks.v[s->hook].name);
	}
	event_fields(d, it, &j);
	if (s && it->event->id == D9_EV_task_dump) {
		site_fields(d, &j, (d9_u32)(s - d->t->sites.v));
		if (d->stacks)
			d9_show_stack_json(&j, "stack", d->t, it->thread->proc, &s->stack);
	}
	if (it->event->id == D9_EV_gap)
		d9_json_u64(&j, "to_ns", d9_trace_ns(d->t, it->event->family, it->event->clock, it->event->rec->t));
	return d9_json_end_document(&j);
}

static int event_text(const struct dump *d, const struct d9_timeline_item *it)
{
	begin_text(d, it, d9_event_name(it->event->id));
	const struct d9_trace_site *s = site_of_event(d, it);
	if (s)
		printf(" %s", d->t->hooks.v[s->hook].name);
	event_fields(d, it, NULL);
	putchar('\n');
	return 0;
}

static int line(void *ctx, const struct d9_timeline_item *it)
{
	const struct dump *d = ctx;
	d9_u64 end = it->span ? it->span->t1 : it->event->t;
	/* What a drainer wrote down of a process that was over by then is later than all that is known of it. */
	if (end < d->t->from || (it->t > d->t->to && d->t->to < d->t->t_end))
		return 0;
	if (it->span)
		return d->json ? span_json(d, it) : span_text(d, it);
	return d->json ? event_json(d, it) : event_text(d, it);
}

int d9_cmd_dump(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	const char *stacks = NULL;
	const struct d9_opt extra[] = {{"--stacks", false, &stacks}};
	int r = d9_read_opts_parse(self, argc, argv, 0, extra, 1, &o);
	if (r)
		return r - 1;
	struct d9_trace *t;
	r = d9_trace_open(&o, &t);
	if (r)
		return r;
	struct dump d = {t, o.json, stacks != NULL};
	r = d9_timeline_walk(t, line, &d);
	d9_trace_free(t);
	return r < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno)) : D9_EXIT_OK;
}
