/* Facts of one ELF file for `d9 check`: what it needs, what was left in it for stacks and names. */
#include "check.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int d9_version_compare(struct d9_version a, struct d9_version b)
{
	return a.major != b.major   ? (a.major < b.major ? -1 : 1)
	       : a.minor != b.minor ? (a.minor < b.minor ? -1 : 1)
				    : 0;
}

static void raise_version(struct d9_version *max, const char *name)
{
	struct d9_version v;
	if (name && sscanf(name, "GLIBC_%u.%u", &v.major, &v.minor) == 2 && d9_version_compare(v, *max) > 0)
		*max = v;
}

/* ---- program headers and the dynamic section -------------------------------------------------------- */

/* A NUL-ended string of the loaded image; cut at max. */
static void read_string(const struct d9_object *o, d9_u64 vaddr, char *ret, size_t max)
{
	ret[0] = 0;
	if (d9_object_read(o, vaddr, ret, max - 1) < 0)
		ret[0] = 0;
	ret[max - 1] = 0;
}

static void take_dynamic(const struct d9_object *o, const Elf64_Dyn *d, size_t n, struct d9_elf_facts *f, bool *ret_pie)
{
	d9_u64 strings = 0;
	for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++)
		if (d[i].d_tag == DT_STRTAB)
			strings = d[i].d_un.d_ptr;
	for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
		d9_u64 at = strings + d[i].d_un.d_val;
		if (d[i].d_tag == DT_NEEDED && f->n_needed < D9_N_NEEDED)
			read_string(o, at, f->needed[f->n_needed++], sizeof(f->needed[0]));
		else if (d[i].d_tag == DT_SONAME)
			read_string(o, at, f->soname, sizeof(f->soname));
		else if (d[i].d_tag == DT_RUNPATH || (d[i].d_tag == DT_RPATH && !f->runpath[0]))
			read_string(o, at, f->runpath, sizeof(f->runpath));
		else if (d[i].d_tag == DT_FLAGS_1)
			*ret_pie = d[i].d_un.d_val & DF_1_PIE;
	}
}

static void read_headers(const struct d9_object *o, struct d9_elf_facts *f)
{
	size_t n;
	bool pie = false, dynamic = false;
	GElf_Ehdr eh;
	if (elf_getphdrnum(o->elf, &n) < 0 || !gelf_getehdr(o->elf, &eh))
		return;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(o->elf, (int)i, &ph))
			continue;
		if (ph.p_type == PT_INTERP)
			read_string(o, ph.p_vaddr, f->interpreter, sizeof(f->interpreter));
		if (ph.p_type != PT_DYNAMIC)
			continue;
		dynamic = true;
		Elf_Data *data = elf_getdata_rawchunk(o->elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_DYN);
		if (data && data->d_buf)
			take_dynamic(o, data->d_buf, data->d_size / sizeof(Elf64_Dyn), f, &pie);
	}
	if (f->interpreter[0])
		f->kind = D9_BINARY_DYNAMIC;
	else if (eh.e_type == ET_EXEC || !dynamic)
		f->kind = D9_BINARY_STATIC;
	else
		f->kind = pie ? D9_BINARY_STATIC_PIE : D9_BINARY_LIBRARY;
}

/* ---- sections ------------------------------------------------------------------------------------------ */

static void read_needs(Elf *elf, Elf_Data *data, size_t strings, struct d9_elf_facts *f)
{
	GElf_Verneed need;
	int at = 0, left = 4096; /* offsets of a hostile file may run in a circle */
	while (left-- > 0 && gelf_getverneed(data, at, &need)) {
		GElf_Vernaux aux;
		int aux_at = at + (int)need.vn_aux;
		for (int i = 0; i < need.vn_cnt && left-- > 0 && gelf_getvernaux(data, aux_at, &aux); i++) {
			raise_version(&f->glibc_needed, elf_strptr(elf, strings, aux.vna_name));
			if (!aux.vna_next)
				break;
			aux_at += (int)aux.vna_next;
		}
		if (!need.vn_next)
			return;
		at += (int)need.vn_next;
	}
}

static void read_definitions(Elf *elf, Elf_Data *data, size_t strings, struct d9_elf_facts *f)
{
	GElf_Verdef def;
	int at = 0, left = 4096;
	while (left-- > 0 && gelf_getverdef(data, at, &def)) {
		GElf_Verdaux aux;
		if (gelf_getverdaux(data, at + (int)def.vd_aux, &aux))
			raise_version(&f->glibc_defined, elf_strptr(elf, strings, aux.vda_name));
		if (!def.vd_next)
			return;
		at += (int)def.vd_next;
	}
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void add_name(struct d9_names *names, const char *name)
{
	if (names->of && (names->of[names->n] = strdup(name)))
		names->n++;
}

static void read_dynsym(Elf *elf, Elf_Data *data, size_t strings, struct d9_elf_facts *f)
{
	size_t n = data->d_size / sizeof(Elf64_Sym);
	f->dynsym = n > 1;
	f->imports.of = calloc(n + 1, sizeof(char *));
	f->exports.of = calloc(n + 1, sizeof(char *));
	for (size_t i = 0; i < n; i++) {
		GElf_Sym sym;
		const char *name = gelf_getsym(data, (int)i, &sym) ? elf_strptr(elf, strings, sym.st_name) : NULL;
		if (name && *name)
			add_name(sym.st_shndx == SHN_UNDEF ? &f->imports : &f->exports, name);
	}
	if (f->imports.n)
		qsort(f->imports.of, f->imports.n, sizeof(char *), by_name);
	if (f->exports.n)
		qsort(f->exports.of, f->exports.n, sizeof(char *), by_name);
	f->asan = d9_elf_facts_export(f, "__asan_init");
	f->tsan = d9_elf_facts_export(f, "__tsan_init");
}

static void read_sections(Elf *elf, struct d9_elf_facts *f)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr sh;
		size_t names;
		if (!gelf_getshdr(scn, &sh))
			continue;
		const char *name = elf_getshdrstrndx(elf, &names) == 0 ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (name && (!strcmp(name, ".go.buildinfo") || !strcmp(name, ".note.go.buildid")))
			f->go = true;
		if (name && !strcmp(name, ".eh_frame") && sh.sh_type != SHT_NOBITS && sh.sh_size > 8)
			f->eh_frame = true;
		if (sh.sh_type != SHT_DYNSYM && sh.sh_type != SHT_GNU_verneed && sh.sh_type != SHT_GNU_verdef)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		if (sh.sh_type == SHT_DYNSYM && !f->imports.of)
			read_dynsym(elf, data, sh.sh_link, f);
		else if (sh.sh_type == SHT_GNU_verneed)
			read_needs(elf, data, sh.sh_link, f);
		else if (sh.sh_type == SHT_GNU_verdef)
			read_definitions(elf, data, sh.sh_link, f);
	}
}

static bool has_symtab(Elf *elf)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr sh;
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_SYMTAB && sh.sh_size > sizeof(Elf64_Sym))
			return true;
	}
	return false;
}

/* ---- bytes ---------------------------------------------------------------------------------------------- */

/* "/tokio-1.38.0/": the path of the crate's source stands in its panic messages, also in stripped programs. */
static void find_tokio(const char *raw, size_t n, struct d9_elf_facts *f)
{
	static const char mark[] = "/tokio-1.";
	for (const char *p = raw, *end = raw + n; (p = memmem(p, (size_t)(end - p), mark, sizeof(mark) - 1));) {
		const char *version = p + sizeof("/tokio-") - 1;
		size_t left = (size_t)(end - version), len = 0;
		while (len < left && len < sizeof(f->tokio) - 1 &&
		       (isdigit((unsigned char)version[len]) || version[len] == '.'))
			len++;
		p += sizeof(mark) - 1;
		if (len < 5 || version[len] != '/')
			continue;
		memcpy(f->tokio, version, len);
		return;
	}
}

/* "/rustc/COMMIT": the path of the standard library's source, for the same reason. */
static bool find_rustc(const char *raw, size_t n)
{
	static const char mark[] = "/rustc/";
	for (const char *p = raw, *end = raw + n; (p = memmem(p, (size_t)(end - p), mark, sizeof(mark) - 1));) {
		p += sizeof(mark) - 1;
		if (end - p > 2 && isxdigit((unsigned char)p[0]) && isxdigit((unsigned char)p[1]))
			return true;
	}
	return false;
}

static void scan_bytes(const struct d9_object *o, struct d9_elf_facts *f)
{
	size_t n;
	const char *raw = elf_rawfile(o->elf, &n);
	if (!raw)
		return;
	f->uring_sites = d9_object_uring_sites(o);
	f->rust = find_rustc(raw, n);
	find_tokio(raw, n, f);
}

/* ---- frame pointers --------------------------------------------------------------------------------------- */

#define FUNCTIONS_MAX 20000
#define SMALL 48 /* bytes; smaller functions are mostly leaves, which need no frame in any build */

/* push %rbp; mov %rsp,%rbp within the first instructions. */
static bool keeps_frame_pointer(const unsigned char *code, size_t n)
{
	static const unsigned char prologue[] = {0x55, 0x48, 0x89, 0xe5};
	return memmem(code, n, prologue, sizeof(prologue)) != NULL;
}

static void count_frame_pointers(struct d9_object *o, struct d9_elf_facts *f)
{
	d9_object_read_eh(o);
	d9_u64 step = o->eh_count / FUNCTIONS_MAX + 1;
	for (d9_u64 i = 0; i + 1 < o->eh_count; i += step) {
		int entry[4]; /* start and FDE of this function and of the next, from .eh_frame_hdr */
		unsigned char code[24];
		if (d9_object_read(o, o->eh_table + i * 8, entry, sizeof(entry)) < 0)
			return;
		if ((d9_i64)entry[2] - entry[0] < SMALL ||
		    d9_object_read(o, o->eh_hdr + (d9_u64)(d9_i64)entry[0], code, sizeof(code)) < 0)
			continue;
		f->n_functions++;
		f->n_frame_pointer += keeps_frame_pointer(code, sizeof(code));
	}
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

static int open_program(const char *path, struct d9_object **ret_object, struct d9_elf_facts *ret)
{
	GElf_Ehdr eh;
	int r = d9_object_open(path, ret_object);
	if (r < 0)
		return r;
	if (!gelf_getehdr((*ret_object)->elf, &eh) || (eh.e_type != ET_EXEC && eh.e_type != ET_DYN)) {
		d9_object_free(*ret_object); /* a core file has segments too */
		return -ENOEXEC;
	}
	memset(ret, 0, sizeof(*ret));
	read_headers(*ret_object, ret);
	return 0;
}

int d9_elf_facts_glance(const char *path, struct d9_elf_facts *ret)
{
	struct d9_object *o;
	int r = open_program(path, &o, ret);
	if (!r)
		d9_object_free(o);
	return r;
}

int d9_elf_facts_read(const char *path, struct d9_elf_facts *ret)
{
	struct d9_object *o;
	int r = open_program(path, &o, ret);
	if (r < 0)
		return r;
	read_sections(o->elf, ret);
	scan_bytes(o, ret);
	count_frame_pointers(o, ret);
	ret->eh_frame |= o->eh_count > 0;
	ret->symtab = has_symtab(o->elf) || has_symtab(d9_object_debug_elf(o));
	ret->lines = d9_object_has_lines(o);
	d9_object_free(o);
	return 0;
}

static void free_names(struct d9_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->of[i]);
	free(names->of);
	*names = (struct d9_names){0};
}

void d9_elf_facts_fini(struct d9_elf_facts *f)
{
	free_names(&f->imports);
	free_names(&f->exports);
}

static bool holds(const struct d9_names *names, const char *name)
{
	return names->n && bsearch(&name, names->of, names->n, sizeof(char *), by_name);
}

bool d9_elf_facts_import(const struct d9_elf_facts *f, const char *name) { return holds(&f->imports, name); }
bool d9_elf_facts_export(const struct d9_elf_facts *f, const char *name) { return holds(&f->exports, name); }
