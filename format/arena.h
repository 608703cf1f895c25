/*
 * Layout of the session memory: one shared arena for a process and all that forks from it.  Asserts
 * only, no code that runs in the host; shim/ writes it, whoever drains reads it.
 *
 * All integers little-endian, offsets only, no pointers: members map it at different addresses, may
 * have different user ids, and whatever one of them wrote is a claim to the others.
 *
 *   header 16 KiB | hook names | chunk states | waker table | site table | type table   backed at open
 *   process table | thread table | call counters | module table | chunks      sparse, backed before first touch
 *
 * READING a hole of a full tmpfs is SIGBUS too, so a mapped reader looks at a sparse table only below
 * the count that the header states; those pages are backed before the count moves.
 */
#ifndef D9_FORMAT_ARENA_H
#define D9_FORMAT_ARENA_H
#include "events.h"

#define D9_ARENA_MAGIC 0x31414e4552413944ull /* "D9ARENA1" */
#define D9_ARENA_VERSION 4

#define D9_CHUNK_BYTES 4096u
#define D9_N_PROCS 4096u
#define D9_N_THREADS (1u << D9_SLOT_BITS) /* at most; d9_n_threads() */
#define D9_WAKERS_BITS 10
#define D9_N_WAKERS (1u << D9_WAKERS_BITS)
#define D9_SITES_BITS 12
#define D9_N_SITES (1u << D9_SITES_BITS)
#define D9_N_MODULES 2048u
#define D9_N_TYPES 64u
/*
 * Hooks that one thread can count, of all that count.  The table is sparse and backed for a thread at its first counted call, so the
 * number is what ten thousand threads pay: 64 make 20 MiB, beside 42 for what else they have, within the 64 that were set.  Busy threads of the services that the tests record count 10 to 40.  A call that finds it full is `uncounted`.
 */
#define D9_N_CALLS 64u
#define D9_N_CLOCKS 64u
#define D9_N_HELD 8u
#define D9_N_HOOKS_MAX 512u

/* ---- header ---------------------------------------------------------------------------------- */

enum d9_clock_kind { D9_CLOCK_TSC = 0, D9_CLOCK_MONOTONIC = 1 };

/* Recording was turned on or off: t is before the first event that may follow, or after the last that may precede. */
struct d9_switch {
	d9_u64 t, mask;
};
#define D9_N_SWITCHES 64u

/* One moment on all clocks; read within `width` ns. */
struct d9_clock_pair {
	d9_u64 tsc, mono, real, boot, width;
};

enum d9_lease_kind { D9_LEASE_NONE, D9_LEASE_THREAD, D9_LEASE_RUN, D9_LEASE_RECOVER };

/*
 * Who drains.  The truth is an open-file-description lock on the arena's file, which the kernel drops
 * when its holder dies; these words tell others without a system call.  (A robust mutex here would
 * make glibc and the kernel follow list pointers that other members can write.)
 */
struct d9_lease {
	d9_u32 kind, pid;
	d9_u64 epoch;          /* +1 with each holder */
	d9_u64 heartbeat_mono; /* CLOCK_MONOTONIC ns of the last pass */
};

enum d9_error {
	D9_ERR_NONE,
	D9_ERR_DIR,    /* the output directory cannot be made, opened or written */
	D9_ERR_SPACE,  /* no space on the output's file system */
	D9_ERR_MEMORY, /* no memory for the arena, or its tmpfs is full */
	D9_ERR_THREAD, /* the drain thread could not be started */
	D9_ERR_LIMIT,  /* a file size limit */
};

struct d9_arena_header {
	/* page 0: what is hot or controls */
	d9_u64 magic;
	d9_u32 version, n_chunks;
	d9_u64 bytes;     /* size of the file */
	d9_u64 family[2]; /* random */
	d9_u8 boot_id[16];
	d9_u64 pid_ns;        /* inode of the creator's PID namespace, 0 if not known */
	d9_u64 creator_start; /* /proc/PID/stat field 22 */
	d9_u32 creator_pid, creator_uid;

	/* control word: bit per hook family, 0 = off.  Written by d9 ctl and the constructor, read by every hook. */
	_Alignas(64) d9_u64 mask;
	d9_u64 configured_mask; /* what `on` sets */
	d9_u32 flush_asked;     /* +1 by d9 ctl flush */
	d9_u32 flush_done;      /* set to flush_asked by the drainer */
	d9_u32 snapshot_asked, snapshot_done;
	d9_u32 nosyscall;  /* members under seccomp: more than 0 = claim backed chunks only */
	d9_u32 drain_wake; /* futex: +1 when more than 1/8 of the chunks are full */

	_Alignas(64) d9_u32 proc_next; /* entries of the process table in use */
	d9_u32 thread_next;            /* slots of the thread table ever used */
	d9_u32 module_next, type_next, site_next;
	d9_u32 thread_free_hint; /* a slot that may be free, where to look first */
	d9_u32 chunk_hint;
	d9_u32 chunks_full;   /* FULL: what waits for the drainer */
	d9_u32 chunks_pinned; /* PINNED */
	d9_u32 pinned_chunk;  /* index + 1 of the one that stacks of sites go to */
	d9_u32 uncounted;     /* short calls that found no counter */
	d9_u32 free_epoch;    /* +1 when the drainer frees chunks: ends the O(1) state of a full arena */
	d9_u32 drops;         /* records not made for want of a chunk (sum over threads) */
	d9_u32 unrecorded;    /* threads that got no slot */
	d9_u32 sites_lost;    /* call places that found the site table full */
	d9_u64 generation_next;
	d9_u64 events_drained, bytes_written, segments;

	_Alignas(64) struct d9_lease lease;
	d9_u32 error_code, error_errno;
	d9_u64 error_mono;
	d9_u64 started_mono, started_real;
	d9_u64 first_event_mono; /* 0 until there is one */

	/* configuration in force */
	d9_u64 segment_bytes, total_bytes;
	d9_u32 rotate_secs, exit_ms;
	d9_u64 io_min_ns, stack_min_ns;
	d9_u32 stacks; /* enum d9_stacks_mode of options.def */
	d9_u32 clock_kind, clock_shift;
	d9_u32 clock_pairs_next; /* pairs ever written; the ring holds the last D9_N_CLOCKS */
	d9_u32 switches_next;    /* switches ever made; the ring holds the last D9_N_SWITCHES */
	d9_u32 switches_told;    /* of them, how many drainers have written */
	d9_u32 warnings_lock;    /* a member adds a line */
	d9_u64 tsc_hz;           /* estimate, 0 until two pairs are far enough apart */
	d9_u64 drops_looked;     /* raw time up to which the threads' drops_told are all that was lost */

	/* page 1: clock pairs */
	_Alignas(4096) struct d9_clock_pair clocks[D9_N_CLOCKS];
	struct d9_switch switches[D9_N_SWITCHES];

	/* pages 2 and 3: text, NUL-ended */
	_Alignas(4096) char dir[1024]; /* the process folder, absolute */
	char name[64];
	char error_text[192];
	char shim_version[32];
	char comm[16];
	char run[40];                       /* D9_RUN: the `d9 run` that drains this family; "" = none */
	_Alignas(256) char warnings[1536];  /* a line each */
	char notes[1024];                   /* what the recorder found in the program, a line each */
	_Alignas(4096) char exe_args[4096]; /* path, NUL, arguments each ended by a NUL */
};
#define D9_HEADER_BYTES (4 * 4096u)
_Static_assert(sizeof(struct d9_arena_header) == D9_HEADER_BYTES, "the arena's header fills its pages");

/* Names of the hooks, by hook id, for a drainer of another version than the shim.  name "" = no such hook. */
struct d9_hook_entry {
	char name[48], family[12];
	d9_u32 flags; /* D9_HOOK_* */
};
_Static_assert(sizeof(struct d9_hook_entry) == 64, "hook entry");
#define D9_HOOK_PARKS 1u /* an event wait: may be where a worker parks */
#define D9_HOOK_LOCK 2u  /* waits for an object that somebody holds or signals */
#define D9_HOOK_SLEEP 4u
#define D9_HOOK_SLOW 8u    /* only calls above D9_IO_MIN_US become spans; the others are counted */
#define D9_HOOK_ALWAYS 16u /* recorded whatever D9_HOOKS says */

/* ---- tables ---------------------------------------------------------------------------------- */

/* Of a note and of a warning, behind the image's path: the runtime whose tasks are recorded, and as which module; why they are not. */
#define D9_NOTE_TOKIO ": Tokio, "
#define D9_NOTE_MODULE " kinds of tasks, recorded as module "
#define D9_NOTE_PROCESS ", in process "
#define D9_NOTE_REFUSED ": Tokio left alone: "

enum d9_proc_state { D9_PROC_FREE, D9_PROC_LIVE, D9_PROC_EXIT, D9_PROC_UEXIT, D9_PROC_EXEC, D9_PROC_GONE };
#define D9_PROC_SECCOMP 1u   /* flags of a process, as its `proc` event has them */
#define D9_PROC_NO_CLOCK 2u  /* forbade itself the clock: it records no more */
#define D9_PROC_URING 4u     /* d9_proc.uring */
#define D9_PROC_NO_MEMORY 8u /* gave its memory back to a limit that it set itself: it records no more */

struct d9_proc {
	d9_u32 state; /* enum d9_proc_state; released last */
	d9_u32 parent;
	d9_u64 generation, start, born_tsc, ended_tsc;
	d9_i32 pid, ppid;
	d9_u32 uid, flags;
	d9_i32 exit_code;
	d9_u32 end_said;      /* enum d9_proc_state: EXIT, UEXIT or EXEC, as the process announced it */
	d9_u32 leader_thread; /* thread id + 1 of the thread that met this process first */
	d9_u32 end_told;      /* a drainer has written its `exit`: another one does not */
	d9_u32 uring; /* an io_uring was among what it has mapped.  Only ever set, by its drainer or at its end */
	d9_u32 pad;
	d9_u64 spare[6];
};
_Static_assert(sizeof(struct d9_proc) == 128, "process entry");

/* What a thread is in the middle of.  site is stored last and cleared first; a sampler reads it twice. */
struct d9_in_call {
	d9_u32 site;
	d9_i32 fd;
	d9_u64 t0, object, sp;
};
/* A poll of a task, or a park of a worker, that has begun (runtime ABI). */
struct d9_in_poll {
	d9_u64 t0, task;
	d9_u32 module, runtime, worker, active;
};
struct d9_held {
	d9_u64 object, t;
};

enum d9_slot_state { D9_SLOT_FREE, D9_SLOT_TAKEN, D9_SLOT_LIVE, D9_SLOT_DEAD };

struct d9_thread {
	d9_u32 state; /* enum d9_slot_state; FREE -> TAKEN by CAS, LIVE released when filled, FREE again by the drainer */
	d9_u32 use;   /* how often the slot was used, this time included: part of the thread's id */
	d9_u32 proc;
	d9_i32 tid;
	char comm[16];
	d9_u16 role, calls_open; /* calls_open: the entry of the call counters is this thread's */
	d9_u32 name_version;
	d9_u64 born_tsc;
	d9_u64 drops;
	struct d9_in_call call;
	struct d9_in_poll poll;
	struct d9_held held[D9_N_HELD];
	d9_u32 call_owner; /* of a `call` with an object: tid found in the lock's owner word, 0 if none */
	d9_u32 drops_told; /* low half of `drops` that a drainer has written as gaps */
};
_Static_assert(sizeof(struct d9_thread) == 256, "thread slot");

/* The wake side of an object: who woke it last.  Lossy, never wrong: a waiter believes it only if the
   object is its own and t lies within its wait. */
struct d9_waker {
	d9_u64 object; /* 0 = nobody waits for anything that hashes here */
	d9_u64 t;
	d9_u32 thread, pad;
	d9_u64 spare;
};
_Static_assert(sizeof(struct d9_waker) == 32, "waker entry");

struct d9_site {
	d9_u64 ra;
	d9_u32 key; /* hook | 1 << 31 once taken: CASed from 0, so the entry has one owner */
	d9_u32 depth;
	d9_u32 ready; /* 1 when ra, depth and proc are there */
	d9_u32 proc;
	d9_u32 stack_chunk; /* PINNED chunk's index + 1, 0 = no stack (yet) */
	d9_u32 stack_at;    /* where in its rec[] the struct d9_tail lies */
};
_Static_assert(sizeof(struct d9_site) == 32, "site entry");

struct d9_type_entry {
	d9_u32 ready, bytes;
	char text[248];
};
_Static_assert(sizeof(struct d9_type_entry) == 256, "type entry");

struct d9_module {
	d9_u32 ready, proc;
	d9_u64 start, end, offset, from_tsc, until_tsc;
	d9_u8 build_id_bytes, build_id[31];
	d9_u32 gone_reported, pad;
	char path[296];
};
_Static_assert(sizeof(struct d9_module) == 384, "module entry");

/* Calls too short to be recorded one by one.  hook 0 = free. */
struct d9_call_count {
	d9_u64 count, total_tsc;
	d9_u32 max_tsc; /* saturates */
	d9_u32 errors;
	d9_u32 hook;
	d9_u32 reported; /* drainer: low half of the count in the last `calls` event */
};
_Static_assert(sizeof(struct d9_call_count) == 32, "call counter");
struct d9_thread_calls {
	struct d9_call_count of[D9_N_CALLS];
};

/* ---- chunks ---------------------------------------------------------------------------------- */

/*
 * State word: owner slot << 3 | state.  One CAS claims a chunk and names its owner, so a process that
 * is killed anywhere leaks nothing.
 *   FREE      no page behind it                 BACKED    page kept, rec[] all zero
 *   ACTIVE    its owner writes into it          FULL      its owner has left it
 *   DRAINING  being copied by the lease holder (a new holder treats it as FULL)
 *   PINNED    holds the stack of a site; never freed while the family lives
 */
enum d9_chunk_state {
	D9_CHUNK_FREE,
	D9_CHUNK_BACKED,
	D9_CHUNK_ACTIVE,
	D9_CHUNK_FULL,
	D9_CHUNK_DRAINING,
	D9_CHUNK_PINNED
};
#define D9_CHUNK_STATE(w) ((w)&7u)
#define D9_CHUNK_OWNER(w) ((w) >> 3)
#define D9_CHUNK_WORD(owner, state) ((d9_u32)(owner) << 3 | (d9_u32)(state))

struct d9_chunk_entry {
	d9_u32 state;
	d9_u32 drained; /* bytes of rec[] that are in a segment; written by the lease holder alone */
};

struct d9_chunk {
	d9_u32 thread; /* thread id (slot and use); D9_THREAD_NONE or 0: nothing here yet */
	d9_u32 serial; /* +1 with each chunk of the thread: the order of its events */
	d9_u64 generation;
	d9_u64 claimed_tsc;
	d9_u64 used; /* PINNED: bytes of rec[] given out */
	d9_u8 rec[D9_CHUNK_BYTES - 32];
};
_Static_assert(sizeof(struct d9_chunk) == D9_CHUNK_BYTES, "chunk");
#define D9_CHUNK_RECORDS (D9_CHUNK_BYTES - 32u)
#define D9_RECORD_MAX D9_CHUNK_RECORDS

/* ---- where things lie ------------------------------------------------------------------------- */

#define D9_PAGES(bytes) (((d9_u64)(bytes) + 4095) & ~4095ull)
#define D9_OFF_HOOKS ((d9_u64)D9_HEADER_BYTES)
#define D9_OFF_CHUNK_TABLE (D9_OFF_HOOKS + D9_N_HOOKS_MAX * sizeof(struct d9_hook_entry))
/* Slots of the thread table: a thread that records has a chunk, so there need not be more of them than chunks.  Full pages of each table. */
static inline d9_u32 d9_n_threads(d9_u32 n_chunks)
{
	return n_chunks >= D9_N_THREADS ? D9_N_THREADS : n_chunks < 256 ? 256 : (n_chunks + 63) & ~63u;
}
static inline d9_u64 d9_off_wakers(d9_u32 n_chunks)
{
	return D9_OFF_CHUNK_TABLE + D9_PAGES((d9_u64)n_chunks * sizeof(struct d9_chunk_entry));
}
static inline d9_u64 d9_off_sites(d9_u32 n) { return d9_off_wakers(n) + D9_N_WAKERS * sizeof(struct d9_waker); }
static inline d9_u64 d9_off_types(d9_u32 n) { return d9_off_sites(n) + D9_N_SITES * sizeof(struct d9_site); }
static inline d9_u64 d9_off_procs(d9_u32 n) { return d9_off_types(n) + D9_N_TYPES * sizeof(struct d9_type_entry); }
static inline d9_u64 d9_off_threads(d9_u32 n) { return d9_off_procs(n) + D9_N_PROCS * sizeof(struct d9_proc); }
static inline d9_u64 d9_off_calls(d9_u32 n) { return d9_off_threads(n) + d9_n_threads(n) * sizeof(struct d9_thread); }
static inline d9_u64 d9_off_modules(d9_u32 n)
{
	return d9_off_calls(n) + d9_n_threads(n) * sizeof(struct d9_thread_calls);
}
static inline d9_u64 d9_off_chunks(d9_u32 n)
{
	return d9_off_modules(n) + D9_PAGES(D9_N_MODULES * sizeof(struct d9_module));
}
static inline d9_u64 d9_arena_bytes(d9_u32 n) { return d9_off_chunks(n) + (d9_u64)n * D9_CHUNK_BYTES; }
_Static_assert(D9_N_MODULES * sizeof(struct d9_module) % 4096 == 0 && D9_N_SITES * sizeof(struct d9_site) % 4096 == 0 &&
		       D9_N_TYPES * sizeof(struct d9_type_entry) % 4096 == 0 &&
		       D9_N_WAKERS * sizeof(struct d9_waker) % 4096 == 0 &&
		       D9_N_HOOKS_MAX * sizeof(struct d9_hook_entry) % 4096 == 0,
	       "tables fill pages");

/* The path of an arena, /dev/shm/d9-UID-RANDOM, and nothing else: a link may be anybody's. */
static inline _Bool d9_is_arena_path(const char *p)
{
	const char *digits, *random;
	for (const char *prefix = "/dev/shm/d9-"; *prefix; prefix++, p++)
		if (*p != *prefix)
			return 0;
	for (digits = p; *p >= '0' && *p <= '9';)
		p++;
	if (p == digits || *p != '-')
		return 0;
	for (random = ++p; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f');)
		p++;
	return p - random == 32 && !*p;
}

/* Is this what an arena of this version begins with whose file is so large?  What follows are claims all the same. */
static inline _Bool d9_is_arena_header(const struct d9_arena_header *h, d9_u64 bytes)
{
	return h->magic == D9_ARENA_MAGIC && h->version == D9_ARENA_VERSION && h->n_chunks > 0 &&
	       h->n_chunks <= (1u << 24) && d9_arena_bytes(h->n_chunks) == bytes;
}

#endif
