/* See recorder.h. */
#include "recorder.h"
#include "facts.h"
#include "ksyms.h"
#include "procfs.h"
#include "quota.h"
#include "say.h"
#include "targets.h"
#include "threads.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_NS 500000000ull
#define LOOK_NS 1000000000ull
#define RETRY_NS 5000000000ull
#define READING_NS 5000ull
#define STOLEN_NS 20000000ull
#define USER_BITS 56
#define FRAME_BYTES 256 /* of the text of one */

struct d9_krecorder {
	const struct d9_koptions *o;
	struct d9_kload *load;
	struct d9_kthreads *threads;
	struct d9_kseg *seg;
	struct d9_ksyms *syms;
	struct d9_kquotas *quotas;
	bool told_no_syms, listed;             /* listed: in this pass */
	d9_u64 flushed, looked, retry;         /* CLOCK_MONOTONIC */
	d9_u64 whole;                          /* up to here nothing was lost that no gap tells of */
	d9_u64 strangers;                      /* records of threads that are not known, or that could not be written */
	d9_u64 told_lost;                      /* of what was lost, in gaps */
	d9_u64 all_total, all_stat, all_count; /* of threads that have ended */
	bool no_stat, told_maps;
	d9_u32 next_module;
};

/* ---- segments -------------------------------------------------------------------------------- */

static const char no_symbols[] =
	"the kernel's symbols are not shown (CAP_SYSLOG, kptr_restrict): sleeps are recorded without kernel stacks";

static int begin(struct d9_krecorder *r)
{
	int e = d9_kseg_begin(r->seg);
	if (!e)
		e = d9_kfacts_all(r->seg, r->o);
	if (!e && r->told_no_syms)
		e = d9_kfacts_add(r->seg, "warning", no_symbols);
	if (!e)
		e = d9_kthreads_define_all(r->threads, r->seg);
	r->flushed = d9_kseg_mono();
	return e;
}

static bool begin_or_wait(struct d9_krecorder *r)
{
	int e = begin(r);
	if (!e)
		return true;
	if (!r->retry)
		d9_ksay_warn(
			"cannot write a segment: %s; what comes meanwhile is counted as lost, and it is tried again",
			strerror(-e));
	r->retry = d9_kseg_mono() + RETRY_NS;
	return false;
}

static bool roll(struct d9_krecorder *r)
{
	(void)d9_kseg_end(r->seg);
	d9_kseg_evict(r->seg);
	return begin_or_wait(r);
}

/* An event of a thread, after what defines it; where the segment's dictionary has no room for it, in the next. */
static void put(struct d9_krecorder *r, struct d9_kthread *t, d9_u32 id, const void *e, d9_u32 tail_kind,
		const void *tail, d9_u32 n)
{
	int err = 0;
	for (int i = 0; i < 2; i++) {
		err = d9_kthread_define(t, r->seg);
		if (!err)
			err = d9_kseg_add(r->seg, t->id, id, e, tail_kind, tail, n);
		if (err != -EOVERFLOW || !roll(r))
			break;
	}
	r->strangers += err != 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static void meet(void *ctx, const struct d9_k_thread *k)
{
	struct d9_krecorder *r = ctx;
	struct d9_kthread *t = d9_kthreads_meet(r->threads, k);
	if (!t)
		r->strangers++;
	else if (r->seg)
		(void)d9_kthread_define(t, r->seg); /* also one of which nothing comes */
}

/* The thread of a record.  If what should have told of it was lost, all that live are listed. */
static struct d9_kthread *whose(struct d9_krecorder *r, const struct d9_k_head *h)
{
	struct d9_kthread *t = d9_kthreads_find(r->threads, h->id);
	if (!t && !r->listed) {
		r->listed = true;
		(void)d9_kload_list(r->load, meet, r);
		t = d9_kthreads_find(r->threads, h->id);
	}
	if (t)
		d9_kthread_call(t, h->name);
	else
		r->strangers++;
	return t;
}

static void put_runq(struct d9_krecorder *r, struct d9_kthread *t, const struct d9_k_runq *k)
{
	d9_u32 n = (d9_u32)strnlen(k->prev_name, sizeof(k->prev_name));
	put(r, t, D9_EV_runq, &k->e, n ? D9_TAIL_STRING : D9_TAIL_NONE, k->prev_name, n);
}

static void put_offcpu(struct d9_krecorder *r, struct d9_kthread *t, const struct d9_k_offcpu *k)
{
	char text[D9_K_FRAMES * FRAME_BYTES];
	d9_u32 n = k->head.n < D9_K_FRAMES ? k->head.n : D9_K_FRAMES, bytes = 0;
	if (n && !r->syms && !r->told_no_syms) {
		r->told_no_syms = true;
		d9_ksay_warn("%s", no_symbols);
		(void)d9_kfacts_add(r->seg, "warning", no_symbols);
	}
	if (n && r->syms)
		bytes = (d9_u32)d9_ksyms_text(r->syms, k->frames, n, text, sizeof(text));
	put(r, t, D9_EV_offcpu, &k->e, bytes ? D9_TAIL_KERNEL : D9_TAIL_NONE, text, bytes);
}

/* What is mapped where the addresses are, in this segment. */
static void put_modules(struct d9_krecorder *r, struct d9_kprocess *p, const d9_u64 *frames, d9_u32 n)
{
	d9_u32 i = 0;
	while (i < n && d9_kmodules_have(&p->modules, frames[i]))
		i++;
	int e = i < n && p->seen_pid ? d9_kmodules_look(&p->modules, p->seen_pid, &r->next_module) : 0;
	if ((e == -EACCES || e == -EPERM) && !r->told_maps) {
		r->told_maps = true;
		d9_ksay_warn("what process %d has mapped may not be read: the program's own stacks are recorded "
			     "without names",
			     p->seen_pid);
	}
	(void)d9_kmodules_define(&p->modules, p->index, r->seg); /* else the next stack's */
}

static void put_user_stack(struct d9_krecorder *r, struct d9_kthread *t, const struct d9_k_user_stack *k)
{
	d9_u32 most = k->head.n < D9_K_FRAMES ? k->head.n : D9_K_FRAMES, n = 0;
	while (n < most && k->frames[n] >> USER_BITS == 0) /* else rbp was no frame pointer: no code is there */
		n++;
	if (!n)
		return;
	put_modules(r, t->process, k->frames, n);
	put(r, t, D9_EV_user_stack, &k->e, D9_TAIL_FRAMES, k->frames, n * 8);
}

static void put_total(struct d9_krecorder *r, struct d9_kthread *t, const struct d9_k_total *k)
{
	d9_u32 n = D9_K_BUCKETS;
	while (n && !k->buckets[n - 1])
		n--;
	put(r, t, D9_EV_runq_total, &k->e, n ? D9_TAIL_DATA : D9_TAIL_NONE, k->buckets, n * 8);
	r->no_stat |= k->e.stat == D9_NOT_KNOWN;
	t->total = k->e.total;
	t->stat = k->e.stat;
	t->count = k->e.count;
	/* The kernel's account has a part of a wait already if its thread was moved to another CPU in it. */
	d9_u64 waiting = k->waiting && k->e.rec.t > k->waiting ? k->e.rec.t - k->waiting : 0;
	if (t->stat > t->total)
		t->stat -= t->stat - t->total < waiting ? t->stat - t->total : waiting;
}

static void put_end(struct d9_krecorder *r, struct d9_kthread *t, const struct d9_k_total *k)
{
	put_total(r, t, k);
	r->all_total += t->total;
	r->all_stat += t->stat;
	r->all_count += t->count;
	d9_kthreads_forget(r->threads, t);
}

static void take(void *ctx, const struct d9_k_head *h, size_t bytes)
{
	struct d9_krecorder *r = ctx;
	(void)bytes; /* the programs are of this build: a kind has one size */
	if (h->kind == D9_K_THREAD) {
		meet(r, (const struct d9_k_thread *)h);
		return;
	}
	struct d9_kthread *t = whose(r, h);
	if (!t)
		return;
	switch (h->kind) {
	case D9_K_RUNQ:
		put_runq(r, t, (const struct d9_k_runq *)h);
		break;
	case D9_K_OFFCPU:
		put_offcpu(r, t, (const struct d9_k_offcpu *)h);
		break;
	case D9_K_USER_STACK:
		put_user_stack(r, t, (const struct d9_k_user_stack *)h);
		break;
	case D9_K_BLOCK:
		put(r, t, D9_EV_block_io, &((const struct d9_k_block *)h)->e, D9_TAIL_NONE, NULL, 0);
		break;
	case D9_K_SYSCALL:
		put(r, t, D9_EV_syscall, &((const struct d9_k_syscall *)h)->e, D9_TAIL_NONE, NULL, 0);
		break;
	case D9_K_END:
		put_end(r, t, (const struct d9_k_total *)h);
		break;
	}
}

static void take_total(void *ctx, const struct d9_k_total *k)
{
	struct d9_krecorder *r = ctx;
	struct d9_kthread *t = d9_kthreads_find(r->threads, k->head.id);
	if (!t)
		return; /* made a moment ago: what tells of it is in the ring */
	d9_kthread_call(t, k->head.name);
	put_total(r, t, k);
}

static void put_totals(struct d9_krecorder *r) { (void)d9_kload_totals(r->load, take_total, r); }

/* ---- what was lost --------------------------------------------------------------------------- */

/* Writes what was lost since the last time.  True: more was. */
static bool put_gap(struct d9_krecorder *r, d9_u64 now)
{
	d9_u64 lost = d9_kload_lost(r->load) + r->strangers + d9_kseg_dropped(r->seg);
	struct d9_ev_gap e = {.rec.t = now, .events = lost - r->told_lost, .since = r->whole};
	bool more = lost != r->told_lost;
	if (more && d9_kseg_add(r->seg, D9_THREAD_NONE, D9_EV_gap, &e, D9_TAIL_NONE, NULL, 0))
		return false; /* when there is a segment again */
	r->told_lost = lost;
	r->whole = now;
	return more;
}

/* A lost record may have told of a thread's beginning or end: see who there is. */
static void list_again(struct d9_krecorder *r)
{
	d9_u32 before = d9_kthreads_next_id(r->threads);
	d9_kthreads_begin_listing(r->threads);
	if (d9_kload_list(r->load, meet, r))
		return;
	/* Who ended meanwhile has said so in the ring.  While that is too full to tell, nobody is taken for gone. */
	if (!d9_kload_consume(r->load, take, r))
		d9_kthreads_sweep(r->threads, before);
}

/* ---- for others ------------------------------------------------------------------------------ */

struct d9_krecorder *d9_krecorder_new(const struct d9_koptions *o, struct d9_kload *l)
{
	struct d9_krecorder *r = calloc(1, sizeof(*r));
	if (!r || !(r->threads = d9_kthreads_new()) || !(r->quotas = d9_kquotas_new())) {
		d9_krecorder_free(r);
		return NULL;
	}
	r->o = o;
	r->load = l;
	r->syms = d9_ksyms_load(); /* not later: it takes a CPU for a while, that of the target maybe */
	r->looked = r->whole = d9_kseg_mono();
	return r;
}

void d9_krecorder_free(struct d9_krecorder *r)
{
	if (!r)
		return;
	d9_kseg_free(r->seg);
	d9_kthreads_free(r->threads);
	d9_ksyms_free(r->syms);
	d9_kquotas_free(r->quotas);
	free(r);
}

d9_u32 d9_krecorder_take_targets(struct d9_krecorder *r)
{
	int pids[D9_K_WANTED_MAX];
	size_t n = d9_ktargets_find(r->o, pids, D9_K_WANTED_MAX), fresh = 0;
	for (size_t i = 0; i < n; i++)
		if (!d9_kthreads_process(r->threads, pids[i]))
			pids[fresh++] = pids[i];
	if (fresh)
		(void)d9_kload_take(r->load, pids, fresh, meet, r);
	d9_kquotas_note(r->quotas, r->threads);
	return d9_kthreads_count(r->threads);
}

bool d9_krecorder_first_process(const struct d9_krecorder *r, struct d9_kfolder_process *ret, char *name, size_t size)
{
	const struct d9_kprocess *p = d9_kthreads_process(r->threads, 0);
	if (!p)
		return false;
	char now[PATH_MAX];
	/* What it has become since is told in the ring, which is read only once there is somewhere to write. */
	bool lives = p->seen_pid && d9_kproc_start(p->seen_pid) == p->start &&
		     d9_kproc_exe_args(p->seen_pid, now, sizeof(now));
	const char *exe = lives ? now : p->exe_args ? p->exe_args : "", *base = strrchr(exe, '/');
	snprintf(name, size, "%s", base ? base + 1 : exe);
	d9_u64 ns = d9_kproc_pid_ns(p->seen_pid);
	*ret = (struct d9_kfolder_process){.pid_ns = ns || p->pid != p->seen_pid ? ns : d9_kproc_pid_ns(getpid()),
					   .start = p->start,
					   .pid = p->pid,
					   .uid = p->uid,
					   .name = name};
	return true;
}

int d9_krecorder_open(struct d9_krecorder *r, const struct d9_kfolder *f)
{
	r->seg = d9_kseg_new(r->o, f);
	return r->seg ? begin(r) : -ENOMEM;
}

bool d9_krecorder_is_open(const struct d9_krecorder *r) { return r->seg != NULL; }

/* Does one of the processes not exist any more?  Then its threads' ends were not told of. */
static bool is_one_gone(const struct d9_krecorder *r)
{
	for (const struct d9_kprocess *p = d9_kthreads_newest(r->threads); p; p = p->next)
		if (p->seen_pid && kill(p->seen_pid, 0) && errno == ESRCH)
			return true;
	return false;
}

enum d9_kpass d9_krecorder_pass(struct d9_krecorder *r)
{
	d9_u64 now = d9_kseg_mono();
	r->listed = false;
	if (!d9_kseg_number(r->seg) && now >= r->retry && begin_or_wait(r))
		r->retry = 0;
	bool more = d9_kload_consume(r->load, take, r), again = put_gap(r, now);
	if (now - r->looked >= LOOK_NS) {
		r->looked = now;
		if (d9_ktargets_grow(r->o))
			(void)d9_krecorder_take_targets(r);
		again |= is_one_gone(r);
		d9_kquotas_note(r->quotas, r->threads);
		d9_kquotas_tell(r->quotas, r->seg);
	}
	if (again)
		list_again(r);
	if (d9_kseg_number(r->seg) && d9_kseg_is_full(r->seg)) {
		put_totals(r);
		(void)roll(r);
	} else if (now - r->flushed >= FLUSH_NS) {
		r->flushed = now;
		(void)d9_kseg_flush(r->seg);
	}
	return more ? D9_KPASS_MORE : d9_kthreads_count(r->threads) ? D9_KPASS_ALL : D9_KPASS_OVER;
}

/*
 * The kernel's account of all waits must come to the same.  Its clock is read earlier in a switch than ours, up to some us where a
 * CPU was idle, so many short waits are longer here by that; and where a host takes the CPU away between the two, by as much.
 */
static void check_sums(struct d9_krecorder *r, const struct d9_kload_counts *c)
{
	d9_u64 total = r->all_total, stat = r->all_stat, count = r->all_count;
	d9_kthreads_sum(r->threads, &total, &stat, &count);
	d9_u64 off = total > stat ? total - stat : stat - total, allowed = 1000000 + count * READING_NS;
	if (total > stat)
		allowed += STOLEN_NS;
	if (r->no_stat || c->lost || off <= allowed || off <= stat / 50)
		return;
	d9_ksay_warn("the run-queue waits recorded come to %.3f ms and the kernel's own account to %.3f: do not trust "
		     "them to more than that",
		     (double)total / 1e6, (double)stat / 1e6);
}

static void warn_of_losses(struct d9_krecorder *r, const struct d9_kload_counts *c)
{
	if (c->lost)
		d9_ksay_warn("%llu records found the ring full and are counted as lost: raise --ring-mb, or --runq-min "
			     "and --offcpu-min",
			     (unsigned long long)c->lost);
	if (c->no_store)
		d9_ksay_warn("%u threads could not be tracked: the kernel had no memory for them", c->no_store);
	if (c->skipped)
		d9_ksay_warn("the kernel left out %llu runs of a program: some waits are missing",
			     (unsigned long long)c->skipped);
	if (r->strangers || d9_kseg_dropped(r->seg))
		d9_ksay_warn("%llu records could not be written and are counted as lost",
			     (unsigned long long)(r->strangers + d9_kseg_dropped(r->seg)));
}

void d9_krecorder_finish(struct d9_krecorder *r)
{
	(void)d9_kload_consume(r->load, take, r);
	d9_kquotas_tell(r->quotas, r->seg);
	put_totals(r);
	d9_kload_detach(r->load);
	while (d9_kload_consume(r->load, take, r))
		;
	(void)put_gap(r, d9_kseg_mono());
	struct d9_kload_counts c = d9_kload_counts(r->load);
	(void)d9_kfacts_add_number(r->seg, "switches_reckoned", c.reckoned);
	(void)d9_kfacts_add_number(r->seg, "waits_not_told", c.untold);
	int e = d9_kseg_end(r->seg);
	if (e && e != -EBADF) /* none was open: that was said */
		d9_ksay_warn("the last segment could not be finished: %s", strerror(-e));
	check_sums(r, &c);
	warn_of_losses(r, &c);
}
