/* See limits.h. */
#include "limits.h"
#include "arena.h"
#include "clock.h"
#include "files.h"
#include "lease.h"
#include "lifecycle.h"
#include "modules.h"
#include "stack.h"
#include "sys.h"
#include "writer_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Pages of this process, of all mappings or of those that are private and writable; 0: not known. */
static d9_u64 pages_mapped(bool data)
{
	char text[128];
	const char *p = text;
	d9_u64 v = 0;
	if (d9_read_file("/proc/self/statm", text, sizeof(text)) <= 0)
		return 0;
	for (int field = 0; field <= (data ? 5 : 0); field++, p += *p == ' ')
		v = d9_decimal(p, &p);
	return v;
}

/* Is the limit lowered to where what the recorder holds is more than a quarter of it, or than half of what it leaves the program? */
static bool matters(int resource, const struct rlimit64 *to)
{
	struct rlimit64 was;
	bool data = resource == RLIMIT_DATA;
	if ((!data && resource != RLIMIT_AS) || !d9_can_read(&to->rlim_cur) || !d9_can_read(&to->rlim_max))
		return false;
	if (to->rlim_cur > to->rlim_max || d9_sys4(SYS_prlimit64, 0, resource, 0, (long)&was) ||
	    to->rlim_cur >= was.rlim_cur || (to->rlim_max > was.rlim_max && d9_sys0(SYS_geteuid)))
		return false; /* it will be refused, or nothing gets less */
	d9_u64 held = d9_arena_held(data);
	return to->rlim_cur < 4 * held || to->rlim_cur < pages_mapped(data) * 4096 + held;
}

/*
 * Has this address space one thread, and no second process?  The kernel answers unshare(CLONE_VM) with success just then, and does
 * nothing.  Where it must not be asked: a vfork child has its parent's descriptor, with its parent's id in it.
 */
static bool alone(void)
{
	long r = d9_filtered() ? -EPERM : d9_sys1(SYS_unshare, CLONE_VM);
	struct stat st;
	d9_u32 i = d9_load_relaxed(&d9_shim.tid_offset);
	if (!r || r == -EINVAL)
		return !r;
	return i && ((const d9_i32 *)d9_thread_self())[i] == (d9_i32)d9_sys0(SYS_gettid) &&
	       !d9_sys2(SYS_stat, (long)"/proc/self/task", (long)&st) && st.st_nlink == 3;
}

/* Could code of the recorder below this on the stack come back to memory that is gone? */
static bool inside(void)
{
	struct d9_cell *me = d9_me;
	return me && me->slot && (me->slot->call.site || d9_stack_in_handler(me));
}

void d9_shim_before_limit(int pid, int resource, const void *to)
{
	d9_u64 block = ~(1ull << 31 | 1ull << 32), old = 0; /* glibc's own two signals stay */
	if (!to || !d9_shim_free() || (pid && pid != (int)d9_sys0(SYS_getpid)) || !matters(resource, to))
		return;
	int saved = errno;
	d9_shim_before_sandbox(0); /* the drain thread */
	if (alone() && !inside()) {
		(void)d9_sys4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&block, (long)&old, 8);
		d9_shim_end_recording("limited its memory (RLIMIT_AS, RLIMIT_DATA)");
		d9_arena_close();
		(void)d9_sys4(SYS_rt_sigprocmask, 2, (long)&old, 0, 8);
	} else
		d9_shim_unseen("a process", " limited its memory while it had other threads or was inside a recorded "
					    "call: what the recorder has mapped counts against that limit");
	errno = saved;
}

/* ---- mlockall -------------------------------------------------------------------------------------------- */

#define ONFAULT 4 /* MCL_ONFAULT, Linux 4.4 */

extern D9_HIDDEN const ElfW(Ehdr) __ehdr_start; /* the linker's */

/* This library. */
static d9_u64 image_bytes(void)
{
	const ElfW(Phdr) *p = (const void *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);
	d9_u64 n = 0;
	for (d9_u32 i = 0; i < __ehdr_start.e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_vaddr + p[i].p_memsz > n)
			n = p[i].p_vaddr + p[i].p_memsz;
	return D9_PAGES(n);
}

struct range {
	d9_u64 lo, hi;
};

/* The i-th of what is the recorder's here: its library, its two mappings, what was added.  False: there are not so many. */
static bool own_range(d9_u32 i, struct range *ret)
{
	const struct d9_shim *s = &d9_shim;
	const struct d9_kept first[] = {{(d9_u64)&__ehdr_start, image_bytes(), NULL},
					{(d9_u64)s->v.h, d9_arena_bytes(s->v.n_chunks), NULL},
					{(d9_u64)s->priv, d9_private_bytes(s->v.n_threads), NULL}};
	const d9_u32 n_first = sizeof(first) / sizeof(first[0]), n_kept = d9_load_acquire(&s->n_kept);
	struct d9_kept k;
	if (i < n_first)
		k = first[i];
	else if ((i -= n_first) < n_kept)
		k = s->kept[i];
	else if ((i -= n_kept) + 1 <
		 D9_N_THREADS / D9_FRAMES_PIECE) /* the first piece is part of the private mapping */
		k = (struct d9_kept){(d9_u64)d9_load_acquire(&s->frames[i + 1]), D9_FRAMES_BYTES, NULL};
	else
		return false;
	*ret = (struct range){k.at, k.at ? k.at + k.bytes : 0};
	return true;
}

static bool is_own(d9_u64 p)
{
	struct range r;
	for (d9_u32 i = 0; own_range(i, &r); i++)
		if (p - r.lo < r.hi - r.lo)
			return true;
	return false;
}

static d9_u64 own_pages(void)
{
	struct range r;
	d9_u64 n = 0;
	for (d9_u32 i = 0; own_range(i, &r); i++)
		n += (r.hi - r.lo) / 4096;
	return n;
}

static void unlock_own(void)
{
	struct range r;
	for (d9_u32 i = 0; own_range(i, &r); i++)
		if (r.lo)
			(void)d9_sys2(SYS_munlock, (long)r.lo, (long)(r.hi - r.lo));
}

/* As the kernel does it, mapping by mapping; what cannot be brought in (no access, a device) is no error there either. */
static void lock_program(int fd, bool on_fault)
{
	struct d9_maps_reader maps = {.fd = fd};
	struct d9_map_line m;
	while (d9_next_mapping(&maps, &m))
		if (!is_own(m.start))
			(void)d9_sys3(on_fault ? SYS_mlock2 : SYS_mlock, (long)m.start, (long)(m.end - m.start),
				      1 /* MLOCK_ONFAULT */);
}

/* The kernel compares all that is mapped with the limit: would what is the program's be within it? */
static bool fits_alone(void)
{
	struct rlimit64 limit;
	d9_u64 pages = pages_mapped(false), own = own_pages();
	return pages > own && !d9_sys4(SYS_prlimit64, 0, RLIMIT_MEMLOCK, 0, (long)&limit) &&
	       pages - own <= limit.rlim_cur / 4096;
}

/* Locked when touched at first, whoever is privileged; then ours is let go, and the rest brought in if that was asked for. */
static long lock_now(int flags, int fd)
{
	struct d9_private *pr = d9_shim.priv;
	long r = d9_sys1(SYS_mlockall, flags | ONFAULT);
	bool by_hand = r == -ENOMEM && fits_alone();
	if (by_hand && !(flags & MCL_FUTURE) && pr->future_locked)
		(void)d9_sys0(
			SYS_munlockall); /* there is no other way to end that; what is locked is locked again at once */
	/* Before the mappings are looked at, so that none that is made meanwhile is missed; and after the call above without ONFAULT. */
	if (flags & MCL_FUTURE && (by_hand || (!r && !(flags & ONFAULT))))
		r = d9_sys1(SYS_mlockall, flags & ~MCL_CURRENT);
	else if (by_hand)
		r = 0;
	if (!r && (by_hand || !(flags & ONFAULT)))
		lock_program(fd, flags & ONFAULT);
	unlock_own();
	return r;
}

bool d9_shim_lock_all(int flags, long *ret)
{
	struct d9_private *pr = d9_shim.priv;
	if (!d9_shim_free() || d9_filtered())
		return false;
	if (flags & MCL_CURRENT) {
		long fd = d9_sys3(SYS_open, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			return false;
		d9_shim_before_sandbox(0); /* the drain thread, whose memory would be taken for the program's */
		*ret = lock_now(flags, (int)fd);
		(void)d9_sys1(SYS_close, fd);
	} else
		*ret = d9_sys1(SYS_mlockall, flags);
	if (!*ret)
		d9_store_relaxed(&pr->future_locked, !!(flags & MCL_FUTURE));
	return true;
}
