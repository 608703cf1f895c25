/* See live.h. */
#include "cmd.h"
#include "live.h"
#include "member.h"

#include "shim/adopt.h"
#include "shim/drain.h"
#include "shim/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PREFIX "/dev/shm/d9-"

static int open_arena(const char *path, int write, struct d9_live *ret)
{
	struct stat st;
	if (!d9_is_arena_path(path))
		return -EBADMSG;
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	ret->fd = open(path, (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (ret->fd < 0)
		return -errno;
	if (fstat(ret->fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)D9_HEADER_BYTES)
		return -EBADMSG;
	if (geteuid() && st.st_uid != geteuid())
		return -EPERM;
	ret->bytes = (d9_u64)st.st_size;
	/* Reading goes through read(2): a hole of a full tmpfs that is mapped would kill us, and a file can be truncated. */
	ret->map = write ? mmap(NULL, ret->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, ret->fd, 0)
			 : mmap(NULL, ret->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
	if (ret->map == MAP_FAILED) {
		ret->map = NULL;
		return -ENOMEM;
	}
	ret->h = ret->map;
	if (!write && pread(ret->fd, ret->map, D9_HEADER_BYTES, 0) != (ssize_t)D9_HEADER_BYTES)
		return -EBADMSG;
	if (!d9_drain_check(ret->h, ret->bytes))
		return -EBADMSG;
	if (!write) {
		d9_u64 at = d9_off_procs(ret->h->n_chunks), n = D9_N_PROCS * sizeof(struct d9_proc);
		if (pread(ret->fd, (char *)ret->map + at, n, (off_t)at) != (ssize_t)n)
			return -EBADMSG;
	}
	return 0;
}

int d9_live_open_folder(const char *folder, int write, struct d9_live *ret)
{
	char link[PATH_MAX], target[128];
	*ret = (struct d9_live){.fd = -1};
	snprintf(ret->folder, sizeof(ret->folder), "%s", folder);
	if (snprintf(link, sizeof(link), "%s/arena", folder) >= (int)sizeof(link))
		return -ENAMETOOLONG;
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return errno == EINVAL ? -EBADMSG : -errno;
	target[n] = 0;
	int r = open_arena(target, write, ret);
	if (r)
		d9_live_close(ret);
	return r;
}

/* A line of /proc/PID/maps: which file a mapping is of. */
struct mapped {
	unsigned long long inode;
	unsigned major, minor;
	const char *path; /* of the line, as the kernel writes it: " (deleted)" behind a name that is gone */
};
static bool parse_line(const char *line, struct mapped *ret)
{
	int n = 0;
	if (sscanf(line, "%*s %*s %*s %x:%x %llu %n", &ret->major, &ret->minor, &ret->inode, &n) != 3 || !n)
		return false;
	ret->path = line + n;
	return true;
}

/* The file may have another name by now, and its name another file. */
static int open_mapped(const struct mapped *m, int write, struct d9_live *ret)
{
	struct stat st;
	if (strstr(m->path, " (deleted)"))
		return -ESTALE;
	int r = open_arena(m->path, write, ret);
	if (!r && (fstat(ret->fd, &st) || st.st_ino != m->inode || major(st.st_dev) != m->major ||
		   minor(st.st_dev) != m->minor))
		r = -ESTALE;
	if (r)
		d9_live_close(ret);
	return r == -ENOENT || r == -ELOOP ? -ESTALE : r;
}

/* What the header says of its folder is a claim of the program's: it counts if the folder says so too. */
static void find_folder(struct d9_live *l)
{
	char link[sizeof(l->h->dir) + sizeof("/arena")], target[sizeof(l->path)];
	snprintf(link, sizeof(link), "%.*s/arena", (int)sizeof(l->h->dir) - 1, l->h->dir);
	ssize_t n = readlink(link, target, sizeof(target));
	if (n > 0 && (size_t)n == strlen(l->path) && !memcmp(target, l->path, (size_t)n))
		snprintf(l->folder, sizeof(l->folder), "%.*s", (int)sizeof(l->h->dir) - 1, l->h->dir);
}

int d9_live_open_pid(int pid, int write, struct d9_live *ret)
{
	char name[64], line[PATH_MAX + 128];
	int r = -ENOENT;
	*ret = (struct d9_live){.fd = -1};
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	FILE *f = fopen(name, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (r && fgets(line, sizeof(line), f)) {
		struct mapped m;
		line[strcspn(line, "\n")] = 0;
		if (parse_line(line, &m) && !strncmp(m.path, PREFIX, sizeof(PREFIX) - 1)) {
			int one = open_mapped(&m, write, ret);
			r = one == 0 || r == -ENOENT ? one : r;
		}
	}
	fclose(f);
	if (!r)
		find_folder(ret);
	return r;
}

int d9_live_fail(int pid, int r)
{
	switch (r) {
	case -ESRCH:
		return d9_fail(D9_EXIT_DATA, "there is no process %d", pid);
	case -ENOENT:
		return d9_fail(D9_EXIT_DATA,
			       "process %d is not recorded: it has no session memory mapped; start it with `d9 run` or "
			       "LD_PRELOAD",
			       pid);
	case -EACCES:
	case -EPERM:
		if (!geteuid())
			return d9_fail(
				D9_EXIT_PERMISSION,
				"even root may not look into process %d from here (/proc/%d/maps), so whether it is "
				"recorded is not known; use d9 in the container in which the process runs",
				pid, pid);
		return d9_fail(D9_EXIT_PERMISSION, "process %d belongs to another user; use its user or root", pid);
	case -ESTALE:
		return d9_fail(
			D9_EXIT_DATA,
			"the session memory of process %d was removed or replaced: it goes on without being heard of; "
			"restart it to record it again",
			pid);
	case -EBADMSG:
		return d9_fail(
			D9_EXIT_DATA,
			"process %d is recorded by another version of libd9shim.so; use the d9 that came with it", pid);
	default:
		return d9_fail(D9_EXIT_DATA, "cannot open the session memory of process %d: %s", pid, strerror(-r));
	}
}

void d9_live_close(struct d9_live *l)
{
	if (l->map)
		munmap(l->map, l->bytes);
	if (l->fd >= 0)
		close(l->fd);
	l->map = NULL;
	l->h = NULL;
	l->fd = -1;
}

int d9_live_members(const struct d9_live *l, int *ret_able)
{
	struct stat st;
	struct d9_view v;
	*ret_able = -1;
	if (!d9_adopt_same_pids(l->h) || fstat(l->fd, &st))
		return -1;
	d9_view_init(&v, l->map, l->h->n_chunks);
	d9_u32 n = l->h->proc_next < D9_N_PROCS ? l->h->proc_next : D9_N_PROCS;
	int alive = *ret_able = 0;
	d9_u64 start;
	for (d9_u32 i = 0; i < n; i++)
		if (d9_member_runs(&v.procs[i], st.st_ino, &start)) {
			alive++;
			*ret_able += !(v.procs[i].flags & (D9_PROC_NO_CLOCK | D9_PROC_NO_MEMORY));
		}
	return alive;
}
