/*
 * read_events FOLDER...: what a recording holds, as the JSON lines of `d9 dump --json`.
 * read_events --sums FOLDER...: how much it holds: a line for each thread, event and hook, in memory that does not grow with
 * the recording.
 *
 * The tests' own reading, and a second opinion on the reader's: it shares the segment decoder and the drainer with d9,
 * and nothing of what comes after.  Takes process folders; an `arena` that a dead family left is read from a copy.
 */
#include "format/arena.h"
#include "format/segment_read.h"
#include "shim/drain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_META 65536u

struct thread {
	d9_u32 id, proc;
	d9_i32 tid;
	char name[17];
};
struct site {
	d9_u64 ra;
	d9_u32 hook;
};
struct hook {
	char family[16], name[48];
};
struct item {
	struct d9_rec *rec;
	d9_u32 thread, serial, begin;
	d9_u64 from, to; /* ticks */
	size_t order;
	char *text; /* of a tail */
	d9_u32 n_text, tail_kind;
};
struct pair {
	d9_u64 t, mono;
};
struct recording {
	struct thread *threads;
	d9_u32 *places; /* of threads, by id: see place_of() */
	size_t n_places, n_threads, n_runs, n_items, n_pairs, cap_items;
	d9_i32 pids[D9_N_PROCS];
	struct site sites[N_META];
	struct hook hooks[D9_N_HOOKS_MAX];
	struct item *items;
	struct pair pairs[4096];
	struct d9_run *runs;
	double hz;
	d9_u32 clock;
	char exe[1024];
	struct sum *sums; /* open addressing; n = 0: free */
	size_t n_sums, cap_sums;
	int sums_only;
};
/* So many events of this kind, of this thread, from this site. */
struct sum {
	d9_u32 thread, site, id;
	d9_u64 n, lost; /* lost: what gaps count */
};

static void *grow(void *p, size_t n, size_t size)
{
	if (n & (n - 1))
		return p;
	p = realloc(p, (n ? 2 * n : 1) * size);
	if (!p)
		abort();
	return p;
}

static void copy_text(char *to, size_t size, const struct d9_bytes *b, size_t from)
{
	size_t n = from < b->n ? strnlen((const char *)b->p + from, b->n - from) : 0;
	if (n >= size)
		n = size - 1;
	memcpy(to, b->p + from, n);
	to[n] = 0;
}

/* ---- what a segment says --------------------------------------------------------------------------- */

/* Where the thread with this id is noted, as index + 1, or is to be. */
static d9_u32 *place_of(const struct recording *r, d9_u32 id)
{
	size_t i = (id * 2654435761u) & (r->n_places - 1);
	while (r->places[i] && r->threads[r->places[i] - 1].id != id)
		i = (i + 1) & (r->n_places - 1);
	return &r->places[i];
}

static void add_thread(struct recording *r, const struct d9_ev_thread *e, const struct d9_bytes *tail)
{
	if (2 * r->n_threads >= r->n_places) {
		free(r->places);
		r->n_places = r->n_places ? 2 * r->n_places : 1024;
		r->places = calloc(r->n_places, sizeof(*r->places));
		if (!r->places)
			abort();
		for (size_t i = 0; i < r->n_threads; i++)
			*place_of(r, r->threads[i].id) = (d9_u32)i + 1;
	}
	d9_u32 *place = place_of(r, e->id);
	if (!*place) {
		r->threads = grow(r->threads, r->n_threads, sizeof(*r->threads));
		r->threads[r->n_threads].id = e->id;
		*place = (d9_u32)++r->n_threads;
	}
	struct thread *t = &r->threads[*place - 1];
	*t = (struct thread){.id = e->id, .proc = e->proc, .tid = e->tid};
	copy_text(t->name, sizeof(t->name), tail, 0);
}

static void add_info(struct recording *r, const struct d9_bytes *tail)
{
	char text[512];
	copy_text(text, sizeof(text), tail, 0);
	if (!strncmp(text, "clock_hz=", 9))
		r->hz = strtod(text + 9, NULL);
}

static void add_meta(struct recording *r, const struct d9_segr_event *ev)
{
	const void *rec = ev->rec;
	const struct d9_ev_proc *proc = rec;
	const struct d9_ev_hook *hook = rec;
	const struct d9_ev_site *site = rec;
	const struct d9_ev_clock *clock = rec;
	switch (ev->id) {
	case D9_EV_proc:
		if (proc->id < D9_N_PROCS)
			r->pids[proc->id] = proc->pid;
		copy_text(r->exe, sizeof(r->exe), &ev->tail, 0);
		break;
	case D9_EV_thread:
		add_thread(r, rec, &ev->tail);
		break;
	case D9_EV_hook:
		if (hook->id < D9_N_HOOKS_MAX) {
			struct hook *h = &r->hooks[hook->id];
			copy_text(h->family, sizeof(h->family), &ev->tail, 0);
			copy_text(h->name, sizeof(h->name), &ev->tail, strlen(h->family) + 1);
		}
		break;
	case D9_EV_site:
		if (site->id < N_META)
			r->sites[site->id] = (struct site){site->ra, site->hook};
		break;
	case D9_EV_clock:
		if (r->n_pairs < sizeof(r->pairs) / sizeof(*r->pairs))
			r->pairs[r->n_pairs++] = (struct pair){clock->rec.t, clock->mono};
		break;
	case D9_EV_info:
		add_info(r, &ev->tail);
		break;
	default:
		break;
	}
}

/* How long before its own time a record began. */
static d9_u64 duration(const struct d9_rec *rec, d9_u16 id)
{
	const struct d9_event_desc *d = &d9_events[id];
	return d->kind == D9_KIND_SPAN ? ((const struct d9_ev_span *)rec)->dur : 0;
}

static struct sum *find_sum(struct sum *sums, size_t cap, const struct sum *like)
{
	size_t i = (like->thread * 2654435761u ^ like->site * 40503u ^ like->id) & (cap - 1);
	while (sums[i].n && (sums[i].thread != like->thread || sums[i].site != like->site || sums[i].id != like->id))
		i = (i + 1) & (cap - 1);
	return &sums[i];
}

static void add_sum(struct recording *r, const struct d9_segr_event *ev)
{
	struct sum like = {.thread = ev->run.thread, .site = ev->rec->site, .id = ev->id};
	if (2 * r->n_sums >= r->cap_sums) {
		size_t cap = r->cap_sums ? 2 * r->cap_sums : 1024;
		struct sum *more = calloc(cap, sizeof(*more));
		if (!more)
			abort();
		for (size_t i = 0; i < r->cap_sums; i++)
			if (r->sums[i].n)
				*find_sum(more, cap, &r->sums[i]) = r->sums[i];
		free(r->sums);
		r->sums = more;
		r->cap_sums = cap;
	}
	struct sum *s = find_sum(r->sums, r->cap_sums, &like);
	if (!s->n) {
		*s = like;
		r->n_sums++;
	}
	s->n++;
	if (ev->id == D9_EV_gap)
		s->lost += ((const struct d9_ev_gap *)ev->rec)->events;
}

static int add_event(void *ctx, const struct d9_segr_event *ev)
{
	struct recording *r = ctx;
	const struct d9_event_desc *d = &d9_events[ev->id];
	r->clock = ev->clock;
	if (d->kind == D9_KIND_META)
		add_meta(r, ev);
	if (r->sums_only) {
		if (d->kind != D9_KIND_META)
			add_sum(r, ev);
		return 0;
	}
	r->items = grow(r->items, r->n_items, sizeof(*r->items));
	struct item *it = &r->items[r->n_items];
	*it = (struct item){
		.thread = ev->run.thread, .serial = ev->run.serial, .begin = ev->run.begin, .order = r->n_items};
	r->n_items++;
	it->rec = malloc(d->size);
	memcpy(it->rec, ev->rec, d->size);
	it->to = ev->rec->t;
	it->from = it->to - duration(ev->rec, ev->id);
	it->tail_kind = ev->tail.kind;
	it->n_text = ev->tail.n;
	if (ev->tail.n) {
		it->text = malloc(ev->tail.n);
		memcpy(it->text, ev->tail.p, ev->tail.n);
	}
	return 0;
}

static int add_run(void *ctx, const struct d9_run *run)
{
	struct recording *r = ctx;
	r->runs = grow(r->runs, r->n_runs, sizeof(*r->runs));
	r->runs[r->n_runs++] = *run;
	return 0;
}

static int add_segment(struct recording *r, struct d9_segr *s)
{
	int error = d9_segr_each(s, add_event, r);
	if (!error)
		error = d9_segr_each_run(s, add_run, r);
	d9_segr_close(s);
	return error;
}

/* ---- an arena that was left --------------------------------------------------------------------------- */

struct bytes {
	char *p;
	size_t n;
};

static int gather(void *ctx, const void *bytes, size_t n)
{
	struct bytes *b = ctx;
	char *p = realloc(b->p, b->n + n);
	if (!p)
		return -ENOMEM;
	b->p = p;
	memcpy(b->p + b->n, bytes, n);
	b->n += n;
	return 0;
}

static d9_u32 drained(void *ctx, d9_u32 thread, d9_u32 serial)
{
	const struct recording *r = ctx;
	d9_u32 upto = 0;
	for (size_t i = 0; i < r->n_runs; i++)
		if (r->runs[i].thread == thread && r->runs[i].serial == serial && r->runs[i].end > upto)
			upto = r->runs[i].end;
	return upto;
}

/* A copy by read(): to touch a hole of a full tmpfs through a mapping is SIGBUS. */
static void *copy_file(int fd, size_t n)
{
	char *m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	for (off_t at = 0, end; (at = lseek(fd, at, SEEK_DATA)) >= 0; at = end) {
		end = lseek(fd, at, SEEK_HOLE);
		while (at < end) {
			ssize_t k = pread(fd, m + at, (size_t)(end - at), at);
			if (k <= 0)
				return m;
			at += k;
		}
	}
	return m;
}

static int add_arena(struct recording *r, int dirfd)
{
	int fd = openat(dirfd, "arena", O_RDONLY);
	struct stat st;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	void *copy = fstat(fd, &st) ? NULL : copy_file(fd, (size_t)st.st_size);
	close(fd);
	if (!copy)
		return -ENOMEM;
	struct bytes out = {0};
	struct d9_segr *s;
	char err[256];
	void *mem = calloc(1, d9_drain_bytes());
	int error = !mem ? -ENOMEM : d9_drain_snapshot(mem, copy, (size_t)st.st_size, drained, r, gather, &out);
	free(mem);
	munmap(copy, (size_t)st.st_size);
	if (error) {
		fprintf(stderr, "read_events: the arena cannot be read: %s\n", strerror(-error));
		return error;
	}
	if ((error = d9_segr_open_memory(out.p, out.n, &s, err, sizeof(err)))) {
		fprintf(stderr, "read_events: %s\n", err);
		return error;
	}
	error = add_segment(r, s);
	free(out.p);
	return error;
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

static d9_u64 ns(const struct recording *r, d9_u64 t)
{
	const struct pair *a = &r->pairs[0], *b = a;
	for (size_t i = 0; i < r->n_pairs; i++) {
		a = r->pairs[i].t < a->t ? &r->pairs[i] : a;
		b = r->pairs[i].t > b->t ? &r->pairs[i] : b;
	}
	if (!r->n_pairs)
		return 0;
	double per_tick = b->mono - a->mono > 1000000 ? (double)(b->mono - a->mono) / (double)(b->t - a->t)
						      : 1e9 / r->hz * (double)(1u << (r->clock & 255));
	return a->mono + (d9_u64)(d9_i64)((double)(d9_i64)(t - a->t) * per_tick);
}

static void put_string(const char *key, const char *s, size_t n)
{
	printf(",\"%s\":\"", key);
	for (size_t i = 0; i < n; i++)
		if (s[i] == '"' || s[i] == '\\')
			printf("\\%c", s[i]);
		else if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			printf("\\u%04x", s[i]);
		else
			putchar(s[i]);
	putchar('"');
}

static const struct thread *thread_of(const struct recording *r, d9_u32 id)
{
	d9_u32 i = r->n_places ? *place_of(r, id) : 0;
	return i ? &r->threads[i - 1] : NULL;
}

static void put_hook(const struct recording *r, d9_u32 site)
{
	d9_u32 id = site < D9_SITE_FIRST ? site : site < N_META ? r->sites[site].hook : 0;
	const struct hook *h = &r->hooks[id < D9_N_HOOKS_MAX ? id : 0];
	put_string("kind", h->family, strlen(h->family));
	put_string("hook", h->name, strlen(h->name));
	if (site >= D9_SITE_FIRST && site < N_META)
		printf(",\"ra\":\"0x%llx\"", (unsigned long long)r->sites[site].ra);
}

static void put_field(const struct recording *r, const struct item *it, const struct d9_field_desc *f, d9_u64 v)
{
	const struct thread *t;
	switch (f->unit) {
	case D9_UNIT_TICKS:
		printf(",\"%s_ns\":%llu", f->name, (unsigned long long)(ns(r, it->to) - ns(r, it->to - v)));
		break;
	case D9_UNIT_TIME:
		if (v)
			printf(",\"%s_ns\":%llu", f->name, (unsigned long long)ns(r, v));
		else
			printf(",\"%s_ns\":null", f->name);
		break;
	case D9_UNIT_THREAD:
		t = thread_of(r, (d9_u32)v);
		if (t)
			printf(",\"%s\":%d", f->name, t->tid);
		else
			printf(",\"%s\":null", f->name);
		break;
	case D9_UNIT_ADDR:
		if (v)
			printf(",\"%s\":\"0x%llx\"", f->name, (unsigned long long)v);
		else
			printf(",\"%s\":null", f->name);
		break;
	case D9_UNIT_FD:
		if ((d9_i64)v < 0)
			printf(",\"%s\":null", f->name);
		else
			printf(",\"%s\":%llu", f->name, (unsigned long long)v);
		break;
	default:
		if (!strcmp(f->name, "hook"))
			put_hook(r, (d9_u32)v);
		else if (f->is_signed)
			printf(",\"%s%s\":%lld", f->name, f->unit == D9_UNIT_NS ? "_ns" : "", (long long)v);
		else if (v == D9_NOT_KNOWN)
			printf(",\"%s%s\":null", f->name, f->unit == D9_UNIT_NS ? "_ns" : "");
		else
			printf(",\"%s%s\":%llu", f->name, f->unit == D9_UNIT_NS ? "_ns" : "", (unsigned long long)v);
	}
}

static void put_tail(const struct item *it, const char *name)
{
	if (it->tail_kind == D9_TAIL_STRING || it->tail_kind == D9_TAIL_KERNEL)
		put_string(name, it->text, it->n_text);
	else if (it->tail_kind == D9_TAIL_DATA) {
		printf(",\"%s\":\"", name);
		for (d9_u32 i = 0; i < it->n_text; i++)
			printf("%02x", (unsigned char)it->text[i]);
		putchar('"');
	} else if (it->tail_kind)
		printf(",\"%s\":%u", name, it->tail_kind);
}

static void put_item(const struct recording *r, const struct item *it)
{
	d9_u32 id = D9_REC_ID(it->rec->head);
	const struct d9_event_desc *d = &d9_events[id];
	const struct thread *t = thread_of(r, it->thread);
	printf("{\"t_ns\":%llu", (unsigned long long)(it->to ? ns(r, it->from) : 0));
	if (t && t->proc < D9_N_PROCS)
		printf(",\"pid\":%d,\"tid\":%d", r->pids[t->proc], t->tid);
	else
		printf(",\"pid\":null,\"tid\":null");
	printf(",\"event\":\"%s\"", d->name);
	if (it->rec->site)
		put_hook(r, it->rec->site);
	const d9_u8 *p = (const d9_u8 *)(it->rec + 1);
	for (int i = 0; i < d->n_fields; p += d->fields[i].size, i++) {
		d9_u64 v = 0;
		memcpy(&v, p, d->fields[i].size);
		if (d->fields[i].is_signed && d->fields[i].size == 4)
			v = (d9_u64)(d9_i64)(d9_i32)v;
		put_field(r, it, &d->fields[i], v);
	}
	if (id == D9_EV_gap)
		printf(",\"to_ns\":%llu", (unsigned long long)ns(r, it->to));
	if (d->has_tail)
		put_tail(it, d->fields[d->n_fields].name);
	puts("}");
}

static void put_sums(const struct recording *r)
{
	for (size_t i = 0; i < r->cap_sums; i++) {
		const struct sum *s = &r->sums[i];
		const struct thread *t = s->n ? thread_of(r, s->thread) : NULL;
		if (!t || t->proc >= D9_N_PROCS)
			continue;
		printf("{\"pid\":%d,\"tid\":%d,\"event\":\"%s\",\"n\":%llu,\"lost\":%llu", r->pids[t->proc], t->tid,
		       d9_events[s->id].name, (unsigned long long)s->n, (unsigned long long)s->lost);
		if (s->site)
			put_hook(r, s->site);
		puts("}");
	}
}

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* ---- folders ---------------------------------------------------------------------------------------------- */

static int is_segment(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	return n > 3 && !strcmp(e->d_name + n - 3, ".d9");
}

static int read_folder(const char *path, int sums_only)
{
	static struct recording r;
	struct dirent **names;
	int n = scandir(path, &names, is_segment, alphasort), dirfd = open(path, O_RDONLY | O_DIRECTORY), bad = 0;
	memset(&r, 0, sizeof(r));
	r.sums_only = sums_only;
	if (n < 0 || dirfd < 0) {
		fprintf(stderr, "read_events: %s: %s\n", path, strerror(errno));
		return 1;
	}
	for (int i = 0; i < n; i++) {
		struct d9_segr *s;
		char err[256];
		if (d9_segr_open_at(dirfd, names[i]->d_name, &s, err, sizeof(err))) {
			fprintf(stderr, "read_events: %s\n", err);
			bad = 1;
		} else if (add_segment(&r, s))
			bad = 1;
	}
	bad |= add_arena(&r, dirfd) != 0;
	qsort(r.items, r.n_items, sizeof(*r.items), by_time);
	for (size_t i = 0; i < r.n_items; i++)
		put_item(&r, &r.items[i]);
	put_sums(&r);
	return bad;
}

int main(int argc, char **argv)
{
	int sums_only = argc > 1 && !strcmp(argv[1], "--sums"), bad = argc < 2 + sums_only;
	for (int i = 1 + sums_only; i < argc; i++)
		bad |= read_folder(argv[i], sums_only);
	return bad;
}
