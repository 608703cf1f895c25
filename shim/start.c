/*
 * Opening the session memory and making the process folder: the constructor's work.  Runs once per process image, possibly
 * before libc's own constructors, with descriptors 0-2 perhaps closed; whatever it opens it closes again.
 */
#include "arena.h"
#include "clock.h"
#include "files.h"
#include "modules.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define CALIBRATE_NS 50000u /* two clock readings this far apart give thresholds to 1 % */

static void error(struct d9_arena_header *h, d9_u32 code, long r, const char *what, const char *path)
{
	struct d9_text t = d9_text_in(h->error_text, sizeof(h->error_text));
	d9_text_str(&t, what);
	d9_text_str(&t, path);
	h->error_errno = (d9_u32)-r;
	h->error_mono = d9_mono_ns();
	h->error_code = code;
}

/* Memory limit of this process's cgroup, or a very large number. */
static d9_u64 memory_limit(void)
{
	char groups[1024], path[512], number[32];
	d9_u64 limit = ~0ull >> 1;
	if (d9_read_file("/proc/self/cgroup", groups, sizeof(groups)) <= 0)
		return limit;
	const char *own = strstr(groups, "0::"), *v1 = strstr(groups, ":memory:");
	const char *files[2][3] = {{"/sys/fs/cgroup", own ? own + 3 : NULL, "/memory.max"},
				   {"/sys/fs/cgroup/memory", v1 ? v1 + 8 : NULL, "/memory.limit_in_bytes"}};
	for (int i = 0; i < 2; i++) {
		if (!files[i][1])
			continue;
		struct d9_text t = d9_text_in(path, sizeof(path));
		d9_text_str(&t, files[i][0]);
		for (const char *p = files[i][1]; *p && *p != '\n'; p++)
			d9_text_char(&t, *p);
		d9_text_str(&t, files[i][2]);
		if (d9_read_file(path, number, sizeof(number)) <= 0)
			continue;
		d9_u64 v = d9_decimal(number, NULL);
		if (v && v < limit)
			limit = v;
	}
	return limit;
}

/* What `ulimit -v` or `ulimit -d` leaves this process. */
static d9_u64 limit_of(int what)
{
	struct rlimit64 r;
	return d9_sys4(SYS_prlimit64, 0, what, 0, (long)&r) ? ~0ull : r.rlim_cur;
}

/* Chunks that the configuration, the tmpfs (NULL: none), the memory limit and the address space allow together. */
static d9_u32 chunks_allowed(const struct d9_config *c, const char *tmpfs, d9_u64 space)
{
	d9_u64 bytes = c->mem_mb << 20, limit = memory_limit() / 16;
	struct statfs fs;
	if (tmpfs && !d9_sys2(SYS_statfs, (long)tmpfs, (long)&fs) &&
	    (d9_u64)fs.f_bavail * (d9_u64)fs.f_bsize / 4 < bytes)
		bytes = (d9_u64)fs.f_bavail * (d9_u64)fs.f_bsize / 4;
	if (limit < bytes)
		bytes = limit;
	if (space / 16 < bytes)
		bytes = space / 16;
	if (bytes < 64 * D9_CHUNK_BYTES)
		bytes = 64 * D9_CHUNK_BYTES;
	d9_u64 n = bytes / D9_CHUNK_BYTES;
	return n > (1u << 24) ? 1u << 24 : (d9_u32)n;
}

/* Growing a file beyond RLIMIT_FSIZE is a signal that kills, so it is not tried. */
static bool file_size_allowed(d9_u64 bytes)
{
	struct rlimit64 r;
	return d9_sys4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&r) || r.rlim_cur >= bytes;
}

static void *map_file(const char *path, d9_u64 bytes, long *ret_error)
{
	if (!file_size_allowed(bytes)) {
		*ret_error = -EFBIG;
		return NULL;
	}
	long fd = d9_sys3(SYS_open, (long)path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		*ret_error = fd;
		return NULL;
	}
	long r = d9_sys2(SYS_ftruncate, fd, (long)bytes);
	long m = r ? r : d9_sys6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	(void)d9_sys1(SYS_close, fd);
	if (m < 0 && m > -4096) {
		(void)d9_sys1(SYS_unlink, (long)path);
		*ret_error = m;
		return NULL;
	}
	return (void *)m;
}

static bool private_memory(d9_u32 n_threads)
{
	d9_u8 *m = d9_map_private(d9_private_bytes(n_threads));
	if (!m)
		return false;
	d9_shim.priv = (void *)m;
	d9_shim.cells = (void *)(m + 4096);
	d9_shim.frames[0] = (void *)(m + d9_private_bytes(n_threads) - D9_FRAMES_BYTES);
	return true;
}

/* mkdir -p, the last one 0700.  0 or -errno; a folder that is there is fine if it is ours or root's. */
static long make_dirs(const char *path)
{
	char p[512];
	struct d9_text t = d9_text_in(p, sizeof(p));
	long r = 0;
	for (const char *s = path; *s; s++) {
		if (*s == '/' && t.n)
			r = d9_sys2(SYS_mkdir, (long)p, 0755);
		d9_text_char(&t, *s);
	}
	r = d9_sys2(SYS_mkdir, (long)p, 0700);
	return r == -EEXIST ? 0 : r;
}

static void absolute_dir(const struct d9_config *c, struct d9_text *t)
{
	if (!c->dir[0]) {
		d9_text_str(t, "/var/tmp/d9-");
		d9_text_u64(t, (d9_u64)d9_sys0(SYS_geteuid));
		return;
	}
	if (c->dir[0] != '/') {
		char cwd[512];
		if (d9_sys2(SYS_getcwd, (long)cwd, sizeof(cwd)) > 0) {
			d9_text_str(t, cwd);
			d9_text_char(t, '/');
		}
	}
	d9_text_str(t, c->dir);
}

/* DIR/NAME-XXXXXXXX with the symlink `arena`; the header says where. */
static void make_folder(const struct d9_config *c, const char *arena_path)
{
	struct d9_arena_header *h = d9_shim.v.h;
	struct d9_text t = d9_text_in(h->dir, sizeof(h->dir));
	absolute_dir(c, &t);
	long r = make_dirs(h->dir);
	if (r) {
		error(h, D9_ERR_DIR, r, "cannot make the folder ", h->dir);
	}
	d9_text_char(&t, '/');
	for (const char *p = h->name; *p; p++)
		d9_text_char(&t, *p == '/' || *p < ' ' ? '_' : *p);
	d9_text_char(&t, '-');
	d9_text_hex(&t, h->family[0] & 0xffffffffu, 8);
	d9_shim.no_folder = true;
	d9_shim.dir_given = c->dir[0];
	if (r)
		return;
	r = d9_sys2(SYS_mkdir, (long)h->dir, 0700);
	d9_shim.no_folder = r;
	if (r) {
		error(h, D9_ERR_DIR, r, "cannot make the folder ", h->dir);
		return;
	}
	char link[1100];
	struct d9_text l = d9_text_in(link, sizeof(link));
	d9_text_str(&l, h->dir);
	d9_text_str(&l, "/arena");
	r = arena_path ? d9_sys2(SYS_symlink, (long)arena_path, (long)link) : 0;
	if (r)
		error(h, D9_ERR_MEMORY, r, "d9 recover will not find the memory: cannot make the link ", link);
}

static void read_identity(struct d9_arena_header *h, const char *name, int argc, char **argv)
{
	(void)d9_boot_id(h->boot_id);
	h->pid_ns = d9_pid_ns();
	h->creator_pid = (d9_u32)d9_sys0(SYS_getpid);
	h->creator_uid = (d9_u32)d9_sys0(SYS_geteuid);
	long n = d9_sys3(SYS_readlink, (long)"/proc/self/exe", (long)h->exe_args, sizeof(h->exe_args) / 4);
	struct d9_text t = {h->exe_args, n > 0 ? (size_t)n : 0, sizeof(h->exe_args) - 1};
	t.n++; /* the NUL after the path stays */
	for (int i = 0; i < argc && argv[i] && t.n + strlen(argv[i]) + 2 < t.size; i++) {
		d9_text_str(&t, argv[i]);
		t.n++;
	}
	struct d9_text nt = d9_text_in(h->name, sizeof(h->name));
	const char *base = strrchr(h->exe_args, '/');
	d9_text_str(&nt, name[0] ? name : base ? base + 1 : "program");
	struct d9_text vt = d9_text_in(h->shim_version, sizeof(h->shim_version));
	d9_text_str(&vt, D9_VERSION);
}

/* Calibrates the raw clock against CLOCK_MONOTONIC: good to a percent now, the drainer does better later. */
static void set_clock(struct d9_arena_header *h, const struct d9_clock_pair *first)
{
	h->clock_kind = d9_clock.kind;
	h->clocks[0] = *first;
	h->clock_pairs_next = 1;
	if (h->clock_kind == D9_CLOCK_MONOTONIC) {
		h->tsc_hz = 1000000000u;
		h->clock_shift = d9_clock_shift(h->tsc_hz);
		return;
	}
	struct d9_clock_pair now;
	do
		d9_clock_pair(h->clock_kind, &now);
	while (now.mono - first->mono < CALIBRATE_NS);
	h->tsc_hz = (d9_u64)((double)(now.tsc - first->tsc) * 1e9 / (double)(now.mono - first->mono));
	h->clock_shift = d9_clock_shift(h->tsc_hz);
}

static d9_u64 raw_of_ns(const struct d9_arena_header *h, d9_u64 ns)
{
	return (d9_u64)((double)ns * (double)h->tsc_hz / 1e9);
}

static void set_config(struct d9_arena_header *h, const struct d9_config *c)
{
	h->segment_bytes = c->segment_mb << 20;
	h->total_bytes = c->total_mb << 20;
	h->rotate_secs = (d9_u32)c->rotate_secs;
	h->exit_ms = (d9_u32)c->exit_ms;
	h->io_min_ns = c->io_min_us * 1000;
	h->stack_min_ns = c->stack_min_us * 1000;
	h->stacks = (d9_u32)c->stacks;
	h->configured_mask = c->hooks;
	d9_shim.io_min = raw_of_ns(h, h->io_min_ns);
	d9_shim.stack_min = raw_of_ns(h, h->stack_min_ns);
	d9_shim.long_gap = raw_of_ns(h, 1000000);
	d9_shim.long_span = d9_shim.stack_min < d9_shim.long_gap ? d9_shim.stack_min : d9_shim.long_gap;
	d9_shim.stacks = h->stacks;
	const char *base = strrchr(h->exe_args, '/');
	bool named = d9_config_names(c->runtimes_exe, base ? base + 1 : h->name);
	d9_shim.task_dumps = (d9_u32)c->task_dumps;
	d9_shim.runtimes = named ? (d9_u32)c->runtimes : D9_RUNTIMES_OFF;
	struct d9_text run = d9_text_in(h->run, sizeof(h->run)), t = d9_text_in(h->warnings, sizeof(h->warnings));
	d9_text_str(&run, c->run);
	d9_text_str(&t, c->warnings);
}

static bool random_bytes(void *p, size_t n) { return d9_sys3(SYS_getrandom, (long)p, (long)n, 0) == (long)n; }

/* What is written at once must have its memory: in a full tmpfs the first store would be a SIGBUS. */
static bool back_tables(void *m, d9_u32 n_chunks)
{
	d9_shim.populate = !d9_sys3(SYS_madvise, (long)m, 4096, D9_MADV_POPULATE_WRITE);
	return d9_back(m, d9_off_procs(n_chunks));
}

/* Maps the arena where it can be: /dev/shm, or memory that only this family sees.  *n_chunks: what /dev/shm allows; what was mapped. */
static void *map_arena(const struct d9_config *c, const d9_u64 family[2], d9_u64 space, d9_u32 *n_chunks,
		       struct d9_text *path, long *ret_error)
{
	d9_text_str(path, "/dev/shm/d9-");
	d9_text_u64(path, (d9_u64)d9_sys0(SYS_geteuid));
	d9_text_char(path, '-');
	d9_text_hex(path, family[0], 16);
	d9_text_hex(path, family[1], 16);
	void *m = map_file(path->p, d9_arena_bytes(*n_chunks), ret_error);
	if (m && back_tables(m, *n_chunks))
		return m;
	if (m) { /* it is full */
		(void)d9_sys2(SYS_munmap, (long)m, (long)d9_arena_bytes(*n_chunks));
		(void)d9_sys1(SYS_unlink, (long)path->p);
		*ret_error = -ENOSPC;
	}
	*n_chunks = chunks_allowed(c, NULL, space);
	path->n = 0;
	path->p[0] = 0;
	long r = d9_sys6(SYS_mmap, 0, (long)d9_arena_bytes(*n_chunks), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return (r < 0 && r > -4096) || !back_tables((void *)r, *n_chunks) ? NULL : (void *)r;
}

int d9_arena_open(const struct d9_config *c, const char *name, int argc, char **argv)
{
	d9_u64 family[2];
	char path[96];
	struct d9_text path_text = d9_text_in(path, sizeof(path));
	long map_error = 0;
	struct d9_clock_pair first;
	d9_clock_start();
	d9_clock_pair(d9_clock.kind, &first);
	d9_u64 space = limit_of(RLIMIT_AS);
	d9_u32 n_chunks = chunks_allowed(c, "/dev/shm", space);
	d9_u64 own = d9_private_bytes(d9_n_threads(n_chunks));
	if (own + d9_arena_bytes(n_chunks) > space / 4 || own > limit_of(RLIMIT_DATA) / 4)
		return -ENOMEM; /* a limited one is the program's to use */
	/* Refused by a filter that was there before us: nothing that follows could be believed. */
	if (d9_sys0(SYS_geteuid) < 0)
		return -ENOSYS;
	if (!random_bytes(family, sizeof(family)))
		return -ENOSYS;
	void *m = map_arena(c, family, space, &n_chunks, &path_text, &map_error);
	if (!m)
		return -ENOMEM;
	d9_u64 bytes = d9_arena_bytes(n_chunks);
	if (!private_memory(d9_n_threads(n_chunks))) {
		(void)d9_sys2(SYS_munmap, (long)m, (long)bytes);
		if (path[0])
			(void)d9_sys1(SYS_unlink, (long)path);
		return -ENOSYS;
	}
	d9_shim.anonymous = !path[0];
	memcpy(d9_shim.arena_path, path, sizeof(path));
	(void)d9_sys3(SYS_madvise, (long)m, (long)bytes, MADV_NOHUGEPAGE);
	(void)d9_sys3(SYS_madvise, (long)m, (long)bytes, MADV_DONTDUMP);
	struct d9_view v;
	d9_view_init(&v, m, n_chunks);
	struct d9_arena_header *h = v.h;
	h->version = D9_ARENA_VERSION;
	h->n_chunks = n_chunks;
	h->bytes = bytes;
	memcpy(h->family, family, sizeof(family));
	d9_shim.v = v;
	d9_shim.last_proc = ~0u;
	read_identity(h, c->name[0] ? c->name : name, argc, argv);
	if (map_error)
		error(h, D9_ERR_MEMORY, map_error, "no shared memory in ",
		      "/dev/shm; records wait in private memory and die with the process");
	make_folder(c, path[0] ? path : NULL);
	memcpy(d9_shim.dir, h->dir, sizeof(d9_shim.dir));
	set_clock(h, &first);
	set_config(h, c);
	d9_shim.writer_due = d9_now() + raw_of_ns(h, c->perf ? 100000000 : 1000000000);
	h->started_mono = first.mono;
	h->started_real = first.real;
	(void)d9_modules_scan(&d9_shim.v, 0, 0, first.tsc, d9_back, NULL);
	d9_store_release(&h->magic, D9_ARENA_MAGIC);
	return 0;
}
