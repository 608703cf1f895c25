/* For the findings: which threads poll the tasks of each runtime, and which tasks could run and were polled late. */
#ifndef D9_CLI_RUNTIME_WAITS_H
#define D9_CLI_RUNTIME_WAITS_H
#include "model.h"

struct d9_late {
	d9_u32 thread, index; /* index: of the thread's queued, D9_NO_INDEX = it was not polled any more */
	d9_u32 module;
	d9_u64 task, t0, t1;
};
struct d9_runtime_waits {
	D9_VEC(d9_u32) workers; /* threads */
	D9_VEC(struct d9_late) late;
	bool untold; /* somebody polls that is not told to be a worker */
};

/* One for each of the model's runtimes, blocking pools left out; late: tasks that waited `least` ns and more. */
struct d9_runtime_waits *d9_runtime_waits(const struct d9_model *m, d9_u64 least);
void d9_runtime_waits_free(const struct d9_model *m, struct d9_runtime_waits *all);

#endif
