/* See elf_lookup.h.  Layouts: the gABI and the GNU hash section as binutils and glibc have them. */
#include "elf_lookup.h"

#include <stddef.h>
#include <string.h>

#define HIDDEN_VERSION 0x8000u

/* glibc relocates d_ptr of its own images in place; the vDSO's and a few others stay relative. */
static const void *at(ElfW(Addr) base, ElfW(Addr) p) { return (const void *)(p >= base ? p : base + p); }

int d9_image_open(ElfW(Addr) base, const ElfW(Dyn) * dyn, struct d9_image *ret)
{
	*ret = (struct d9_image){.base = base};
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			ret->symbols = at(ret->base, dyn->d_un.d_ptr);
			break;
		case DT_STRTAB:
			ret->strings = at(ret->base, dyn->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			ret->gnu_hash = at(ret->base, dyn->d_un.d_ptr);
			break;
		case DT_HASH:
			ret->hash = at(ret->base, dyn->d_un.d_ptr);
			break;
		case DT_VERSYM:
			ret->versions = at(ret->base, dyn->d_un.d_ptr);
			break;
		case DT_VERDEF:
			ret->definitions = at(ret->base, dyn->d_un.d_ptr);
			break;
		case DT_VERDEFNUM:
			ret->n_definitions = (unsigned)dyn->d_un.d_val;
			break;
		default:
			break;
		}
	}
	return ret->symbols && ret->strings && (ret->gnu_hash || ret->hash) ? 0 : -1;
}

int d9_image_listed(const struct dl_phdr_info *info, struct d9_image *ret)
{
	const ElfW(Dyn) *dynamic = NULL;
	for (int i = 0; i < info->dlpi_phnum && !dynamic; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return d9_image_open(info->dlpi_addr, dynamic, ret);
}

bool d9_image_holds(const struct dl_phdr_info *info, ElfW(Addr) address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

static bool version_is(const struct d9_image *im, unsigned index, const char *version)
{
	const ElfW(Verdef) *d = im->definitions;
	for (unsigned i = 0; d && i < im->n_definitions; i++) {
		const ElfW(Verdaux) *aux = (const void *)((const char *)d + d->vd_aux);
		if (d->vd_ndx == (index & ~HIDDEN_VERSION))
			return !strcmp(im->strings + aux->vda_name, version);
		if (!d->vd_next)
			break;
		d = (const void *)((const char *)d + d->vd_next);
	}
	return false;
}

static const ElfW(Sym) * match(const struct d9_image *im, unsigned i, const char *name, const char *version)
{
	const ElfW(Sym) *s = &im->symbols[i];
	unsigned type = ELF64_ST_TYPE(s->st_info);
	if (s->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT) ||
	    strcmp(im->strings + s->st_name, name))
		return NULL;
	if (im->versions && im->definitions) {
		unsigned index = im->versions[i];
		if (version ? !version_is(im, index, version) : (index & HIDDEN_VERSION) != 0)
			return NULL;
	}
	return s;
}

static const ElfW(Sym) * find_gnu(const struct d9_image *im, const char *name, const char *version)
{
	const ElfW(Word) *h = im->gnu_hash, n_buckets = h[0], first = h[1], n_bloom = h[2];
	const ElfW(Word) *buckets = h + 4 + n_bloom * (sizeof(ElfW(Addr)) / 4), *chain = buckets + n_buckets;
	ElfW(Word) hash = 5381;
	for (const unsigned char *p = (const void *)name; *p; p++)
		hash = hash * 33 + *p;
	if (!n_buckets)
		return NULL;
	for (ElfW(Word) i = buckets[hash % n_buckets]; i >= first; i++) {
		ElfW(Word) c = chain[i - first];
		if ((c | 1) == (hash | 1)) {
			const ElfW(Sym) *found = match(im, i, name, version);
			if (found)
				return found;
		}
		if (c & 1)
			break;
	}
	return NULL;
}

static const ElfW(Sym) * find_linear(const struct d9_image *im, const char *name, const char *version)
{
	for (ElfW(Word) i = 1; i < im->hash[1]; i++) {
		const ElfW(Sym) *found = match(im, i, name, version);
		if (found)
			return found;
	}
	return NULL;
}

const ElfW(Sym) * d9_image_entry(const struct d9_image *im, const char *name, const char *version)
{
	return im->gnu_hash ? find_gnu(im, name, version) : find_linear(im, name, version);
}

void *d9_image_symbol(const struct d9_image *im, const char *name, const char *version)
{
	const ElfW(Sym) *s = d9_image_entry(im, name, version);
	return s ? (void *)(im->base + s->st_value) : NULL;
}

void d9_image_look(const struct d9_image *im, const struct d9_wanted *wanted, void **found, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!__atomic_load_n(&found[i], __ATOMIC_RELAXED))
			__atomic_store_n(&found[i], d9_image_symbol(im, wanted[i].symbol, wanted[i].version),
					 __ATOMIC_RELAXED);
}
