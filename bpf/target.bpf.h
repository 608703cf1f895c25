/*
 * Who is a target, and what is remembered of it: the storage of a task, the ring, the counters; and what can be asked of any task.
 */
#ifndef D9_BPF_TARGET_BPF_H
#define D9_BPF_TARGET_BPF_H
#include "core.h"
#include "record.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define MAX_LEVEL 31u

/* set by d9-kernel before the load */
const volatile d9_u64 runq_min_ns = 50000, offcpu_min_ns = 1000000, syscall_min_ns = 0, ring_bytes = 4u << 20;
const volatile bool user_stacks = 0;

/* read by d9-kernel */
d9_u64 lost;     /* records that found the ring full */
d9_u64 untold;   /* waits whose end or beginning the kernel did not tell of, and that could not be reckoned */
d9_u64 reckoned; /* switches that the kernel did not tell of, reckoned from its own account */
d9_u32 no_store; /* threads that got no storage */
d9_u32 next_id;
d9_u32 own_level; /* how deep the PID namespace of d9-kernel lies */

struct thread {
	d9_u64 enq;    /* runnable since, 0 = it runs or sleeps */
	d9_u64 out;    /* left its CPU to wait, 0 = it did not */
	d9_u64 waking; /* of the wake that is under way */
	d9_u32 waker;
	d9_u32 state;
	d9_u64 wait_waking; /* of the wait that began at enq */
	d9_u32 wait_waker;
	d9_u32 flags, from_cpu;
	d9_u32 id;
	d9_i32 tid;
	d9_u32 based;
	d9_u64 base;  /* run delay of the kernel's account when the first wait began that is counted here */
	d9_u64 slept; /* run delay of the account when it left its CPU to sleep */
	d9_u64 count, total, max;
	d9_u64 called; /* the system call that it is in began, 0 = not seen */
	d9_i32 call_nr;
	d9_u32 pad;
	d9_u64 buckets[D9_K_BUCKETS];
	d9_u32 n_frames;
	d9_u32 dead; /* its end was written */
	d9_u64 frames[D9_K_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

/* Processes that d9_find is to take, as d9-kernel sees them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, D9_K_WANTED_MAX);
	__type(key, d9_i32);
	__type(value, d9_u8);
} wanted SEC(".maps");

/* The storage of a target, NULL of anybody else: most tasks of a machine have none of any program's. */
static __always_inline struct thread *target(struct task_struct *p)
{
	if (bpf_core_field_exists(p->bpf_storage) && !p->bpf_storage)
		return 0;
	return bpf_task_storage_get(&threads, p, 0, 0);
}

/* Reading every record as it comes would wake d9-kernel, whose switches are events again: it comes by itself ten times a second. */
static __always_inline d9_u64 wake_flag(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > ring_bytes / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void *reserve(d9_u64 bytes)
{
	void *r = bpf_ringbuf_reserve(&ring, bytes, 0);
	if (!r)
		__sync_fetch_and_add(&lost, 1);
	return r;
}

static __always_inline void set_head(struct d9_k_head *h, d9_u32 kind, struct task_struct *p, const struct thread *v)
{
	h->kind = kind;
	h->id = v->id;
	h->tid = v->tid;
	h->n = 0;
	bpf_probe_read_kernel(h->name, sizeof(h->name), p->comm);
}

/* Number of a task at a depth of PID namespaces, 0 if it has none there. */
static __always_inline d9_i32 number_at(struct task_struct *p, d9_u32 level)
{
	struct pid *pid = BPF_CORE_READ(p, thread_pid);
	if (!pid || level > MAX_LEVEL || BPF_CORE_READ(pid, level) < level)
		return 0;
	struct upid u = {0};
	bpf_probe_read_kernel(&u, sizeof(u), &pid->numbers[0] + level);
	return u.nr;
}

static __always_inline d9_u32 level_of(struct task_struct *p)
{
	struct pid *pid = BPF_CORE_READ(p, thread_pid);
	return pid ? BPF_CORE_READ(pid, level) : 0;
}

static __always_inline d9_u32 log2_of(d9_u64 v)
{
	d9_u32 n = 0;
	if (v >> 32) {
		v >>= 32;
		n += 32;
	}
	if (v >> 16) {
		v >>= 16;
		n += 16;
	}
	if (v >> 8) {
		v >>= 8;
		n += 8;
	}
	if (v >> 4) {
		v >>= 4;
		n += 4;
	}
	if (v >> 2) {
		v >>= 2;
		n += 2;
	}
	return n + (v >> 1 ? 1 : 0);
}

/* The kernel's own account: how long the task has waited, and its moments on the clock of its run queue. */
static __always_inline bool has_account(struct task_struct *p)
{
	return bpf_core_field_exists(p->sched_info.run_delay) && bpf_core_field_exists(p->se.cfs_rq) &&
	       bpf_core_field_exists(p->se.cfs_rq->rq);
}

/* How long ago a moment of the account was.  At a switch the queue's clock has just been set. */
static __always_inline d9_u64 ago(struct task_struct *p, d9_u64 moment)
{
	d9_u64 clock = p->se.cfs_rq->rq->clock;
	return moment && clock > moment ? clock - moment : 0;
}

static __always_inline d9_u64 run_delay(struct task_struct *p)
{
	return bpf_core_field_exists(p->sched_info.run_delay) ? p->sched_info.run_delay : 0;
}

/* How long the account has had the task in the queue. */
static __always_inline d9_u64 queued_for(struct task_struct *p)
{
	return has_account(p) ? ago(p, p->sched_info.last_queued) : 0;
}

/* How long who leaves the CPU now has had it. */
static __always_inline d9_u64 ran_for(struct task_struct *p)
{
	return has_account(p) ? ago(p, p->sched_info.last_arrival) : 0;
}

/* The account begins with the first wait that is seen from its beginning. */
static __always_inline void set_base(struct thread *v, d9_u64 delay)
{
	if (!v->based) {
		v->based = 1;
		v->base = delay;
	}
}

#endif
