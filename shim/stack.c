/* Taking stacks; see stack.h. */
#include "stack.h"
#include "sys.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define PAGE 4096ull
#define PROBES 1024u /* pages: a stack deeper than 4 MiB below what is known has none */
#define THREAD_STACK_MAX (1ull << 30)
#define FRAMES_ENOUGH 3u /* fewer: the chain broke at once, the code keeps no frame pointers */

/* A stack has holes that nobody wrote: ours for frames, and the drainer's at a slice. */
int d9_on_valgrind;
void d9_stack_start(void) { d9_on_valgrind = d9_ask_valgrind(D9_RUNNING_ON_VALGRIND, 0, 0, 0) != 0; }

D9_READS_STACK d9_u32 d9_stack_walk(d9_u64 fp, d9_u64 lo, d9_u64 hi, d9_u64 *ret, d9_u32 max, d9_u64 *ret_fp)
{
	d9_u32 n = 0;
	d9_stack_say_defined(&fp, sizeof(fp)); /* whatever the code keeps in rbp */
	while (n < max && fp >= lo && fp < hi - 16 && !(fp & 7)) {
		d9_u64 frame[2] = {((const d9_u64 *)fp)[0], ((const d9_u64 *)fp)[1]};
		d9_stack_say_defined(frame, sizeof(frame));
		d9_u64 next = frame[0], ra = frame[1];
		if (ra < PAGE)
			break;
		ret[n++] = ra;
		if (next <= fp)
			break;
		fp = next;
	}
	if (ret_fp)
		*ret_fp = fp;
	return n;
}

/* Top of the stack that this thread was born with: glibc keeps the thread's descriptor there. */
static d9_u64 stack_top(d9_u64 sp)
{
	d9_u64 main_hi = d9_shim.main_stack_hi, self = d9_thread_self();
	if (self > sp && self - sp < THREAD_STACK_MAX && !(main_hi > sp && main_hi < self))
		return self;
	return main_hi > sp && main_hi - sp < THREAD_STACK_MAX ? main_hi : 0;
}

bool d9_stack_known(struct d9_cell *me, d9_u64 sp)
{
	if (sp >= me->stack_lo && sp < me->stack_hi)
		return true;
	if (d9_shim.priv->nosys)
		return false;
	if (!me->stack_hi || sp >= me->stack_hi) {
		me->stack_hi = stack_top(sp);
		me->stack_lo = me->stack_hi & ~(PAGE - 1);
		if (!me->stack_hi)
			return false;
	}
	d9_u64 want = sp & ~(PAGE - 1), lo = me->stack_lo;
	if (lo == (me->stack_hi & ~(PAGE - 1)) && !d9_can_read((const void *)lo))
		return false;
	for (d9_u32 i = 0; lo > want; i++, lo -= PAGE)
		if (i == PROBES || !d9_can_read((const void *)(lo - PAGE)))
			return false;
	me->stack_lo = lo;
	return true;
}

static void plan_frames(struct d9_stack_plan *ret)
{
	ret->kind = ret->n ? D9_TAIL_FRAMES : D9_TAIL_NONE;
	ret->bytes = ret->n ? 8 + 8 * ret->n : 0;
}

void d9_stack_plan(struct d9_cell *me, const void *fp, struct d9_stack_plan *ret)
{
	d9_u64 sp = (d9_u64)__builtin_frame_address(0);
	ret->kind = D9_TAIL_NONE;
	ret->n = ret->bytes = 0;
	ret->hi = 0;
	if (d9_shim.stacks == D9_STACKS_OFF || !d9_stack_known(me, sp))
		return;
	if (d9_shim.stacks != D9_STACKS_SLICE) {
		ret->n = d9_stack_walk((d9_u64)fp, me->stack_lo, me->stack_hi, ret->frames, D9_STACK_FRAMES, NULL);
		if (ret->n >= FRAMES_ENOUGH || d9_shim.stacks == D9_STACKS_FP) {
			plan_frames(ret);
			return;
		}
	}
	d9_u64 left = me->stack_hi - sp;
	ret->kind = D9_TAIL_SLICE;
	ret->hi = me->stack_hi;
	ret->n = (left < D9_SLICE_BYTES ? (d9_u32)left : D9_SLICE_BYTES) & ~7u;
	ret->bytes = 8 + (d9_u32)sizeof(struct d9_slice) + ret->n;
}

/* The frame pointer that the function saved which returns to this place, if it saved one there: 0 = none. */
D9_READS_STACK static d9_u64 saved_below(const struct d9_stack_words *w, d9_u32 place)
{
	if (!place)
		return 0;
	d9_u64 v = *(const volatile d9_u64 *)&w->stack[place - 1];
	d9_stack_say_defined(&v, sizeof(v));
	return v > (d9_u64)w->stack && v <= w->hi ? v : 0;
}

#define WORDS_MAX (D9_SLICE_BYTES / sizeof(struct d9_stack_word))
void d9_stack_plan_words(struct d9_cell *me, const struct d9_stack_words *w, struct d9_stack_plan *ret)
{
	*ret = (struct d9_stack_plan){.kind = D9_TAIL_NONE};
	if (d9_shim.stacks == D9_STACKS_OFF)
		return;
	if (d9_shim.stacks != D9_STACKS_SLICE) {
		d9_u64 fp;
		ret->n = d9_stack_walk((d9_u64)w->fp, me->stack_lo, w->hi, ret->frames, D9_STACK_FRAMES, &fp);
		if (fp == w->hi || d9_shim.stacks == D9_STACKS_FP) {
			plan_frames(ret);
			return;
		}
		ret->n = 0;
	}
	ret->words = *w;
	ret->words.n = 0;
	while (ret->words.n < w->n && ret->n + 2 <= WORDS_MAX)
		ret->n += 1 + !!saved_below(w, (d9_u32)(w->places[ret->words.n++] >> 32));
	ret->kind = D9_TAIL_WORDS;
	ret->bytes = 8 + (d9_u32)sizeof(struct d9_slice) + ret->n * (d9_u32)sizeof(struct d9_stack_word);
}

D9_READS_STACK static void write_words(const struct d9_stack_plan *plan, struct d9_tail *tail)
{
	const struct d9_stack_words *w = &plan->words;
	struct d9_slice *regs = (struct d9_slice *)(tail + 1);
	struct d9_stack_word *to = (struct d9_stack_word *)(regs + 1);
	*regs = (struct d9_slice){
		.rip = (d9_u64)w->ra, .rsp = (d9_u64)w->stack, .rbp = *(const volatile d9_u64 *)w->fp};
	d9_stack_say_defined(&regs->rbp, sizeof(regs->rbp));
	d9_u32 n = 0;
	for (d9_u32 i = 0; i < w->n; i++) {
		d9_u32 place = (d9_u32)(w->places[i] >> 32);
		d9_u64 saved = saved_below(w, place), ra = w->code + (d9_u32)w->places[i];
		if (saved && n < plan->n)
			to[n++] = (struct d9_stack_word){(place - 1) | D9_WORD_OF_STACK, (d9_i32)(saved - regs->rsp)};
		if (n < plan->n)
			to[n++] = (struct d9_stack_word){place, (d9_i32)(ra - regs->rip)};
	}
	tail->kind_bytes = D9_TAIL_WORD(D9_TAIL_WORDS, sizeof(*regs) + n * sizeof(*to));
}

/* ---- signal handlers ------------------------------------------------------------------------------------ */

struct kernel_action {
	d9_u64 handler, flags, restorer, mask;
};
#define HAS_RESTORER 0x04000000u
#define N_RESTORERS 4
struct handlers {
	d9_u64 handled; /* a bit for each signal that has a handler */
	d9_u64 restorers[N_RESTORERS];
	d9_u32 n;
};

/* The address stays where a handler for once was: its frame is still told by it. */
static void find_handlers(struct handlers *ret)
{
	*ret = (struct handlers){0};
	for (int s = 1; s <= 64; s++) {
		struct kernel_action a;
		if (d9_sys4(SYS_rt_sigaction, s, 0, (long)&a, 8))
			continue;
		if (a.handler > 1) /* SIG_DFL, SIG_IGN */
			ret->handled |= 1ull << (s - 1);
		d9_u32 i = 0;
		while (i < ret->n && ret->restorers[i] != a.restorer)
			i++;
		if (a.flags & HAS_RESTORER && a.restorer && i == ret->n && i < N_RESTORERS)
			ret->restorers[ret->n++] = a.restorer;
	}
}

#define FRAME_RSP 21 /* words from the return address of a handler to what the stack pointer was (struct rt_sigframe) */
D9_READS_STACK static bool frame_of_handler(const struct handlers *h, d9_u64 from, d9_u64 hi)
{
	for (d9_u64 at = (from + 7) & ~7ull; at + 8 * (FRAME_RSP + 1) <= hi; at += 8) {
		d9_u64 word = *(const volatile d9_u64 *)at;
		d9_stack_say_defined(&word, sizeof(word));
		for (d9_u32 i = 0; i < h->n; i++) {
			if (word != h->restorers[i])
				continue;
			d9_u64 rsp = ((const volatile d9_u64 *)at)[FRAME_RSP];
			d9_stack_say_defined(&rsp, sizeof(rsp));
			if (rsp > at && rsp <= hi)
				return true;
		}
	}
	return false;
}

#define SCAN_MAX (1ull << 20)
bool d9_stack_in_handler(struct d9_cell *me)
{
	struct handlers h;
	stack_t alternate = {0};
	d9_u64 blocked = 0, sp = (d9_u64)__builtin_frame_address(0);
	find_handlers(&h);
	if (!h.n)
		return false;
	if (!d9_sys2(SYS_sigaltstack, 0, (long)&alternate) && alternate.ss_flags & SS_ONSTACK)
		return true;
	if (d9_stack_known(me, sp) && me->stack_hi - sp <= SCAN_MAX)
		return frame_of_handler(&h, sp, me->stack_hi);
	(void)d9_sys4(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&blocked, 8);
	return (blocked & h.handled) != 0;
}

/* noinline: the registers and the slice are this function's own frame and what lies above it. */
__attribute__((noinline)) D9_READS_STACK static d9_u32 write_slice(d9_u32 n, d9_u64 hi, struct d9_slice *to)
{
	__asm__ volatile("leaq 0f(%%rip), %%rax\n0:\tmovq %%rax, 0(%0)\n\t"
			 "movq %%rsp, 8(%0)\n\tmovq %%rbp, 16(%0)\n\tmovq %%rbx, 24(%0)\n\t"
			 "movq %%r12, 32(%0)\n\tmovq %%r13, 40(%0)\n\tmovq %%r14, 48(%0)\n\tmovq %%r15, 56(%0)"
			 :
			 : "D"(to)
			 : "rax", "memory");
	d9_u64 from = to->rsp;
	d9_u8 *out = (d9_u8 *)(to + 1);
	/* Not memcpy: a call would push below rsp, and the slice must be what the registers describe. */
	if (from + n > hi)
		n = (d9_u32)(hi - from) & ~7u;
	for (d9_u32 i = 0; i < n; i += 8)
		*(d9_u64 *)(out + i) = *(const volatile d9_u64 *)(from + i);
	d9_stack_say_defined(out, n);
	return n;
}

void d9_stack_write(const struct d9_stack_plan *plan, void *to)
{
	struct d9_tail *tail = to;
	tail->pad = 0;
	if (plan->kind == D9_TAIL_FRAMES) {
		tail->kind_bytes = D9_TAIL_WORD(D9_TAIL_FRAMES, 8 * plan->n);
		memcpy(tail + 1, plan->frames, 8 * plan->n);
		return;
	}
	if (plan->kind == D9_TAIL_WORDS) {
		write_words(plan, tail);
		return;
	}
	d9_u32 n = write_slice(plan->n, plan->hi, (struct d9_slice *)(tail + 1));
	tail->kind_bytes = D9_TAIL_WORD(D9_TAIL_SLICE, sizeof(struct d9_slice) + n);
}
