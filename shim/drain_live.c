/*
 * What the drainer sees of the members besides their records: who is alive, their CPU time, what they are in the
 * middle of, how they ended; and the slots it takes back from threads that are gone.
 */
#include "drain_internal.h"
#include "clock.h"
#include "files.h"
#include "modules.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CHECKS_A_PASS 1000u   /* threads whose existence one pass looks up: 2 us each */
#define CPU_READS_A_PASS 100u /* schedstat files one pass reads: 9 us each */
#define MODULES_EVERY_NS 5000000000ull
#define MODULES_FIRST_NS 1000000000ull
#define LEAVING_NS 2000000000ull
#define USES_MAX ((1u << (32 - D9_SLOT_BITS)) - 2) /* a slot used so often is never given out again */

#define HEAD(type) (D9_REC_HEAD(sizeof(struct d9_ev_##type), D9_EV_##type) | D9_COMMITTED)

static d9_u32 n_slots(const struct d9_drain *d)
{
	d9_u32 n = d9_load_acquire(&d->v.h->thread_next);
	return n < d->v.n_threads ? n : d->v.n_threads;
}
static d9_u32 n_procs(const struct d9_drain *d)
{
	d9_u32 n = d9_load_acquire(&d->v.h->proc_next);
	return n < D9_N_PROCS ? n : D9_N_PROCS;
}
static d9_u32 thread_id(const struct d9_drain *d, d9_u32 slot) { return D9_THREAD_ID(slot, d->v.threads[slot].use); }

/* A record of the drainer's own about a thread, after what it refers to. */
static int tell(struct d9_drain *d, d9_u32 slot, const struct d9_rec *rec)
{
	d9_u32 id = thread_id(d, slot);
	int r = d9_define_for(d, id, rec);
	return r ? r : d9_drain_add(d, id, 0, 0, 0, rec);
}

static bool proc_live(const struct d9_proc *p)
{
	d9_u32 s = d9_load_acquire(&p->state);
	return s == D9_PROC_LIVE;
}

bool d9_live_slot_dead(const struct d9_drain *d, d9_u32 slot)
{
	const struct d9_thread *s = &d->v.threads[slot];
	if (d9_load_acquire(&s->state) == D9_SLOT_DEAD)
		return true;
	return s->proc < n_procs(d) && d9_load_acquire(&d->v.procs[s->proc].state) == D9_PROC_GONE;
}

/* Does the process still have the memory of this family?  One that adopts what it was before an exec maps it only to drain it. */
static bool holds(const struct d9_drain *d, const struct d9_proc *p)
{
	bool adopter = d->o.kind == D9_LEASE_RECOVER && p->pid == (d9_i32)d9_sys0(SYS_getpid);
	return !adopter && d9_maps_hold(p->pid, d->o.path);
}

static void check_proc(struct d9_drain *d, d9_u32 i)
{
	struct d9_proc *p = &d->v.procs[i];
	struct d9_pid_stat st = {0};
	bool there = d9_pid_stat(p->pid, &st);
	if (!there && d9_sys2(SYS_kill, p->pid, 0) != -ESRCH)
		return; /* /proc is not there or hides it: not known to be gone */
	/* Met for the first time, it may be over long since, and another process have its id: only a member maps the arena. */
	bool other = there && !p->start && st.state != 'Z' && d->o.path && d9_maps_lack(p->pid, d->o.path);
	if (there && !p->start && !other)
		p->start = st.start;
	/* A main thread that ended before the others is a zombie in a process that lives. */
	/* After an exec the process goes on, but not this image of it; on its way out it has no memory before it is a zombie. */
	bool left = there && p->end_said && d->o.path && !holds(d, p);
	/* Its parent is about to wait for it, and will know how it ended. */
	if (d->o.kind == D9_LEASE_RUN && there && st.state == 'Z' && st.parent == (d9_u64)d9_sys0(SYS_getpid))
		return;
	bool dead = left || other || !there || st.state == 'X' || (st.state == 'Z' && st.threads <= 1) ||
		    p->start != st.start;
	if (!dead)
		return;
	if (!p->ended_tsc)
		p->ended_tsc = d9_drain_now(d);
	d9_store_release(&p->state, D9_PROC_GONE);
}

/* Gone for certain: after a chroot there may be no /proc, and then nothing is. */
static bool task_gone(int pid, int tid)
{
	char path[64];
	struct d9_text t = d9_text_in(path, sizeof(path));
	d9_text_str(&t, "/proc/");
	d9_text_u64(&t, (d9_u64)pid);
	d9_text_str(&t, "/task/");
	size_t folder = t.n;
	d9_text_u64(&t, (d9_u64)tid);
	if (d9_sys3(SYS_access, (long)path, 0, 0) != -ENOENT)
		return false;
	path[folder] = 0;
	return !d9_sys3(SYS_access, (long)path, 0, 0);
}

static bool in_something(const struct d9_thread *s)
{
	bool held = false;
	for (d9_u32 i = 0; i < D9_N_HELD; i++)
		held |= d9_load_relaxed(&s->held[i].object) != 0;
	return held || d9_load_acquire(&s->call.site) || d9_load_acquire(&s->poll.active);
}

/*
 * The thread is gone.  If its slot says that it was in the middle of something, it may be the first of a process that is ending, whose end
 * will tell what it was in.  Else it was cancelled there, or left by an exception or a bare system call: for certain where its process is
 * this one, and very likely where the process still goes on some time after.
 */
static bool ended_alone(struct d9_drain *d, d9_u32 slot)
{
	const struct d9_thread *s = &d->v.threads[slot];
	const struct d9_proc *p = &d->v.procs[s->proc];
	d9_u64 mono = d9_mono_ns();
	if (!in_something(s) || p->pid == (d9_i32)d9_sys0(SYS_getpid))
		return true;
	if (!d->gone_mono[slot])
		d->gone_mono[slot] = mono;
	return !d9_load_acquire(&p->end_said) && mono - d->gone_mono[slot] > LEAVING_NS;
}

/* A slot is dead if its task is gone; only threads that were silent are looked up. */
static void check_slots(struct d9_drain *d)
{
	d9_u32 n = n_slots(d);
	for (d9_u32 k = 0, checked = 0; k < n && checked < CHECKS_A_PASS; k++) {
		d9_u32 i = d->live_next++ % n;
		struct d9_thread *s = &d->v.threads[i];
		if (d9_load_acquire(&s->state) != D9_SLOT_LIVE || s->proc >= n_procs(d))
			continue;
		const struct d9_proc *p = &d->v.procs[s->proc];
		if (!proc_live(p))
			continue;
		checked++;
		if (task_gone(p->pid, s->tid) && ended_alone(d, i))
			d9_store_release(&s->state, D9_SLOT_DEAD);
	}
}

void d9_live_check(struct d9_drain *d)
{
	if (!d->o.same_pids)
		return;
	for (d9_u32 i = 0; i < n_procs(d); i++)
		if (d9_load_acquire(&d->v.procs[i].state) && d9_load_acquire(&d->v.procs[i].state) != D9_PROC_GONE)
			check_proc(d, i);
	check_slots(d);
	d9_u64 mono = d->live_mono;
	if (mono - d->modules_mono < MODULES_EVERY_NS)
		return;
	if (!d->modules_mono) { /* the first look was the constructor's; the next finds what the program has opened since */
		d->modules_mono = mono - MODULES_EVERY_NS + MODULES_FIRST_NS;
		return;
	}
	for (d9_u32 i = 0, scanned = 0; i < n_procs(d) && scanned < 8; i++) {
		struct d9_proc *p = &d->v.procs[i];
		d9_u32 ring = 0;
		if (!proc_live(p))
			continue;
		scanned++;
		/* Any member can write any pid there, and read what is written down of that process. */
		if (d->o.path && !d9_maps_hold(p->pid, d->o.path))
			continue;
		(void)d9_modules_scan(&d->v, i, p->pid, d9_drain_now(d), d->o.back, &ring);
		if (ring)
			d9_store_relaxed(&p->uring, 1);
	}
	d->modules_mono = mono;
}

/* The moment a copy shows: now, if a member still runs; else when the last of them was heard of. */
d9_u64 d9_live_copy_time(struct d9_drain *d)
{
	d9_u64 t = d->t_last;
	for (d9_u32 i = 0; i < n_slots(d); i++) {
		const struct d9_thread *s = &d->v.threads[i];
		if (s->state == D9_SLOT_LIVE && s->call.site && s->call.t0 > t)
			t = s->call.t0;
	}
	for (d9_u32 i = 0; i < n_procs(d); i++) {
		const struct d9_proc *p = &d->v.procs[i];
		struct d9_pid_stat st;
		if (p->state == D9_PROC_LIVE && !p->end_said && d9_pid_stat(p->pid, &st) && st.state != 'Z' &&
		    (!p->start || p->start == st.start))
			return d->v.h->clock_kind == D9_CLOCK_TSC ? d9_tsc() : d9_mono_ns();
		if (p->ended_tsc > t)
			t = p->ended_tsc;
	}
	return t;
}

/*
 * It announced that it leaves, and /proc does not show it: a member in a PID namespace that ended, whose id means another process
 * here.  Not certain enough to take its chunks back, but no reason to keep the memory.
 */
static bool left_unseen(const struct d9_proc *p)
{
	struct d9_pid_stat st;
	return d9_load_acquire(&p->end_said) && !d9_pid_stat(p->pid, &st);
}

unsigned d9_drain_alive(struct d9_drain *d)
{
	unsigned n = 0;
	d9_live_check(d);
	for (d9_u32 i = 0; i < n_procs(d); i++) {
		d9_u32 s = d9_load_acquire(&d->v.procs[i].state);
		n += s != D9_PROC_FREE && s != D9_PROC_GONE &&
		     (d->v.procs[i].pid == (d9_i32)d9_sys0(SYS_getpid) || !left_unseen(&d->v.procs[i]));
	}
	/* One that recorded nothing yet is in no table, but has the arena mapped. */
	if (!n && d->o.path && d->o.same_pids && d9_maps_held_by_others(d->o.path))
		n = 1;
	return n;
}

/* ---- CPU time ----------------------------------------------------------------------------------- */

static bool read_schedstat(int pid, int tid, d9_u64 *ret_run, d9_u64 *ret_delay)
{
	char path[64], buf[64];
	struct d9_text t = d9_text_in(path, sizeof(path));
	d9_text_str(&t, "/proc/");
	d9_text_u64(&t, (d9_u64)pid);
	d9_text_str(&t, "/task/");
	d9_text_u64(&t, (d9_u64)tid);
	d9_text_str(&t, "/schedstat");
	if (d9_read_file(path, buf, sizeof(buf)) <= 0)
		return false;
	d9_u64 v[2] = {0, 0};
	const char *p = buf;
	for (int i = 0; i < 2; i++, p += *p == ' ')
		v[i] = d9_decimal(p, &p);
	*ret_run = v[0];
	*ret_delay = v[1];
	return true;
}

/* Run time and run delay of the threads that were heard of since their last sample. */
int d9_live_cpu(struct d9_drain *d)
{
	if (d->o.sink || !d->o.same_pids)
		return 0;
	d9_u32 n = n_slots(d), reads = 0;
	for (d9_u32 i = 0; i < n && reads < CPU_READS_A_PASS; i++) {
		const struct d9_thread *s = &d->v.threads[i];
		if (d9_load_acquire(&s->state) != D9_SLOT_LIVE || d->cpu_sampled[i] == d->thread_seen[i] ||
		    s->proc >= n_procs(d) || !proc_live(&d->v.procs[s->proc]))
			continue;
		d->cpu_sampled[i] = d->thread_seen[i];
		reads++;
		struct d9_ev_cpu e = {.rec = {HEAD(cpu), 0, d9_drain_now(d)}, .source = 1};
		if (!read_schedstat(d->v.procs[s->proc].pid, s->tid, &e.run, &e.delay))
			continue;
		int r = tell(d, i, &e.rec);
		if (r)
			return r;
	}
	return 0;
}

/* ---- ends ---------------------------------------------------------------------------------------- */

void d9_drain_child_ended(struct d9_drain *d, int pid, int status)
{
	for (d9_u32 i = 0; i < n_procs(d); i++) {
		struct d9_proc *p = &d->v.procs[i];
		if (p->pid != pid || d->proc_ended[i] || p->end_told || d9_load_acquire(&p->state) == D9_PROC_EXEC)
			continue;
		d->proc_status[i] = status + 1;
		if (!p->ended_tsc)
			p->ended_tsc = d9_drain_now(d);
		d9_store_release(&p->state, D9_PROC_GONE);
	}
}

/* How: what the process said of itself, unless the one who waited for it knows better. */
static void end_of(const struct d9_drain *d, d9_u32 i, struct d9_ev_exit *e)
{
	const struct d9_proc *p = &d->v.procs[i];
	int status = d->proc_status[i] - 1;
	e->how = p->end_said == D9_PROC_EXIT    ? 1
		 : p->end_said == D9_PROC_UEXIT ? 2
		 : p->end_said == D9_PROC_EXEC  ? 4
						: 5;
	e->code = p->exit_code;
	if (status < 0)
		return;
	if (WIFSIGNALED(status)) {
		e->how = 3;
		e->code = WTERMSIG(status);
	} else {
		e->how = e->how == 5 ? 2 : e->how;
		e->code = WEXITSTATUS(status);
	}
}

/* ---- totals, losses, what is pending -------------------------------------------------------------- */

/* Up to when totals of a thread are told: its process's end, or its own, of which its last record is what is known. */
static d9_u64 totals_time(const struct d9_drain *d, d9_u32 slot)
{
	const struct d9_thread *s = &d->v.threads[slot];
	d9_u64 seen = d->thread_seen[slot] > s->born_tsc ? d->thread_seen[slot] : s->born_tsc;
	d9_u64 ended = s->proc < n_procs(d) ? d->v.procs[s->proc].ended_tsc : 0;
	if (d9_load_acquire(&s->state) == D9_SLOT_DEAD)
		return seen;
	return ended > seen ? ended : d9_drain_now(d);
}

static int tell_calls(struct d9_drain *d, d9_u32 slot)
{
	const struct d9_thread *s = &d->v.threads[slot];
	d9_u64 t = totals_time(d, slot);
	if (!d9_load_acquire(&s->calls_open))
		return 0;
	for (d9_u32 k = 0; k < D9_N_CALLS; k++) {
		const struct d9_call_count *c = &d->v.calls[slot].of[k];
		d9_u32 hook = d9_load_relaxed(&c->hook);
		if (!hook || !d9_load_relaxed(&c->count))
			continue;
		struct d9_ev_calls e = {.rec = {HEAD(calls), 0, t},
					.count = d9_load_relaxed(&c->count),
					.total = d9_load_relaxed(&c->total_tsc),
					.max = d9_load_relaxed(&c->max_tsc),
					.hook = hook,
					.errors = d9_load_relaxed(&c->errors)};
		int r = tell(d, slot, &e.rec);
		if (r)
			return r;
	}
	return 0;
}

int d9_live_totals(struct d9_drain *d)
{
	for (d9_u32 i = 0; i < n_slots(d); i++) {
		d9_u32 state = d9_load_acquire(&d->v.threads[i].state);
		int r = state == D9_SLOT_LIVE || state == D9_SLOT_DEAD ? tell_calls(d, i) : 0;
		if (r)
			return r;
	}
	return 0;
}

int d9_live_gaps(struct d9_drain *d)
{
	d9_u64 before = d->v.h->drops_looked; /* the last pass that was written, whoever drained */
	d->drops_looked = d9_drain_now(d);
	if (before > d->drops_looked)
		before = 0; /* a member wrote it */
	for (d9_u32 i = 0; i < n_slots(d); i++) {
		const struct d9_thread *s = &d->v.threads[i];
		d9_u32 state = d9_load_acquire(&s->state);
		d9_u64 drops = d9_load_acquire(&s->drops);
		d9_u32 more = (d9_u32)drops - s->drops_told;
		if (state == D9_SLOT_FREE || state == D9_SLOT_TAKEN || !more)
			continue;
		struct d9_ev_gap e = {.rec = {HEAD(gap), 0, d9_drain_now(d)},
				      .events = more,
				      .since = before > s->born_tsc ? before : s->born_tsc};
		int r = tell(d, i, &e.rec);
		if (r)
			return r;
		d->drops_told[i] = drops + 1;
	}
	return 0;
}

/* What was told is written: the next drainer, whoever it is, does not tell it again. */
void d9_live_told(struct d9_drain *d)
{
	for (d9_u32 i = 0; i < n_slots(d); i++) {
		if (d->drops_told[i])
			d->v.threads[i].drops_told = (d9_u32)(d->drops_told[i] - 1);
		d->drops_told[i] = 0;
	}
	d->v.h->drops_looked = d->drops_looked;
	d->v.h->switches_told = d->switches_told;
	for (d9_u32 i = 0; i < n_procs(d); i++)
		if (d->proc_ended[i] && !d->v.procs[i].end_told)
			d->v.procs[i].end_told = 1;
}

static int tell_in_call(struct d9_drain *d, d9_u32 slot, d9_u64 now)
{
	const struct d9_in_call *c = &d->v.threads[slot].call;
	d9_u32 site = d9_load_acquire(&c->site);
	struct d9_ev_pending e = {.rec = {HEAD(pending), site, now},
				  .since = d9_load_acquire(&c->t0),
				  .object = d9_load_acquire(&c->object),
				  .fd = d9_load_acquire(&c->fd)};
	/* Acquired, so that the second look comes after: a sample that straddles two calls shows in the site or in the start. */
	if (!site || d9_load_acquire(&c->site) != site || d9_load_relaxed(&c->t0) != e.since || e.since > now)
		return 0;
	e.owner = e.object ? d9_load_relaxed(&d->v.threads[slot].call_owner) : 0;
	return tell(d, slot, &e.rec);
}

/* The innermost: what it is inside of is told when that ends, or by whoever looks then. */
static int tell_in_poll(struct d9_drain *d, d9_u32 slot, d9_u64 now)
{
	const struct d9_in_poll *p = &d->v.threads[slot].poll;
	d9_u32 active = d9_load_acquire(&p->active);
	struct d9_ev_in_poll e = {.rec = {HEAD(in_poll), 0, now},
				  .task = d9_load_acquire(&p->task),
				  .since = d9_load_acquire(&p->t0),
				  .module = d9_load_acquire(&p->module),
				  .runtime = d9_load_acquire(&p->runtime),
				  .worker = d9_load_acquire(&p->worker)};
	/* Acquired, so that the second look comes after: a sample that straddles two polls shows in the mark or in the start. */
	if (!active || !d9_load_acquire(&p->active) || d9_load_relaxed(&p->t0) != e.since || e.since > now)
		return 0;
	return tell(d, slot, &e.rec);
}

static int tell_held(struct d9_drain *d, d9_u32 slot, d9_u64 now)
{
	for (int i = 0; i < (int)D9_N_HELD; i++) {
		const struct d9_held *h = &d->v.threads[slot].held[i];
		struct d9_ev_held e = {.rec = {HEAD(held), 0, now},
				       .object = d9_load_acquire(&h->object),
				       .since = d9_load_relaxed(&h->t)};
		if (!e.object || e.since > now)
			continue;
		int r = tell(d, slot, &e.rec);
		if (r)
			return r;
	}
	return 0;
}

int d9_live_pending(struct d9_drain *d)
{
	for (d9_u32 i = 0; i < n_slots(d); i++) {
		const struct d9_thread *s = &d->v.threads[i];
		d9_u32 state = d9_load_acquire(&s->state);
		if (state != D9_SLOT_LIVE || d->gone_mono[i] || s->proc >= n_procs(d) || d->proc_ended[s->proc] ||
		    d->v.procs[s->proc].end_told)
			continue; /* a thread that is gone is in no call any more; what a process left was told with its end, or will be */
		d9_u64 now = d9_drain_now(d);
		int r = tell_in_call(d, i, now);
		if (!r)
			r = tell_in_poll(d, i, now);
		if (!r)
			r = tell_held(d, i, now);
		if (r)
			return r;
	}
	return 0;
}

/* Is it over, or is it this very process, on its way out? */
static bool proc_over(const struct d9_drain *d, const struct d9_proc *p, bool final)
{
	if (d9_load_acquire(&p->state) == D9_PROC_GONE)
		return true;
	if (d->o.sink)
		return p->end_said == D9_PROC_EXIT || p->end_said == D9_PROC_UEXIT;
	return final && d->o.kind == D9_LEASE_THREAD && (p->end_said == D9_PROC_EXIT || p->end_said == D9_PROC_UEXIT) &&
	       p->pid == (d9_i32)d9_sys0(SYS_getpid);
}

/* The last words of a process: what each thread was in the middle of, its totals, how it ended. */
static int tell_end(struct d9_drain *d, d9_u32 i)
{
	struct d9_proc *p = &d->v.procs[i];
	d9_u64 t = p->ended_tsc ? p->ended_tsc : d9_drain_now(d);
	d9_u32 leader = p->leader_thread;
	for (d9_u32 k = 0; k < n_slots(d); k++) {
		struct d9_thread *s = &d->v.threads[k];
		if (d9_load_acquire(&s->state) != D9_SLOT_LIVE || s->proc != i)
			continue;
		int r = tell_in_call(d, k, t);
		if (r || (r = tell_in_poll(d, k, t)) || (r = tell_held(d, k, t)) || (r = tell_calls(d, k)))
			return r;
	}
	struct d9_ev_exit e = {.rec = {HEAD(exit), 0, t}};
	end_of(d, i, &e);
	int r = leader ? d9_define_for(d, leader - 1, &e.rec) : 0;
	return r ? r : d9_drain_add(d, leader ? leader - 1 : D9_THREAD_NONE, 0, 0, 0, &e.rec);
}

int d9_live_ends(struct d9_drain *d, bool final)
{
	for (d9_u32 i = 0; i < n_procs(d); i++) {
		struct d9_proc *p = &d->v.procs[i];
		if (d->proc_ended[i] || p->end_told || !proc_over(d, p, final))
			continue;
		int r = tell_end(d, i);
		if (r)
			return r;
		d->proc_ended[i] = 1;
		for (d9_u32 k = 0; k < n_slots(d) && d9_load_acquire(&p->state) == D9_PROC_GONE; k++)
			if (d->v.threads[k].proc == i && d9_load_acquire(&d->v.threads[k].state) == D9_SLOT_LIVE)
				d9_store_release(&d->v.threads[k].state, D9_SLOT_DEAD);
	}
	return 0;
}

/* ---- slots come back -------------------------------------------------------------------------------- */

static bool owns_chunk(const struct d9_drain *d, d9_u32 slot)
{
	for (d9_u32 i = 0; i < d->v.n_chunks; i++) {
		d9_u32 w = d9_load_acquire(&d->v.entries[i].state), state = D9_CHUNK_STATE(w);
		if (D9_CHUNK_OWNER(w) == slot && (state == D9_CHUNK_ACTIVE || state == D9_CHUNK_FULL))
			return true;
	}
	return false;
}

/* Slots of threads that are gone and whose records are all out: their totals, then they are free again. */
void d9_live_free_slots(struct d9_drain *d)
{
	d9_u32 freed = 0;
	if (d->o.sink)
		return;
	for (d9_u32 i = 0; i < n_slots(d); i++) {
		struct d9_thread *s = &d->v.threads[i];
		if (d9_load_acquire(&s->state) != D9_SLOT_DEAD || s->use >= USES_MAX || owns_chunk(d, i))
			continue;
		if (d->open && (tell_calls(d, i) || d9_drain_flush(d)))
			return;
		s->calls_open = 0;
		s->use++;
		d->drops_told[i] = d->thread_seen[i] = d->cpu_sampled[i] = d->gone_mono[i] = 0;
		s->drops = s->drops_told = 0;
		d9_store_release(&s->state, D9_SLOT_FREE);
		d9_store_relaxed(&d->v.h->thread_free_hint, i);
		freed++;
	}
	if (freed)
		d9_add_acq_rel(&d->v.h->free_epoch, 1);
}
