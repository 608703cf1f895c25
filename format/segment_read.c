/*
 * Segment bytes in, records out: see segment_read.h.
 *
 * The file may come from a crashed machine or from somebody who wishes us ill, and it may be written to or
 * cut while we read.  So each part takes only what the one before it has checked:
 *
 *   file -> segment_blocks.c -> block -> segment_plan.c (once), segment_decode.c {runs, types, columns -> rows} -> records
 */
#include "segment_read_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- iteration ------------------------------------------------------------------------------- */

/* Called for each whole block after the descriptors.  -EBADMSG: its content is not what its header says. */
typedef int block_fn(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at, void *ctx);

static int each_block(struct d9_segr *r, block_fn *fn, void *ctx)
{
	memset(&r->stats, 0, sizeof(r->stats));
	r->stats.torn_blocks = r->torn_at_start;
	r->decoded = 0;
	r->hash_budget = 16 * r->src.size + (1u << 20);
	struct d9_block_header h;
	const d9_u8 *stored;
	d9_u64 at = r->first_block;
	int found;
	while ((found = d9_segr_next_block(r, &at, &h, &stored)) == 1) {
		int result = fn(r, &h, stored, at, ctx);
		if (result == -EBADMSG) {
			r->stats.torn_blocks++;
			result = 0;
		}
		if (result)
			return result;
		at += sizeof(h) + h.stored;
	}
	return found;
}

struct each {
	d9_segr_fn *fn;
	void *ctx;
	int result; /* the callback's, which may have any value */
};

static int each_events(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at,
		       struct each *each)
{
	struct d9_decode d;
	int error = d9_segr_unpack(r, h, stored);
	if (!error)
		error = d9_segr_decode(&d, r, h, at);
	if (error)
		return error;
	r->stats.blocks++;
	r->decoded += h->n_records;
	each->result = d9_segr_deliver(&d, each->fn, each->ctx);
	return each->result ? -ECANCELED : 0;
}

/* The footer knows what was written: a block that is missing as a whole shows here and nowhere else. */
static int read_footer(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored)
{
	d9_u64 blocks, records;
	int error = d9_segr_unpack(r, h, stored);
	if (error)
		return error;
	struct d9_cursor c = {r->raw, r->raw + h->raw};
	if (!d9_uvar_need(&c, &blocks) || !d9_uvar_need(&c, &records))
		return -EBADMSG;
	r->stats.has_footer = true;
	if (records != r->decoded && !r->stats.torn_blocks)
		r->stats.torn_blocks++;
	return 0;
}

static int each_block_events(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at,
			     void *ctx)
{
	if (h->kind == D9_BLOCK_EVENTS)
		return each_events(r, h, stored, at, ctx);
	return h->kind == D9_BLOCK_FOOTER ? read_footer(r, h, stored) : 0;
}

int d9_segr_each(struct d9_segr *r, d9_segr_fn *fn, void *ctx)
{
	struct each each = {fn, ctx, 0};
	int error = each_block(r, each_block_events, &each);
	return each.result ? each.result : error;
}

struct each_run {
	d9_segr_run_fn *fn;
	void *ctx;
	int result;
};

static int each_block_runs(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored, d9_u64 at,
			   void *ctx)
{
	struct each_run *each = ctx;
	(void)at;
	if (h->kind != D9_BLOCK_EVENTS)
		return 0;
	struct d9_decode d;
	int error = d9_segr_unpack(r, h, stored);
	if (!error)
		error = d9_segr_decode_runs(&d, r, h);
	if (error)
		return error;
	r->stats.blocks++;
	for (d9_u32 i = 0; i < h->n_runs && !each->result; i++)
		each->result = each->fn(each->ctx, &r->runs[i]);
	return each->result ? -ECANCELED : 0;
}

int d9_segr_each_run(struct d9_segr *r, d9_segr_run_fn *fn, void *ctx)
{
	struct each_run each = {fn, ctx, 0};
	int error = each_block(r, each_block_runs, &each);
	return each.result ? each.result : error;
}

void d9_segr_stats(const struct d9_segr *r, struct d9_segr_stats *ret) { *ret = r->stats; }
const struct d9_seg_header *d9_segr_header(const struct d9_segr *r) { return &r->header; }

/* ---- what is wrong --------------------------------------------------------------------------- */

/* Whom to tell what is wrong with which file. */
struct told {
	const char *name;
	char *err;
	size_t n_err;
};

/* Writes "NAME: what is wrong; what to do." and returns the error. */
__attribute__((format(printf, 3, 4))) static int fail(const struct told *told, int error, const char *format, ...)
{
	char what[192];
	va_list ap;
	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	if (told->n_err)
		snprintf(told->err, told->n_err, "%.200s: %s", told->name, what);
	return error;
}

static int fail_read(const struct told *told, int error)
{
	if (error == -ENOMEM)
		return fail(told, error, "there is no memory to read it; free some.");
	return fail(told, error, "cannot be read: %s; check the disk.", strerror(-error));
}

/* ---- open and close -------------------------------------------------------------------------- */

static int check_header(struct d9_segr *r, const struct told *told)
{
	int error;
	struct d9_seg_header *h = &r->header;
	const d9_u8 *p = d9_segr_bytes(&r->src, 0, sizeof(*h), &error);
	if (!p && error != -ENODATA)
		return fail_read(told, error);
	if (!p)
		return fail(told, -EBADMSG, "ends inside its header, at byte %llu, so nothing is in it; delete it.",
			    (unsigned long long)r->src.size);
	memcpy(h, p, sizeof(*h));
	if (h->magic != D9_SEG_MAGIC)
		return fail(told, -EBADMSG,
			    "is not a d9 segment (it does not begin with D9SEGMT1); "
			    "give a .d9 file from a trace folder.");
	if (h->checksum != XXH3_64bits(h, offsetof(struct d9_seg_header, checksum)))
		return fail(told, -EBADMSG, "is damaged in its header (bytes 0 to 63); use another copy of it.");
	if (h->major > D9_SEG_MAJOR)
		return fail(told, -EPROTONOSUPPORT, "has format version %u, this d9 reads up to %u; use a newer d9.",
			    h->major, D9_SEG_MAJOR);
	if (h->incompat)
		return fail(told, -EPROTONOSUPPORT, "needs format features 0x%x that this d9 lacks; use a newer d9.",
			    h->incompat);
	if (h->major == 0 || h->header_bytes < sizeof(*h) || h->header_bytes > 4096)
		return fail(told, -EBADMSG,
			    "states version %u and a header of %u bytes, which cannot be; "
			    "use another copy of it.",
			    h->major, h->header_bytes);
	return 0;
}

/* Is there a whole block after `at`?  1, 0, or an error. */
static int any_block_after(struct d9_segr *r, d9_u64 at)
{
	struct d9_block_header h;
	const d9_u8 *stored;
	int found = 0;
	while (!found && at < r->src.size) {
		int error = d9_segr_find_magic(r, at + 1, &at);
		if (error)
			return error;
		found = d9_segr_block_at(r, at, &h, &stored);
	}
	return found;
}

static int check_descriptors(struct d9_segr *r, const struct told *told)
{
	struct d9_block_header h;
	const d9_u8 *stored;
	d9_u64 at = r->header.header_bytes;
	r->hash_budget = r->src.size;
	r->first_block = r->src.size;
	int found = d9_segr_block_at(r, at, &h, &stored), error = -EBADMSG;
	if (found == 0) {
		/* Cut before the first event?  Then nothing is lost.  Is there a block further on, something is. */
		found = any_block_after(r, at);
		r->torn_at_start = found == 0;
		error = found ? -EBADMSG : 0;
	} else if (found == 1 && h.kind == D9_BLOCK_DESCRIPTORS) {
		error = d9_segr_unpack(r, &h, stored);
		if (!error)
			error = d9_segr_read_plans(r, &h);
		r->first_block = at + sizeof(h) + h.stored;
	}
	if (found < 0 || error == -ENOMEM)
		return fail_read(told, found < 0 ? found : error);
	if (error == -EPROTO)
		return fail(told, -EPROTONOSUPPORT,
			    "describes events in a way that this d9 does not know; use a newer d9.");
	if (error)
		return fail(told, -EBADMSG,
			    "is damaged in its table of events (the block at byte %u), without which "
			    "the rest cannot be read; use another copy of it.",
			    r->header.header_bytes);
	return 0;
}

/* Takes over src->fd. */
static int open_source(const struct d9_segr_source *src, const struct told *told, struct d9_segr **ret)
{
	struct d9_segr *r = calloc(1, sizeof(*r));
	if (!r) {
		if (src->fd >= 0)
			close(src->fd);
		return fail_read(told, -ENOMEM);
	}
	r->src = *src;
	int error = check_header(r, told);
	if (!error)
		error = check_descriptors(r, told);
	if (error) {
		d9_segr_close(r);
		return error;
	}
	*ret = r;
	return 0;
}

int d9_segr_open_memory(const void *bytes, size_t n, struct d9_segr **ret, char *err, size_t n_err)
{
	struct told told = {"segment in memory", err, n_err};
	struct d9_segr_source src = {.mem = bytes ? bytes : (const void *)"", .fd = -1, .size = bytes ? n : 0};
	return open_source(&src, &told, ret);
}

int d9_segr_open_at(int dirfd, const char *name, struct d9_segr **ret, char *err, size_t n_err)
{
	struct told told = {name, err, n_err};
	/* O_NONBLOCK: a fifo of this name must not hold us up before we see that it is one. */
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = -errno;
	if (fd < 0 && error == -ELOOP)
		return fail(&told, error, "is a symbolic link, which is not followed; give the file itself.");
	if (fd < 0)
		return fail(&told, error, "cannot be opened: %s; check the name and your rights.", strerror(-error));
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return fail(&told, -EINVAL, "is not a regular file; give a .d9 file from a trace folder.");
	}
	struct d9_segr_source src = {.fd = fd, .size = (d9_u64)st.st_size};
	return open_source(&src, &told, ret);
}

int d9_segr_open(const char *path, struct d9_segr **ret, char *err, size_t n_err)
{
	return d9_segr_open_at(AT_FDCWD, path, ret, err, n_err);
}

void d9_segr_close(struct d9_segr *r)
{
	if (!r)
		return;
	while (r->kept) {
		struct d9_segr_kept *k = r->kept;
		r->kept = k->next;
		free(k->raw);
		free(k);
	}
	if (r->src.fd >= 0)
		close(r->src.fd);
	free(r->src.window);
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++)
		free(r->plan[id]);
	free(r->blobs);
	free(r->raw);
	free(r->rows);
	free(r->places);
	free(r->sites);
	free(r->runs);
	free(r);
}
