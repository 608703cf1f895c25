/*
 * io_uring: liburing's functions, and io_uring_enter by syscall().
 *
 * liburing is not in every program, and a program may ask whether it is there: dlsym(RTLD_DEFAULT, "io_uring_submit"), a weak
 * reference, dlvsym.  Our names must not be the answer.  Two things see to it:
 *
 * They are exported under liburing's versions, as ones that are not the default.  The loader takes such a definition for a
 * reference to just this version, which only who was linked with liburing has.  Who asks by name alone is led past us, to
 * liburing if it is there.
 *
 * And those that no image of the program's start has are withdrawn by the constructor: this process's copy of the symbol table
 * says that they are not defined.  So a liburing that comes later, with a plugin, is what its plugin is bound to: it may be
 * closed and opened again at another place, or be there in several copies under several names (Python's wheels bring their own),
 * and which of them a caller would have been bound to cannot be known here: the return address is that of another image where
 * the call is a jump.  What waits in it is not seen; that there is a ring is (d9_proc.uring).
 *
 * What is left comes from where the loader looks first for everybody, and stays where it is.
 */
#include "elf_lookup.h"
#include "hook.h"
#include "shim/sys.h"

#include <string.h>
#include <sys/syscall.h>

/* linux/io_uring.h, which an old machine that builds this may not have */
#define ENTER_GETEVENTS 1u
#define ENTER_REGISTERED_RING 16u

/* ---- whom a call goes on to --------------------------------------------------------------------------- */

/* Makes the pages from `first` to the last byte of `last` writable, or read-only again. */
static bool protect(const ElfW(Sym) * first, const ElfW(Sym) * last, int how)
{
	ElfW(Addr) from = (ElfW(Addr))first & ~(ElfW(Addr))4095, to = (ElfW(Addr))(last + 1);
	return !d9_sys3(SYS_mprotect, (long)from, (long)(to - from), how);
}

/* A page that holds code as well is left alone: it may be this code. */
static bool in_data(const void *p)
{
	for (int i = 0; i < d9_own_image.dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &d9_own_image.dlpi_phdr[i];
		if (h->p_type == PT_LOAD && (ElfW(Addr))p - (d9_own_image.dlpi_addr + h->p_vaddr) < h->p_memsz)
			return !(h->p_flags & (PF_X | PF_W));
	}
	return false;
}

void d9_lib_withdraw(void)
{
	struct d9_image own;
	ElfW(Sym) * gone[D9_N_LIB], *first = NULL, *last = NULL;
	unsigned n = 0;
	if (d9_image_listed(&d9_own_image, &own))
		return;
	for (int i = 0; i < D9_N_LIB; i++) {
		ElfW(Sym) *s = (ElfW(Sym) *)d9_image_entry(&own, d9_lib_rows[i].symbol, d9_lib_rows[i].version);
		if (d9_lib_at_start[i] || !s || !in_data(s))
			continue;
		gone[n++] = s;
		first = !first || s < first ? s : first;
		last = !last || s > last ? s : last;
	}
	if (!n || !protect(first, last, PROT_READ | PROT_WRITE))
		return;
	for (unsigned i = 0; i < n; i++) {
		d9_store_release(&gone[i]->st_value, 0); /* what the loader looks at first */
		gone[i]->st_shndx = SHN_UNDEF;
	}
	(void)protect(first, last, PROT_READ);
}

struct asked {
	enum d9_lib_id id;
	void *found;
};

static int find_later(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct asked *a = ctx;
	struct d9_image image;
	(void)size;
	if (d9_image_listed(info, &image) || !image.definitions || d9_image_symbol(&image, "d9_abi", NULL))
		return 0;
	a->found = d9_image_symbol(&image, d9_lib_rows[a->id].symbol, d9_lib_rows[a->id].version);
	return a->found != NULL;
}

/*
 * Who comes here although there was none at the start was bound before the constructor ran, or the memory could not be made
 * writable.  Nothing is kept: it may be closed.
 */
static D9_COLD void *find_now(enum d9_lib_id id)
{
	struct asked a = {.id = id};
	if (!d9_real_resolved)
		d9_real_resolve();
	if (!d9_lib_at_start[id])
		(void)d9_real_images(find_later, &a);
	return d9_lib_at_start[id] ? d9_lib_at_start[id] : a.found;
}

static inline void *real_of(enum d9_lib_id id)
{
	void *at_start = d9_load_relaxed(&d9_lib_at_start[id]);
	return __builtin_expect(at_start != NULL, 1) ? at_start : find_now(id);
}

/* One of liburing's functions may end in a jump to another of them: then this library seems to be the caller. */
static bool is_ours(const void *ra) { return d9_image_holds(&d9_own_image, (ElfW(Addr))ra); }

/* ---- the wrappers ------------------------------------------------------------------------------------- */

/* struct io_uring of liburing 2, which adds fields at its end alone. */
#define RING_FD 196
static inline int ring_fd(const struct io_uring *ring) { return *(const int *)((const char *)ring + RING_FD); }
static inline int enter_fd(unsigned fd, unsigned flags) { return flags & ENTER_REGISTERED_RING ? -1 : (int)fd; }

/* liburing returns the error itself.  waits: else it is only another call, slow or counted. */
#define WRAP(name, version, params, args, fd, waits)                                                                   \
	int d9_uring_##name params;                                                                                    \
	D9_EXPORT int d9_uring_##name params                                                                           \
	{                                                                                                              \
		const void *d9_ra = __builtin_return_address(0);                                                       \
		int(*d9_to) params = (int(*) params)real_of(D9_LIB_##name);                                            \
		if (!d9_to)                                                                                            \
			return -ENOSYS;                                                                                \
		struct d9_call d9_c = {.site = 0};                                                                     \
		struct d9_in_call d9_outer;                                                                            \
		if (!is_ours(d9_ra)) /* else it is part of the call that we are in */                                  \
			d9_call_begin(&d9_c, &d9_outer, D9_HK_##name, D9_BIT(name), 0, fd, d9_ra,                      \
				      __builtin_frame_address(0));                                                     \
		if (waits)                                                                                             \
			D9_IDLE_POINT();                                                                               \
		int d9_r = d9_to args;                                                                                 \
		d9_call_end(&d9_c, D9_HK_##name, D9_BIT(name), (waits) ? (unsigned)D9_FLG_##name : D9_HOOK_SLOW, d9_r, \
			    0, __builtin_frame_address(0));                                                            \
		return d9_r;                                                                                           \
	}                                                                                                              \
	__asm__(".symver d9_uring_" #name ", " #name "@" version)
#define RING (struct io_uring * ring)

WRAP(__io_uring_get_cqe, "LIBURING_2.0",
     (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned submit, unsigned n, sigset_t *mask),
     (ring, cqe, submit, n, mask), ring_fd(ring), n > 0);
WRAP(io_uring_wait_cqes, "LIBURING_2.0",
     (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned n, struct __kernel_timespec *t, sigset_t *mask),
     (ring, cqe, n, t, mask), ring_fd(ring), n > 0);
WRAP(io_uring_wait_cqe_timeout, "LIBURING_2.0",
     (struct io_uring * ring, struct io_uring_cqe **cqe, struct __kernel_timespec *t), (ring, cqe, t), ring_fd(ring),
     true);
WRAP(io_uring_submit_and_wait, "LIBURING_2.0", (struct io_uring * ring, unsigned n), (ring, n), ring_fd(ring), n > 0);
WRAP(io_uring_submit_and_wait_timeout, "LIBURING_2.2",
     (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned n, struct __kernel_timespec *t, sigset_t *mask),
     (ring, cqe, n, t, mask), ring_fd(ring), n > 0);
WRAP(io_uring_wait_cqes_min_timeout, "LIBURING_2.8",
     (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned n, struct __kernel_timespec *t, unsigned us,
      sigset_t *mask),
     (ring, cqe, n, t, us, mask), ring_fd(ring), n > 0);
WRAP(io_uring_submit_and_wait_min_timeout, "LIBURING_2.8",
     (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned n, struct __kernel_timespec *t, unsigned us,
      sigset_t *mask),
     (ring, cqe, n, t, us, mask), ring_fd(ring), n > 0);
WRAP(io_uring_submit_and_wait_reg, "LIBURING_2.9",
     (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned n, int index), (ring, cqe, n, index), ring_fd(ring),
     n > 0);
WRAP(io_uring_enter, "LIBURING_2.3", (unsigned fd, unsigned submit, unsigned n, unsigned flags, sigset_t *mask),
     (fd, submit, n, flags, mask), enter_fd(fd, flags), n > 0 && flags & ENTER_GETEVENTS);
WRAP(io_uring_enter2, "LIBURING_2.3",
     (unsigned fd, unsigned submit, unsigned n, unsigned flags, void *arg, size_t size),
     (fd, submit, n, flags, arg, size), enter_fd(fd, flags), n > 0 && flags & ENTER_GETEVENTS);
WRAP(io_uring_submit, "LIBURING_2.0", RING, (ring), ring_fd(ring), false);
WRAP(io_uring_get_events, "LIBURING_2.3", RING, (ring), ring_fd(ring), false);
WRAP(io_uring_submit_and_get_events, "LIBURING_2.3", RING, (ring), ring_fd(ring), false);
WRAP(io_uring_register_sync_cancel, "LIBURING_2.3", (struct io_uring * ring, struct io_uring_sync_cancel_reg *what),
     (ring, what), ring_fd(ring), false);
WRAP(__io_uring_sqring_wait, "LIBURING_2.0", RING, (ring), ring_fd(ring), false);

/* ---- by syscall(): libuv, liburing before 2.1 --------------------------------------------------------- */

long d9_uring_enters(long n, long a, long b, long c, long d, long e, long f);
__attribute__((used)) long d9_uring_enters(long n, long a, long b, long c, long d, long e, long f)
{
	bool waits = (unsigned)c > 0 && (unsigned)d & ENTER_GETEVENTS;
	D9_BEGIN(io_uring_enter, 0, enter_fd((unsigned)a, (unsigned)d));
	if (waits)
		D9_IDLE_POINT();
	long r = d9_real.syscall(n, a, b, c, d, e, f);
	d9_call_end(&d9_c, D9_HK_io_uring_enter, D9_BIT(io_uring_enter), waits ? D9_HOOK_PARKS : D9_HOOK_SLOW,
		    D9_RESULT(r), 0, __builtin_frame_address(0));
	return r;
}
