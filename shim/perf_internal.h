/* What perf.c and perf_file.c share; nobody else includes this. */
#ifndef D9_SHIM_PERF_INTERNAL_H
#define D9_SHIM_PERF_INTERNAL_H
#include "format/segment_write.h"
#include "perf.h"

#define D9_PERF_CPUS 1024u
#define D9_PERF_THREADS 4096u
#define D9_PERF_PROCS 1024u
#define D9_PERF_HEADS 4096u /* a power of two */
#define D9_PERF_BUCKETS 40u

struct d9_perf_ring {
	d9_u8 *at; /* the control page, then the records */
	d9_u64 tail, head;
	d9_u64 next;  /* time of the record at tail; 0: none */
	int fd;       /* -1: not kept */
	d9_u32 doubt; /* passes in which records may be missing that nothing tells of yet */
};

struct d9_perf_thread {
	d9_u32 next; /* index + 1 of the next with this hash, or of the next that is free */
	d9_u32 id, proc, defined_in;
	d9_i32 tid, pid;
	d9_u64 first;
	d9_u64 out; /* when it left its CPU, 0 = it runs, or that is not known */
	d9_u32 why; /* D9_RUNQ_PREEMPTED, D9_RUNQ_NEW, 0 = it waits for something */
	d9_u32 cpu;
	d9_u64 count, total, max, buckets[D9_PERF_BUCKETS];
	char name[16];
};

struct d9_perf_proc {
	d9_u32 id, parent, n_threads, defined_in; /* n_threads 0: the entry is free */
	d9_i32 pid, ppid;
	d9_u64 start, born;
	d9_u32 uid, n_exe;
	char exe[512];
};

struct d9_perf {
	struct d9_perf_options o;
	d9_u32 n_rings, ring_bytes; /* n_rings: CPU numbers looked at; of those that are not there `at` is NULL */
	bool off;
	d9_i32 left_out, own_pid;
	/* threads */
	d9_u32 free, used, n_threads, next_id, next_proc;
	d9_u32 heads[D9_PERF_HEADS]; /* index + 1 */
	/* what was lost */
	d9_u64 lost, told_lost, whole; /* whole: up to here all is told, or a gap tells of it */
	/* the segment */
	int dirfd, fd; /* fd -1: none is open */
	d9_u32 sequence, number;
	d9_u64 family[2], opened_mono, flushed_mono, retry_mono;
	char file[16];
	_Alignas(8) d9_u8 record[2048];
	struct d9_perf_ring rings[D9_PERF_CPUS];
	struct d9_perf_proc procs[D9_PERF_PROCS];
	struct d9_perf_thread threads[D9_PERF_THREADS];
	_Alignas(64) d9_u8 writer[];
};

/* perf_file.c.  What cannot be written is counted as lost. */
static inline struct d9_segw *d9_perf_writer(struct d9_perf *p) { return (struct d9_segw *)p->writer; }
void d9_perf_write(struct d9_perf *p, struct d9_perf_thread *t, d9_u32 id, void *event, d9_u32 tail_kind,
		   const void *tail, d9_u32 n);
void d9_perf_write_gap(struct d9_perf *p, d9_u64 until);
void d9_perf_write_total(struct d9_perf *p, struct d9_perf_thread *t, d9_u64 until);
/* Opens a segment if none is, ends one that is full, writes what was gathered when that is due. */
void d9_perf_file_round(struct d9_perf *p, d9_u64 now);
void d9_perf_file_end(struct d9_perf *p, d9_u64 now);

#endif
