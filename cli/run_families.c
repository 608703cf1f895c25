/* See run_families.h. */
#include "run_families.h"

#include "format/segment_read.h"
#include "shim/adopt.h"
#include "shim/atomic.h"
#include "shim/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESCAN_NS 20000000ull /* how soon a new family is noticed */
#define PASS_NS 500000000ull  /* how often a family is drained without being asked */
#define ALIVE_NS 200000000ull /* how often it is seen whether a family has ended */
#define HOLD_NS 1500000000ull /* longer than d9-kernel looks for its folder */
#define EAGER_TRIES 100u /* then a folder that has nothing to take over is looked at as often as a family is drained */

struct family {
	char name[NAME_MAX + 1];
	struct d9_adopted a;
	enum {
		NOT_OURS, /* there before, or recorded by another run */
		WAITING,  /* nothing in it tells yet whose it is, or it cannot be had yet */
		DRAINING,
		ITS_OWN, /* ours, but it drains itself: it was over before it was seen, or has no memory to share */
		ENDED
	} state;
	unsigned tries;
	d9_u64 tried_mono, passed_mono, alive_mono;
	d9_u64 events, dropped, segments;
	int unwritten;      /* errno that its last pass met */
	char left_out[400]; /* what the recorder said of a program that is not recorded */
};

struct d9_families {
	char dir[PATH_MAX], run[40];
	struct family *of;
	unsigned n, room;
	d9_u64 scanned_mono, held_mono; /* held: until then nothing is finished */
	struct timespec dir_mtime;
};

static struct family *find(struct d9_families *f, const char *name)
{
	for (unsigned i = 0; i < f->n; i++)
		if (!strcmp(f->of[i].name, name))
			return &f->of[i];
	return NULL;
}

static struct family *add(struct d9_families *f, const char *name)
{
	if (f->n == f->room) {
		unsigned room = f->room ? 2 * f->room : 64;
		struct family *of = realloc(f->of, room * sizeof(*of));
		if (!of)
			return NULL;
		f->of = of;
		f->room = room;
	}
	struct family *m = &f->of[f->n++];
	*m = (struct family){.state = WAITING};
	snprintf(m->name, sizeof(m->name), "%s", name);
	return m;
}

/* Notices the folders that are there now.  The folder's own time tells whether it changed at all. */
static void scan(struct d9_families *f, int state)
{
	struct stat st;
	if (stat(f->dir, &st))
		return;
	if (state == WAITING && st.st_mtim.tv_sec == f->dir_mtime.tv_sec && st.st_mtim.tv_nsec == f->dir_mtime.tv_nsec)
		return;
	DIR *d = opendir(f->dir);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] == '.' || find(f, e->d_name))
			continue;
		struct family *m = add(f, e->d_name);
		if (m)
			m->state = state;
	}
	closedir(d);
	f->dir_mtime = st.st_mtim;
}

struct d9_families *d9_families_new(const char *dir, const char *run)
{
	struct d9_families *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	snprintf(f->dir, sizeof(f->dir), "%s", dir);
	snprintf(f->run, sizeof(f->run), "%s", run);
	scan(f, NOT_OURS);
	return f;
}

static int open_folder(const struct d9_families *f, const struct family *m)
{
	char path[PATH_MAX + NAME_MAX + 2];
	snprintf(path, sizeof(path), "%s/%s", f->dir, m->name);
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void note_counts(struct family *m)
{
	m->events = m->a.h->events_drained;
	m->dropped = m->a.h->drops;
}

/* ---- a family that drains itself: what its segments say ------------------------------------------------- */

/* Calls fn for the records of the folder's segments, until it returns something else than 0. */
static void each_record(const struct d9_families *f, const struct family *m, d9_segr_fn *fn, void *ctx)
{
	int dir = open_folder(f, m), r = 0;
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	if (!d) {
		if (dir >= 0)
			close(dir);
		return;
	}
	for (struct dirent *e; !r && (e = readdir(d));) {
		struct d9_segr *s;
		if (!d9_is_segment_name(e->d_name) || d9_segr_open_at(dirfd(d), e->d_name, &s, NULL, 0))
			continue;
		r = d9_segr_each(s, fn, ctx);
		d9_segr_close(s);
	}
	closedir(d);
}

struct whose {
	const char *run;
	bool told, ours;
};
static int find_run(void *ctx, const struct d9_segr_event *ev)
{
	struct whose *w = ctx;
	size_t n = strlen(w->run);
	if (ev->id != D9_EV_info)
		return 0;
	w->told = true;
	w->ours = ev->tail.n == 4 + n && !memcmp(ev->tail.p, "run=", 4) && !memcmp(ev->tail.p + 4, w->run, n);
	return w->ours;
}

/* Whose it is can be told from its segments alone, and they only once there is no memory to be waited for. */
static void judge(const struct d9_families *f, struct family *m)
{
	struct whose w = {.run = f->run};
	each_record(f, m, find_run, &w);
	if (w.told)
		m->state = w.ours ? ITS_OWN : NOT_OURS;
}

/* Keeps the first line of this text that tells of a program left out.  The text may be a family's memory: nothing ends it but n. */
static void note_left_out(struct family *m, const char *text, size_t n)
{
	for (size_t at = 0, len; at < n && text[at] && !m->left_out[0]; at += len + 1) {
		for (len = 0; at + len < n && text[at + len] && text[at + len] != '\n'; len++)
			;
		snprintf(m->left_out, sizeof(m->left_out), "%.*s", (int)len, text + at);
		if (!strstr(m->left_out, " is not recorded: "))
			m->left_out[0] = 0;
	}
}

static int count_record(void *ctx, const struct d9_segr_event *ev)
{
	struct family *m = ctx;
	m->events += d9_events[ev->id].kind != D9_KIND_META;
	if (ev->id == D9_EV_info && ev->tail.n > 8 && !memcmp(ev->tail.p, "warning=", 8))
		note_left_out(m, (const char *)ev->tail.p + 8, ev->tail.n - 8);
	return 0;
}

/* ---- taking over, draining ------------------------------------------------------------------------------ */

/* Takes a family over as soon as its memory is ready. */
static void take_over(struct d9_families *f, struct family *m, d9_u64 now)
{
	if (m->tries > EAGER_TRIES && now - m->tried_mono < PASS_NS)
		return;
	m->tries++;
	m->tried_mono = now;
	int dir = open_folder(f, m);
	int r = dir < 0 ? -errno : d9_adopt_open(dir, D9_LEASE_RUN, f->run, &m->a);
	if (!r) {
		m->state = DRAINING;
		return;
	}
	if (dir >= 0)
		close(dir);
	switch (r) {
	case -ENOENT: /* not made yet, over already, or no memory that can be shared */
		judge(f, m);
		break;
	case -EBADMSG: /* its header is not finished, or never will be ours to read */
	case -EAGAIN:  /* ours, and it drains itself at present */
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		break;
	default: /* another run's, another user's, no folder */
		m->state = NOT_OURS;
	}
}

static bool last_pass(struct family *m)
{
	int r = d9_drain_pass(m->a.d, D9_PASS_FINAL);
	note_counts(m);
	note_left_out(m, m->a.h->warnings, sizeof(m->a.h->warnings));
	m->unwritten = r < 0 ? -r : 0;
	return r >= 0;
}

static void finish(struct family *m)
{
	if (last_pass(m))
		d9_adopt_remove(&m->a);
	d9_adopt_close(&m->a);
	m->state = ENDED;
}

static bool asked(const struct family *m)
{
	const struct d9_arena_header *h = m->a.h;
	return d9_load_relaxed(&h->flush_asked) != d9_load_relaxed(&h->flush_done) ||
	       d9_load_relaxed(&h->chunks_full) > h->n_chunks / 8;
}

static void drain(const struct d9_families *f, struct family *m, d9_u64 now)
{
	if (asked(m) || now - m->passed_mono >= PASS_NS) {
		m->passed_mono = now;
		(void)d9_drain_pass(m->a.d, 0);
		note_counts(m);
	}
	if (now >= f->held_mono && now - m->alive_mono >= ALIVE_NS) {
		m->alive_mono = now;
		if (!d9_drain_alive(m->a.d))
			finish(m);
	}
}

/* ---- the session's budget ------------------------------------------------------------------------------ */

struct oldest {
	d9_u64 total, n;
	struct timespec t;
	char path[PATH_MAX + 2 * NAME_MAX + 3];
	d9_u64 bytes;
};

static void measure_folder(const struct d9_families *f, const struct family *m, struct oldest *o)
{
	char path[PATH_MAX + NAME_MAX + 2];
	snprintf(path, sizeof(path), "%s/%s", f->dir, m->name);
	DIR *d = opendir(path);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		if (!d9_is_segment_name(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		o->total += (d9_u64)st.st_size;
		o->n++;
		if (o->path[0] && (st.st_mtim.tv_sec > o->t.tv_sec ||
				   (st.st_mtim.tv_sec == o->t.tv_sec && st.st_mtim.tv_nsec >= o->t.tv_nsec)))
			continue;
		o->t = st.st_mtim;
		o->bytes = (d9_u64)st.st_size;
		snprintf(o->path, sizeof(o->path), "%s/%s", path, e->d_name);
	}
	closedir(d);
}

/* A folder that is still waited for may be another run's: it is no part of this session until it has said so. */
static bool ours(const struct family *m) { return m->state == DRAINING || m->state == ITS_OWN || m->state == ENDED; }

static void measure(const struct d9_families *f, struct oldest *o)
{
	*o = (struct oldest){.total = 0};
	for (unsigned i = 0; i < f->n; i++)
		if (ours(&f->of[i]))
			measure_folder(f, &f->of[i], o);
}

/* After a segment was closed somewhere: the oldest of the session go until it is within its budget. */
static void evict(struct d9_families *f)
{
	bool rolled = false;
	d9_u64 budget = 0;
	for (unsigned i = 0; i < f->n; i++) {
		struct family *m = &f->of[i];
		if (m->state != DRAINING)
			continue;
		budget = m->a.h->total_bytes > budget ? m->a.h->total_bytes : budget;
		rolled |= m->a.h->segments != m->segments;
		m->segments = m->a.h->segments;
	}
	struct oldest o;
	while (rolled && budget) {
		measure(f, &o);
		if (o.n < 2 || o.total <= budget || unlink(o.path))
			return;
	}
}

void d9_families_hold(struct d9_families *f) { f->held_mono = d9_mono_ns() + HOLD_NS; }

void d9_families_round(struct d9_families *f)
{
	d9_u64 now = d9_mono_ns();
	if (now - f->scanned_mono >= RESCAN_NS) {
		f->scanned_mono = now;
		scan(f, WAITING);
	}
	for (unsigned i = 0; i < f->n; i++) {
		if (f->of[i].state == WAITING)
			take_over(f, &f->of[i], now);
		if (f->of[i].state == DRAINING)
			drain(f, &f->of[i], now);
	}
	evict(f);
}

/* Every family that is there now is taken over, if it can be. */
static void take_all(struct d9_families *f)
{
	d9_u64 now = d9_mono_ns();
	f->dir_mtime = (struct timespec){0};
	scan(f, WAITING);
	for (unsigned i = 0; i < f->n; i++) {
		f->of[i].tries = 0;
		if (f->of[i].state == WAITING)
			take_over(f, &f->of[i], now);
	}
}

void d9_families_ended(struct d9_families *f, int pid, int status)
{
	/* Told before anything is drained: a drainer that finds the process gone by itself does not know how it ended. */
	take_all(f);
	for (unsigned i = 0; i < f->n; i++)
		if (f->of[i].state == DRAINING)
			d9_drain_child_ended(f->of[i].a.d, pid, status);
}

void d9_families_finish(struct d9_families *f)
{
	take_all(f);
	for (unsigned i = 0; i < f->n; i++) {
		struct family *m = &f->of[i];
		if (m->state == WAITING)
			judge(f, m);
		if (m->state == ITS_OWN)
			each_record(f, m, count_record, m);
		if (m->state != DRAINING)
			continue;
		if (!d9_drain_alive(m->a.d)) {
			finish(m);
			continue;
		}
		(void)last_pass(m); /* its segment is closed; the next is its own thread's */
		d9_adopt_close(&m->a);
		m->state = ENDED;
	}
}

void d9_families_free(struct d9_families *f)
{
	if (!f)
		return;
	free(f->of);
	free(f);
}

int d9_families_folder(const struct d9_families *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (ours(&f->of[i]))
			return open_folder(f, &f->of[i]);
	return -1;
}

bool d9_families_on(const struct d9_families *f)
{
	bool known = false;
	for (unsigned i = 0; i < f->n; i++) {
		if (f->of[i].state != DRAINING)
			continue;
		if (d9_load_relaxed(&f->of[i].a.h->mask))
			return true;
		known = true;
	}
	return !known;
}

/* As the recorder's own: whoever finds the lock taken lets it be for now. */
bool d9_families_warn(const struct d9_families *f, const char *line)
{
	unsigned i = 0;
	d9_u32 unlocked = 0;
	while (i < f->n && f->of[i].state != DRAINING)
		i++;
	struct d9_arena_header *h = i < f->n ? f->of[i].a.h : NULL;
	if (!h || !d9_cas_acq_rel(&h->warnings_lock, &unlocked, 1))
		return false;
	size_t at = strnlen(h->warnings, sizeof(h->warnings)), n = strlen(line);
	if (at + n + 2 <= sizeof(h->warnings)) {
		memcpy(h->warnings + at, line, n);
		memcpy(h->warnings + at + n, "\n", 2);
	}
	d9_store_release(&h->warnings_lock, 0);
	return true;
}

unsigned d9_families_count(const struct d9_families *f)
{
	unsigned n = 0;
	for (unsigned i = 0; i < f->n; i++)
		n += ours(&f->of[i]);
	return n;
}

d9_u64 d9_families_events(const struct d9_families *f)
{
	d9_u64 n = 0;
	for (unsigned i = 0; i < f->n; i++)
		n += f->of[i].events;
	return n;
}

d9_u64 d9_families_dropped(const struct d9_families *f)
{
	d9_u64 n = 0;
	for (unsigned i = 0; i < f->n; i++)
		n += f->of[i].dropped;
	return n;
}

unsigned d9_families_unwritten(const struct d9_families *f, int *ret_errno)
{
	unsigned n = 0;
	for (unsigned i = 0; i < f->n; i++)
		if (f->of[i].unwritten) {
			*ret_errno = f->of[i].unwritten;
			n++;
		}
	return n;
}

d9_u64 d9_families_bytes(const struct d9_families *f)
{
	struct oldest o;
	measure(f, &o);
	return o.total;
}

const char *d9_families_left_out(const struct d9_families *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->of[i].left_out[0])
			return f->of[i].left_out;
	return NULL;
}
