/*
 * See eventfd.h.  The table is the process's own; a forked child inherits descriptors and table alike.  A stale entry
 * would name a waker that was none, so an entry is believed only after the kernel confirmed what the number is, and
 * every epoll_ctl(ADD) of the number settles it anew.  Not seen: a number closed by close_range, closefrom or a system call as
 * an instruction, and then given to a file by a call that is not hooked.
 */
#include "eventfd.h"
#include "hook.h"
#include "shim/text.h"

#include <string.h>

#define TRACKED 4096
enum { UNKNOWN = 0, MADE = 1, WATCHED = 2 }; /* WATCHED + epfd */
static d9_u32 table[TRACKED];

void d9_eventfd_made(int fd)
{
	if (fd < TRACKED)
		d9_store_relaxed(&table[fd], MADE);
}

void d9_eventfd_forget(int fd)
{
	if (fd >= 0 && fd < TRACKED && d9_load_relaxed(&table[fd]))
		d9_store_relaxed(&table[fd], UNKNOWN);
}

/* Between vfork and exec a child closes descriptors of its own, in its parent's memory: the parent's are open still. */
void d9_eventfd_closes(int fd)
{
	if (fd < 0 || fd >= TRACKED || !d9_load_relaxed(&table[fd]) || !d9_shim.v.h)
		return;
	if (d9_shim.priv->nosys || (d9_i32)d9_sys0(SYS_getpid) == d9_shim.priv->pid)
		d9_store_relaxed(&table[fd], UNKNOWN);
}

static bool is_eventfd(int fd)
{
	char path[40], target[32];
	struct d9_text t = d9_text_in(path, sizeof(path));
	d9_text_str(&t, "/proc/self/fd/");
	d9_text_u64(&t, (d9_u64)fd);
	long n = d9_sys3(SYS_readlink, (long)path, (long)target, sizeof(target));
	return n == 20 && !memcmp(target, "anon_inode:[eventfd]", 20);
}

void d9_eventfd_watched(int fd, int epfd)
{
	if (fd < 0 || fd >= TRACKED || epfd < 0 || d9_load_relaxed(&table[fd]) == UNKNOWN)
		return;
	bool still = !d9_shim.priv->nosys && is_eventfd(fd);
	d9_store_relaxed(&table[fd], still ? WATCHED + (d9_u32)epfd : UNKNOWN);
}

void d9_eventfd_wakes(int fd)
{
	if (fd < 0 || fd >= TRACKED)
		return;
	d9_u32 e = d9_load_relaxed(&table[fd]);
	if (e >= WATCHED)
		d9_waker_note(D9_WAKE_FD(e - WATCHED));
}
