/*
 * Segment files of a process folder: opening, closing, what happens when they cannot be written, and the
 * budget.  Names are made here and opened relative to a descriptor of the folder: nothing in the arena names a file.
 */
#include "drain_internal.h"
#include "clock.h"
#include "files.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define RETRY_FIRST_MS 500u
#define RETRY_MAX_MS 15000u

static bool has_name(int fd)
{
	struct stat st;
	return d9_sys2(SYS_fstat, fd, (long)&st) || st.st_nlink;
}

static int write_all(void *ctx, const void *bytes, size_t n)
{
	struct d9_drain *d = ctx;
	if (d->named && !has_name(d->fd))
		return -ENOENT; /* somebody removed the file: what else goes there is seen by nobody */
	return d9_write_all(d->fd, bytes, n, &d->v.h->bytes_written);
}

/* Closes the segment.  One into which no record came is no segment: a disk that stays full would collect them. */
static void close_segment(struct d9_drain *d)
{
	if (d->fd >= 0 && !d9_segw_records(d->w) && !d9_sys3(SYS_unlinkat, d->o.dirfd, (long)d->file, 0))
		d->sequence--;
	if (d->fd >= 0)
		(void)d9_sys1(SYS_close, d->fd);
	d->fd = -1;
	d->open = false;
}

/* Called with what failed; closes the segment and waits longer each time. */
void d9_drain_failed(struct d9_drain *d, int r, const char *what)
{
	struct d9_arena_header *h = d->v.h;
	if (d->open && d->fd >= 0) /* the part of a block that is there is written again elsewhere, and nothing lost */
		(void)d9_sys2(SYS_ftruncate, d->fd, (long)d9_segw_written(d->w));
	close_segment(d);
	d9_segw_abandon(d->w);
	d->n_taken = 0;
	struct d9_text t = d9_text_in(h->error_text, sizeof(h->error_text));
	d9_text_str(&t, what);
	d9_text_str(&t, d->file[0] ? d->file : "a segment");
	h->error_errno = (d9_u32)-r;
	h->error_mono = d9_mono_ns();
	d9_store_release(&h->error_code, r == -ENOSPC || r == -EDQUOT ? D9_ERR_SPACE
					 : r == -EFBIG                ? D9_ERR_LIMIT
								      : D9_ERR_DIR);
	d->retry_ms = d->retry_ms ? d->retry_ms * 2 : RETRY_FIRST_MS;
	if (d->retry_ms > RETRY_MAX_MS)
		d->retry_ms = RETRY_MAX_MS;
	d->retry_mono = h->error_mono + d->retry_ms * 1000000ull;
	/* A new folder may have taken the place of one that was removed: look it up again next time (host only). */
	if (d->o.kind == D9_LEASE_THREAD && d->o.dirfd >= 0 && (r == -ENOENT || r == -ESTALE)) {
		(void)d9_sys1(SYS_close, d->o.dirfd);
		d->o.dirfd = -1;
	}
}

static int open_folder(struct d9_drain *d)
{
	if (d->o.dirfd >= 0)
		return 0;
	const char *dir = d->o.dir;
	if (!dir)
		return -EBADF;
	long fd = d9_sys3(SYS_open, (long)dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	/* Removed under us: what is recorded from here on is worth a new one. */
	if (fd == -ENOENT && !d9_sys2(SYS_mkdir, (long)dir, 0700))
		fd = d9_sys3(SYS_open, (long)dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return (int)fd;
	d->o.dirfd = (int)fd;
	return 0;
}

/* Root drains for others too: what a user recorded is that user's, as the folder is. */
static void give_to_owner(const struct d9_drain *d)
{
	struct stat dir;
	if (!d9_sys0(SYS_geteuid) && !d9_sys2(SYS_fstat, d->o.dirfd, (long)&dir) && dir.st_uid)
		(void)d9_sys3(SYS_fchown, d->fd, dir.st_uid, dir.st_gid);
}

static int open_file(struct d9_drain *d)
{
	int r = open_folder(d);
	if (r)
		return r;
	for (;;) {
		d9_segment_file('s', ++d->sequence, d->file, sizeof(d->file));
		long fd = d9_sys4(SYS_openat, d->o.dirfd, (long)d->file,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd == -EEXIST && d->sequence < 999999)
			continue; /* an earlier holder of the lease wrote it */
		if (fd < 0) {
			d->sequence--;
			return (int)fd;
		}
		d->fd = (int)fd;
		give_to_owner(d);
		d->named = has_name(d->fd); /* there are file systems that do not count names */
		return 0;
	}
}

int d9_drain_open_segment(struct d9_drain *d)
{
	struct d9_arena_header *h = d->v.h;
	if (!d->o.sink) {
		int r = open_file(d);
		if (r) {
			d9_drain_failed(d, r, "cannot make ");
			return r;
		}
	}
	struct d9_seg_header ident = {.family = {h->family[0], h->family[1]},
				      .sequence = d->sequence,
				      .clock = D9_CLOCK_WORD(h->clock_kind, h->clock_shift),
				      .created_real = 0};
	struct d9_clock_pair now;
	d9_clock_pair(h->clock_kind, &now);
	ident.created_real = now.real;
	d->opened_mono = now.mono;
	memset(d->thread_defined, 0, sizeof(d->thread_defined));
	memset(d->site_defined, 0, sizeof(d->site_defined));
	memset(d->proc_defined, 0, sizeof(d->proc_defined));
	memset(d->module_defined, 0, sizeof(d->module_defined));
	memset(d->type_defined, 0, sizeof(d->type_defined));
	int r = d->o.sink ? d9_segw_begin(d->w, &ident, d->o.sink, d->o.sink_ctx)
			  : d9_segw_begin(d->w, &ident, write_all, d);
	if (!r) {
		d->open = true;
		h->segments++;
		r = d9_define_start(d);
	}
	if (r)
		d9_drain_failed(d, r, "cannot write ");
	return r;
}

int d9_drain_end_segment(struct d9_drain *d)
{
	int r = d9_drain_flush(d);
	if (r)
		return r;
	r = d9_segw_end(d->w);
	if (r) {
		d9_drain_failed(d, r, "cannot write ");
		return r;
	}
	close_segment(d);
	return 0;
}

/* What stood in the way of writing is over. */
void d9_drain_wrote(struct d9_drain *d)
{
	d9_u32 code = d9_load_relaxed(&d->v.h->error_code);
	d->retry_ms = 0;
	if (code == D9_ERR_SPACE || code == D9_ERR_LIMIT || code == D9_ERR_DIR)
		d9_store_release(&d->v.h->error_code, D9_ERR_NONE);
}

struct folder_use {
	d9_u64 bytes;
	d9_u32 n;
	d9_i64 oldest_s, oldest_ns;
	char oldest[16];
};

static bool measure(int dirfd, struct folder_use *ret)
{
	struct d9_dir d;
	*ret = (struct folder_use){0};
	if (!d9_dir_open(&d, dirfd, "."))
		return false;
	for (const char *name; (name = d9_dir_next(&d));) {
		struct stat st;
		if (!d9_is_segment_name(name) ||
		    d9_sys4(SYS_newfstatat, dirfd, (long)name, (long)&st, AT_SYMLINK_NOFOLLOW))
			continue;
		ret->bytes += (d9_u64)st.st_size;
		ret->n++;
		if (ret->oldest[0] && (st.st_mtim.tv_sec > ret->oldest_s ||
				       (st.st_mtim.tv_sec == ret->oldest_s && st.st_mtim.tv_nsec >= ret->oldest_ns)))
			continue;
		ret->oldest_s = st.st_mtim.tv_sec;
		ret->oldest_ns = st.st_mtim.tv_nsec;
		memcpy(ret->oldest, name, 12);
	}
	d9_dir_close(&d);
	return true;
}

/* Removes the oldest segments of the folder while it is over the budget; the newest always stays. */
void d9_drain_evict(struct d9_drain *d)
{
	struct folder_use u;
	if (d->o.sink || d->o.dirfd < 0)
		return;
	while (measure(d->o.dirfd, &u) && u.n > 1 && u.bytes > d->v.h->total_bytes)
		if (d9_sys3(SYS_unlinkat, d->o.dirfd, (long)u.oldest, 0))
			break; /* ENOENT: another drainer of the session was first */
}
