/*
 * priv.writer_state   written by                  read by            what it says
 * NONE                the wiped page of a fork    event waits        no thread in this process
 * STARTING            whoever starts the thread   event waits, exit
 * RUNNING             the thread, its files open  identity changes (futex)
 * STOPPING            exit, identity changes      the thread         make a last pass and end
 * DONE                the thread, released        exit (futex)       the last pass is over
 * priv.writer_tid     the thread                  sandboxes          whom to wait for; published by writer_state
 *
 * The thread's first act is to take a descriptor table of its own: a second thread that shares a table makes every
 * growth of it stall for milliseconds and every descriptor call dearer, and the program's close loops would meet our files.
 */
#include "writer_thread.h"
#include "adopt.h"
#include "arena.h"
#include "clock.h"
#include "drain.h"
#include "files.h"
#include "lease.h"
#include "modules.h"
#include "perf_host.h"
#include "stack.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { NONE, STARTING, RUNNING, STOPPING, DONE };
#define STACK_BYTES (256u << 10)
#define PASS_MS 500u
#define PERF_MS 100u /* the rings hold so much of a program that switches 20,000 times a second on each CPU */
#define ADOPT_MAX 32u
#define OPEN_MS 200u /* how long a change of identity waits for the thread to open its files */

static struct d9_shim_real real;

void d9_writer_setup(const struct d9_shim_real *r) { real = *r; }

/* Every signal but the two that glibc needs to reach all threads (cancellation, setuid). */
static d9_u64 all_signals(void) { return ~(1ull << 31 | 1ull << 32); }

static void set_error(d9_u32 code, long r, const char *text)
{
	struct d9_arena_header *h = d9_shim.v.h;
	strncpy(h->error_text, text, sizeof(h->error_text) - 1);
	h->error_errno = (d9_u32)-r;
	h->error_mono = d9_mono_ns();
	d9_store_release(&h->error_code, code);
}

struct own_drain {
	struct d9_drain *d;
	void *mem;
	int fd;
};

/* The lease, and a drainer on this process's own mapping.  The folder is opened now: after a chroot or a change of user it could not be. */
static bool open_own(struct own_drain *o)
{
	struct d9_arena_header *h = d9_shim.v.h;
	o->fd = -1;
	if (!d9_shim.anonymous) {
		o->fd = (int)d9_sys3(SYS_open, (long)d9_shim.arena_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
		if (o->fd < 0 || !d9_lease_take(o->fd, &h->lease, D9_LEASE_THREAD)) {
			if (o->fd >= 0)
				(void)d9_sys1(SYS_close, o->fd);
			return false;
		}
	}
	o->mem = d9_map(d9_drain_bytes());
	if (!o->mem) {
		if (o->fd >= 0) {
			d9_lease_release(&h->lease);
			(void)d9_sys1(SYS_close, o->fd);
		}
		set_error(D9_ERR_MEMORY, -ENOMEM, "no memory to drain with");
		return false;
	}
	long dir = d9_sys3(SYS_open, (long)d9_shim.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	struct d9_drain_options opt = {.kind = D9_LEASE_THREAD,
				       .dirfd = dir < 0 ? -1 : (int)dir,
				       .lease_fd = o->fd,
				       .same_pids = true,
				       .back = d9_back,
				       .path = d9_shim.arena_path,
				       .dir = d9_shim.dir};
	o->d = d9_drain_init(o->mem, h, d9_shim.v.n_chunks, &opt);
	return true;
}

/* This process has said its end, or takes the memory out of itself: the thread may also have been stopped for a sandbox, and the program goes on. */
static bool at_the_end(void)
{
	const struct d9_proc *p = &d9_shim.v.procs[d9_shim.priv->proc];
	d9_u32 said = d9_load_acquire(&p->end_said);
	return said == D9_PROC_EXIT || said == D9_PROC_UEXIT || p->flags & D9_PROC_NO_MEMORY;
}

/* A child that has recorded nothing yet is in no table, but it maps the arena: the parent of a daemon leaves at once. */
static bool silent_children(void)
{
	if (d9_shim.forks_left_out)
		return false;
	siginfo_t info;
	bool waited_for = d9_sys6(SYS_waitid, P_ALL, 0, (long)&info, WEXITED | WNOHANG | WNOWAIT, 0, 0) != -ECHILD;
	return (d9_load_relaxed(&d9_shim.forked) || waited_for) && d9_maps_held_by_others(d9_shim.arena_path);
}

/* After the last pass: if nobody else of the family lives, its memory has served, or nobody could find what is in it. */
static void close_own(struct own_drain *o, bool last_pass_ok)
{
	if ((last_pass_ok || d9_shim.no_folder) && !d9_shim.anonymous && at_the_end() && d9_drain_alive(o->d) <= 1 &&
	    !silent_children()) {
		char link[1100];
		size_t n = strnlen(d9_shim.dir, sizeof(d9_shim.dir) - 1);
		memcpy(link, d9_shim.dir, n);
		memcpy(link + n, "/arena", 7);
		(void)d9_sys1(SYS_unlink, (long)link);
		(void)d9_sys1(SYS_unlink, (long)d9_shim.arena_path);
	}
	d9_lease_release(&d9_shim.v.h->lease);
	d9_drain_close(o->d);
	(void)d9_sys2(SYS_munmap, (long)o->mem, (long)d9_drain_bytes());
	if (o->fd >= 0)
		(void)d9_sys1(SYS_close, o->fd);
}

/* Families that ended in this folder without anybody to drain them: a shell that became another program, a crash. */
static void adopt_others(void)
{
	char dir[sizeof(d9_shim.dir)];
	memcpy(dir, d9_shim.dir, sizeof(dir));
	char *slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	/* Under MCL_FUTURE all of another's memory would be brought in and locked. */
	if (slash && dir[0] && !d9_shim.anonymous && !d9_load_relaxed(&d9_shim.priv->future_locked))
		d9_adopt_scan(dir, ADOPT_MAX);
}

static void tell_state(struct d9_private *pr)
{
	(void)d9_sys6(SYS_futex, (long)&pr->writer_state, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 64, 0, 0, 0);
}

/* Waits while the state is `s`, until `end`. False: time is up. */
static bool wait_while(struct d9_private *pr, d9_u32 s, d9_u64 end)
{
	d9_u64 now = d9_mono_ns();
	if (now >= end)
		return false;
	struct timespec t = {(long)((end - now) / 1000000000u), (long)((end - now) % 1000000000u)};
	(void)d9_sys6(SYS_futex, (long)&pr->writer_state, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, s, (long)&t, 0, 0);
	return true;
}

/* ---- perf's rings -------------------------------------------------------------------------------------- */

static int open_dir(void)
{
	long dir = d9_sys3(SYS_open, (long)d9_shim.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return dir < 0 ? -1 : (int)dir;
}

static void read_perf(int dir)
{
	d9_perf_host_pass(dir, true);
	if (dir >= 0)
		(void)d9_sys1(SYS_close, dir);
}

/* Until the next pass is due, or somebody asks for one; the rings are read meanwhile. */
static void wait_for_work(struct own_drain *o, bool drains, int dir)
{
	struct d9_private *pr = d9_shim.priv;
	const d9_u32 *wake = &d9_shim.v.h->drain_wake;
	if (drains && !d9_perf_host_here()) {
		d9_drain_wait(o->d, PASS_MS);
		return;
	}
	d9_u32 seen = d9_load_acquire(wake);
	for (d9_u32 ms = 0; ms < PASS_MS && d9_load_acquire(&pr->writer_state) == RUNNING; ms += PERF_MS) {
		d9_perf_host_pass(dir, false);
		if (drains)
			d9_drain_wait(o->d, PERF_MS);
		else
			(void)d9_sys6(SYS_futex, (long)wake, FUTEX_WAIT, seen,
				      (long)&(struct timespec){.tv_nsec = PERF_MS * 1000000}, 0, 0);
		const struct d9_arena_header *h = d9_shim.v.h;
		if (d9_load_acquire(wake) != seen ||
		    d9_load_relaxed(&h->flush_asked) != d9_load_relaxed(&h->flush_done))
			break;
	}
}

static void *run(void *arg)
{
	struct d9_private *pr = d9_shim.priv;
	struct own_drain own;
	bool drains = false;
	(void)arg;
	d9_store_relaxed(&pr->writer_tid, (d9_i32)d9_sys0(SYS_gettid));
	long r = d9_sys3(SYS_close_range, 0, ~0u, D9_CLOSE_RANGE_UNSHARE);
	(void)d9_sys3(SYS_prctl, 15 /* PR_SET_NAME */, (long)"d9-drain", 0);
	if (r)
		set_error(D9_ERR_THREAD, r,
			  "this kernel has no close_range(CLOSE_RANGE_UNSHARE): drained at exit, or by d9 run");
	else if ((drains = open_own(&own)) || d9_perf_host_here()) {
		int dir = d9_perf_host_here() ? open_dir() : -1;
		d9_u32 starting = STARTING;
		(void)d9_cas_acq_rel(&pr->writer_state, &starting, RUNNING);
		tell_state(pr);
		if (drains)
			adopt_others();
		while (d9_load_acquire(&pr->writer_state) == RUNNING) {
			/* Who drained the family may be gone, and this thread is why no other one is made here. */
			drains = drains || (!d9_lease_fresh(&d9_shim.v.h->lease) && open_own(&own));
			if (drains)
				(void)d9_drain_pass(own.d, 0);
			if (d9_load_acquire(&pr->writer_state) == RUNNING)
				wait_for_work(&own, drains, dir);
		}
		read_perf(dir);
		bool ok = drains && d9_drain_pass(own.d, D9_PASS_FINAL) >= 0;
		d9_store_relaxed(&pr->writer_drained, ok);
		if (drains)
			close_own(&own, ok);
	}
	d9_store_release(&pr->writer_state, DONE);
	tell_state(pr);
	return NULL;
}

static int start(void)
{
	pthread_attr_t a;
	pthread_t t;
	d9_u64 block = all_signals(), old = 0;
	if (!real.pthread_create || !real.pthread_attr_init || !real.pthread_attr_setdetachstate ||
	    real.pthread_attr_init(&a))
		return EAGAIN;
	(void)real.pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	if (real.pthread_attr_setstacksize)
		(void)real.pthread_attr_setstacksize(&a, STACK_BYTES);
	(void)d9_sys4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&block, (long)&old, 8);
	int r = real.pthread_create(&t, &a, run, NULL);
	(void)d9_sys4(SYS_rt_sigprocmask, 2, (long)&old, 0, 8);
	if (real.pthread_attr_destroy)
		(void)real.pthread_attr_destroy(&a);
	return r;
}

__attribute__((noinline)) void d9_writer_consider(void)
{
	struct d9_private *pr = d9_shim.priv;
	struct d9_arena_header *h = d9_shim.v.h;
	d9_u32 none = NONE;
	d9_shim.writer_due = d9_now() + h->tsc_hz; /* look again in a second */
	/* Not whole: pthread_create might wait for ever for a thread that this process does not have.  Others drain it, or its end. */
	if (pr->alive != D9_INSIDE || pr->nosys || !d9_load_relaxed(&pr->locks_whole) ||
	    (d9_lease_fresh(&h->lease) && !d9_perf_host_here()) || (d9_i32)d9_sys0(SYS_getpid) != pr->pid)
		return; /* the last: a vfork child must not make threads in its parent's name */
	if (d9_load_acquire(&pr->writer_state) == DONE)
		d9_store_release(&pr->writer_state, NONE); /* it found somebody else draining, who is gone now */
	/* To make a thread is to allocate, and a handler may have interrupted an allocation. */
	struct d9_cell *me = d9_enter_thread();
	if (!me || d9_stack_in_handler(me) || !d9_cas_acq_rel(&pr->writer_state, &none, STARTING))
		return;
	int saved = errno, r = start();
	errno = saved;
	if (r) {
		d9_store_release(&pr->writer_state, NONE);
		set_error(D9_ERR_THREAD, -r, "cannot start the drain thread; records wait in memory");
	}
}

void d9_writer_now(void)
{
	struct d9_private *pr = d9_shim.priv;
	d9_u64 end = d9_mono_ns() + OPEN_MS * 1000000ull;
	d9_writer_consider();
	while (d9_load_acquire(&pr->writer_state) == STARTING && wait_while(pr, STARTING, end))
		;
}

bool d9_writer_runs(void)
{
	d9_u32 s = d9_load_acquire(&d9_shim.priv->writer_state);
	return s != NONE && s != DONE;
}

bool d9_writer_stop(unsigned ms)
{
	struct d9_private *pr = d9_shim.priv;
	d9_u64 end = d9_mono_ns() + ms * 1000000ull;
	d9_u32 s = d9_load_acquire(&pr->writer_state);
	while ((s == STARTING || s == RUNNING) && !d9_cas_acq_rel(&pr->writer_state, &s, STOPPING))
		;
	if (s == NONE || s == DONE)
		return false; /* DONE: its last pass was some time ago, and there may be more by now */
	d9_add_relaxed(&d9_shim.v.h->drain_wake, 1);
	(void)d9_sys6(SYS_futex, (long)&d9_shim.v.h->drain_wake, FUTEX_WAKE, 64, 0, 0, 0);
	while ((s = d9_load_acquire(&pr->writer_state)) != DONE)
		if (!wait_while(pr, s, end))
			return false;
	return pr->writer_drained;
}

void d9_writer_leave(unsigned ms)
{
	struct d9_private *pr = d9_shim.priv;
	struct timespec nap = {0, 50000};
	d9_u64 end = d9_mono_ns() + ms * 1000000ull;
	(void)d9_writer_stop(ms);
	/* Between DONE and its end it is still there; the exit code of a thread that ends last is the process's. */
	d9_i32 tid = d9_load_relaxed(&pr->writer_tid);
	while (tid && d9_sys3(SYS_tgkill, pr->pid, tid, 0) == 0 && d9_mono_ns() < end)
		(void)d9_sys2(SYS_nanosleep, (long)&nap, 0);
	d9_store_relaxed(&pr->writer_tid, 0);
}

/* This thread ends the process, or is its only one: a table of its own harms nobody, and fd numbers stay. */
static void own_table(void)
{
	if (d9_sys3(SYS_close_range, ~0u, ~0u, D9_CLOSE_RANGE_UNSHARE) && !d9_filtered())
		(void)d9_sys1(SYS_unshare, CLONE_FILES); /* before Linux 5.9 */
}

static void inline_work(bool drain, bool perf)
{
	struct own_drain own;
	d9_u64 block = all_signals(), old = 0, fsize = 1ull << (SIGXFSZ - 1), before = 0;
	struct timespec none = {0, 0};
	if (d9_shim.priv->nosys || !(drain || (perf && d9_perf_host_here())))
		return;
	own_table();
	/* SIGXFSZ would kill before the last segment is out. */
	(void)d9_sys4(SYS_rt_sigprocmask, 2, (long)&block, (long)&old, 8);
	(void)d9_sys2(SYS_rt_sigpending, (long)&before, 8);
	if (perf && d9_perf_host_here())
		read_perf(open_dir());
	if (drain && open_own(&own)) {
		close_own(&own, d9_drain_pass(own.d, D9_PASS_FINAL) >= 0);
		if (!(d9_shim.v.procs[d9_shim.priv->proc].flags & D9_PROC_NO_MEMORY)) /* that one goes on */
			adopt_others();
	}
	if (!(before & fsize)) /* ours, if there is one: it is taken back, or it would kill now */
		(void)d9_sys4(SYS_rt_sigtimedwait, (long)&fsize, 0, (long)&none, 8);
	(void)d9_sys4(SYS_rt_sigprocmask, 2, (long)&old, 0, 8);
}

void d9_writer_inline(bool perf) { inline_work(true, perf); }
void d9_writer_perf(void) { inline_work(false, true); }
