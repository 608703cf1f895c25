/*
 * Processes in which no hook is in place: the recorder was loaded by the program itself (dlopen), not preloaded, so
 * every symbol had been bound to libc before.  Two things must say so: libc lies between the loader and the recorder,
 * hence was mapped before it; and not one hooked call of the process was recorded.
 */
#include "report.h"

/* First address of the module whose base name begins so; 0 = not mapped. */
static d9_u64 mapped_at(const struct d9_maps *maps, const char *const *names)
{
	for (size_t i = 0; i < maps->n; i++) {
		const char *slash = strrchr(maps->maps[i].path, '/'), *base = slash ? slash + 1 : maps->maps[i].path;
		for (const char *const *name = names; *name; name++)
			if (!strncmp(base, *name, strlen(*name)))
				return maps->maps[i].start;
	}
	return 0;
}

static bool came_after_libc(const struct d9_maps *maps)
{
	static const char *const shims[] = {"libd9shim.so", NULL}, *const libcs[] = {"libc.so.6", "libc-2.", NULL},
				 *const loaders[] = {"ld-linux", "ld-2.", NULL};
	d9_u64 shim = mapped_at(maps, shims), libc = mapped_at(maps, libcs), loader = mapped_at(maps, loaders);
	if (!shim || !libc || !loader)
		return false;
	return loader > libc ? libc > shim
			     : libc < shim; /* mappings go down from the loader, or up where so configured */
}

bool d9_is_unhooked(const struct d9_trace *t, d9_u32 proc)
{
	for (size_t i = 0; i < t->threads.n; i++) {
		const struct d9_trace_thread *th = &t->threads.v[i];
		if (th->proc == proc && (th->spans.n || th->calls.n || th->pending.since))
			return false;
	}
	/* What was forked has the mappings of its parent.  Bounded, for a file may say that parents go round in a circle. */
	for (int hops = 0; hops < 64 && t->procs.v[proc].parent != D9_NO_INDEX; hops++)
		proc = t->procs.v[proc].parent;
	struct d9_maps maps = d9_trace_maps((struct d9_trace *)t, proc);
	return came_after_libc(&maps);
}
