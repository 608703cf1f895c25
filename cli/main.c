/*
 * d9: the table of commands, and what is left to do without one: help, version, and the refusal of
 * what is not there.
 */
#include "cmd.h"
#include "schema.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In the order in which a newcomer needs them. */
static const struct d9_cmd commands[] = {
	{"run", d9_cmd_run, "[--dir D] [--kernel auto|on|off] [--quiet] [--OPTION=VALUE]... -- CMD [ARG]...",
	 "Record a program.",
	 "  --dir D        folder of the recording (default: $D9_DIR, else ./d9-traces)\n"
	 "  --kernel WHEN  auto, on or off: with d9-kernel, which records waits for a CPU and sleeps in the kernel; "
	 "auto (the default): if it\n"
	 "                 is there and may (root, or `setcap cap_bpf,cap_perfmon,cap_syslog+ep` on it)\n"
	 "  --quiet        no summary at the end\n"
	 "  --OPTION=VALUE as the environment variable D9_OPTION, e.g. --segment-mb=4; `d9 help env` lists them\n"
	 "Exits as CMD does, 128+N if signal N killed it; 125 if d9 itself failed, 126 CMD cannot be executed, 127 not "
	 "found.\n\n"
	 "Example:\n"
	 "  d9 run -- redis-server --port 7777\n"},
	{"report", d9_cmd_report, "[--fail-if EXPR] [--top N] [DIR]",
	 "Say who stood still, how long, on what and holding up whom.",
	 "  --top N         how many of the longest spans (10)\n"
	 "  --stacks        whole stacks instead of their first lines\n"
	 "  --fail-if EXPR  exit 1 if one of the conditions holds: poll.p99>20ms,critical>0,lock-contention>=1\n"
	 "                  (poll wait wake runq offcpu, with .p50 .p99 .max; findings, critical, dropped or the id of "
	 "a "
	 "finding)\n\n"
	 "Example:\n"
	 "  d9 report --fail-if 'critical>0,poll>250ms' ./d9-traces\n"},
	{"spans", d9_cmd_spans, "[--longer DUR] [--kind KIND] [DIR]", "List what took longest.",
	 "  --longer DUR    no shorter ones\n"
	 "  --kind KIND     a family of hooks (epoll, futex, read, ...), park, poll-span, wake, queue, runq or "
	 "offcpu\n\n"
	 "Example:\n"
	 "  d9 spans --kind poll-span --longer 10ms\n"},
	{"locks", d9_cmd_locks, "[DIR]", "List what threads waited for, who waited and who held it.",
	 "Example:\n"
	 "  d9 locks --json | jq '.locks[0].holders'\n"},
	{"runq", d9_cmd_runq, "[--worst N] [DIR]", "Tell how long threads that could run had no CPU, and who had it.",
	 "  --worst N       how many of the longest waits (10)\n"
	 "Needs the kernel's side of the recording: `d9 run --kernel on`, or d9-kernel beside the service.  Sums and "
	 "percentiles\n"
	 "are of all waits, single ones are told from d9-kernel's --runq-min up.\n\n"
	 "Example:\n"
	 "  d9 runq --worst 20\n"},
	{"offcpu", d9_cmd_offcpu, "[--folded] [DIR]",
	 "Tell what threads waited for in the kernel, by cause and by thread.",
	 "  --folded        lines for a flame graph: thread;program's frames;system call;kernel frames, and "
	 "microseconds\n"
	 "Needs the kernel's side of the recording: `d9 run --kernel on`, or d9-kernel beside the service.  Told are "
	 "waits "
	 "from\n"
	 "d9-kernel's --offcpu-min up, without the time that a thread then waited for a CPU, which stands beside "
	 "it.\n\n"
	 "Example:\n"
	 "  d9 offcpu --folded | flamegraph.pl > offcpu.svg\n"},
	{"disk", d9_cmd_disk, "[--worst N] [DIR]",
	 "Tell of requests to disks: how long they took, by device and operation, and who made them.",
	 "  --worst N       how many of the longest (10)\n"
	 "Needs the kernel's side of the recording: `d9 run --kernel on`, or d9-kernel beside the service.  Told are "
	 "requests from\n"
	 "d9-kernel's --offcpu-min up.\n\n"
	 "Example:\n"
	 "  d9 disk --worst 20\n"},
	{"syscalls", d9_cmd_syscalls, "[--worst N] [DIR]",
	 "Tell of slow system calls, sleeping or not: by call, and the longest with their arguments.",
	 "  --worst N       how many of the longest (20)\n"
	 "Needs a recording that `d9-kernel --syscalls DUR` made beside the service; it costs each call of every "
	 "process "
	 "0.2 us.\n\n"
	 "Example:\n"
	 "  d9-kernel --pid $(pidof service) --syscalls 10ms; d9 syscalls\n"},
	{"tasks", d9_cmd_tasks, "[--longest-poll|--most-polls|--idle] [--name RE] [DIR]",
	 "List the tasks of Tokio, or that a program told of (shim/d9.h).",
	 "  --longest-poll  the one with the longest poll first, which is the default\n"
	 "  --most-polls    the one that was polled most often first\n"
	 "  --idle          those that wait for a wake, the one that waits longest first\n"
	 "  --name RE       those whose name matches the extended regular expression\n\n"
	 "Example:\n"
	 "  d9 tasks --idle --name 'accept|conn'\n"},
	{"task", d9_cmd_task, "KEY [DIR]", "Tell the life of one task.",
	 "KEY is PID:MODULE:ID as `d9 tasks` prints it, or ID alone where one task has it.\n\n"
	 "Example:\n"
	 "  d9 task 4711:0:17\n"},
	{"hist", d9_cmd_hist, "KIND [DIR]", "Show how durations of one kind are spread.",
	 "KIND is a family of hooks (epoll, futex, read, ...), or what follows from them: park; poll-span, between "
	 "two\n"
	 "parks; wake, from what the waker did to the waiter's return; queue, from the wake of a task to its poll, "
	 "where\n"
	 "the program tells of its tasks (shim/d9.h); runq and offcpu, waits for a CPU and in the kernel, where "
	 "d9-kernel took\n"
	 "part.\n\n"
	 "Example:\n"
	 "  d9 hist poll-span\n"},
	{"dump", d9_cmd_dump, "[DIR]", "Print every event, a line each, in the order in which they began.",
	 "  --stacks        stacks too (with --json)\n"
	 "Definitions (proc, thread, module, hook, site, clock, info, custom_type) are no lines: what refers to them "
	 "has\n"
	 "their names.\n\n"
	 "Example:\n"
	 "  d9 dump --json | grep '\"pending\"'\n"},
	{"status", d9_cmd_status, "[--metrics] [--json] [PID|DIR]",
	 "Say what is being recorded, and what is wrong with it.",
	 "  --metrics  for a metrics collector (OpenMetrics text)\n"
	 "  --json     one JSON document on stdout\n\n"
	 "Example:\n"
	 "  d9 status --metrics\n"},
	{"ctl", d9_cmd_ctl, "PID on|off|flush", "Turn recording on or off, or have everything written out now.",
	 "The order goes through shared memory: no signal, no socket, no thread in the program.\n\n"
	 "Example:\n"
	 "  d9 ctl 4711 off\n"},
	{"recover", d9_cmd_recover, "[DIR]", "Write out what programs that died left in shared memory.",
	 "Reading commands see it anyway; recover makes it segments and frees the memory.\n\n"
	 "Example:\n"
	 "  d9 recover /var/tmp/d9-0\n"},
	{"check", d9_cmd_check, "[--json] BINARY|PID", "Say what will be seen in a program, and what will not.",
	 "  --json   one JSON document on stdout\n"
	 "A script stands for its interpreter, a name without a slash is looked for on PATH.\n"
	 "Exits 1 if something will not be seen: then a line marked `unseen` says what.\n\n"
	 "Example:\n"
	 "  d9 check /usr/sbin/nginx && d9 run -- /usr/sbin/nginx\n"},
	{"doctor", d9_cmd_doctor, "[--json]", "Say what this host lets the recorder do.",
	 "  --json   one JSON document on stdout\n"
	 "Each line is ok, warn or fail, with what to do; exits 1 if one is fail.\n\n"
	 "Example:\n"
	 "  D9_DIR=/srv/traces d9 doctor\n"},
	{"schema", d9_cmd_schema, "[--events] [--hooks] [--options] [--findings] [--md]",
	 "Print the tables of events, hooks, options and findings.",
	 "  --events --hooks --options --findings   these alone\n"
	 "  --md     as a document; JSON otherwise\n\n"
	 "Example:\n"
	 "  d9 schema --events --md > EVENTS.md\n"},
	{"help", d9_cmd_help, "[COMMAND|env]", "Say what a command does, or what environment variables there are.",
	 "Example:\n"
	 "  d9 help env\n"},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Named so that a script which meets an older d9 is told the truth, not "no command". */
static const char *const not_built[] = {"top", "view", "export", "flame", "attach", "diff", "ship"};

static const struct d9_cmd *find(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int refuse(const char *name)
{
	for (size_t i = 0; i < sizeof(not_built) / sizeof(not_built[0]); i++)
		if (!strcmp(not_built[i], name))
			return d9_fail(D9_EXIT_USAGE,
				       "`%s` is not built in this version; `d9 --help` lists the commands that are",
				       name);
	if (name[0] == '-')
		return d9_fail(D9_EXIT_USAGE, "unknown option %s; a command comes first, `d9 --help` lists them", name);
	return d9_fail(D9_EXIT_USAGE, "`%s` is no command; `d9 --help` lists them", name);
}

static void print_usage(FILE *f)
{
	fputs("Usage: d9 COMMAND [OPTION]... [OPERAND]...\n\n"
	      "Records what unmodified programs wait for, and says who stood still, how long and why.\n\n",
	      f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(f, "  %-8s  %s\n", commands[i].name, commands[i].summary);
	fputs("\n`d9 COMMAND --help` explains one of them; `d9 --version` prints the version.\n", f);
}

int d9_cmd_help(const struct d9_cmd *self, int argc, char **argv)
{
	const char *name = NULL;
	unsigned n = 0;
	int r = d9_opts_parse(self, argc, argv, NULL, 0, &name, 1, &n);
	if (r)
		return r - 1;
	if (!n) {
		print_usage(stdout);
		return D9_EXIT_OK;
	}
	if (!strcmp(name, "env"))
		return d9_help_env();
	const struct d9_cmd *cmd = find(name);
	if (!cmd)
		return refuse(name);
	char *args[] = {(char *)cmd->name, (char *)"--help", NULL};
	return cmd->run(cmd, 2, args);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return D9_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("d9 " D9_VERSION);
		return D9_EXIT_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_usage(stdout);
		return D9_EXIT_OK;
	}
	const struct d9_cmd *cmd = find(argv[1]);
	return cmd ? cmd->run(cmd, argc - 1, argv + 1) : refuse(argv[1]);
}

/* Session memory is mapped where orders are given and where it is drained, and who owns the file may cut it off meanwhile. */
static int code_if_cut_off = D9_EXIT_DATA;
static void cut_off(int sig)
{
	static const char text[] =
		"d9: session memory was cut off while it was in use; whoever may write to the file did it\n";
	(void)sig;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(code_if_cut_off);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "run"))
		code_if_cut_off = 125;
	signal(SIGBUS, cut_off);
	int code = dispatch(argc, argv);
	/* A full disk behind stdout must not look like success to the script that reads it. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && code < D9_EXIT_USAGE)
		return d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno));
	return code;
}
