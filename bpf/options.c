/* See options.h. */
#include "options.h"
#include "say.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)

static const char help[] =
	"Usage: d9-kernel --pid PID | --session DIR | --comm REGEX | --cgroup PATH [OPTION]...\n"
	"\n"
	"Records what the kernel knows of a process and the preloaded recorder cannot: how long its threads\n"
	"could run and were given no CPU, who had it, and where they slept in the kernel. Writes\n"
	"k-NNNNNN.d9 beside the recorder's segments, or into a folder of its own; d9 reads both. Says\n"
	"`ready` once it records, and ends on SIGINT, SIGTERM or with its last target. Threads and children\n"
	"that a target makes from then on are followed.\n"
	"\n"
	"  --pid PID          this process\n"
	"  --session DIR      all that live and are recorded into this folder, of traces or of one process\n"
	"  --comm REGEX       processes of this name, also those to come (extended, the whole name)\n"
	"  --cgroup PATH      processes of this control group, also those to come\n"
	"  --dir D            traces folder (default: $D9_DIR, ./d9-traces if it is there, /var/tmp/d9-UID)\n"
	"  --runq-min DUR     shortest wait for a CPU with a record of its own (50us); all are counted\n"
	"  --offcpu-min DUR   shortest sleep, and request to a disk, that is recorded (1ms)\n"
	"  --user-stacks      with the program's stack, by frame pointers: about 1 us for each sleep\n"
	"  --wakers           with who woke a thread on an idle CPU, too, and since when: some tens of ns\n"
	"                     for each wake of the machine\n"
	"  --syscalls DUR     with system calls that take as long, sleeping or not: 0.2 us for each call of\n"
	"                     every process\n"
	"  --ring-mb N        memory between the kernel and d9-kernel, a power of two (4)\n"
	"  --help, --version\n"
	"\n"
	"DUR is a number and ns, us, ms, s or m. D9_SEGMENT_MB, D9_ROTATE_SECS and D9_TOTAL_MB hold as for\n"
	"the recorder.\n"
	"\n"
	"Needs root, or CAP_BPF and CAP_PERFMON, and CAP_SYSLOG for the names of kernel functions:\n"
	"  setcap cap_bpf,cap_perfmon,cap_syslog+ep d9-kernel\n"
	"Exit codes: 0 done, 2 usage, 3 no such target or nothing to attach to, 4 permission.\n";

enum {
	OPT_PID = 1,
	OPT_SESSION,
	OPT_COMM,
	OPT_CGROUP,
	OPT_DIR,
	OPT_RUNQ,
	OPT_OFFCPU,
	OPT_STACKS,
	OPT_SYSCALLS,
	OPT_WAKERS,
	OPT_RING,
	OPT_HELP,
	OPT_VERSION
};
static const struct option options[] = {
	{"pid", required_argument, NULL, OPT_PID},           {"session", required_argument, NULL, OPT_SESSION},
	{"comm", required_argument, NULL, OPT_COMM},         {"cgroup", required_argument, NULL, OPT_CGROUP},
	{"dir", required_argument, NULL, OPT_DIR},           {"runq-min", required_argument, NULL, OPT_RUNQ},
	{"offcpu-min", required_argument, NULL, OPT_OFFCPU}, {"user-stacks", no_argument, NULL, OPT_STACKS},
	{"syscalls", required_argument, NULL, OPT_SYSCALLS}, {"wakers", no_argument, NULL, OPT_WAKERS},
	{"ring-mb", required_argument, NULL, OPT_RING},      {"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},         {NULL, 0, NULL, 0}};

/* A whole number up to max and nothing else. */
static bool number(const char *s, d9_u64 max, d9_u64 *ret)
{
	d9_u64 v = 0;
	if (!*s)
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (d9_u64)(*s - '0');
		if (v > max)
			return false;
	}
	*ret = v;
	return !*s;
}

static bool duration(const char *s, d9_u64 *ret)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}};
	char *end;
	if (*s < '0' || *s > '9')
		return false;
	double v = strtod(s, &end);
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].unit) && v * units[i].ns <= 1e15) {
			*ret = (d9_u64)(v * units[i].ns);
			return true;
		}
	return false;
}

static int set_target(struct d9_koptions *o, enum d9_kby by, const char *what)
{
	if (o->by != D9_KBY_NOTHING)
		return d9_ksay_fail(D9_KEXIT_USAGE, "one of --pid, --session, --comm and --cgroup, and once");
	o->by = by;
	o->what = what;
	d9_u64 pid = 0;
	if (by == D9_KBY_PID && (!number(what, 0x7fffffff, &pid) || !pid))
		return d9_ksay_fail(D9_KEXIT_USAGE, "--pid takes a process id, not `%s`", what);
	o->pid = (int)pid;
	char whole[512];
	int n = snprintf(whole, sizeof(whole), "^(%s)$", what);
	if (by == D9_KBY_COMM && (n >= (int)sizeof(whole) || regcomp(&o->comm, whole, REG_EXTENDED | REG_NOSUB)))
		return d9_ksay_fail(D9_KEXIT_USAGE, "--comm takes an extended regular expression, not `%s`", what);
	return 0;
}

static int set_duration(const char *name, const char *s, d9_u64 *ret)
{
	return duration(s, ret) ? 0
				: d9_ksay_fail(D9_KEXIT_USAGE, "--%s takes a duration such as 50us, not `%s`", name, s);
}

static int set_ring(struct d9_koptions *o, const char *s)
{
	d9_u64 mb;
	if (!number(s, 1024, &mb) || !mb || (mb & (mb - 1)))
		return d9_ksay_fail(D9_KEXIT_USAGE, "--ring-mb takes a power of two from 1 to 1024, not `%s`", s);
	o->ring_bytes = mb * MIB;
	return 0;
}

/* 0, exit code, or -1: was answered. */
static int set(struct d9_koptions *o, int opt, const char *v)
{
	switch (opt) {
	case OPT_PID:
		return set_target(o, D9_KBY_PID, v);
	case OPT_SESSION:
		return set_target(o, D9_KBY_SESSION, v);
	case OPT_COMM:
		return set_target(o, D9_KBY_COMM, v);
	case OPT_CGROUP:
		return set_target(o, D9_KBY_CGROUP, v);
	case OPT_DIR:
		o->dir = v;
		return *v ? 0 : d9_ksay_fail(D9_KEXIT_USAGE, "--dir takes a folder");
	case OPT_RUNQ:
		return set_duration("runq-min", v, &o->runq_min_ns);
	case OPT_OFFCPU:
		return set_duration("offcpu-min", v, &o->offcpu_min_ns);
	case OPT_STACKS:
		o->user_stacks = true;
		return 0;
	case OPT_SYSCALLS:
		o->syscalls = true;
		return set_duration("syscalls", v, &o->syscall_min_ns);
	case OPT_WAKERS:
		o->wakers = true;
		return 0;
	case OPT_RING:
		return set_ring(o, v);
	case OPT_HELP:
		fputs(help, stdout);
		return -1;
	case OPT_VERSION:
		puts("d9-kernel " D9_VERSION);
		return -1;
	}
	return d9_ksay_fail(D9_KEXIT_USAGE, "see d9-kernel --help");
}

/* As the recorder does: a value out of its range is not used, and that is said. */
static d9_u64 from_env(const char *name, d9_u64 def, d9_u64 min, d9_u64 max)
{
	const char *s = getenv(name);
	d9_u64 v;
	if (!s)
		return def;
	if (number(s, max, &v) && v >= min)
		return v;
	d9_ksay_warn("%s=%s is not a whole number from %llu to %llu; using %llu", name, s, (unsigned long long)min,
		     (unsigned long long)max, (unsigned long long)def);
	return def;
}

int d9_koptions_parse(struct d9_koptions *o, int argc, char **argv)
{
	*o = (struct d9_koptions){.runq_min_ns = 50000, .offcpu_min_ns = 1000000, .ring_bytes = 4 * MIB};
	for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		int r = set(o, opt, optarg);
		if (r)
			return r < 0 ? D9_KEXIT_OK + 1 : r + 1;
	}
	if (optind < argc)
		return d9_ksay_fail(D9_KEXIT_USAGE, "does not know what to do with `%s`; see d9-kernel --help",
				    argv[optind]) +
		       1;
	if (o->by == D9_KBY_NOTHING)
		return d9_ksay_fail(D9_KEXIT_USAGE,
				    "takes one of --pid, --session, --comm and --cgroup; see d9-kernel --help") +
		       1;
	o->segment_bytes = from_env("D9_SEGMENT_MB", 16, 1, 1024) * MIB;
	o->rotate_ns = from_env("D9_ROTATE_SECS", 60, 1, 86400) * 1000000000ull;
	o->total_bytes = from_env("D9_TOTAL_MB", 256, 2, 1u << 20) * MIB;
	return 0;
}

void d9_koptions_fini(struct d9_koptions *o)
{
	if (o->by == D9_KBY_COMM)
		regfree(&o->comm);
}
