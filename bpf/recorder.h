/*
 * From the ring to the segment: what the programs in the kernel tell becomes events; segments are rolled, what was lost is written
 * as gaps, the sums are checked at the end.
 */
#ifndef D9_BPF_RECORDER_H
#define D9_BPF_RECORDER_H
#include "folder.h"
#include "load.h"
#include "options.h"

struct d9_krecorder;

/* NULL: out of memory. */
struct d9_krecorder *d9_krecorder_new(const struct d9_koptions *o, struct d9_kload *l);
void d9_krecorder_free(struct d9_krecorder *r);

/* Takes the processes that the options mean and that are no targets yet.  How many threads are targets. */
d9_u32 d9_krecorder_take_targets(struct d9_krecorder *r);
/* For the folder: the target that was met first.  False: there is none. */
bool d9_krecorder_first_process(const struct d9_krecorder *r, struct d9_kfolder_process *ret, char *name, size_t size);

/* From here on it writes there.  0 or -errno. */
int d9_krecorder_open(struct d9_krecorder *r, const struct d9_kfolder *f);
bool d9_krecorder_is_open(const struct d9_krecorder *r);

/* Once in a while: what is in the ring is written, a part of it at a time. */
enum d9_kpass {
	D9_KPASS_OVER,
	D9_KPASS_ALL,
	D9_KPASS_MORE
}; /* no target lives any more; the ring is empty; it is not */
enum d9_kpass d9_krecorder_pass(struct d9_krecorder *r);
/* Totals, the rest of the ring, the footer; warns of what was not as it should be. */
void d9_krecorder_finish(struct d9_krecorder *r);

#endif
