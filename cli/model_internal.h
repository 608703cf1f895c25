/* Steps of the model, in the order in which d9_model_new takes them. */
#ifndef D9_CLI_MODEL_INTERNAL_H
#define D9_CLI_MODEL_INTERNAL_H
#include "model.h"

#define D9_LOOK_NS 1000000      /* shorter event waits are looks: asked for no time, or hardly any */
#define D9_PROBE_GAP_NS 3000    /* R5: a probe and the wait after it are one park */
#define D9_NULL_POLL_NS 2000    /* R6 */
#define D9_SAME_DEPTH_BYTES 256 /* R3: one place in code that is interpreted, then compiled */

/* A runtime polls tasks on it as one of its workers: then it is one, however seldom it parks. */
bool d9_polls_as_worker(const struct d9_trace_thread *th);

struct d9_chain {
	d9_u64 *frames;
	d9_u32 n;
	bool made;
};

/* What the names of the functions around a wait say of it, innermost first.  LOCK_BEHIND: d9_model_waits_behind. */
enum d9_site_says { D9_SAYS_NOTHING, D9_SAYS_LOCK, D9_SAYS_NO_LOCK, D9_SAYS_LOCK_BEHIND };
enum d9_site_says d9_names_say(const struct d9_frame *frames, size_t n);

/* What the kernel's side knows of a stretch. */
struct d9_kernel_time {
	d9_u64 runnable;           /* waited for a CPU */
	d9_u64 in_parks, in_calls; /* of it, at home and in hooked calls */
	d9_u64 unhooked;           /* waited in the kernel outside of parks and hooked calls */
	d9_u64 untold; /* runnable too, in waits too short to be told of: somewhere in all of the thread's time */
};
/* False: it was not watched. */
bool d9_kernel_in_poll(const struct d9_model *m, d9_u32 thread, const struct d9_poll *p, struct d9_kernel_time *ret);
bool d9_kernel_in_thread(const struct d9_model *m, d9_u32 thread, struct d9_kernel_time *ret, bool *ret_all);

void d9_objects_gather(struct d9_model *m); /* every wait by object */
void d9_parks_find(struct d9_model *m);     /* homes and parks */
void d9_objects_finish(struct d9_model *m); /* takes the parks out, finds holders */
void d9_pools_find(struct d9_model *m);     /* roles, pools, worker numbers */
void d9_holes_find(struct d9_model *m);     /* when records are not whole */
void d9_holes_free(struct d9_model *m);
void d9_polls_find(struct d9_model *m); /* what lies between parks */
void d9_tasks_find(struct d9_model *m); /* runtimes, time in their queues */
void d9_objects_free(struct d9_model *m);

#endif
