/* See folder.h. */
#include "folder.h"
#include "session.h"
#include "format/segment_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HERE "d9-traces"
#define FIRST "s-000001.d9"
#define TRIES 16

/*
 * Root writes what it sees of a process into the folder of that process's user or into its own, never into that of a third,
 * who could have claimed the process as his.
 */
static bool may_hold(d9_u32 folder_uid, const struct d9_kfolder_process *p)
{
	return folder_uid == geteuid() || (!geteuid() && folder_uid == p->uid);
}

struct search {
	const struct d9_kfolder_process *p;
	const char *dir;
	struct d9_kfolder *ret;
	time_t since; /* CLOCK_REALTIME: it began no earlier */
	bool ended_too, found;
};

static bool keep(struct search *s, int dirfd, const char *name)
{
	int fd = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return false;
	s->ret->dirfd = fd;
	s->ret->own = false;
	snprintf(s->ret->path, sizeof(s->ret->path), "%s/%s", s->dir, name);
	return true;
}

/* The recorder knows the start of a process only once it was drained. */
static bool is_it(const struct d9_kfolder_process *p, const struct d9_proc *of)
{
	return of->pid == p->pid && (!of->start || of->start == p->start);
}

static bool is_its_folder(void *ctx, const struct d9_kfamily *f)
{
	struct search *s = ctx;
	bool holds = false;
	if (!may_hold(f->uid, s->p) || f->pid_ns != s->p->pid_ns)
		return false;
	for (d9_u32 i = 0; !holds && i < f->n; i++)
		holds = is_it(s->p, &f->procs[i]) && (s->ended_too || d9_kfamily_lives(&f->procs[i]));
	if (!holds)
		return false;
	return s->found = keep(s, f->dirfd, f->name);
}

/* ---- a family that is over already: what its first segment says of it ------------------------------------ */

static int note_process(void *ctx, const struct d9_segr_event *ev)
{
	struct search *s = ctx;
	const struct d9_ev_proc *e = (const void *)ev->rec;
	s->found |= ev->id == D9_EV_proc && e->pid == s->p->pid && (!e->start || e->start == s->p->start);
	return s->found;
}

static bool was_its_folder(void *ctx, int dirfd, const char *name)
{
	struct search *s = ctx;
	struct d9_segr *segment;
	struct stat st, first;
	if (fstat(dirfd, &st) || !may_hold(st.st_uid, s->p) || fstatat(dirfd, FIRST, &first, AT_SYMLINK_NOFOLLOW) ||
	    first.st_mtim.tv_sec < s->since || d9_segr_open_at(dirfd, FIRST, &segment, NULL, 0))
		return false;
	(void)d9_segr_each(segment, note_process, s);
	d9_segr_close(segment);
	if (s->found)
		s->found = keep(s, dirfd, name);
	return s->found;
}

static bool search_in(const char *dir, const struct d9_kfolder_process *p, bool ended_too, struct d9_kfolder *ret)
{
	struct timespec boot = {0}, real = {0};
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &real);
	time_t age = boot.tv_sec - (time_t)(p->start / (d9_u64)sysconf(_SC_CLK_TCK));
	struct search s = {.p = p, .dir = dir, .ret = ret, .since = real.tv_sec - age - 1};
	for (int i = 0; !s.found && i <= ended_too; i++) {
		s.ended_too = i;
		if (d9_ksession_each(dir, is_its_folder, &s))
			return false;
	}
	if (!s.found && ended_too)
		(void)d9_ksession_each_folder(dir, was_its_folder, &s);
	return s.found;
}

static const char *users_folder(d9_u32 uid, char *buf, size_t size)
{
	snprintf(buf, size, "/var/tmp/d9-%u", uid);
	return buf;
}

int d9_kfolder_find(const char *dir, const struct d9_kfolder_process *p, bool ended_too, struct d9_kfolder *ret)
{
	char users[40];
	const char *env = getenv("D9_DIR");
	if (!p->pid_ns || !p->start)
		return -ENOENT;
	if (dir || (env && *env))
		return search_in(dir ? dir : env, p, ended_too, ret) ? 0 : -ENOENT;
	if (search_in(HERE, p, ended_too, ret))
		return 0;
	return search_in(users_folder(p->uid, users, sizeof(users)), p, ended_too, ret) ? 0 : -ENOENT;
}

/* The traces folder, made if it is not there.  One that was not named by the user lies where anybody can write: it must be ours. */
static int open_traces(const char *dir, struct d9_kfolder *ret)
{
	char users[40];
	const char *env = getenv("D9_DIR");
	bool named = dir || (env && *env) || !access(HERE, F_OK);
	if (!dir)
		dir = env && *env ? env : named ? HERE : users_folder(geteuid(), users, sizeof(users));
	snprintf(ret->path, sizeof(ret->path), "%s", dir);
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (named ? 0 : O_NOFOLLOW));
	struct stat st;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || (!named && st.st_uid != geteuid())) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static void folder_name(const char *name, char *buf, size_t size)
{
	unsigned random = 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (unsigned)getpid();
	snprintf(buf, size, "%.32s-%08x", name[0] ? name : "process", random);
	for (char *c = buf; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *c))
			*c = '_';
	if (buf[0] == '.')
		buf[0] = '_';
}

int d9_kfolder_make(const char *dir, const struct d9_kfolder_process *p, struct d9_kfolder *ret)
{
	char name[64];
	struct stat st;
	int traces = open_traces(dir, ret), r;
	if (traces < 0)
		return traces;
	size_t n = strlen(ret->path);
	for (int i = 0; i < TRIES; i++) {
		folder_name(p->name, name, sizeof(name));
		r = mkdirat(traces, name, 0700) ? -errno : 0;
		if (r != -EEXIST)
			break;
	}
	snprintf(ret->path + n, sizeof(ret->path) - n, "/%s", name);
	ret->dirfd = r ? -1 : openat(traces, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!r && ret->dirfd < 0)
		r = -errno;
	/* In a user's traces folder what root recorded is that user's. */
	if (!r && !geteuid() && !fstat(traces, &st) && st.st_uid && fchown(ret->dirfd, st.st_uid, st.st_gid))
		r = -errno;
	ret->own = true;
	close(traces);
	return r;
}
