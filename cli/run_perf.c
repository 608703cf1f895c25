/* See run_perf.h. */
#include "run_perf.h"

#include "shim/clock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_BYTES (256u << 10)
#define SEGMENT_BYTES (16u << 20)
#define ROTATE_NS 60000000000ull
#define PASS_NS 100000000ull

void d9_run_perf_start(struct d9_run_perf *k, pid_t target)
{
	const struct d9_perf_options o = {.pid = target,
					  .children = true,
					  .outside = true,
					  .ring_bytes = RING_BYTES,
					  .segment_bytes = SEGMENT_BYTES,
					  .rotate_ns = ROTATE_NS};
	k->dirfd = -1;
	void *m =
		mmap(NULL, d9_perf_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r = m == MAP_FAILED ? -ENOMEM : d9_perf_open(m, &o);
	if (!r) {
		k->p = m;
		return;
	}
	k->why = d9_perf_why(r);
	if (m != MAP_FAILED)
		munmap(m, d9_perf_bytes());
}

static void pass(struct d9_run_perf *k, const struct d9_families *f, bool final)
{
	if (k->dirfd < 0)
		k->dirfd = d9_families_folder(f);
	d9_perf_pass(k->p, k->dirfd, final);
}

/* The recording says it too, as soon as there is one. */
static void tell_why(struct d9_run_perf *k, const struct d9_families *f)
{
	char line[300];
	if (!k->why || k->told)
		return;
	snprintf(line, sizeof(line), "context switches are not watched (D9_PERF): %s", k->why);
	k->told = d9_families_warn(f, line);
}

void d9_run_perf_round(struct d9_run_perf *k, const struct d9_families *f)
{
	d9_u64 now = d9_mono_ns();
	tell_why(k, f);
	if (!k->p || now - k->passed_mono < PASS_NS)
		return;
	k->passed_mono = now;
	pass(k, f, false);
	d9_perf_switch(k->p, d9_families_on(f), k->dirfd);
}

void d9_run_perf_stop(struct d9_run_perf *k, const struct d9_families *f)
{
	tell_why(k, f);
	if (!k->p)
		return;
	pass(k, f, true);
	d9_perf_close(k->p);
	munmap(k->p, d9_perf_bytes());
	if (k->dirfd >= 0)
		close(k->dirfd);
	k->p = NULL;
}
