/*
 * Arena to segments.  The same code runs as the host's own thread, in `d9 run` (outside), in `d9 recover`
 * (the family is dead) and over a private copy (any reading command).  Raw system calls only, memory given by
 * the caller, so that it may run where libc may not be touched.
 *
 * Exactly one drainer at a time: whoever holds the lease (an open-file-description lock on the arena's
 * file).  What the members wrote is copied first and checked then; nothing in it is a pointer, a file name or a
 * length that is not checked.
 */
#ifndef D9_SHIM_DRAIN_H
#define D9_SHIM_DRAIN_H
#include "format/segment_write.h"
#include "view.h"

#include <stdbool.h>

struct d9_drain;

/* Memory a drainer needs; mapped by the caller, zeroed. Touched only as used. */
size_t d9_drain_bytes(void);

/* Makes pages of the mapping present; false = the tmpfs is full. */
typedef bool d9_drain_back_fn(const void *p, d9_u64 n);

struct d9_drain_options {
	d9_u32 kind;        /* enum d9_lease_kind: who drains */
	int dirfd;          /* the process folder, or -1: `dir`, opened when needed */
	const char *dir;    /* its path (host only), never the header's */
	int lease_fd;       /* the arena's file, locked by the caller; -1 = anonymous memory or a copy */
	bool same_pids;     /* pids in the arena mean the same here */
	d9_segw_sink *sink; /* instead of files (copy); then dirfd is not used */
	void *sink_ctx;
	d9_drain_back_fn *back;
	const char *path; /* the arena's file: a process that no longer maps it has exec'd; NULL = not known */
	/* bytes of a chunk that are in segments already; may be NULL */
	d9_u32 (*drained)(void *ctx, d9_u32 thread, d9_u32 serial);
	void *drained_ctx;
};

/* `arena`: mapped read-write, its header checked by d9_drain_check. */
struct d9_drain *d9_drain_init(void *mem, void *arena, d9_u32 n_chunks, const struct d9_drain_options *o);

/* Is this the header of an arena that this build understands, and does it fit `bytes`? */
bool d9_drain_check(const struct d9_arena_header *h, d9_u64 bytes);

enum { D9_PASS_FLUSH = 1, D9_PASS_FINAL = 2 };
/*
 * Moves what is there to the segment, rolls it if due.  FINAL: everything, with what threads are in the middle
 * of, and closes the segment.  Returns records moved, or -errno (the header says what; what was not written stays
 * in the arena, and the next pass tries again, with back-off).
 */
int d9_drain_pass(struct d9_drain *d, unsigned flags);

/* How a member ended, from waitpid: status as there.  Only d9 run knows. */
void d9_drain_child_ended(struct d9_drain *d, int pid, int status);

/* Members that are alive, as far as this drainer can see. */
unsigned d9_drain_alive(struct d9_drain *d);

/* Waits until there may be something to do, at most `ms`. */
void d9_drain_wait(struct d9_drain *d, unsigned ms);

/* Closes files; the arena's memory and the lease stay the caller's. */
void d9_drain_close(struct d9_drain *d);

/*
 * Drains a private copy of an arena into one segment handed to `sink`: for reading commands.  The copy is changed.
 * mem: d9_drain_bytes(), zeroed; the caller's again afterwards.  0 or -errno (-EBADMSG: no arena).
 */
int d9_drain_snapshot(void *mem, void *arena_private_copy, size_t n,
		      d9_u32 (*drained)(void *ctx, d9_u32 thread, d9_u32 serial), void *ctx, d9_segw_sink *sink,
		      void *sink_ctx);

#endif
