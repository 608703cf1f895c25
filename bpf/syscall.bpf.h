/*
 * Slow system calls of targets, for who asks for them: while these programs are attached, every process of the machine takes the
 * kernel's slow way into a call.  Sleeps need none of this.
 */
#ifndef D9_BPF_SYSCALL_BPF_H
#define D9_BPF_SYSCALL_BPF_H
#include "target.bpf.h"

SEC("tp_btf/sys_enter")
int BPF_PROG(d9_sys_enter, struct pt_regs *regs, long nr)
{
	struct thread *v = target(bpf_get_current_task_btf());
	if (v) {
		v->call_nr = (d9_i32)nr;
		v->called = bpf_ktime_get_ns();
	}
	return 0;
}

static __always_inline void put_syscall(struct task_struct *p, struct thread *v, struct pt_regs *regs, long result,
					d9_u64 now)
{
	struct d9_k_syscall *r = reserve(sizeof(*r));
	if (!r)
		return;
	set_head(&r->head, D9_K_SYSCALL, p, v);
	r->e.rec.t = now;
	r->e.dur = now - v->called;
	r->e.arg0 = BPF_CORE_READ(regs, di);
	r->e.arg1 = BPF_CORE_READ(regs, si);
	r->e.arg2 = BPF_CORE_READ(regs, dx);
	r->e.result = result;
	r->e.nr = v->call_nr;
	r->e.pad = 0;
	bpf_ringbuf_submit(r, wake_flag());
}

SEC("tp_btf/sys_exit")
int BPF_PROG(d9_sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct thread *v = target(p);
	if (!v || !v->called) /* 0: it began before d9-kernel did */
		return 0;
	d9_u64 now = bpf_ktime_get_ns();
	if (now - v->called >= syscall_min_ns)
		put_syscall(p, v, regs, result, now);
	v->called = 0;
	return 0;
}

#endif
