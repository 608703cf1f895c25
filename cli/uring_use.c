/*
 * Processes that have an io_uring.  The ring is among their mappings, whoever enters it; what of that was recorded is counted,
 * and the files are named in which io_uring_enter stands as an instruction that no hook meets.
 */
#include "object.h"
#include "report.h"

#include "format/arena.h"

#include <strings.h>

/* Calls on a ring that were recorded, one by one or as a sum. */
static d9_u64 calls_recorded(const struct d9_trace *t, d9_u32 proc)
{
	d9_u64 n = 0;
	for (size_t i = 0; i < t->threads.n; i++) {
		const struct d9_trace_thread *th = &t->threads.v[i];
		if (th->proc != proc)
			continue;
		for (size_t k = 0; k < th->spans.n && th->kinds & D9_KIND_BIT(D9_FAMILY_uring); k++)
			n += th->spans.v[k].kind == D9_FAMILY_uring;
		for (size_t k = 0; k < th->calls.n; k++)
			n += t->hooks.v[th->calls.v[k].hook].kind == D9_FAMILY_uring ? th->calls.v[k].count : 0;
		n += th->pending.since && t->sites.v[th->pending.site].kind == D9_FAMILY_uring;
	}
	return n;
}

/* The file itself, if it is still the one that was mapped. */
static bool enters_inline(const struct d9_mapping *m)
{
	struct d9_object *o;
	if (m->path[0] != '/' || d9_object_open(m->path, &o))
		return false;
	bool same = !*m->build_id || !strcasecmp(o->build_id, m->build_id), found = same && d9_object_uring_sites(o);
	d9_object_free(o);
	return found;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void name_files(const struct d9_trace *t, d9_u32 proc, bool hooked, char *to, size_t max)
{
	struct d9_maps maps = d9_trace_maps((struct d9_trace *)t, proc);
	const char *last = "";
	size_t n = strlen(to);
	unsigned named = 0;
	for (size_t i = 0; i < maps.n && named < 3; i++) {
		const struct d9_mapping *m = &maps.maps[i];
		/* liburing's own are behind its functions; only if none of those was met are they what is not seen. */
		if (!strcmp(m->path, last) || (hooked && !strncmp(base_name(m->path), "liburing", 8)))
			continue;
		last = m->path;
		if (!enters_inline(m))
			continue;
		named++;
		if (n < max)
			n += (size_t)snprintf(to + n, max - n, "%s%.40s",
					      named == 1 ? "; io_uring_enter is an instruction in " : ", ",
					      base_name(m->path));
	}
}

bool d9_uring_told(const struct d9_trace *t, d9_u32 proc, char *ret, size_t max)
{
	const struct d9_trace_proc *p = &t->procs.v[proc];
	d9_u64 n = calls_recorded(t, proc);
	if (!n && !(p->flags & D9_PROC_URING))
		return false;
	if (n)
		snprintf(ret, max,
			 "pid %d uses io_uring: %llu of its calls are recorded; a completion that it finds without a "
			 "call is not",
			 p->pid, (unsigned long long)n);
	else
		snprintf(ret, max,
			 "pid %d has an io_uring, and no call on it was recorded: a wait there is unexplained time",
			 p->pid);
	name_files(t, proc, n > 0, ret, max);
	return true;
}
