/*
 * The symbol tables of one file, functions and variables: .symtab of the file or of its debug file, else .dynsym.  A name is
 * given only to an address that lies inside a symbol with a size: "from here to the next symbol" would
 * give a stripped library's private functions the name of the exported one before them, and PLT entries
 * that of _init.
 */
#include "demangle.h"
#include "object.h"
#include "search.h"

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

static const struct d9_load *load_at(const struct d9_object *o, d9_u64 vaddr, bool executable)
{
	for (size_t i = 0; i < o->n_loads; i++)
		if (o->loads[i].executable == executable && vaddr >= o->loads[i].vaddr &&
		    vaddr - o->loads[i].vaddr < o->loads[i].mem_bytes)
			return &o->loads[i];
	return NULL;
}

bool d9_object_has_data(const struct d9_object *o, d9_u64 vaddr) { return load_at(o, vaddr, false) != NULL; }

static bool is_kind(unsigned type, bool data)
{
	return data ? type == STT_OBJECT : type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static bool take_symbol(const struct d9_object *o, Elf *elf, const struct section *t, size_t i, bool data,
			struct d9_symbol *ret)
{
	GElf_Sym sym;
	if (!gelf_getsym(t->data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS)
		return false;
	if (!is_kind(GELF_ST_TYPE(sym.st_info), data))
		return false;
	const struct d9_load *load = load_at(o, sym.st_value, !data);
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
static void tidy(struct d9_symbol_table *all)
{
	size_t n = 0;
	qsort(all->v, all->n, sizeof(*all->v), by_start);
	for (size_t i = 0; i < all->n; i++) {
		struct d9_symbol *last = n ? &all->v[n - 1] : NULL;
		if (last && last->start == all->v[i].start) {
			if (last->end < all->v[i].end)
				last->end = all->v[i].end;
			continue;
		}
		all->v[n++] = all->v[i];
	}
	all->n = n;
}

static void read_symbols(struct d9_object *o, bool data, struct d9_symbol_table *all)
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
	all->v = calloc(t.n ? t.n : 1, sizeof(*all->v));
	if (!all->v)
		return;
	for (size_t i = 0; i < t.n; i++)
		if (take_symbol(o, elf, &t, i, data, &all->v[all->n]))
			all->n++;
	tidy(all);
}

/* Index of the last symbol that starts at or before vaddr, n if there is none. */
static size_t last_before(const struct d9_symbol_table *all, d9_u64 vaddr)
{
	size_t i = D9_FIRST_AFTER(all->v, all->n, start, vaddr);
	return i ? i - 1 : all->n;
}

#define NESTED_MAX 8 /* labels inside a function that we look past for the function itself */

static const struct d9_symbol *find(struct d9_object *o, bool data, struct d9_symbol_table *all, d9_u64 vaddr)
{
	if (!all->read) {
		all->read = true;
		read_symbols(o, data, all);
	}
	size_t i = last_before(all, vaddr);
	if (i == all->n)
		return NULL;
	for (size_t tries = 0; tries < NESTED_MAX; tries++, i--) {
		struct d9_symbol *s = &all->v[i];
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

const struct d9_symbol *d9_object_symbol(struct d9_object *o, d9_u64 vaddr)
{
	return find(o, false, &o->functions, vaddr);
}
const struct d9_symbol *d9_object_variable(struct d9_object *o, d9_u64 vaddr) { return find(o, true, &o->data, vaddr); }

static void free_table(struct d9_symbol_table *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->v[i].name);
	free(all->v);
}

void d9_object_free_symbols(struct d9_object *o)
{
	free_table(&o->functions);
	free_table(&o->data);
}
