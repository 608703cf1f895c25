/* posix_memalign: Tokio's tasks have an alignment of their own, so their memory says when and by whom they were made. */
#include "hook.h"
#include "interpose/runtime/tokio_tasks.h"

#define TASK_ALIGNMENT 128u

D9_EXPORT int posix_memalign(void **p, size_t alignment, size_t bytes)
{
	int r = d9_real.posix_memalign(p, alignment, bytes);
	if (__builtin_expect(alignment == TASK_ALIGNMENT && d9_load_relaxed(&d9_tokio_there), 0) && r == 0)
		d9_tokio_made(*p, bytes);
	return r;
}
