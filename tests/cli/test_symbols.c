/*
 * test_symbols DUMP NAME...     unwinds what slice_dump.c wrote and compares the names, innermost first:
 *     NAME    this symbol              NAME@FILE:LINE   and this place
 *     -       a frame without a name   +NAME            an inlined call of that name
 *     *       one frame of any name    ...              any number of frames up to the next NAME
 *     $       the end of the stack
 * Then the same stack, cut at every word: what comes of it must be the beginning of the whole.
 *
 * test_symbols self             what needs no dump: perf maps, texts, files that are none.
 */
#include "cli/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX 256
static int n_failed;
#define CHECK(x) ((x) ? (void)0 : (void)(n_failed++, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x)))

struct dump {
	struct d9_mapping maps[512];
	size_t n_maps;
	unsigned char *slice;
	size_t n_slice;
};

static void read_slice(const char *hex, struct dump *d)
{
	d->slice = malloc(strlen(hex));
	unsigned byte;
	while (sscanf(hex, "%2x", &byte) == 1) {
		d->slice[d->n_slice++] = (unsigned char)byte;
		hex += 2;
	}
}

static int read_dump(const char *path, struct dump *d)
{
	char *line = NULL;
	size_t n = 0;
	FILE *f = fopen(path, "re");
	while (f && getline(&line, &n, f) > 0) {
		struct d9_mapping *m = &d->maps[d->n_maps];
		char file[4096], id[200];
		if (line[0] == 'S')
			read_slice(line + 2, d);
		else if (sscanf(line, "M %lx %lx %lx %4095s %199s", &m->start, &m->end, &m->offset, file, id) == 5) {
			m->path = strdup(strcmp(file, "-") ? file : "");
			m->build_id = strdup(strcmp(id, "-") ? id : "");
			d->n_maps++;
		}
	}
	free(line);
	if (f)
		fclose(f);
	return d->slice ? 0 : -1;
}

static bool fits(const struct d9_frame *f, const char *want)
{
	char name[1024], place[1200] = "";
	bool inlined = *want == '+';
	want += inlined;
	snprintf(name, sizeof(name), "%s", want);
	char *at = strchr(name, '@');
	if (at)
		*at = 0;
	if (!strcmp(name, "*"))
		return true;
	if (!strcmp(name, "-"))
		return !f->symbol && f->module;
	const char *slash = f->file ? strrchr(f->file, '/') : NULL;
	snprintf(place, sizeof(place), "%s:%d", slash ? slash + 1 : f->file ? f->file : "", f->line);
	return f->symbol && !strcmp(f->symbol, name) && f->inlined == inlined && (!at || !strcmp(at + 1, place));
}

/* Index of the first name that no frame fits, or n_want. */
static int match(const struct d9_frame *f, size_t n, char **want, int n_want)
{
	size_t at = 0;
	for (int i = 0; i < n_want; i++) {
		bool skip = !strcmp(want[i], "...");
		i += skip;
		if (i == n_want)
			return n_want;
		if (!strcmp(want[i], "$")) {
			if (at != n && !skip)
				return i;
			continue;
		}
		while (skip && at < n && !fits(&f[at], want[i]))
			at++;
		if (at == n || !fits(&f[at], want[i]))
			return i;
		at++;
	}
	return n_want;
}

static void print_stack(const struct d9_frame *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "  %2zu %s+0x%lx %s%s+0x%lx %s:%d%s\n", i, f[i].module ? f[i].module : "?", f[i].offset,
			f[i].inlined ? "+" : "", f[i].symbol ? f[i].symbol : "-", f[i].symbol_offset,
			f[i].file ? f[i].file : "", f[i].line, f[i].plumbing ? " (plumbing)" : "");
}

static void cut_everywhere(struct d9_symbols *s, const struct d9_maps *maps, const struct dump *d)
{
	d9_u64 whole[MAX], part[MAX];
	size_t n = d9_symbols_unwind(s, maps, D9_TAIL_SLICE, d->slice, d->n_slice, whole, MAX), last = 0;
	for (size_t bytes = 0; bytes <= d->n_slice; bytes += 8) {
		unsigned char *copy = malloc(bytes + 1); /* its end is where a sanitizer sees it */
		memcpy(copy, d->slice, bytes);
		size_t k = d9_symbols_unwind(s, maps, D9_TAIL_SLICE, copy, bytes, part, MAX);
		CHECK(k <= n && k >= last && !memcmp(part, whole, k * sizeof(*part)));
		last = k;
		free(copy);
	}
	CHECK(last == n);
}

/* Of a slice, what may be a return address or a frame pointer, and neither registers nor the rest: the same frames. */
static void as_words(struct d9_symbols *s, const struct d9_maps *maps, const struct dump *d)
{
	d9_u64 whole[MAX], part[MAX];
	struct d9_slice regs;
	memcpy(&regs, d->slice, sizeof(regs));
	size_t n_words = (d->n_slice - sizeof(regs)) / 8, n = 0;
	unsigned char *words = malloc(sizeof(regs) + n_words * sizeof(struct d9_stack_word));
	for (size_t i = 0; i < n_words; i++) {
		d9_u64 v;
		memcpy(&v, d->slice + sizeof(regs) + 8 * i, sizeof(v));
		d9_i64 up = (d9_i64)(v - regs.rsp), code = (d9_i64)(v - regs.rip);
		bool on_stack = up > 0 && up < 1 << 20;
		if (!on_stack && code != (d9_i32)code)
			continue; /* another module's: the walk would end there */
		struct d9_stack_word w = {(d9_u32)i | (on_stack ? D9_WORD_OF_STACK : 0),
					  (d9_i32)(on_stack ? up : code)};
		memcpy(words + sizeof(regs) + n++ * sizeof(w), &w, sizeof(w));
	}
	struct d9_slice few = {.rip = regs.rip, .rsp = regs.rsp, .rbp = regs.rbp};
	memcpy(words, &few, sizeof(few));
	size_t n_whole = d9_symbols_unwind(s, maps, D9_TAIL_SLICE, d->slice, d->n_slice, whole, MAX);
	size_t n_part = d9_symbols_unwind(s, maps, D9_TAIL_WORDS, words, sizeof(few) + n * sizeof(struct d9_stack_word),
					  part, MAX);
	CHECK(n_part >= (n_whole < 2 ? n_whole : 2) && n_part <= n_whole &&
	      !memcmp(part, whole, n_part * sizeof(*part)));
	for (size_t bytes = 0; bytes <= sizeof(few) + n * sizeof(struct d9_stack_word); bytes += 4) {
		unsigned char *copy = malloc(bytes + 1);
		memcpy(copy, words, bytes);
		size_t k = d9_symbols_unwind(s, maps, D9_TAIL_WORDS, copy, bytes, part, MAX);
		CHECK(k <= n_whole && !memcmp(part, whole, k * sizeof(*part)));
		free(copy);
	}
	free(words);
}

static int test_dump(const char *path, char **want, int n_want)
{
	static struct dump d;
	static struct d9_frame frames[MAX];
	if (read_dump(path, &d) < 0)
		return 99;
	struct d9_symbols *s = d9_symbols_new();
	struct d9_maps maps = {d.maps, d.n_maps, 0};
	size_t n = d9_symbols_stack(s, &maps, D9_TAIL_SLICE, d.slice, d.n_slice, frames, MAX);
	int bad = match(frames, n, want, n_want);
	if (bad < n_want) {
		fprintf(stderr, "%s: no frame for `%s` in\n", path, want[bad]);
		print_stack(frames, n);
		n_failed++;
	}
	cut_everywhere(s, &maps, &d);
	as_words(s, &maps, &d);
	d9_symbols_free(s);
	return n_failed ? 1 : 0;
}

/* ---- without a dump -------------------------------------------------------------------------------- */

static void test_perf_map(void)
{
	char path[64];
	struct d9_frame f;
	struct d9_symbols *s = d9_symbols_new();
	struct d9_maps maps = {NULL, 0, getpid()};
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	FILE *out = fopen(path, "wxe");
	fputs("1000 100 old\n2000 80 JS:*f /a b.js:1\nnonsense\n1040 20 new\nffffffffffffffff 10 wraps\n3000 10 "
	      "unfinished",
	      out);
	fclose(out);
	d9_symbols_name(s, &maps, 0x1010, false, &f);
	CHECK(f.symbol && !strcmp(f.symbol, "old") && f.symbol_offset == 0x10 && !strcmp(f.module, "[jit]"));
	d9_symbols_name(s, &maps, 0x1050, false, &f);
	CHECK(f.symbol && !strcmp(f.symbol, "new"));
	d9_symbols_name(s, &maps, 0x1060, true, &f); /* a return address behind its last call */
	CHECK(f.symbol && !strcmp(f.symbol, "new"));
	d9_symbols_name(s, &maps, 0x2001, false, &f);
	CHECK(f.symbol && !strcmp(f.symbol, "JS:*f /a b.js:1"));
	d9_symbols_name(s, &maps, 0x3001, false, &f);
	CHECK(!f.symbol && !f.module);
	unlink(path);
	d9_symbols_free(s);
	/* not a regular file: not read */
	CHECK(symlink("/etc/passwd", path) == 0);
	s = d9_symbols_new();
	d9_symbols_name(s, &maps, 0x1010, false, &f);
	CHECK(!f.symbol);
	d9_symbols_free(s);
	unlink(path);
}

static void test_texts(void)
{
	static const char kernel[] = "do_futex+0x1a\nentry_SYSCALL_64\n",
			  python[] = "f, g, a.py, 12\n<module>, b.py, 3";
	struct d9_frame f[4];
	struct d9_maps none = {0};
	struct d9_symbols *s = d9_symbols_new();
	CHECK(d9_symbols_stack(s, &none, D9_TAIL_KERNEL, kernel, sizeof(kernel) - 1, f, 4) == 2);
	CHECK(!strcmp(f[0].symbol, "do_futex") && f[0].symbol_offset == 0x1a &&
	      !strcmp(f[1].symbol, "entry_SYSCALL_64"));
	CHECK(d9_symbols_stack(s, &none, D9_TAIL_INTERPRETED, python, sizeof(python) - 1, f, 4) == 2);
	CHECK(!strcmp(f[0].symbol, "f, g") && !strcmp(f[0].file, "a.py") && f[0].line == 12);
	CHECK(!strcmp(f[1].symbol, "<module>") && !strcmp(f[1].file, "b.py") && f[1].line == 3);
	CHECK(d9_symbols_stack(s, &none, D9_TAIL_KERNEL, "", 0, f, 4) == 0);
	d9_symbols_free(s);
}

static void test_plumbing(void)
{
	static const struct {
		const char *module, *symbol;
		bool is;
	} cases[] = {{"app", "<tokio::runtime::park::Inner>::park", true},
		     {"app", "void std::__invoke_impl<void, work(int)::{lambda()#1}>(std::__invoke_other, int)", true},
		     {"app", "std::mutex::lock()", true},
		     {"app", "app::stdlib::f", false},
		     {"app", "int work<std::vector<int> >(std::vector<int>)", false},
		     {"app", "<app::Job as core::future::Future>::poll", false},
		     {"app", "<core::pin::Pin<app::Job> as core::future::Future>::poll", true},
		     {"app", "(anonymous namespace)::run(int)", false},
		     {"libc.so.6", "read", true},
		     {"libcrypto.so.3", NULL, false},
		     {NULL, NULL, false}};
	struct d9_frame f;
	struct d9_maps none = {0};
	struct d9_symbols *s = d9_symbols_new();
	extern bool d9_is_plumbing(const char *module, const char *symbol);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (d9_is_plumbing(cases[i].module, cases[i].symbol) != cases[i].is) {
			fprintf(stderr, "plumbing: %s\n", cases[i].symbol);
			n_failed++;
		}
	d9_symbols_name(s, &none, 0x10, false, &f);
	CHECK(!f.module && f.offset == 0x10 && !f.plumbing);
	d9_symbols_free(s);
}

static void test_no_files(void)
{
	static const char *const paths[] = {"/dev/zero", "/",      "/nowhere/x", "/proc/self/maps",
					    "[heap]",    "//anon", "",           "relative"};
	struct d9_symbols *s = d9_symbols_new();
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct d9_mapping m = {0x400000, 0x500000, 0x1000, paths[i], ""};
		struct d9_maps maps = {&m, 1, 0};
		struct d9_frame f;
		d9_symbols_name(s, &maps, 0x400010, true, &f);
		CHECK(!f.symbol && f.module && f.offset == 0x1010);
	}
	d9_symbols_free(s);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 99;
	if (strcmp(argv[1], "self"))
		return test_dump(argv[1], argv + 2, argc - 2);
	test_perf_map();
	test_texts();
	test_plumbing();
	test_no_files();
	return n_failed ? 1 : 0;
}
