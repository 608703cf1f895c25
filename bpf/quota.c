/* See quota.h. */
#include "quota.h"
#include "procfs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX 64    /* with a quota; more are left out */
#define PROCESSES_MAX 64 /* looked at each time, the newest */
#define NOT_LIMITED 0

struct counters {
	d9_u64 periods, throttled, throttled_ns;
};
struct group {
	char path[512]; /* of its folder */
	d9_u32 process, told_in;
	struct counters base, told;
};
struct d9_kquotas {
	struct group of[GROUPS_MAX];
	unsigned n;
};

struct d9_kquotas *d9_kquotas_new(void) { return calloc(1, sizeof(struct d9_kquotas)); }
void d9_kquotas_free(struct d9_kquotas *q) { free(q); }

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_file(const char *folder, const char *name, char *buf, size_t size)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
	       d9_kproc_read(path, buf, size) > 0;
}

/* CPU time that the group may use in a period; NOT_LIMITED: it may use all. */
static d9_u64 quota_of(const char *folder, d9_u64 *ret_period)
{
	char text[64], period[64];
	unsigned long long q, p;
	if (read_file(folder, "cpu.max", text, sizeof(text))) {
		if (sscanf(text, "%llu %llu", &q, &p) != 2)
			return NOT_LIMITED; /* max */
	} else if (!read_file(folder, "cpu.cfs_quota_us", text, sizeof(text)) ||
		   !read_file(folder, "cpu.cfs_period_us", period, sizeof(period)) || text[0] == '-' ||
		   sscanf(text, "%llu", &q) != 1 || sscanf(period, "%llu", &p) != 1) {
		return NOT_LIMITED;
	}
	*ret_period = p * 1000;
	return q * 1000;
}

static d9_u64 value_of(const char *text, const char *key)
{
	size_t n = strlen(key);
	for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, key, n) && p[n] == ' ')
			return strtoull(p + n, NULL, 10);
	return 0;
}

static bool read_counters(const char *folder, struct counters *c)
{
	char text[1024];
	if (!read_file(folder, "cpu.stat", text, sizeof(text)))
		return false;
	*c = (struct counters){value_of(text, "nr_periods"), value_of(text, "nr_throttled"),
			       value_of(text, "throttled_usec") * 1000 + value_of(text, "throttled_time")};
	return true;
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool has_word(const char *list, size_t n, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = list; p < list + n; p += strcspn(p, ",:") + 1)
		if (strcspn(p, ",:") == len && !strncmp(p, word, len))
			return true;
	return false;
}

/* Where the hierarchies that can have CPU quotas are mounted. */
static const char *mount_of(const char *controllers, size_t n)
{
	static const char *const v1[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", NULL};
	static const char *const v2[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup", NULL};
	if (n && !has_word(controllers, n, "cpu"))
		return NULL;
	for (const char *const *m = n ? v1 : v2; *m; m++)
		if (!access(*m, X_OK))
			return *m;
	return NULL;
}

static void note_group(struct d9_kquotas *q, const char *folder, const struct d9_kprocess *p)
{
	d9_u64 period;
	for (unsigned i = 0; i < q->n; i++)
		if (!strcmp(q->of[i].path, folder))
			return;
	struct group *g = &q->of[q->n];
	if (q->n == GROUPS_MAX || quota_of(folder, &period) == NOT_LIMITED || !read_counters(folder, &g->base))
		return;
	snprintf(g->path, sizeof(g->path), "%s", folder);
	g->process = p->index;
	g->told_in = 0;
	g->told = g->base;
	q->n++;
}

/*
 * The group, and those above it: their quotas hold for it too.  Up to where it is mounted: the root of all has none, but that of a
 * container is a group that may have one.
 */
static void note_groups(struct d9_kquotas *q, const char *mount, const char *group, const struct d9_kprocess *p)
{
	char folder[sizeof(q->of[0].path)];
	if (snprintf(folder, sizeof(folder), "%s%s", mount, group) >= (int)sizeof(folder) || strstr(group, "/.."))
		return;
	for (size_t n = strlen(folder); n >= strlen(mount); n = (size_t)(strrchr(folder, '/') - folder)) {
		folder[n] = 0;
		if (folder[n - 1] != '/')
			note_group(q, folder, p);
	}
}

static void look_at(struct d9_kquotas *q, const struct d9_kprocess *p)
{
	char path[40], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/cgroup", p->seen_pid);
	if (!p->seen_pid || d9_kproc_read(path, text, sizeof(text)) <= 0)
		return;
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
		const char *mount = group ? mount_of(controllers + 1, (size_t)(group - controllers - 1)) : NULL;
		if (mount)
			note_groups(q, mount, group + 1, p);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

static void tell(struct group *g, struct d9_kseg *s)
{
	struct counters now;
	d9_u64 period = 0, quota = quota_of(g->path, &period);
	if (!read_counters(g->path, &now) || (g->told_in == d9_kseg_number(s) && !memcmp(&now, &g->told, sizeof(now))))
		return;
	struct d9_ev_quota e = {.rec.t = d9_kseg_mono(),
				.periods = now.periods - g->base.periods,
				.throttled = now.throttled - g->base.throttled,
				.throttled_ns = now.throttled_ns - g->base.throttled_ns,
				.quota = quota == NOT_LIMITED ? D9_NOT_KNOWN : quota, /* it was lifted meanwhile */
				.period = period,
				.proc = g->process};
	if (d9_kseg_add(s, D9_THREAD_NONE, D9_EV_quota, &e, D9_TAIL_STRING, g->path, (d9_u32)strlen(g->path)))
		return;
	g->told = now;
	g->told_in = d9_kseg_number(s);
}

void d9_kquotas_tell(struct d9_kquotas *q, struct d9_kseg *s)
{
	for (unsigned i = 0; i < q->n; i++)
		tell(&q->of[i], s);
}

void d9_kquotas_note(struct d9_kquotas *q, const struct d9_kthreads *ts)
{
	unsigned n = 0;
	for (const struct d9_kprocess *p = d9_kthreads_newest(ts); p && n < PROCESSES_MAX; p = p->next, n++)
		look_at(q, p);
}
