/* What the files of the trace share among themselves. */
#ifndef D9_CLI_TRACE_INTERNAL_H
#define D9_CLI_TRACE_INTERNAL_H
#include "map.h"
#include "trace.h"

/* ---- trace_clock.c ---- */
void d9_clock_add(struct d9_clock_map *m, d9_u64 tsc, d9_u64 mono, d9_u64 real);
/* Sorts the points and drops those that contradict the order; call before conversions. */
void d9_clock_finish(struct d9_clock_map *m);
/* cursor: the caller's, kept between calls for moments that go up; 0 at first. */
d9_u64 d9_clock_to_mono(const struct d9_clock_map *m, d9_u64 tsc, size_t *cursor);
d9_u64 d9_clock_mono_to_real(const struct d9_clock_map *m, d9_u64 mono_ns);
/*
 * The first moment at which that time was shown, or over which the clock was set forward past it.  Where the clock was set,
 * some times come twice and others never.  0 without a clock.
 */
d9_u64 d9_clock_real_to_mono(const struct d9_clock_map *m, d9_u64 real_ns);

/* ---- trace_find.c ---- */
struct d9_folder {
	char *path; /* of the folder, or of the one file */
	char *name;
	bool is_file;
	D9_VEC(char *) segments; /* names, in order */
	D9_VEC(char *) kernel;   /* those that d9-kernel wrote: numbers of their own */
	bool has_arena;
};
struct d9_selection {
	char *session; /* the root's folder name */
	D9_VEC(struct d9_folder) folders;
};
/* Finds the folders of the session that was asked for.  0, or enum d9_exit, told. */
int d9_find_session(const struct d9_read_opts *opts, struct d9_selection *ret);
void d9_selection_free(struct d9_selection *s);

/* ---- trace_load.c ---- */
struct d9_loader;
struct d9_loader *d9_loader_new(struct d9_trace *t);
void d9_loader_free(struct d9_loader *l);
/*
 * Decodes the service's segments of a folder into the trace: a new family.  Those of the kernel's side are opened only, for d9_load_kernel,
 * which makes a family for each helper that wrote in a folder.  They come after all services, for what they are joined to keeps its number;
 * d9-kernel's before those of perf.  0, or -errno if nothing could be read.
 */
int d9_load_service(struct d9_loader *l, const struct d9_folder *folder);
int d9_open_kernel(struct d9_loader *l, const struct d9_folder *folder);
void d9_load_kernel(struct d9_loader *l);
static inline bool d9_has_service(const struct d9_folder *f)
{
	return f->segments.n || f->has_arena || (f->is_file && !f->kernel.n);
}

/* ---- trace_kernel_events.c ---- */
struct d9_kernel_taker {
	struct d9_trace *t;
	struct d9_map names, tails; /* hash of a name, address of a tail -> index */
};
/* Makes what the model reads of the events of a kernel family's thread. */
void d9_kernel_take(struct d9_kernel_taker *k, struct d9_trace_thread *th);
/* Index of a name, made harmless, among the trace's. */
d9_u32 d9_kernel_name(struct d9_kernel_taker *k, const struct d9_bytes *b);
void d9_kernel_taker_fini(struct d9_kernel_taker *k);
/* Puts all that was taken into order. */
void d9_kernel_settle(struct d9_kernel_side *side);

/* ---- trace_kernel.c ---- */
/* Takes the events of the kernel's side and joins its threads and processes to the services'.  After all that is the services'. */
void d9_kernel_join(struct d9_trace *t);

/* ---- trace_finish.c ---- */
void d9_trace_order_events(struct d9_trace_thread *th);
void d9_trace_order_cpu(struct d9_trace_thread *th);
/* After the last folder: times to ns, orders, ends of threads and calls. */
void d9_trace_finish(struct d9_trace *t);

/* ---- arena_input.c ---- */
/* Whether the processes of an arena run. */
struct d9_running {
	bool told;                  /* false: they are of another PID namespace */
	bool drained;               /* somebody drained it a moment ago */
	D9_VEC(d9_u64) generations; /* of those that do */
};
typedef d9_u32 d9_drained_fn(void *ctx, d9_u32 thread, d9_u32 serial);
/*
 * Makes a segment in memory of what an arena holds and the segments do not have yet.  path: the folder's `arena`
 * link.  0 and *ret to be freed; -ENOENT if there is none (drained and gone meanwhile: nothing is lost);
 * else -errno with a sentence.  ret_running: NULL, or what is to be added to.
 */
int d9_arena_input(const char *path, d9_drained_fn *drained, void *ctx, struct d9_running *ret_running, void **ret,
		   size_t *ret_n, char *err, size_t n_err);

/* ---- trace.c ---- */
void *d9_bump(struct d9_trace *t, size_t n); /* lives as long as the trace; 8-aligned */
char *d9_bump_str(struct d9_trace *t, const void *s, size_t n);
void d9_trace_warn(struct d9_trace *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
