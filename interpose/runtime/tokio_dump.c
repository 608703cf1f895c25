/*
 * See tokio_dump.h.
 *
 * word          written by           read by     ordering, and what breaks without it
 * forms[].ready who meets it first   who meets   CAS to BUSY, release to READY / acquire: a form that is read is whole, and stays so
 * words_next    who meets a form     the same    add: room of its own for each
 */
#include "tokio_dump.h"
#include "format/code.h"
#include "interpose/real.h"
#include "shim/calls.h"
#include "shim/stack.h"

#define FORMS_BITS 11
#define FORMS (1u << FORMS_BITS)
#define FORM_PROBES 64u
#define WORDS 65536u           /* of all forms */
#define STACK_WORDS_MAX 65536u /* a piece of stack that is longer is left out */
#define FORM_WORDS_MAX 1024u

enum { FREE, BUSY, READY };
struct form {
	d9_u64 ra;
	d9_u32 ready, length; /* length: of the piece of stack, in words */
	d9_u32 first, n;      /* in words[] */
	d9_u32 site, pad;
};
static struct forms {
	struct form of[FORMS];
	d9_u32 words_next, n, pad[14];
	d9_u64 words[WORDS]; /* place in the piece of stack << 32 | offset in the image */
} * forms;

bool d9_tokio_room_for_dumps(void)
{
	return d9_shim.task_dumps == D9_TASK_DUMPS_OFF || forms || d9_map_kept(sizeof(*forms), (void **)&forms);
}

D9_READS_STACK static inline d9_u64 word_of(const d9_u64 *stack, d9_u32 i)
{
	d9_u64 w = *(const volatile d9_u64 *)&stack[i];
	d9_stack_say_defined(&w, sizeof(w));
	return w;
}

/* A waker is taken. */
struct call {
	const void *ra, *fp;
	const d9_u64 *stack; /* from here */
	d9_u64 top;          /* ... up to there */
	d9_u32 length;       /* in words */
};

static inline bool is_form(const struct form *f, const d9_u64 *stack, d9_u64 code)
{
	const d9_u64 *w = &forms->words[f->first];
	for (d9_u32 i = 0; i < f->n; i++)
		if (word_of(stack, (d9_u32)(w[i] >> 32)) - code != (d9_u32)w[i])
			return false;
	return true;
}

static inline d9_u32 home_of(d9_u64 ra, d9_u32 length)
{
	return (d9_u32)((ra ^ (d9_u64)length << 20) * 0x9e3779b97f4a7c15ull >> (64 - FORMS_BITS));
}

/* What may be return addresses in a piece of stack.  How many; more than max: there are more. */
static d9_u32 find_words(const struct d9_tokio_copy *c, const d9_u64 *stack, d9_u32 length, d9_u64 *ret, d9_u32 max)
{
	d9_u32 n = 0;
	const d9_u64 size = c->code_hi - c->code_lo;
	for (d9_u32 i = 0; i < length; i++) {
		d9_u64 w = word_of(stack, i) - c->code_lo;
		if (w < D9_CALL_BYTES || w >= size || !d9_is_call((const d9_u8 *)(c->code_lo + w - D9_CALL_BYTES)))
			continue;
		if (n == max)
			return max + 1;
		ret[n++] = (d9_u64)i << 32 | w;
	}
	return n;
}

/* Room for one more form; ~0: there is none.  What it does not need of it goes back if nobody was there in between. */
static d9_u32 take_room(struct forms *fs)
{
	const d9_u32 most = d9_shim.task_dumps == D9_TASK_DUMPS_ALL ? FORMS * 3 / 4 : FORMS / 4;
	if (d9_load_relaxed(&fs->n) >= most || d9_load_relaxed(&fs->words_next) > WORDS - FORM_WORDS_MAX)
		return ~0u;
	d9_u32 first = d9_add_relaxed(&fs->words_next, FORM_WORDS_MAX);
	return first <= WORDS - FORM_WORDS_MAX ? first : ~0u;
}
static void give_back(struct forms *fs, d9_u32 first, d9_u32 used)
{
	d9_u32 end = first + FORM_WORDS_MAX;
	(void)d9_cas_acq_rel(&fs->words_next, &end, first + used);
}

/* A form that was not met before.  Its site; 0: it is left out. */
static D9_COLD d9_u32 add(struct d9_cell *me, struct form *f, const struct d9_tokio_copy *c, const struct call *call)
{
	struct d9_stack_plan plan;
	d9_u32 free = FREE, first = take_room(forms);
	if (first == ~0u)
		return 0;
	if (!d9_cas_acq_rel(&f->ready, &free, BUSY)) {
		give_back(forms, first, 0); /* another thread was faster: the next time it is known */
		return 0;
	}
	d9_u32 n = find_words(c, call->stack, call->length, &forms->words[first], FORM_WORDS_MAX);
	bool whole = n <= FORM_WORDS_MAX;
	give_back(forms, first, whole ? n : 0);
	f->ra = (d9_u64)call->ra;
	f->length = whole ? call->length : 0; /* 0: nobody's */
	f->first = first;
	f->n = whole ? n : 0;
	f->site = 0;
	if (whole) {
		const struct d9_stack_words words = {.fp = call->fp,
						     .ra = call->ra,
						     .stack = call->stack,
						     .hi = call->top,
						     .code = c->code_lo,
						     .places = &forms->words[first],
						     .n = n};
		d9_stack_plan_words(me, &words, &plan);
		if (plan.kind != D9_TAIL_NONE)
			f->site = d9_site_add(me, D9_HK_task_dump, call->ra, call->fp, &plan);
	}
	d9_u32 site = f->site;
	d9_add_relaxed(&forms->n, 1);
	d9_store_release(&f->ready, READY);
	return site;
}

static d9_u32 site_of(struct d9_cell *me, const struct d9_tokio_copy *c, const struct call *call)
{
	d9_u32 home = home_of((d9_u64)call->ra, call->length);
	for (d9_u32 k = 0; k < FORM_PROBES; k++) {
		struct form *f = &forms->of[(home + k) & (FORMS - 1)];
		d9_u32 ready = d9_load_acquire(&f->ready);
		if (ready == FREE)
			return add(me, f, c, call);
		if (ready == READY && f->ra == (d9_u64)call->ra && f->length == call->length &&
		    is_form(f, call->stack, c->code_lo))
			return f->site;
	}
	return 0;
}

void d9_tokio_dump(struct d9_cell *me, const struct d9_task_frame *f, const void *ra, const void *fp)
{
	const struct d9_tokio_copy *c = &d9_tokio_copies[f->module - 1];
	struct call call = {.ra = ra, .fp = fp, .top = f->top, .stack = (const d9_u64 *)fp + 2};
	d9_u64 bytes = f->top - (d9_u64)call.stack;
	d9_u32 site = 0, flags = D9_DUMP_NO_STACK;
	if (forms && d9_shim.stacks != D9_STACKS_OFF && bytes <= 8 * STACK_WORDS_MAX &&
	    d9_stack_known(me, (d9_u64)fp) && f->top + 16 <= me->stack_hi) {
		call.length = (d9_u32)(bytes / 8);
		site = site_of(me, c, &call);
		flags = site ? 0 : D9_DUMP_LEFT_OUT;
	}
	const d9_u32 len = sizeof(struct d9_ev_task_dump);
	struct d9_ev_task_dump *e = (struct d9_ev_task_dump *)d9_record_begin(me, len, D9_EV_task_dump);
	if (!e)
		return;
	e->rec.site = site;
	e->rec.t = d9_now();
	e->task = f->id;
	e->module = f->module;
	e->flags = flags;
	d9_record_commit(&e->rec, len, D9_EV_task_dump);
}
