/*
 * d9 check: what will be seen in a program, and what will not.  Gathers facts of the program and of the
 * libraries it asks for, judges them one rule after the other, prints the verdicts.
 */
#include "check.h"
#include "clean.h"
#include "cmd.h"
#include "hooks_table.h"
#include "json.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FLOOR_MAJOR 2u
#define FLOOR_MINOR 17u /* newest GLIBC_x.y that libd9shim.so may need: contract */
#define SCRIPTS_MAX 4
#define LIBRARIES_MAX 512
#define VERDICTS_MAX 32

enum level { LEVEL_UNSEEN, LEVEL_LIMITED, LEVEL_NOTE };
static const char *const level_names[] = {"unseen", "limited", "note"};

struct verdict {
	enum level level;
	const char *id, *advice; /* advice: what to change, NULL = nothing to be done */
	char text[512];
};
struct library {
	char path[PATH_MAX]; /* "" = not found */
	char name[NAME_MAX + 1];
	struct d9_elf_facts facts;
	bool read;
};
struct check {
	const char *target;
	pid_t pid; /* 0: a file */
	char root[64];
	char scripts[SCRIPTS_MAX][PATH_MAX];
	unsigned n_scripts;
	char path[PATH_MAX];  /* what is read */
	char shown[PATH_MAX]; /* what it is called: of a process not /proc/PID/exe */
	struct d9_elf_facts program;
	struct library *libraries;
	size_t n_libraries;
	bool shim_mapped;
	bool setuid, setgid, capabilities;
	int seccomp; /* of a process: -1 not known */
	struct verdict verdicts[VERDICTS_MAX];
	unsigned n_verdicts;
};

__attribute__((format(printf, 5, 6))) static void say(struct check *c, enum level level, const char *id,
						      const char *advice, const char *fmt, ...)
{
	va_list ap;
	if (c->n_verdicts == VERDICTS_MAX)
		return;
	struct verdict *v = &c->verdicts[c->n_verdicts++];
	*v = (struct verdict){.level = level, .id = id, .advice = advice};
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

/* ---- which file -------------------------------------------------------------------------------------------- */

static ssize_t read_head(const char *path, char *buf, size_t max)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	size_t n = fread(buf, 1, max - 1, f);
	fclose(f);
	buf[n] = 0;
	return (ssize_t)n;
}

/* The program that a "#!" line names; `env NAME` (with options and assignments) is looked through. */
static int interpreter_of(char *head, char *ret, size_t max)
{
	char *save, *word;
	head[strcspn(head, "\n")] = 0;
	word = strtok_r(head + 2, " \t\r", &save);
	if (!word)
		return -ENOEXEC;
	const char *base = strrchr(word, '/');
	if (strcmp(base ? base + 1 : word, "env"))
		return d9_find_program(word, ret, max);
	do
		word = strtok_r(NULL, " \t\r", &save);
	while (word && (*word == '-' || strchr(word, '=')));
	return word ? d9_find_program(word, ret, max) : -ENOEXEC;
}

/* Goes from script to interpreter until there is an ELF file. */
static int follow_scripts(struct check *c)
{
	char head[512], next[PATH_MAX];
	for (;;) {
		ssize_t n = read_head(c->path, head, sizeof(head));
		if (n < 0)
			return d9_fail(n == -EACCES ? D9_EXIT_PERMISSION : D9_EXIT_DATA, "cannot read %s: %s", c->path,
				       n == -EINVAL ? "not a regular file" : strerror((int)-n));
		if (n >= 4 && !memcmp(head, ELFMAG, 4))
			return 0;
		if (n < 3 || head[0] != '#' || head[1] != '!')
			return d9_fail(D9_EXIT_DATA, "%s is neither an ELF program nor a script with #!", c->path);
		if (c->n_scripts == SCRIPTS_MAX)
			return d9_fail(D9_EXIT_DATA, "%s: scripts that call scripts, more than %d deep", c->target,
				       SCRIPTS_MAX);
		memcpy(c->scripts[c->n_scripts++], c->path, sizeof(c->path));
		if (interpreter_of(head, next, sizeof(next)) < 0)
			return d9_fail(D9_EXIT_DATA, "%s: its #! line names no program that is here", c->path);
		memcpy(c->path, next, sizeof(next));
	}
}

static int resolve_pid(struct check *c)
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/%d/exe", c->pid);
	ssize_t n = readlink(link, c->shown, sizeof(c->shown) - 1);
	if (n < 0 && (errno == EACCES || errno == EPERM))
		return d9_fail(
			D9_EXIT_PERMISSION,
			geteuid() ? "process %d belongs to another user: cannot read %s; use its user or root"
				  : "even root may not look into process %d from here: cannot read %s; use d9 in the "
				    "container in which the process runs",
			c->pid, link);
	if (n < 0)
		return d9_fail(D9_EXIT_DATA, "no process %d: %s: %s", c->pid, link, strerror(errno));
	c->shown[n] = 0;
	snprintf(c->root, sizeof(c->root), "/proc/%d/root", c->pid);
	/* The link itself is opened, so that a deleted or replaced program is the one that runs. */
	snprintf(c->path, sizeof(c->path), "%s", link);
	return 0;
}

static int resolve(struct check *c)
{
	char *end;
	long pid = strtol(c->target, &end, 10);
	if (*c->target && !*end && pid > 0 && pid <= 0x7fffffff) {
		c->pid = (pid_t)pid;
		return resolve_pid(c);
	}
	if (d9_find_program(c->target, c->path, sizeof(c->path)) < 0)
		return d9_fail(D9_EXIT_DATA, "%s: no such file here or on PATH", c->target);
	int r = follow_scripts(c);
	memcpy(c->shown, c->path, sizeof(c->shown));
	return r;
}

/* ---- gathering ------------------------------------------------------------------------------------------------ */

static bool add_library(struct check *c, const char *path, const char *name)
{
	for (size_t i = 0; i < c->n_libraries; i++)
		if (!strcmp(c->libraries[i].path, path) && !strcmp(c->libraries[i].name, name))
			return true;
	if (c->n_libraries == LIBRARIES_MAX)
		return false;
	void *p = realloc(c->libraries, (c->n_libraries + 1) * sizeof(*c->libraries));
	if (!p)
		return false;
	c->libraries = p;
	struct library *l = &c->libraries[c->n_libraries++];
	memset(l, 0, sizeof(*l));
	snprintf(l->path, sizeof(l->path), "%s", path);
	snprintf(l->name, sizeof(l->name), "%s", name);
	return true;
}

static void find_needed(struct check *c)
{
	char path[PATH_MAX];
	for (unsigned i = 0; i < c->program.n_needed; i++) {
		const char *name = c->program.needed[i];
		int r = d9_find_library(&c->program, c->path, c->root, name, path, sizeof(path));
		add_library(c, r < 0 ? "" : path, name);
	}
}

/* What a process has mapped says more than what its program asks for: plug-ins are in it too. */
static void find_mapped(struct check *c)
{
	char maps[64], line[PATH_MAX + 256], path[PATH_MAX];
	snprintf(maps, sizeof(maps), "/proc/%d/maps", c->pid);
	FILE *f = fopen(maps, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char perms[8], file[PATH_MAX - 64];
		if (sscanf(line, "%*x-%*x %7s %*x %*s %*s %4031[^\n]", perms, file) != 2 || perms[2] != 'x' ||
		    file[0] != '/')
			continue;
		const char *base = strrchr(file, '/') + 1;
		c->shim_mapped |= !strncmp(base, "libd9shim.so", 12);
		snprintf(path, sizeof(path), "%s%s", c->root, file);
		if (strstr(base, ".so"))
			add_library(c, path, base);
	}
	if (f)
		fclose(f);
}

static void read_status(struct check *c)
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", c->pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &c->seccomp) == 1)
			break;
	if (f)
		fclose(f);
}

static void read_privileges(struct check *c)
{
	struct stat st;
	/* the kernel honours neither on a script, but on the interpreter it starts */
	if (stat(c->path, &st) == 0) {
		c->setuid = st.st_mode & S_ISUID;
		c->setgid = (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
	}
	c->capabilities = getxattr(c->path, "security.capability", NULL, 0) > 0;
}

static int gather(struct check *c)
{
	int r = d9_elf_facts_read(c->path, &c->program);
	if (r == -EACCES)
		return d9_fail(D9_EXIT_PERMISSION, "cannot read %s: %s", c->path, strerror(-r));
	if (r < 0 && r != -ENOEXEC)
		return d9_fail(D9_EXIT_DATA, "cannot read %s: %s", c->path, strerror(-r));
	if (r < 0)
		return r;
	read_privileges(c);
	if (c->pid) {
		find_mapped(c);
		read_status(c);
	} else {
		find_needed(c);
	}
	for (size_t i = 0; i < c->n_libraries; i++)
		c->libraries[i].read =
			c->libraries[i].path[0] && d9_elf_facts_read(c->libraries[i].path, &c->libraries[i].facts) == 0;
	return 0;
}

/* ---- judging: will the recorder be there at all? ----------------------------------------------------------------- */

static const struct library *library(const struct check *c, const char *prefix)
{
	for (size_t i = 0; i < c->n_libraries; i++)
		if (!strncmp(c->libraries[i].name, prefix, strlen(prefix)))
			return &c->libraries[i];
	return NULL;
}

static bool is_musl(const struct check *c)
{
	return strstr(c->program.interpreter, "ld-musl") || library(c, "libc.musl-");
}

static void judge_linking(struct check *c)
{
	const struct d9_elf_facts *p = &c->program;
	if (p->go)
		say(c, LEVEL_UNSEEN, "go", NULL,
		    "Go calls the kernel itself and not through libc: its goroutines' waits cannot be seen by "
		    "preloading");
	if (p->kind == D9_BINARY_STATIC || p->kind == D9_BINARY_STATIC_PIE)
		say(c, LEVEL_UNSEEN, p->kind == D9_BINARY_STATIC ? "static" : "static-pie",
		    "link it dynamically with glibc",
		    "it is linked statically: no loader runs, and LD_PRELOAD is ignored without a word");
	else if (is_musl(c))
		say(c, LEVEL_UNSEEN, "musl", "build it for a glibc target",
		    "it runs on musl (%s): with libd9shim.so in LD_PRELOAD it would not even start", p->interpreter);
	else if (p->kind == D9_BINARY_LIBRARY)
		say(c, LEVEL_NOTE, "library", NULL,
		    "it is a shared library: what is said here holds in programs that load it");
}

static void judge_privileges(struct check *c)
{
	static const char advice[] =
		"start it as the user it becomes, or record another copy of the file without the bit";
	if (c->setuid || c->setgid)
		say(c, LEVEL_UNSEEN, c->setuid ? "setuid" : "setgid", advice,
		    "it is a set-%s-id program: the loader drops LD_PRELOAD without a word when anybody but its owner "
		    "starts it",
		    c->setuid ? "user" : "group");
	if (c->capabilities)
		say(c, LEVEL_UNSEEN, "file-capabilities",
		    "give the capability to the service (systemd: AmbientCapabilities=) instead",
		    "it has file capabilities: the loader drops LD_PRELOAD without a word unless root starts it");
}

static struct d9_version highest_needed(const struct check *c)
{
	struct d9_version max = c->program.glibc_needed;
	for (size_t i = 0; i < c->n_libraries; i++)
		if (d9_version_compare(c->libraries[i].facts.glibc_needed, max) > 0)
			max = c->libraries[i].facts.glibc_needed;
	return max;
}

static struct d9_version found_glibc(const struct check *c)
{
	const struct library *libc = library(c, "libc.so.6");
	if (!libc)
		libc = library(c, "libc-2."); /* as mapped before glibc 2.34 */
	return libc ? libc->facts.glibc_defined : (struct d9_version){0};
}

static void judge_glibc(struct check *c)
{
	struct d9_version has = found_glibc(c), floor = {FLOOR_MAJOR, FLOOR_MINOR};
	if (has.major && d9_version_compare(has, floor) < 0)
		say(c, LEVEL_UNSEEN, "glibc-old", NULL,
		    "its glibc is %u.%u, and libd9shim.so needs %u.%u: the loader would refuse to start it", has.major,
		    has.minor, floor.major, floor.minor);
}

static void judge_sanitizers(struct check *c)
{
	if (library(c, "libasan") || library(c, "libclang_rt.asan"))
		say(c, LEVEL_LIMITED, "asan", "LD_PRELOAD=libasan.so:libd9shim.so, or build with -static-libasan",
		    "it needs libasan, which refuses to start unless it comes first: it must stand before "
		    "libd9shim.so; started by another program that is recorded, it runs unrecorded");
	else if (c->program.asan)
		say(c, LEVEL_NOTE, "asan", NULL,
		    "it has the address sanitizer inside; times are its own, several times those of a plain build");
	if (library(c, "libtsan") || library(c, "libclang_rt.tsan") || c->program.tsan)
		say(c, LEVEL_LIMITED, "tsan", NULL,
		    "the thread sanitizer stands in for the same functions: calls may be counted twice or missed");
}

static void judge_process(struct check *c)
{
	if (!c->pid)
		return;
	if (!c->shim_mapped)
		say(c, LEVEL_UNSEEN, "not-loaded", "start it again with `d9 run -- CMD` or with LD_PRELOAD set",
		    "libd9shim.so is not in this process: nothing of it is recorded");
	if (c->seccomp > 0)
		say(c, LEVEL_NOTE, "seccomp", NULL,
		    "it runs under seccomp: the recorder then keeps to memory it has, and may drop events sooner");
}

/* ---- judging: what of its work is out of reach? ------------------------------------------------------------------- */

static bool imports(const struct check *c, const char *name)
{
	if (d9_elf_facts_import(&c->program, name))
		return true;
	for (size_t i = 0; i < c->n_libraries; i++)
		if (strncmp(c->libraries[i].name, "libc.so", 7) && strncmp(c->libraries[i].name, "libpthread", 10) &&
		    d9_elf_facts_import(&c->libraries[i].facts, name))
			return true;
	return false;
}

static void judge_calls(struct check *c)
{
	unsigned sites = c->program.uring_sites;
	bool liburing = false;
	for (size_t i = 0; i < c->n_libraries; i++) {
		bool is = !strncmp(c->libraries[i].name, "liburing.so",
				   11); /* its own are behind functions that are hooked */
		liburing |= is;
		sites += is ? 0 : c->libraries[i].facts.uring_sites;
	}
	if (sites)
		say(c, LEVEL_UNSEEN, "io-uring", NULL,
		    "%u place%s call io_uring_enter as an instruction and not through libc: these waits are not seen",
		    sites, sites == 1 ? "" : "s");
	if (liburing)
		say(c, LEVEL_NOTE, "liburing", NULL,
		    "it is linked with liburing: what waits in that library's functions is seen, a completion found "
		    "without a "
		    "call is not");
	if (imports(c, "clone"))
		say(c, LEVEL_NOTE, "clone", NULL,
		    "it may make threads or processes by clone(): they are seen from their first recorded call on");
	if (imports(c, "vfork"))
		say(c, LEVEL_NOTE, "vfork", NULL, "it uses vfork(): such a child is seen from its exec on");
}

/* ---- judging: what can be said about places? ---------------------------------------------------------------------- */

static void judge_stacks(struct check *c)
{
	const struct d9_elf_facts *p = &c->program;
	const char *flag = p->rust ? "build with -C force-frame-pointers=yes" : "build with -fno-omit-frame-pointer";
	unsigned percent = p->n_functions ? p->n_frame_pointer * 100 / p->n_functions : 0;
	if (!p->eh_frame)
		say(c, LEVEL_LIMITED, "no-unwind-tables", "build with -fasynchronous-unwind-tables and keep .eh_frame",
		    "it has no unwind tables: without frame pointers only the place of a call is known, not its "
		    "callers");
	if (p->n_functions && percent < 60)
		say(c, p->eh_frame ? LEVEL_NOTE : LEVEL_LIMITED, "no-frame-pointers", flag,
		    "%u %% of %u functions keep a frame pointer: stacks are copied (at most 3 KiB each) and unwound "
		    "later, deep ones are cut",
		    percent, p->n_functions);
}

static void judge_names(struct check *c)
{
	const struct d9_elf_facts *p = &c->program;
	const char *flag =
		p->rust ? "build with debug = 1 (or \"line-tables-only\") in the Cargo profile"
			: "build with -g1 (clang: -gline-tables-only); a separate debug file in /usr/lib/debug will do";
	if (!p->symtab)
		say(c, LEVEL_LIMITED, "stripped",
		    p->rust ? "do not strip it (strip = \"none\")" : "do not strip it (strip -d keeps names)",
		    p->dynsym ? "it is stripped: of its functions only the exported ones have names, others are "
				"module+offset"
			      : "it is stripped: its functions have no names, places are module+offset");
	if (!p->lines)
		say(c, LEVEL_NOTE, "no-lines", flag,
		    "it has no line tables: places are function+offset, not file:line");
}

static void judge_libraries(struct check *c)
{
	for (size_t i = 0; i < c->n_libraries; i++)
		if (!c->libraries[i].path[0])
			say(c, LEVEL_NOTE, "library-not-found", NULL,
			    "%s, which it needs, was not found: what that calls is not known", c->libraries[i].name);
}

static bool judge(struct check *c)
{
	bool all_seen = true;
	judge_process(c);
	judge_linking(c);
	judge_privileges(c);
	judge_glibc(c);
	judge_calls(c);
	judge_sanitizers(c);
	judge_stacks(c);
	judge_names(c);
	judge_libraries(c);
	for (unsigned i = 0; i < c->n_verdicts; i++)
		all_seen &= c->verdicts[i].level != LEVEL_UNSEEN;
	return all_seen;
}

/* ---- printing ------------------------------------------------------------------------------------------------------ */

static const char *const kind_names[] = {"dynamic", "static", "static-pie", "library"};

static const char *version_text(struct d9_version v, char *buf)
{
	snprintf(buf, 24, "%u.%u", v.major, v.minor);
	return v.major ? buf : NULL;
}

static const char *libc_name(const struct check *c)
{
	if (is_musl(c))
		return "musl";
	return highest_needed(c).major ? "glibc" : NULL;
}

/* Families with a function that the program or a library of it calls, in the table's order. */
static void print_hooks(const struct check *c)
{
	size_t n;
	const struct d9_hook_row *rows = d9_hook_rows(&n);
	const char *last = "";
	if (!n)
		return;
	printf("  calls    ");
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].family, last) && imports(c, rows[i].name))
			printf(" %s", last = rows[i].family);
	printf(*last ? "\n" : " nothing that is recorded\n");
}

static void print_clean(const char *text)
{
	char *copy = d9_clean_copy(text, strlen(text));
	fputs(copy, stdout);
	free(copy);
}

static void print_text(const struct check *c, bool all_seen)
{
	char needed[24], has[24];
	const char *needs = version_text(highest_needed(c), needed), *found = version_text(found_glibc(c), has);
	for (unsigned i = 0; i < c->n_scripts; i++) {
		print_clean(c->scripts[i]);
		printf(": a script; its interpreter:\n");
	}
	print_clean(c->shown);
	printf(": %s", kind_names[c->program.kind]);
	if (needs)
		printf(", needs glibc %s", needs);
	if (found)
		printf(", has %s", found);
	if (c->program.tokio[0]) {
		printf(", Tokio ");
		print_clean(c->program.tokio);
	}
	printf("\n");
	print_hooks(c);
	for (unsigned i = 0; i < c->n_verdicts; i++) {
		const struct verdict *v = &c->verdicts[i];
		printf("  %-8s ", level_names[v->level]);
		print_clean(v->text);
		printf("\n");
		if (v->advice)
			printf("           -> %s\n", v->advice);
	}
	printf("%s\n",
	       all_seen ? "What it waits for will be seen." : "Something will not be seen: the lines marked `unseen`.");
}

static void json_hooks(struct d9_json *j, const struct check *c)
{
	size_t n;
	const struct d9_hook_row *rows = d9_hook_rows(&n);
	if (!n) {
		d9_json_null(j, "hooks");
		return;
	}
	d9_json_array(j, "hooks");
	for (size_t i = 0; i < n; i++) {
		if (!imports(c, rows[i].name))
			continue;
		d9_json_object(j, NULL);
		d9_json_str(j, "family", rows[i].family);
		d9_json_str(j, "name", rows[i].name);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

static void json_lists(struct d9_json *j, const struct check *c)
{
	d9_json_array(j, "scripts");
	for (unsigned i = 0; i < c->n_scripts; i++)
		d9_json_str(j, NULL, c->scripts[i]);
	d9_json_end_array(j);
	d9_json_array(j, "libraries");
	for (size_t i = 0; i < c->n_libraries; i++) {
		d9_json_object(j, NULL);
		d9_json_str(j, "name", c->libraries[i].name);
		d9_json_str(j, "path", c->libraries[i].path[0] ? c->libraries[i].path : NULL);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
	d9_json_array(j, "verdicts");
	for (unsigned i = 0; i < c->n_verdicts; i++) {
		d9_json_object(j, NULL);
		d9_json_str(j, "id", c->verdicts[i].id);
		d9_json_str(j, "level", level_names[c->verdicts[i].level]);
		d9_json_str(j, "text", c->verdicts[i].text);
		d9_json_str(j, "advice", c->verdicts[i].advice);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

static int print_json(const struct check *c, bool all_seen)
{
	struct d9_json j;
	char needed[24], has[24];
	const struct d9_elf_facts *p = &c->program;
	d9_json_document(&j, stdout, "check");
	d9_json_str(&j, "target", c->target);
	d9_json_str(&j, "path", c->shown);
	if (c->pid)
		d9_json_i64(&j, "pid", c->pid);
	else
		d9_json_null(&j, "pid");
	d9_json_bool(&j, "seen", all_seen);
	d9_json_str(&j, "kind", kind_names[p->kind]);
	d9_json_str(&j, "interpreter", p->interpreter[0] ? p->interpreter : NULL);
	d9_json_str(&j, "libc", libc_name(c));
	d9_json_str(&j, "glibc_needed", version_text(highest_needed(c), needed));
	d9_json_str(&j, "glibc_found", version_text(found_glibc(c), has));
	d9_json_bool(&j, "setuid", c->setuid || c->setgid);
	d9_json_bool(&j, "file_capabilities", c->capabilities);
	d9_json_bool(&j, "go", p->go);
	d9_json_bool(&j, "rust", p->rust);
	d9_json_str(&j, "tokio", p->tokio[0] ? p->tokio : NULL);
	d9_json_u64(&j, "functions", p->n_functions);
	d9_json_u64(&j, "functions_with_frame_pointer", p->n_frame_pointer);
	d9_json_bool(&j, "unwind_tables", p->eh_frame);
	d9_json_str(&j, "symbols", p->symtab ? "symtab" : p->dynsym ? "dynsym" : "none");
	d9_json_bool(&j, "lines", p->lines);
	if (c->pid)
		d9_json_bool(&j, "recorder_loaded", c->shim_mapped);
	else
		d9_json_null(&j, "recorder_loaded");
	json_hooks(&j, c);
	json_lists(&j, c);
	return d9_json_end_document(&j);
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

/* d9_elf_facts_read did not take it: a program for another machine, or no program. */
static int print_foreign(struct check *c, bool json)
{
	char head[sizeof(Elf64_Ehdr) + 1] = "";
	Elf64_Ehdr eh; /* e_type and e_machine lie at the same place in 32-bit files */
	if (read_head(c->path, head, sizeof(head)) < (ssize_t)sizeof(eh))
		return d9_fail(D9_EXIT_DATA, "%s is too short for a program", c->path);
	memcpy(&eh, head, sizeof(eh));
	if (eh.e_ident[EI_CLASS] == ELFCLASS64 && eh.e_machine == EM_X86_64)
		return d9_fail(D9_EXIT_DATA, "%s is an ELF file, but damaged or no program", c->path);
	say(c, LEVEL_UNSEEN, "wrong-class", NULL,
	    "it is a program for another machine (%s, machine %u): the loader would complain about libd9shim.so and go "
	    "on without it",
	    eh.e_ident[EI_CLASS] == ELFCLASS64 ? "64 bits" : "32 bits", eh.e_machine);
	if (json)
		return print_json(c, false) < 0 ? D9_EXIT_DATA : D9_EXIT_CONDITION;
	print_text(c, false);
	return D9_EXIT_CONDITION;
}

static int check(struct check *c, bool json)
{
	int r = resolve(c);
	if (r)
		return r;
	r = gather(c);
	if (r < 0)
		return print_foreign(c, json);
	if (r)
		return r;
	bool all_seen = judge(c);
	if (json)
		r = print_json(c, all_seen) < 0 ? D9_EXIT_DATA : 0;
	else
		print_text(c, all_seen);
	return r ? r : all_seen ? D9_EXIT_OK : D9_EXIT_CONDITION;
}

int d9_cmd_check(const struct d9_cmd *self, int argc, char **argv)
{
	const char *json = NULL, *target = NULL;
	const struct d9_opt opts[] = {{"--json", false, &json}};
	unsigned n = 0;
	int r = d9_opts_parse(self, argc, argv, opts, 1, &target, 1, &n);
	if (r)
		return r - 1;
	if (!n)
		return d9_fail(D9_EXIT_USAGE, "check: name a program or a process id; usage: d9 check %s",
			       self->synopsis);
	struct check *c = calloc(1, sizeof(*c));
	if (!c)
		return d9_fail(D9_EXIT_DATA, "check: no memory");
	c->target = target;
	c->seccomp = -1;
	r = check(c, json != NULL);
	for (size_t i = 0; i < c->n_libraries; i++)
		d9_elf_facts_fini(&c->libraries[i].facts);
	d9_elf_facts_fini(&c->program);
	free(c->libraries);
	free(c);
	return r;
}
