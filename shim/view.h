/*
 * An arena as pointers: the same for the host that writes it and for a drainer, inside or outside.
 */
#ifndef D9_SHIM_VIEW_H
#define D9_SHIM_VIEW_H
#include "format/arena.h"

struct d9_view {
	struct d9_arena_header *h;
	struct d9_hook_entry *hooks;
	struct d9_chunk_entry *entries;
	struct d9_waker *wakers;
	struct d9_site *sites;
	struct d9_type_entry *types;
	struct d9_proc *procs;
	struct d9_thread *threads;
	struct d9_thread_calls *calls;
	struct d9_module *modules;
	struct d9_chunk *chunks;
	d9_u32 n_chunks, n_threads;
};

static inline void d9_view_init(struct d9_view *v, void *base, d9_u32 n_chunks)
{
	d9_u8 *b = base;
	*v = (struct d9_view){
		.h = base,
		.hooks = (void *)(b + D9_OFF_HOOKS),
		.entries = (void *)(b + D9_OFF_CHUNK_TABLE),
		.wakers = (void *)(b + d9_off_wakers(n_chunks)),
		.sites = (void *)(b + d9_off_sites(n_chunks)),
		.types = (void *)(b + d9_off_types(n_chunks)),
		.procs = (void *)(b + d9_off_procs(n_chunks)),
		.threads = (void *)(b + d9_off_threads(n_chunks)),
		.calls = (void *)(b + d9_off_calls(n_chunks)),
		.modules = (void *)(b + d9_off_modules(n_chunks)),
		.chunks = (void *)(b + d9_off_chunks(n_chunks)),
		.n_chunks = n_chunks,
		.n_threads = d9_n_threads(n_chunks),
	};
}

#endif
