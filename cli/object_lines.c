/*
 * Source lines of one file, inlined calls included.  Ranges of the compile units are read from their
 * own DIEs, once: .debug_aranges, on which libdwfl relies, is written neither by clang nor by current
 * rustc, and the standard search for debug files may go to the network.
 */
#include "demangle.h"
#include "object.h"
#include "search.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* v, with room for one more than n things of this size; NULL: no memory, and v is as it was. */
static void *with_room(void *v, size_t n, size_t *capacity, size_t size)
{
	if (n < *capacity)
		return v;
	size_t more = *capacity ? *capacity * 2 : 64;
	void *p = realloc(v, more * size);
	*capacity = p ? more : *capacity;
	return p;
}

static bool add_range(struct d9_object *o, size_t *capacity, struct d9_cu_range r)
{
	if (r.start >= r.end)
		return true;
	void *p = with_room(o->cus, o->n_cus, capacity, sizeof(*o->cus));
	if (!p)
		return false;
	o->cus = p;
	o->cus[o->n_cus++] = r;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct d9_cu_range *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Was this unit compiled elsewhere, as a part of the tool chain? */
static bool is_toolchain(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *dir = dwarf_attr(die, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
	return dir && (!strncmp(dir, "/rustc/", 7) || !strncmp(dir, "/rust/deps/", 11));
}

static bool read_unit(struct d9_object *o, Dwarf_Die *die, size_t *capacity)
{
	Dwarf_Addr base, start, end;
	bool own = !is_toolchain(die);
	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
		if (!add_range(o, capacity, (struct d9_cu_range){start, end, dwarf_dieoffset(die)}))
			return false;
		if (own && start < end) {
			o->own_bytes += end - start;
			o->own_rust |= dwarf_srclang(die) == DW_LANG_Rust;
		}
	}
	return true;
}

static void read_ranges(struct d9_object *o)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	size_t capacity = 0;
	while (dwarf_get_units(o->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0)
		if ((type == DW_UT_compile || type == DW_UT_skeleton) && !read_unit(o, &die, &capacity))
			break;
	if (o->n_cus)
		qsort(o->cus, o->n_cus, sizeof(*o->cus), by_start);
}

static void open_dwarf(struct d9_object *o)
{
	if (o->dwarf_tried)
		return;
	o->dwarf_tried = true;
	o->dwarf = dwarf_begin_elf(d9_object_debug_elf(o), DWARF_C_READ, NULL);
	if (!o->dwarf && o->debug_elf)
		o->dwarf = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
	if (o->dwarf)
		read_ranges(o);
}

bool d9_object_has_lines(struct d9_object *o)
{
	d9_u64 code = 0;
	open_dwarf(o);
	for (size_t i = 0; i < o->n_loads; i++)
		code += o->loads[i].executable ? o->loads[i].file_bytes : 0;
	/* a tenth: a start-up file or one assembly source with lines does not make a program with lines */
	return o->own_rust || (o->own_bytes && o->own_bytes >= code / 10);
}

static bool find_cu(struct d9_object *o, d9_u64 vaddr, Dwarf_Die *ret)
{
	size_t i = D9_FIRST_AFTER(o->cus, o->n_cus, start, vaddr);
	return i && vaddr < o->cus[i - 1].end && dwarf_offdie(o->dwarf, o->cus[i - 1].cu, ret);
}

static char *function_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name)
		name = dwarf_diename(die);
	return name ? d9_demangle(name) : NULL;
}

/* Where an inlined call was written: what the caller's own line is. */
static void call_place(Dwarf_Die *cu, Dwarf_Die *inlined, const char **ret_file, int *ret_line)
{
	Dwarf_Attribute attr;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t n;
	*ret_file = NULL;
	*ret_line = 0;
	if (!dwarf_attr(inlined, DW_AT_call_line, &attr) || dwarf_formudata(&attr, &line) != 0 || line > 0x7fffffff ||
	    !dwarf_attr(inlined, DW_AT_call_file, &attr) || dwarf_formudata(&attr, &file) != 0)
		return;
	if (dwarf_getsrcfiles(cu, &files, &n) != 0 || file >= n)
		return;
	*ret_file = dwarf_filesrc(files, file, NULL, NULL);
	*ret_line = *ret_file ? (int)line : 0;
}

static void line_of(Dwarf_Die *cu, d9_u64 vaddr, struct d9_line *ret)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, vaddr);
	*ret = (struct d9_line){0};
	if (!line)
		return;
	ret->file = dwarf_linesrc(line, NULL, NULL);
	if (!ret->file || dwarf_lineno(line, &ret->line) != 0 || ret->line == 0)
		*ret = (struct d9_line){0}; /* line 0: code that belongs to no line */
}

/* ---- functions ------------------------------------------------------------------------------------------- */

/*
 * dwarf_getscopes passes by a scope that has no addresses of its own, and all functions of Rust lie in namespaces; from an inlined
 * function it goes on where that was written.  So the functions of a unit are gathered here, from wherever they lie.
 */
#define NESTED_MAX 64 /* scopes within scopes: a file may say anything */

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type || tag == DW_TAG_module;
}

static bool add_function(struct d9_cu *u, size_t *capacity, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
		if (start >= end)
			continue;
		void *p = with_room(u->v, u->n, capacity, sizeof(*u->v));
		if (!p)
			return false;
		u->v = p;
		u->v[u->n++] = (struct d9_cu_function){start, end, dwarf_dieoffset(die)};
	}
	return true;
}

/* *last: the place of the entry that was looked at last.  They stand one after the other, whatever a file says of who follows whom. */
static bool gather_functions(struct d9_cu *u, size_t *capacity, Dwarf_Die *parent, unsigned depth, Dwarf_Off *last)
{
	Dwarf_Die die;
	if (depth > NESTED_MAX || dwarf_child(parent, &die) != 0)
		return true;
	for (;;) {
		if (dwarf_dieoffset(&die) <= *last)
			return true;
		*last = dwarf_dieoffset(&die);
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_subprogram && !add_function(u, capacity, &die))
			return false;
		if (holds_functions(tag) && !gather_functions(u, capacity, &die, depth + 1, last))
			return false;
		if (dwarf_siblingof(&die, &die) != 0)
			return true;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct d9_cu_function *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static const struct d9_cu *unit_of(struct d9_object *o, Dwarf_Die *cu)
{
	size_t capacity = 0;
	for (size_t i = 0; i < o->n_units; i++)
		if (o->units[i].cu == dwarf_dieoffset(cu))
			return &o->units[i];
	struct d9_cu u = {.cu = dwarf_dieoffset(cu)}, *units = realloc(o->units, (o->n_units + 1) * sizeof(*units));
	if (!units)
		return NULL;
	o->units = units;
	Dwarf_Off last = 0;
	if (!gather_functions(&u, &capacity, cu, 0, &last))
		u.n = 0; /* no memory for all, and a part of them would give wrong names */
	if (u.n)
		qsort(u.v, u.n, sizeof(*u.v), by_address);
	o->units[o->n_units] = u;
	return &o->units[o->n_units++];
}

static bool find_function(struct d9_object *o, Dwarf_Die *cu, d9_u64 vaddr, Dwarf_Die *ret)
{
	const struct d9_cu *u = unit_of(o, cu);
	size_t i = u ? D9_FIRST_AFTER(u->v, u->n, start, vaddr) : 0;
	return i && vaddr < u->v[i - 1].end && dwarf_offdie(o->dwarf, u->v[i - 1].die, ret);
}

static bool holds_code(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block;
}

/* The scope directly inside of `in` that vaddr lies in. */
static bool scope_in(Dwarf_Die *in, d9_u64 vaddr, Dwarf_Die *ret)
{
	if (dwarf_child(in, ret) != 0)
		return false;
	for (;;) {
		if (holds_code(dwarf_tag(ret)) && dwarf_haspc(ret, vaddr) == 1)
			return true;
		Dwarf_Off here = dwarf_dieoffset(ret);
		if (dwarf_siblingof(ret, ret) != 0 || dwarf_dieoffset(ret) <= here)
			return false;
	}
}

/* The scopes around vaddr as the code is nested, innermost first, from the function on; to be freed. */
static int scopes_at(struct d9_object *o, Dwarf_Die *cu, d9_u64 vaddr, Dwarf_Die **ret)
{
	Dwarf_Die scopes[NESTED_MAX];
	int n = 1;
	if (!find_function(o, cu, vaddr, &scopes[NESTED_MAX - 1]))
		return 0;
	while (n < NESTED_MAX && scope_in(&scopes[NESTED_MAX - n], vaddr, &scopes[NESTED_MAX - n - 1]))
		n++;
	*ret = malloc((size_t)n * sizeof(**ret));
	if (!*ret)
		return 0;
	memcpy(*ret, &scopes[NESTED_MAX - n], (size_t)n * sizeof(**ret));
	return n;
}

/* ---- answers -------------------------------------------------------------------------------------------- */

size_t d9_object_lines(struct d9_object *o, d9_u64 vaddr, struct d9_line *ret, size_t max)
{
	Dwarf_Die cu, *scopes = NULL;
	size_t n = 0;
	open_dwarf(o);
	if (!max || !find_cu(o, vaddr, &cu))
		return 0;
	struct d9_line here;
	line_of(&cu, vaddr, &here);
	int n_scopes = scopes_at(o, &cu, vaddr, &scopes);
	for (int i = 0; i < n_scopes && n + 1 < max; i++) {
		int tag = dwarf_tag(&scopes[i]);
		if (tag == DW_TAG_subprogram)
			break;
		if (tag != DW_TAG_inlined_subroutine)
			continue;
		here.function = function_name(&scopes[i]);
		if (here.function)
			ret[n++] = here;
		here.function = NULL;
		call_place(&cu, &scopes[i], &here.file, &here.line);
	}
	free(scopes);
	ret[n++] = here;
	return n;
}

const char *d9_object_generic_name(struct d9_object *o, d9_u64 vaddr)
{
	Dwarf_Die cu, *scopes = NULL;
	const char *name = NULL;
	open_dwarf(o);
	if (!find_cu(o, vaddr, &cu))
		return NULL;
	int n = scopes_at(o, &cu, vaddr, &scopes);
	for (int i = 0; i < n && !name; i++)
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			name = dwarf_diename(&scopes[i]);
	free(scopes);
	return name;
}

void d9_object_free_lines(struct d9_object *o)
{
	if (o->dwarf)
		dwarf_end(o->dwarf);
	for (size_t i = 0; i < o->n_units; i++)
		free(o->units[i].v);
	free(o->units);
	free(o->cus);
}
