/* See live.h. */
#include "live.h"

#include "shim/adopt.h"
#include "shim/drain.h"
#include "shim/view.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
	if (fstat(ret->fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)D9_HEADER_BYTES ||
	    (geteuid() && st.st_uid != geteuid()))
		return -EBADMSG;
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

int d9_live_members(const struct d9_live *l)
{
	struct stat st;
	struct d9_view v;
	if (!l->h->pid_ns || stat("/proc/self/ns/pid", &st) || st.st_ino != l->h->pid_ns)
		return -1;
	d9_view_init(&v, l->map, l->h->n_chunks);
	d9_u32 n = l->h->proc_next < D9_N_PROCS ? l->h->proc_next : D9_N_PROCS;
	int alive = 0;
	for (d9_u32 i = 0; i < n; i++)
		if (v.procs[i].state == D9_PROC_LIVE && v.procs[i].pid > 0 &&
		    (!kill(v.procs[i].pid, 0) || errno == EPERM))
			alive++;
	return alive;
}
