/* See targets.h. */
#include "targets.h"
#include "procfs.h"
#include "say.h"
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_DEPTH_MAX 8
#define INIT_PID_NS 0xeffffffcu /* PROC_PID_INIT_INO */

struct search {
	const struct d9_koptions *o;
	int *pids;
	size_t n, max;
};

static void add(struct search *s, int pid)
{
	if (pid > 0 && pid != getpid() && s->n < s->max)
		s->pids[s->n++] = pid;
}

static bool add_if_named(void *ctx, int pid)
{
	struct search *s = ctx;
	char path[32], name[64];
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (d9_kproc_read(path, name, sizeof(name)) > 0) {
		name[strcspn(name, "\n")] = 0;
		if (!regexec(&s->o->comm, name, 0, NULL, 0))
			add(s, pid);
	}
	return false;
}

static bool add_family(void *ctx, const struct d9_kfamily *f)
{
	struct search *s = ctx;
	for (d9_u32 i = 0; i < f->n; i++) {
		if (!d9_kfamily_lives(&f->procs[i]))
			continue;
		int pid = d9_kproc_find(f->pid_ns, f->procs[i].pid);
		if (pid && (!f->procs[i].start || d9_kproc_start(pid) == f->procs[i].start))
			add(s, pid);
	}
	return false;
}

/* cgroup.procs of the group and of those below it.  False: no such group. */
static bool add_cgroup(struct search *s, const char *path, int depth)
{
	char file[PATH_MAX + 32], line[32];
	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	FILE *f = fopen(file, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		add(s, atoi(line));
	fclose(f);
	DIR *d = depth < CGROUP_DEPTH_MAX ? opendir(path) : NULL;
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.' || e->d_type != DT_DIR)
			continue;
		if (snprintf(file, PATH_MAX, "%s/%s", path, e->d_name) < PATH_MAX)
			add_cgroup(s, file, depth + 1);
	}
	if (d)
		closedir(d);
	return true;
}

static void add_group(struct search *s)
{
	char path[PATH_MAX];
	if (add_cgroup(s, s->o->what, 0))
		return;
	if (snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", s->o->what) < (int)sizeof(path))
		add_cgroup(s, path, 0);
}

size_t d9_ktargets_find(const struct d9_koptions *o, int *ret_pids, size_t max)
{
	struct search s = {.o = o, .pids = ret_pids, .max = max};
	switch (o->by) {
	case D9_KBY_NOTHING:
		break;
	case D9_KBY_PID:
		if (!kill(o->pid, 0) || errno == EPERM)
			add(&s, o->pid);
		break;
	case D9_KBY_SESSION:
		(void)d9_ksession_each(o->what, add_family, &s);
		break;
	case D9_KBY_COMM:
		d9_kproc_each(add_if_named, &s);
		break;
	case D9_KBY_CGROUP:
		add_group(&s);
		break;
	}
	return s.n;
}

static int explain_pid(int pid)
{
	char process[32];
	if (kill(pid, 0) && errno == ESRCH)
		return d9_ksay_fail(D9_KEXIT_NO_TARGET, "no such process%s: %d",
				    d9_kproc_pid_ns(getpid()) == INIT_PID_NS ? "" : " in this PID namespace", pid);
	if (pid == getpid())
		return d9_ksay_fail(D9_KEXIT_NO_TARGET, "%d is d9-kernel itself", pid);
	if (d9_kproc_status(pid, "Tgid:", process, sizeof(process)) && atoi(process) != pid)
		return d9_ksay_fail(D9_KEXIT_NO_TARGET, "%d is a thread of process %s: --pid %s", pid, process,
				    process);
	return d9_ksay_fail(D9_KEXIT_NO_TARGET, "process %d is not visible in this PID namespace, or has just ended",
			    pid);
}

int d9_ktargets_explain(const struct d9_koptions *o)
{
	switch (o->by) {
	case D9_KBY_PID:
		return explain_pid(o->pid);
	case D9_KBY_SESSION:
		return d9_ksay_fail(D9_KEXIT_NO_TARGET, "nothing that lives is recorded into %s", o->what);
	case D9_KBY_COMM:
		return d9_ksay_fail(D9_KEXIT_NO_TARGET, "no process is called %s", o->what);
	default:
		return d9_ksay_fail(D9_KEXIT_NO_TARGET, "no control group %s, or no process in it", o->what);
	}
}
