/*
 * The search for Tokio's tables, fed with made-up images: as Tokio lays its tables out, where linkers put them, nearly right ones, and
 * headers that are wrong.  What a scan may not read is memory that cannot be read here: it would end the test.
 */
#include "interpose/runtime/tokio_scan.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int d9_on_valgrind; /* in the library: shim/stack.c */

/* ---- made-up images ------------------------------------------------------------------------------------ */

enum { PAGE = 4096, CODE = PAGE, RELRO = 4 * PAGE, DATA = 8 * PAGE, CONSTANT = 12 * PAGE, END = 16 * PAGE, ROOM = 64 };
enum { PLAIN = 0, NO_RELRO = 1, BY_GOT = 2 };

struct made {
	d9_u8 *base;
	ElfW(Phdr) phdr[8];
	struct dl_phdr_info info;
	struct d9_tokio_table *tables[ROOM];
	struct d9_tokio_scan scan;
};

static void segment(struct made *m, unsigned type, unsigned flags, d9_u64 at, d9_u64 file, d9_u64 memory)
{
	m->phdr[m->info.dlpi_phnum++] =
		(ElfW(Phdr)){.p_type = type, .p_flags = flags, .p_vaddr = at, .p_filesz = file, .p_memsz = memory};
}

/* Pages of it all, between pages that cannot be read; four of each kind. */
static struct made *make(unsigned flags)
{
	struct made *m = calloc(1, sizeof(*m));
	ck_assert_ptr_nonnull(m);
	d9_u8 *p = mmap(NULL, END + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	m->base = p + PAGE;
	ck_assert_int_eq(mprotect(m->base, END, PROT_READ | PROT_WRITE), 0);
	m->info = (struct dl_phdr_info){.dlpi_addr = (ElfW(Addr))m->base, .dlpi_phdr = m->phdr, .dlpi_name = "made"};
	segment(m, PT_LOAD, PF_R | PF_X, CODE, RELRO - CODE, RELRO - CODE);
	segment(m, PT_LOAD, PF_R | PF_W, RELRO, CONSTANT - RELRO, CONSTANT - RELRO);
	segment(m, PT_LOAD, PF_R, CONSTANT, END - CONSTANT, END - CONSTANT);
	if (!(flags & NO_RELRO))
		segment(m, PT_GNU_RELRO, PF_R, RELRO, DATA - RELRO, DATA - RELRO);
	m->scan = (struct d9_tokio_scan){.tables = m->tables, .room = ROOM, .until_mono = ~0ull};
	return m;
}
static void drop(struct made *m)
{
	munmap(m->base - PAGE, END + 2 * PAGE);
	free(m);
}

static d9_u64 *words(struct made *m, unsigned at) { return (d9_u64 *)(m->base + at); }
static d9_u64 code(struct made *m, unsigned n) { return (d9_u64)m->base + CODE + 512 + n * 16; }

static d9_u64 *put_table(struct made *m, unsigned at, unsigned schedule)
{
	d9_u64 *w = words(m, at);
	for (unsigned i = 0; i < 7; i++)
		w[i] = code(m, 200 + i);
	w[1] = code(m, schedule);
	w[7] = 0x180, w[8] = 0x20, w[9] = 0x28;
	return w;
}

/* mov $0x40, %eax; lock xadd %rax, (%rdi); lea table(%rip), %rax or mov got(%rip), %rax; ret */
static void put_clone(struct made *m, unsigned at, const d9_u64 *table, d9_u64 *got)
{
	d9_u8 *c = m->base + at,
	      text[] = {0xb8, 0x40, 0, 0, 0, 0xf0, 0x48, 0x0f, 0xc1, 0x07, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3};
	d9_i32 by = (d9_i32)((got ? (d9_u8 *)got : (const d9_u8 *)table) - (c + 17));
	if (got) {
		text[11] = 0x8b;
		*got = (d9_u64)table;
	}
	memcpy(text + 13, &by, 4);
	memcpy(c, text, sizeof(text));
}
static d9_u64 *put_wakers(struct made *m, unsigned at, unsigned clone, d9_u64 *got)
{
	d9_u64 *w = words(m, at);
	w[0] = (d9_u64)m->base + clone;
	for (unsigned i = 1; i < 4; i++)
		w[i] = code(m, 100 + i);
	put_clone(m, clone, w, got);
	return w;
}

static enum d9_tokio_verdict scanned(struct made *m)
{
	d9_tokio_scan(&m->info, &m->scan);
	return m->scan.verdict;
}

/* Three tables and the wakers, as a program has them. */
static void put_tokio(struct made *m, unsigned at, unsigned flags)
{
	put_table(m, at + 64, 1);
	put_table(m, at + 256, 1);
	put_table(m, at + 512, 2);
	put_wakers(m, at + 1024, CODE + 64, flags & BY_GOT ? words(m, DATA + 8) : NULL);
}

/* ---- what is Tokio -------------------------------------------------------------------------------------- */

START_TEST(tables_are_found_where_linkers_put_them)
{
	static const unsigned places[] = {RELRO, RELRO + PAGE, DATA, DATA + 3 * PAGE - 64};
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		for (unsigned flags = PLAIN; flags <= BY_GOT; flags++) {
			struct made *m = make(flags);
			put_tokio(m, places[i], flags);
			ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
			ck_assert_uint_eq(m->scan.n_tables, 3);
			ck_assert_uint_eq(m->scan.n_schedules, 2);
			ck_assert_uint_eq(m->scan.n_wakers, 1);
			ck_assert_ptr_eq(m->tables[0], words(m, places[i] + 64));
			ck_assert_ptr_eq(m->tables[2], words(m, places[i] + 512));
			ck_assert_ptr_eq(m->scan.wakers, words(m, places[i] + 1024));
			ck_assert(!m->scan.cut_short);
			drop(m);
		}
}
END_TEST

/* Linkers pad RELRO to whole pages, beyond what the segment has in the file: nothing is to be found twice. */
START_TEST(relro_that_goes_on_behind_its_segment)
{
	struct made *m = make(PLAIN);
	m->phdr[1].p_filesz = DATA - RELRO - 100;
	put_tokio(m, RELRO, PLAIN);
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	ck_assert_uint_eq(m->scan.n_tables, 3);
	ck_assert_uint_eq(m->scan.n_wakers, 1);
	drop(m);
}
END_TEST

START_TEST(constants_are_looked_at_only_where_nothing_is_relocated)
{
	struct made *m = make(NO_RELRO);
	put_tokio(m, CONSTANT, PLAIN);
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	ck_assert_uint_eq(m->scan.n_tables, 3);
	drop(m);
	m = make(PLAIN);
	put_tokio(m, CONSTANT, PLAIN);
	ck_assert_int_eq(scanned(m), D9_TOKIO_NONE); /* what it relocates it has, and there is nothing */
	m->info.dlpi_addr = 0;                       /* linked to one address: nothing is relocated */
	for (unsigned i = 0; i < m->info.dlpi_phnum; i++)
		m->phdr[i].p_vaddr += (ElfW(Addr))m->base;
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	m->phdr[2].p_type = PT_NULL; /* constants beside the code, as older linkers had them */
	m->phdr[0].p_filesz = m->phdr[0].p_memsz = END - CODE;
	m->phdr[1].p_type = PT_NULL;
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	drop(m);
}
END_TEST

START_TEST(a_clone_of_the_other_shape)
{
	struct made *m = make(PLAIN);
	put_tokio(m, RELRO, PLAIN);
	static const d9_u8 text[] = {0xf0, 0x48, 0x83, 0x07, 0x40}; /* lock addq $0x40, (%rdi) */
	d9_u8 *c = m->base + CODE + 64;
	memset(c, 0x90, 10);
	memcpy(c, text, sizeof(text));
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	c[4] = 0x41; /* that is no reference */
	ck_assert_int_eq(scanned(m), D9_TOKIO_NO_WAKERS);
	drop(m);
}
END_TEST

START_TEST(more_tables_than_room)
{
	struct made *m = make(PLAIN);
	for (unsigned i = 0; i < 80; i++)
		put_table(m, RELRO + 64 + i * 88, 1);
	put_wakers(m, DATA, CODE + 64, NULL);
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	ck_assert_uint_eq(m->scan.n_tables, 80);
	ck_assert_ptr_eq(m->tables[ROOM - 1], words(m, RELRO + 64 + (ROOM - 1) * 88));
	drop(m);
}
END_TEST

/* ---- what is not ----------------------------------------------------------------------------------------- */

START_TEST(offsets_that_do_not_relate)
{
	static const d9_u64 wrong[][3] = {
		{0x180, 0x18, 0x28},       /* no scheduler lies there */
		{0x180, 0x38, 0x40},       /* nor there */
		{0x180, 0x20, 0x18},       /* the id before the scheduler */
		{0x180, 0x20, 0x68},       /* too far behind it */
		{0x180, 0x20, 0x2c},       /* not aligned */
		{0x184, 0x20, 0x28},       /* nor that */
		{0x28, 0x20, 0x28},        /* the trailer on the id */
		{64ull << 20, 0x20, 0x28}, /* a task of 64 MiB */
		{0, 0, 0},
		{~0ull, 0x20, 0x28},
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct made *m = make(PLAIN);
		d9_u64 *w = put_table(m, RELRO + 64, 1);
		put_wakers(m, RELRO + 1024, CODE + 64, NULL);
		memcpy(w + 7, wrong[i], sizeof(wrong[i]));
		ck_assert_int_eq(scanned(m), D9_TOKIO_NONE);
		ck_assert_uint_eq(m->scan.n_tables, 0);
		drop(m);
	}
}
END_TEST

START_TEST(functions_of_another_image)
{
	for (unsigned i = 0; i < 7; i++) {
		struct made *m = make(PLAIN);
		put_tokio(m, RELRO, PLAIN);
		words(m, RELRO + 64)[i] = (d9_u64)m->base + DATA;
		ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
		ck_assert_uint_eq(m->scan.n_tables, 2);
		drop(m);
	}
}
END_TEST

START_TEST(wakers_decide)
{
	struct made *m = make(PLAIN);
	put_tokio(m, RELRO, PLAIN);
	put_wakers(m, DATA, CODE + 128, NULL);
	ck_assert_int_eq(scanned(m), D9_TOKIO_MANY_WAKERS);
	ck_assert_uint_eq(m->scan.n_wakers, 2);
	words(m, DATA)[0] = code(m, 3);
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	put_clone(m, CODE + 64, words(m, DATA), NULL); /* it returns another table */
	ck_assert_int_eq(scanned(m), D9_TOKIO_NO_WAKERS);
	drop(m);
	m = make(PLAIN);
	put_wakers(m, RELRO, CODE + 64, NULL);
	ck_assert_int_eq(scanned(m), D9_TOKIO_NONE);
	drop(m);
}
END_TEST

START_TEST(more_schedulers_than_tokio_has)
{
	struct made *m = make(PLAIN);
	for (unsigned i = 0; i < 16; i++)
		put_table(m, RELRO + 64 + i * 88, i);
	put_wakers(m, DATA, CODE + 64, NULL);
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	for (unsigned i = 16; i < 40; i++)
		put_table(m, RELRO + 64 + i * 88, i);
	ck_assert_int_eq(scanned(m), D9_TOKIO_MANY_SCHEDULES);
	drop(m);
}
END_TEST

START_TEST(tokio_before_1_23)
{
	struct made *m = make(PLAIN);
	d9_u64 *w = words(m, RELRO + 64);
	for (unsigned i = 0; i < 8; i++)
		w[i] = code(m, i);
	w[8] = 0x60;
	ck_assert_int_eq(scanned(m), D9_TOKIO_NONE); /* such tables are many */
	put_wakers(m, DATA, CODE + 64, NULL);
	put_wakers(m, DATA + 64, CODE + 128, NULL);
	ck_assert_int_eq(scanned(m), D9_TOKIO_OLD);
	drop(m);
}
END_TEST

/* ---- what cannot be read, or believed -------------------------------------------------------------------- */

START_TEST(nothing_is_read_that_is_not_mapped)
{
	struct made *m = make(PLAIN);
	put_tokio(m, RELRO, PLAIN);
	put_table(m, DATA + 2 * PAGE, 1);
	put_table(m, CONSTANT - 72, 1); /* its last word is not there */
	ck_assert_int_eq(mprotect(m->base + RELRO + PAGE, PAGE, PROT_NONE), 0);
	ck_assert_int_eq(munmap(m->base + DATA, 2 * PAGE), 0);
	ck_assert_int_eq(mprotect(m->base + CONSTANT, PAGE, PROT_NONE), 0);
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	ck_assert_uint_eq(m->scan.n_tables, 4);
	ck_assert_int_eq(mprotect(m->base + CODE, PAGE, PROT_NONE), 0); /* code that may only be executed */
	ck_assert_int_eq(scanned(m), D9_TOKIO_NO_WAKERS);
	ck_assert_int_eq(mprotect(m->base + RELRO, DATA - RELRO, PROT_NONE), 0);
	ck_assert_int_eq(mprotect(m->base + DATA + 2 * PAGE, 2 * PAGE, PROT_NONE), 0);
	ck_assert_int_eq(scanned(m), D9_TOKIO_NONE);
	drop(m);
}
END_TEST

START_TEST(headers_that_are_wrong)
{
	static const struct {
		d9_u64 at, file, memory;
	} wrong[] = {
		{DATA, ~0ull, ~0ull},               /* wraps round */
		{~0ull - PAGE, 2 * PAGE, 2 * PAGE}, /* begins before the image, ends in it */
		{END - 8, PAGE, PAGE},              /* ends where nothing is */
		{1ull << 62, PAGE, PAGE},           /* is no address at all */
		{DATA, 0, 0},
		{DATA, PAGE, 8},  /* more in the file than in memory */
		{DATA + 3, 5, 5}, /* holds no word */
	};
	static const unsigned types[] = {PT_LOAD, PT_GNU_RELRO}, flags[] = {PF_R, PF_R | PF_W, PF_R | PF_X};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		for (unsigned k = 0; k < 6; k++) {
			struct made *m = make(PLAIN);
			put_tokio(m, RELRO, PLAIN);
			segment(m, types[k % 2], flags[k / 2], wrong[i].at, wrong[i].file, wrong[i].memory);
			ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
			ck_assert_uint_eq(m->scan.n_tables, 3);
			drop(m);
		}
	struct made *m = make(PLAIN);
	put_tokio(m, RELRO, PLAIN);
	m->info.dlpi_phnum = 0;
	ck_assert_int_eq(scanned(m), D9_TOKIO_NONE);
	drop(m);
}
END_TEST

START_TEST(more_segments_than_are_kept)
{
	struct made *m = make(PLAIN);
	ElfW(Phdr) many[64];
	put_tokio(m, RELRO, PLAIN);
	for (unsigned i = 0; i < 64; i++)
		many[i] = (ElfW(Phdr)){.p_type = PT_LOAD,
				       .p_flags = i % 2 ? PF_R | PF_W : PF_R | PF_X,
				       .p_vaddr = DATA + i * 64,
				       .p_filesz = 32,
				       .p_memsz = 32};
	memcpy(many, m->phdr, sizeof(*many) * 4);
	m->info.dlpi_phdr = many;
	m->info.dlpi_phnum = 64;
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	drop(m);
}
END_TEST

START_TEST(the_clock_ends_it)
{
	const d9_u64 bytes = 64 << 20;
	struct made *m = make(PLAIN);
	d9_u8 *large = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(large, MAP_FAILED);
	segment(m, PT_LOAD, PF_R | PF_W, (d9_u64)(large - m->base), bytes, bytes);
	put_tokio(m, RELRO, PLAIN);
	m->scan.until_mono = 0;
	(void)scanned(m);
	ck_assert(m->scan.cut_short);
	ck_assert_int_ne(m->scan.verdict, D9_TOKIO_ACCEPTED);
	m->scan.until_mono = ~0ull;
	ck_assert_int_eq(scanned(m), D9_TOKIO_ACCEPTED);
	ck_assert(!m->scan.cut_short);
	munmap(large, bytes);
	drop(m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tokio scan");
	TCase *t = tcase_create("tokio scan");
	suite_add_tcase(suite, t);
	tcase_add_test(t, tables_are_found_where_linkers_put_them);
	tcase_add_test(t, relro_that_goes_on_behind_its_segment);
	tcase_add_test(t, constants_are_looked_at_only_where_nothing_is_relocated);
	tcase_add_test(t, a_clone_of_the_other_shape);
	tcase_add_test(t, more_tables_than_room);
	tcase_add_test(t, offsets_that_do_not_relate);
	tcase_add_test(t, functions_of_another_image);
	tcase_add_test(t, wakers_decide);
	tcase_add_test(t, more_schedulers_than_tokio_has);
	tcase_add_test(t, tokio_before_1_23);
	tcase_add_test(t, nothing_is_read_that_is_not_mapped);
	tcase_add_test(t, headers_that_are_wrong);
	tcase_add_test(t, more_segments_than_are_kept);
	tcase_add_test(t, the_clock_ends_it);
	return suite_run(suite);
}
