/*
 * d9 doctor: what this host lets the recorder do.  One function per subject; each says ok, warn or fail
 * and what to do about it.  What can be tried is tried, not looked up.
 */
#include "check.h"
#include "clean.h"
#include "cmd.h"
#include "hooks_table.h"
#include "json.h"
#include "run_kernel.h"
#include "shim_path.h"

#include "shim/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <gnu/libc-version.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINES_MAX 48
#define MIB ((d9_u64)1 << 20)
#define MEM_WANTED_MIB 64   /* D9_MEM_MB's default */
#define DISK_WANTED_MIB 256 /* D9_TOTAL_MB's default */
#define TRIAL_MS 5000

enum health { HEALTH_OK, HEALTH_WARN, HEALTH_FAIL };
static const char *const health_names[] = {"ok", "warn", "fail"};

struct line {
	enum health health;
	const char *id;
	char text[400], advice[300];
};
struct doctor {
	struct line lines[LINES_MAX];
	unsigned n;
};

/* advice: NULL where there is nothing to be done. */
__attribute__((format(printf, 5, 6))) static void say(struct doctor *d, enum health health, const char *id,
						      const char *advice, const char *fmt, ...)
{
	va_list ap;
	if (d->n == LINES_MAX)
		return;
	struct line *l = &d->lines[d->n++];
	*l = (struct line){.health = health, .id = id};
	snprintf(l->advice, sizeof(l->advice), "%s", advice ? advice : "");
	va_start(ap, fmt);
	vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
}

/* First line of a small file, "" if it cannot be read. */
static const char *read_line(const char *path, char *buf, size_t max)
{
	FILE *f = fopen(path, "re");
	buf[0] = 0;
	if (f) {
		if (!fgets(buf, (int)max, f))
			buf[0] = 0;
		fclose(f);
	}
	buf[strcspn(buf, "\n")] = 0;
	return buf;
}

/* ---- system ------------------------------------------------------------------------------------------------------- */

static void see_kernel(struct doctor *d)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2) {
		say(d, HEALTH_WARN, "kernel", NULL, "kernel: its version cannot be read");
		return;
	}
	bool new_enough = major > 4 || (major == 4 && minor >= 15);
	say(d, new_enough ? HEALTH_OK : HEALTH_WARN, "kernel",
	    new_enough ? NULL : "nothing to be done but to try: kernels before 4.15 were not tested", "kernel %s, %s",
	    u.release, u.machine);
}

static void see_glibc(struct doctor *d)
{
	unsigned major = 0, minor = 0;
	sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor);
	bool ok = major > 2 || (major == 2 && minor >= 17);
	say(d, ok ? HEALTH_OK : HEALTH_FAIL, "glibc", ok ? NULL : "libd9shim.so needs 2.17", "glibc %s",
	    gnu_get_libc_version());
}

static bool cpu_has(const char *flag)
{
	static char line[8192];
	FILE *f = fopen("/proc/cpuinfo", "re");
	bool has = false;
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "flags", 5)) {
			has = strstr(line, flag) != NULL;
			break;
		}
	if (f)
		fclose(f);
	return has;
}

static void see_clock(struct doctor *d)
{
	char source[64];
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source));
	bool steady = cpu_has(" constant_tsc") && cpu_has(" nonstop_tsc"), tsc = !strcmp(source, "tsc");
	say(d, tsc ? HEALTH_OK : HEALTH_WARN, "clock",
	    tsc ? NULL
		: "each time stamp costs a clock_gettime(); if the CPUs' counters are sound, boot with clocksource=tsc",
	    "clock source %s, counter %s", *source ? source : "not known",
	    steady ? "constant and nonstop" : "not marked constant and nonstop");
}

static void see_seccomp(struct doctor *d)
{
	char line[256];
	int mode = -1;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	if (f)
		fclose(f);
	say(d, mode > 0 ? HEALTH_WARN : HEALTH_OK, "seccomp",
	    mode > 0 ? "if a recorded program is killed or gets EPERM where it did not before, record it outside this "
		       "filter"
		     : NULL,
	    mode > 0 ? "this shell runs under seccomp (mode %d), and so will what it records"
		     : "no seccomp filter here (mode %d)",
	    mode);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static void see_shm(struct doctor *d)
{
	struct statvfs v;
	if (statvfs("/dev/shm", &v) < 0 || access("/dev/shm", W_OK | X_OK) < 0) {
		say(d, HEALTH_WARN, "shm", "mount a tmpfs on /dev/shm that programs may write to",
		    "/dev/shm cannot be used (%s): records go through a file of the output folder, which may stall",
		    strerror(errno));
		return;
	}
	d9_u64 size = (d9_u64)v.f_blocks * v.f_frsize / MIB, avail = (d9_u64)v.f_bavail * v.f_frsize / MIB;
	bool enough = avail / 4 >= MEM_WANTED_MIB;
	say(d, enough ? HEALTH_OK : HEALTH_WARN, "shm",
	    enough ? NULL : "make it larger (docker: --shm-size=512m), or expect drops in bursts",
	    "/dev/shm has %lu of %lu MiB free%s", avail, size,
	    enough ? "" : ": a program gets a quarter of that for its records, less than the usual 64 MiB");
}

static void see_populate(struct doctor *d)
{
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool works = p != MAP_FAILED && madvise(p, 4096, MADV_POPULATE_WRITE) == 0;
	if (p != MAP_FAILED)
		munmap(p, 4096);
	say(d, works ? HEALTH_OK : HEALTH_WARN, "populate-write",
	    works ? NULL : "nothing to be done: a slower way is taken (kernels before 5.14)", "MADV_POPULATE_WRITE %s",
	    works ? "works" : "is not there");
}

static void see_huge_pages(struct doctor *d)
{
	char shm[128], anon[128];
	read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shm, sizeof(shm));
	read_line("/sys/kernel/mm/transparent_hugepage/enabled", anon, sizeof(anon));
	bool forced = strstr(shm, "[always]") || strstr(shm, "[force]");
	say(d, forced ? HEALTH_WARN : HEALTH_OK, "huge-pages",
	    forced ? "the record's sparse tables will take more memory than they fill; set shmem_enabled to advise"
		   : NULL,
	    "transparent huge pages: shared memory %s; anonymous %s", *shm ? shm : "not known",
	    *anon ? anon : "not known");
}

/* Limit of this process's own control group, either version; 0 = none found. */
static d9_u64 memory_limit(void)
{
	char line[PATH_MAX], path[PATH_MAX + 64], text[64];
	d9_u64 limit = 0;
	FILE *f = fopen("/proc/self/cgroup", "re");
	while (f && !limit && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		char *group = strrchr(line, ':');
		if (!group)
			continue;
		if (!strncmp(line, "0::", 3))
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group + 1);
		else if (strstr(line, ":memory:"))
			snprintf(path, sizeof(path), "/sys/fs/cgroup/memory%s/memory.limit_in_bytes", group + 1);
		else
			continue;
		limit = strtoull(read_line(path, text, sizeof(text)), NULL, 10); /* "max" is 0 */
	}
	if (f)
		fclose(f);
	return limit < (1ull << 60) ? limit : 0; /* version 1 writes "none" as a huge number */
}

static void see_memory(struct doctor *d)
{
	d9_u64 limit = memory_limit();
	if (!limit) {
		say(d, HEALTH_OK, "memory-limit", NULL, "no memory limit of a control group here");
		return;
	}
	bool enough = limit / 16 / MIB >= MEM_WANTED_MIB;
	say(d, enough ? HEALTH_OK : HEALTH_WARN, "memory-limit",
	    enough ? NULL : "raise the limit, or expect drops in bursts: the recorder takes at most 1/16 of it",
	    "the control group's memory limit is %lu MiB", limit / MIB);
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

/* The folder that `d9 run` would write to, or its nearest parent that is there. */
static void output_folder(char *ret, size_t max)
{
	const char *dir = getenv("D9_DIR");
	snprintf(ret, max, "%s", dir && *dir ? dir : "./d9-traces");
	while (access(ret, F_OK) < 0) {
		char *slash = strrchr(ret, '/');
		if (!slash || slash == ret) {
			snprintf(ret, max, "%s", slash ? "/" : ".");
			return;
		}
		*slash = 0;
	}
}

static void see_output(struct doctor *d)
{
	char dir[PATH_MAX];
	struct statvfs v;
	output_folder(dir, sizeof(dir));
	if (access(dir, W_OK | X_OK) < 0 || statvfs(dir, &v) < 0) {
		say(d, HEALTH_FAIL, "output", "name another folder: D9_DIR, or `d9 run --dir`",
		    "recordings cannot be written under %s: %s", dir, strerror(errno));
		return;
	}
	d9_u64 avail = (d9_u64)v.f_bavail * v.f_frsize / MIB;
	bool enough = avail >= DISK_WANTED_MIB;
	say(d, enough ? HEALTH_OK : HEALTH_WARN, "output", enough ? NULL : "free some, or set D9_TOTAL_MB lower",
	    "recordings go under %s, %lu MiB free%s", dir, avail, enough ? "" : ", less than a session may take");
}

/* ---- privileges ------------------------------------------------------------------------------------------------------------ */

/* By trying, as a program with D9_PERF would. */
static int try_perf(void)
{
	const struct d9_perf_options o = {.ring_bytes = 16384};
	struct d9_perf *p =
		mmap(NULL, d9_perf_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	int r = d9_perf_open(p, &o);
	d9_perf_close(p);
	munmap(p, d9_perf_bytes());
	return r;
}

static void see_perf(struct doctor *d)
{
	char text[32];
	int r = try_perf();
	read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text));
	say(d, r ? HEALTH_WARN : HEALTH_OK, "perf",
	    r ? "only D9_PERF needs it, where d9-kernel may not run: sysctl kernel.perf_event_paranoid=2" : NULL,
	    "D9_PERF %s%s (perf_event_paranoid is %s)", r ? "would see nothing: " : "can watch context switches",
	    r ? d9_perf_why(r) : "", *text ? text : "not there");
}

static void see_yama(struct doctor *d)
{
	char text[32];
	read_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));
	say(d, HEALTH_OK, "yama", NULL, "yama ptrace_scope is %s (recording needs no ptrace)",
	    *text ? text : "not there");
}

/* Runs f in a child, so that what it changes is gone afterwards.  Its result, or -1. */
static int in_child(int (*f)(void))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(f());
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static int try_close_range(void)
{
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
	return syscall(SYS_close_range, ~0u, ~0u, 2 /* CLOSE_RANGE_UNSHARE */) == 0 ? 0 : 1;
}

static void see_close_range(struct doctor *d)
{
	bool works = in_child(try_close_range) == 0;
	say(d, works ? HEALTH_OK : HEALTH_WARN, "close-range",
	    works ? NULL : "nothing to be done: the drain thread then shares the program's descriptor table",
	    "CLOSE_RANGE_UNSHARE %s", works ? "works" : "is not there (kernels before 5.11)");
}

/* ---- the recorder ------------------------------------------------------------------------------------------------------------ */

/* /bin/true under the shim, recording into dir; what it or the loader says goes to dir/said. */
static int start_trial(const char *shim, const char *dir, pid_t *ret)
{
	char said[PATH_MAX + 8];
	snprintf(said, sizeof(said), "%s/said", dir);
	fflush(NULL);
	*ret = fork();
	if (*ret < 0)
		return -errno;
	if (*ret)
		return 0;
	int fd = open(said, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		_exit(125);
	clearenv();
	setenv("LD_PRELOAD", shim, 1);
	setenv("D9_DIR", dir, 1);
	execl("/bin/true", "true", (char *)NULL);
	_exit(127);
}

/* Waits with a limit: a doctor must come back even from a recorder that hangs. */
static int wait_trial(pid_t pid)
{
	int status;
	for (int ms = 0; ms < TRIAL_MS; ms += 10) {
		pid_t r = waitpid(pid, &status, WNOHANG);
		if (r == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static unsigned n_folders;
static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path, (void)st;
	n_folders += type == FTW_D && ftw->level == 1;
	return 0;
}

static void judge_trial(struct doctor *d, const char *dir, int code)
{
	char said[PATH_MAX + 8], text[256];
	snprintf(said, sizeof(said), "%s/said", dir);
	read_line(said, text, sizeof(text));
	n_folders = 0;
	nftw(dir, count_one, 8, FTW_PHYS);
	if (code != 0)
		say(d, HEALTH_FAIL, "trial", "this is a fault of d9shim: please report it",
		    "/bin/true under the recorder %s (%d)", code < 0 ? "did not end" : "failed", code);
	else if (*text)
		say(d, HEALTH_FAIL, "trial",
		    "put libd9shim.so where every user may read it, on a file system without noexec",
		    "the loader did not take it: %s", text);
	else if (!n_folders)
		say(d, HEALTH_WARN, "trial", "set D9_LOG to a file to see why",
		    "/bin/true ran under the recorder, but nothing was recorded");
	else
		say(d, HEALTH_OK, "trial", NULL, "/bin/true ran under the recorder and was recorded");
}

static void see_trial(struct doctor *d, const char *shim)
{
	char dir[] = "/tmp/d9-doctor-XXXXXX";
	pid_t pid;
	if (!mkdtemp(dir)) {
		say(d, HEALTH_WARN, "trial", NULL, "no trial: a folder in /tmp cannot be made: %s", strerror(errno));
		return;
	}
	int r = start_trial(shim, dir, &pid);
	if (r < 0)
		say(d, HEALTH_WARN, "trial", NULL, "no trial: %s", strerror(-r));
	else
		judge_trial(d, dir, wait_trial(pid));
	nftw(dir, remove_one, 8, FTW_PHYS | FTW_DEPTH);
}

/* d9-kernel beside ourselves for a moment. */
static void see_kernel_side(struct doctor *d)
{
	char path[PATH_MAX];
	struct d9_run_kernel k = {.mode = D9_KERNEL_ON};
	if (d9_kernel_path(path, sizeof(path))) {
		say(d, HEALTH_WARN, "kernel-side",
		    "build it: meson setup -Dkernel=enabled (needs clang, llvm, bpftool, libbpf 1.0)",
		    "d9-kernel was not found beside d9: waits for a CPU and sleeps in the kernel are not recorded");
		return;
	}
	/* It writes nothing before it is ended. */
	bool works = d9_run_kernel_start(&k, getpid(), "/tmp");
	d9_run_kernel_drop(&k);
	say(d, works ? HEALTH_OK : HEALTH_WARN, "kernel-side",
	    works ? NULL : "only the kernel's side of a recording needs it", "%s",
	    works ? "d9-kernel works here" : k.why);
}

/* A hook is live if the recorder exports it and this host's libc has it to be stood in for. */
static void see_hooks(struct doctor *d, const char *shim)
{
	static struct d9_elf_facts own, libc;
	char path[PATH_MAX], missing[200] = "";
	size_t n, live = 0, functions = 0;
	const struct d9_hook_row *rows = d9_hook_rows(&n);
	if (!n || d9_elf_facts_read(shim, &own) < 0)
		return;
	bool has_libc = d9_find_library(&own, shim, "", "libc.so.6", path, sizeof(path)) == 0 &&
			d9_elf_facts_read(path, &libc) == 0;
	for (size_t i = 0; i < n; i++) {
		if (rows[i].primitive)
			continue;
		functions++;
		if (d9_elf_facts_export(&own, rows[i].name) &&
		    (!has_libc || d9_elf_facts_export(&libc, rows[i].name))) {
			live++;
			continue;
		}
		size_t used = strlen(missing);
		snprintf(missing + used, sizeof(missing) - used, " %s", rows[i].name);
	}
	say(d, live ? HEALTH_OK : HEALTH_FAIL, "hooks",
	    live ? NULL : "build d9shim anew: the library and d9 do not belong together",
	    "%zu of %zu hooks are live%s%s", live, functions, *missing ? "; not here:" : "", missing);
	d9_elf_facts_fini(&own);
	d9_elf_facts_fini(&libc);
}

static void see_shim(struct doctor *d)
{
	char path[PATH_MAX];
	int r = d9_shim_path(path, sizeof(path));
	if (r == -EINVAL) {
		say(d, HEALTH_FAIL, "shim", "move it: LD_PRELOAD cannot hold a path with a space or a colon",
		    "libd9shim.so is at %s", path);
		return;
	}
	if (r < 0) {
		say(d, HEALTH_FAIL, "shim", "install it beside d9 or in ../lib", "libd9shim.so was not found near d9");
		return;
	}
	say(d, HEALTH_OK, "shim", NULL, "libd9shim.so is %s", path);
	see_trial(d, path);
	see_hooks(d, path);
}

/* ---- the command --------------------------------------------------------------------------------------------------------------- */

static int print_json(const struct doctor *d)
{
	struct d9_json j;
	d9_json_document(&j, stdout, "doctor");
	d9_json_array(&j, "checks");
	for (unsigned i = 0; i < d->n; i++) {
		d9_json_object(&j, NULL);
		d9_json_str(&j, "id", d->lines[i].id);
		d9_json_str(&j, "state", health_names[d->lines[i].health]);
		d9_json_str(&j, "text", d->lines[i].text);
		d9_json_str(&j, "advice", d->lines[i].advice[0] ? d->lines[i].advice : NULL);
		d9_json_end_object(&j);
	}
	d9_json_end_array(&j);
	return d9_json_end_document(&j);
}

int d9_cmd_doctor(const struct d9_cmd *self, int argc, char **argv)
{
	static void (*const subjects[])(struct doctor *) = {
		see_kernel, see_glibc,  see_clock, see_seccomp,     see_shm,  see_populate,    see_huge_pages,
		see_memory, see_output, see_perf,  see_kernel_side, see_yama, see_close_range, see_shim};
	static struct doctor d;
	const char *json = NULL;
	const struct d9_opt opts[] = {{"--json", false, &json}};
	unsigned n = 0;
	bool failed = false;
	int r = d9_opts_parse(self, argc, argv, opts, 1, NULL, 0, &n);
	if (r)
		return r - 1;
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		subjects[i](&d);
	for (unsigned i = 0; i < d.n; i++)
		failed |= d.lines[i].health == HEALTH_FAIL;
	if (json)
		return print_json(&d) < 0 ? D9_EXIT_DATA : failed ? D9_EXIT_CONDITION : D9_EXIT_OK;
	for (unsigned i = 0; i < d.n; i++) {
		struct line *l = &d.lines[i];
		printf("%-5s %s\n", health_names[l->health], d9_clean(l->text, strlen(l->text)));
		if (l->advice[0])
			printf("      -> %s\n", d9_clean(l->advice, strlen(l->advice)));
	}
	return failed ? D9_EXIT_CONDITION : D9_EXIT_OK;
}
