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
#include <unistd.h>

#define PREFIX "/dev/shm/d9-"

static int open_arena(const char *path, int write, struct d9_live *ret)
{
	struct stat st;
	if (!d9_adopt_name_is_ours(path))
		return -EBADMSG;
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	ret->fd = open(path, (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
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

int d9_live_open_pid(int pid, int write, struct d9_live *ret)
{
	char name[64], line[PATH_MAX + 128], *path = NULL;
	*ret = (struct d9_live){.fd = -1};
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	FILE *f = fopen(name, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!path && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		path = strstr(line, PREFIX);
	}
	fclose(f);
	if (!path)
		return -ENOENT;
	int r = open_arena(path, write, ret);
	if (r) {
		d9_live_close(ret);
		return r;
	}
	/* What the header says of its folder is a claim of the program's: shown, and opened only to read segments. */
	snprintf(ret->folder, sizeof(ret->folder), "%.*s", (int)sizeof(ret->h->dir) - 1, ret->h->dir);
	return 0;
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
			*ret_able += !(v.procs[i].flags & D9_PROC_NO_CLOCK);
		}
	return alive;
}
