/*
 * From the DIR operand to the folders to read.  A traces folder holds one folder per process family;
 * which families make one session follows from who started whom: a family whose first process was
 * exec'd by (same pid and start time) or is a child of (ppid) a process of another one belongs to it.  What d9-kernel wrote of
 * a process into a folder of its own belongs to the session of that process.
 * Everything else in the folder is somebody else's and is passed over in silence.
 */
#include "clean.h"
#include "trace_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a family says of itself, for the grouping alone ------------------------------------ */

struct proc_key {
	d9_i32 pid, ppid;
	d9_u64 start;
	bool root, execs; /* execs: it said that it would run another program */
};
struct candidate {
	struct d9_folder folder;
	D9_VEC(struct proc_key) procs;
	struct d9_clock_map clock;
	d9_u64 born;             /* of its first process, cycles */
	d9_u64 created, touched; /* CLOCK_REALTIME ns: began; last written */
	d9_u32 parent;           /* index or D9_NO_INDEX */
	bool kernel;             /* d9-kernel alone wrote there */
};
typedef D9_VEC(struct candidate) candidates;

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir) + strlen(name) + 2;
	char *path = d9_must_alloc(n, 1);
	snprintf(path, n, "%s/%s", dir, name);
	return path;
}

/* A name as it may be printed. */
static char *shown(const char *name) { return d9_clean(strdup(name), strlen(name)); }

static int by_number(const void *a, const void *b)
{
	unsigned long x = strtoul(*(char *const *)a + 2, NULL, 10), y = strtoul(*(char *const *)b + 2, NULL, 10);
	return x < y ? -1 : x > y;
}

static void folder_fini(struct d9_folder *f)
{
	for (size_t i = 0; i < f->segments.n; i++)
		free(f->segments.v[i]);
	for (size_t i = 0; i < f->kernel.n; i++)
		free(f->kernel.v[i]);
	d9_vec_free(&f->segments);
	d9_vec_free(&f->kernel);
	free(f->path);
	free(f->name);
}

static char *base_name(const char *path)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t i = n;
	while (i && path[i - 1] != '/')
		i--;
	return strndup(path + i, n - i);
}

/* Lists a process folder.  0 or -errno; *ret is empty if there is nothing of ours in it. */
static int list_folder(const char *path, struct d9_folder *ret)
{
	DIR *d = opendir(path);
	if (!d)
		return -errno;
	*ret = (struct d9_folder){.path = strdup(path), .name = base_name(path)};
	for (struct dirent *e; (e = readdir(d));) {
		if (d9_is_segment_name(e->d_name) && e->d_name[0] == 's')
			d9_vec_push(&ret->segments, strdup(e->d_name));
		else if (d9_is_segment_name(e->d_name))
			d9_vec_push(&ret->kernel, strdup(e->d_name));
		else if (!strcmp(e->d_name, "arena"))
			ret->has_arena = true;
	}
	closedir(d);
	if (ret->segments.n)
		qsort(ret->segments.v, ret->segments.n, sizeof(char *), by_number);
	if (ret->kernel.n)
		qsort(ret->kernel.v, ret->kernel.n, sizeof(char *), by_number);
	return 0;
}

static bool is_empty(const struct d9_folder *f) { return !d9_has_service(f) && !f->kernel.n; }

/* ---- grouping ---------------------------------------------------------------------------------- */

static int see_proc(void *ctx, const struct d9_segr_event *ev)
{
	struct candidate *c = ctx;
	if (ev->id == D9_EV_clock) {
		const struct d9_ev_clock *e = (const void *)ev->rec;
		d9_clock_add(&c->clock, e->tsc, e->mono, e->real);
	}
	if (ev->id == D9_EV_exec) {
		const struct d9_ev_exec *e = (const void *)ev->rec;
		for (size_t i = 0; i < c->procs.n; i++)
			c->procs.v[i].execs |= c->procs.v[i].pid == e->pid;
	}
	if (ev->id != D9_EV_proc)
		return 0;
	const struct d9_ev_proc *p = (const void *)ev->rec;
	if (p->parent == D9_NO_INDEX && p->born)
		c->born = p->born << (ev->clock & 63);
	for (size_t i = 0; i < c->procs.n; i++)
		if (c->procs.v[i].pid == p->pid && c->procs.v[i].start == p->start)
			return 0;
	d9_vec_push(&c->procs, (struct proc_key){p->pid, p->ppid, p->start, p->parent == D9_NO_INDEX, false});
	return 0;
}

static void see_segment(struct candidate *c, int dirfd, const char *name)
{
	struct d9_segr *r;
	char err[256];
	if (d9_segr_open_at(dirfd, name, &r, err, sizeof(err)) < 0)
		return;
	if (!c->created || d9_segr_header(r)->created_real < c->created)
		c->created = d9_segr_header(r)->created_real;
	d9_segr_each(r, see_proc, c);
	d9_segr_close(r);
	struct stat st;
	if (!fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW)) {
		d9_u64 t = (d9_u64)st.st_mtim.tv_sec * 1000000000 + (d9_u64)st.st_mtim.tv_nsec;
		c->touched = t > c->touched ? t : c->touched;
	}
}

/* A family that has no segment yet says who it is in its arena. */
static void see_arena(struct candidate *c)
{
	char err[256] = "", *path = join(c->folder.path, "arena");
	void *bytes;
	size_t n;
	struct d9_segr *r;
	if (!d9_arena_input(path, NULL, NULL, NULL, &bytes, &n, err, sizeof(err))) {
		if (!d9_segr_open_memory(bytes, n, &r, err, sizeof(err))) {
			d9_segr_each(r, see_proc, c);
			d9_segr_close(r);
		}
		free(bytes);
	}
	free(path);
}

/* When its first process was first seen: segments are made later, and in any order. */
static void date(struct candidate *c)
{
	size_t cursor = 0;
	d9_clock_finish(&c->clock);
	if (c->born && c->clock.n)
		c->created = d9_clock_mono_to_real(&c->clock, d9_clock_to_mono(&c->clock, c->born, &cursor));
	free(c->clock.v);
	c->clock = (struct d9_clock_map){0};
}

static void see_candidate(struct candidate *c)
{
	c->parent = D9_NO_INDEX;
	int fd = open(c->folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	for (size_t i = 0; i < c->folder.segments.n; i++)
		see_segment(c, fd, c->folder.segments.v[i]);
	c->kernel = !d9_has_service(&c->folder);
	for (size_t i = 0; i < c->folder.kernel.n && c->kernel; i++)
		see_segment(c, fd, c->folder.kernel.v[i]);
	if (c->folder.has_arena && !c->procs.n)
		see_arena(c);
	date(c);
	struct stat st;
	if (!fstat(fd, &st)) {
		d9_u64 t = (d9_u64)st.st_mtim.tv_sec * 1000000000 + (d9_u64)st.st_mtim.tv_nsec;
		if (!c->created && (c->folder.segments.n || c->kernel))
			c->created = t; /* an arena that is gone and no segment: nothing to read, so never the newest */
		c->touched = t > c->touched ? t : c->touched;
	}
	close(fd);
}

static const struct proc_key *root_of(const struct candidate *c)
{
	for (size_t i = 0; i < c->procs.n; i++)
		if (c->procs.v[i].root)
			return &c->procs.v[i];
	return c->procs.n ? &c->procs.v[0] : NULL;
}

/*
 * An exec'd family has the pid and start time that its parent family knows, or its pid alone if that was over before a drainer
 * looked and said itself that it would exec; a child has its ppid.
 */
static bool is_parent(const struct candidate *p, const struct candidate *c)
{
	const struct proc_key *r = root_of(c);
	if (!r || c->created < p->created || c->created > p->touched + 60000000000ull)
		return false;
	for (size_t i = 0; i < p->procs.n; i++) {
		const struct proc_key *k = &p->procs.v[i];
		bool same = k->pid == r->pid && (k->start && r->start ? k->start == r->start : k->execs);
		bool child = k->pid == r->ppid && (!r->start || k->start <= r->start);
		if ((same && p->created < c->created) || (child && k->pid > 1))
			return true;
	}
	return false;
}

/* Is one of its processes one of the service's?  Without start times the pid is enough while the service was there. */
static bool watches(const struct candidate *kernel, const struct candidate *p)
{
	bool together = kernel->touched >= p->created && kernel->created <= p->touched + 60000000000ull;
	for (size_t i = 0; i < kernel->procs.n; i++)
		for (size_t k = 0; k < p->procs.n; k++) {
			const struct proc_key *a = &kernel->procs.v[i], *b = &p->procs.v[k];
			if (a->pid == b->pid && (a->start && b->start ? a->start == b->start : together))
				return true;
		}
	return false;
}

static bool belongs_to(const struct candidate *c, const struct candidate *p)
{
	return !p->kernel && (c->kernel ? watches(c, p) : is_parent(p, c));
}

static void group(candidates *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct candidate *c = &all->v[i];
		for (size_t k = 0; k < all->n; k++) {
			const struct candidate *p = &all->v[k];
			if (k != i && belongs_to(c, p) &&
			    (c->parent == D9_NO_INDEX || p->created > all->v[c->parent].created))
				c->parent = (d9_u32)k;
		}
	}
}

static size_t root_index(const candidates *all, size_t i)
{
	for (size_t hops = 0; all->v[i].parent != D9_NO_INDEX && hops < all->n; hops++)
		i = all->v[i].parent;
	return i;
}

/* ---- selection ----------------------------------------------------------------------------------- */

/* wanted: the session asked for, or NULL.  -EACCES: it, or all there is, may not be read. */
static int read_all(const char *dir, const char *wanted, candidates *all)
{
	DIR *d = opendir(dir);
	if (!d)
		return -errno;
	unsigned denied = 0;
	bool wanted_denied = false;
	for (struct dirent *e; (e = readdir(d));) {
		if (!d9_is_folder_name(e->d_name))
			continue;
		struct candidate c = {.parent = D9_NO_INDEX};
		char *path = join(dir, e->d_name);
		int r = d9_is_link(path) ? -ENOTDIR : list_folder(path, &c.folder);
		free(path);
		if (r == -EACCES) {
			denied++;
			wanted_denied |= wanted && !strcmp(wanted, e->d_name);
		}
		if (r < 0)
			continue;
		if (is_empty(&c.folder))
			folder_fini(&c.folder);
		else
			d9_vec_push(all, c);
	}
	closedir(d);
	if (wanted_denied || (denied && !all->n))
		return -EACCES;
	if (denied && (!wanted || !strcmp(wanted, "all")))
		d9_warn("left out of %s: %u folder%s that may not be read by this user", dir, denied,
			denied == 1 ? "" : "s");
	return all->n ? 0 : -ENOENT;
}

static int choose(const candidates *all, const struct d9_read_opts *o, size_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < all->n; i++) {
		if (o->session && !strcmp(all->v[i].folder.name, o->session)) {
			*ret = root_index(all, i);
			return 0;
		}
		if (!o->session && all->v[i].parent == D9_NO_INDEX && all->v[i].created > all->v[*ret].created)
			*ret = i;
	}
	if (o->session && strcmp(o->session, "all"))
		return -ENOENT;
	*ret = root_index(all, *ret);
	return 0;
}

static int by_created(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	return x->created < y->created ? -1 : x->created > y->created;
}

static void take(candidates *all, size_t root, bool every, struct d9_selection *ret)
{
	ret->session = shown(every ? "all" : all->v[root].folder.name);
	for (size_t i = 0; i < all->n; i++)
		if (every || root_index(all, i) == root)
			d9_vec_push(&ret->folders, all->v[i].folder);
		else
			folder_fini(&all->v[i].folder);
	for (size_t i = 0; i < all->n; i++)
		d9_vec_free(&all->v[i].procs);
}

static int find_in(const struct d9_read_opts *o, struct d9_selection *ret)
{
	candidates all = {0};
	int r = read_all(o->dir, o->session, &all);
	if (r < 0) {
		for (size_t i = 0; i < all.n; i++)
			folder_fini(&all.v[i].folder);
		d9_vec_free(&all);
		return r;
	}
	if (all.n > 1)
		for (size_t i = 0; i < all.n; i++)
			see_candidate(&all.v[i]);
	qsort(all.v, all.n, sizeof(*all.v), by_created);
	group(&all);
	size_t root;
	r = choose(&all, o, &root);
	if (!r)
		take(&all, root, o->session && !strcmp(o->session, "all"), ret);
	d9_vec_free(&all);
	return r;
}

static int tell(const struct d9_read_opts *o, int r)
{
	if (r == -EACCES || r == -EPERM)
		return d9_fail(D9_EXIT_PERMISSION,
			       "no permission to read %s%s%s; use the user that recorded it, or root", o->dir,
			       o->session ? ", session " : "", o->session ? o->session : "");
	struct stat st;
	if (r == -ENOENT && stat(o->dir, &st) < 0)
		return d9_fail(D9_EXIT_DATA, "there is no %s; `d9 run -- COMMAND` records into ./d9-traces", o->dir);
	if (r == -ENOENT && o->session)
		return d9_fail(D9_EXIT_DATA, "%s holds no session %s", o->dir, o->session);
	if (r == -ENOENT)
		return d9_fail(D9_EXIT_DATA, "%s holds no recording", o->dir);
	return d9_fail(D9_EXIT_DATA, "cannot read %s: %s", o->dir, strerror(-r));
}

int d9_find_session(const struct d9_read_opts *o, struct d9_selection *ret)
{
	*ret = (struct d9_selection){0};
	struct stat st;
	if (stat(o->dir, &st) < 0)
		return tell(o, -errno);
	if (S_ISREG(st.st_mode)) {
		struct d9_folder f = {.path = strdup(o->dir), .name = base_name(o->dir), .is_file = true};
		if (d9_is_segment_name(f.name) && *f.name == 'k')
			d9_vec_push(&f.kernel, strdup(f.name));
		ret->session = shown(f.name);
		d9_vec_push(&ret->folders, f);
		return D9_EXIT_OK;
	}
	struct d9_folder f;
	int r = list_folder(o->dir, &f);
	if (r < 0)
		return tell(o, r);
	if (!is_empty(&f)) {
		ret->session = shown(f.name);
		d9_vec_push(&ret->folders, f);
		return D9_EXIT_OK;
	}
	folder_fini(&f);
	r = find_in(o, ret);
	return r < 0 ? tell(o, r) : D9_EXIT_OK;
}

void d9_selection_free(struct d9_selection *s)
{
	for (size_t i = 0; i < s->folders.n; i++)
		folder_fini(&s->folders.v[i]);
	d9_vec_free(&s->folders);
	free(s->session);
}
