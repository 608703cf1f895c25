/*
 * The look-up of the next definitions, fed with made-up images: tables as old and new linkers write them, versions as glibc has
 * them, names that are in another library or nowhere, tables that are empty or incomplete.  And what hooks do whose function is
 * nowhere.
 */
#include "interpose/absent.h"
#include "interpose/elf_lookup.h"
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* ---- made-up images ------------------------------------------------------------------------------------ */

struct symbol {
	const char *name, *version; /* NULL: the base version */
	bool hidden;                /* not the default one of its name */
	unsigned type;              /* 0: a function */
	bool undefined;
};

enum { GNU = 1, SYSV = 2, VERSIONS = 4, RELATIVE = 8, MAX = 512, ROOM = 1 << 16 };

struct made {
	_Alignas(16) unsigned char bytes[ROOM];
	size_t used;
	ElfW(Dyn) dyn[16];
	unsigned n_dyn, flags;
	struct d9_image image;
};

static void *take(struct made *m, size_t n)
{
	void *p = m->bytes + m->used;
	m->used += (n + 15) & ~15ul;
	ck_assert_uint_le(m->used, ROOM);
	return p;
}
static unsigned text(char *strings, unsigned *end, const char *s)
{
	unsigned at = *end;
	memcpy(strings + at, s, strlen(s) + 1);
	*end += (unsigned)strlen(s) + 1;
	return at;
}
static void tag(struct made *m, ElfW(Sxword) t, const void *p)
{
	ElfW(Addr) value = (ElfW(Addr))p - (m->flags & RELATIVE ? (ElfW(Addr))m->bytes : 0);
	m->dyn[m->n_dyn++] = (ElfW(Dyn)){.d_tag = t, .d_un.d_ptr = value};
}
static ElfW(Word) gnu_hash(const char *s)
{
	ElfW(Word) h = 5381;
	for (; *s; s++)
		h = h * 33 + (unsigned char)*s;
	return h;
}

static ElfW(Word) sort_buckets;
static int by_bucket(const void *a, const void *b)
{
	ElfW(Word) x = gnu_hash((*(const struct symbol *const *)a)->name) % sort_buckets,
		   y = gnu_hash((*(const struct symbol *const *)b)->name) % sort_buckets;
	return x < y ? -1 : x > y;
}

/* The value of a symbol, so that a found address says which it is. */
static ElfW(Addr) value_of(const struct symbol *s) { return 0x100000 + gnu_hash(s->name) % 4096 * 64 + s->hidden * 16; }
static void *address(const struct made *m, const struct symbol *s) { return (void *)(m->image.base + value_of(s)); }

static void put_gnu(struct made *m, const struct symbol *const *order, unsigned n, unsigned n_buckets)
{
	ElfW(Word) *h = take(m, (4 + 2 + n_buckets + n) * sizeof(*h)), *buckets = h + 6, *chain = buckets + n_buckets;
	h[0] = n_buckets, h[1] = 1, h[2] = 1, h[3] = 6;
	h[4] = h[5] = ~0u;
	for (unsigned i = 0; i < n; i++) {
		ElfW(Word) hash = gnu_hash(order[i]->name), b = hash % n_buckets;
		bool last = i + 1 == n || gnu_hash(order[i + 1]->name) % n_buckets != b;
		if (!buckets[b])
			buckets[b] = i + 1;
		chain[i] = (hash & ~1u) | last;
	}
	tag(m, DT_GNU_HASH, h);
}

static void put_versions(struct made *m, const struct symbol *const *order, unsigned n, char *strings, unsigned *end)
{
	static const char *const known[] = {"libc.so.6", "GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.15"};
	ElfW(Half) *versym = take(m, (n + 1) * sizeof(*versym));
	struct {
		ElfW(Verdef) def;
		ElfW(Verdaux) aux;
	} *d = take(m, sizeof(*d) * 4);
	for (unsigned k = 0; k < 4; k++) {
		d[k].def = (ElfW(Verdef)){.vd_version = 1,
					  .vd_ndx = (ElfW(Half))(k + 1),
					  .vd_cnt = 1,
					  .vd_aux = sizeof(ElfW(Verdef)),
					  .vd_next = k < 3 ? sizeof(*d) : 0};
		d[k].aux.vda_name = text(strings, end, known[k]);
	}
	for (unsigned i = 0; i < n; i++) {
		versym[i + 1] = 2;
		for (unsigned k = 1; order[i]->version && k < 4; k++)
			if (!strcmp(known[k], order[i]->version))
				versym[i + 1] = (ElfW(Half))(k + 1);
		if (order[i]->hidden)
			versym[i + 1] |= 0x8000;
	}
	tag(m, DT_VERSYM, versym);
	tag(m, DT_VERDEF, d);
	m->dyn[m->n_dyn++] = (ElfW(Dyn)){.d_tag = DT_VERDEFNUM, .d_un.d_val = 4};
}

static struct made *make(const struct symbol *symbols, unsigned n, unsigned flags, unsigned n_buckets)
{
	struct made *m = calloc(1, sizeof(*m));
	ck_assert_ptr_nonnull(m);
	const struct symbol *order[MAX];
	ck_assert_uint_le(n, MAX);
	for (unsigned i = 0; i < n; i++)
		order[i] = &symbols[i];
	sort_buckets = n_buckets;
	if (flags & GNU)
		qsort(order, n, sizeof(*order), by_bucket);
	m->flags = flags;
	ElfW(Sym) *syms = take(m, (n + 1) * sizeof(*syms));
	char *strings = take(m, 24000);
	unsigned end = 1;
	for (unsigned i = 0; i < n; i++)
		syms[i + 1] =
			(ElfW(Sym)){.st_name = text(strings, &end, order[i]->name),
				    .st_info = ELF64_ST_INFO(STB_GLOBAL, order[i]->type ? order[i]->type : STT_FUNC),
				    .st_shndx = order[i]->undefined ? SHN_UNDEF : 7,
				    .st_value = order[i]->undefined ? 0 : value_of(order[i])};
	tag(m, DT_SYMTAB, syms);
	tag(m, DT_STRTAB, strings);
	if (flags & GNU)
		put_gnu(m, order, n, n_buckets);
	if (flags & SYSV) {
		ElfW(Word) *h = take(m, (2 + 1 + n + 1) * sizeof(*h));
		h[0] = 1, h[1] = n + 1; /* the chains themselves are not looked at */
		tag(m, DT_HASH, h);
	}
	if (flags & VERSIONS)
		put_versions(m, order, n, strings, &end);
	ck_assert_uint_le(end, 24000);
	return m;
}
static struct made *opened(const struct symbol *symbols, unsigned n, unsigned flags)
{
	struct made *m = make(symbols, n, flags, 3);
	ck_assert_int_eq(d9_image_open((ElfW(Addr))m->bytes, m->dyn, &m->image), 0);
	return m;
}
#define COUNT(a) ((unsigned)(sizeof(a) / sizeof(*(a))))

/* ---- tables -------------------------------------------------------------------------------------------- */

static const struct symbol few[] = {
	{"read"}, {"write"}, {"poll"}, {"epoll_wait"}, {"daer"}, {"nanosleep"}, {"d9_abi", .type = STT_OBJECT}};

START_TEST(each_kind_of_table)
{
	static const unsigned kinds[] = {GNU,
					 SYSV,
					 GNU | SYSV,
					 GNU | RELATIVE,
					 SYSV | RELATIVE,
					 GNU | SYSV | VERSIONS,
					 SYSV | VERSIONS | RELATIVE};
	for (unsigned k = 0; k < COUNT(kinds); k++)
		for (unsigned n_buckets = 1; n_buckets < 12; n_buckets++) {
			struct made *m = make(few, COUNT(few), kinds[k], n_buckets);
			ck_assert_int_eq(d9_image_open((ElfW(Addr))m->bytes, m->dyn, &m->image), 0);
			for (unsigned i = 0; i < COUNT(few); i++)
				ck_assert_ptr_eq(d9_image_symbol(&m->image, few[i].name, NULL), address(m, &few[i]));
			ck_assert_ptr_null(d9_image_symbol(&m->image, "epoll_pwait2", NULL));
			ck_assert_ptr_null(d9_image_symbol(&m->image, "", NULL));
			ck_assert_ptr_null(d9_image_symbol(&m->image, "rea", NULL));
			free(m);
		}
}
END_TEST

START_TEST(versions)
{
	static const struct symbol two[] = {{"pthread_cond_wait", "GLIBC_2.2.5", true},
					    {"pthread_cond_wait", "GLIBC_2.3.2"},
					    {"posix_spawn", "GLIBC_2.15"},
					    {"posix_spawn", "GLIBC_2.2.5", true},
					    {"gone", "GLIBC_2.2.5", true},
					    {"read", "GLIBC_2.2.5"}};
	static const unsigned kinds[] = {GNU, SYSV};
	for (unsigned k = 0; k < COUNT(kinds); k++) {
		struct made *m = opened(two, COUNT(two), kinds[k] | VERSIONS);
		const struct d9_image *im = &m->image;
		ck_assert_ptr_eq(d9_image_symbol(im, "pthread_cond_wait", "GLIBC_2.3.2"), address(m, &two[1]));
		ck_assert_ptr_eq(d9_image_symbol(im, "pthread_cond_wait", NULL), address(m, &two[1]));
		ck_assert_ptr_eq(d9_image_symbol(im, "pthread_cond_wait", "GLIBC_2.2.5"), address(m, &two[0]));
		ck_assert_ptr_eq(d9_image_symbol(im, "posix_spawn", "GLIBC_2.2.5"), address(m, &two[3]));
		ck_assert_ptr_eq(d9_image_symbol(im, "posix_spawn", NULL), address(m, &two[2]));
		ck_assert_ptr_null(d9_image_symbol(im, "posix_spawn", "GLIBC_2.3.2"));
		ck_assert_ptr_null(d9_image_symbol(im, "posix_spawn", "GLIBC_2.99"));
		ck_assert_ptr_null(d9_image_symbol(im, "gone", NULL)); /* only programs linked long ago may have it */
		ck_assert_ptr_eq(d9_image_symbol(im, "gone", "GLIBC_2.2.5"), address(m, &two[4]));
		free(m);
	}
	/* A library of somebody's without versions: its definition stands for each. */
	struct made *m = opened(&two[1], 1, GNU);
	ck_assert_ptr_eq(d9_image_symbol(&m->image, "pthread_cond_wait", "GLIBC_2.2.5"), address(m, &two[1]));
	free(m);
}
END_TEST

START_TEST(what_is_no_definition)
{
	static const struct symbol odd[] = {{"read", .undefined = true},
					    {"time", .type = STT_GNU_IFUNC}, /* its value is the resolver's */
					    {"errno", .type = STT_TLS},
					    {"section", .type = STT_SECTION}};
	for (unsigned flags = GNU; flags <= SYSV; flags++) {
		struct made *m = opened(odd, COUNT(odd), flags);
		for (unsigned i = 0; i < COUNT(odd); i++)
			ck_assert_ptr_null(d9_image_symbol(&m->image, odd[i].name, NULL));
		free(m);
	}
}
END_TEST

static void drop(struct made *m, ElfW(Sxword) t)
{
	for (unsigned i = 0; i < m->n_dyn; i++)
		if (m->dyn[i].d_tag == t)
			m->dyn[i].d_tag = DT_DEBUG; /* anything else */
}

START_TEST(incomplete_and_empty_tables)
{
	struct d9_image im;
	static const ElfW(Dyn) end = {.d_tag = DT_NULL};
	ck_assert_int_eq(d9_image_open(4096, NULL, &im), -1);
	ck_assert_int_eq(d9_image_open(4096, &end, &im), -1);
	static const ElfW(Sxword) needed[] = {DT_SYMTAB, DT_STRTAB, DT_GNU_HASH};
	for (unsigned i = 0; i < COUNT(needed); i++) {
		struct made *m = make(few, COUNT(few), GNU | VERSIONS, 3);
		drop(m, needed[i]);
		ck_assert_int_eq(d9_image_open((ElfW(Addr))m->bytes, m->dyn, &im), -1);
		free(m);
	}
	/* With one of the version tables alone there are no versions. */
	static const ElfW(Sxword) spare[] = {DT_VERSYM, DT_VERDEF};
	for (unsigned i = 0; i < COUNT(spare); i++) {
		struct made *m = make(few, COUNT(few), GNU | VERSIONS, 3);
		drop(m, spare[i]);
		ck_assert_int_eq(d9_image_open((ElfW(Addr))m->bytes, m->dyn, &m->image), 0);
		ck_assert_ptr_eq(d9_image_symbol(&m->image, "read", NULL), address(m, &few[0]));
		ck_assert_ptr_eq(d9_image_symbol(&m->image, "read", "GLIBC_2.2.5"), address(m, &few[0]));
		free(m);
	}
	/* How many definitions there are is not said: a version cannot be told, the default one can. */
	struct made *m = make(few, COUNT(few), GNU | VERSIONS, 3);
	drop(m, DT_VERDEFNUM);
	ck_assert_int_eq(d9_image_open((ElfW(Addr))m->bytes, m->dyn, &m->image), 0);
	ck_assert_ptr_eq(d9_image_symbol(&m->image, "read", NULL), address(m, &few[0]));
	ck_assert_ptr_null(d9_image_symbol(&m->image, "read", "GLIBC_2.2.5"));
	free(m);
	/* It says more than there are: the last one ends the list. */
	m = opened(few, COUNT(few), GNU | VERSIONS);
	m->image.n_definitions = 4000;
	ck_assert_ptr_null(d9_image_symbol(&m->image, "read", "GLIBC_2.99"));
	free(m);

	m = opened(few, COUNT(few), GNU);
	ElfW(Word) *h = (ElfW(Word) *)m->image.gnu_hash;
	h[6] = h[7] = h[8] = 0; /* empty buckets */
	ck_assert_ptr_null(d9_image_symbol(&m->image, "read", NULL));
	h[0] = 0; /* none at all, as a library that exports nothing has it */
	ck_assert_ptr_null(d9_image_symbol(&m->image, "read", NULL));
	free(m);
	m = opened(few, COUNT(few), SYSV);
	h = (ElfW(Word) *)m->image.hash;
	h[0] = h[1] = 0;
	ck_assert_ptr_null(d9_image_symbol(&m->image, "read", NULL));
	free(m);
	m = opened(NULL, 0, GNU | SYSV | VERSIONS);
	ck_assert_ptr_null(d9_image_symbol(&m->image, "read", NULL));
	free(m);
}
END_TEST

/* ---- glibc of before 2.34 ------------------------------------------------------------------------------ */

static const struct d9_wanted wanted[] = {
#define D9_HOOK(family, flags, ret, name, params, args, version) {#name, version, offsetof(struct d9_real, name)},
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) {#name, version, offsetof(struct d9_real, id)},
#include "interpose/hooks.def"
};
static const enum d9_hook_id ids[] = {
#define D9_HOOK(family, flags, ret, name, params, args, version) D9_HK_##name,
#define D9_HOOK_OLD(family, flags, ret, id, name, params, args, version) D9_HK_##id,
#include "interpose/hooks.def"
};
enum { N = sizeof(wanted) / sizeof(*wanted) };

/* Of the hooked names, as glibc 2.23 has them. */
static const char *const nowhere[] = {"epoll_pwait2",
				      "pthread_cond_clockwait",
				      "cnd_wait",
				      "cnd_timedwait",
				      "cnd_signal",
				      "cnd_broadcast",
				      "pthread_mutex_clocklock",
				      "mtx_lock",
				      "mtx_timedlock",
				      "mtx_unlock",
				      "pthread_rwlock_clockrdlock",
				      "pthread_rwlock_clockwrlock",
				      "pthread_clockjoin_np",
				      "thrd_join",
				      "call_once",
				      "sem_clockwait",
				      "copy_file_range",
				      "preadv2",
				      "preadv64v2",
				      "pwritev2",
				      "pwritev64v2",
				      "fcntl64",
				      "renameat2",
				      "stat",
				      "stat64",
				      "lstat",
				      "lstat64",
				      "fstat",
				      "fstat64",
				      "fstatat",
				      "fstatat64",
				      "statx",
				      "thrd_sleep",
				      "thrd_create"};
static const char *const in_libpthread_alone[] = {"pthread_mutex_timedlock",
						  "pthread_mutex_trylock",
						  "pthread_rwlock_rdlock",
						  "pthread_rwlock_wrlock",
						  "pthread_rwlock_timedrdlock",
						  "pthread_rwlock_timedwrlock",
						  "pthread_rwlock_tryrdlock",
						  "pthread_rwlock_trywrlock",
						  "pthread_rwlock_unlock",
						  "pthread_join",
						  "pthread_timedjoin_np",
						  "pthread_tryjoin_np",
						  "pthread_barrier_wait",
						  "pthread_once",
						  "sem_wait",
						  "sem_timedwait",
						  "sem_trywait",
						  "sem_post",
						  "pthread_create",
						  "pthread_setname_np"};
static const char *const in_libdl_alone[] = {"dlopen", "dlmopen"};
static const char *const in_both[] = {"read",   "write",    "pthread_mutex_lock", "pthread_cond_wait",
				      "accept", "nanosleep"};

static bool among(const char *const *names, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}
#define AMONG(names, name) among(names, COUNT(names), name)
enum { LIBC = 1, LIBPTHREAD = 2, LIBDL = 4 };
static int where(const char *name)
{
	return AMONG(nowhere, name)               ? 0
	       : AMONG(in_libpthread_alone, name) ? LIBPTHREAD
	       : AMONG(in_libdl_alone, name)      ? LIBDL
	       : AMONG(in_both, name)             ? LIBC | LIBPTHREAD
						  : LIBC;
}

static struct symbol symbols[3][MAX];
static struct made *library(unsigned k)
{
	unsigned n = 0;
	for (unsigned i = 0; i < N; i++)
		if (where(wanted[i].symbol) & 1 << k) {
			bool old = wanted[i].version && !strcmp(wanted[i].version, "GLIBC_2.2.5");
			symbols[k][n++] = (struct symbol){wanted[i].symbol, wanted[i].version, old};
		}
	return opened(symbols[k], n, GNU | SYSV | VERSIONS);
}
static int found_in(void *p, struct made *const *libs)
{
	for (unsigned k = 0; k < 3; k++)
		if (p && (ElfW(Addr))p - libs[k]->image.base < 0x100000 + 4096 * 64)
			return 1 << k;
	return 0;
}

START_TEST(a_glibc_in_pieces)
{
	struct made *libs[3];
	for (unsigned k = 0; k < 3; k++) {
		struct made *m = library(k);
		m->image.base = (ElfW(Addr))(k + 1) << 32; /* where it would lie: addresses tell one from another */
		libs[k] = m;
	}
	static void *alone[N], *all[N], *late[N];
	d9_image_look(&libs[0]->image, wanted, alone, N);
	static const unsigned order[] = {1, 2, 0}; /* what a program is linked with comes before libc */
	for (unsigned i = 0; i < 3; i++)
		d9_image_look(&libs[order[i]]->image, wanted, all, N);
	memcpy(late, alone, sizeof(late));
	d9_image_look(&libs[1]->image, wanted, late, N);
	for (unsigned i = 0; i < N; i++) {
		int in = where(wanted[i].symbol);
		ck_assert_int_eq(found_in(alone[i], libs), in & LIBC);
		ck_assert_int_eq(found_in(all[i], libs), in & LIBPTHREAD ? LIBPTHREAD : in);
		ck_assert_int_eq(found_in(late[i], libs), in & LIBC ? LIBC : in & LIBPTHREAD); /* the first stays */
		struct symbol s = {wanted[i].symbol,
				   .hidden = wanted[i].version && !strcmp(wanted[i].version, "GLIBC_2.2.5")};
		if (all[i])
			ck_assert_uint_eq((ElfW(Addr))all[i] % (1ull << 32), value_of(&s));
	}
	for (unsigned k = 0; k < 3; k++)
		free(libs[k]);
}
END_TEST

/* ---- names that are nowhere ---------------------------------------------------------------------------- */

struct d9_real d9_real; /* the libc below us */
static int runs, got_version;
static long got[7];
static void run(void) { runs++; }
static int fake_lock(pthread_mutex_t *m) { return m ? 0 : 4711; }
static int fake_xstat(int version, const char *path, struct stat *st)
{
	(void)path, (void)st;
	got_version = version;
	return 42;
}
static int fake_fxstat(int version, int fd, struct stat *st)
{
	(void)st;
	got_version = version;
	return fd;
}
static long fake_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	memcpy(got, (long[]){n, a, b, c, d, e, f}, sizeof(got));
	errno = ENOSYS;
	return -1;
}
static int fake_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
	(void)c, (void)m, (void)t;
	return ETIMEDOUT;
}
static int fake_sem(sem_t *s, const struct timespec *t) { return (void)s, (void)t, 0; }
#define STAND_IN(name) ((__typeof__(d9_real.name))d9_stand_in(D9_HK_##name))

START_TEST(another_function_does_the_same)
{
	struct timespec t = {1, 0};
	struct stat st;
	pthread_once_t once = PTHREAD_ONCE_INIT;
	once_flag flag = ONCE_FLAG_INIT;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(STAND_IN(pthread_once)(&once, run), 0);
		STAND_IN(call_once)(&flag, run);
	}
	ck_assert_int_eq(runs, 2);
	ck_assert_int_eq(pthread_once(&once, run), 0); /* libpthread, loaded later, takes it as done */
	ck_assert_int_eq(runs, 2);

	pthread_mutex_t m;
	d9_real.pthread_mutex_lock = fake_lock;
	ck_assert_int_eq(STAND_IN(pthread_mutex_trylock)(&m), 0);
	ck_assert_int_eq(STAND_IN(pthread_mutex_trylock)(NULL), 4711);
	ck_assert_int_eq(STAND_IN(pthread_rwlock_rdlock)(NULL), 0);

	d9_real.__xstat = fake_xstat, d9_real.__fxstat = fake_fxstat;
	ck_assert_int_eq(STAND_IN(stat)("x", &st), 42);
	ck_assert_int_eq(got_version, 1);
	ck_assert_int_eq(STAND_IN(fstat)(7, &st), 7);

	d9_real.pthread_cond_timedwait = fake_timedwait, d9_real.sem_timedwait = fake_sem;
	ck_assert_int_eq(STAND_IN(pthread_cond_clockwait)(NULL, NULL, CLOCK_REALTIME, &t), ETIMEDOUT);
	ck_assert_int_eq(STAND_IN(pthread_cond_clockwait)(NULL, NULL, CLOCK_MONOTONIC, &t), EINVAL);
	ck_assert_int_eq(STAND_IN(sem_clockwait)(NULL, CLOCK_REALTIME, &t), 0);
	errno = 0;
	ck_assert_int_eq(STAND_IN(sem_clockwait)(NULL, CLOCK_MONOTONIC, &t), -1);
	ck_assert_int_eq(errno, EINVAL);

	d9_real.syscall = fake_syscall;
	ck_assert_int_eq(STAND_IN(epoll_pwait2)(3, NULL, 4, &t, NULL), -1);
	ck_assert_mem_eq(got, ((long[]){SYS_epoll_pwait2, 3, 0, 4, (long)&t, 0, 8}), sizeof(got));
	ck_assert_int_eq(STAND_IN(preadv64v2)(3, NULL, 4, 1ll << 40, 5), -1);
	ck_assert_mem_eq(got, ((long[]){SYS_preadv2, 3, 0, 4, 1ll << 40, 0, 5}), sizeof(got));
	ck_assert_int_eq(STAND_IN(pwritev2)(3, NULL, 4, 6, 5), -1);
	ck_assert_mem_eq(got, ((long[]){SYS_pwritev2, 3, 0, 4, 6, 0, 5}), sizeof(got));
	ck_assert_int_eq(STAND_IN(copy_file_range)(1, NULL, 2, NULL, 3, 4), -1);
	ck_assert_mem_eq(got, ((long[]){SYS_copy_file_range, 1, 0, 2, 0, 3, 4}), sizeof(got));
	ck_assert_int_eq(STAND_IN(renameat2)(1, NULL, 2, NULL, 3), -1);
	ck_assert_mem_eq(got, ((long[]){SYS_renameat2, 1, 0, 2, 0, 3, 0}), sizeof(got));
	ck_assert_int_eq(STAND_IN(statx)(1, NULL, 2, 3, NULL), -1);
	ck_assert_mem_eq(got, ((long[]){SYS_statx, 1, 0, 2, 3, 0, 0}), sizeof(got));
}
END_TEST

/* Nothing that is missing may look like success: each way in which a function says that it failed. */
START_TEST(nothing_can)
{
	errno = 4711;
	ck_assert_int_eq(d9_absent("pthread_create", false), ENOSYS);
	ck_assert_int_eq(d9_absent("thrd_create", false), thrd_error);
	ck_assert_int_eq(d9_absent("mtx_lock", false), thrd_error);
	ck_assert_int_eq(d9_absent("cnd_wait", false), thrd_error);
	ck_assert_int_lt(d9_absent("thrd_sleep", false), -1);
	ck_assert_int_eq(errno, 4711); /* none of them says it there */
	ck_assert_int_eq(d9_absent("sem_post", false), -1);
	ck_assert_int_eq(errno, ENOSYS);
	ck_assert_int_eq(d9_absent("dlopen", true), 0);
	for (unsigned i = 0; i < N; i++) {
		const char *name = wanted[i].symbol;
		if (!(where(name) & LIBC) && !d9_stand_in(ids[i]) && where(name) != LIBDL)
			ck_assert_int_ne(d9_absent(name, false), 0);
		if (where(name) & LIBC)
			ck_assert_ptr_null(d9_stand_in(ids[i])); /* it is everywhere */
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lookup");
	TCase *t = tcase_create("lookup");
	suite_add_tcase(suite, t);
	tcase_add_test(t, each_kind_of_table);
	tcase_add_test(t, versions);
	tcase_add_test(t, what_is_no_definition);
	tcase_add_test(t, incomplete_and_empty_tables);
	tcase_add_test(t, a_glibc_in_pieces);
	tcase_add_test(t, another_function_does_the_same);
	tcase_add_test(t, nothing_can);
	return suite_run(suite);
}
