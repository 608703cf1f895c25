/* d9 ctl: orders to a running recorder, through its control word. No signal, no socket, no thread in the host. */
#include "cmd.h"
#include "live.h"

#include "shim/adopt.h"
#include "shim/lease.h"
#include "shim/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 5000

/* Nobody drains: then this command does it, once. */
static int flush_ourselves(const struct d9_live *l)
{
	struct d9_adopted a;
	int dir = *l->folder ? open(l->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return -ENOENT;
	int r = d9_adopt_open(dir, D9_LEASE_RUN, NULL, &a);
	if (r) {
		close(dir);
		return r;
	}
	r = strcmp(a.path, l->path) ? -ESTALE : d9_drain_pass(a.d, 0);
	d9_adopt_close(&a);
	return r < 0 ? r : 0;
}

/* Tries until it is done or time is up. */
static bool wait_for(bool (*done)(const struct d9_live *l, d9_u32 asked), const struct d9_live *l, d9_u32 asked)
{
	for (int ms = 0; ms < WAIT_MS; ms += 5) {
		if (done(l, asked))
			return true;
		nanosleep(&(struct timespec){0, 5000000}, NULL);
	}
	return false;
}

static void wake_drainer(const struct d9_live *l)
{
	d9_add_relaxed(&l->h->drain_wake, 1);
	(void)syscall(SYS_futex, &l->h->drain_wake, FUTEX_WAKE, 64, NULL, NULL, 0);
}

static bool flushed(const struct d9_live *l, d9_u32 asked)
{
	return (d9_i32)(d9_load_acquire(&l->h->flush_done) - asked) >= 0;
}

static int flush(const struct d9_live *l)
{
	d9_u32 asked = d9_add_acq_rel(&l->h->flush_asked, 1) + 1;
	if (!d9_lease_fresh(&l->h->lease) && flush_ourselves(l) == 0)
		return D9_EXIT_OK;
	wake_drainer(l);
	return wait_for(flushed, l, asked)
		       ? D9_EXIT_OK
		       : d9_fail(D9_EXIT_DATA, "the recorder did not flush within 5 s; `d9 status` says why");
}

static bool locked(const struct d9_live *l, d9_u32 asked)
{
	(void)asked;
	return !flock(l->fd, LOCK_EX | LOCK_NB);
}

/* Only so many switches are remembered until a drainer writes them; one that is overwritten would leave a lie about what was on. */
static int turn(const struct d9_live *l, bool on)
{
	/* Two orders at once: one after the other.  The lease is another kind of lock. */
	if (!wait_for(locked, l, 0))
		return d9_fail(D9_EXIT_DATA, "something has held the lock of %s for 5 s; `fuser %s` says which process",
			       l->path, l->path);
	int code = D9_EXIT_OK;
	if (d9_load_acquire(&l->h->switches_next) - d9_load_acquire(&l->h->switches_told) >= D9_N_SWITCHES)
		code = flush(l);
	if (!code)
		d9_switch(l->h, on ? l->h->configured_mask : 0);
	return code;
}

int d9_cmd_ctl(const struct d9_cmd *self, int argc, char **argv)
{
	const char *op[2] = {NULL, NULL};
	unsigned n = 0;
	int r = d9_opts_parse(self, argc, argv, NULL, 0, op, 2, &n);
	if (r)
		return r - 1;
	char *end = NULL;
	long pid = n == 2 ? strtol(op[0], &end, 10) : 0;
	if (n != 2 || *end || pid <= 0 || pid > INT_MAX)
		return d9_fail(D9_EXIT_USAGE, "ctl takes a PID and one of on, off, flush");
	if (!strcmp(op[1], "snapshot"))
		return d9_fail(D9_EXIT_USAGE, "`snapshot` is not built in this version: it comes with flight mode");
	bool on = !strcmp(op[1], "on"), off = !strcmp(op[1], "off");
	if (!on && !off && strcmp(op[1], "flush") != 0)
		return d9_fail(D9_EXIT_USAGE, "`%s` is no order; ctl takes a PID and one of on, off, flush", op[1]);
	struct d9_live l;
	r = d9_live_open_pid((int)pid, 1, &l);
	if (r)
		return d9_live_fail((int)pid, r);
	int code = on || off ? turn(&l, on) : flush(&l);
	d9_live_close(&l);
	return code;
}
