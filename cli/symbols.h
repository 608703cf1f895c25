/*
 * Addresses to names, offline: what a module map, build ids and the files still on this machine tell.
 * A name is given only if the file's build id is the recorded one (or no id was recorded and the path's
 * file still has the mapping's layout); otherwise a frame stays module+offset.  Never a wrong name.
 */
#ifndef D9_CLI_SYMBOLS_H
#define D9_CLI_SYMBOLS_H
#include "format/events.h"

#include <stdbool.h>
#include <stddef.h>

struct d9_symbols; /* caches files, symbol tables, perf maps; one per run of d9 */
struct d9_symbols *d9_symbols_new(void);
void d9_symbols_free(struct d9_symbols *s);

/* One executable mapping as recorded (module event); strings live as long as the caller's trace. */
struct d9_mapping {
	d9_u64 start, end, offset;
	const char *path;
	const char *build_id; /* hex, "" if not known */
};

struct d9_frame {
	d9_u64 address;       /* as recorded */
	const char *module;   /* base name of the path, NULL if no mapping holds the address */
	d9_u64 offset;        /* in the file's virtual address space (address - load bias), or the address itself */
	const char *symbol;   /* demangled; NULL = not known */
	d9_u64 symbol_offset; /* address - start of symbol */
	const char *file;     /* source file, NULL = not known */
	int line;             /* 0 = not known */
	bool plumbing; /* libc, the recorder, or a runtime's or lock's own frames: skipped by a finding's headline */
	bool inlined;  /* an inlined call inside the next frame */
};

/* Maps of one process at one time; `pid` is for /tmp/perf-PID.map (0 = none). */
struct d9_maps {
	const struct d9_mapping *maps; /* sorted by start */
	size_t n;
	int pid;
};

/* Name of one address. is_return: a return address (looked up one byte before). Strings live as long as s. */
void d9_symbols_name(struct d9_symbols *s, const struct d9_maps *maps, d9_u64 address, bool is_return,
		     struct d9_frame *ret);

/*
 * The function that begins at an address, with the types it is made for where the symbol or the debug information says them;
 * NULL = not known.  Lives as long as s.
 */
const char *d9_symbols_function(struct d9_symbols *s, const struct d9_maps *maps, d9_u64 address);

/*
 * Name of the variable at an address, "module:symbol" or "module:symbol+0x28" inside of one; NULL where no variable of
 * a mapped file lies (the heap, a stack, a file without symbols).  Lives as long as s.
 */
const char *d9_symbols_variable(struct d9_symbols *s, const struct d9_maps *maps, d9_u64 address);

/*
 * A recorded stack (tail of kind FRAMES, SLICE, KERNEL or INTERPRETED) to named frames, innermost first.
 * Slices are unwound with libunwind's remote accessors over .eh_frame/.debug_frame of the files.
 * Frames of libd9shim.so itself are left out.  Returns the number of frames written (<= max).
 */
size_t d9_symbols_stack(struct d9_symbols *s, const struct d9_maps *maps, unsigned tail_kind, const void *bytes,
			size_t n_bytes, struct d9_frame *ret, size_t max);
/* The addresses alone: for grouping and for common-frame distance (R4). */
size_t d9_symbols_unwind(struct d9_symbols *s, const struct d9_maps *maps, unsigned tail_kind, const void *bytes,
			 size_t n_bytes, d9_u64 *ret, size_t max);

#endif
