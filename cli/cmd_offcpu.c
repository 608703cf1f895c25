/*
 * d9 offcpu: what threads waited for in the kernel, by thread and by cause: the system call and the function of the kernel that says most.
 * --folded: as lines for a flame graph.  With the program's own stacks where d9-kernel was asked for them.
 */
#include "clean.h"
#include "kernel_stack.h"
#include "show.h"
#include "syscall_name.h"

#include <errno.h>

#define CAUSES_MAX 30
#define FOLDED_FRAMES 64
#define FOLDED_BYTES 16384
#define USER_FRAMES 4

struct waits {
	d9_u64 count, total, runnable, max;
	d9_u64 by_perf; /* of them, those of which the wake-up was not seen, nor what they were for */
};
struct cause {
	d9_i32 nr;
	d9_u32 place;  /* index of the function */
	d9_u32 thread; /* D9_NO_INDEX: of all together */
	struct d9_ref worst;
	struct waits w;
};
struct offcpu {
	struct d9_model *m;
	struct d9_kernel_places places;
	struct d9_map all_map, own_map;
	D9_VEC(struct cause) all, own; /* own: by thread */
	struct waits *threads;
};

static void add_to(struct waits *w, const struct d9_offcpu *o)
{
	d9_u64 dur = o->t1 - o->t0;
	w->count++;
	w->total += dur;
	w->runnable += o->t1 - o->woken;
	w->max = dur > w->max ? dur : w->max;
	w->by_perf += !!(o->flags & D9_KERNEL_BY_PERF);
}

static void add(struct offcpu *c, struct d9_ref ref)
{
	const struct d9_offcpu *o = d9_offcpu_at(c->m, ref);
	d9_u32 place = d9_kernel_place(&c->places, c->m->t, o->stack);
	d9_u64 key = (d9_u64)(d9_u32)o->nr << 32 | place;
	d9_u32 i = d9_map_get(&c->all_map, key);
	if (i == D9_MAP_EMPTY) {
		i = (d9_u32)c->all.n;
		d9_vec_push(&c->all, (struct cause){.nr = o->nr, .place = place, .thread = D9_NO_INDEX, .worst = ref});
		d9_map_put(&c->all_map, key, i);
	}
	if (o->t1 - o->t0 > c->all.v[i].w.max)
		c->all.v[i].worst = ref;
	add_to(&c->all.v[i].w, o);
	d9_u64 own_key = (d9_u64)ref.thread << 32 | i;
	d9_u32 k = d9_map_get(&c->own_map, own_key);
	if (k == D9_MAP_EMPTY) {
		k = (d9_u32)c->own.n;
		d9_vec_push(&c->own, (struct cause){.nr = o->nr, .place = place, .thread = ref.thread, .worst = ref});
		d9_map_put(&c->own_map, own_key, k);
	}
	add_to(&c->own.v[k].w, o);
	add_to(&c->threads[ref.thread], o);
}

static int longest_first(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;
	if (x->thread != y->thread)
		return d9_by(x->thread, y->thread);
	if (x->w.total != y->w.total)
		return x->w.total > y->w.total ? -1 : 1;
	return x->nr != y->nr ? d9_by((d9_u32)x->nr, (d9_u32)y->nr) : d9_by(x->place, y->place);
}

static void gather(struct offcpu *c)
{
	const struct d9_trace *t = c->m->t;
	c->threads = d9_must_alloc(t->threads.n + 1, sizeof(*c->threads));
	for (d9_u32 i = 0; i < t->threads.n; i++)
		for (d9_u32 k = 0; t->threads.v[i].shown && k < t->threads.v[i].kernel.offcpu.n; k++)
			add(c, (struct d9_ref){i, D9_REF_OFFCPU, k});
	if (c->all.n)
		qsort(c->all.v, c->all.n, sizeof(*c->all.v), longest_first);
	if (c->own.n)
		qsort(c->own.v, c->own.n, sizeof(*c->own.v), longest_first);
}

static void offcpu_fini(struct offcpu *c)
{
	d9_kernel_places_fini(&c->places);
	d9_map_free(&c->all_map);
	d9_map_free(&c->own_map);
	d9_vec_free(&c->all);
	d9_vec_free(&c->own);
	free(c->threads);
}

/* A page fault is none of the program's calls, and the kernel's stack knows it. */
static const char *call_name(const struct offcpu *c, const struct d9_offcpu *o, char *buf)
{
	bool fault = o->nr == D9_NR_NONE && d9_model_kernel_says(c->m, o->stack) & D9_SAYS_FAULT;
	return fault ? "page fault" : d9_syscall_name(o->nr, buf);
}

static const char *place_name(const struct offcpu *c, const struct cause *k)
{
	return k->place ? c->places.names.v[k->place] : NULL;
}

/* Where the program was; false: that was not asked for, or could not be told. */
static bool resolve_user(const struct offcpu *c, d9_u32 thread, const struct d9_offcpu *o, struct d9_stack *ret)
{
	struct d9_trace *t = c->m->t;
	if (o->user_stack)
		d9_show_resolve(t, t->threads.v[thread].proc, &t->tails.v[o->user_stack], 0, ret);
	return o->user_stack && ret->n;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

static void waits_json(struct d9_json *j, const struct waits *w)
{
	d9_json_u64(j, "count", w->count);
	d9_json_u64(j, "total_ns", w->total);
	d9_json_known(j, "blocked_ns", w->by_perf ? D9_NOT_KNOWN : w->total - w->runnable);
	d9_json_known(j, "runnable_ns", w->by_perf ? D9_NOT_KNOWN : w->runnable);
	d9_json_u64(j, "max_ns", w->max);
	d9_json_str(j, "source", !w->by_perf ? "d9-kernel" : w->by_perf == w->count ? "perf" : "both");
}

static void cause_json(struct d9_json *j, const struct offcpu *c, const struct cause *k)
{
	char buf[32];
	d9_json_object(j, NULL);
	d9_json_str(j, "syscall", k->nr < 0 ? NULL : d9_syscall_name(k->nr, buf));
	d9_json_known(j, "nr", k->nr < 0 ? D9_NOT_KNOWN : (d9_u64)k->nr);
	d9_json_str(j, "function", place_name(c, k));
	waits_json(j, &k->w);
	if (k->thread == D9_NO_INDEX) {
		struct d9_ref_info r = d9_ref_info(c->m, k->worst);
		struct d9_trace *t = c->m->t;
		d9_u32 proc = t->threads.v[k->worst.thread].proc;
		d9_show_stack_json(j, "stack", t, proc, r.stack);
		struct d9_stack *user = d9_must_alloc(1, sizeof(*user));
		const struct d9_offcpu *o = d9_offcpu_at(c->m, k->worst);
		d9_show_resolve(t, proc, &t->tails.v[o->user_stack], o->ip,
				user); /* at least where it entered the kernel */
		d9_show_frames_json(j, "user_stack", user);
		free(user);
	}
	d9_json_end_object(j);
}

static int write_json(const struct offcpu *c)
{
	struct d9_json j;
	size_t k = 0;
	d9_json_document(&j, stdout, "offcpu");
	d9_json_array(&j, "threads");
	for (d9_u32 i = 0; i < c->m->t->threads.n; i++) {
		if (!c->threads[i].count)
			continue;
		d9_json_object(&j, NULL);
		d9_show_who_json(&j, c->m, i);
		waits_json(&j, &c->threads[i]);
		d9_json_array(&j, "causes");
		for (; k < c->own.n && c->own.v[k].thread == i; k++)
			cause_json(&j, c, &c->own.v[k]);
		d9_json_end_array(&j);
		d9_json_end_object(&j);
	}
	d9_json_end_array(&j);
	d9_json_array(&j, "causes");
	for (size_t i = 0; i < c->all.n; i++)
		cause_json(&j, c, &c->all.v[i]);
	d9_json_end_array(&j);
	return d9_json_end_document(&j);
}

/* ---- text ------------------------------------------------------------------------------------------------------------- */

static void line(const struct waits *w)
{
	char b[4][32];
	printf("  %8llu %10s %10s %10s %10s  ", (unsigned long long)w->count, d9_format_duration(w->total, b[0]),
	       w->by_perf ? "?" : d9_format_duration(w->total - w->runnable, b[1]),
	       w->by_perf ? "?" : d9_format_duration(w->runnable, b[2]), d9_format_duration(w->max, b[3]));
}

static void cause_text(const struct offcpu *c, const struct cause *k, const char *before)
{
	char buf[32];
	const char *place = place_name(c, k);
	line(&k->w);
	printf("%s%s%s%s\n", before, call_name(c, d9_offcpu_at(c->m, k->worst), buf), place ? " < " : "",
	       place ? place : "");
}

/* Of the longest of a cause. */
static void user_text(const struct offcpu *c, const struct cause *k)
{
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	char text[512];
	if (resolve_user(c, k->worst.thread, d9_offcpu_at(c->m, k->worst), s))
		printf("  %8s %10s %10s %10s %10s      in %s\n", "", "", "", "", "",
		       d9_show_headline(s, USER_FRAMES, text, sizeof(text)));
	free(s);
}

static void write_text(const struct offcpu *c)
{
	d9_show_by_perf(c->m);
	printf("  %8s %10s %10s %10s %10s  %s\n", "waits", "total", "blocked", "runnable", "longest", "what for");
	for (size_t i = 0; i < c->all.n && i < CAUSES_MAX; i++) {
		cause_text(c, &c->all.v[i], "");
		user_text(c, &c->all.v[i]);
	}
	if (c->all.n > CAUSES_MAX)
		printf("  and %zu more causes: --json\n", c->all.n - CAUSES_MAX);
	size_t k = 0;
	for (d9_u32 i = 0; i < c->m->t->threads.n; i++) {
		char who[96];
		if (!c->threads[i].count)
			continue;
		putchar('\n');
		line(&c->threads[i]);
		printf("%s\n", d9_show_thread(c->m, i, who, sizeof(who)));
		for (unsigned n = 0; k < c->own.n && c->own.v[k].thread == i; k++)
			if (n++ < 3)
				cause_text(c, &c->own.v[k], "  ");
	}
}

/* ---- folded ------------------------------------------------------------------------------------------------------------- */

struct folded {
	char *stack;
	d9_u64 ns;
};
typedef D9_VEC(struct folded) folded_vec;

/* A part of a line: what separates the parts is no part of a name. */
static size_t put(char *to, size_t used, size_t n, const char *s, size_t n_s)
{
	if (used && used + 1 < n)
		to[used++] = ';';
	for (size_t i = 0; i < n_s && s[i] && used + 1 < n; i++)
		to[used++] = s[i] == ';' ? ':' : s[i];
	to[used] = '\0';
	return used;
}

static size_t put_user(char *to, size_t used, size_t n, const struct d9_frame *f)
{
	char place[256];
	const char *name = f->symbol;
	if (!name)
		snprintf(place, sizeof(place), "%s+0x%llx", f->module ? f->module : "?", (unsigned long long)f->offset);
	return put(to, used, n, name ? name : place, strlen(name ? name : place));
}

/* Stacks are innermost first, flame graphs outermost. */
static void fold(const struct offcpu *c, d9_u32 thread, const struct d9_offcpu *o, bool runnable, struct d9_stack *user,
		 folded_vec *all)
{
	const struct d9_trace_thread *th = &c->m->t->threads.v[thread];
	const char *frame[FOLDED_FRAMES], *name = *th->name ? th->name : "thread";
	size_t length[FOLDED_FRAMES], at = 0, n = 0, used;
	char text[FOLDED_BYTES], buf[32];
	const char *call = call_name(c, o, buf);
	while (n < FOLDED_FRAMES && d9_kernel_frame_next(&c->m->t->tails.v[o->stack], &at, &frame[n], &length[n]))
		n++;
	used = put(text, 0, sizeof(text), name, strlen(name));
	for (d9_u32 i = resolve_user(c, thread, o, user) ? user->n : 0; i-- > 0;)
		used = put_user(text, used, sizeof(text), &user->frames[i]);
	used = put(text, used, sizeof(text), call, strlen(call));
	while (n-- > 0)
		used = put(text, used, sizeof(text), frame[n], length[n]);
	if (runnable)
		put(text, used, sizeof(text), "[no CPU]", 8);
	d9_vec_push(all, (struct folded){d9_clean(strdup(text), strlen(text)),
					 runnable ? o->t1 - o->woken : d9_offcpu_blocked(o)});
}

static int by_stack(const void *a, const void *b)
{
	return strcmp(((const struct folded *)a)->stack, ((const struct folded *)b)->stack);
}

static void write_folded(const struct offcpu *c)
{
	folded_vec all = {0};
	struct d9_stack *user = d9_must_alloc(1, sizeof(*user));
	for (d9_u32 i = 0; i < c->m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &c->m->t->threads.v[i];
		for (size_t k = 0; th->shown && k < th->kernel.offcpu.n; k++) {
			const struct d9_offcpu *o = &th->kernel.offcpu.v[k];
			fold(c, i, o, false, user, &all);
			if (o->woken < o->t1)
				fold(c, i, o, true, user, &all);
		}
	}
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), by_stack);
	for (size_t i = 0, end; i < all.n; i = end) {
		d9_u64 ns = 0;
		for (end = i; end < all.n && !strcmp(all.v[end].stack, all.v[i].stack); end++)
			ns += all.v[end].ns;
		if (ns >= 1000)
			printf("%s %llu\n", all.v[i].stack, (unsigned long long)(ns / 1000));
	}
	for (size_t i = 0; i < all.n; i++)
		free(all.v[i].stack);
	d9_vec_free(&all);
	free(user);
}

/* ---- the command -------------------------------------------------------------------------------------------------------- */

static int write_offcpu(struct d9_model *m, bool folded, bool json)
{
	struct offcpu c = {.m = m};
	int r = 0;
	gather(&c);
	if (!c.all.n)
		d9_show_why_empty(m, D9_KIND_OFFCPU);
	if (json)
		r = write_json(&c);
	else if (folded)
		write_folded(&c);
	else
		write_text(&c);
	offcpu_fini(&c);
	return r < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno)) : D9_EXIT_OK;
}

int d9_cmd_offcpu(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	const char *folded = NULL;
	const struct d9_opt extra[] = {{"--folded", false, &folded}};
	int r = d9_read_opts_parse(self, argc, argv, 0, extra, 1, &o);
	if (r)
		return r - 1;
	if (folded && o.json)
		return d9_fail(D9_EXIT_USAGE, "offcpu: --folded and --json are two forms; choose one");
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (r)
		return r;
	r = d9_trace_has_kernel(m->t) ? write_offcpu(m, folded != NULL, o.json)
				      : d9_fail(D9_EXIT_DATA, "offcpu: " D9_NO_KERNEL_SIDE);
	d9_model_close(m);
	return r;
}
