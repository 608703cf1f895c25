/*
 * The next definition of every hooked function: hooks.def expanded into ids, pointers, families and flags.
 * The pointers start as stubs that resolve everything and call again, so no wrapper tests for NULL and no hook
 * depends on the order of constructors.
 */
#ifndef D9_INTERPOSE_REAL_H
#define D9_INTERPOSE_REAL_H
#include "format/arena.h"
#include "format/families.h"
#include "shim/real.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Of liburing, whose headers are not asked for. */
struct io_uring;
struct io_uring_cqe;
struct io_uring_sync_cancel_reg;
struct __kernel_timespec;

/* Some headers have macros beside the functions. */
#undef fread_unlocked
#undef fwrite_unlocked

#define D9_HOOK_NONE 0u
#define D9_HOOK_NOTE 0u

/* 1: ids, from 1; a site number below D9_SITE_FIRST is one of these */
enum d9_hook_id {
	D9_HK_none,
#define D9_HOOK(family, flags, ret, name, params, args, version) D9_HK_##name,
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) D9_HK_##id,
#define D9_HOOK_LIB D9_HOOK
#define D9_PRIMITIVE(family, flags, name) D9_HK_##name,
#include "hooks.def"
	D9_N_HOOKS
};
_Static_assert(D9_N_HOOKS < D9_N_HOOKS_MAX, "hooks fit the arena's table");

/* 2: families and flags, as constants for the wrappers */
enum {
#define D9_HOOK(family, flags, ret, name, params, args, version) \
	D9_FAM_##name = D9_FAMILY_##family, D9_FLG_##name = (int)(D9_HOOK_##flags),
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) \
	D9_FAM_##id = D9_FAMILY_##family, D9_FLG_##id = (int)(D9_HOOK_##flags),
#define D9_HOOK_LIB D9_HOOK
#define D9_PRIMITIVE(family, flags, name) D9_FAM_##name = D9_FAMILY_##family, D9_FLG_##name = (int)(D9_HOOK_##flags),
#include "hooks.def"
};

/* 3: the pointers */
struct d9_real {
#define D9_HOOK(family, flags, ret, name, params, args, version) ret(*name) params;
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) ret(*id) params;
#include "hooks.def"
};
extern D9_HIDDEN struct d9_real d9_real;
/* The same as in d9_real, for the assembly stubs. */
extern D9_HIDDEN void *d9_real_syscall, *d9_real_mutex_lock, *d9_real_mutex_trylock, *d9_real_mutex_unlock,
	*d9_real_dlopen, *d9_real_dlmopen;

/* 4: functions of other libraries than libc: the rows of D9_HOOK_LIB, in their order */
enum d9_lib_id {
#define D9_HOOK_LIB(family, flags, ret, name, params, args, version) D9_LIB_##name,
#include "hooks.def"
	D9_N_LIB
};
struct d9_lib_row {
	const char *symbol, *version;
};
extern D9_HIDDEN const struct d9_lib_row d9_lib_rows[D9_N_LIB];
/* The next definition among the images that the program started with, none of which is ever unmapped.  NULL: there is none. */
extern D9_HIDDEN void *d9_lib_at_start[D9_N_LIB];
/* This library, as the loader lists it. */
extern D9_HIDDEN struct dl_phdr_info d9_own_image;
/* Takes those of them away from the loader that nobody of the program's has; once, before anything is opened (uring.c). */
void d9_lib_withdraw(void);
/* libc's dl_iterate_phdr, whoever stands in for it. */
int d9_real_images(int (*visit)(struct dl_phdr_info *, size_t, void *), void *ctx);

extern D9_HIDDEN bool d9_real_resolved;
extern D9_HIDDEN struct d9_shim_real d9_shim_libc;

/* Resolves every pointer.  Idempotent; racing threads store the same values.  Reads the loader's list, allocates nothing. */
void d9_real_resolve(void);

#define D9_EXPORT __attribute__((visibility("default")))
#endif
