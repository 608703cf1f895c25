/* See perf_host.h. */
#include "perf_host.h"
#include "arena.h"
#include "files.h"
#include "lifecycle.h"
#include "perf.h"
#include "sys.h"

#include <errno.h>
#include <sys/mman.h>

#define RING_BYTES (128u << 10)

void d9_perf_host_start(void)
{
	if (!d9_map_kept(d9_perf_bytes(), &d9_shim.perf))
		d9_shim_unseen_anywhere("context switches", " are not watched (D9_PERF): no memory");
}

const char *d9_perf_host_refused(void)
{
	d9_i32 e = d9_load_relaxed(&d9_shim.priv->perf_error);
	return e ? d9_perf_why(e) : NULL;
}

static int open_own(void)
{
	const struct d9_arena_header *h = d9_shim.v.h;
	const struct d9_perf_options o = {.ring_bytes = RING_BYTES,
					  .segment_bytes = h->segment_bytes,
					  .rotate_ns = h->rotate_secs * 1000000000ull};
	/* What is there is the parent's: its rings are not here, and something else may be at their addresses. */
	if (d9_sys3(SYS_madvise, (long)d9_shim.perf, (long)D9_PAGES(d9_perf_bytes()), MADV_DONTNEED))
		return -ENOMEM;
	return d9_perf_open(d9_shim.perf, &o);
}

void d9_perf_host_enter(void)
{
	struct d9_private *pr = d9_shim.priv;
	if (!d9_shim.perf || pr->nosys)
		return;
	int r = open_own();
	d9_store_relaxed(&pr->perf_error, r);
	if (r)
		d9_shim_unseen_anywhere("context switches are not watched (D9_PERF): ", d9_perf_why(r));
	d9_store_release(&pr->perf, !r);
}

bool d9_perf_host_here(void) { return d9_load_acquire(&d9_shim.priv->perf); }

void d9_perf_host_pass(int dirfd, bool final)
{
	if (!d9_perf_host_here())
		return;
	d9_perf_switch(d9_shim.perf, d9_load_relaxed(&d9_shim.v.h->mask) != 0, dirfd);
	d9_perf_leave_out(d9_shim.perf, d9_load_relaxed(&d9_shim.priv->writer_tid));
	d9_perf_pass(d9_shim.perf, dirfd, final);
}

void d9_perf_host_leave(void)
{
	if (!d9_perf_host_here())
		return;
	d9_store_release(&d9_shim.priv->perf, 0);
	d9_perf_close(d9_shim.perf);
}
