/*
 * Symbols of loaded images, looked up by hand.  dlsym will not do: it takes the loader's lock, may allocate,
 * picks the oldest version before glibc 2.36, and needs a newer libc than we may require.
 */
#ifndef D9_INTERPOSE_ELF_LOOKUP_H
#define D9_INTERPOSE_ELF_LOOKUP_H
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

struct d9_image {
	ElfW(Addr) base;
	const ElfW(Sym) * symbols;
	const char *strings, *soname; /* soname: may be NULL */
	const ElfW(Word) * gnu_hash, *hash;
	const ElfW(Half) * versions;      /* may be NULL */
	const ElfW(Verdef) * definitions; /* may be NULL */
	unsigned n_definitions;
};

/* Reads an image's dynamic section.  0, or -1 if it has no symbols to look up. */
int d9_image_open(ElfW(Addr) base, const ElfW(Dyn) * dynamic, struct d9_image *ret);

/* The same for an image of the loader's list. */
int d9_image_listed(const struct dl_phdr_info *info, struct d9_image *ret);
/* Does the address lie in it? */
bool d9_image_holds(const struct dl_phdr_info *info, ElfW(Addr) address);

/* A function or object that the image defines: of this version, or of the default one if version is NULL.  NULL: none. */
const ElfW(Sym) * d9_image_entry(const struct d9_image *image, const char *name, const char *version);
/* Its address. */
void *d9_image_symbol(const struct d9_image *image, const char *name, const char *version);

/* A name to be found, and where in a table of pointers it goes. */
struct d9_wanted {
	const char *symbol, *version;
	size_t slot;
};

/* Fills in of found[n] what is NULL and the image has: images are given in the loader's order, and the first one wins. */
void d9_image_look(const struct d9_image *image, const struct d9_wanted *wanted, void **found, size_t n);

#endif
