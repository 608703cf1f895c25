/* See tokio_patch.h. */
#include "tokio_patch.h"
#include "interpose/elf_lookup.h"
#include "interpose/real.h"
#include "shim/modules.h"
#include "shim/text.h"
#include "tokio_dump.h"
#include "tokio_tasks.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#define IMAGES 2048u
#define BUDGET_NS 50000000u /* for a look */
#define PAGE 4096ull

struct d9_tokio_slot *d9_tokio_slots;
struct d9_tokio_copy d9_tokio_copies[D9_TOKIO_COPIES];
bool d9_tokio_there;

/* ---- thunks ---------------------------------------------------------------------------------------------- */

/* 16 bytes each, the number in the register of the argument that comes after the function's own. */
#define THUNKS(n, name, number)                                                    \
	__asm__(".text\n"                                                          \
		".p2align 4\n"                                                     \
		".hidden d9_tokio_thunks_" #name "\n"                              \
		".globl d9_tokio_thunks_" #name "\n"                               \
		".type d9_tokio_thunks_" #name ", @function\n"                     \
		"d9_tokio_thunks_" #name ":\n"                                     \
		"	.cfi_startproc\n"                                                \
		".set d9_number, 0\n"                                              \
		".rept " #n "\n"                                                   \
		"	.p2align 4\n"                                                    \
		"	endbr64\n"                                                       \
		"	movl $d9_number, %" #number "\n"                           \
		"	jmp d9_tokio_" #name "\n"                                  \
		".set d9_number, d9_number + 1\n"                                  \
		".endr\n"                                                          \
		"	.cfi_endproc\n"                                                  \
		".size d9_tokio_thunks_" #name ", .-d9_tokio_thunks_" #name "\n"); \
	extern D9_HIDDEN const char d9_tokio_thunks_##name[][16]
THUNKS(4096, poll, esi);
THUNKS(4096, schedule, esi);
THUNKS(4096, shutdown, esi);
THUNKS(4096, read_output, ecx);
THUNKS(16, wake, esi);
THUNKS(16, wake_by_ref, esi);
THUNKS(16, clone, esi);
_Static_assert(D9_TOKIO_SLOTS == 4096 && D9_TOKIO_COPIES == 16, "a thunk for each");

/* ---- stores into memory that the loader made read-only ------------------------------------------------------ */

/* What the loader left the page with: RELRO ends in whole pages, and what is beside it in them stays writable. */
static int protection_of(const struct dl_phdr_info *info, d9_u64 page)
{
	int how = PROT_NONE;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		d9_u64 lo = info->dlpi_addr + p->p_vaddr, hi = lo + p->p_memsz;
		if (p->p_type == PT_LOAD && page + PAGE > lo && page < hi)
			how |= (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
			       (p->p_flags & PF_X ? PROT_EXEC : 0);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		d9_u64 lo = info->dlpi_addr + p->p_vaddr, hi = lo + p->p_memsz;
		if (p->p_type == PT_GNU_RELRO && page >= (lo & ~(PAGE - 1)) && page < (hi & ~(PAGE - 1)))
			how = PROT_READ;
	}
	return how;
}

/* The page that is open for writing. */
struct opened {
	const struct dl_phdr_info *info;
	d9_u64 page; /* 0: none */
	int how;
};

static void close_page(struct opened *o)
{
	if (o->page)
		(void)d9_sys3(SYS_mprotect, (long)o->page, PAGE, o->how);
	o->page = 0;
}

static bool open_page(struct opened *o, const void *p)
{
	d9_u64 page = (d9_u64)p & ~(PAGE - 1);
	if (page == o->page)
		return true;
	close_page(o);
	o->how = protection_of(o->info, page);
	if (d9_sys3(SYS_mprotect, (long)page, PAGE, o->how | PROT_READ | PROT_WRITE))
		return false;
	o->page = page;
	return true;
}

/* One word of a table, which other threads may be calling through. */
static bool put(struct opened *o, void *at, const void *function)
{
	if (!open_page(o, at))
		return false;
	d9_store_release((const void **)at, function);
	return true;
}

/* ---- one image --------------------------------------------------------------------------------------------- */

static struct d9_tokio_table *found[D9_TOKIO_SLOTS];
static d9_u32 n_slots, n_copies;

static const char *name_of(const struct dl_phdr_info *info)
{
	return info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name : d9_shim.v.h->exe_args;
}

static void fill_slot(struct d9_tokio_slot *s, const struct d9_tokio_table *t, d9_u32 copy)
{
	*s = (struct d9_tokio_slot){.table = t,
				    .poll = t->poll,
				    .schedule = t->schedule,
				    .shutdown = t->shutdown,
				    .read_output = t->read_output,
				    .scheduler_offset = (d9_u32)t->scheduler_offset,
				    .id_offset = (d9_u32)t->id_offset,
				    .trailer_offset = (d9_u32)t->trailer_offset,
				    .copy = (d9_u16)copy};
}

static bool patch_table(struct opened *o, struct d9_tokio_table *t, d9_u32 i, d9_u32 copy)
{
	if (!open_page(o, &t->poll) || !open_page(o, &t->shutdown))
		return false; /* before there is anything to be taken back */
	fill_slot(&d9_tokio_slots[i], t, copy);
	return put(o, &t->shutdown, d9_tokio_thunks_shutdown[i]) &&
	       put(o, &t->read_output, d9_tokio_thunks_read_output[i]) &&
	       put(o, &t->schedule, d9_tokio_thunks_schedule[i]) && put(o, &t->poll, d9_tokio_thunks_poll[i]);
}

/* The largest piece of its code: linkers make one. */
static void find_code(const struct dl_phdr_info *info, struct d9_tokio_copy *ret)
{
	ret->code_lo = ret->code_hi = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		d9_u64 lo = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_flags & PF_R &&
		    p->p_memsz > ret->code_hi - ret->code_lo) {
			ret->code_lo = lo;
			ret->code_hi = lo + p->p_memsz;
		}
	}
}

/* How many of the tables found have slots now. */
static d9_u32 patch(const struct dl_phdr_info *info, const struct d9_tokio_scan *scan)
{
	struct opened o = {.info = info};
	d9_u32 n = 0, copy = n_copies, with = scan->n_tables < D9_TOKIO_SLOTS ? scan->n_tables : D9_TOKIO_SLOTS;
	struct d9_tokio_copy *c = &d9_tokio_copies[copy];
	c->lo = ~0ull;
	c->hi = 0;
	for (d9_u32 i = 0; i < with; i++) {
		d9_u64 at = (d9_u64)found[i];
		c->lo = at < c->lo ? at : c->lo;
		c->hi = at + sizeof(*found[i]) > c->hi ? at + sizeof(*found[i]) : c->hi;
	}
	find_code(info, c);
	c->clone = scan->wakers->clone;
	c->wake = scan->wakers->wake;
	c->wake_by_ref = scan->wakers->wake_by_ref;
	n_copies++;
	d9_store_relaxed(&d9_tokio_there, true);
	while (n < with && n_slots < D9_TOKIO_SLOTS) {
		if (!patch_table(&o, found[n], n_slots++, copy))
			break; /* some of its thunks may be in place: the slot is used */
		n++;
	}
	if (n && put(&o, &scan->wakers->wake, d9_tokio_thunks_wake[copy]) &&
	    put(&o, &scan->wakers->wake_by_ref, d9_tokio_thunks_wake_by_ref[copy]) &&
	    d9_shim.task_dumps != D9_TASK_DUMPS_OFF)
		(void)put(&o, &scan->wakers->clone, d9_tokio_thunks_clone[copy]);
	close_page(&o);
	return n;
}

static d9_u32 round_now; /* looks at the images so far */

static void say_patched(const struct dl_phdr_info *info, const struct d9_tokio_scan *scan, d9_u32 n)
{
	char text[128];
	struct d9_text t = d9_text_in(text, sizeof(text));
	d9_text_str(&t, D9_NOTE_TOKIO);
	d9_text_u64(&t, n);
	d9_text_str(&t, D9_NOTE_MODULE);
	d9_text_u64(&t, n_copies);
	d9_text_str(&t, D9_NOTE_PROCESS);
	d9_text_u64(&t, (d9_u64)d9_sys0(SYS_getpid));
	d9_shim_note(name_of(info), text);
	/* What was there at start is known; the others would be looked for only some seconds later. */
	if (round_now > 1 && info->dlpi_name[0] == '/' && d9_enter_thread())
		d9_modules_add_image(&d9_shim.v, d9_shim.priv->proc, info, d9_now(), d9_back);
	if (n >= scan->n_tables)
		return;
	t = d9_text_in(text, sizeof(text));
	d9_text_str(&t, ": Tokio, but of ");
	d9_text_u64(&t, scan->n_tables);
	d9_text_str(&t, " kinds of tasks only ");
	d9_text_u64(&t, n);
	d9_text_str(&t, " could be patched; the others are not seen");
	d9_shim_unseen(name_of(info), text);
}

static const char *const refused[] = {
	[D9_TOKIO_OLD] = "of before 1.23, whose tasks cannot be seen",
	[D9_TOKIO_NO_WAKERS] = "tasks as it has them, but no wakers of theirs",
	[D9_TOKIO_MANY_WAKERS] = "several copies that cannot be told apart",
	[D9_TOKIO_MANY_SCHEDULES] = "tasks as it has them, but of more schedulers than it has",
	[D9_TOKIO_CUT_SHORT] = "too large to be looked through in time",
};

static void say_refused(const struct dl_phdr_info *info, const char *why)
{
	char text[128];
	struct d9_text t = d9_text_in(text, sizeof(text));
	d9_text_str(&t, D9_NOTE_REFUSED);
	d9_text_str(&t, why);
	d9_shim_unseen(name_of(info), text);
}

/*
 * Few programs have a Tokio, so the memory for it is mapped when one is found.  The slots stay, for the thunks lead to them; of their
 * room only what is used can be written to, and counts as the program's data.
 */
static bool room_for(d9_u32 copy, d9_u32 tables)
{
	d9_u32 n = n_slots + tables < D9_TOKIO_SLOTS ? n_slots + tables : D9_TOKIO_SLOTS;
	if (!d9_tokio_slots) {
		d9_tokio_slots = d9_map_kept(D9_TOKIO_SLOTS * sizeof(*d9_tokio_slots), NULL);
		if (d9_tokio_slots)
			(void)d9_sys3(SYS_mprotect, (long)d9_tokio_slots,
				      (long)(D9_TOKIO_SLOTS * sizeof(*d9_tokio_slots)), PROT_NONE);
	}
	return d9_tokio_slots &&
	       !d9_sys3(SYS_mprotect, (long)d9_tokio_slots, (long)D9_PAGES(n * sizeof(*d9_tokio_slots)),
			PROT_READ | PROT_WRITE) &&
	       d9_tokio_room_for(copy) && d9_tokio_room_for_dumps();
}

/* last: it will not be looked at again.  False: it should be, for there was no time for all of it. */
static bool consider(const struct dl_phdr_info *info, d9_u64 until_mono, bool last)
{
	struct d9_tokio_scan scan = {.tables = found, .room = D9_TOKIO_SLOTS, .until_mono = until_mono};
	d9_tokio_scan(info, &scan);
	if (scan.cut_short && !last)
		return false;
	if (scan.cut_short && scan.verdict == D9_TOKIO_NONE)
		d9_shim_unseen(name_of(info), ": not looked through for Tokio to its end, for it is large");
	if (scan.verdict == D9_TOKIO_NONE)
		return true;
	if (scan.verdict != D9_TOKIO_ACCEPTED)
		say_refused(info, refused[scan.verdict]);
	else if (d9_shim.runtimes == D9_RUNTIMES_SCAN)
		say_refused(info, "its tasks could be recorded, but D9_RUNTIMES=scan");
	else if (n_copies < D9_TOKIO_COPIES && !room_for(n_copies, scan.n_tables))
		say_refused(info, "there is no memory to record its tasks with");
	else if (n_copies == D9_TOKIO_COPIES || n_slots == D9_TOKIO_SLOTS)
		say_refused(info, "there are more copies and kinds of tasks than are recorded");
	else
		say_patched(info, &scan, patch(info, &scan));
	return true;
}

/*
 * The loader lists an image before it has relocated it, and writes to it then: what is read-only afterwards can still be written to.
 * An image without such a page cannot be told.
 */
static bool is_relocated(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		d9_u64 lo = info->dlpi_addr + p->p_vaddr, first = (lo + PAGE - 1) & ~(PAGE - 1),
		       last = (lo + p->p_memsz) & ~(PAGE - 1);
		if (p->p_type == PT_GNU_RELRO && first < last)
			return d9_add_zero(first) == -EFAULT;
	}
	return true;
}

/* ---- all images ---------------------------------------------------------------------------------------------- */

/* Images that were looked at, in the loader's order, and the copy of Tokio in each (+ 1). */
struct known {
	ElfW(Addr) base;
	const ElfW(Phdr) * headers;
	d9_u32 round, copy;
	bool again; /* there was no time for all of it */
};
static struct known known[IMAGES];
static d9_u32 n_known;
static unsigned long long opened_before, closed_before;

struct look {
	d9_u32 at; /* where in `known` the next image is expected */
	d9_u64 until_mono;
	unsigned long long opened, closed;
	d9_u64 signals; /* as they were blocked before */
	bool begun, blocked, unfinished;
};
static d9_u32 unfinished_looks;
#define UNFINISHED_MAX 1000u /* then what is not relocated never will be: somebody made its pages writable */

static struct known *find(const struct dl_phdr_info *info, d9_u32 expected)
{
	for (d9_u32 k = 0; k < n_known; k++) {
		struct known *i = &known[(expected + k) % n_known];
		if (i->base == info->dlpi_addr && i->headers == info->dlpi_phdr)
			return i;
	}
	return NULL;
}

static int visit(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct look *l = ctx;
	if (!l->blocked) { /* A handler that forks while the list is locked would leave it so in its child. */
		d9_u64 all = ~0ull;
		(void)d9_sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&l->signals, 8);
		l->blocked = true;
	}
	if (!l->begun && size > offsetof(struct dl_phdr_info, dlpi_subs)) {
		l->opened = info->dlpi_adds;
		l->closed = info->dlpi_subs;
		if (l->opened == opened_before && l->closed == closed_before)
			return 1;
	}
	if (!l->begun) {
		l->begun = true;
		l->until_mono = d9_mono_ns() + BUDGET_NS;
		round_now++;
	}
	struct known *i = find(info, l->at);
	if ((!i && n_known < IMAGES) || (i && i->again)) {
		if (unfinished_looks < UNFINISHED_MAX && !is_relocated(info)) {
			l->unfinished = true;
			return 0;
		}
		bool first = !i;
		if (first) {
			i = &known[n_known++];
			*i = (struct known){.base = info->dlpi_addr, .headers = info->dlpi_phdr};
		}
		d9_u32 before = n_copies;
		i->again = !d9_image_holds(info, (ElfW(Addr))known) && !consider(info, l->until_mono, !first);
		l->unfinished |= i->again;
		i->copy = n_copies > before ? n_copies : 0;
	}
	if (i) {
		i->round = round_now;
		l->at = (d9_u32)(i - known) + 1;
	}
	return 0;
}

/* What was closed is forgotten: another image may come to lie there. */
static void forget(void)
{
	d9_u32 kept = 0;
	for (d9_u32 k = 0; k < n_known; k++)
		if (known[k].round == round_now)
			known[kept++] = known[k];
		else if (known[k].copy)
			d9_tokio_copies[known[k].copy - 1].lo = d9_tokio_copies[known[k].copy - 1].hi = 0;
	n_known = kept;
}

void d9_tokio_look(void)
{
	struct look l = {.begun = false};
	struct d9_private *pr = d9_shim.priv;
	d9_u32 nobody = 0;
	if (!d9_recording_possible() || d9_shim.runtimes == D9_RUNTIMES_OFF)
		return;
	if (!d9_cas_acq_rel(&pr->looking, &nobody, 1))
		return;
	if (!d9_load_acquire(&pr->forking)) /* else at the next thread that is made */
		(void)d9_real_images(visit, &l);
	if (l.begun) {
		opened_before = l.unfinished ? 0 : l.opened;
		closed_before = l.closed;
		unfinished_looks += l.unfinished;
		forget();
	}
	d9_store_release(&pr->looking, 0);
	if (l.blocked)
		(void)d9_sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&l.signals, 0, 8);
}

void d9_tokio_look_again(void)
{
	/* Of a fork that was not libc's, beside other threads, or under a filter, the loader's lock or mprotect may be out of reach. */
	if (d9_shim_free() && d9_load_relaxed(&d9_shim.priv->locks_whole) &&
	    d9_load_relaxed(&d9_shim.priv->loader_whole))
		d9_tokio_look();
}
