/*
 * Functions of libc itself, whoever stands in for them.  A sanitizer that is linked into the program stands in for
 * dl_iterate_phdr and on_exit, and is not ready yet when the loader runs us first.
 */
#ifndef D9_INTERPOSE_LIBC_IMAGE_H
#define D9_INTERPOSE_LIBC_IMAGE_H

/* Only from the constructor, or before it: the loader's list is read without its lock.  NULL: not found. */
void *d9_libc_symbol(const char *name);

#endif
