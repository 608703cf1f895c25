/*
 * Source lines of one file, inlined calls included.  Ranges of the compile units are read from their
 * own DIEs, once: .debug_aranges, on which libdwfl relies, is written neither by clang nor by current
 * rustc, and the standard search for debug files may go to the network.
 */
#include "demangle.h"
#include "object.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static bool add_range(struct d9_object *o, size_t *capacity, struct d9_cu_range r)
{
	if (r.start >= r.end)
		return true;
	if (o->n_cus == *capacity) {
		size_t more = *capacity ? *capacity * 2 : 256;
		void *p = realloc(o->cus, more * sizeof(*o->cus));
		if (!p)
			return false;
		o->cus = p;
		*capacity = more;
	}
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
	size_t lo = 0, hi = o->n_cus;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (o->cus[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr < o->cus[lo - 1].end && dwarf_offdie(o->dwarf, o->cus[lo - 1].cu, ret);
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

/* The scopes around vaddr as the code is nested: dwarf_getscopes goes on where an inlined function was written. */
static int scopes_at(Dwarf_Die *cu, d9_u64 vaddr, Dwarf_Die **ret)
{
	Dwarf_Die *scopes = NULL;
	int n = dwarf_getscopes(cu, vaddr, &scopes);
	if (n <= 0)
		return 0;
	Dwarf_Die innermost = scopes[0];
	free(scopes);
	return dwarf_getscopes_die(&innermost, ret);
}

size_t d9_object_lines(struct d9_object *o, d9_u64 vaddr, struct d9_line *ret, size_t max)
{
	Dwarf_Die cu, *scopes = NULL;
	size_t n = 0;
	open_dwarf(o);
	if (!max || !find_cu(o, vaddr, &cu))
		return 0;
	struct d9_line here;
	line_of(&cu, vaddr, &here);
	int n_scopes = scopes_at(&cu, vaddr, &scopes);
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
	int n = scopes_at(&cu, vaddr, &scopes);
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
	free(o->cus);
}
