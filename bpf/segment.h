/*
 * The segment file that is being written: k-NNNNNN.d9.  It opens with a clock pair and ends with one; what its records refer to
 * is for the caller to define anew when d9_kseg_number has changed.
 */
#ifndef D9_BPF_SEGMENT_H
#define D9_BPF_SEGMENT_H
#include "format/events.h"
#include "folder.h"
#include "options.h"

struct d9_kseg;

/* NULL: out of memory. */
struct d9_kseg *d9_kseg_new(const struct d9_koptions *o, const struct d9_kfolder *f);
/* Takes NULL.  What was not ended stays as it is: readable up to the last flush. */
void d9_kseg_free(struct d9_kseg *s);

/* Begins a segment.  0 or -errno. */
int d9_kseg_begin(struct d9_kseg *s);
/* Writes what was gathered, then the footer.  0 or -errno. */
int d9_kseg_end(struct d9_kseg *s);
/* What was gathered goes to the file.  0 or -errno. */
int d9_kseg_flush(struct d9_kseg *s);

/* Counted from 1; 0 = none is open, which after an error is so until d9_kseg_begin. */
d9_u32 d9_kseg_number(const struct d9_kseg *s);
/* Is it long or old enough for another one to be begun? */
bool d9_kseg_is_full(const struct d9_kseg *s);
/* Records that were gathered, and lost with an error. */
d9_u64 d9_kseg_dropped(const struct d9_kseg *s);
/* Removes our own oldest segments while they are over the budget, in a folder of our own. */
void d9_kseg_evict(const struct d9_kseg *s);

/*
 * Adds a record of that thread (D9_THREAD_NONE: our own), made of its fixed part and a tail of that kind (D9_TAIL_NONE: none).
 * 0; -EOVERFLOW: end this segment and begin another; -EBADF: none is open; or the file's error.
 */
int d9_kseg_add(struct d9_kseg *s, d9_u32 thread, d9_u32 id, const void *fixed, d9_u32 tail_kind, const void *tail,
		d9_u32 n);

d9_u64 d9_kseg_mono(void);

#endif
