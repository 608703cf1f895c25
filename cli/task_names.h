/*
 * What to call a task of a runtime that tells nobody: the future that the function is made for that polls it, else where that
 * function lies, with the outermost function of the program that was seen in its polls: "app::serve::{{closure}} in app+0x1234".
 */
#ifndef D9_CLI_TASK_NAMES_H
#define D9_CLI_TASK_NAMES_H
#include "map.h"
#include "trace.h"

/* The names that were asked for, which live in it. */
struct d9_task_names {
	D9_VEC(struct d9_task_kind {
		char *name;
		bool by_place;        /* it says no more than where the code lies */
		bool several;         /* functions were seen in its polls */
		const char *function; /* or one, or none: NULL */
	})
	of;
	struct d9_map by_code; /* process and address -> index */
};

/* code: an address in the process; 0 = not known, and no name. */
struct d9_bytes d9_task_name(struct d9_task_names *names, struct d9_trace *t, d9_u32 proc, d9_u64 code);
/* One that was seen in polls of tasks with this code.  d9_task_names_finish: all were. */
void d9_task_name_seen(struct d9_task_names *names, d9_u32 proc, d9_u64 code, const char *function);
void d9_task_names_finish(struct d9_task_names *names);
/* Would it help? */
bool d9_task_name_wanted(const struct d9_task_names *names, d9_u32 proc, d9_u64 code);
void d9_task_names_free(struct d9_task_names *names);

/*
 * The type of the future in the name of Tokio's function that polls it, as a symbol or debug information has it:
 * "..::poll::<F, S>" or "poll<F, S>", without what the runtime or a tracer wraps it in.  False: it names none.
 */
bool d9_future_in(const char *function, const char **ret, size_t *ret_n);

#endif
