/* See segment.h. */
#include "segment.h"
#include "format/arena.h"
#include "format/segment_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEQUENCE_MAX 999999u

struct d9_kseg {
	struct d9_segw *w;
	int dirfd, fd;
	bool own_folder;
	char file[16];
	d9_u32 sequence, number;
	d9_u64 family[2];
	d9_u64 opened_mono, dropped;
	d9_u64 segment_bytes, rotate_ns, total_bytes;
	_Alignas(8) d9_u8 record[8192];
};

/* ---- clocks ---------------------------------------------------------------------------------- */

static d9_u64 gettime(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (d9_u64)t.tv_sec * 1000000000u + (d9_u64)t.tv_nsec;
}

d9_u64 d9_kseg_mono(void) { return gettime(CLOCK_MONOTONIC); }

/* The tightest of a few readings: an interruption between two of them widens the bracket, and shows. */
static struct d9_ev_clock read_clocks(void)
{
	struct d9_ev_clock best = {.width = D9_NOT_KNOWN};
	for (int i = 0; i < 5; i++) {
		d9_u64 mono = gettime(CLOCK_MONOTONIC), real = gettime(CLOCK_REALTIME), boot = gettime(CLOCK_BOOTTIME);
		d9_u64 width = gettime(CLOCK_MONOTONIC) - mono;
		if (width < best.width)
			best = (struct d9_ev_clock){
				.rec.t = mono, .tsc = mono, .mono = mono, .real = real, .boot = boot, .width = width};
	}
	return best;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int write_all(void *ctx, const void *bytes, size_t n)
{
	struct d9_kseg *s = ctx;
	for (const char *p = bytes; n;) {
		ssize_t r = write(s->fd, p, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r ? -errno : -EIO;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

/* Root writes for others too: what is in a user's folder is that user's. */
static void give_to_owner(const struct d9_kseg *s)
{
	struct stat dir;
	if (!geteuid() && !fstat(s->dirfd, &dir) && dir.st_uid && fchown(s->fd, dir.st_uid, dir.st_gid))
		return; /* it stays root's, who alone can read it then */
}

static int open_file(struct d9_kseg *s)
{
	while (s->sequence < SEQUENCE_MAX) {
		snprintf(s->file, sizeof(s->file), "k-%06u.d9", ++s->sequence % (SEQUENCE_MAX + 1));
		s->fd = openat(s->dirfd, s->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (s->fd >= 0) {
			give_to_owner(s);
			return 0;
		}
		if (errno != EEXIST) { /* else another d9-kernel wrote it */
			int e = -errno;
			s->sequence--;
			return e;
		}
	}
	return -EEXIST;
}

static void close_file(struct d9_kseg *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/*
 * The part of a block that is there goes; the blocks before it stay.  Without one it is no segment: a disk that stays full would
 * collect them.
 */
static int failed(struct d9_kseg *s, int r)
{
	s->dropped += d9_segw_gathered(s->w);
	if (s->fd >= 0 && ftruncate(s->fd, (off_t)d9_segw_written(s->w)))
		r = -errno; /* a torn block is what a reader expects of a killed writer */
	close_file(s);
	if (!d9_segw_records(s->w) && !unlinkat(s->dirfd, s->file, 0))
		s->sequence--;
	d9_segw_abandon(s->w);
	return r;
}

/* ---- segments -------------------------------------------------------------------------------- */

struct d9_kseg *d9_kseg_new(const struct d9_koptions *o, const struct d9_kfolder *f)
{
	struct d9_kseg *s = calloc(1, sizeof(*s));
	void *mem = mmap(NULL, d9_segw_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!s || mem == MAP_FAILED || getrandom(s->family, sizeof(s->family), 0) != sizeof(s->family)) {
		if (mem != MAP_FAILED)
			munmap(mem, d9_segw_bytes());
		free(s);
		return NULL;
	}
	s->w = d9_segw_init(mem);
	s->dirfd = f->dirfd;
	s->own_folder = f->own;
	s->fd = -1;
	s->segment_bytes = o->segment_bytes;
	s->rotate_ns = o->rotate_ns;
	s->total_bytes = o->total_bytes;
	return s;
}

void d9_kseg_free(struct d9_kseg *s)
{
	if (!s)
		return;
	close_file(s);
	munmap(s->w, d9_segw_bytes());
	free(s);
}

static int add_clocks(struct d9_kseg *s)
{
	struct d9_ev_clock c = read_clocks();
	return d9_kseg_add(s, D9_THREAD_NONE, D9_EV_clock, &c, D9_TAIL_NONE, NULL, 0);
}

int d9_kseg_begin(struct d9_kseg *s)
{
	int r = open_file(s);
	if (r)
		return r;
	struct d9_seg_header ident = {.family = {s->family[0], s->family[1]},
				      .sequence = s->sequence,
				      .clock = D9_CLOCK_WORD(D9_CLOCK_MONOTONIC, 0),
				      .created_real = gettime(CLOCK_REALTIME)};
	s->opened_mono = d9_kseg_mono();
	r = d9_segw_begin(s->w, &ident, write_all, s);
	if (r)
		return failed(s, r);
	s->number++;
	return add_clocks(s);
}

int d9_kseg_flush(struct d9_kseg *s)
{
	int r = s->fd < 0 ? -EBADF : d9_segw_flush(s->w);
	return r && s->fd >= 0 ? failed(s, r) : r;
}

int d9_kseg_end(struct d9_kseg *s)
{
	int r = s->fd < 0 ? -EBADF : d9_kseg_flush(s); /* first, so that there is room for what follows */
	if (!r)
		r = add_clocks(s);
	if (!r && (r = d9_segw_end(s->w)))
		r = failed(s, r);
	close_file(s);
	return r;
}

d9_u32 d9_kseg_number(const struct d9_kseg *s) { return s->fd < 0 ? 0 : s->number; }
d9_u64 d9_kseg_dropped(const struct d9_kseg *s) { return s->dropped; }

bool d9_kseg_is_full(const struct d9_kseg *s)
{
	return d9_segw_written(s->w) >= s->segment_bytes || d9_kseg_mono() - s->opened_mono >= s->rotate_ns;
}

int d9_kseg_add(struct d9_kseg *s, d9_u32 thread, d9_u32 id, const void *fixed, d9_u32 tail_kind, const void *tail,
		d9_u32 n)
{
	d9_u32 size = d9_events[id].size, padded = (n + 7) & ~7u, len = size + (tail_kind ? 8 + padded : 0);
	struct d9_rec *rec = (struct d9_rec *)s->record;
	if (s->fd < 0)
		return -EBADF;
	if (len > sizeof(s->record))
		return -EMSGSIZE;
	memcpy(rec, fixed, size);
	if (tail_kind) {
		struct d9_tail *t = (struct d9_tail *)(s->record + size);
		*t = (struct d9_tail){D9_TAIL_WORD(tail_kind, n), 0};
		memcpy(t + 1, tail, n);
		memset((d9_u8 *)(t + 1) + n, 0, padded - n);
	}
	rec->head = D9_REC_HEAD(len, id) | D9_COMMITTED;
	rec->site = 0;
	int r = d9_segw_add(s->w, thread, 0, 0, 0, rec);
	if (r == -ENOSPC) {
		r = d9_kseg_flush(s);
		if (!r)
			r = d9_segw_add(s->w, thread, 0, 0, 0, rec);
	}
	return r;
}

/* ---- the budget ------------------------------------------------------------------------------ */

struct use {
	d9_u64 bytes;
	unsigned n;
	char oldest[16];
};

/* Names are numbers in order, so the least one is the oldest. */
static bool measure(int dirfd, struct use *u)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	*u = (struct use){0};
	if (!d && fd >= 0)
		close(fd);
	if (!d)
		return false;
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		if (!d9_is_segment_name(e->d_name) || fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		u->bytes += (d9_u64)st.st_size;
		u->n++;
		if (!u->oldest[0] || strcmp(e->d_name, u->oldest) < 0)
			snprintf(u->oldest, sizeof(u->oldest), "%.12s", e->d_name);
	}
	closedir(d);
	return true;
}

void d9_kseg_evict(const struct d9_kseg *s)
{
	struct use u;
	while (s->own_folder && measure(s->dirfd, &u) && u.n > 1 && u.bytes > s->total_bytes)
		if (unlinkat(s->dirfd, u.oldest, 0))
			return;
}
