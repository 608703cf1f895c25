/*
 * The fast path of a record: reserve, fill, commit.  No lock, no system call, no fence.
 *
 * The record's own header is the reservation: 0 -> length by an unlocked compare-exchange, because only
 * this thread's signal handlers race.  A handler that got there first is stepped over.
 */
#ifndef D9_SHIM_RECORD_H
#define D9_SHIM_RECORD_H
#include "arena.h"

/* At most so many new chunks are tried for one record: handlers may fill each as it comes. */
#define D9_CLAIM_TRIES 8

/*
 * Room for a record of `len` bytes (multiple of 8, at most D9_RECORD_MAX).  NULL: dropped and counted.
 * Fill everything but head, then d9_record_commit.
 */
static inline __attribute__((always_inline)) struct d9_rec *d9_record_begin(struct d9_cell *me, d9_u32 len, d9_u32 id)
{
	d9_u8 *at = *(d9_u8 *volatile *)&me->cursor, *p = at;
	int tries = 0;
	for (;;) {
		if (__builtin_expect((-(d9_u64)p & (D9_CHUNK_BYTES - 1)) < len, 0)) {
			if (tries++ == D9_CLAIM_TRIES || !d9_claim_chunk(me)) {
				d9_count_drop(me);
				return NULL;
			}
			at = p = *(d9_u8 *volatile *)&me->cursor;
			continue;
		}
		struct d9_rec *r = (struct d9_rec *)p;
		d9_u32 found = d9_local_claim32(&r->head, D9_REC_HEAD(len, id));
		if (__builtin_expect(!found, 1)) {
			/* Only from where it was: a handler may have left this chunk, and ours would lead the thread back
			   into memory that is no longer its own.  Its chunk cannot be freed before this record is committed. */
			d9_local_move64((d9_u64 *)&me->cursor, (d9_u64)at, (d9_u64)(p + len));
			/* The drainer used these lines last: have the next record's on their way before it is made. */
			__builtin_prefetch(p + len + 64, 1);
			__builtin_prefetch(p + len + 128, 1);
			return r;
		}
		/* Another member may have written it: it leads nowhere but on in this chunk. */
		d9_u32 past = D9_REC_LEN(found), room = (d9_u32)(-(d9_u64)p & (D9_CHUNK_BYTES - 1));
		p += past && past < room ? past : room;
	}
}

static inline __attribute__((always_inline)) void d9_record_commit(struct d9_rec *r, d9_u32 len, d9_u32 id)
{
	d9_store_release(&r->head, D9_REC_HEAD(len, id) | D9_COMMITTED);
}

#endif
