/* See tokio_scan.h.  Layouts: tokio's src/runtime/task/{raw,core,waker}.rs, 1.23 to 1.54. */
#include "tokio_scan.h"
#include "shim/clock.h"
#include "shim/sys.h"

#include <string.h>

#define RANGES 8u
#define PAGE 4096ull
#define PAGES_A_LOOK 64u /* at the clock */
#define TRAILER_MAX (64ull << 20)
#define CLONE_BYTES 64u /* of the code of a waker's clone */
#define CODE_SLACK 16u  /* the longest instruction that is looked at, and more */

struct range {
	d9_u64 lo, hi;
};
struct image {
	struct range code[RANGES], data[RANGES], constant[RANGES];
	d9_u32 n_code, n_data, n_constant;
	bool relro;
	d9_u32 old_tables; /* of before 1.23 */
	const void *schedules[D9_TOKIO_SCHEDULES_MAX + 1];
	struct d9_tokio_scan *scan;
};

static void add(struct range *to, d9_u32 *n, d9_u64 lo, d9_u64 hi)
{
	for (d9_u32 i = 0; i < *n && lo < hi; i++)
		if (lo <= to[i].hi &&
		    hi >= to[i].lo) { /* RELRO is part of a segment that is writable, or goes on behind it */
			to[i].lo = lo < to[i].lo ? lo : to[i].lo;
			to[i].hi = hi > to[i].hi ? hi : to[i].hi;
			return;
		}
	if (lo < hi && *n < RANGES)
		to[(*n)++] = (struct range){lo, hi};
}

/* Headers are the image's own claim: sizes that wrap round or that lie the wrong way about are no segment. */
static void sort_segments(const struct dl_phdr_info *info, struct image *im)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		d9_u64 lo = info->dlpi_addr + p->p_vaddr, size = p->p_filesz < p->p_memsz ? p->p_filesz : p->p_memsz;
		if (lo + size < lo)
			continue;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			add(im->code, &im->n_code, lo, lo + size);
		else if (p->p_type == PT_LOAD && p->p_flags & PF_W)
			add(im->data, &im->n_data, lo, lo + size);
		else if (p->p_type == PT_LOAD)
			add(im->constant, &im->n_constant, lo, lo + size);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		d9_u64 lo = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_GNU_RELRO || lo + p->p_memsz < lo)
			continue;
		im->relro = true;
		add(im->data, &im->n_data, lo, lo + p->p_memsz);
	}
}

static inline bool in_code(const struct image *im, d9_u64 p)
{
	for (d9_u32 i = 0; i < im->n_code; i++)
		if (p - im->code[i].lo < im->code[i].hi - im->code[i].lo)
			return true;
	return false;
}

/* What seven functions are followed by.  Without these relations hundreds of C++ and Rust tables in a program look the same. */
static bool is_task_table(const d9_u64 *w)
{
	d9_u64 trailer = w[7], scheduler = w[8], id = w[9];
	switch (scheduler) { /* the head of a task, aligned as the scheduler and the cell are */
	case 0x20:
	case 0x28:
	case 0x30:
	case 0x40:
	case 0x80:
		return id >= scheduler && id - scheduler <= 0x40 && trailer >= id + 8 && trailer < TRAILER_MAX &&
		       !((id | trailer) & 7);
	default:
		return false;
	}
}

/* 1.21 and 1.22 had eight functions and the one offset. */
static bool is_old_table(const struct image *im, const d9_u64 *w)
{
	return w[8] >= 0x30 && w[8] < TRAILER_MAX && !(w[8] & 7) && !in_code(im, w[9]);
}

static inline d9_u32 word32(const d9_u8 *p)
{
	d9_u32 v;
	memcpy(&v, p, 4);
	return v;
}

/* Does the instruction at c take the address `self`, by lea or from the GOT? */
static bool takes_address(const struct image *im, const d9_u8 *c, d9_u64 self)
{
	if ((c[0] & 0xfb) != 0x48 || (c[1] != 0x8d && c[1] != 0x8b) || (c[2] & 0xc7) != 0x05)
		return false;
	d9_u64 to = (d9_u64)c + 7 + (d9_u64)(d9_i64)(d9_i32)word32(c + 3);
	if (c[1] == 0x8d)
		return to == self;
	for (d9_u32 i = 0; i < im->n_data; i++)
		if (to - im->data[i].lo < im->data[i].hi - im->data[i].lo && !(to & 7))
			return d9_can_read((const void *)to) && *(const d9_u64 *)to == self;
	return false;
}

/*
 * A waker's clone adds one reference to the task and returns the very table that it stands in: `lock` add or xadd to (%rdi), the
 * constant 0x40, and the table's own address, all within its first bytes.
 */
static bool clones_a_task(const struct image *im, d9_u64 code, d9_u64 self)
{
	d9_u64 end = 0;
	for (d9_u32 i = 0; i < im->n_code; i++)
		if (code - im->code[i].lo < im->code[i].hi - im->code[i].lo)
			end = im->code[i].hi;
	if (end < code + CODE_SLACK)
		return false;
	end = end - CODE_SLACK < code + CLONE_BYTES ? end - CODE_SLACK : code + CLONE_BYTES;
	if (!d9_can_read((const void *)code) || !d9_can_read((const void *)(end + CODE_SLACK - 8)))
		return false;
	bool locked = false, one = false, itself = false;
	for (const d9_u8 *c = (const d9_u8 *)code; c < (const d9_u8 *)end; c++) {
		if (c[0] == 0xf0 && c[1] == 0x48 && c[2] == 0x0f && c[3] == 0xc1 && (c[4] & 0xc7) == 0x07)
			locked = true; /* lock xadd %r, (%rdi) */
		if (c[0] == 0xf0 && c[1] == 0x48 && c[2] == 0x83 && c[3] == 0x07 && c[4] == D9_TOKIO_REFERENCE)
			locked = one = true; /* lock addq $0x40, (%rdi) */
		if ((c[0] & 0xf8) == 0xb8 && word32(c + 1) == D9_TOKIO_REFERENCE)
			one = true; /* mov $0x40, %r32 */
		itself = itself || takes_address(im, c, self);
		if (locked && one && itself)
			return true;
	}
	return false;
}

static void add_schedule(struct image *im, const void *schedule)
{
	struct d9_tokio_scan *s = im->scan;
	for (d9_u32 i = 0; i < s->n_schedules; i++)
		if (im->schedules[i] == schedule)
			return;
	if (s->n_schedules <= D9_TOKIO_SCHEDULES_MAX)
		im->schedules[s->n_schedules++] = schedule;
}

static void add_table(struct image *im, const d9_u64 *w)
{
	struct d9_tokio_scan *s = im->scan;
	struct d9_tokio_table *t = (struct d9_tokio_table *)w;
	add_schedule(im, (const void *)w[1]);
	if (s->n_tables < s->room)
		s->tables[s->n_tables] = t;
	s->n_tables++;
}

/* What a scan looks for at the end of a run of words that are code. */
enum look { TASKS, WAKERS };

static void judge(struct image *im, const d9_u64 *p, const d9_u64 *end, d9_u32 run, enum look look)
{
	if (look == WAKERS) {
		if (run >= 4 && clones_a_task(im, p[-3], (d9_u64)(p - 3))) {
			im->scan->wakers = (struct d9_tokio_wakers *)(p - 3);
			im->scan->n_wakers++;
		}
		return;
	}
	if (run >= 7 && end - p > 3 && is_task_table(p - 6))
		add_table(im, p - 6);
	else if (run >= 8 && end - p > 2 && is_old_table(im, p - 7))
		im->old_tables++;
}

/* [lo, hi) can be read.  False: out of time. */
static bool look_through(struct image *im, d9_u64 lo, d9_u64 hi, enum look look)
{
	d9_u32 run = 0;
	const d9_u64 *end = (const d9_u64 *)(hi & ~7ull);
	for (const d9_u64 *p = (const d9_u64 *)((lo + 7) & ~7ull); p < end; p++) {
		if (!((d9_u64)p & (PAGES_A_LOOK * PAGE - 1)) && d9_mono_ns() > im->scan->until_mono)
			return false;
		run = in_code(im, *p) ? run + 1 : 0;
		if (run >= 4)
			judge(im, p, end, run, look);
	}
	return true;
}

/* The parts of the range that are mapped. */
static bool look_in(struct image *im, const struct range *r, enum look look)
{
	for (d9_u64 lo = r->lo; lo < r->hi;) {
		d9_u64 hi = lo;
		while (hi < r->hi && d9_can_read((const void *)hi)) {
			hi = (hi & ~(PAGE - 1)) + PAGE;
			if (!(hi & (PAGES_A_LOOK * PAGE - 1)) && d9_mono_ns() > im->scan->until_mono)
				return false;
		}
		if (hi > lo && !look_through(im, lo, hi < r->hi ? hi : r->hi, look))
			return false;
		lo = (hi & ~(PAGE - 1)) + (hi > lo ? 0 : PAGE);
	}
	return true;
}

static void look_in_all(struct image *im, const struct range *r, d9_u32 n, enum look look)
{
	for (d9_u32 i = 0; i < n && !im->scan->cut_short; i++)
		im->scan->cut_short = !look_in(im, &r[i], look);
}

/* Where the image cannot have moved, nothing is relocated, and what is constant may lie with the constants. */
static bool constants_hold_tables(const struct dl_phdr_info *info, const struct image *im)
{
	return !im->scan->n_tables && !im->old_tables && (!im->relro || !info->dlpi_addr);
}

static enum d9_tokio_verdict judge_all(const struct image *im)
{
	const struct d9_tokio_scan *s = im->scan;
	if (!s->n_tables)
		return im->old_tables && s->n_wakers ? D9_TOKIO_OLD : D9_TOKIO_NONE;
	if (s->cut_short) /* what was not looked at may hold a waker, or another one */
		return D9_TOKIO_CUT_SHORT;
	if (s->n_schedules > D9_TOKIO_SCHEDULES_MAX)
		return D9_TOKIO_MANY_SCHEDULES;
	return !s->n_wakers ? D9_TOKIO_NO_WAKERS : s->n_wakers > 1 ? D9_TOKIO_MANY_WAKERS : D9_TOKIO_ACCEPTED;
}

void d9_tokio_scan(const struct dl_phdr_info *info, struct d9_tokio_scan *scan)
{
	struct image im = {.scan = scan};
	scan->verdict = D9_TOKIO_NONE;
	scan->n_tables = scan->n_wakers = scan->n_schedules = 0;
	scan->cut_short = false;
	scan->wakers = NULL;
	sort_segments(info, &im);
	if (!im.n_code)
		return;
	look_in_all(&im, im.data, im.n_data, TASKS);
	bool constants = constants_hold_tables(info, &im);
	if (!im.n_constant) { /* older linkers put them beside the code */
		memcpy(im.constant, im.code, sizeof(im.code));
		im.n_constant = im.n_code;
	}
	if (constants)
		look_in_all(&im, im.constant, im.n_constant, TASKS);
	/* To judge a waker is to read code, so only where there is something to be woken. */
	if (scan->n_tables || im.old_tables) {
		look_in_all(&im, im.data, im.n_data, WAKERS);
		if (constants)
			look_in_all(&im, im.constant, im.n_constant, WAKERS);
	}
	scan->verdict = judge_all(&im);
}
