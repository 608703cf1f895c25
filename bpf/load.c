/* See load.h. */
#include "load.h"
#include "procfs.h"
#include "say.h"
#include <sched.skel.h> /* made by bpftool */

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CAP_SYS_ADMIN 21
#define CAP_PERFMON 38
#define CAP_BPF 39
#define PASSES_MAX 8
#define DESCRIPTORS_MIN 64u
#define TURN 20000u /* records: some tens of milliseconds */

struct d9_kload {
	struct sched *s;
	struct ring_buffer *ring;
	d9_kload_record_fn *fn;
	void *ctx;
	unsigned left; /* of a turn */
};

/* ---- why not --------------------------------------------------------------------------------- */

static char first_line[256]; /* of what libbpf said of the last try: the others only say that it failed */

static int note_line(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[4096];
	if (level != LIBBPF_WARN || first_line[0])
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = 0;
	if (!strstr(text, "RLIMIT_MEMLOCK")) /* a hint that is wrong wherever we can be loaded */
		snprintf(first_line, sizeof(first_line), "%.255s", text);
	return 0;
}

static bool in_user_namespace(void)
{
	char map[128];
	unsigned inside, outside, n;
	return d9_kproc_read("/proc/self/uid_map", map, sizeof(map)) > 0 &&
	       sscanf(map, "%u %u %u", &inside, &outside, &n) == 3 && (inside || outside || n != 0xffffffffu);
}

/* Such a kernel may also call a program invalid that reads its memory. */
static bool is_locked_down(void)
{
	char text[128];
	return d9_kproc_read("/sys/kernel/security/lockdown", text, sizeof(text)) > 0 &&
	       strstr(text, "[confidentiality]");
}

/* libbpf does not always say so when it was given none. */
static bool may_open_enough(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= DESCRIPTORS_MIN)
		return true;
	l.rlim_cur = DESCRIPTORS_MIN;
	return l.rlim_max >= DESCRIPTORS_MIN && !setrlimit(RLIMIT_NOFILE, &l);
}

static int explain_descriptors(void)
{
	return d9_ksay_fail(D9_KEXIT_NO_TARGET, "may not open enough descriptors, of which it needs %u: ulimit -n",
			    DESCRIPTORS_MIN);
}

static int explain_permission(void)
{
	char text[128] = "0";
	d9_kproc_status(getpid(), "CapEff:", text, sizeof(text));
	d9_u64 caps = strtoull(text, NULL, 16);
	bool admin = caps >> CAP_SYS_ADMIN & 1, bpf = admin || caps >> CAP_BPF & 1,
	     perfmon = admin || caps >> CAP_PERFMON & 1;
	if (!bpf || !perfmon)
		return d9_ksay_fail(D9_KEXIT_PERMISSION,
				    "needs CAP_BPF and CAP_PERFMON and has not %s: run it as root, or once `setcap "
				    "cap_bpf,cap_perfmon,cap_syslog+ep` on it",
				    bpf       ? "CAP_PERFMON"
				    : perfmon ? "CAP_BPF"
					      : "either");
	if (in_user_namespace())
		return d9_ksay_fail(D9_KEXIT_PERMISSION,
				    "runs in a user namespace, whose root may not load BPF: run it outside");
	if (d9_kproc_status(getpid(), "Seccomp:", text, sizeof(text)) && text[0] != '0')
		return d9_ksay_fail(
			D9_KEXIT_PERMISSION,
			"bpf() is refused by a seccomp filter: run it outside the container, or allow bpf there");
	return d9_ksay_fail(D9_KEXIT_PERMISSION, "the kernel refuses to load BPF: %s", first_line);
}

static int explain(int r, const struct d9_koptions *o)
{
	if (r == -EMFILE || r == -ENFILE)
		return explain_descriptors();
	if (r == -ENOMEM)
		return d9_ksay_fail(D9_KEXIT_NO_TARGET,
				    "there is no memory for a ring of %llu MB: lower --ring-mb, or raise ulimit -v",
				    (unsigned long long)(o->ring_bytes >> 20));
	if (is_locked_down())
		return d9_ksay_fail(D9_KEXIT_PERMISSION,
				    "the kernel is locked down (confidentiality): it lets no BPF read its memory");
	if (r == -EPERM || r == -EACCES)
		return explain_permission();
	if (r == -ENOSYS)
		return d9_ksay_fail(D9_KEXIT_NO_TARGET,
				    "this kernel has no bpf(), or a filter hides it (seccomp, container)");
	return d9_ksay_fail(D9_KEXIT_NO_TARGET,
			    "this kernel does not take the programs (needs Linux 5.18 or newer): %s; %s", strerror(-r),
			    first_line);
}

/* ---- open, close ----------------------------------------------------------------------------- */

static int take_record(void *ctx, void *record, size_t bytes)
{
	struct d9_kload *l = ctx;
	if (bytes >= sizeof(struct d9_k_head))
		l->fn(l->ctx, record, bytes);
	return --l->left ? 0 : -EAGAIN;
}

static void configure(struct sched *s, const struct d9_koptions *o)
{
	s->rodata->runq_min_ns = o->runq_min_ns;
	s->rodata->offcpu_min_ns = o->offcpu_min_ns;
	s->rodata->syscall_min_ns = o->syscall_min_ns;
	s->rodata->ring_bytes = o->ring_bytes;
	s->rodata->user_stacks = o->user_stacks;
}

/* What a kernel may lack: block_io_start before 6.5, the others where it has no block devices. */
enum without { NOTHING, BLOCK_START, BLOCK };

static int load(struct d9_kload *l, const struct d9_koptions *o, enum without w)
{
	sched__destroy(l->s);
	first_line[0] = 0;
	l->s = sched__open();
	if (!l->s)
		return -ENOMEM;
	configure(l->s, o);
	(void)bpf_program__set_autoload(l->s->progs.d9_waking, o->wakers);
	(void)bpf_program__set_autoload(l->s->progs.d9_sys_enter, o->syscalls);
	(void)bpf_program__set_autoload(l->s->progs.d9_sys_exit, o->syscalls);
	(void)bpf_program__set_autoload(l->s->progs.d9_block_start, w < BLOCK_START);
	(void)bpf_program__set_autoload(l->s->progs.d9_block_issue, w < BLOCK);
	(void)bpf_program__set_autoload(l->s->progs.d9_block_complete, w < BLOCK);
	int r = bpf_map__set_max_entries(l->s->maps.ring, (d9_u32)o->ring_bytes);
	return r ? r : sched__load(l->s);
}

int d9_kload_open(const struct d9_koptions *o, struct d9_kload **ret)
{
	/* Loading says "no such process" of it. */
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return d9_ksay_fail(D9_KEXIT_NO_TARGET, "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), or /sys is "
							"not there: without it nothing can be read of the kernel");
	if (!may_open_enough())
		return explain_descriptors();
	libbpf_set_print(note_line);
	struct d9_kload *l = calloc(1, sizeof(*l));
	int r = l ? -EINVAL : -ENOMEM;
	/* What is missing is found by trying; what may not be done is not tried again. */
	for (enum without w = NOTHING; r && r != -ENOMEM && r != -EPERM && r != -EACCES && w <= BLOCK; w++)
		r = load(l, o, w);
	if (!r)
		r = sched__attach(l->s);
	if (!r && !(l->ring = ring_buffer__new(bpf_map__fd(l->s->maps.ring), take_record, l, NULL)))
		r = -errno;
	if (!r) {
		*ret = l;
		return 0;
	}
	d9_kload_close(l);
	return explain(r, o);
}

void d9_kload_detach(struct d9_kload *l) { sched__detach(l->s); }

void d9_kload_close(struct d9_kload *l)
{
	if (!l)
		return;
	ring_buffer__free(l->ring);
	sched__destroy(l->s);
	free(l);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Runs an iterator; its records are all of one size.  A read may end inside one. */
static int iterate(const struct bpf_link *link, size_t size, void (*fn)(void *, const void *), void *ctx)
{
	_Alignas(8) char buf[16384];
	size_t have = 0;
	int fd = bpf_iter_create(bpf_link__fd(link)), r = 0;
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, buf + have, sizeof(buf) - have);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0) {
			r = n ? -errno : 0;
			break;
		}
		have += (size_t)n;
		size_t at = 0;
		for (; have - at >= size; at += size)
			fn(ctx, buf + at);
		memmove(buf, buf + at, have -= at);
	}
	close(fd);
	return r;
}

struct call {
	d9_kload_thread_fn *thread;
	d9_kload_total_fn *total;
	void *ctx;
};
static void call_thread(void *ctx, const void *r) { ((struct call *)ctx)->thread(((struct call *)ctx)->ctx, r); }
static void call_total(void *ctx, const void *r) { ((struct call *)ctx)->total(((struct call *)ctx)->ctx, r); }

int d9_kload_list(struct d9_kload *l, d9_kload_thread_fn *fn, void *ctx)
{
	struct call c = {.thread = fn, .ctx = ctx};
	return iterate(l->s->links.d9_find, sizeof(struct d9_k_thread), call_thread, &c);
}

/*
 * A thread that is made while the iterator runs is seen by it, or its maker is a target already; but the iterator may have passed
 * its place before its maker was one.  So it runs until nothing new is found.  Afterwards no number is wanted: it could be given
 * to another process.
 */
int d9_kload_take(struct d9_kload *l, const int *pids, size_t n, d9_kload_thread_fn *fn, void *ctx)
{
	int wanted = bpf_map__fd(l->s->maps.wanted), r = 0;
	d9_u8 one = 1;
	for (size_t i = 0; !r && i < n; i++)
		r = bpf_map_update_elem(wanted, &pids[i], &one, BPF_ANY) ? -errno : 0;
	for (d9_u32 before = ~0u, i = 0; !r && before != l->s->bss->next_id && i < PASSES_MAX; i++) {
		before = l->s->bss->next_id;
		r = d9_kload_list(l, fn, ctx);
	}
	for (size_t i = 0; i < n; i++)
		(void)bpf_map_delete_elem(wanted, &pids[i]);
	return r;
}

int d9_kload_totals(struct d9_kload *l, d9_kload_total_fn *fn, void *ctx)
{
	struct call c = {.total = fn, .ctx = ctx};
	return iterate(l->s->links.d9_totals, sizeof(struct d9_k_total), call_total, &c);
}

bool d9_kload_consume(struct d9_kload *l, d9_kload_record_fn *fn, void *ctx)
{
	l->fn = fn;
	l->ctx = ctx;
	l->left = TURN;
	return ring_buffer__consume(l->ring) == -EAGAIN;
}

int d9_kload_ring_fd(const struct d9_kload *l) { return bpf_map__fd(l->s->maps.ring); }

d9_u64 d9_kload_lost(const struct d9_kload *l) { return __atomic_load_n(&l->s->bss->lost, __ATOMIC_RELAXED); }

struct d9_kload_counts d9_kload_counts(const struct d9_kload *l)
{
	const struct sched__bss *b = l->s->bss;
	struct d9_kload_counts c = {
		.lost = d9_kload_lost(l), .untold = b->untold, .reckoned = b->reckoned, .no_store = b->no_store};
	struct bpf_program *p;
	bpf_object__for_each_program(p, l->s->obj)
	{
		struct bpf_prog_info info = {0};
		d9_u32 size = sizeof(info);
		if (!bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size))
			c.skipped += info.recursion_misses;
	}
	return c;
}
