/*
 * Addresses to names.  Three caches, all for one run of d9: files (opened once, or known to be no use),
 * address spaces (mappings with their files), and places (address in a file -> symbol and lines).
 */
#include "symbols.h"

#include "perf_map.h"
#include "plumbing.h"
#include "search.h"
#include "space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_SPACES 16 /* address spaces kept; a tree of more processes finds them again by mapping */
#define INLINE_MAX 32
#define RAW_MAX 1024
#define SHIM "libd9shim.so"
#define DELETED " (deleted)"

struct file {
	char *path, *build_id;
	struct d9_object *object; /* NULL: not there, or another build */
	struct file *next;
};
struct place {
	const struct d9_object *object; /* NULL: free */
	d9_u64 vaddr;
	const struct d9_symbol *symbol;
	struct d9_line *lines; /* n_lines of them; the last has no function */
	unsigned n_lines;
};
struct jit {
	int pid;
	struct d9_perf_map *map;
	struct jit *next;
};
struct text { /* a string that must live as long as the cache */
	struct text *next;
	char s[];
};

struct d9_symbols {
	struct file *files;
	struct jit *jits;
	struct text *texts;
	struct d9_space *spaces[N_SPACES]; /* most recently used first */
	struct place *places;              /* open addressing; n_slots is a power of two */
	size_t n_slots, n_places;
};

struct d9_symbols *d9_symbols_new(void) { return calloc(1, sizeof(struct d9_symbols)); }

static void free_space(struct d9_space *s)
{
	if (!s)
		return;
	d9_unwind_forget(s);
	free(s->maps);
	free(s->placed);
	free(s);
}

static void free_places(struct d9_symbols *s)
{
	for (size_t i = 0; i < s->n_slots; i++) {
		for (unsigned k = 0; k < s->places[i].n_lines; k++)
			free(s->places[i].lines[k].function);
		free(s->places[i].lines);
	}
	free(s->places);
}

void d9_symbols_free(struct d9_symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < N_SPACES; i++)
		free_space(s->spaces[i]);
	free_places(s);
	for (struct file *f = s->files, *next; f; f = next) {
		next = f->next;
		d9_object_free(f->object);
		free(f->path);
		free(f->build_id);
		free(f);
	}
	for (struct jit *j = s->jits, *next; j; j = next) {
		next = j->next;
		d9_perf_map_free(j->map);
		free(j);
	}
	for (struct text *t = s->texts, *next; t; t = next) {
		next = t->next;
		free(t);
	}
	free(s);
}

static const char *keep_text(struct d9_symbols *s, const char *text, size_t n)
{
	struct text *t = malloc(sizeof(*t) + n + 1);
	if (!t)
		return NULL;
	memcpy(t->s, text, n);
	t->s[n] = 0;
	t->next = s->texts;
	s->texts = t;
	return t->s;
}

/* ---- files ---------------------------------------------------------------------------------------- */

/* The path without the kernel's mark of a file that was unlinked; NULL if only a build id could prove the one that is there now. */
static char *real_path(const char *path, bool has_id)
{
	size_t n = strlen(path), mark = strlen(DELETED);
	if (n <= mark || strcmp(path + n - mark, DELETED))
		return strdup(path);
	return has_id ? strndup(path, n - mark) : NULL;
}

static struct d9_object *open_object(const char *path, const char *build_id)
{
	struct d9_object *o = NULL;
	bool has_id = *build_id, vdso = !strcmp(path, "[vdso]");
	char *real = *path == '/' ? real_path(path, has_id) : NULL;
	int r = vdso && has_id ? d9_object_open_vdso(&o) : real ? d9_object_open(real, &o) : -ENOENT;
	free(real);
	if (r < 0)
		return NULL;
	if (has_id && strcasecmp(o->build_id, build_id)) {
		d9_object_free(o);
		return NULL;
	}
	return o;
}

static struct d9_object *find_object(struct d9_symbols *s, const struct d9_mapping *m)
{
	const char *path = m->path ? m->path : "", *id = m->build_id ? m->build_id : "";
	for (struct file *f = s->files; f; f = f->next)
		if (!strcmp(f->path, path) && !strcmp(f->build_id, id))
			return f->object;
	struct file *f = calloc(1, sizeof(*f));
	if (!f || !(f->path = strdup(path)) || !(f->build_id = strdup(id))) {
		if (f)
			free(f->path);
		free(f);
		return NULL;
	}
	f->object = open_object(path, id);
	f->next = s->files;
	s->files = f;
	return f->object;
}

static struct d9_placed place_object(struct d9_symbols *s, const struct d9_mapping *m)
{
	d9_u64 vaddr;
	struct d9_object *o = find_object(s, m);
	bool has_id = m->build_id && *m->build_id;
	if (!o || m->end <= m->start || (!has_id && !d9_object_has_layout(o, m->end - m->start, m->offset)) ||
	    d9_object_address(o, m->offset, &vaddr) < 0)
		return (struct d9_placed){0};
	return (struct d9_placed){o, m->start - vaddr};
}

/* ---- address spaces -------------------------------------------------------------------------------- */

static const struct d9_perf_map *find_jit(struct d9_symbols *s, int pid)
{
	struct jit *j;
	if (pid <= 0)
		return NULL;
	for (j = s->jits; j; j = j->next)
		if (j->pid == pid)
			return j->map;
	j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	*j = (struct jit){pid, d9_perf_map_open(pid), s->jits};
	s->jits = j;
	return j->map;
}

static struct d9_space *new_space(struct d9_symbols *s, const struct d9_maps *maps)
{
	struct d9_space *sp = calloc(1, sizeof(*sp));
	if (!sp)
		return NULL;
	sp->maps = calloc(maps->n + 1, sizeof(*sp->maps));
	sp->placed = calloc(maps->n + 1, sizeof(*sp->placed));
	if (!sp->maps || !sp->placed) {
		free_space(sp);
		return NULL;
	}
	if (maps->n)
		memcpy(sp->maps, maps->maps, maps->n * sizeof(*sp->maps));
	sp->n = maps->n;
	sp->pid = maps->pid;
	sp->jit = find_jit(s, maps->pid);
	for (size_t i = 0; i < sp->n; i++)
		sp->placed[i] = place_object(s, &sp->maps[i]);
	return sp;
}

/* By content: a caller may fill the same array for the next process. */
static bool is_same(const struct d9_space *sp, const struct d9_maps *maps)
{
	return sp->n == maps->n && sp->pid == maps->pid &&
	       (maps->n == 0 || !memcmp(sp->maps, maps->maps, maps->n * sizeof(*sp->maps)));
}

static struct d9_space *find_space(struct d9_symbols *s, const struct d9_maps *maps)
{
	size_t i = 0;
	struct d9_space *found = NULL;
	for (; i < N_SPACES && s->spaces[i]; i++)
		if (is_same(s->spaces[i], maps)) {
			found = s->spaces[i];
			break;
		}
	if (!found) {
		found = new_space(s, maps);
		if (!found)
			return NULL;
		if (i == N_SPACES)
			free_space(s->spaces[--i]);
	}
	memmove(&s->spaces[1], &s->spaces[0], i * sizeof(s->spaces[0]));
	return s->spaces[0] = found;
}

size_t d9_space_find(const struct d9_space *s, d9_u64 address)
{
	size_t i = D9_FIRST_AFTER(s->maps, s->n, start, address);
	return i && address < s->maps[i - 1].end ? i - 1 : s->n;
}

int d9_space_read(const struct d9_space *s, d9_u64 address, void *buf, size_t n)
{
	size_t i = d9_space_find(s, address);
	if (i < s->n)
		return s->placed[i].object ? d9_object_read(s->placed[i].object, address - s->placed[i].bias, buf, n)
					   : -EFAULT;
	/* Tables lie in segments that are not executable, hence not recorded, but at the same bias. */
	for (i = 0; i < s->n; i++)
		if (s->placed[i].object &&
		    d9_object_read(s->placed[i].object, address - s->placed[i].bias, buf, n) == 0)
			return 0;
	return -EFAULT;
}

/* ---- places ------------------------------------------------------------------------------------------ */

static size_t slot_of(const struct place *places, size_t n_slots, const struct d9_object *o, d9_u64 vaddr)
{
	d9_u64 h = (vaddr ^ (d9_u64)(uintptr_t)o * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
	size_t i = (h >> 32) & (n_slots - 1);
	while (places[i].object && (places[i].object != o || places[i].vaddr != vaddr))
		i = (i + 1) & (n_slots - 1);
	return i;
}

static bool grow_places(struct d9_symbols *s)
{
	size_t n = s->n_slots ? s->n_slots * 2 : 1024;
	struct place *places = calloc(n, sizeof(*places));
	if (!places)
		return false;
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->places[i].object)
			places[slot_of(places, n, s->places[i].object, s->places[i].vaddr)] = s->places[i];
	free(s->places);
	s->places = places;
	s->n_slots = n;
	return true;
}

static struct place look_up(struct d9_object *o, d9_u64 vaddr)
{
	struct d9_line lines[INLINE_MAX];
	struct place p = {.object = o, .vaddr = vaddr, .symbol = d9_object_symbol(o, vaddr)};
	size_t n = d9_object_lines(o, vaddr, lines, INLINE_MAX);
	p.lines = n ? malloc(n * sizeof(*lines)) : NULL;
	if (p.lines) {
		memcpy(p.lines, lines, n * sizeof(*lines));
		p.n_lines = (unsigned)n;
		return p;
	}
	for (size_t i = 0; i < n; i++)
		free(lines[i].function);
	return p;
}

static const struct place *find_place(struct d9_symbols *s, struct d9_object *o, d9_u64 vaddr)
{
	static const struct place nothing;
	if (s->n_places * 2 >= s->n_slots && !grow_places(s))
		return &nothing;
	struct place *p = &s->places[slot_of(s->places, s->n_slots, o, vaddr)];
	if (!p->object) {
		*p = look_up(o, vaddr);
		s->n_places++;
	}
	return p;
}

/* ---- names ------------------------------------------------------------------------------------------- */

static const char *module_name(struct d9_symbols *s, const char *path)
{
	if (!path || !*path)
		return "[anon]";
	const char *slash = *path == '/' ? strrchr(path, '/') : NULL, *base = slash ? slash + 1 : path;
	size_t n = strlen(base), mark = strlen(DELETED);
	if (n <= mark || strcmp(base + n - mark, DELETED))
		return base;
	const char *kept = keep_text(s, base, n - mark);
	return kept ? kept : base;
}

static void fill_from_jit(const struct d9_space *sp, d9_u64 address, d9_u64 pc, struct d9_frame *f)
{
	d9_u64 start;
	f->symbol = d9_perf_map_find(sp->jit, pc, &start);
	if (!f->symbol)
		return;
	f->module = "[jit]";
	f->symbol_offset = address - start;
}

/* Frame i of the n at a place: 0 is the innermost inlined call, the last is the function itself. */
static void fill_from_place(const struct place *p, unsigned i, d9_u64 vaddr, struct d9_frame *f)
{
	const struct d9_line *line = i < p->n_lines ? &p->lines[i] : NULL;
	if (line) {
		f->file = line->file;
		f->line = line->line;
	}
	if (line && line->function) {
		f->symbol = line->function;
		f->inlined = true;
	} else if (p->symbol) {
		f->symbol = p->symbol->name;
	}
	if (p->symbol)
		f->symbol_offset = vaddr - p->symbol->start;
}

/* All frames at an address, innermost first; at least one.  max > 0. */
static size_t name_all(struct d9_symbols *s, struct d9_space *sp, d9_u64 address, bool is_return, struct d9_frame *ret,
		       size_t max)
{
	d9_u64 pc = address - is_return;
	size_t i = sp ? d9_space_find(sp, pc) : 0, n = 1;
	bool mapped = sp && i < sp->n;
	struct d9_object *o = mapped ? sp->placed[i].object : NULL;
	struct d9_frame base = {.address = address, .offset = address};
	if (mapped) {
		const struct d9_mapping *m = &sp->maps[i];
		base.module = module_name(s, m->path);
		/* without the file its headers are not known, and the offset in the file must do */
		base.offset = o ? address - sp->placed[i].bias : address - m->start + m->offset;
	}
	ret[0] = base;
	if (o) {
		const struct place *p = find_place(s, o, pc - sp->placed[i].bias);
		n = p->n_lines > 1 ? p->n_lines : 1;
		if (n > max)
			n = max;
		for (unsigned k = 0; k < n; k++) {
			ret[k] = base;
			fill_from_place(p, k, base.offset, &ret[k]);
		}
	} else if (sp && (!mapped || !sp->maps[i].path || *sp->maps[i].path != '/')) {
		fill_from_jit(sp, address, pc, &ret[0]);
	}
	for (size_t k = 0; k < n; k++)
		ret[k].plumbing = d9_is_plumbing(ret[k].module, ret[k].symbol);
	return n;
}

void d9_symbols_name(struct d9_symbols *s, const struct d9_maps *maps, d9_u64 address, bool is_return,
		     struct d9_frame *ret)
{
	name_all(s, find_space(s, maps), address, is_return, ret, 1);
}

const char *d9_symbols_function(struct d9_symbols *s, const struct d9_maps *maps, d9_u64 address)
{
	struct d9_space *sp = find_space(s, maps);
	size_t i = sp ? d9_space_find(sp, address) : 0;
	struct d9_object *o = sp && i < sp->n ? sp->placed[i].object : NULL;
	if (!o)
		return NULL;
	d9_u64 vaddr = address - sp->placed[i].bias;
	const struct d9_symbol *f = d9_object_symbol(o, vaddr);
	const char *name = f && f->start == vaddr ? f->name : NULL;
	const char *generic = name && strchr(name, '<') ? NULL : d9_object_generic_name(o, vaddr);
	return generic ? generic : name;
}

const char *d9_symbols_variable(struct d9_symbols *s, const struct d9_maps *maps, d9_u64 address)
{
	struct d9_space *sp = find_space(s, maps);
	for (size_t i = 0; sp && i < sp->n; i++) { /* data is not recorded, but lies at the bias of the code */
		const struct d9_placed *p = &sp->placed[i];
		d9_u64 vaddr = address - p->bias;
		if (!p->object || !d9_object_has_data(p->object, vaddr))
			continue;
		const struct d9_symbol *v = d9_object_variable(p->object, vaddr);
		char text[512], at[24] = "";
		if (!v)
			return NULL;
		if (vaddr > v->start)
			snprintf(at, sizeof(at), "+0x%llx", (unsigned long long)(vaddr - v->start));
		int n = snprintf(text, sizeof(text), "%.100s:%.300s%s", module_name(s, sp->maps[i].path), v->name, at);
		return keep_text(s, text, (size_t)n);
	}
	return NULL;
}

/* ---- stacks ------------------------------------------------------------------------------------------ */

static bool is_shim(const struct d9_space *sp, const struct d9_raw_frame *f)
{
	size_t i = d9_space_find(sp, f->address - f->is_return);
	if (i == sp->n || !sp->maps[i].path)
		return false;
	const char *slash = strrchr(sp->maps[i].path, '/');
	return slash && !strncmp(slash + 1, SHIM, strlen(SHIM));
}

static size_t raw_stack(struct d9_space *sp, unsigned kind, const void *bytes, size_t n_bytes, struct d9_raw_frame *ret,
			size_t max)
{
	size_t n = 0, kept = 0;
	if (kind == D9_TAIL_SLICE) {
		n = d9_unwind_slice(sp, bytes, n_bytes, ret, max);
	} else if (kind == D9_TAIL_WORDS) {
		n = d9_unwind_words(sp, bytes, n_bytes, ret, max);
	} else if (kind == D9_TAIL_FRAMES) {
		for (; n < max && (n + 1) * sizeof(d9_u64) <= n_bytes; n++) {
			memcpy(&ret[n].address, (const char *)bytes + n * sizeof(d9_u64), sizeof(d9_u64));
			ret[n].is_return = true;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (!is_shim(sp, &ret[i]))
			ret[kept++] = ret[i];
	return kept;
}

/* "symbol+0x12" */
static void kernel_frame(struct d9_symbols *s, const char *line, size_t n, struct d9_frame *f)
{
	const char *plus = memchr(line, '+', n);
	size_t n_name = plus ? (size_t)(plus - line) : n;
	f->module = "[kernel]";
	f->symbol = keep_text(s, line, n_name);
	if (plus)
		f->offset = f->symbol_offset = strtoull(plus + 1, NULL, 16);
}

/* "function, file, line", from the right: a function's name may hold commas */
static void interpreted_frame(struct d9_symbols *s, const char *line, size_t n, struct d9_frame *f)
{
	const char *comma2 = memrchr(line, ',', n),
		   *comma1 = comma2 ? memrchr(line, ',', (size_t)(comma2 - line)) : NULL;
	f->module = "[interpreted]";
	f->symbol = keep_text(s, line, comma1 ? (size_t)(comma1 - line) : n);
	if (!comma1)
		return;
	const char *file = comma1 + 1 + (comma1[1] == ' ');
	f->file = file < comma2 ? keep_text(s, file, (size_t)(comma2 - file)) : NULL;
	f->line = (int)strtol(comma2 + 1, NULL, 10); /* ends at the newline, or at keep_text's NUL */
}

static size_t text_stack(struct d9_symbols *s, unsigned kind, const void *bytes, size_t n_bytes, struct d9_frame *ret,
			 size_t max)
{
	/* A copy, so that every number ends at a NUL at the latest. */
	const char *p = keep_text(s, bytes, n_bytes), *end = p ? p + n_bytes : NULL;
	size_t n = 0;
	while (p < end && n < max) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((eol ? eol : end) - p);
		len = strnlen(p, len);
		if (len) {
			ret[n] = (struct d9_frame){0};
			(kind == D9_TAIL_KERNEL ? kernel_frame : interpreted_frame)(s, p, len, &ret[n]);
			n++;
		}
		p = eol ? eol + 1 : end;
	}
	return n;
}

size_t d9_symbols_stack(struct d9_symbols *s, const struct d9_maps *maps, unsigned tail_kind, const void *bytes,
			size_t n_bytes, struct d9_frame *ret, size_t max)
{
	struct d9_raw_frame raw[RAW_MAX];
	if (tail_kind == D9_TAIL_KERNEL || tail_kind == D9_TAIL_INTERPRETED)
		return text_stack(s, tail_kind, bytes, n_bytes, ret, max);
	struct d9_space *sp = find_space(s, maps);
	size_t n_raw = sp ? raw_stack(sp, tail_kind, bytes, n_bytes, raw, RAW_MAX) : 0, n = 0;
	for (size_t i = 0; i < n_raw && n < max; i++)
		n += name_all(s, sp, raw[i].address, raw[i].is_return, ret + n, max - n);
	return n;
}

size_t d9_symbols_unwind(struct d9_symbols *s, const struct d9_maps *maps, unsigned tail_kind, const void *bytes,
			 size_t n_bytes, d9_u64 *ret, size_t max)
{
	struct d9_raw_frame raw[RAW_MAX];
	struct d9_space *sp = find_space(s, maps);
	size_t n = sp ? raw_stack(sp, tail_kind, bytes, n_bytes, raw, max < RAW_MAX ? max : RAW_MAX) : 0;
	for (size_t i = 0; i < n; i++)
		ret[i] = raw[i].address;
	return n;
}
