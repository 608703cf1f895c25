/* Which processes are meant by --pid, --session, --comm, --cgroup. */
#ifndef D9_BPF_TARGETS_H
#define D9_BPF_TARGETS_H
#include "options.h"

#include <stddef.h>

/* Numbers as d9-kernel sees them.  What does not fit is left out, and is found again the next time. */
size_t d9_ktargets_find(const struct d9_koptions *o, int *ret_pids, size_t max);

/* Can there be more of them later than those that they make themselves? */
static inline bool d9_ktargets_grow(const struct d9_koptions *o) { return o->by != D9_KBY_PID; }

/* Says why there are none.  Exit code. */
int d9_ktargets_explain(const struct d9_koptions *o);

#endif
