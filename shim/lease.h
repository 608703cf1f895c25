/*
 * Who drains: an open-file-description lock on the arena's file.  The kernel drops it when its holder dies,
 * in any PID namespace, whoever its uid; the header's lease words only save others the system call.
 */
#ifndef D9_SHIM_LEASE_H
#define D9_SHIM_LEASE_H
#include "view.h"

#include <stdbool.h>

#define D9_LEASE_STALE_NS 3000000000ull /* a holder passes at least once a second */

/* Locks `fd`.  False: somebody else drains. */
bool d9_lease_take(int fd, struct d9_lease *l, d9_u32 kind);
/* Has a holder been heard of lately? */
bool d9_lease_fresh(const struct d9_lease *l);
/* Forgets the words; the lock goes with the descriptor. */
void d9_lease_release(struct d9_lease *l);

#endif
