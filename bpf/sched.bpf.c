/*
 * The kernel's side of the record: when threads of the target could run and did not, and when they waited and on what.  Every
 * program here runs under the run queue's lock or near it, on every context switch of the machine, so who is no target
 * costs a load and a branch.
 *
 * A target is a task that has a storage.  It gets one from the iterator (d9_find), or when a target makes it (d9_newtask), so
 * threads and children are followed by themselves.
 *
 * word of a storage      written by                      why nothing more is needed
 * enq, wait, out, state  sched_switch, sched_wakeup*     both hold the lock of the task's run queue
 * waking, waker          sched_waking, sched_wakeup*     the waker holds the task's pi_lock from the one to the other
 * totals                 sched_switch                    read by d9_totals at any moment: a count a little old does no harm
 *
 * Times are bpf_ktime_get_ns: CLOCK_MONOTONIC.
 */
#include "block.bpf.h"
#include "syscall.bpf.h"
#include "wait.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define TASK_DEAD 0x80u
#define STATE_MASK 0xffu /* above are marks, such as that the task may be frozen */

/* ---- switches and wakes ---------------------------------------------------------------------- */

static __always_inline void leave(void *ctx, struct task_struct *p, struct thread *v, bool runnable, d9_u32 state,
				  d9_u64 now)
{
	if (v->enq || v->out)
		reckon(p, v, now);
	v->slept = run_delay(p);
	set_base(v, v->slept);
	v->out = runnable ? 0 : now;
	v->state = state & STATE_MASK;
#ifdef D9_K_NO_PREEMPTION /* the mistake that a test must notice */
	runnable = 0;
#endif
	v->enq = runnable ? now : 0;
	if (runnable) {
		v->flags = D9_RUNQ_PREEMPTED;
		v->from_cpu = bpf_get_smp_processor_id();
		v->wait_waking = 0;
		v->wait_waker = 0;
	} else if (user_stacks) {
		d9_i64 n = bpf_get_stack(ctx, v->frames, sizeof(v->frames), BPF_F_USER_STACK);
		v->n_frames = n > 0 ? (d9_u32)n >> 3 : 0;
	}
	if (!runnable && state & TASK_DEAD)
		put_end(p, v);
}

static __always_inline void enter(struct task_struct *p, struct thread *v, struct task_struct *prev, d9_u64 now)
{
	/* It waited before it was ours: that wait is none of ours in the kernel's account either, which takes it in a moment. */
	if (!v->based)
		set_base(v, run_delay(p) + queued_for(p));
	if (v->out)
		end_sleep(p, v, now, v->enq, 1);
	if (v->enq)
		end_wait(p, v, prev, now);
	v->enq = v->out = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(d9_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct thread *v = target(prev);
	d9_u64 now = 0;
	/* Who was preempted is runnable whatever it was about to wait for. */
	if (v)
		leave(ctx, prev, v, preempt || !prev_state, prev_state, now = bpf_ktime_get_ns());
	v = target(next);
	if (v)
		enter(next, v, prev, now ? now : bpf_ktime_get_ns());
	return 0;
}

/* Only where it was asked for (--wakers): every wake of the machine pays for one program more. */
SEC("tp_btf/sched_waking")
int BPF_PROG(d9_waking, struct task_struct *p)
{
	struct thread *v = target(p);
	if (v) {
		v->waking = bpf_ktime_get_ns();
		v->waker = (d9_u32)bpf_get_current_pid_tgid();
	}
	return 0;
}

/*
 * Who wakes p, by who runs here.  A CPU that is idle or far away is sent an interrupt and takes its tasks from a list itself: then
 * who runs here has nothing to do with it.
 */
static __always_inline d9_u32 waker_of(struct task_struct *p)
{
	if (p->thread_info.cpu == bpf_get_smp_processor_id() && bpf_core_field_exists(p->se.cfs_rq->rq->ttwu_pending) &&
	    p->se.cfs_rq->rq->ttwu_pending)
		return 0;
	return (d9_u32)bpf_get_current_pid_tgid();
}

static __always_inline void queued(struct task_struct *p, d9_u32 flags)
{
	struct thread *v = target(p);
	if (!v)
		return;
	d9_u64 waking = v->waking;
	v->waking = 0; /* of this wake, whatever becomes of it */
	if (p->on_cpu)
		return; /* woken before it slept */
	if (v->enq) {
		if (v->flags & D9_RUNQ_PREEMPTED)
			return; /* it waits for a CPU already */
		__sync_fetch_and_add(&untold, 1);
	}
	/*
	 * It has just been queued.  Since 6.12 a task that goes to sleep may stay in the queue for a while; if it is moved to another
	 * CPU then, the account has it queued from that moment on, and takes its sleep for a wait: up to a second move at once, and
	 * from the last on when it runs.
	 */
	d9_u64 delay = run_delay(p);
	set_base(v, delay);
	if (v->out)
		v->base += delay - v->slept;
	v->base += queued_for(p);
	v->enq = bpf_ktime_get_ns();
	v->flags = flags;
	v->from_cpu = p->thread_info.cpu;
	v->wait_waking = waking;
	v->wait_waker = waking ? v->waker : flags & D9_RUNQ_NEW ? (d9_u32)bpf_get_current_pid_tgid() : waker_of(p);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(d9_wakeup, struct task_struct *p)
{
	queued(p, D9_RUNQ_WOKEN);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(d9_wakeup_new, struct task_struct *p)
{
	queued(p, D9_RUNQ_NEW);
	return 0;
}

/* ---- who is a target ------------------------------------------------------------------------- */

static __always_inline struct thread *make(struct task_struct *p)
{
	struct thread *v = bpf_task_storage_get(&threads, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!v) {
		__sync_fetch_and_add(&no_store, 1);
		return 0;
	}
	v->id = __sync_fetch_and_add(&next_id, 1);
	v->tid = number_at(p, level_of(p));
	return v;
}

static __always_inline void fill_thread(struct d9_k_thread *r, struct task_struct *p, const struct thread *v)
{
	struct task_struct *leader = BPF_CORE_READ(p, group_leader), *parent = BPF_CORE_READ(p, real_parent);
	d9_u32 level = level_of(p);
	set_head(&r->head, D9_K_THREAD, p, v);
	r->t = bpf_ktime_get_ns();
	r->process_start = BPF_CORE_READ(leader, start_boottime);
	r->kernel_tid = p->pid;
	r->kernel_pid = p->tgid;
	r->pid = number_at(leader, level);
	r->seen_pid = number_at(leader, own_level);
	r->parent_pid = number_at(parent, level);
	r->kernel_parent_pid = BPF_CORE_READ(parent, tgid);
	r->uid = BPF_CORE_READ(p, cred, euid.val);
	r->exec = 0;
}

static __always_inline void put_thread(struct task_struct *p, const struct thread *v, d9_u32 exec)
{
	struct d9_k_thread *r = reserve(sizeof(*r));
	if (!r)
		return;
	fill_thread(r, p, v);
	r->exec = exec;
	bpf_ringbuf_submit(r, wake_flag());
}

SEC("tp_btf/task_newtask")
int BPF_PROG(d9_newtask, struct task_struct *p)
{
	if (!target(bpf_get_current_task_btf()))
		return 0;
	struct thread *v = make(p);
	if (!v)
		return 0;
	v->based = 1;
	put_thread(p, v, 0);
	return 0;
}

/* Another program, and where a thread beside the main one made the call another tid too. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(d9_exec, struct task_struct *p)
{
	struct thread *v = target(p);
	if (!v)
		return 0;
	v->tid = number_at(p, level_of(p));
	put_thread(p, v, 1);
	return 0;
}

/* ---- asked for by d9-kernel ------------------------------------------------------------------ */

/* Takes the threads of the wanted processes, and says which threads are targets. */
SEC("iter/task")
int d9_find(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	if (!p)
		return 0;
	own_level = level_of(bpf_get_current_task_btf());
	struct thread *v = target(p);
	if (!v) {
		d9_i32 pid = number_at(BPF_CORE_READ(p, group_leader), own_level);
		if (p->exit_state || !bpf_map_lookup_elem(&wanted, &pid) || !(v = make(p)))
			return 0;
	}
	if (v->dead)
		return 0;
	struct d9_k_thread r = {0};
	fill_thread(&r, p, v);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

SEC("iter/task")
int d9_totals(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct thread *v = p ? target(p) : 0;
	if (!v || v->dead)
		return 0;
	struct d9_k_total r = {0};
	fill_total(&r, D9_K_TOTAL, p, v);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
