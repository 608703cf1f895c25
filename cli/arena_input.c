/*
 * The arena of a family as one more segment: what was recorded and not drained yet, by a family that still
 * runs or that died undrained.  Copied first, never mapped: its members may write to it, cut it off or be
 * somebody else; whatever is wrong with it is then wrong in memory of our own.
 */
#include "member.h"
#include "trace_internal.h"

#include "shim/adopt.h"
#include "shim/drain.h"
#include "shim/lease.h"
#include "shim/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_MAX (4ull << 30)

/* The link may lead to where arenas are or be the arena itself; nothing else is opened. */
static int open_arena(const char *path, char *err, size_t n_err)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	if (n < 0 && errno != EINVAL)
		return -errno;
	const char *file = path;
	if (n >= 0) {
		target[n] = '\0';
		if (!d9_is_arena_path(target)) {
			snprintf(err, n_err, "its link leads to %s", target);
			return -EBADMSG;
		}
		file = target;
	}
	int fd = open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int check_file(int fd, struct stat *st, char *err, size_t n_err)
{
	if (fstat(fd, st) < 0)
		return -errno;
	if (geteuid() && st->st_uid != geteuid()) {
		snprintf(err, n_err, "it belongs to another user");
		return -EPERM;
	}
	if (S_ISREG(st->st_mode) && (d9_u64)st->st_size >= sizeof(struct d9_arena_header) &&
	    (d9_u64)st->st_size <= ARENA_MAX)
		return 0;
	snprintf(err, n_err, "it is no arena");
	return -EBADMSG;
}

/* Copies what the file holds; its holes stay holes. */
static int copy_file(int fd, unsigned char *to, size_t n)
{
	off_t at = 0;
	while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && (size_t)at < n) {
		off_t end = lseek(fd, at, SEEK_HOLE);
		if (end < 0)
			return -errno;
		while (at < end && (size_t)at < n) {
			size_t want = (size_t)end < n ? (size_t)(end - at) : n - (size_t)at;
			ssize_t got = pread(fd, to + at, want, at);
			if (got <= 0)
				return got < 0 ? -errno : 0;
			at += got;
		}
	}
	return at < 0 && errno != ENXIO ? -errno : 0;
}

struct bytes_out {
	D9_VEC(unsigned char) out;
};

static int sink(void *ctx, const void *bytes, size_t n)
{
	struct bytes_out *b = ctx;
	while (b->out.cap - b->out.n < n) {
		b->out.cap = b->out.cap ? b->out.cap * 2 : 1u << 16;
		b->out.v = d9_must_resize(b->out.v, b->out.cap, 1);
	}
	memcpy(b->out.v + b->out.n, bytes, n);
	b->out.n += n;
	return 0;
}

/*
 * Who runs.  A process that no drainer has looked at yet gets its start time, in our copy: by that a program which it
 * becomes later is known to be its own.
 */
static void see_running(void *copy, ino_t inode, struct d9_running *ret)
{
	struct d9_arena_header *h = copy;
	struct d9_view v;
	d9_view_init(&v, copy, h->n_chunks);
	d9_u32 n = h->proc_next < D9_N_PROCS ? h->proc_next : D9_N_PROCS;
	bool told = d9_adopt_same_pids(h);
	if (ret) {
		ret->told = told;
		ret->drained = d9_lease_fresh(&h->lease);
	}
	for (d9_u32 i = 0; i < n && told; i++) {
		d9_u64 start = 0;
		if (!d9_member_runs(&v.procs[i], inode, &start))
			continue;
		if (!v.procs[i].start)
			v.procs[i].start = start;
		if (ret)
			d9_vec_push(&ret->generations, v.procs[i].generation);
	}
}

int d9_arena_input(const char *path, d9_drained_fn *drained, void *ctx, struct d9_running *ret_running, void **ret,
		   size_t *ret_n, char *err, size_t n_err)
{
	struct stat st;
	void *copy = MAP_FAILED, *mem = calloc(1, d9_drain_bytes());
	struct bytes_out b = {0};
	int r, fd = open_arena(path, err, n_err);
	if (fd < 0) {
		free(mem);
		if (!*err)
			snprintf(err, n_err, "%s", strerror(-fd));
		return fd;
	}
	r = check_file(fd, &st, err, n_err);
	if (r < 0)
		goto out;
	copy = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0);
	r = copy == MAP_FAILED ? -errno : !mem ? -ENOMEM : copy_file(fd, copy, (size_t)st.st_size);
	if (!r && !d9_drain_check(copy, (d9_u64)st.st_size))
		r = -EBADMSG;
	if (!r)
		see_running(copy, st.st_ino, ret_running);
	if (!r)
		r = d9_drain_snapshot(mem, copy, (size_t)st.st_size, drained, ctx, sink, &b);
	if (r < 0) {
		snprintf(err, n_err, "%s", r == -EBADMSG ? "it is no arena that this d9 understands" : strerror(-r));
		d9_vec_free(&b.out);
		goto out;
	}
	*ret = b.out.v;
	*ret_n = b.out.n;
out:
	free(mem);
	if (copy != MAP_FAILED)
		munmap(copy, (size_t)st.st_size);
	close(fd);
	return r;
}
