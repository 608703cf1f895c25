/*
 * What the commands share on their command line: one option parser, durations, moments, the folder
 * to read, and the sentence with which a command gives up.
 */
#include "cmd.h"
#include "clean.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define GO_ON 0
#define LEAVE(code) ((code) + 1) /* see d9_read_opts_parse */

static void say(const char *fmt, va_list ap)
{
	char text[8192];
	vsnprintf(text, sizeof(text), fmt, ap);
	fflush(stdout); /* so that the two streams read in the right order on a terminal */
	/* A name from outside may hold line ends and escapes; the message stays one line. */
	fprintf(stderr, "d9: %s\n", d9_clean(text, strlen(text)));
}

int d9_fail(int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return code;
}

void d9_warn(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

bool d9_is_link(const char *path)
{
	struct stat st;
	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

/* ---- durations -------------------------------------------------------------------------------- */

static d9_u64 unit_ns(const char *unit)
{
	static const struct {
		const char *name;
		d9_u64 ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(unit, units[i].name))
			return units[i].ns;
	return 0;
}

/* Integers all the way: 0.1s is 100000000 ns, not what a double makes of it. */
int d9_parse_duration(const char *s, d9_u64 *ret_ns)
{
	d9_u64 whole = 0, part = 0, scale = 1;
	const char *p = s;
	unsigned digits = 0;
	for (; *p >= '0' && *p <= '9'; p++, digits++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (d9_u64)(*p - '0'), &whole))
			return -EINVAL;
	if (digits == 0)
		return -EINVAL;
	if (*p == '.') {
		const char *first = ++p;
		for (; *p >= '0' && *p <= '9'; p++)
			if (scale < 1000000000) { /* digits below a nanosecond are dropped */
				part = part * 10 + (d9_u64)(*p - '0');
				scale *= 10;
			}
		if (p == first)
			return -EINVAL;
	}
	d9_u64 unit = unit_ns(p), ns;
	if (unit == 0 || __builtin_mul_overflow(whole, unit, &ns))
		return -EINVAL;
	/* part < 1e9 and unit <= 6e10, so this product cannot overflow */
	if (__builtin_add_overflow(ns, part * unit / scale, &ns))
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

int d9_parse_count(const char *s, size_t *ret)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || n > 1000000)
		return -EINVAL;
	*ret = n;
	return 0;
}

const char *d9_format_duration(d9_u64 ns, char *buf)
{
	static const struct {
		d9_u64 ns;
		const char *name;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
	if (ns >= 600000000000) {
		snprintf(buf, 32, "%lu m %lu s", ns / 60000000000, ns / 1000000000 % 60);
		return buf;
	}
	for (unsigned i = 0; i < 3; i++) {
		if (ns < units[i].ns - units[i].ns / 2000) /* 999.9 us is 1.00 ms, not 1000 us */
			continue;
		double v = (double)ns / (double)units[i].ns;
		int decimals = v < 9.995 ? 2 : v < 99.95 && i == 0 ? 1 : 0;
		snprintf(buf, 32, "%.*f %s", decimals, v, units[i].name);
		return buf;
	}
	snprintf(buf, 32, "%lu ns", ns);
	return buf;
}

/* ---- moments ---------------------------------------------------------------------------------- */

/* ".123456" -> ns; *p is moved behind it.  -1 if there is a point without digits. */
static long parse_fraction(const char **p)
{
	long ns = 0, scale = 100000000;
	if (**p != '.')
		return 0;
	const char *first = ++*p;
	for (; **p >= '0' && **p <= '9'; (*p)++, scale /= 10)
		ns += (**p - '0') * scale;
	return *p == first ? -1 : ns;
}

/* "Z" or "+02:00" -> seconds east of UTC.  The end of the string must follow. */
static int parse_zone(const char *p, long *ret_east)
{
	unsigned h, m;
	int n = 0;
	if ((*p == 'Z' || *p == 'z') && !p[1]) {
		*ret_east = 0;
		return 0;
	}
	if ((*p != '+' && *p != '-') || sscanf(p + 1, "%2u:%2u%n", &h, &m, &n) != 2 || p[1 + n] || h > 23 || m > 59)
		return -EINVAL;
	*ret_east = (*p == '-' ? -1 : 1) * (long)(h * 3600 + m * 60);
	return 0;
}

/* RFC 3339, date and time with zone. */
static int parse_date(const char *s, d9_u64 *ret_ns)
{
	struct tm tm = {0};
	char sep;
	int n = 0;
	if (sscanf(s, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &sep, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec, &n) != 7 ||
	    (sep != 'T' && sep != 't' && sep != ' '))
		return -EINVAL;
	if (tm.tm_year < 1970 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
	    tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return -EINVAL;
	const char *p = s + n;
	long fraction = parse_fraction(&p), east;
	if (fraction < 0 || parse_zone(p, &east) < 0)
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	long seconds = timegm(&tm) - east;
	if (seconds < 0)
		return -EINVAL;
	*ret_ns = (d9_u64)seconds * 1000000000 + (d9_u64)fraction;
	return 0;
}

static int parse_time(const char *s, struct d9_time *ret)
{
	struct d9_time t = {.kind = *s == '-' ? D9_TIME_BEFORE_END : D9_TIME_FROM_START};
	if (d9_parse_duration(s + (*s == '-'), &t.ns) < 0) {
		t.kind = D9_TIME_REAL;
		if (parse_date(s, &t.ns) < 0)
			return -EINVAL;
	}
	*ret = t;
	return 0;
}

/* ---- the parser -------------------------------------------------------------------------------- */

static const char read_help[] = "\n"
				"Options of every command that reads a recording:\n"
				"  --session ID|all   session to read; the newest one otherwise\n"
				"  --from TIME        leave out what was before: 12.5s after the start,\n"
				"  --to TIME          -3s before the end, or 2024-05-01T12:00:00.5Z\n"
				"  --pid PID          one process only\n"
				"  --thread TID|NAME  one thread only\n"
				"  --json             one JSON document on stdout\n"
				"  DIR                traces folder, process folder or .d9 file; else $D9_DIR,\n"
				"                     else ./d9-traces, else /var/tmp/d9-UID\n";

static void print_help(const struct d9_cmd *self, bool reading)
{
	printf("Usage: d9 %s%s%s\n\n%s\n\n%s", self->name, *self->synopsis ? " " : "", self->synopsis, self->summary,
	       self->help);
	if (reading)
		fputs(read_help, stdout);
}

/* Matches "--name" or "--name=value" with arg; *ret_value is behind the '=' or NULL. */
static bool option_is(const char *arg, const char *name, const char **ret_value)
{
	size_t n = strlen(name);
	if (strncmp(arg, name, n) || (arg[n] && arg[n] != '='))
		return false;
	*ret_value = arg[n] ? arg + n + 1 : NULL;
	return true;
}

/* Takes argv[*i], an option, and its value. */
static int take_option(const struct d9_cmd *self, int argc, char **argv, int *i, const struct d9_opt *opts,
		       unsigned n_opts)
{
	const char *value;
	for (unsigned k = 0; k < n_opts; k++) {
		if (!option_is(argv[*i], opts[k].name, &value))
			continue;
		if (!opts[k].has_value && value)
			return LEAVE(d9_fail(D9_EXIT_USAGE, "%s: option %s takes no value", self->name, opts[k].name));
		if (opts[k].has_value && !value) {
			if (*i + 1 >= argc)
				return LEAVE(d9_fail(D9_EXIT_USAGE, "%s: option %s needs a value", self->name,
						     opts[k].name));
			value = argv[++*i];
		}
		*opts[k].value = opts[k].has_value ? value : "";
		return GO_ON;
	}
	return LEAVE(d9_fail(D9_EXIT_USAGE, "%s: unknown option %s; `d9 %s --help` lists them", self->name, argv[*i],
			     self->name));
}

static int parse(const struct d9_cmd *self, int argc, char **argv, const struct d9_opt *opts, unsigned n_opts,
		 bool reading, const char **operands, unsigned max_operands, unsigned *ret_n)
{
	bool only_operands = false;
	unsigned n = 0;
	for (int i = 1; i < argc; i++) {
		if (!only_operands && argv[i][0] == '-' && argv[i][1]) {
			if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
				print_help(self, reading);
				return LEAVE(D9_EXIT_OK);
			}
			only_operands = !strcmp(argv[i], "--");
			int r = only_operands ? GO_ON : take_option(self, argc, argv, &i, opts, n_opts);
			if (r)
				return r;
		} else if (n == max_operands) {
			return LEAVE(d9_fail(D9_EXIT_USAGE, "%s: `%s` is one operand too many; usage: d9 %s %s",
					     self->name, argv[i], self->name, self->synopsis));
		} else {
			operands[n++] = argv[i];
		}
	}
	*ret_n = n;
	return GO_ON;
}

int d9_opts_parse(const struct d9_cmd *self, int argc, char **argv, const struct d9_opt *opts, unsigned n_opts,
		  const char **operands, unsigned max_operands, unsigned *ret_n)
{
	return parse(self, argc, argv, opts, n_opts, false, operands, max_operands, ret_n);
}

/* ---- reading commands --------------------------------------------------------------------------- */

static const char *default_dir(void)
{
	static char of_user[64];
	struct stat st;
	const char *env = getenv("D9_DIR");
	if (env && *env)
		return env;
	if (stat("./d9-traces", &st) == 0)
		return "./d9-traces";
	snprintf(of_user, sizeof(of_user), "/var/tmp/d9-%u", (unsigned)geteuid());
	return of_user;
}

static int take_time(const struct d9_cmd *self, const char *option, const char *text, struct d9_time *ret)
{
	*ret = (struct d9_time){.kind = D9_TIME_UNSET};
	if (!text || parse_time(text, ret) == 0)
		return GO_ON;
	return LEAVE(d9_fail(D9_EXIT_USAGE, "%s: %s %s is no moment: write 12.5s, -3s or 2024-05-01T12:00:00Z",
			     self->name, option, text));
}

static int take_pid(const struct d9_cmd *self, const char *text, d9_i64 *ret)
{
	char *end;
	*ret = -1;
	if (!text)
		return GO_ON;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (errno || end == text || *end || v <= 0)
		return LEAVE(d9_fail(D9_EXIT_USAGE, "%s: --pid %s is no process id", self->name, text));
	*ret = v;
	return GO_ON;
}

#define MAX_EXTRA 16
#define MAX_OPERANDS 4

int d9_read_opts_parse(const struct d9_cmd *self, int argc, char **argv, unsigned n_operands,
		       const struct d9_opt *extra, unsigned n_extra, struct d9_read_opts *ret)
{
	const char *json = NULL, *from = NULL, *to = NULL, *pid = NULL, *thread = NULL, *session = NULL;
	const struct d9_opt common[] = {{"--json", false, &json},    {"--from", true, &from},
					{"--to", true, &to},         {"--pid", true, &pid},
					{"--thread", true, &thread}, {"--session", true, &session}};
	const unsigned n_common = sizeof(common) / sizeof(common[0]);
	struct d9_opt opts[sizeof(common) / sizeof(common[0]) + MAX_EXTRA];
	const char *operands[MAX_OPERANDS];
	unsigned n = 0;
	if (n_extra > MAX_EXTRA || n_operands >= MAX_OPERANDS)
		return LEAVE(
			d9_fail(D9_EXIT_USAGE, "%s: the command has more options than the parser holds", self->name));
	memcpy(opts, common, sizeof(common));
	if (n_extra)
		memcpy(opts + n_common, extra, n_extra * sizeof(*extra));

	int r = parse(self, argc, argv, opts, n_common + n_extra, true, operands, n_operands + 1, &n);
	if (r)
		return r;
	if (n < n_operands)
		return LEAVE(d9_fail(D9_EXIT_USAGE, "%s: an operand is missing; usage: d9 %s %s", self->name,
				     self->name, self->synopsis));
	struct d9_read_opts o = {.dir = n > n_operands ? operands[n_operands] : default_dir(),
				 .session = session,
				 .json = json != NULL,
				 .thread = thread,
				 .operand = n_operands ? operands[0] : NULL};
	if (!*o.dir)
		return LEAVE(
			d9_fail(D9_EXIT_DATA,
				"%s: DIR is empty, which names no folder; name a traces folder, or leave it out for "
				"./d9-traces",
				self->name));
	if ((r = take_time(self, "--from", from, &o.from)) || (r = take_time(self, "--to", to, &o.to)) ||
	    (r = take_pid(self, pid, &o.pid)))
		return r;
	*ret = o;
	return GO_ON;
}
