/* See libc_image.h. */
#include "libc_image.h"
#include "elf_lookup.h"

#include <string.h>
#include <sys/auxv.h>

/* The loader's list of images, from the program's own headers: no function of anybody is asked. */
static const struct link_map *first_image(void)
{
	const ElfW(Phdr) *p = (const void *)getauxval(AT_PHDR);
	unsigned long n = getauxval(AT_PHNUM);
	const ElfW(Dyn) *dyn = NULL;
	ElfW(Addr) base = 0;
	for (unsigned long i = 0; p && i < n; i++)
		if (p[i].p_type == PT_PHDR)
			base = (ElfW(Addr))p - p[i].p_vaddr;
	for (unsigned long i = 0; p && i < n; i++)
		if (p[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(base + p[i].p_vaddr);
	for (; dyn && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_DEBUG && dyn->d_un.d_ptr)
			return ((const struct r_debug *)dyn->d_un.d_ptr)->r_map;
	return NULL;
}

void *d9_libc_symbol(const char *name)
{
	for (const struct link_map *m = first_image(); m; m = m->l_next) {
		struct d9_image image;
		const char *base = strrchr(m->l_name, '/');
		if (!strcmp(base ? base + 1 : m->l_name, "libc.so.6") && !d9_image_open(m->l_addr, m->l_ld, &image))
			return d9_image_symbol(&image, name, NULL);
	}
	return NULL;
}
