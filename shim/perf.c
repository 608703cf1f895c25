/*
 * See perf.h.
 *
 * The rings are read together, in the order of their records' times, up to a moment ago: a record that is being written on one CPU
 * may be older than one that is finished on another.  In a pass in which records are missing no wait is told at all, for two that belong
 * together may not; what was read then is counted with what was lost.
 */
#include "perf_internal.h"
#include "atomic.h"
#include "clock.h"
#include "files.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define RUNQ_MIN_NS 50000ull /* as d9-kernel's defaults */
#define OFFCPU_MIN_NS 1000000ull
#define SETTLE_NS 10000000ull /* how long a record may take from its time until it can be read */
#define RING_MIN 16384u
#define WORDS 8u /* of a record, as many as are looked at */

size_t d9_perf_bytes(void) { return sizeof(struct d9_perf) + d9_segw_bytes(); }

const char *d9_perf_why(int r)
{
	switch (-r) {
	case EACCES:
	case EPERM:
		return "the kernel or a filter of system calls does not allow it (kernel.perf_event_paranoid 3 and "
		       "more, a "
		       "container's seccomp profile)";
	case ENOSYS:
		return "this kernel has no perf events, or a filter of system calls hides them";
	case EINVAL:
		return "this kernel is too old for it (Linux 5.13)";
	case ENOMEM:
		return "no memory for its rings: RLIMIT_MEMLOCK, kernel.perf_event_mlock_kb";
	case EMFILE:
	case ENFILE:
		return "too many open files: it takes one for each CPU";
	}
	return "perf_event_open failed";
}

/* ---- rings ------------------------------------------------------------------------------------------------------------- */

static long open_event(const struct d9_perf_options *o, d9_u32 cpu)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof(a),
				    .config = PERF_COUNT_SW_DUMMY,
				    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
				    .inherit = 1,
				    .inherit_thread = !o->children,
				    .exclude_kernel = 1,
				    .exclude_hv = 1,
				    .task = 1,
				    .watermark = 1,
				    .wakeup_watermark = 0x7fffffff, /* it is come for, and wakes nobody */
				    .sample_id_all = 1,
				    .use_clockid = 1,
				    .clockid = CLOCK_MONOTONIC,
				    .context_switch = 1};
	return d9_sys6(SYS_perf_event_open, (long)&a, o->pid, cpu, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

static long open_ring(struct d9_perf *p, d9_u32 cpu)
{
	struct d9_perf_ring *r = &p->rings[cpu];
	long fd = open_event(&p->o, cpu);
	if (fd < 0)
		return fd;
	long m = d9_sys6(SYS_mmap, 0, 4096 + p->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool mapped = m > 0 || m < -4095;
	/* The mapping keeps the event: the program's table need not have it. */
	if (!mapped || !p->o.outside)
		(void)d9_sys1(SYS_close, fd);
	if (!mapped)
		return m == -EPERM ? -ENOMEM : m;
	*r = (struct d9_perf_ring){.at = (void *)m, .fd = p->o.outside ? (int)fd : -1};
	return 0;
}

static int open_rings(struct d9_perf *p)
{
	d9_u32 there = 0;
	long r = 0;
	for (d9_u32 cpu = 0; cpu < D9_PERF_CPUS; cpu++) {
		r = open_ring(p, cpu);
		if (r == -EINVAL && there)
			return 0; /* there are not so many */
		if (r && r != -ENODEV)
			break;
		there += !r;
		p->n_rings = cpu + 1;
	}
	if (!r || (r == -ENODEV && there))
		return 0;
	d9_perf_close(p);
	return (int)r;
}

int d9_perf_open(struct d9_perf *p, const struct d9_perf_options *o)
{
	int r = -ENOMEM;
	p->o = *o;
	p->fd = p->dirfd = -1;
	if (d9_filtered())
		return -EPERM; /* the filter may kill for it */
	if (d9_sys3(SYS_getrandom, (long)p->family, sizeof(p->family), 0) != sizeof(p->family))
		return -ENOSYS;
	(void)d9_segw_init(p->writer);
	p->own_pid = o->children ? 0 : (d9_i32)d9_sys0(SYS_getpid);
	p->whole = d9_mono_ns();
	for (p->ring_bytes = o->ring_bytes; r == -ENOMEM && p->ring_bytes >= RING_MIN; p->ring_bytes /= 2)
		if (!(r = open_rings(p)))
			return 0;
	return r;
}

bool d9_perf_is_open(const struct d9_perf *p) { return p->n_rings; }

void d9_perf_close(struct d9_perf *p)
{
	for (d9_u32 i = 0; i < p->n_rings; i++) {
		struct d9_perf_ring *r = &p->rings[i];
		if (!r->at)
			continue;
		(void)d9_sys2(SYS_munmap, (long)r->at, 4096 + (long)p->ring_bytes);
		if (r->fd >= 0)
			(void)d9_sys1(SYS_close, r->fd);
		r->at = NULL;
	}
	p->n_rings = 0;
}

static void forget_outs(struct d9_perf *p)
{
	for (d9_u32 i = 0; i < p->used; i++)
		p->threads[i].out = 0;
}

/* What is in the rings is not looked at. */
static void pass_over(struct d9_perf *p)
{
	for (d9_u32 i = 0; i < p->n_rings; i++) {
		struct d9_perf_ring *r = &p->rings[i];
		struct perf_event_mmap_page *page = (void *)r->at;
		if (!r->at)
			continue;
		r->tail = r->head = d9_load_acquire(&page->data_head);
		r->next = 0;
		d9_store_release(&page->data_tail, r->tail);
	}
}

void d9_perf_leave_out(struct d9_perf *p, d9_i32 tid) { p->left_out = tid; }

/* ---- threads and processes --------------------------------------------------------------------------------------------- */

static d9_u32 head_of(d9_i32 tid) { return (d9_u32)tid * 2654435761u >> 20 & (D9_PERF_HEADS - 1); }

static struct d9_perf_thread *find(struct d9_perf *p, d9_i32 tid)
{
	for (d9_u32 i = p->heads[head_of(tid)]; i; i = p->threads[i - 1].next)
		if (p->threads[i - 1].tid == tid)
			return &p->threads[i - 1];
	return NULL;
}

static void path_of(struct d9_text *t, d9_i32 pid, const char *rest)
{
	d9_text_str(t, "/proc/");
	d9_text_u64(t, (d9_u64)pid);
	d9_text_str(t, rest);
}

static void know_process(struct d9_perf_proc *q)
{
	char path[64];
	struct d9_pid_stat st;
	struct stat s;
	struct d9_text t = d9_text_in(path, sizeof(path));
	if (d9_pid_stat(q->pid, &st)) {
		q->start = st.start;
		q->ppid = (d9_i32)st.parent;
	}
	path_of(&t, q->pid, "");
	if (!d9_sys2(SYS_stat, (long)path, (long)&s))
		q->uid = s.st_uid;
	d9_text_str(&t, "/exe");
	long n = d9_sys3(SYS_readlink, (long)path, (long)q->exe, sizeof(q->exe) - 1);
	q->n_exe = n > 0 ? (d9_u32)n : 0;
}

/* The entry of a process; NULL: there is no room. */
static struct d9_perf_proc *process(struct d9_perf *p, d9_i32 pid, d9_i32 parent, d9_u64 t)
{
	struct d9_perf_proc *room = NULL;
	d9_u32 of = ~0u;
	for (d9_u32 i = 0; i < D9_PERF_PROCS; i++) {
		struct d9_perf_proc *q = &p->procs[i];
		if (q->n_threads && q->pid == pid)
			return q;
		if (q->n_threads && q->pid == parent)
			of = q->id;
		if (!q->n_threads && !room)
			room = q;
	}
	if (!room)
		return NULL;
	*room = (struct d9_perf_proc){.id = p->next_proc++, .parent = of, .pid = pid, .ppid = parent, .born = t};
	know_process(room);
	return room;
}

/* One that is gone already had its maker's, if it did not take another. */
static void read_name(struct d9_perf_thread *t, const struct d9_perf_thread *maker)
{
	char path[64];
	struct d9_text text = d9_text_in(path, sizeof(path));
	path_of(&text, t->pid, "/task/");
	d9_text_u64(&text, (d9_u64)t->tid);
	d9_text_str(&text, "/comm");
	long n = d9_read_file(path, t->name, sizeof(t->name));
	if (n > 0 && t->name[n - 1] == '\n')
		t->name[n - 1] = 0;
	if (n <= 0 && maker)
		memcpy(t->name, maker->name, sizeof(t->name));
}

static void forget(struct d9_perf *p, struct d9_perf_thread *t)
{
	d9_u32 i = (d9_u32)(t - p->threads) + 1;
	for (d9_u32 *at = &p->heads[head_of(t->tid)]; *at; at = &p->threads[*at - 1].next)
		if (*at == i) {
			*at = t->next;
			break;
		}
	p->procs[t->proc].n_threads--;
	p->n_threads--;
	*t = (struct d9_perf_thread){.next = p->free};
	p->free = i;
}

/* The thread of a record, met with it if it is new; NULL: none of ours, or there is no room.  Of a new one: who made it, or 0. */
static struct d9_perf_thread *meet(struct d9_perf *p, d9_i32 pid, d9_i32 tid, d9_i32 parent, d9_i32 maker, d9_u64 time)
{
	if (tid <= 0 || pid <= 0 || tid == p->left_out || (p->own_pid && pid != p->own_pid))
		return NULL; /* none; one on its very last way; the reader; a child that is not inherited */
	struct d9_perf_thread *t = find(p, tid);
	if (t && t->pid == pid)
		return t;
	if (t)
		forget(p, t); /* its end was lost */
	struct d9_perf_proc *q = process(p, pid, parent, time);
	d9_u32 i = p->free;
	if (!q || (!i && p->used == D9_PERF_THREADS)) {
		p->lost++;
		return NULL;
	}
	if (i)
		p->free = p->threads[i - 1].next;
	else
		i = ++p->used;
	t = &p->threads[i - 1];
	*t = (struct d9_perf_thread){.next = p->heads[head_of(tid)],
				     .id = p->next_id++,
				     .proc = (d9_u32)(q - p->procs),
				     .tid = tid,
				     .pid = pid,
				     .first = time};
	p->heads[head_of(tid)] = i;
	q->n_threads++;
	p->n_threads++;
	read_name(t, find(p, maker));
	return t;
}

/* Who is gone while it is off is not told of, so all are met again. */
void d9_perf_switch(struct d9_perf *p, bool on, int dirfd)
{
	if (p->off == !on || !p->n_rings)
		return;
	for (d9_u32 i = 0; i < p->n_rings; i++)
		if (p->rings[i].at && p->rings[i].fd >= 0)
			(void)d9_sys3(SYS_ioctl, p->rings[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE,
				      0);
	if (on)
		pass_over(p);
	else
		d9_perf_pass(p, dirfd, true);
	for (d9_u32 i = 0; i < p->used && !on; i++)
		if (p->threads[i].tid)
			forget(p, &p->threads[i]);
	p->off = !on;
}

/* ---- waits --------------------------------------------------------------------------------------------------------------- */

static d9_u32 bucket_of(d9_u64 ns)
{
	d9_u32 k = ns ? 63u - (d9_u32)__builtin_clzll(ns) : 0;
	return k < D9_PERF_BUCKETS ? k : D9_PERF_BUCKETS - 1;
}

static void waited(struct d9_perf *p, struct d9_perf_thread *t, d9_u64 now, d9_u32 cpu)
{
	d9_u64 dur = now > t->out ? now - t->out : 0;
	if (!t->why) {
		struct d9_ev_offcpu e = {.rec.t = now, .dur = dur, .nr = D9_NR_NOT_KNOWN, .flags = D9_KERNEL_BY_PERF};
		if (dur >= OFFCPU_MIN_NS)
			d9_perf_write(p, t, D9_EV_offcpu, &e, D9_TAIL_NONE, NULL, 0);
		return;
	}
	t->count++;
	t->total += dur;
	t->max = dur > t->max ? dur : t->max;
	t->buckets[bucket_of(dur)]++;
	struct d9_ev_runq e = {.rec.t = now,
			       .dur = dur,
			       .prev = -1,
			       .cpu = cpu,
			       .from_cpu = t->cpu,
			       .flags = t->why | D9_KERNEL_BY_PERF};
	if (dur >= RUNQ_MIN_NS)
		d9_perf_write(p, t, D9_EV_runq, &e, D9_TAIL_NONE, NULL, 0);
}

/* ---- records ------------------------------------------------------------------------------------------------------------- */

static d9_u64 word_at(const struct d9_perf *p, const struct d9_perf_ring *r, d9_u64 at)
{
	return *(const d9_u64 *)(r->at + 4096 + (at & (p->ring_bytes - 1)));
}

static struct perf_event_header header_at(const struct d9_perf *p, const struct d9_perf_ring *r, d9_u64 at)
{
	union {
		d9_u64 word;
		struct perf_event_header h;
	} u = {.word = word_at(p, r, at)};
	return u.h;
}

static bool is_whole(const struct perf_event_header *h, const struct d9_perf_ring *r, d9_u64 at)
{
	return h->size >= 8 && !(h->size & 7) && h->size <= r->head - at;
}

/* Where its time stands: behind ids, as the kernel's struct has them. */
static d9_u64 time_at(const struct d9_perf *p, const struct d9_perf_ring *r, d9_u64 at)
{
	struct perf_event_header h = header_at(p, r, at);
	switch (h.type) {
	case PERF_RECORD_SWITCH:
		return h.size >= 24 ? word_at(p, r, at + 16) : 0;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return h.size >= 32 ? word_at(p, r, at + 24) : 0;
	case PERF_RECORD_LOST:
		return h.size >= 40 ? word_at(p, r, at + 32) : 0;
	}
	return 0;
}

/* The first record from the tail on that has a time. */
static void advance(struct d9_perf *p, struct d9_perf_ring *r)
{
	for (r->next = 0; r->tail < r->head && !r->next;) {
		struct perf_event_header h = header_at(p, r, r->tail);
		if (!is_whole(&h, r, r->tail)) {
			r->tail = r->head; /* the kernel does not write such */
			return;
		}
		r->next = time_at(p, r, r->tail);
		if (!r->next)
			r->tail += h.size;
	}
}

static void take(struct d9_perf *p, struct d9_perf_ring *r, bool blind)
{
	struct perf_event_header h = header_at(p, r, r->tail);
	d9_u64 w[WORDS] = {0};
	for (d9_u32 i = 0; i < WORDS && i * 8 < h.size; i++)
		w[i] = word_at(p, r, r->tail + i * 8);
	d9_u64 t = r->next;
	struct d9_perf_thread *th;
	if (h.type == PERF_RECORD_LOST) {
		p->lost += w[2];
		return;
	}
	switch (h.type) {
	case PERF_RECORD_FORK: /* pid, ppid, tid, ptid */
		th = meet(p, (d9_i32)w[1], (d9_i32)w[2], (d9_i32)(w[1] >> 32), (d9_i32)(w[2] >> 32), t);
		if (!th)
			break;
		th->out = t;
		th->why = D9_RUNQ_NEW;
		break;
	case PERF_RECORD_EXIT:
		th = find(p, (d9_i32)w[2]);
		if (!th)
			break;
		d9_perf_write_total(p, th, t);
		forget(p, th);
		break;
	default: /* a switch: pid, tid, time, cpu */
		th = meet(p, (d9_i32)w[1], (d9_i32)(w[1] >> 32), 0, 0, t);
		p->lost += blind;
		if (!th || blind)
			break;
		if (h.misc & PERF_RECORD_MISC_SWITCH_OUT) {
			th->out = t;
			th->why = h.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? D9_RUNQ_PREEMPTED : 0;
			th->cpu = (d9_u32)w[3];
			break;
		}
		if (th->out)
			waited(p, th, t, (d9_u32)w[3]);
		th->out = 0;
	}
}

/* ---- a pass -------------------------------------------------------------------------------------------------------------- */

/* Takes notice of what there is.  True: records are missing, or may be. */
static bool look(struct d9_perf *p, struct d9_perf_ring *r)
{
	struct perf_event_mmap_page *page = (void *)r->at;
	r->head = d9_load_acquire(&page->data_head);
	r->doubt -= r->doubt > 0;
	bool missing = r->doubt;
	if (r->head - r->tail + 64 > p->ring_bytes)
		r->doubt =
			2; /* it is full: what comes in this moment is missing too, and told by the next record that finds room */
	for (d9_u64 at = r->tail; at < r->head && !missing;) {
		struct perf_event_header h = header_at(p, r, at);
		missing = h.type == PERF_RECORD_LOST || !is_whole(&h, r, at);
		at += h.size;
	}
	advance(p, r);
	return missing || r->doubt;
}

static struct d9_perf_ring *oldest(struct d9_perf *p)
{
	struct d9_perf_ring *least = NULL;
	for (d9_u32 i = 0; i < p->n_rings; i++)
		if (p->rings[i].at && p->rings[i].next && (!least || p->rings[i].next < least->next))
			least = &p->rings[i];
	return least;
}

static void take_all(struct d9_perf *p, d9_u64 until)
{
	bool blind = false;
	for (d9_u32 i = 0; i < p->n_rings; i++)
		blind |= p->rings[i].at && look(p, &p->rings[i]);
	if (blind)
		forget_outs(p);
	for (struct d9_perf_ring *r; (r = oldest(p)) && r->next <= until;) {
		take(p, r, blind);
		r->tail += header_at(p, r, r->tail).size;
		advance(p, r);
	}
	for (d9_u32 i = 0; i < p->n_rings; i++)
		if (p->rings[i].at) /* the kernel may write there again */
			d9_store_release(&((struct perf_event_mmap_page *)p->rings[i].at)->data_tail, p->rings[i].tail);
}

void d9_perf_pass(struct d9_perf *p, int dirfd, bool final)
{
	d9_u64 now = d9_mono_ns();
	p->dirfd = dirfd;
	if (dirfd < 0 || !p->n_rings)
		return;
	if (p->off) {
		pass_over(p);
		p->whole = now;
		return;
	}
	d9_perf_file_round(p, now);
	take_all(p, final ? ~0ull : now - SETTLE_NS);
	if (p->lost != p->told_lost)
		d9_perf_write_gap(p, now);
	else if (p->fd >= 0)
		p->whole = now;
	if (final)
		d9_perf_file_end(p, now);
}
