/*
 * disk-stall and page-fault-stall: a thread waited in the kernel for storage, or for a page of its memory.  The kernel's stack says so, or
 * the system call.  On an event loop that much in one poll counts, elsewhere one long wait, or many that add up; a pool for blocking work is
 * where such waits belong, so there only the long ones are told.
 *
 * The call of the program around it belongs to the same finding.  If another one has it already, as the call of a lock's holder, this is
 * not told again.
 */
#include "findings.h"
#include "kernel_stack.h"
#include "syscall_name.h"

#include <sys/syscall.h>

#define LONG_NS 100000000ull       /* away from event loops */
#define VERY_LONG_NS 1000000000ull /* ... and critical */
#define SUM_NS 500000000ull        /* many short ones, and a twentieth of the thread's time */
#define SUM_PART 20

enum what { DISK, FAULT, N_WHAT, NEITHER = N_WHAT };

struct stall {
	d9_u32 proc;
	enum what what;
	struct d9_ref worst, poll; /* poll: thread D9_NO_INDEX = not in one */
	d9_u64 blocked, count, total;
};
typedef D9_VEC(struct stall) stalls;

static bool is_sync_call(d9_i32 nr)
{
	return nr == SYS_fsync || nr == SYS_fdatasync || nr == SYS_sync_file_range || nr == SYS_syncfs ||
	       nr == SYS_sync || nr == SYS_msync;
}

#define UNINTERRUPTIBLE 2u /* the kernel's state D */

static enum what what_of(struct d9_model *m, const struct d9_offcpu *o)
{
	unsigned says = d9_model_kernel_says(m, o->stack);
	if (o->flags & D9_KERNEL_CLAIMED || says & D9_SAYS_FD_TABLE)
		return NEITHER;
	if (o->nr == D9_NR_NONE)
		return says & D9_SAYS_FAULT ? FAULT : NEITHER;
	if (is_sync_call(o->nr) || (o->state & UNINTERRUPTIBLE && says & D9_SAYS_STORAGE))
		return DISK;
	return NEITHER;
}

static bool is_told_already(const struct d9_model *m, struct d9_ref ref)
{
	d9_u32 call = d9_call_around(m, ref);
	return call != D9_NO_INDEX && d9_model_span(m, ref.thread, call)->flags & D9_SPAN_CLAIMED;
}

/* One of each process, told by the worst: on an event loop, if it was there at all. */
static void merge(stalls *all, const struct stall *s)
{
	for (size_t i = 0; i < all->n; i++) {
		struct stall *o = &all->v[i];
		if (o->proc != s->proc || o->what != s->what)
			continue;
		d9_u64 count = o->count + s->count, total = o->total + s->total;
		bool loop = s->poll.thread != D9_NO_INDEX, had_loop = o->poll.thread != D9_NO_INDEX;
		if (loop != had_loop ? loop : s->blocked > o->blocked)
			*o = *s;
		o->count = count;
		o->total = total;
		return;
	}
	d9_vec_push(all, *s);
}

/* The waits of one kind in a stretch of a thread, those that are too short or told already left out. */
struct wanted {
	d9_u32 thread;
	enum what what;
	d9_u64 t0, t1, least;
};

/* The first of them from the thread's wait number i on; D9_NO_INDEX = no more. */
static d9_u32 next_wait(struct d9_model *m, const struct wanted *w, size_t i)
{
	const struct d9_kernel_side *k = &m->t->threads.v[w->thread].kernel;
	for (; i < k->offcpu.n && k->offcpu.v[i].t1 <= w->t1; i++)
		if (d9_offcpu_blocked(&k->offcpu.v[i]) >= w->least && what_of(m, &k->offcpu.v[i]) == w->what &&
		    !is_told_already(m, (struct d9_ref){w->thread, D9_REF_OFFCPU, (d9_u32)i}))
			return (d9_u32)i;
	return D9_NO_INDEX;
}

static d9_u32 first_wait(struct d9_model *m, const struct wanted *w)
{
	const struct d9_kernel_side *k = &m->t->threads.v[w->thread].kernel;
	return next_wait(m, w, D9_FIRST_AFTER(k->offcpu.v, k->offcpu.n, t1, w->t0));
}
#define EACH_WAIT(i, m, w) for (d9_u32 i = first_wait(m, w); i != D9_NO_INDEX; i = next_wait(m, w, i + 1))

/* Their sum and the longest. */
static struct stall sum_of(struct d9_model *m, const struct wanted *w)
{
	struct stall s = {.proc = m->t->threads.v[w->thread].proc,
			  .what = w->what,
			  .worst.thread = D9_NO_INDEX,
			  .poll.thread = D9_NO_INDEX};
	EACH_WAIT(i, m, w)
	{
		struct d9_ref ref = {w->thread, D9_REF_OFFCPU, i};
		d9_u64 ns = d9_offcpu_blocked(d9_offcpu_at(m, ref));
		s.count++;
		s.total += ns;
		if (ns > s.blocked) {
			s.blocked = ns;
			s.worst = ref;
		}
	}
	return s;
}

static void claim_all(struct d9_model *m, const struct wanted *w)
{
	EACH_WAIT(i, m, w)
	{
		struct d9_ref ref = {w->thread, D9_REF_OFFCPU, i};
		d9_claim_offcpu(m, ref, d9_call_around(m, ref));
	}
}

/* ---- event loops -------------------------------------------------------------------------------------------------------- */

/* A loop waits for all of a poll, so what is in it counts together; in a job of a pool that its thread runs too it is as on other threads. */
static void look_at_polls(struct d9_model *m, d9_u32 thread, stalls *all)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	for (d9_u32 i = 0; i < mt->polls.n; i++) {
		const struct d9_poll *p = &mt->polls.v[i];
		bool job = d9_poll_is_job(m, thread, p);
		if (p->t1 - p->t0 < D9_WARN_NS)
			continue;
		for (enum what what = 0; what < N_WHAT; what++) {
			struct wanted w = {thread, what, p->t0, p->t1, job ? LONG_NS : 0};
			struct stall s = sum_of(m, &w);
			if (s.total < D9_WARN_NS)
				continue;
			if (!job) {
				s.blocked = s.total; /* of the poll */
				s.poll = (struct d9_ref){thread, D9_REF_POLL, i};
			}
			merge(all, &s);
			claim_all(m, &w);
		}
	}
}

/* ---- other threads ------------------------------------------------------------------------------------------------------- */

static void look_at_thread(struct d9_model *m, d9_u32 thread, stalls *all)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	for (enum what what = 0; what < N_WHAT; what++) {
		struct wanted w = {thread, what, 0, D9_NOT_KNOWN, LONG_NS};
		struct stall s = sum_of(m, &w);
		if (!s.count) {
			w.least = 0;
			s = sum_of(m, &w);
			if (s.total < SUM_NS || s.total < mt->wall / SUM_PART)
				continue;
		}
		merge(all, &s);
		claim_all(m, &w);
	}
}

/* ---- what is said ----------------------------------------------------------------------------------------------------------- */

/* Were there polls of event loops of the process meanwhile, and all of them short? */
static bool polls_stayed_short(const struct d9_model *m, d9_u32 proc, d9_u64 t0, d9_u64 t1)
{
	bool polled = false;
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_model_thread *mt = &m->threads[i];
		if (m->t->threads.v[i].proc != proc || mt->role != D9_ROLE_WORKER)
			continue;
		for (size_t k = D9_FIRST_AFTER(mt->polls.v, mt->polls.n, t1, t0);
		     k < mt->polls.n && mt->polls.v[k].t0 < t1; k++) {
			if (mt->polls.v[k].t1 - mt->polls.v[k].t0 >= D9_WARN_NS &&
			    !d9_poll_is_job(m, i, &mt->polls.v[k]))
				return false;
			polled = true;
		}
	}
	return polled;
}

static void advise(struct d9_finding *f, const struct stall *s)
{
	bool loop = s->poll.thread != D9_NO_INDEX;
	if (s->what == FAULT) {
		f->try[0] = "Touch or lock the pages before they are needed (MAP_POPULATE, madvise, mlock), or read "
			    "the file on a thread that may wait.";
		f->try[1] = "If it was memory that had been swapped out or dropped: give the service more of it "
			    "(memory.min, memory.high).";
		return;
	}
	f->try[0] =
		loop ? "Move file I/O and fsync off the event loop, to the runtime's pool for blocking work."
		     : "See what else the disk did then (`iostat -x 1`), and whether its cgroup throttles it (io.max).";
	f->try[1] = "fdatasync in place of fsync, and fewer of them for more data each, ask the disk for less.";
}

static void report(struct d9_model *m, struct d9_findings *out, const struct stall *s, struct d9_kernel_places *places)
{
	const struct d9_offcpu *o = d9_offcpu_at(m, s->worst);
	bool loop = s->poll.thread != D9_NO_INDEX;
	struct d9_finding *f =
		d9_finding_add(out, s->what == DISK ? "disk-stall" : "page-fault-stall", s->worst.thread);
	d9_u32 call = d9_call_around(m, s->worst), place = d9_kernel_place(places, m->t, o->stack);
	char who[96], dur[32], buf[32], in[96] = "";
	const char *name = call != D9_NO_INDEX ? m->t->hooks.v[d9_model_span(m, s->worst.thread, call)->hook].name
					       : d9_syscall_name(o->nr, buf);
	f->severity = loop ? d9_severity_of(s->blocked) : s->blocked >= VERY_LONG_NS ? D9_CRITICAL : D9_WARNING;
	f->from = o->t0;
	f->to = o->woken;
	f->count = s->count;
	f->harm = s->total;
	if (place)
		snprintf(in, sizeof(in), ", in the kernel's %.64s", places->names.v[place]);
	bool short_polls = !loop && polls_stayed_short(m, s->proc, o->t0, o->t1);
	d9_finding_title(f, "%s waited %s for %s, in %s%s%s", d9_show_thread(m, s->worst.thread, who, sizeof(who)),
			 d9_format_duration(s->blocked, dur), s->what == DISK ? "storage" : "a page of its memory",
			 s->what == DISK ? name : "a page fault", in,
			 short_polls ? "; the polls of the event loops stayed short" : "");
	if (loop)
		d9_finding_span(f, s->poll);
	d9_finding_offcpu(f, m, s->worst, call);
	d9_finding_n(f, "blocked_ns", s->blocked);
	advise(f, s);
}

void d9_find_disk_stall(struct d9_model *m, struct d9_findings *out)
{
	stalls all = {0};
	struct d9_kernel_places places = {0};
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (!m->t->threads.v[i].kernel.offcpu.n || m->threads[i].role == D9_ROLE_RECORDER)
			continue;
		if (m->threads[i].role == D9_ROLE_WORKER)
			look_at_polls(m, i, &all);
		else
			look_at_thread(m, i, &all);
	}
	for (size_t i = 0; i < all.n; i++)
		report(m, out, &all.v[i], &places);
	d9_kernel_places_fini(&places);
	d9_vec_free(&all);
}
