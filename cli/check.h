/*
 * What `d9 check` knows about one ELF file, and how it finds the files that belong to a program.  Facts
 * only; cmd_check.c judges them.
 */
#ifndef D9_CLI_CHECK_H
#define D9_CLI_CHECK_H
#include "object.h"

#include <limits.h>
#include <stdio.h>

#define D9_N_NEEDED 64

enum d9_binary_kind { D9_BINARY_DYNAMIC, D9_BINARY_STATIC, D9_BINARY_STATIC_PIE, D9_BINARY_LIBRARY };

struct d9_version {
	unsigned major, minor; /* 0.0: none */
};

struct d9_names {
	char **of; /* sorted */
	size_t n;
};

struct d9_elf_facts {
	enum d9_binary_kind kind;
	char interpreter[PATH_MAX]; /* PT_INTERP, "" = none */
	char runpath[PATH_MAX];     /* DT_RUNPATH, else DT_RPATH */
	char soname[NAME_MAX + 1];
	char needed[D9_N_NEEDED][NAME_MAX + 1];
	unsigned n_needed;
	struct d9_version glibc_needed;  /* highest GLIBC_x.y that it asks for */
	struct d9_version glibc_defined; /* highest that it is, for a libc */
	struct d9_names imports;         /* dynamic functions that others are to provide */
	struct d9_names exports;         /* and those that it provides */
	bool go, rust;
	char tokio[24];  /* version, "" = none seen */
	bool asan, tsan; /* inside the file, not as a library */
	bool eh_frame, symtab, dynsym, lines;
	unsigned n_functions, n_frame_pointer; /* functions looked at, those that keep a frame pointer */
	unsigned uring_sites;                  /* io_uring_enter as an instruction in the program itself */
};

/* 0 or -errno; -ENOEXEC: no x86-64 ELF file. */
int d9_elf_facts_read(const char *path, struct d9_elf_facts *ret);
/* The same, but only what the program headers and the dynamic section say: kind, interpreter, run path, soname, needed. */
int d9_elf_facts_glance(const char *path, struct d9_elf_facts *ret);
void d9_elf_facts_fini(struct d9_elf_facts *f);
bool d9_elf_facts_import(const struct d9_elf_facts *f, const char *name);
bool d9_elf_facts_export(const struct d9_elf_facts *f, const char *name);
/* Below 0, 0 or above 0, like strcmp. */
int d9_version_compare(struct d9_version a, struct d9_version b);

/*
 * Where the loader would find the library `name` that `path` needs: run path, LD_LIBRARY_PATH, the
 * system's folders.  root: prefix of all of it, "" or /proc/PID/root.  0 or -ENOENT.
 */
int d9_find_library(const struct d9_elf_facts *of, const char *path, const char *root, const char *name, char *ret,
		    size_t max);
/* A command as a shell finds it: with a slash as it is, else along PATH.  0 or -ENOENT. */
int d9_find_program(const char *name, char *ret, size_t max);

#endif
