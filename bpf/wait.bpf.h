/* The end of a wait or a sleep, and of a thread: counting it, and handing on what is worth a record. */
#ifndef D9_BPF_WAIT_BPF_H
#define D9_BPF_WAIT_BPF_H
#include "target.bpf.h"

/* ---- a wait ends ----------------------------------------------------------------------------- */

static __always_inline void count_wait(struct thread *v, d9_u64 wait)
{
	v->count++;
	v->total += wait;
	if (wait > v->max)
		v->max = wait;
	d9_u32 k = log2_of(wait);
	v->buckets[k < D9_K_BUCKETS ? k : D9_K_BUCKETS - 1]++;
}

/* The wait that began at v->enq ended at t.  prev: who had the CPU, NULL if that was not seen. */
static __always_inline void end_wait(struct task_struct *p, struct thread *v, struct task_struct *prev, d9_u64 t)
{
	d9_u64 wait = t - v->enq;
	count_wait(v, wait);
	if (wait < runq_min_ns)
		return;
	struct d9_k_runq *r = reserve(sizeof(*r));
	if (!r)
		return;
	set_head(&r->head, D9_K_RUNQ, p, v);
	r->e.rec.t = t;
	r->e.dur = wait;
	r->e.waking = v->wait_waking;
	r->e.waker = (d9_i32)v->wait_waker;
	r->e.from_cpu = v->from_cpu;
	r->e.cpu = bpf_get_smp_processor_id();
	r->e.flags = v->flags;
	r->e.prev = -1;
	r->e.prev_pid = 0;
	r->e.ran = 0;
	r->prev_name[0] = 0;
	if (prev) {
		r->e.prev = prev->pid;
		r->e.prev_pid = prev->tgid;
		if (prev->pid) {
			r->e.ran = ran_for(prev);
			bpf_probe_read_kernel(r->prev_name, sizeof(r->prev_name), prev->comm);
		}
	} else {
		r->e.flags |= D9_KERNEL_RECKONED;
	}
	bpf_ringbuf_submit(r, wake_flag());
}

static __always_inline void put_user_stack(struct task_struct *p, struct thread *v, d9_u64 t)
{
	if (!user_stacks || !v->n_frames)
		return;
	struct d9_k_user_stack *r = reserve(sizeof(*r));
	if (!r)
		return;
	set_head(&r->head, D9_K_USER_STACK, p, v);
	r->head.n = v->n_frames;
	r->e.rec.t = t;
	__builtin_memcpy(r->frames, v->frames, sizeof(r->frames));
	bpf_ringbuf_submit(r, wake_flag());
}

/* What the program had asked of the kernel.  A thread of the kernel's that works for it (io_uring) has asked nothing. */
static __always_inline void take_call(struct task_struct *p, struct d9_ev_offcpu *e)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);
	d9_i64 nr = (d9_i64)regs->orig_ax;
	e->ip = regs->ip;
	e->sp = regs->sp;
	e->nr = nr < 0 || !e->ip ? D9_NR_NONE : (d9_i32)nr;
	if (e->nr < 0)
		return;
	e->arg0 = regs->di;
	e->arg1 = regs->si;
	e->arg2 = regs->dx;
}

/*
 * The thread had left its CPU at v->out to wait and ran again at t, runnable from woken on (0: not seen).  Call and kernel stack are
 * still what they were then, unless the switch was not told of: then the thread has gone on meanwhile.
 */
static __always_inline void end_sleep(struct task_struct *p, struct thread *v, d9_u64 t, d9_u64 woken, bool told)
{
	if (t - v->out < offcpu_min_ns)
		return;
	struct d9_k_offcpu *r = reserve(sizeof(*r));
	if (!r)
		return;
	set_head(&r->head, D9_K_OFFCPU, p, v);
	__builtin_memset(&r->e, 0, sizeof(r->e));
	r->e.rec.t = t;
	r->e.dur = t - v->out;
	r->e.woken = woken;
	r->e.waker = woken ? (d9_i32)v->wait_waker : 0;
	r->e.state = v->state;
	r->e.nr = D9_NR_NOT_KNOWN;
	r->e.flags = told ? 0 : D9_KERNEL_RECKONED;
	if (told) {
		take_call(p, &r->e);
		d9_i64 n = bpf_get_task_stack(p, r->frames, sizeof(r->frames), 0);
		r->head.n = n > 0 ? (d9_u32)n >> 3 : 0;
	}
	bpf_ringbuf_submit(r, wake_flag());
	put_user_stack(p, v, t);
}

/*
 * p leaves a CPU, and that it had got one was not told of (seen where the thread before it was one of the init process's).  The
 * kernel's account still knows when that was.
 */
static __always_inline void reckon(struct task_struct *p, struct thread *v, d9_u64 now)
{
	d9_u64 in = has_account(p) && p->sched_info.last_arrival ? now - ago(p, p->sched_info.last_arrival) : 0;
	if (in < v->enq || in < v->out) {
		__sync_fetch_and_add(&untold, 1);
		return;
	}
	__sync_fetch_and_add(&reckoned, 1);
	if (v->out)
		end_sleep(p, v, in, v->enq, 0);
	if (v->enq)
		end_wait(p, v, 0, in);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static __always_inline void fill_total(struct d9_k_total *r, d9_u32 kind, struct task_struct *p, const struct thread *v)
{
	set_head(&r->head, kind, p, v);
	r->e.rec.t = bpf_ktime_get_ns();
	r->e.count = v->count;
	r->e.total = v->total;
	r->e.max = v->max;
	r->e.stat = !has_account(p) || !p->sched_info.pcount ? D9_NOT_KNOWN : v->based ? run_delay(p) - v->base : 0;
	r->waiting = v->enq;
	__builtin_memcpy(r->buckets, v->buckets, sizeof(r->buckets));
}

/* The thread's last switch: nothing comes after it. */
static __always_inline void put_end(struct task_struct *p, struct thread *v)
{
	struct d9_k_total *r = reserve(sizeof(*r));
	if (!r)
		return;
	fill_total(r, D9_K_END, p, v);
	v->dead = 1;
	bpf_ringbuf_submit(r, wake_flag());
}

#endif
