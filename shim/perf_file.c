/* The segments that perf.c writes: k-NNNNNN.d9, with numbers of threads and processes of their own, as d9-kernel's. */
#include "perf_internal.h"
#include "clock.h"
#include "files.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FLUSH_NS 500000000ull
#define RETRY_NS 5000000000ull

static int write_all(void *ctx, const void *bytes, size_t n)
{
	struct d9_perf *p = ctx;
	d9_u64 written = 0;
	return d9_write_all(p->fd, bytes, n, &written);
}

/* The part of a block that is there goes; the blocks before it stay.  Without one it is no segment. */
static int failed(struct d9_perf *p, int r)
{
	struct d9_segw *w = d9_perf_writer(p);
	p->lost += d9_segw_gathered(w);
	(void)d9_sys2(SYS_ftruncate, p->fd, (long)d9_segw_written(w));
	(void)d9_sys1(SYS_close, p->fd);
	p->fd = -1;
	if (!d9_segw_records(w) && !d9_sys3(SYS_unlinkat, p->dirfd, (long)p->file, 0))
		p->sequence--;
	d9_segw_abandon(w);
	p->retry_mono = d9_mono_ns() + RETRY_NS;
	return r;
}

static int add(struct d9_perf *p, d9_u32 thread, d9_u32 id, const void *event, d9_u32 tail_kind, const void *tail,
	       d9_u32 n)
{
	d9_u32 size = d9_events[id].size, padded = (n + 7) & ~7u, len = size + (tail_kind ? 8 + padded : 0);
	struct d9_rec *rec = (struct d9_rec *)p->record;
	if (p->fd < 0)
		return -EBADF;
	if (len > sizeof(p->record))
		return -EMSGSIZE;
	memcpy(rec, event, size);
	if (tail_kind) {
		*(struct d9_tail *)(p->record + size) = (struct d9_tail){D9_TAIL_WORD(tail_kind, n), 0};
		memcpy(p->record + size + 8, tail, n);
		memset(p->record + size + 8 + n, 0, padded - n);
	}
	rec->head = D9_REC_HEAD(len, id) | D9_COMMITTED;
	rec->site = 0;
	int r = d9_segw_add(d9_perf_writer(p), thread, 0, 0, 0, rec);
	if (r == -ENOSPC) {
		r = d9_segw_flush(d9_perf_writer(p));
		if (r)
			return failed(p, r);
		r = d9_segw_add(d9_perf_writer(p), thread, 0, 0, 0, rec);
	}
	return r;
}

/* ---- what a segment begins with ------------------------------------------------------------------------------------------ */

static int add_info(struct d9_perf *p, const char *key, const char *value)
{
	char text[128];
	struct d9_ev_info e = {0};
	struct d9_text t = d9_text_in(text, sizeof(text));
	d9_text_str(&t, key);
	d9_text_char(&t, '=');
	d9_text_str(&t, value);
	return add(p, D9_THREAD_NONE, D9_EV_info, &e, D9_TAIL_STRING, text, (d9_u32)t.n);
}

static int add_number(struct d9_perf *p, const char *key, d9_u64 v)
{
	char text[24];
	struct d9_text t = d9_text_in(text, sizeof(text));
	d9_text_u64(&t, v);
	return add_info(p, key, text);
}

static int add_clock(struct d9_perf *p)
{
	struct d9_clock_pair c;
	d9_clock_pair(D9_CLOCK_MONOTONIC, &c);
	struct d9_ev_clock e = {
		.rec.t = c.mono, .tsc = c.mono, .mono = c.mono, .real = c.real, .boot = c.boot, .width = c.width};
	return add(p, D9_THREAD_NONE, D9_EV_clock, &e, D9_TAIL_NONE, NULL, 0);
}

static int add_facts(struct d9_perf *p)
{
	char boot[40];
	d9_u8 id[16];
	struct d9_text t = d9_text_in(boot, sizeof(boot));
	(void)d9_boot_id(id);
	for (int i = 0; i < 16; i++)
		d9_text_hex(&t, id[i], 2);
	int r = add_info(p, "version", D9_VERSION);
	if (!r)
		r = add_info(p, "boot_id", boot);
	if (!r)
		r = add_number(p, "clock_hz", 1000000000u);
	if (!r)
		r = add_number(p, "pid_ns", d9_pid_ns());
	return r ? r : add_info(p, "source", "perf");
}

/* ---- the file ------------------------------------------------------------------------------------------------------------- */

static int open_file(struct d9_perf *p)
{
	struct stat dir;
	long fd = -EEXIST;
	while (fd == -EEXIST && p->sequence < 999999) { /* else another helper wrote it */
		p->sequence++;
		d9_segment_file('k', p->sequence, p->file, sizeof(p->file));
		fd = d9_sys4(SYS_openat, p->dirfd, (long)p->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			     0600);
	}
	if (fd < 0) {
		p->sequence--;
		return (int)fd;
	}
	p->fd = (int)fd;
	if (!d9_sys0(SYS_geteuid) && !d9_sys2(SYS_fstat, p->dirfd, (long)&dir) && dir.st_uid)
		(void)d9_sys3(SYS_fchown, p->fd, dir.st_uid, dir.st_gid); /* root writes for others too */
	return 0;
}

static int begin(struct d9_perf *p, d9_u64 now)
{
	struct d9_clock_pair c;
	int r = open_file(p);
	if (r) {
		p->retry_mono = now + RETRY_NS;
		return r;
	}
	d9_clock_pair(D9_CLOCK_MONOTONIC, &c);
	struct d9_seg_header ident = {.compat = D9_SEG_BY_PERF,
				      .family = {p->family[0], p->family[1]},
				      .sequence = p->sequence,
				      .clock = D9_CLOCK_WORD(D9_CLOCK_MONOTONIC, 0),
				      .created_real = c.real};
	p->opened_mono = p->flushed_mono = now;
	r = d9_segw_begin(d9_perf_writer(p), &ident, write_all, p);
	if (r)
		return failed(p, r);
	p->number++;
	r = add_clock(p);
	return r ? r : add_facts(p);
}

void d9_perf_file_end(struct d9_perf *p, d9_u64 now)
{
	for (d9_u32 i = 0; i < p->used; i++)
		if (p->threads[i].tid)
			d9_perf_write_total(p, &p->threads[i], now);
	(void)add_clock(p);
	int r = p->fd < 0 ? 0 : d9_segw_end(d9_perf_writer(p));
	if (r)
		(void)failed(p, r);
	if (p->fd >= 0)
		(void)d9_sys1(SYS_close, p->fd);
	p->fd = -1; /* its number means something else to the next thread that reads */
}

void d9_perf_file_round(struct d9_perf *p, d9_u64 now)
{
	if (p->fd >= 0 &&
	    (d9_segw_written(d9_perf_writer(p)) >= p->o.segment_bytes || now - p->opened_mono >= p->o.rotate_ns))
		d9_perf_file_end(p, now);
	if (p->fd < 0 && now >= p->retry_mono) {
		(void)begin(p, now);
	} else if (p->fd >= 0 && now - p->flushed_mono >= FLUSH_NS) {
		p->flushed_mono = now;
		int r = d9_segw_flush(d9_perf_writer(p));
		if (r)
			(void)failed(p, r);
	}
}

/* ---- events --------------------------------------------------------------------------------------------------------------- */

static int define(struct d9_perf *p, struct d9_perf_thread *t)
{
	struct d9_perf_proc *q = &p->procs[t->proc];
	struct d9_ev_proc proc = {.generation = q->id + 1,
				  .start = q->start,
				  .born = q->born,
				  .id = q->id,
				  .parent = q->parent,
				  .pid = q->pid,
				  .ppid = q->ppid,
				  .uid = q->uid};
	struct d9_ev_thread th = {.rec.t = d9_mono_ns(),
				  .born = t->first,
				  .id = t->id,
				  .proc = q->id,
				  .tid = t->tid,
				  .role = t->tid == t->pid};
	int r = q->defined_in == p->number
			? 0
			: add(p, D9_THREAD_NONE, D9_EV_proc, &proc, D9_TAIL_STRING, q->exe, q->n_exe);
	if (r)
		return r;
	q->defined_in = p->number;
	r = t->defined_in == p->number ? 0
				       : add(p, D9_THREAD_NONE, D9_EV_thread, &th, D9_TAIL_STRING, t->name,
					     (d9_u32)strnlen(t->name, sizeof(t->name)));
	if (!r)
		t->defined_in = p->number;
	return r;
}

void d9_perf_write(struct d9_perf *p, struct d9_perf_thread *t, d9_u32 id, void *event, d9_u32 tail_kind,
		   const void *tail, d9_u32 n)
{
	int r = p->fd < 0 ? -EBADF : define(p, t);
	if (!r)
		r = add(p, t->id, id, event, tail_kind, tail, n);
	if (r == -EOVERFLOW)
		p->opened_mono = 0; /* the segment's dictionary is full: the next pass begins another */
	p->lost += r != 0;
}

void d9_perf_write_total(struct d9_perf *p, struct d9_perf_thread *t, d9_u64 until)
{
	struct d9_ev_runq_total e = {
		.rec.t = until, .count = t->count, .total = t->total, .max = t->max, .stat = D9_NOT_KNOWN};
	d9_u32 n = D9_PERF_BUCKETS;
	while (n && !t->buckets[n - 1])
		n--;
	d9_perf_write(p, t, D9_EV_runq_total, &e, n ? D9_TAIL_DATA : D9_TAIL_NONE, t->buckets, n * 8);
}

void d9_perf_write_gap(struct d9_perf *p, d9_u64 until)
{
	struct d9_ev_gap e = {.rec.t = until, .events = p->lost - p->told_lost, .since = p->whole};
	d9_u64 before = p->lost;
	if (add(p, D9_THREAD_NONE, D9_EV_gap, &e, D9_TAIL_NONE, NULL, 0))
		return; /* when there is a segment again */
	p->told_lost = before;
	p->whole = until;
}
