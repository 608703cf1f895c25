/*
 * One ELF file as d9 reads it to name addresses: its segments, symbols, lines and unwind tables.  All
 * addresses here are the file's own (virtual addresses, load bias taken away).  Files are whatever a
 * recording names, so nothing in them is believed before it was checked.
 */
#ifndef D9_CLI_OBJECT_H
#define D9_CLI_OBJECT_H
#include "format/types.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>

#define D9_BUILD_ID_MAX 64 /* bytes; sha1 has 20 */

struct d9_load {
	d9_u64 vaddr, offset, file_bytes, mem_bytes;
	bool executable;
};
struct d9_symbol {
	d9_u64 start, end;
	const char *raw; /* in the file */
	char *name;      /* demangled, made when first asked for */
};
struct d9_cu_range {
	d9_u64 start, end;
	Dwarf_Off cu;
};

/* The functions of a compile unit, by address: made for the units that are asked for. */
struct d9_cu {
	Dwarf_Off cu;
	struct d9_cu_function {
		d9_u64 start, end;
		Dwarf_Off die;
	} * v;
	size_t n;
};

struct d9_object {
	int fd, debug_fd;
	Elf *elf;
	Elf *debug_elf; /* the separate debug file, NULL = none */
	char build_id[2 * D9_BUILD_ID_MAX + 1];
	struct d9_load *loads;
	size_t n_loads;

	struct d9_symbol_table {
		bool read;
		struct d9_symbol *v; /* sorted by start */
		size_t n;
	} functions, data;

	bool dwarf_tried;
	Dwarf *dwarf;
	struct d9_cu_range *cus; /* sorted by start */
	size_t n_cus;
	struct d9_cu *units;
	size_t n_units;
	d9_u64 own_bytes; /* code of units that are not a toolchain's own library */
	bool own_rust;

	bool eh_read;
	d9_u64 eh_hdr, eh_table; /* addresses of .eh_frame_hdr and its search table */
	d9_u64 eh_count;         /* entries of the table, 0 = none */
};

/* object.c: the file.  0 or -errno; -ENOEXEC for what is no x86-64 ELF. */
int d9_object_open(const char *path, struct d9_object **ret);
/* The same for the kernel's vdso as it lies in d9 itself: equal to a recorded one if the build ids are. */
int d9_object_open_vdso(struct d9_object **ret);
void d9_object_free(struct d9_object *o);
/* Does the file have an executable segment that would be mapped just so? */
bool d9_object_has_layout(const struct d9_object *o, d9_u64 bytes, d9_u64 offset);
/* File offset of an executable mapping's byte -> address.  0 or -ENOENT. */
int d9_object_address(const struct d9_object *o, d9_u64 offset, d9_u64 *ret);
/* Copies n bytes that a loaded image has at vaddr; what the file does not hold of them is 0.  -EFAULT: no such segment. */
int d9_object_read(const struct d9_object *o, d9_u64 vaddr, void *buf, size_t n);
/* Finds .eh_frame_hdr's table; o->eh_count is 0 if there is none that can be searched. */
void d9_object_read_eh(struct d9_object *o);
/* The file with debug information: the separate one if its build id is the same, else the file itself. */
Elf *d9_object_debug_elf(struct d9_object *o);

/* How often io_uring_enter stands in its code as an instruction. */
unsigned d9_object_uring_sites(const struct d9_object *o);

/* object_symbols.c: the function at vaddr, or NULL.  Its demangled name is in ->name. */
const struct d9_symbol *d9_object_symbol(struct d9_object *o, d9_u64 vaddr);
/* The variable at vaddr, or NULL. */
const struct d9_symbol *d9_object_variable(struct d9_object *o, d9_u64 vaddr);
/* Is vaddr in a segment for data? */
bool d9_object_has_data(const struct d9_object *o, d9_u64 vaddr);
void d9_object_free_symbols(struct d9_object *o);

/* object_lines.c: source positions of vaddr, innermost inlined call first. */
struct d9_line {
	char *function; /* demangled name of the inlined function (freed by the caller); NULL for the last, which is real */
	const char *file; /* lives as long as o */
	int line;
};
size_t d9_object_lines(struct d9_object *o, d9_u64 vaddr, struct d9_line *ret, size_t max);
/* The function that vaddr lies in as the debug information names it, with the types it is made for; NULL = not known.  Lives as long as o. */
const char *d9_object_generic_name(struct d9_object *o, d9_u64 vaddr);
/* Line tables of the program itself: those of Rust's standard library are in every Rust program. */
bool d9_object_has_lines(struct d9_object *o);
void d9_object_free_lines(struct d9_object *o);

#endif
