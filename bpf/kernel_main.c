/*
 * d9-kernel: the kernel's side of a recording, in a process of its own.  It attaches to the scheduler's tracepoints, takes the
 * target's threads, says `ready`, and writes segments until it is told to end or its last target has ended.
 */
#include "folder.h"
#include "load.h"
#include "options.h"
#include "procfs.h"
#include "recorder.h"
#include "say.h"
#include "targets.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define PASS_MS 100
#define FOLDER_PASSES 10 /* how often the recorder's folder is looked for before one of our own is made */

static int block_signals(void)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGINT);
	sigaddset(&s, SIGTERM);
	sigprocmask(SIG_BLOCK, &s, NULL);
	signal(SIGPIPE, SIG_IGN); /* who was told `ready` need not stay */
	signal(SIGXFSZ, SIG_IGN);
	return signalfd(-1, &s, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Opens the first segment if it can be told where.  0, 1: not yet, or an exit code. */
static int open_output(struct d9_krecorder *r, const struct d9_koptions *o, bool last_try)
{
	struct d9_kfolder_process p;
	struct d9_kfolder f = {.dirfd = -1};
	char name[64];
	const char *dir = o->dir ? o->dir : o->by == D9_KBY_SESSION ? o->what : NULL;
	if (!d9_krecorder_first_process(r, &p, name, sizeof(name)))
		return D9_KEXIT_OK;
	if (d9_kfolder_find(dir, &p, last_try, &f)) {
		if (!last_try)
			return 1;
		int e = d9_kfolder_make(dir, &p, &f);
		if (e)
			return d9_ksay_fail(e == -EACCES || e == -EPERM ? D9_KEXIT_PERMISSION : D9_KEXIT_NO_TARGET,
					    "cannot make the folder %s: %s; --dir names another", f.path, strerror(-e));
	}
	int e = d9_krecorder_open(r, &f);
	return e ? d9_ksay_fail(D9_KEXIT_NO_TARGET, "cannot write into %s: %s", f.path, strerror(-e)) : 0;
}

/*
 * What may end a pause.  The ring counts as readable while anything is in it, which with a busy target is always; what is meant is
 * that it was said to be half full, which comes as an edge.
 */
static int watch(struct d9_kload *l, int signals)
{
	struct epoll_event signal = {.events = EPOLLIN, .data.fd = signals};
	struct epoll_event ring = {.events = EPOLLIN | EPOLLET, .data.fd = d9_kload_ring_fd(l)};
	int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd >= 0 &&
	    (epoll_ctl(fd, EPOLL_CTL_ADD, signals, &signal) || epoll_ctl(fd, EPOLL_CTL_ADD, ring.data.fd, &ring))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int record(struct d9_krecorder *r, const struct d9_koptions *o, int watched, int signals)
{
	enum d9_kpass last = D9_KPASS_ALL;
	for (int pass = 1; last != D9_KPASS_OVER; pass++) {
		struct epoll_event e[2];
		bool told = false, half_full = false;
		for (int n = epoll_wait(watched, e, 2, last == D9_KPASS_MORE ? 0 : PASS_MS); n > 0; n--) {
			told |= e[n - 1].data.fd == signals;
			half_full |= e[n - 1].data.fd != signals;
		}
		if (!d9_krecorder_is_open(r)) {
			int failed = open_output(r, o, told || pass >= FOLDER_PASSES || half_full);
			if (failed > 1)
				return failed;
			if (failed)
				continue;
		}
		last = d9_krecorder_pass(r);
		if (told)
			break;
	}
	d9_krecorder_finish(r);
	return D9_KEXIT_OK;
}

static int run(const struct d9_koptions *o)
{
	struct d9_kload *l;
	int e = d9_kload_open(o, &l);
	if (e)
		return e;
	struct d9_krecorder *r = d9_krecorder_new(o, l);
	int signals = block_signals(), watched = signals < 0 ? -1 : watch(l, signals);
	if (!r || watched < 0) {
		e = d9_ksay_fail(D9_KEXIT_NO_TARGET, "out of memory or descriptors");
	} else if (!d9_krecorder_take_targets(r)) {
		e = d9_ktargets_explain(o);
	} else {
		puts("ready");
		fflush(stdout);
		e = record(r, o, watched, signals);
	}
	d9_krecorder_free(r);
	d9_kload_close(l);
	return e;
}

int main(int argc, char **argv)
{
	struct d9_koptions o;
	int e = d9_koptions_parse(&o, argc, argv);
	if (e)
		return e - 1;
	/* What is not there is told before what may not be done. */
	int pid;
	if (!d9_kproc_is_ours())
		e = d9_ksay_fail(D9_KEXIT_NO_TARGET,
				 "/proc is not mounted, or has the numbers of another PID namespace: "
				 "mount it there (unshare --mount-proc)");
	else
		e = d9_ktargets_find(&o, &pid, 1) ? run(&o) : d9_ktargets_explain(&o);
	d9_koptions_fini(&o);
	return e;
}
