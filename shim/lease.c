/* See lease.h. */
#include "lease.h"
#include "atomic.h"
#include "clock.h"

#include <fcntl.h>

bool d9_lease_take(int fd, struct d9_lease *l, d9_u32 kind)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = 0 /* SEEK_SET */, .l_start = 0, .l_len = 1};
	if (d9_sys3(SYS_fcntl, fd, F_OFD_SETLK, (long)&lock))
		return false;
	d9_add_relaxed(&l->epoch, 1);
	d9_store_relaxed(&l->kind, kind);
	d9_store_release(&l->heartbeat_mono, d9_mono_ns());
	return true;
}

bool d9_lease_fresh(const struct d9_lease *l)
{
	d9_u64 seen = d9_load_acquire(&l->heartbeat_mono);
	return seen && d9_mono_ns() - seen < D9_LEASE_STALE_NS;
}

void d9_lease_release(struct d9_lease *l)
{
	d9_store_relaxed(&l->kind, D9_LEASE_NONE);
	d9_store_release(&l->heartbeat_mono, 0);
}
