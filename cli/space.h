/*
 * An address space as recorded: mappings with the files that were found for them.  Shared by the two
 * who need both: the unwinder (tables) and the namer (symbols).
 */
#ifndef D9_CLI_SPACE_H
#define D9_CLI_SPACE_H
#include "object.h"
#include "symbols.h"

struct d9_perf_map;

struct d9_placed {
	struct d9_object *object; /* NULL: no file that is certainly the mapped one */
	d9_u64 bias;              /* address in the process - address in the file */
};
struct d9_space {
	struct d9_mapping *maps; /* a copy of the caller's array */
	struct d9_placed *placed;
	size_t n;
	int pid;
	const struct d9_perf_map *jit; /* NULL: none */
	void *unwind;                  /* libunwind's unw_addr_space_t: it caches rules by address */
};

/* Index of the mapping that holds address, n if none does. */
size_t d9_space_find(const struct d9_space *s, d9_u64 address);
/* Bytes of the mapped files, executable parts or not.  0 or -EFAULT. */
int d9_space_read(const struct d9_space *s, d9_u64 address, void *buf, size_t n);

/* ---- unwind.c ----------------------------------------------------------------------------------- */

struct d9_raw_frame {
	d9_u64 address;
	bool is_return; /* false: the address itself was about to run (innermost, or interrupted by a signal) */
};
/* bytes: struct d9_slice, then the stack. */
size_t d9_unwind_slice(struct d9_space *s, const void *bytes, size_t n_bytes, struct d9_raw_frame *ret, size_t max);
/* bytes: struct d9_slice, then a struct d9_stack_word each. */
size_t d9_unwind_words(struct d9_space *s, const void *bytes, size_t n_bytes, struct d9_raw_frame *ret, size_t max);
void d9_unwind_forget(struct d9_space *s);

#endif
