/* See session.h. */
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_arena(int dirfd, d9_u32 owner)
{
	char path[256];
	ssize_t n = readlinkat(dirfd, "arena", path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = 0;
	if (!d9_is_arena_path(path))
		return -EBADMSG;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != owner) {
		close(fd);
		return -EBADMSG;
	}
	return fd;
}

static bool read_at(int fd, void *buf, size_t n, d9_u64 at) { return pread(fd, buf, n, (off_t)at) == (ssize_t)n; }

static bool is_header(const struct d9_arena_header *h)
{
	return d9_is_arena_header(h, h->bytes) && h->proc_next <= D9_N_PROCS;
}

/* Reads the family's memory and hands it on. */
static bool look(int dirfd, const char *name, d9_ksession_fn *fn, void *ctx)
{
	struct stat st;
	bool done = false;
	int fd = fstat(dirfd, &st) ? -EBADF : open_arena(dirfd, st.st_uid);
	if (fd < 0)
		return false;
	struct d9_arena_header *h = malloc(sizeof(*h));
	struct d9_proc *procs = NULL;
	if (h && read_at(fd, h, sizeof(*h), 0) && is_header(h)) {
		procs = calloc(h->proc_next + 1, sizeof(*procs));
		if (procs && read_at(fd, procs, h->proc_next * sizeof(*procs), d9_off_procs(h->n_chunks))) {
			struct d9_kfamily f = {.name = name,
					       .dirfd = dirfd,
					       .uid = st.st_uid,
					       .pid_ns = h->pid_ns,
					       .started_mono = h->started_mono,
					       .procs = procs,
					       .n = h->proc_next};
			done = fn(ctx, &f);
		}
	}
	free(procs);
	free(h);
	close(fd);
	return done;
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void each_folder(int dirfd, d9_kfolder_fn *fn, void *ctx)
{
	DIR *d = fdopendir(dirfd);
	if (!d) {
		close(dirfd);
		return;
	}
	bool done = false;
	for (struct dirent *e; !done && (e = readdir(d));) {
		int fd = d9_is_folder_name(e->d_name) ? open_folder(dirfd, e->d_name) : -1;
		if (fd < 0)
			continue;
		done = fn(ctx, fd, e->d_name);
		close(fd);
	}
	closedir(d);
}

int d9_ksession_each_folder(const char *dir, d9_kfolder_fn *fn, void *ctx)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	each_folder(fd, fn, ctx);
	return 0;
}

struct families {
	d9_ksession_fn *fn;
	void *ctx;
};
static bool look_into(void *ctx, int dirfd, const char *name)
{
	struct families *f = ctx;
	return look(dirfd, name, f->fn, f->ctx);
}

int d9_ksession_each(const char *dir, d9_ksession_fn *fn, void *ctx)
{
	char link[8];
	struct families f = {fn, ctx};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (readlinkat(fd, "arena", link, sizeof(link)) < 0) {
		each_folder(fd, look_into, &f);
		return 0;
	}
	(void)look(fd, ".", fn, ctx);
	close(fd);
	return 0;
}
