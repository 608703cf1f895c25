/*
 * Walks a recorded slice of a stack with libunwind's remote accessors: registers and stack come from
 * the record, unwind tables from the files of the mappings.  Nothing is read from a live process.
 * The walk ends where the slice ends; that is the usual end, not a failure.
 *
 * Tables are the search tables of .eh_frame_hdr, which all linkers write.  Code without a table (a JIT's)
 * is walked by frame pointer, as libunwind does by itself; what comes of that is checked here.
 */
#include "space.h"

#include "format/code.h"
#include "format/events.h"
#include "perf_map.h"
#include "search.h"

#include <errno.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

/* Not in libunwind.h, but exported for those who bring their own tables (perf uses it too). */
#define search_table UNW_OBJ(dwarf_search_unwind_table)
extern int search_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
			int need_unwind_info, void *arg);

struct word {
	d9_u64 at, value;
};
struct walk {
	struct d9_space *space;
	struct d9_slice regs;
	const char *stack; /* at regs.rsp */
	size_t n_stack;
	const struct word *words; /* NULL: the stack is whole; else what is known of it */
	size_t n_words;
	bool no_table; /* the last step found no table */
};

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need_unwind_info, void *arg)
{
	struct walk *w = arg;
	size_t i = d9_space_find(w->space, ip);
	struct d9_object *o = i < w->space->n ? w->space->placed[i].object : NULL;
	int r = -UNW_ENOINFO;
	if (o)
		d9_object_read_eh(o);
	if (o && o->eh_count) {
		d9_u64 bias = w->space->placed[i].bias;
		unw_dyn_info_t di = {.format = UNW_INFO_FORMAT_REMOTE_TABLE,
				     .start_ip = w->space->maps[i].start,
				     .end_ip = w->space->maps[i].end};
		di.u.rti.segbase = bias + o->eh_hdr;
		di.u.rti.table_data = bias + o->eh_table;
		di.u.rti.table_len = o->eh_count * 8 / sizeof(unw_word_t); /* in words; an entry is two i32 */
		r = search_table(as, ip, &di, pi, need_unwind_info, arg);
	}
	w->no_table = r == -UNW_ENOINFO;
	return r;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	(void)as, (void)pi, (void)arg; /* libunwind frees what search_table made */
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *ret, void *arg)
{
	(void)as, (void)ret, (void)arg;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write, void *arg)
{
	const struct walk *w = arg;
	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	if (w->words) {
		size_t i = D9_FIRST_AFTER(w->words, w->n_words, at, address - 1);
		if (i < w->n_words && w->words[i].at == address) {
			*value = w->words[i].value;
			return 0;
		}
	}
	d9_u64 at = address - w->regs.rsp;
	if (at < w->n_stack && w->n_stack - at >= sizeof(*value)) {
		memcpy(value, w->stack + at, sizeof(*value));
		return 0;
	}
	return d9_space_read(w->space, address, value, sizeof(*value)) < 0 ? -UNW_EINVAL : 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
	const struct walk *w = arg;
	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	switch (reg) {
	case UNW_X86_64_RIP:
		*value = w->regs.rip;
		return 0;
	case UNW_X86_64_RSP:
		*value = w->regs.rsp;
		return 0;
	case UNW_X86_64_RBP:
		*value = w->regs.rbp;
		return 0;
	case UNW_X86_64_RBX:
		*value = w->regs.rbx;
		return 0;
	case UNW_X86_64_R12:
		*value = w->regs.r12;
		return 0;
	case UNW_X86_64_R13:
		*value = w->regs.r13;
		return 0;
	case UNW_X86_64_R14:
		*value = w->regs.r14;
		return 0;
	case UNW_X86_64_R15:
		*value = w->regs.r15;
		return 0;
	default:
		return -UNW_EBADREG; /* not kept across calls, so that no caller's rule needs it */
	}
}

static int no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	(void)as, (void)reg, (void)value, (void)write, (void)arg;
	return -UNW_EBADREG;
}
static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	(void)as, (void)c, (void)arg;
	return -UNW_EINVAL;
}
static int no_proc_name(unw_addr_space_t as, unw_word_t ip, char *buf, size_t n, unw_word_t *offset, void *arg)
{
	(void)as, (void)ip, (void)buf, (void)n, (void)offset, (void)arg;
	return -UNW_ENOINFO;
}

static unw_addr_space_t address_space(struct d9_space *s)
{
	static unw_accessors_t accessors = {.find_proc_info = find_proc_info,
					    .put_unwind_info = put_unwind_info,
					    .get_dyn_info_list_addr = no_dyn_info,
					    .access_mem = access_mem,
					    .access_reg = access_reg,
					    .access_fpreg = no_fpreg,
					    .resume = no_resume,
					    .get_proc_name = no_proc_name};
	if (!s->unwind) {
		s->unwind = unw_create_addr_space(&accessors, 0);
		if (s->unwind)
			unw_set_caching_policy(s->unwind, UNW_CACHE_GLOBAL);
	}
	return s->unwind;
}

void d9_unwind_forget(struct d9_space *s)
{
	if (s->unwind)
		unw_destroy_addr_space(s->unwind);
	s->unwind = NULL;
}

/* Does a call instruction end just before address? */
static bool follows_call(const struct d9_space *s, d9_u64 address)
{
	d9_u8 b[D9_CALL_BYTES];
	return d9_space_read(s, address - sizeof(b), b, sizeof(b)) >= 0 && d9_is_call(b);
}

/* After a step by frame pointer: an address that is no return address of known code is the end, not a frame. */
static bool is_credible(const struct d9_space *s, d9_u64 address)
{
	d9_u64 start;
	size_t i = d9_space_find(s, address - 1);
	if (i < s->n && s->placed[i].object)
		return follows_call(s, address);
	return i < s->n || d9_perf_map_find(s->jit, address - 1, &start) != NULL;
}

static size_t steps(struct walk *w, unw_cursor_t *c, bool returned, struct d9_raw_frame *ret, size_t max)
{
	bool guessed = false; /* some step so far went by frame pointer */
	for (size_t n = 0;;) {
		unw_word_t ip, sp, was_sp;
		if (unw_get_reg(c, UNW_REG_IP, &ip) < 0 || ip == 0 || unw_get_reg(c, UNW_REG_SP, &was_sp) < 0)
			return n;
		if (n == 0 && returned)
			ip++; /* see d9_unwind_slice */
		if (guessed && !is_credible(w->space, ip))
			return n;
		ret[n++] = (struct d9_raw_frame){ip, returned};
		if (n == max)
			return n;
		w->no_table = false;
		returned = unw_is_signal_frame(c) <= 0;
		if (unw_step(c) <= 0 || unw_get_reg(c, UNW_REG_SP, &sp) < 0 || sp <= was_sp)
			return n;
		guessed |= w->no_table;
	}
}

static size_t unwind(struct walk *w, struct d9_raw_frame *ret, size_t max)
{
	unw_cursor_t cursor;
	unw_addr_space_t as = address_space(w->space);
	if (max == 0 || !as)
		return 0;
	/*
	 * The recorder may have taken a return address for rip.  After a call that does not return that is
	 * the first byte of the next function, whose rules are not ours: walk from the byte before.
	 */
	bool returned = follows_call(w->space, w->regs.rip);
	w->regs.rip -= returned;
	if (unw_init_remote(&cursor, as, w) < 0)
		return 0;
	return steps(w, &cursor, returned, ret, max);
}

size_t d9_unwind_slice(struct d9_space *s, const void *bytes, size_t n_bytes, struct d9_raw_frame *ret, size_t max)
{
	struct walk w = {.space = s};
	if (n_bytes < sizeof(w.regs))
		return 0;
	memcpy(&w.regs, bytes, sizeof(w.regs));
	w.stack = (const char *)bytes + sizeof(w.regs);
	w.n_stack = n_bytes - sizeof(w.regs);
	return unwind(&w, ret, max);
}

size_t d9_unwind_words(struct d9_space *s, const void *bytes, size_t n_bytes, struct d9_raw_frame *ret, size_t max)
{
	struct walk w = {.space = s};
	if (n_bytes < sizeof(w.regs))
		return 0;
	memcpy(&w.regs, bytes, sizeof(w.regs));
	w.n_words = (n_bytes - sizeof(w.regs)) / sizeof(struct d9_stack_word);
	struct word *words = malloc((w.n_words + 1) * sizeof(*words));
	for (size_t i = 0; words && i < w.n_words; i++) {
		struct d9_stack_word from;
		memcpy(&from, (const char *)bytes + sizeof(w.regs) + i * sizeof(from), sizeof(from));
		words[i].at = w.regs.rsp + 8ull * (from.at & ~D9_WORD_OF_STACK);
		words[i].value = (from.at & D9_WORD_OF_STACK ? w.regs.rsp : w.regs.rip) + (d9_u64)(d9_i64)from.delta;
	}
	w.words = words;
	size_t n = words ? unwind(&w, ret, max) : 0;
	free(words);
	return n;
}
