/*
 * d9 run: starts a program with the recorder preloaded, drains it from outside, ends as it ends.  The program is
 * a plain child: same terminal, same process group, signals as they were.
 */
#include "check.h"
#include "cmd.h"
#include "run_families.h"
#include "run_kernel.h"
#include "run_perf.h"
#include "shim_path.h"

#include "shim/clock.h"
#include "shim/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>

enum { EXIT_OWN = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };
#define ROUND_MS 20
#define LOOK_NS 2000000000ull /* when it should have been seen that something is recorded */

struct run {
	const char *dir;
	bool quiet, unsupported; /* the last: said already why nothing is recorded */
	char **cmd;
	char abs_dir[PATH_MAX], shim[PATH_MAX], name[40];
	sigset_t old_mask; /* the program gets this and what follows as d9 got it */
	struct sigaction old_child, old_fsize;
	int signals; /* signalfd */
	pid_t pid;
	struct d9_families *families;
	struct d9_run_kernel kernel;
	struct d9_run_perf perf;
	bool wants_perf; /* D9_PERF */
};

/* ---- options ------------------------------------------------------------------------------------------- */

/* "--segment-mb=4" is D9_SEGMENT_MB=4; check_environment() judges them all together: some values depend on others. */
static int set_option(const char *arg)
{
	char name[64] = "D9_";
	const char *eq = strchr(arg, '=');
	size_t n = 3;
	if (!eq)
		return d9_fail(D9_EXIT_USAGE,
			       "unknown option %s; recorder options are --NAME=VALUE, `d9 help env` lists them", arg);
	for (const char *p = arg + 2; p < eq && n + 1 < sizeof(name); p++)
		name[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	name[n] = 0;
	return setenv(name, eq + 1, 1) ? d9_fail(EXIT_OWN, "out of memory") : 0;
}

static int set_kernel(struct run *r, const char *mode)
{
	static const char *const modes[] = {"auto", "on", "off"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(mode, modes[i])) {
			r->kernel.mode = (enum d9_kernel_mode)i;
			return 0;
		}
	return d9_fail(D9_EXIT_USAGE, "--kernel takes auto, on or off");
}

static int usage(const struct d9_cmd *self)
{
	printf("Usage: d9 run %s\n\n%s\n\n%s", self->synopsis, self->summary, self->help);
	return D9_EXIT_OK + 1;
}

/* 0, or exit code + 1. */
static int parse(const struct d9_cmd *self, int argc, char **argv, struct run *r)
{
	int i = 1;
	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *a = argv[i], *v = NULL;
		if (!strcmp(a, "--")) {
			i++;
			break;
		}
		if (!strcmp(a, "--help") || !strcmp(a, "-h"))
			return usage(self);
		if (!strcmp(a, "--quiet")) {
			r->quiet = true;
		} else if (!strcmp(a, "--dir") || !strncmp(a, "--dir=", 6)) {
			v = a[5] ? a + 6 : i + 1 < argc ? argv[++i] : NULL;
			if (!v || !*v)
				return d9_fail(D9_EXIT_USAGE, "--dir takes a folder") + 1;
			r->dir = v;
		} else if (!strcmp(a, "--kernel") || !strncmp(a, "--kernel=", 9)) {
			v = a[8] ? a + 9 : i + 1 < argc ? argv[++i] : "";
			if (set_kernel(r, v))
				return D9_EXIT_USAGE + 1;
		} else {
			int e = set_option(a);
			if (e)
				return e + 1;
		}
	}
	if (i >= argc)
		return d9_fail(D9_EXIT_USAGE, "run takes a command: d9 run -- CMD ARG...") + 1;
	r->cmd = argv + i;
	return 0;
}

/* A bad value is refused here, where a person can read it, rather than told in d9 status later. */
static int check_environment(struct run *r)
{
	extern char **environ;
	struct d9_config c;
	d9_config_from_env(&c, environ);
	r->wants_perf = c.perf;
	if (!c.warnings[0])
		return 0;
	c.warnings[strcspn(c.warnings, "\n")] = 0;
	char *semi = strrchr(c.warnings, ';'); /* what would be used instead does not apply: nothing is run */
	if (semi)
		*semi = 0;
	return d9_fail(D9_EXIT_USAGE, "%s", c.warnings);
}

/* ---- before the start ------------------------------------------------------------------------------------ */

static int make_dir(struct run *r)
{
	const char *dir = r->dir ? r->dir : getenv("D9_DIR");
	if (!dir || !*dir)
		dir = "d9-traces";
	if (mkdir(dir, 0700) && errno != EEXIST)
		return d9_fail(EXIT_OWN, "cannot make the folder %s: %s; --dir names another", dir, strerror(errno));
	if (!realpath(dir, r->abs_dir))
		return d9_fail(EXIT_OWN, "cannot use the folder %s: %s", dir, strerror(errno));
	if (access(r->abs_dir, W_OK | X_OK))
		return d9_fail(EXIT_OWN, "cannot write to the folder %s: %s; --dir names another", dir,
			       strerror(errno));
	return setenv("D9_DIR", r->abs_dir, 1) ? d9_fail(EXIT_OWN, "out of memory") : 0;
}

/*
 * What stands before us in LD_PRELOAD: a sanitizer that ends a program in which it does not come first.  -ENOTSUP: a program
 * of another libc, whose loader would refuse to start it with our library.
 */
static int first_library(const char *cmd, char *ret, size_t max)
{
	char path[PATH_MAX];
	struct d9_elf_facts *f = calloc(1, sizeof(*f));
	int r = 0;
	ret[0] = 0;
	if (!f || d9_find_program(cmd, path, sizeof(path)) || d9_elf_facts_glance(path, f))
		goto out; /* a script, or nothing that can be run: exec will say */
	for (unsigned i = 0; i < f->n_needed; i++)
		if ((strstr(f->needed[i], "libasan.so") || strstr(f->needed[i], "libclang_rt.asan")) &&
		    (d9_find_library(f, path, "", f->needed[i], ret, max) || strpbrk(ret, " :")))
			ret[0] = 0;
	if (strstr(f->interpreter, "ld-musl"))
		r = -ENOTSUP;
out:
	free(f);
	return r;
}

static int preload(struct run *r)
{
	char first[PATH_MAX];
	int e = d9_shim_path(r->shim, sizeof(r->shim));
	if (e == -EINVAL)
		return d9_fail(EXIT_OWN,
			       "the path %s holds a space or a colon, which LD_PRELOAD cannot; install it elsewhere",
			       r->shim);
	if (e)
		return d9_fail(EXIT_OWN, "libd9shim.so was not found beside d9; is it installed?");
	if (first_library(r->cmd[0], first, sizeof(first)) == -ENOTSUP) {
		r->unsupported = true;
		d9_warn("%s is built for musl, not for glibc: it runs, but nothing is recorded", r->cmd[0]);
		return 0;
	}
	const char *old = getenv("LD_PRELOAD");
	char *all = NULL;
	/* First, so that its hooks see the program's calls; what was there stays, and is what the hooks call. */
	if (asprintf(&all, "%s%s%s%s%s", first, *first ? ":" : "", r->shim, old && *old ? ":" : "", old ? old : "") <
		    0 ||
	    setenv("LD_PRELOAD", all, 1))
		return d9_fail(EXIT_OWN, "out of memory");
	free(all);
	return 0;
}

/* The name of this run: what its program starts carries it, and so tells whose it is. */
static int name_run(struct run *r)
{
	d9_u64 random[2];
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return d9_fail(EXIT_OWN, "the kernel gave no random bytes: %s", strerror(errno));
	snprintf(r->name, sizeof(r->name), "%016llx%016llx", (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	return setenv("D9_RUN", r->name, 1) ? d9_fail(EXIT_OWN, "out of memory") : 0;
}

/* ---- the program ------------------------------------------------------------------------------------------ */

static bool disabled(void)
{
	const char *enabled = getenv("D9_ENABLED");
	return enabled && !strcmp(enabled, "0");
}

/* In the child: waits for `go` to be closed, then becomes CMD.  A byte in it says that nothing is to be run. */
static _Noreturn void become(const struct run *r, int go, int said)
{
	char stop;
	ssize_t n;
	sigaction(SIGCHLD, &r->old_child, NULL);
	sigaction(SIGXFSZ, &r->old_fsize, NULL);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	do
		n = read(go, &stop, 1);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		_exit(EXIT_OWN);
	execvp(r->cmd[0], r->cmd);
	int e = errno;
	n = write(said, &e, sizeof(e));
	_exit(n == sizeof(e) ? EXIT_NOT_FOUND : EXIT_OWN);
}

/* The kernel's side is there before CMD begins, if it can be.  0, or what to end with: it was insisted on. */
static int start_kernel(struct run *r, int go)
{
	if (r->kernel.mode == D9_KERNEL_OFF || (r->kernel.mode == D9_KERNEL_AUTO && disabled()))
		return 0;
	if (d9_run_kernel_start(&r->kernel, r->pid, r->abs_dir) || r->kernel.mode == D9_KERNEL_AUTO)
		return 0;
	if (write(go, "", 1) != 1) /* then it was killed meanwhile */
		kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	return d9_fail(EXIT_OWN, "%s", r->kernel.why);
}

/* Starts CMD; what exec says comes through a pipe that a successful exec closes. */
static int start(struct run *r)
{
	int said[2], go[2], e = 0;
	if (pipe2(said, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return d9_fail(EXIT_OWN, "cannot make a pipe: %s", strerror(errno));
	r->pid = fork();
	if (r->pid < 0)
		return d9_fail(EXIT_OWN, "cannot fork: %s", strerror(errno));
	if (!r->pid) {
		close(go[1]);
		become(r, go[0], said[1]);
	}
	close(go[0]);
	close(said[1]);
	int failed = start_kernel(r, go[1]);
	if (r->kernel.pid)
		d9_families_hold(r->families);
	else if (!failed && r->wants_perf && !disabled()) /* what d9-kernel sees is all of it, and more */
		d9_run_perf_start(&r->perf, r->pid);
	close(go[1]);
	if (failed)
		return failed;
	ssize_t n;
	do
		n = read(said[0], &e, sizeof(e));
	while (n < 0 && errno == EINTR);
	close(said[0]);
	if (n != sizeof(e))
		return 0;
	waitpid(r->pid, NULL, 0);
	d9_run_kernel_drop(&r->kernel);
	return d9_fail(e == ENOENT || e == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "cannot run %s: %s",
		       r->cmd[0], strerror(e));
}

/* Said while there is still time to start it otherwise, not only when it has ended. */
static void check_arrival(const struct run *r)
{
	if (!r->quiet && !r->unsupported && !disabled() && !d9_families_count(r->families))
		d9_warn("nothing is recorded of %s so far: `d9 check %s` says why", r->cmd[0], r->cmd[0]);
}

/* Waits for the program and drains meanwhile.  Its waitpid status. */
static int attend(struct run *r)
{
	d9_u64 look = d9_mono_ns() + LOOK_NS;
	for (;;) {
		int status;
		struct pollfd p = {r->signals, POLLIN, 0};
		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			d9_families_ended(r->families, r->pid, status);
			return status;
		}
		d9_families_round(r->families);
		d9_run_perf_round(&r->perf, r->families);
		if (look && d9_mono_ns() > look) {
			look = 0;
			check_arrival(r);
		}
		if (poll(&p, 1, ROUND_MS) <= 0)
			continue;
		struct signalfd_siginfo si;
		/* What the terminal sends goes to the whole group, the program too; what a process sent is passed on. */
		if (read(r->signals, &si, sizeof(si)) == sizeof(si) && si.ssi_signo != SIGCHLD &&
		    si.ssi_code != SI_KERNEL)
			kill(r->pid, (int)si.ssi_signo);
	}
}

static void block_signals(struct run *r)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
	sigset_t s;
	sigemptyset(&s);
	for (const int *p = (const int[]){SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, 0}; *p;
	     p++)
		sigaddset(&s, *p);
	sigprocmask(SIG_BLOCK, &s, &r->old_mask);
	r->signals = signalfd(-1, &s, SFD_CLOEXEC | SFD_NONBLOCK);
	/* Over a file size limit a write says EFBIG, and d9 reports it. */
	sigaction(SIGXFSZ, &ignore, &r->old_fsize);
	/* Where it is ignored, as some service managers leave it, a child's end cannot be waited for. */
	sigaction(SIGCHLD, &usual, &r->old_child);
}

static void summarize(const struct run *r)
{
	const struct d9_families *f = r->families;
	unsigned n = d9_families_count(f);
	if (r->quiet || (!n && r->unsupported))
		return;
	if (!n && disabled()) {
		d9_warn("nothing was recorded, as D9_ENABLED=0 says");
		return;
	}
	if (!n) {
		d9_warn("nothing was recorded: libd9shim.so did not load into %s, or found no memory (ulimit -v) or no "
			"folder "
			"to record into; `d9 check %s` says more",
			r->cmd[0], r->cmd[0]);
		if (r->kernel.recorded)
			d9_warn("but its waits for a CPU and its sleeps, by d9-kernel: %s", r->abs_dir);
		return;
	}
	char lost[64] = "";
	if (d9_families_dropped(f))
		snprintf(lost, sizeof(lost), "; %llu events found no memory (D9_MEM_MB)",
			 (unsigned long long)d9_families_dropped(f));
	d9_warn("%u process famil%s, %llu records, %.1f MB in %s%s", n, n == 1 ? "y" : "ies",
		(unsigned long long)d9_families_events(f), (double)d9_families_bytes(f) / 1e6, r->abs_dir, lost);
	int why = 0;
	unsigned unwritten = d9_families_unwritten(f, &why);
	if (unwritten)
		d9_warn("what %u famil%s recorded could not all be written: %s; it is in shared memory still, and `d9 "
			"recover %s` writes it",
			unwritten, unwritten == 1 ? "y" : "ies", strerror(why), r->abs_dir);
	if (d9_families_left_out(f))
		d9_warn("%s", d9_families_left_out(f));
	if (r->kernel.why[0])
		d9_warn("nothing of the kernel's side is recorded: %s", r->kernel.why);
	if (r->perf.why)
		d9_warn("context switches were not watched (D9_PERF): %s", r->perf.why);
	d9_warn("d9 report %s", r->abs_dir);
}

int d9_cmd_run(const struct d9_cmd *self, int argc, char **argv)
{
	struct run r = {.signals = -1};
	int e = parse(self, argc, argv, &r);
	if (e)
		return e - 1;
	/* Again with the whole path of the folder: the recorder has room for so long a one only. */
	if ((e = check_environment(&r)) || (e = make_dir(&r)) || (e = name_run(&r)) || (e = check_environment(&r)))
		return e;
	r.families = d9_families_new(r.abs_dir, r.name);
	if (!r.families)
		return d9_fail(EXIT_OWN, "out of memory");
	block_signals(&r);
	/* The environment is the child's; what d9 itself starts would be recorded too, so it starts nothing else but d9-kernel, which loses it. */
	if ((e = preload(&r)) || (e = start(&r))) {
		d9_families_free(r.families);
		return e;
	}
	int status = attend(&r);
	d9_run_kernel_stop(&r.kernel,
			   r.quiet); /* before the families: it may still look for its folder by their memory */
	d9_run_perf_stop(&r.perf, r.families);
	d9_families_finish(r.families);
	summarize(&r);
	d9_families_free(r.families);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
