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

/* Some headers have macros beside the functions. */
#undef fread_unlocked
#undef fwrite_unlocked

#define D9_HOOK_NONE 0u
#define D9_HOOK_NOTE 0u

/* 1: ids, from 1; a site number below D9_SITE_FIRST is one of these */
enum d9_hook_id {
	D9_HK_none,
#define D9_HOOK(family, flags, ret, name, params, args, version) D9_HK_##name,
#define D9_HOOK_X D9_HOOK
#define D9_HOOK_V D9_HOOK
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) D9_HK_##id,
#define D9_PRIMITIVE(family, flags, name) D9_HK_##name,
#include "hooks.def"
#undef D9_HOOK
#undef D9_HOOK_X
#undef D9_HOOK_V
#undef D9_HOOK_OLD
#undef D9_PRIMITIVE
	D9_N_HOOKS
};
_Static_assert(D9_N_HOOKS < D9_N_HOOKS_MAX, "hooks fit the arena's table");

/* 2: families and flags, as constants for the wrappers */
enum {
#define D9_HOOK(family, flags, ret, name, params, args, version) \
	D9_FAM_##name = D9_FAMILY_##family, D9_FLG_##name = (int)(D9_HOOK_##flags),
#define D9_HOOK_X D9_HOOK
#define D9_HOOK_V D9_HOOK
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) \
	D9_FAM_##id = D9_FAMILY_##family, D9_FLG_##id = (int)(D9_HOOK_##flags),
#define D9_PRIMITIVE(family, flags, name) D9_FAM_##name = D9_FAMILY_##family, D9_FLG_##name = (int)(D9_HOOK_##flags),
#include "hooks.def"
#undef D9_HOOK
#undef D9_HOOK_X
#undef D9_HOOK_V
#undef D9_HOOK_OLD
#undef D9_PRIMITIVE
};

/* 3: the pointers */
struct d9_real {
#define D9_HOOK(family, flags, ret, name, params, args, version) ret(*name) params;
#define D9_HOOK_X D9_HOOK
#define D9_HOOK_V D9_HOOK
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) ret(*id) params;
#define D9_PRIMITIVE(family, flags, name)
#include "hooks.def"
#undef D9_HOOK
#undef D9_HOOK_X
#undef D9_HOOK_V
#undef D9_HOOK_OLD
#undef D9_PRIMITIVE
};
extern D9_HIDDEN struct d9_real d9_real;
/* The same as in d9_real, for the assembly stubs. */
extern D9_HIDDEN void *d9_real_syscall, *d9_real_mutex_lock, *d9_real_mutex_trylock, *d9_real_mutex_unlock,
	*d9_real_dlopen, *d9_real_dlmopen;

extern D9_HIDDEN bool d9_real_resolved;
extern D9_HIDDEN struct d9_shim_real d9_shim_libc;

/* Resolves every pointer.  Idempotent; racing threads store the same values.  Reads the loader's list, allocates nothing. */
void d9_real_resolve(void);

#define D9_EXPORT __attribute__((visibility("default")))
#endif
