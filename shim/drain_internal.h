/* What the files of the drainer share; nobody else includes this. */
#ifndef D9_SHIM_DRAIN_INTERNAL_H
#define D9_SHIM_DRAIN_INTERNAL_H
#include "atomic.h"
#include "drain.h"

#define D9_DRAIN_PENDING 4096u
#define D9_BLOCK_MAX 4096u

/* Part of a chunk that is gathered but not yet written: told to the arena after the write, never before. */
struct d9_taken {
	d9_u32 chunk, upto;
	bool done;
};

struct d9_drain {
	struct d9_view v;
	struct d9_drain_options o;
	struct d9_segw *w;
	/* the open segment */
	int fd;           /* -1: none */
	bool open, named; /* named: its file had a name when it was made */
	d9_u32 sequence;
	d9_u64 opened_mono;
	char file[16];
	char path[96]; /* what o.path points to */
	/* back-off after an error */
	d9_u64 retry_mono;
	d9_u32 retry_ms;
	/* progress */
	d9_u64 t_copy; /* copy: the moment it shows */
	d9_u64 t_last; /* newest time of any record seen, raw */
	d9_u64 t_pass; /* what came later waits for the next pass */
	d9_u64 clock_mono, modules_mono, live_mono, evict_mono;
	d9_u32 live_next, switches_told, warnings_told, notes_told;
	int moved;
	d9_u32 n_taken;
	struct d9_taken taken[D9_DRAIN_PENDING];
	struct d9_taken
		part; /* of the chunk that is being taken: what the block has of it so far; done: there is one */
	/* what the open segment defines already */
	d9_u64 thread_defined[D9_N_THREADS]; /* thread id + 1 | name version << 32 */
	d9_u8 site_defined[D9_N_SITES];
	d9_u8 proc_defined[D9_N_PROCS];     /* 1 + D9_PROC_URING if that was said */
	d9_u8 module_defined[D9_N_MODULES]; /* 1 mapped, 2 gone */
	d9_u8 type_defined[D9_N_TYPES];
	/* across segments */
	d9_u8 proc_ended[D9_N_PROCS];     /* its `exit` event is written */
	d9_i32 proc_status[D9_N_PROCS];   /* waitpid status + 1 */
	d9_u64 drops_told[D9_N_THREADS];  /* what the gap of this pass says + 1; 0: none */
	d9_u64 drops_looked;              /* when this pass looked for them */
	d9_u64 cpu_sampled[D9_N_THREADS]; /* seen t at the last sample */
	d9_u64 thread_seen[D9_N_THREADS]; /* newest t of a record of the slot */
	d9_u64 gone_mono[D9_N_THREADS];   /* when a thread was found gone in the middle of something; 0: it was not */
	_Alignas(64) d9_u8 copy[D9_CHUNK_BYTES]; /* the record being checked */
	d9_u8 meta[D9_CHUNK_BYTES];              /* a definition being built */
	_Alignas(64) d9_u8 writer[];
};

/* drain.c */
int d9_drain_add(struct d9_drain *d, d9_u32 thread, d9_u32 serial, d9_u32 begin, d9_u32 end, const struct d9_rec *rec);
int d9_drain_flush(struct d9_drain *d);
d9_u64 d9_drain_now(const struct d9_drain *d);

/* drain_file.c: segment files and their budget */
int d9_drain_open_segment(struct d9_drain *d);
int d9_drain_end_segment(struct d9_drain *d);
void d9_drain_failed(struct d9_drain *d, int r, const char *what);
void d9_drain_wrote(struct d9_drain *d);
void d9_drain_evict(struct d9_drain *d);

/* drain_define.c: META records of the open segment */
int d9_define_start(struct d9_drain *d);
int d9_define_for(struct d9_drain *d, d9_u32 thread, const struct d9_rec *rec);
int d9_define_changed(struct d9_drain *d);
int d9_define_clock(struct d9_drain *d);

/* drain_live.c: who is alive, CPU time, what threads are in the middle of */
void d9_live_check(struct d9_drain *d);
d9_u64 d9_live_copy_time(struct d9_drain *d);
int d9_live_cpu(struct d9_drain *d);
int d9_live_ends(struct d9_drain *d, bool final);
int d9_live_totals(struct d9_drain *d);
int d9_live_gaps(struct d9_drain *d);
void d9_live_told(struct d9_drain *d);
int d9_live_pending(struct d9_drain *d);
bool d9_live_slot_dead(const struct d9_drain *d, d9_u32 slot);
void d9_live_free_slots(struct d9_drain *d);

#endif
