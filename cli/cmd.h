/*
 * The commands of d9 and what they share: one row in main.c's table, one function per command, the
 * options that every reading command takes.
 */
#ifndef D9_CLI_CMD_H
#define D9_CLI_CMD_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

enum d9_exit { D9_EXIT_OK = 0, D9_EXIT_CONDITION = 1, D9_EXIT_USAGE = 2, D9_EXIT_DATA = 3, D9_EXIT_PERMISSION = 4 };

struct d9_cmd {
	const char *name;
	int (*run)(const struct d9_cmd *self, int argc,
		   char **argv); /* argv[0] is the command's name; returns enum d9_exit */
	const char *synopsis;    /* "[--fail-if EXPR] [--top N] [DIR]" */
	const char *summary;     /* one line for `d9 --help` */
	const char *help;        /* options, a line each, then an example */
};

int d9_cmd_run(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_report(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_hist(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_spans(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_runq(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_disk(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_syscalls(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_offcpu(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_locks(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_tasks(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_task(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_dump(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_status(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_ctl(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_recover(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_check(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_doctor(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_schema(const struct d9_cmd *self, int argc, char **argv);
int d9_cmd_help(const struct d9_cmd *self, int argc, char **argv);

/* What lies in a traces folder and is a link leads out of it: nobody follows it. */
bool d9_is_link(const char *path);

/* ---- options of reading commands -------------------------------------------------------------- */

struct d9_time {
	enum { D9_TIME_UNSET, D9_TIME_FROM_START, D9_TIME_BEFORE_END, D9_TIME_REAL } kind;
	d9_u64 ns; /* after the start, before the end, or since the epoch */
};
struct d9_read_opts {
	const char *dir;     /* resolved: operand, else $D9_DIR, else ./d9-traces, else /var/tmp/d9-UID */
	const char *session; /* NULL = newest; "all" */
	bool json;
	struct d9_time from, to;
	d9_i64 pid;          /* -1 = all */
	const char *thread;  /* TID or name, NULL = all */
	const char *operand; /* first operand where the command takes one before DIR (hist KIND), else NULL */
};
/* An option of one command: "--top" with a value, or a flag. */
struct d9_opt {
	const char *name;
	bool has_value;
	const char **value; /* set to the value, or to "" for a flag */
};
/*
 * Parses argv (options may follow operands, `--name value` and `--name=value`).  n_operands: how many stand before DIR.
 * 0 = go on; else the exit code + 1 to return (so --help gives 1 = D9_EXIT_OK + 1), already told on stderr or stdout.
 */
int d9_read_opts_parse(const struct d9_cmd *self, int argc, char **argv, unsigned n_operands,
		       const struct d9_opt *extra, unsigned n_extra, struct d9_read_opts *ret);

/* The same for a command that reads no recording: operands[] takes up to max_operands, *ret_n says how many there were. */
int d9_opts_parse(const struct d9_cmd *self, int argc, char **argv, const struct d9_opt *opts, unsigned n_opts,
		  const char **operands, unsigned max_operands, unsigned *ret_n);

/* "10" -> 10; at most a million.  0 or -EINVAL. */
int d9_parse_count(const char *s, size_t *ret);
/* "10ms", "1.5s", "250us", "100ns", "2m" -> ns.  0 or -EINVAL. */
int d9_parse_duration(const char *s, d9_u64 *ret_ns);
/* ns as a person reads it: "253 ms", "1.20 s", "85 us".  buf of 32. Returns buf. */
const char *d9_format_duration(d9_u64 ns, char *buf);

/* `d9: MESSAGE` on stderr; returns code. */
int d9_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same of what is no reason to give up. */
void d9_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
