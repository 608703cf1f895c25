/* d9 status: what is being recorded, how far back it reaches, and what is wrong. */
#include "clean.h"
#include "cmd.h"
#include "json.h"
#include "live.h"
#include "vec.h"

#include "format/segment.h"
#include "shim/clock.h"
#include "shim/view.h"

#include <dirent.h>
#include <fcntl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct state {
	char id[300];
	const char *word; /* on, off, stopped, failed, dead */
	bool alive, readable;
	int pid;
	d9_u64 disk_bytes, n_segments;
	d9_u64 events, dropped, bytes, segments, heartbeat_age, total_budget, started_mono;
	d9_u32 error_code;
	char error[260];
	char warnings[2048], notes[1100];
	bool configured, supported, active, shared;
};

static const char *const error_words[] = {"none", "dir", "space", "memory", "thread", "limit"};

static void disk_use(const char *folder, struct state *s)
{
	DIR *d = opendir(folder);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		if (!d9_is_segment_name(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		s->disk_bytes += (d9_u64)st.st_size;
		s->n_segments++;
	}
	closedir(d);
}

/* Did a call on an io_uring come to a hook, in any process of the family? */
static bool ring_call_seen(const struct d9_live *l)
{
	size_t n_hooks = D9_N_HOOKS_MAX * sizeof(struct d9_hook_entry), n_sites = D9_N_SITES * sizeof(struct d9_site);
	struct d9_hook_entry *hooks = d9_must_alloc(D9_N_HOOKS_MAX, sizeof(*hooks));
	struct d9_site *sites = d9_must_alloc(D9_N_SITES, sizeof(*sites));
	bool found = false;
	bool read = pread(l->fd, hooks, n_hooks, (off_t)D9_OFF_HOOKS) == (ssize_t)n_hooks &&
		    pread(l->fd, sites, n_sites, (off_t)d9_off_sites(l->h->n_chunks)) == (ssize_t)n_sites;
	for (size_t i = 0; read && i < D9_N_SITES && !found; i++) {
		d9_u32 hook = sites[i].key & 0x7fffffffu;
		found = sites[i].ready && hook < D9_N_HOOKS_MAX &&
			!strncmp(hooks[hook].family, "uring", sizeof(hooks->family));
	}
	free(hooks);
	free(sites);
	return found;
}

/* Members that have an io_uring: a line beside the recorder's own warnings. */
static void tell_rings(const struct d9_live *l, struct state *s)
{
	struct d9_view v;
	d9_view_init(&v, l->map, l->h->n_chunks);
	d9_u32 n = l->h->proc_next < D9_N_PROCS ? l->h->proc_next : D9_N_PROCS, rings = 0, first = 0;
	for (d9_u32 i = n; i-- > 0;)
		if (v.procs[i].uring && v.procs[i].state == D9_PROC_LIVE) {
			first = i;
			rings++;
		}
	if (!rings)
		return;
	char more[40] = "";
	if (rings > 1)
		snprintf(more, sizeof(more), " (and %u more of them)", rings - 1);
	size_t len = strlen(s->warnings);
	snprintf(s->warnings + len, sizeof(s->warnings) - len, "pid %d%s has an io_uring, %s\n", v.procs[first].pid,
		 more,
		 ring_call_seen(l) ? "calls on it are seen, a completion found without a call is not"
				   : "no call on it came to a hook so far: a wait there is not seen");
}

/* A text of the header's, a line each, fit for a terminal. */
static void copy_lines(char *to, size_t size, const char *from, size_t from_size)
{
	snprintf(to, size, "%.*s", (int)from_size - 1, from);
	for (char *line = to; *line; line += *line == '\n') {
		size_t n = strcspn(line, "\n");
		line = d9_clean(line, n) + n;
	}
}

/* What the header of its arena says. */
static void from_header(const struct d9_live *l, struct state *s)
{
	const struct d9_arena_header *h = l->h;
	d9_u64 now = d9_mono_ns(), beat = h->lease.heartbeat_mono;
	int able, members = d9_live_members(l, &able);
	s->readable = true;
	s->alive = members != 0;
	s->pid = (int)h->creator_pid;
	s->configured = h->configured_mask != 0;
	s->supported = able != 0 || !members;
	s->active = s->alive && able != 0 && h->mask != 0;
	s->shared = true;
	s->dropped = h->drops;
	s->events = h->events_drained;
	s->bytes = h->bytes_written;
	s->segments = h->segments;
	s->total_budget = h->total_bytes;
	s->started_mono = h->started_mono;
	s->heartbeat_age = beat && beat <= now ? now - beat : D9_NOT_KNOWN;
	s->error_code = h->error_code < sizeof(error_words) / sizeof(*error_words) ? h->error_code : 0;
	if (s->error_code)
		snprintf(s->error, sizeof(s->error), "%.*s: %s", (int)sizeof(h->error_text) - 1, h->error_text,
			 strerror((int)h->error_errno));
	d9_clean(s->error, strlen(s->error));
	copy_lines(s->warnings, sizeof(s->warnings), h->warnings, sizeof(h->warnings));
	copy_lines(s->notes, sizeof(s->notes), h->notes, sizeof(h->notes));
	tell_rings(l, s);
	/* A drainer that has not been heard of for long while there is something to drain is a recorder that stands still. */
	bool stopped = !s->supported || (s->heartbeat_age != D9_NOT_KNOWN && s->heartbeat_age > 10000000000ull);
	s->word = !s->alive ? "dead" : s->error_code ? "failed" : stopped ? "stopped" : h->mask ? "on" : "off";
}

static void name_it(struct state *s, const char *path)
{
	const char *base = strrchr(path, '/');
	snprintf(s->id, sizeof(s->id), "%.*s", (int)sizeof(s->id) - 1, base ? base + 1 : path);
	d9_clean(s->id, strlen(s->id));
}

/* 0, or -EACCES or -EPERM: whether it runs may not be looked at. */
static int read_folder(const char *folder, struct state *s)
{
	struct d9_live l;
	*s = (struct state){.heartbeat_age = D9_NOT_KNOWN, .word = "dead"};
	name_it(s, folder);
	disk_use(folder, s);
	int r = d9_live_open_folder(folder, 0, &l);
	if (!r) {
		from_header(&l, s);
		d9_live_close(&l);
	}
	if (r == -EBADMSG) {
		s->word = "failed";
		snprintf(s->warnings, sizeof(s->warnings),
			 "its session memory is of another version or damaged: use the d9 that came with its "
			 "libd9shim.so");
	}
	return r == -EACCES || r == -EPERM ? r : 0;
}

/* ---- printing --------------------------------------------------------------------------------------- */

static void json_lines(struct d9_json *j, const char *key, const char *p)
{
	d9_json_array(j, key);
	while (*p) {
		size_t len = strcspn(p, "\n");
		d9_json_strn(j, NULL, p, len);
		p += len + (p[len] == '\n');
	}
	d9_json_end_array(j);
}

static void print_lines(const char *what, const char *p)
{
	while (*p) {
		size_t len = strcspn(p, "\n");
		printf("    %s: %.*s\n", what, (int)len, p);
		p += len + (p[len] == '\n');
	}
}

static void print_json(const char *loss, d9_u64 covers, d9_u64 disk, const struct state *s, size_t n)
{
	struct d9_json j;
	d9_json_document(&j, stdout, "status");
	d9_json_str(&j, "loss_bound", loss);
	d9_json_known(&j, "covers_ns", covers);
	d9_json_u64(&j, "disk_usage_bytes", disk);
	d9_json_array(&j, "processes");
	for (size_t i = 0; i < n; i++) {
		d9_json_object(&j, NULL);
		d9_json_str(&j, "id", s[i].id);
		if (s[i].readable)
			d9_json_i64(&j, "pid", s[i].pid);
		else
			d9_json_null(&j, "pid");
		d9_json_bool(&j, "alive", s[i].alive);
		d9_json_str(&j, "state", s[i].word);
		d9_json_bool(&j, "configured", s[i].configured);
		d9_json_bool(&j, "supported", s[i].supported);
		d9_json_bool(&j, "active", s[i].active);
		d9_json_str(&j, "mode", "stream");
		d9_json_known(&j, "events", s[i].readable ? s[i].events : D9_NOT_KNOWN);
		d9_json_known(&j, "dropped", s[i].readable ? s[i].dropped : D9_NOT_KNOWN);
		d9_json_u64(&j, "bytes", s[i].disk_bytes);
		d9_json_u64(&j, "segments", s[i].n_segments);
		d9_json_known(&j, "heartbeat_age_ns", s[i].heartbeat_age);
		if (s[i].error_code) {
			d9_json_object(&j, "last_error");
			d9_json_str(&j, "code", error_words[s[i].error_code]);
			d9_json_str(&j, "message", s[i].error);
			d9_json_end_object(&j);
		} else {
			d9_json_null(&j, "last_error");
		}
		json_lines(&j, "warnings", s[i].warnings);
		json_lines(&j, "notes", s[i].notes);
		d9_json_end_object(&j);
	}
	d9_json_end_array(&j);
	(void)d9_json_end_document(&j);
}

/* Valid until the next call. */
static const char *label(const char *s)
{
	static char buf[2 * sizeof(((struct state *)0)->id)];
	size_t n = 0;
	for (; *s && n + 2 < sizeof(buf); buf[n++] = *s++)
		if (*s == '"' || *s == '\\')
			buf[n++] = '\\';
	buf[n] = '\0';
	return buf;
}

/* Text of the OpenMetrics exposition format. */
static void print_metrics(d9_u64 disk, const struct state *s, size_t n)
{
#define METRIC(name, type, help) printf("# TYPE " name " " type "\n# HELP " name " " help "\n")
#define EACH(fmt, name, value)         \
	for (size_t i = 0; i < n; i++) \
		if (s[i].readable)     \
			printf(name "{process=\"%s\",pid=\"%d\"} " fmt "\n", label(s[i].id), s[i].pid, value);
	METRIC("d9_up", "gauge", "1 if a process of the family lives.");
	EACH("%d", "d9_up", s[i].alive)
	METRIC("d9_configured", "gauge", "1 if hooks are configured.");
	EACH("%d", "d9_configured", s[i].configured)
	METRIC("d9_supported", "gauge", "1 if this recorder works here.");
	EACH("%d", "d9_supported", s[i].supported)
	METRIC("d9_active", "gauge", "1 if it records now.");
	EACH("%d", "d9_active", s[i].active)
	METRIC("d9_errors", "counter", "Errors standing: what status calls last_error.");
	EACH("%d", "d9_errors_total", s[i].error_code != 0)
	METRIC("d9_disk_usage_bytes", "gauge", "Bytes of all segments in the folder.");
	printf("d9_disk_usage_bytes %llu\n", (unsigned long long)disk);
	METRIC("d9_events", "counter", "Records written to segments.");
	EACH("%llu", "d9_events_total", (unsigned long long)s[i].events)
	METRIC("d9_dropped_events", "counter", "Records not made for want of memory.");
	EACH("%llu", "d9_dropped_events_total", (unsigned long long)s[i].dropped)
	METRIC("d9_written_bytes", "counter", "Bytes written to segments.");
	EACH("%llu", "d9_written_bytes_total", (unsigned long long)s[i].bytes)
	METRIC("d9_heartbeat_age_seconds", "gauge", "Since the drainer's last pass.");
	for (size_t i = 0; i < n; i++)
		if (s[i].readable && s[i].heartbeat_age != D9_NOT_KNOWN)
			printf("d9_heartbeat_age_seconds{process=\"%s\",pid=\"%d\"} %.3f\n", label(s[i].id), s[i].pid,
			       (double)s[i].heartbeat_age / 1e9);
	printf("# EOF\n");
#undef METRIC
#undef EACH
}

static void print_text(const char *loss, d9_u64 covers, d9_u64 disk, const struct state *s, size_t n)
{
	char buf[32];
	printf("%-28s %-8s %8s %12s %9s %10s %9s\n", "process", "state", "pid", "events", "dropped", "on disk",
	       "heartbeat");
	for (size_t i = 0; i < n; i++) {
		char pid[16] = "-", events[24] = "-", dropped[24] = "-";
		if (s[i].readable) {
			snprintf(pid, sizeof(pid), "%d", s[i].pid);
			snprintf(events, sizeof(events), "%llu", (unsigned long long)s[i].events);
			snprintf(dropped, sizeof(dropped), "%llu", (unsigned long long)s[i].dropped);
		}
		printf("%-28s %-8s %8s %12s %9s %7.1f MB %9s\n", s[i].id, s[i].word, pid, events, dropped,
		       (double)s[i].disk_bytes / 1e6,
		       s[i].heartbeat_age == D9_NOT_KNOWN ? "-" : d9_format_duration(s[i].heartbeat_age, buf));
		if (s[i].error_code)
			printf("    error: %s\n", s[i].error);
		print_lines("warning", s[i].warnings);
		print_lines("note", s[i].notes);
	}
	printf("%.1f MB on disk", (double)disk / 1e6);
	if (covers != D9_NOT_KNOWN)
		printf("; at the present rate the budget reaches back %s", d9_format_duration(covers, buf));
	printf("\n%s\n", loss);
}

/* How far back the budget reaches at the rate since the start; unknown while nothing is written. */
static d9_u64 covers_of(const struct state *s, size_t n)
{
	d9_u64 least = D9_NOT_KNOWN, now = d9_mono_ns();
	for (size_t i = 0; i < n; i++) {
		if (!s[i].alive || !s[i].readable || !s[i].bytes || now <= s[i].started_mono)
			continue;
		double covers = (double)s[i].total_budget * (double)(now - s[i].started_mono) / (double)s[i].bytes;
		if (covers < 9e18 && (d9_u64)covers < least)
			least = (d9_u64)covers;
	}
	return least;
}

static const char *loss_of(const struct state *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i].alive && !s[i].shared)
			return "records wait in private memory and die with the process (see the error)";
	return "nothing that was recorded is lost when a process dies: it is in a segment, in shared memory, or in a "
	       "counted gap";
}

/* ---- the folders to look at --------------------------------------------------------------------------- */

/* 1, 0, or -EACCES: it may not be looked into. */
static int is_process_folder(const char *path)
{
	DIR *d = opendir(path);
	int found = 0;
	if (!d)
		return errno == EACCES || errno == EPERM ? -EACCES : 0;
	for (struct dirent *e; !found && (e = readdir(d));)
		found = !strcmp(e->d_name, "arena") || d9_is_segment_name(e->d_name);
	closedir(d);
	return found;
}

/* What was found in DIR, and what of it this user may not see. */
struct found {
	D9_VEC(struct state) of;
	D9_VEC(char *) denied;
};

static void deny(struct found *f, const char *path) { d9_vec_push(&f->denied, strdup(path)); }

static void look_into(struct found *f, const char *path)
{
	d9_vec_room(&f->of);
	if (read_folder(path, &f->of.v[f->of.n]) < 0)
		deny(f, path);
	else
		f->of.n++;
}

static void collect(const char *dir, struct found *f)
{
	struct dirent **names;
	int r = is_process_folder(dir);
	if (r > 0)
		look_into(f, dir);
	if (r < 0)
		deny(f, dir);
	int n = r ? 0 : scandir(dir, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char path[4096];
		if (names[i]->d_name[0] != '.' &&
		    snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name) < (int)sizeof(path) &&
		    !d9_is_link(path)) {
			r = is_process_folder(path);
			if (r > 0)
				look_into(f, path);
			else if (r < 0 && d9_is_folder_name(names[i]->d_name)) /* others are none of ours */
				deny(f, path);
		}
		free(names[i]);
	}
	if (n > 0)
		free(names);
}

static int nothing_found(const struct found *f, const char *dir)
{
	if (!f->denied.n)
		return d9_fail(D9_EXIT_DATA, "no recording in %s; `d9 run -- CMD` makes one", dir);
	return d9_fail(D9_EXIT_PERMISSION, "no permission to read %s; use the user that records there, or root",
		       f->denied.v[0]);
}

/* A PID instead of a folder: that process's arena. */
static int collect_pid(int pid, struct found *f)
{
	struct d9_live l;
	int r = d9_live_open_pid(pid, 0, &l);
	if (r)
		return d9_live_fail(pid, r);
	d9_vec_room(&f->of);
	struct state *s = &f->of.v[f->of.n++];
	*s = (struct state){.heartbeat_age = D9_NOT_KNOWN};
	name_it(s, *l.folder ? l.folder : l.path);
	if (*l.folder)
		disk_use(l.folder, s);
	from_header(&l, s);
	s->pid = pid;
	d9_live_close(&l);
	return D9_EXIT_OK;
}

static void print(const struct found *f, bool metrics, bool json)
{
	d9_u64 disk = 0;
	const struct state *s = f->of.v;
	size_t n = f->of.n;
	for (size_t i = 0; i < n; i++)
		disk += s[i].disk_bytes;
	if (metrics)
		print_metrics(disk, s, n);
	else if (json)
		print_json(loss_of(s, n), covers_of(s, n), disk, s, n);
	else
		print_text(loss_of(s, n), covers_of(s, n), disk, s, n);
}

int d9_cmd_status(const struct d9_cmd *self, int argc, char **argv)
{
	const char *metrics = NULL;
	struct d9_opt extra = {"--metrics", false, &metrics};
	struct d9_read_opts o;
	int r = d9_read_opts_parse(self, argc, argv, 0, &extra, 1, &o);
	if (r)
		return r - 1;
	struct found f = {0};
	char *end;
	long pid = strtol(o.dir, &end, 10);
	if (o.dir[0] && !*end && pid > 0 && pid <= INT_MAX && access(o.dir, F_OK))
		r = collect_pid((int)pid, &f);
	else
		collect(o.dir, &f);
	if (!r && !f.of.n)
		r = nothing_found(&f, o.dir);
	for (size_t i = 0; f.of.n && i < f.denied.n; i++)
		d9_warn("no permission to read %s: it is left out", f.denied.v[i]);
	if (!r)
		print(&f, metrics != NULL, o.json);
	for (size_t i = 0; i < f.denied.n; i++)
		free(f.denied.v[i]);
	d9_vec_free(&f.denied);
	d9_vec_free(&f.of);
	return r;
}
