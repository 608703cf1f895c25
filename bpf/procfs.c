/* See procfs.h. */
#include "procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

long d9_kproc_read(const char *path, char *buf, size_t size)
{
	size_t n = 0;
	buf[0] = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (ssize_t got = 1; n + 1 < size && got; n += got > 0 ? (size_t)got : 0) {
		got = read(fd, buf + n, size - 1 - n);
		if (got < 0 && errno != EINTR)
			break;
	}
	close(fd);
	buf[n] = 0;
	return (long)n;
}

bool d9_kproc_status(int pid, const char *field, char *buf, size_t size)
{
	char path[32], all[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (d9_kproc_read(path, all, sizeof(all)) <= 0)
		return false;
	size_t n = strlen(field);
	for (char *line = all; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, field, n)) {
			line += n + strspn(line + n, " \t");
			snprintf(buf, size, "%.*s", (int)strcspn(line, "\n"), line);
			return true;
		}
	return false;
}

bool d9_kproc_is_ours(void)
{
	char me[16] = "";
	return readlink("/proc/self", me, sizeof(me) - 1) > 0 && atoi(me) == getpid();
}

d9_u64 d9_kproc_start(int pid)
{
	char path[32], buf[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (d9_kproc_read(path, buf, sizeof(buf)) <= 0)
		return 0;
	char *p = strrchr(buf, ')'); /* the name may hold anything */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

d9_u64 d9_kproc_pid_ns(int pid)
{
	char path[40];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

int d9_kproc_inner_pid(int pid)
{
	char line[256];
	if (!d9_kproc_status(pid, "NSpid:", line, sizeof(line)))
		return d9_kproc_start(pid) ? pid : 0; /* kernels without PID namespaces */
	char *last = strrchr(line, '\t');
	return atoi(last ? last + 1 : line);
}

void d9_kproc_each(d9_kproc_fn *fn, void *ctx)
{
	DIR *d = opendir("/proc");
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && fn(ctx, atoi(e->d_name)))
			break;
	closedir(d);
}

struct wanted {
	d9_u64 pid_ns;
	int inner, found;
};
static bool is_wanted(void *ctx, int pid)
{
	struct wanted *w = ctx;
	if (d9_kproc_pid_ns(pid) != w->pid_ns || d9_kproc_inner_pid(pid) != w->inner)
		return false;
	w->found = pid;
	return true;
}

int d9_kproc_find(d9_u64 pid_ns, int inner_pid)
{
	struct wanted w = {pid_ns, inner_pid, 0};
	if (pid_ns == d9_kproc_pid_ns(getpid()))
		return d9_kproc_start(inner_pid) ? inner_pid : 0;
	d9_kproc_each(is_wanted, &w);
	return w.found;
}

size_t d9_kproc_exe_args(int pid, char *buf, size_t size)
{
	char path[40], args[4096];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	long n_args = d9_kproc_read(path, args, sizeof(args));
	if (n_args < 0)
		n_args = 0;
	if (n_args && args[n_args - 1])
		args[n_args++] = 0; /* cut off, or a title that the program wrote there */
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	ssize_t n = readlink(path, buf, size < PATH_MAX ? size - 1 : PATH_MAX);
	if (n < 0) { /* not ours to see: what it was called by */
		n = (ssize_t)strnlen(args, (size_t)n_args < size ? (size_t)n_args : size - 1);
		memcpy(buf, args, (size_t)n);
	}
	buf[n++] = 0;
	size_t room = size - (size_t)n, more = (size_t)n_args < room ? (size_t)n_args : room;
	memcpy(buf + n, args, more);
	return (size_t)n + more;
}
