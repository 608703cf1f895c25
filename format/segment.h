/*
 * What a segment file (.d9) is made of.  docs/FORMAT.md says it in prose; change both.
 *
 *   struct d9_seg_header, then blocks; each block is struct d9_block_header and `stored` bytes.
 *   The first block is the DESCRIPTORS of every event that may follow, so the file explains itself.
 *   EVENTS blocks hold records, META ones before what refers to them: runs, a type per record, then columns.
 *   The FOOTER is the last block of a segment that was closed properly; a file without one, or with a torn
 *   last block, is normal.
 */
#ifndef D9_FORMAT_SEGMENT_H
#define D9_FORMAT_SEGMENT_H
#include "types.h"

#include <stdbool.h>

#define D9_SEG_MAGIC 0x31544d4745533944ull /* "D9SEGMT1" */
#define D9_SEG_MAJOR 1                     /* a reader refuses a greater one */
#define D9_SEG_MINOR 1                     /* a reader skips what it does not know */
#define D9_SEG_BY_PERF 1u                  /* of compat: what it tells of waits was seen through perf, and is not all */

struct d9_seg_header {
	d9_u64 magic;
	d9_u16 major, minor;
	d9_u32 header_bytes;
	d9_u32 compat, incompat; /* feature bits; a reader refuses a file with an incompat bit it does not know */
	d9_u64 family[2];
	d9_u32 sequence;     /* of the file within its process folder, from 1 */
	d9_u32 clock;        /* D9_CLOCK_WORD of the recorder; each block has its own */
	d9_u64 created_real; /* CLOCK_REALTIME ns */
	d9_u64 checksum;     /* XXH3-64 of the bytes before it */
};
_Static_assert(sizeof(struct d9_seg_header) == 64, "segment header");

#define D9_CLOCK_WORD(kind, shift) \
	((d9_u32)(kind) << 8 | (d9_u32)(shift)) /* enum d9_clock_kind; tick = 2^shift of its unit */

enum d9_block_kind { D9_BLOCK_DESCRIPTORS = 1, D9_BLOCK_EVENTS = 2, D9_BLOCK_FOOTER = 3 };
#define D9_BLOCK_MAGIC 0x4b423944u /* "D9BK" */
#define D9_BLOCK_LZ4 1u

struct d9_block_header {
	d9_u32 magic, kind;
	d9_u32 stored, raw; /* bytes after this header; bytes once decompressed */
	d9_u32 n_records, n_runs;
	d9_u32 clock, flags;
	d9_u64 t_min, t_max; /* ticks, over records with a time; 0, 0 if there are none */
	d9_u64 checksum;     /* XXH3-64 of this header with checksum 0, then of the stored bytes */
};
_Static_assert(sizeof(struct d9_block_header) == 56, "block header");

/*
 * A run: records of one thread, in its order, from one chunk.  (thread, serial, begin..end) is the key
 * by which a record that is both in a segment and in an arena is known to be one.
 */
struct d9_run {
	d9_u32 thread;     /* thread id; D9_THREAD_NONE: the drainer's own (META, control, exit) */
	d9_u32 serial;     /* chunk serial of the thread */
	d9_u32 begin, end; /* byte range of the chunk's records */
	d9_u32 n;          /* records */
};

#define D9_BLOCK_RECORDS_MAX 8192u    /* records a writer puts in one block */
#define D9_BLOCK_RECORDS_LIMIT 65536u /* a reader takes a block with more for damage, ... */
#define D9_BLOCK_RAW_MAX (4u << 20)   /* ... and one that is larger than this when unpacked */

/* s-NNNNNN.d9 (the drainer's) or k-NNNNNN.d9 (the kernel helper's); anything else in a folder is somebody else's. */
static inline bool d9_is_segment_name(const char *name)
{
	static const char end[] = ".d9";
	if ((name[0] != 's' && name[0] != 'k') || name[1] != '-')
		return false;
	for (int i = 2; i < 8; i++)
		if (name[i] < '0' || name[i] > '9')
			return false;
	for (int i = 0; i < 4; i++)
		if (name[8 + i] != end[i])
			return false;
	return true;
}

/* NAME-XXXXXXXX: a process folder. */
static inline bool d9_is_folder_name(const char *name)
{
	unsigned n = 0;
	while (name[n])
		n++;
	if (n < 10 || name[n - 9] != '-')
		return false;
	for (const char *p = name + n - 8; *p; p++)
		if ((*p < '0' || *p > '9') && (*p < 'a' || *p > 'f') && (*p < 'A' || *p > 'F'))
			return false;
	return true;
}

#endif
