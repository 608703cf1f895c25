/* Finding the next definition of every hooked function, and the constructor. */
#include "real.h"
#include "absent.h"
#include "elf_lookup.h"
#include "libc_image.h"
#include "interpose/runtime/tokio_patch.h"
#include "shim/lifecycle.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* The table and libc's headers must say the same prototype. */
#define D9_HOOK(family, flags, ret, name, params, args, version)                       \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), ret(*) params), \
		       "hooks.def and the libc header disagree on " #name);
#define D9_HOOK_V(family, flags, ret, name, params, args, version) /* noreturn is part of the type */
#define D9_HOOK_X(family, flags, ret, name, params, args, version)
#include "hooks.def"

/*
 * Each pointer begins as one of these.  One stays where no image has the name, and looks again at every call: what is opened
 * late may have it (libpthread, before glibc 2.34).
 */
#define BOOT(id, args, otherwise)                                                           \
	d9_real_resolve();                                                                  \
	__typeof__(d9_real.id) next = d9_real.id;                                           \
	if (next == boot_##id && !(next = (__typeof__(d9_real.id))d9_stand_in(D9_HK_##id))) \
		otherwise;                                                                  \
	else
#define IS_POINTER(type) (__builtin_classify_type((type)0) == 5)
#define D9_HOOK(family, flags, ret, name, params, args, version)                                  \
	static ret boot_##name params                                                             \
	{                                                                                         \
		BOOT(name, args, return (ret)d9_absent(#name, IS_POINTER(ret))) return next args; \
	}
#define D9_HOOK_V(family, flags, ret, name, params, args, version) \
	static ret boot_##name params { BOOT(name, args, (void)d9_absent(#name, false)) next args; }
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) \
	static ret boot_##id params { BOOT(id, args, return (ret)d9_absent(#name, IS_POINTER(ret))) return next args; }
#include "hooks.def"

struct d9_real d9_real = {
#define D9_HOOK(family, flags, ret, name, params, args, version) .name = boot_##name,
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) .id = boot_##id,
#include "hooks.def"
};
void *d9_real_syscall = boot_syscall, *d9_real_mutex_lock = boot_pthread_mutex_lock,
     *d9_real_mutex_trylock = boot_pthread_mutex_trylock, *d9_real_mutex_unlock = boot_pthread_mutex_unlock,
     *d9_real_dlopen = boot_dlopen, *d9_real_dlmopen = boot_dlmopen;

bool d9_real_resolved;

static const struct d9_wanted rows[] = {
#define D9_HOOK(family, flags, ret, name, params, args, version) {#name, version, offsetof(struct d9_real, name)},
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) {#name, version, offsetof(struct d9_real, id)},
#include "hooks.def"
};
#define N_ROWS (sizeof(rows) / sizeof(*rows))

const struct d9_lib_row d9_lib_rows[D9_N_LIB] = {
#define D9_HOOK_LIB(family, flags, ret, name, params, args, version) {#name, version},
#include "hooks.def"
};
void *d9_lib_at_start[D9_N_LIB];
struct dl_phdr_info d9_own_image;

static const struct d9_hook_info infos[D9_N_HOOKS] = {
#define D9_HOOK(family, flags, ret, name, params, args, version) [D9_HK_##name] = {#family, #name, D9_HOOK_##flags},
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) \
	[D9_HK_##id] = {#family, #name, D9_HOOK_##flags},
#define D9_HOOK_LIB D9_HOOK
#define D9_PRIMITIVE(family, flags, name) [D9_HK_##name] = {#family, #name, D9_HOOK_##flags},
#include "hooks.def"
};

struct d9_shim_real d9_shim_libc;
static const struct d9_wanted shim_rows[] = {
	{"pthread_create", NULL, offsetof(struct d9_shim_real, pthread_create)},
	{"pthread_attr_init", NULL, offsetof(struct d9_shim_real, pthread_attr_init)},
	{"pthread_attr_setstacksize", NULL, offsetof(struct d9_shim_real, pthread_attr_setstacksize)},
	{"pthread_attr_setdetachstate", NULL, offsetof(struct d9_shim_real, pthread_attr_setdetachstate)},
	{"pthread_attr_destroy", NULL, offsetof(struct d9_shim_real, pthread_attr_destroy)},
	{"pthread_testcancel", NULL, offsetof(struct d9_shim_real, pthread_testcancel)},
};
#define N_SHIM_ROWS (sizeof(shim_rows) / sizeof(*shim_rows))

/* Threads that race here find and store the same.  Too many for the stack. */
static void *found[N_ROWS], *shim_found[N_SHIM_ROWS];

struct search {
	unsigned images;
	unsigned long long opened; /* how many images the loader has ever opened */
	bool past_us, anywhere;
};
static unsigned long long seen;  /* opened when all was looked through */
static bool second;              /* another copy of this library comes before this one */
static const void *first_malloc; /* the one that everybody's calls reach */

/* Only while nothing was opened yet, for what was may be closed again.  Another copy of this library is no answer. */
static void look_at_start(const struct d9_image *image)
{
	if (d9_image_symbol(image, "d9_abi", NULL))
		return;
	for (size_t i = 0; i < D9_N_LIB; i++)
		if (!d9_lib_at_start[i])
			d9_lib_at_start[i] = d9_image_symbol(image, d9_lib_rows[i].symbol, d9_lib_rows[i].version);
}

/* The loader lists images in the order in which it looks symbols up: what follows us is what RTLD_NEXT would find. */
static int visit(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *s = ctx;
	struct d9_image image;
	if (s->images == 0) {
		s->opened = size > offsetof(struct dl_phdr_info, dlpi_adds) ? info->dlpi_adds : 0;
		if (s->opened && s->opened == __atomic_load_n(&seen, __ATOMIC_ACQUIRE))
			return 1; /* what was missing then is missing still */
	}
	bool program = s->images++ == 0; /* which may hold a copy of a library's data under the library's name */
	if (d9_image_holds(info, (ElfW(Addr)) & rows)) {
		s->past_us = true;
		d9_shim_libc.library = info->dlpi_name;
		d9_own_image = *info;
		return 0;
	}
	if (d9_image_listed(info, &image))
		return 0;
	if (!first_malloc)
		first_malloc = d9_image_symbol(&image, "malloc", NULL);
	if (!s->past_us && !s->anywhere) {
		second |= !program && d9_image_symbol(&image, "d9_abi", NULL);
		return 0;
	}
	d9_image_look(&image, rows, found, N_ROWS);
	d9_image_look(&image, shim_rows, shim_found, N_SHIM_ROWS);
	if (!s->anywhere && !__atomic_load_n(&d9_real_resolved, __ATOMIC_RELAXED))
		look_at_start(&image);
	return 0;
}

static int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);

int d9_real_images(int (*visit_one)(struct dl_phdr_info *, size_t, void *), void *ctx)
{
	return iterate(visit_one, ctx);
}

void d9_real_resolve(void)
{
	struct search s = {.past_us = false};
	if (!iterate)
		iterate = d9_libc_symbol("dl_iterate_phdr");
	if (!iterate)
		iterate = dl_iterate_phdr;
	if (iterate(visit, &s))
		return;
	if (!found[0]) { /* opened late (dlopen): libc comes before us */
		memset(d9_lib_at_start, 0, sizeof(d9_lib_at_start));
		s.anywhere = true;
		s.images = 0;
		(void)iterate(visit, &s);
	}
	for (size_t i = 0; i < N_ROWS; i++)
		if (found[i])
			__atomic_store_n((void **)((char *)&d9_real + rows[i].slot), found[i], __ATOMIC_RELEASE);
	for (size_t i = 0; i < N_SHIM_ROWS; i++)
		__atomic_store_n((void **)((char *)&d9_shim_libc + shim_rows[i].slot), shim_found[i], __ATOMIC_RELAXED);
#define FOR_STUB(pointer, name) __atomic_store_n(&pointer, *(void **)&d9_real.name, __ATOMIC_RELEASE)
	FOR_STUB(d9_real_syscall, syscall);
	FOR_STUB(d9_real_mutex_lock, pthread_mutex_lock);
	FOR_STUB(d9_real_mutex_trylock, pthread_mutex_trylock);
	FOR_STUB(d9_real_mutex_unlock, pthread_mutex_unlock);
	FOR_STUB(d9_real_dlopen, dlopen);
	FOR_STUB(d9_real_dlmopen, dlmopen);
	__atomic_store_n(&seen, s.opened, __ATOMIC_RELEASE);
	__atomic_store_n(&d9_real_resolved, true, __ATOMIC_RELEASE);
}

static void at_exit(int status, void *arg)
{
	(void)arg;
	d9_shim_end(D9_PROC_EXIT, status);
}

/* initfirst: before other libraries' constructors where the loader grants it; nothing relies on it. */
__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
	d9_real_resolve();
	d9_shim_libc.foreign_malloc = first_malloc != d9_libc_symbol("malloc");
	d9_lib_withdraw();
	if (second)
		return; /* every call passes through; the first copy records them */
	d9_shim_start(infos, D9_N_HOOKS, &d9_shim_libc, argc, argv, envp);
	d9_tokio_look();
	int (*register_end)(void (*)(int, void *), void *) = d9_libc_symbol("on_exit");
	if (d9_recording_possible()) /* registered before the loader's own handler, so it runs after every other */
		(void)(register_end ? register_end : on_exit)(at_exit, NULL);
}
