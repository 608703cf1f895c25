/*
 * The host's side of the session memory: opening it, and the slow paths of a record (a process or a thread
 * that is new, a chunk that is full).  Everything but d9_arena_open runs inside hooks: raw system calls
 * only, no lock, re-entrant by signal handlers.
 *
 * word             written by          read by         ordering, and what breaks without it
 * cell.cursor      its thread          its thread      compiler barrier: its handlers may move it between any two instructions
 * rec.head         owning thread       drainer         release after the record's bytes / acquire before them, else it reads a record not yet there
 * entry.state      owner, drainer      both            CAS: one owner; release FULL after the last record
 * slot.state       owner, drainer      drainer         release LIVE after the slot is filled
 * proc.state       owner, drainer      drainer         release LIVE after the entry is filled
 * header.mask      d9 ctl              every hook      relaxed: an event a little late is dropped or kept by its own times
 * header.*_next    members             drainer         added to before the entry is filled; `state`/`ready` tells when
 * shim.waited      who waits          who wakes       relaxed: a wake beside the first wait for its object may name no waker
 * slot.call        its thread          drainer, d9     site last on entry, first on exit; a sampler reads it twice
 *
 * call               a thread   its signal handler   vfork child      forked child
 * d9_enter_thread    yes        yes                  borrows parent's yes, makes a new process entry
 * d9_record_begin    yes        yes, nested          borrows parent's yes
 * d9_arena_open      once, constructor
 */
#ifndef D9_SHIM_ARENA_H
#define D9_SHIM_ARENA_H
#include "atomic.h"
#include "config.h"
#include "view.h"

#include <stdbool.h>

/*
 * What a thread has for itself.  In memory that the kernel wipes in a forked child (MADV_WIPEONFORK): there
 * it has no slot and no room, so its first event takes the slow path.  cursor is an absolute address;
 * room = -cursor & 4095, so 0 (new, forked) and the end of a chunk are one test.
 */
struct d9_cell {
	d9_u8 *cursor;
	struct d9_thread *slot;
	struct d9_thread_calls *calls; /* NULL until the first counted call */
	d9_u32 thread;                 /* thread id */
	d9_u32 serial;                 /* of the next chunk */
	d9_u32 full_epoch;             /* free_epoch + 1 at which the arena was found full */
	d9_u32 stack_seen;             /* site and second of the last stack of a single call */
	d9_u64 stack_lo, stack_hi;     /* part of the stack known to be readable; 0 = not looked yet */
	d9_u64 last_end;               /* when the last recorded call ended */
};
_Static_assert(sizeof(struct d9_cell) == 64, "one cache line a thread");

enum { D9_OUTSIDE = 0, D9_ENTERING = 1, D9_INSIDE = 2, D9_REFUSED = 3 };
struct d9_private {   /* wiped on fork too */
	d9_u32 alive; /* this process's own entry: D9_OUTSIDE ... */
	d9_u32 proc;
	d9_u32 nosys;         /* under seccomp: no system call that was not made before */
	d9_u32 refused_epoch; /* free_epoch + 1 at which no thread slot was to be had */
	d9_i32 pid;
	d9_u32 writer_state;   /* writer_thread.c */
	d9_u32 writer_drained; /* its last pass wrote everything */
	d9_i32 writer_tid;     /* the thread's, from its first act on */
	d9_u32 future_locked;  /* mlockall(MCL_FUTURE) was called here: what is mapped is locked (limits.c) */
	d9_u32 looking;        /* a thread looks through the images (interpose/runtime) and holds the loader's lock */
	d9_u32 forking;        /* threads that are about to fork */
	d9_u32 perf;           /* this process has rings of its own (perf_host.c); released after they are there */
	d9_i32 perf_error;     /* why not */
	d9_u32 loader_whole;   /* ... and the loader's lock cannot be held by a thread that a fork left behind */
	d9_u32 locks_whole; /* no lock of libc's can be held by a thread that was left behind: nobody forked, or libc's fork() did */
};

/* Begins of the runtime ABI that have not ended (abi.c). */
#define D9_ABI_DEPTH 15u
struct d9_abi_frame {
	d9_u64 t0, id;
	d9_u32 kind, runtime, worker;
	char name[92];
};
struct d9_abi_frames {
	d9_u32 thread, depth, overflow, pad; /* thread id + 1 of the thread they belong to */
	struct d9_abi_frame of[D9_ABI_DEPTH];
};

/* Polls of tasks that a thread has begun and not ended, of runtimes that tell nobody (interpose/runtime). */
#define D9_TASK_DEPTH 14u
struct d9_task_frame {
	void *head; /* of the task; what the adapter needs to leave it again stands in the other words */
	d9_u64 id, t0, state, scheduler[2];
	d9_u32 slot, token, runtime, worker, module, kind;
	d9_u32 index; /* a job that may be a worker's life: of which worker */
	bool proven, late,
		pad[2];      /* a task of that worker's scheduler was polled in it; its spawn is not recorded yet */
	d9_u64 top;          /* frame pointer of what stands in for its poll */
	d9_u64 made, parent; /* of a late one: when and by whom it was made; made 0 = not known */
	d9_u32 maker, parent_module;
};
struct d9_task_frames {
	d9_u32 thread, depth; /* thread id + 1 of the thread they belong to */
	struct d9_task_frame of[D9_TASK_DEPTH];
};

struct d9_frames {
	struct d9_abi_frames abi;
	struct d9_task_frames tasks;
};
/*
 * They are mapped for so many slots at a time when the first of these threads needs one; the first of all with the cells.  Few programs
 * have tasks, and what is private and writable is what RLIMIT_DATA counts.
 */
#define D9_FRAMES_PIECE 64u
#define D9_FRAMES_BYTES D9_PAGES(D9_FRAMES_PIECE * sizeof(struct d9_frames))

/* struct d9_private, the cells, the first frames. */
static inline d9_u64 d9_private_bytes(d9_u32 n_threads)
{
	return 4096 + n_threads * sizeof(struct d9_cell) + D9_FRAMES_BYTES;
}

#define D9_N_KEPT 19u

struct d9_shim {
	/* what every hook reads; the assembly in interpose/sync.c knows where the first two are */
	const d9_u64 *mask; /* the control word, or a zero */
	d9_u64 waited;      /* a bit for each object ever waited for, many objects to a bit; never cleared */
	d9_u64 wake_proc;   /* process entry << 48: of the parent, until a forked child's first event */
	d9_u64 io_min, stack_min, long_gap; /* raw clock units */
	d9_u64 long_span;                   /* the smaller of the two before it */
	d9_u64 writer_due;                  /* raw clock: when an event wait should see whether somebody drains */
	struct d9_view v;                   /* v.h == NULL: dormant, nothing is mapped */
	struct d9_private *priv;            /* never NULL */
	struct d9_cell *cells;              /* by slot index */
	d9_u32 stacks;                      /* enum d9_stacks */
	d9_u32 task_dumps;                  /* enum d9_task_dumps */
	d9_u32 runtimes;                    /* enum d9_runtimes, OFF if D9_RUNTIMES_EXE leaves this program out */
	d9_u32 last_proc;                   /* process entry of this image: what a forked child finds as its parent's */
	d9_u64 main_stack_hi;               /* above every frame of the main thread */
	bool populate;                      /* MADV_POPULATE_WRITE works here */
	bool anonymous;                     /* no file behind the arena: nobody outside can drain it */
	bool dir_given;                     /* D9_DIR: the same folder for every user */
	bool no_folder;                     /* none could be made at start: nothing leads to the arena's file */
	d9_u32 tid_offset;                  /* where glibc keeps a thread's id in its descriptor; 0 = not known */
	bool forks_left_out;                /* D9_FOLLOW: a forked child records nothing */
	bool filtered; /* a system call filter was, or may have been, installed here or in a parent: no call of ours */
	const char *library; /* the name that the loader has for us */
	bool forked;         /* this process or one it was forked from has called fork */
	bool threaded;       /* ... has made a thread */
	/* this process's own words for the file and the folder: another member can write the header's */
	char arena_path[96], dir[1024];
	struct d9_kept {
		d9_u64 at, bytes;
		void **where; /* NULL: it stays when the arena goes */
	} kept[D9_N_KEPT];    /* d9_map_kept */
	d9_u32 n_kept;
	void *perf; /* D9_PERF: a struct d9_perf, of whoever opened rings here last; NULL: not wanted */
	struct d9_frames
		*frames[D9_N_THREADS / D9_FRAMES_PIECE]; /* by slot index; what they point to is wiped on fork */
};
extern D9_HIDDEN struct d9_shim d9_shim __attribute__((aligned(64)));
extern D9_HIDDEN __thread struct d9_cell *d9_me __attribute__((tls_model("initial-exec")));

/*
 * Maps an arena for this family with what `c` allows, in /dev/shm, else in anonymous memory, and
 * makes the process folder.  0, or -errno: then the recorder stays dormant.  Opens and closes descriptors, so only before main.
 */
int d9_arena_open(const struct d9_config *c, const char *name, int argc, char **argv);

/* Takes everything out of this process again: dormant, as if d9_arena_open had failed.  Only while no other code of the recorder can run. */
void d9_arena_close(void);
/* What the recorder has mapped in this process: all of it, or what is private and writable. */
d9_u64 d9_arena_held(bool private_alone);

/* Learns to know a thread's id without asking the kernel: once, in a thread that may ask. */
void d9_find_tid(void);
/* This thread's cell, made if need be; NULL: this event cannot be recorded, and that is counted. */
D9_COLD struct d9_cell *d9_enter_thread(void);
/* New chunk for a thread whose chunk has no room for `len` bytes.  False: none to be had (counted by the caller). */
bool d9_claim_chunk(struct d9_cell *me);
/* Backs a few chunks that nobody has, for a time in which none can be. */
void d9_stock_chunks(struct d9_cell *me);
/* A chunk for the stacks of sites: never drained, never freed.  Its index + 1, or 0. */
d9_u32 d9_pin_chunk(struct d9_cell *me);
/* Counts one event that could not be recorded. */
D9_COLD void d9_count_drop(struct d9_cell *me);

/* Private memory, never locked; NULL: none to be had. */
void *d9_map(d9_u64 bytes);
/*
 * The same, known as the recorder's own; D9_N_KEPT times, of one thread at a time.  *where becomes its address, and NULL when it goes with
 * the arena; without one it stays for as long as the process.
 */
void *d9_map_kept(d9_u64 bytes, void **where);
/* The same as d9_map, which a fork wipes; NULL: none to be had. */
void *d9_map_private(d9_u64 bytes);
/* Frames of tasks for this slot.  False: none to be had, or not to be asked for now. */
D9_COLD bool d9_frames_for(d9_u32 slot);

/* Makes the pages of [p, p + n) present, so that touching them cannot be SIGBUS.  False: the file system is full. */
bool d9_back(const void *p, d9_u64 n);

#endif
