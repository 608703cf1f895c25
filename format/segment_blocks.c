/*
 * The bytes of a segment and the blocks among them.  They are read with pread into memory of ours (never
 * mapped: a file that is truncated under a mapping is SIGBUS).  A block is one whose checksum is right; from
 * a place where none is, the search goes on at the next four bytes that look like the beginning of one.
 */
#include "segment_read_internal.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define WINDOW_BYTES (256u << 10)

/* ---- bytes ----------------------------------------------------------------------------------- */

const d9_u8 *d9_segr_bytes(struct d9_segr_source *s, d9_u64 at, size_t n, int *error)
{
	*error = -ENODATA;
	if (at > s->size || n > s->size - at)
		return 0;
	if (s->mem)
		return s->mem + at;
	if (s->window && at >= s->window_at && at - s->window_at <= s->window_n &&
	    n <= s->window_n - (size_t)(at - s->window_at))
		return s->window + (at - s->window_at);
	size_t want = n < WINDOW_BYTES ? WINDOW_BYTES : n;
	if (want > s->size - at)
		want = (size_t)(s->size - at);
	s->window_n = 0;
	if (!d9_grow(&s->window, &s->window_cap, want)) {
		*error = -ENOMEM;
		return 0;
	}
	s->window_at = at;
	while (s->window_n < want) {
		ssize_t r = pread(s->fd, s->window + s->window_n, want - s->window_n, (off_t)(at + s->window_n));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			*error = -errno;
		if (r <= 0)
			break;
		s->window_n += (size_t)r;
	}
	return n <= s->window_n ? s->window : 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool checksum_is(const struct d9_block_header *h, const d9_u8 *stored)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	/* A fuzzer cannot guess checksums; what lies behind them is what it is for. */
	(void)h, (void)stored;
	return true;
#else
	struct d9_block_header zeroed = *h;
	zeroed.checksum = 0;
	XXH3_state_t state;
	XXH3_64bits_reset(&state);
	XXH3_64bits_update(&state, &zeroed, sizeof(zeroed));
	XXH3_64bits_update(&state, stored, h->stored);
	return XXH3_64bits_digest(&state) == h->checksum;
#endif
}

static bool plausible(const struct d9_block_header *h)
{
	return h->magic == D9_BLOCK_MAGIC && h->raw <= D9_BLOCK_RAW_MAX && h->stored <= h->raw &&
	       h->n_records <= D9_BLOCK_RECORDS_LIMIT && h->n_runs <= h->n_records &&
	       (h->stored == h->raw || h->flags & D9_BLOCK_LZ4);
}

int d9_segr_block_at(struct d9_segr *r, d9_u64 at, struct d9_block_header *h, const d9_u8 **stored)
{
	int error;
	const d9_u8 *p = d9_segr_bytes(&r->src, at, sizeof(*h), &error);
	if (!p)
		return error == -ENODATA ? 0 : error;
	memcpy(h, p, sizeof(*h));
	if (!plausible(h))
		return 0;
	p = d9_segr_bytes(&r->src, at, sizeof(*h) + h->stored, &error);
	if (!p)
		return error == -ENODATA ? 0 : error;
	if (r->hash_budget < h->stored)
		return 0;
	*stored = p + sizeof(*h);
	if (checksum_is(h, *stored))
		return 1;
	r->hash_budget -= h->stored;
	return 0;
}

/* A file can state any size and hold next to nothing: where the next bytes may be that a block can begin with. */
static d9_u64 after_hole(const struct d9_segr_source *s, d9_u64 at)
{
	if (s->mem)
		return at;
	off_t data = lseek(s->fd, (off_t)at, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? s->size : at;
	return (d9_u64)data > at + 3 ? (d9_u64)data - 3 : at;
}

int d9_segr_find_magic(struct d9_segr *r, d9_u64 at, d9_u64 *ret)
{
	static const d9_u32 magic = D9_BLOCK_MAGIC;
	while ((at = after_hole(&r->src, at)) < r->src.size) {
		d9_u64 left = r->src.size - at;
		size_t n = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
		int error;
		const d9_u8 *p = d9_segr_bytes(&r->src, at, n, &error);
		if (!p && error != -ENODATA)
			return error;
		const d9_u8 *hit = p ? memmem(p, n, &magic, 4) : 0;
		if (hit) {
			*ret = at + (d9_u64)(hit - p);
			return 0;
		}
		if (!p || n == left)
			break;
		at += n - 3;
	}
	*ret = r->src.size;
	return 0;
}

int d9_segr_next_block(struct d9_segr *r, d9_u64 *at, struct d9_block_header *h, const d9_u8 **stored)
{
	bool torn = false;
	int found = 0;
	while (*at < r->src.size && (found = d9_segr_block_at(r, *at, h, stored)) == 0) {
		torn = true;
		int error = d9_segr_find_magic(r, *at + 1, at);
		if (error)
			return error;
	}
	r->stats.torn_blocks += torn;
	return found;
}

int d9_segr_unpack(struct d9_segr *r, const struct d9_block_header *h, const d9_u8 *stored)
{
	if (h->flags & ~D9_BLOCK_LZ4)
		return -EBADMSG;
	if (!d9_grow(&r->raw, &r->raw_cap, h->raw + 1u))
		return -ENOMEM;
	if (!(h->flags & D9_BLOCK_LZ4)) {
		memcpy(r->raw, stored, h->raw);
		return 0;
	}
	int n = LZ4_decompress_safe((const char *)stored, (char *)r->raw, (int)h->stored, (int)h->raw);
	return n == (int)h->raw ? 0 : -EBADMSG;
}
