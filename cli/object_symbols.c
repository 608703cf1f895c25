/*
 * The symbol table of one file: .symtab of the file or of its debug file, else .dynsym.  A name is
 * given only to an address that lies inside a symbol with a size: "from here to the next symbol" would
 * give a stripped library's private functions the name of the exported one before them, and PLT entries
 * that of _init.
 */
#include "demangle.h"
#include "object.h"

#include <stdlib.h>
#include <string.h>

struct section {
	Elf_Data *data;
	size_t n, strings;
};

static bool find_table(Elf *elf, unsigned type, struct section *ret)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr sh;
		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type || sh.sh_entsize != sizeof(Elf64_Sym))
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		*ret = (struct section){data, data->d_size / sizeof(Elf64_Sym), sh.sh_link};
		return true;
	}
	return false;
}

static const struct d9_load *load_at(const struct d9_object *o, d9_u64 vaddr)
{
	for (size_t i = 0; i < o->n_loads; i++)
		if (o->loads[i].executable && vaddr >= o->loads[i].vaddr &&
		    vaddr - o->loads[i].vaddr < o->loads[i].mem_bytes)
			return &o->loads[i];
	return NULL;
}

static bool take_symbol(const struct d9_object *o, Elf *elf, const struct section *t, size_t i, struct d9_symbol *ret)
{
	GElf_Sym sym;
	if (!gelf_getsym(t->data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS)
		return false;
	unsigned type = GELF_ST_TYPE(sym.st_info);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	const struct d9_load *load = load_at(o, sym.st_value);
	if (!load || sym.st_size == 0 || sym.st_size > load->vaddr + load->mem_bytes - sym.st_value)
		return false;
	const char *name = elf_strptr(elf, t->strings, sym.st_name);
	if (!name || !*name || *name == '.' || *name == '$')
		return false;
	*ret = (struct d9_symbol){.start = sym.st_value, .end = sym.st_value + sym.st_size, .raw = name};
	return true;
}

/* Of several names for one address the one without underscores is the one that people call. */
static int by_start(const void *a, const void *b)
{
	const struct d9_symbol *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	size_t ux = strspn(x->raw, "_"), uy = strspn(y->raw, "_");
	if (ux != uy)
		return ux < uy ? -1 : 1;
	size_t lx = strlen(x->raw), ly = strlen(y->raw);
	if (lx != ly)
		return lx < ly ? -1 : 1;
	return strcmp(x->raw, y->raw);
}

/* One symbol per start. */
static void tidy(struct d9_object *o)
{
	size_t n = 0;
	qsort(o->symbols, o->n_symbols, sizeof(*o->symbols), by_start);
	for (size_t i = 0; i < o->n_symbols; i++) {
		struct d9_symbol *last = n ? &o->symbols[n - 1] : NULL;
		if (last && last->start == o->symbols[i].start) {
			if (last->end < o->symbols[i].end)
				last->end = o->symbols[i].end;
			continue;
		}
		o->symbols[n++] = o->symbols[i];
	}
	o->n_symbols = n;
}

static void read_symbols(struct d9_object *o)
{
	struct section t;
	Elf *elf = d9_object_debug_elf(o);
	bool full = find_table(elf, SHT_SYMTAB, &t);
	if (!full && elf != o->elf) {
		elf = o->elf;
		full = find_table(elf, SHT_SYMTAB, &t);
	}
	if (!full && !find_table(elf, SHT_DYNSYM, &t))
		return;
	o->symbols = calloc(t.n ? t.n : 1, sizeof(*o->symbols));
	if (!o->symbols)
		return;
	for (size_t i = 0; i < t.n; i++)
		if (take_symbol(o, elf, &t, i, &o->symbols[o->n_symbols]))
			o->n_symbols++;
	tidy(o);
}

/* Index of the last symbol that starts at or before vaddr, n if there is none. */
static size_t last_before(const struct d9_object *o, d9_u64 vaddr)
{
	size_t lo = 0, hi = o->n_symbols;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (o->symbols[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : o->n_symbols;
}

#define NESTED_MAX 8 /* labels inside a function that we look past for the function itself */

const struct d9_symbol *d9_object_symbol(struct d9_object *o, d9_u64 vaddr)
{
	if (!o->symbols_read) {
		o->symbols_read = true;
		read_symbols(o);
	}
	size_t i = last_before(o, vaddr);
	if (i == o->n_symbols)
		return NULL;
	for (size_t tries = 0; tries < NESTED_MAX; tries++, i--) {
		struct d9_symbol *s = &o->symbols[i];
		if (vaddr < s->end) {
			if (!s->name)
				s->name = d9_demangle(s->raw);
			return s->name ? s : NULL;
		}
		if (i == 0)
			break;
	}
	return NULL;
}

void d9_object_free_symbols(struct d9_object *o)
{
	for (size_t i = 0; i < o->n_symbols; i++)
		free(o->symbols[i].name);
	free(o->symbols);
}
