/*
 * events.def expanded: ids, payload structs, proofs and run-time descriptors.  The same bytes lie in the
 * arena and in a BPF ring; a block of a segment is their transposition by descriptor.
 */
#ifndef D9_FORMAT_EVENTS_H
#define D9_FORMAT_EVENTS_H
#include "types.h"

/*
 * head = length in bytes (a multiple of 8, header included) | D9_COMMITTED | event id << 16.
 * 0 means that nothing has been reserved here yet.
 */
struct d9_rec {
	d9_u32 head;
	d9_u32 site; /* 0 = none; below D9_SITE_FIRST: the hook itself, place not known */
	d9_u64 t;    /* raw tsc (arena) or ticks (decoded by a reader) */
};
#define D9_COMMITTED 0x8000u
#define D9_REC_LEN(head) ((head)&0x7fffu)
#define D9_REC_ID(head) ((head) >> 16)
#define D9_REC_HEAD(len, id) ((d9_u32)(len) | (d9_u32)(id) << 16)
#define D9_SITE_FIRST 1024u /* smaller site numbers are hook ids */

/* A tail follows the fixed fields: this word, then `bytes` bytes, then zeros up to a multiple of 8. */
struct d9_tail {
	d9_u32 kind_bytes; /* enum d9_tail_kind << 24 | bytes */
	d9_u32 pad;
};
enum d9_tail_kind {
	D9_TAIL_NONE,
	D9_TAIL_STRING,
	D9_TAIL_DATA,
	D9_TAIL_FRAMES,      /* u64 return addresses, innermost first */
	D9_TAIL_SLICE,       /* struct d9_slice, then the stack's bytes from rsp up */
	D9_TAIL_KERNEL,      /* text: symbol+offset, a line each */
	D9_TAIL_INTERPRETED, /* text: function, file, line; a line each */
	D9_TAIL_WORDS, /* struct d9_slice, then a struct d9_stack_word for each word that is known of the stack from rsp up */
};
#define D9_TAIL_WORD(kind, bytes) ((d9_u32)(kind) << 24 | (d9_u32)(bytes))
#define D9_TAIL_KIND(w) ((w) >> 24)
#define D9_TAIL_BYTES(w) ((w)&0xffffffu)

/*
 * Registers at the moment a slice was copied; the slice begins at rsp.  With words: at the return from the innermost function, and of those
 * kept across calls rbp alone, the others 0; the words are what may be return addresses, and frame pointers below these.
 */
struct d9_slice {
	d9_u64 rip, rsp, rbp, rbx, r12, r13, r14, r15;
};

struct d9_stack_word {
	d9_u32 at;    /* words above rsp; D9_WORD_OF_STACK set: delta is from rsp, else from rip */
	d9_i32 delta; /* bytes */
};
#define D9_WORD_OF_STACK (1u << 31)

/* A runtime of a module, by the number that the module has for it; 0 is its pools of blocking jobs. */
#define D9_RUNTIME_OF(module, number) ((d9_u32)(module) << 24 | ((d9_u32)(number)&0xffffffu))
#define D9_RUNTIME_NUMBER(runtime) ((runtime)&0xffffffu)
/* outcome of poll and task_end, as events.def has it */
enum d9_outcome {
	D9_OUTCOME_PENDING,
	D9_OUTCOME_READY,
	D9_OUTCOME_CANCELLED,
	D9_OUTCOME_WOKEN,
	D9_OUTCOME_ABORTED,
	D9_OUTCOME_NOT_KNOWN = -1
};
/* flags of task_spawn, and of wake */
#define D9_SPAWN_EXACT 1u /* made, thread and parent were seen */
#define D9_SPAWN_JOB 2u   /* of a blocking pool */
#define D9_SPAWN_LIFE 4u  /* or a worker's life, which is no job: then no poll of it follows */
#define D9_WAKE_POLLED 1u /* while it was polled */
#define D9_WAKE_DRIVER 2u /* by a worker between polls */
#define D9_WAKE_CANCEL 4u /* to cancel it */
/* flags of task_dump */
#define D9_DUMP_LEFT_OUT 1u /* there were more places than are kept */
#define D9_DUMP_NO_STACK 2u /* it was not to be had */
/* flags of runq, and the last of offcpu too */
#define D9_RUNQ_PREEMPTED 1u
#define D9_RUNQ_WOKEN 2u
#define D9_RUNQ_NEW 4u
#define D9_KERNEL_RECKONED 8u
#define D9_KERNEL_BY_PERF 16u
#define D9_KERNEL_FLAGS 31u /* all of them */
/* nr of offcpu, where it is no system call's */
#define D9_NR_NONE (-1) /* a page fault, an interrupt, a thread of the kernel's */
#define D9_NR_NOT_KNOWN (-2)

enum d9_event_kind { D9_KIND_META, D9_KIND_SPAN, D9_KIND_POINT, D9_KIND_TOTAL };
enum d9_unit {
	D9_UNIT_NONE,
	D9_UNIT_TICKS,
	D9_UNIT_TIME,
	D9_UNIT_NS,
	D9_UNIT_COUNT,
	D9_UNIT_BYTES,
	D9_UNIT_RESULT,
	D9_UNIT_FD,
	D9_UNIT_ADDR,
	D9_UNIT_TID,
	D9_UNIT_PID,
	D9_UNIT_THREAD,
	D9_UNIT_PROC,
	D9_UNIT_ID,
	D9_UNIT_TASK,
	D9_UNIT_ENUM,
	D9_UNIT_FLAGS,
	D9_UNIT_STACK,
	D9_UNIT_STRING,
	D9_UNIT_DATA,
	D9_N_UNITS
};

/* 1: ids */
enum d9_event_id {
#define D9_EVENT(id, name, kind, since, doc) D9_EV_##name = (id),
#define D9_FIELD(type, field, unit, since, doc)
#define D9_TAIL(field, unit, since, doc)
#define D9_END(name)
#include "events.def"
#undef D9_EVENT
#undef D9_FIELD
#undef D9_TAIL
#undef D9_END
	D9_EVENT_ID_MAX = 255
};

/* 2: structs, header included */
#define D9_EVENT(id, name, kind, since, doc) \
	struct d9_ev_##name {                \
		struct d9_rec rec;
#define D9_FIELD(type, field, unit, since, doc) d9_##type field;
#define D9_TAIL(field, unit, since, doc)
#define D9_END(name) \
	}            \
	;
#include "events.def"
#undef D9_EVENT
#undef D9_FIELD
#undef D9_TAIL
#undef D9_END

/* 3: no compiler padding, whole words, so the bytes are the same for every reader */
#define D9_EVENT(id, name, kind, since, doc)                                                               \
	_Static_assert(sizeof(struct d9_ev_##name) % 8 == 0, "d9_ev_" #name " is no multiple of 8 bytes"); \
	_Static_assert(sizeof(struct d9_ev_##name) == sizeof(struct d9_rec)
#define D9_FIELD(type, field, unit, since, doc) +sizeof(d9_##type)
#define D9_TAIL(field, unit, since, doc)
#define D9_END(name) , "d9_ev_" #name " has padding: reorder or widen its fields");
#include "events.def"
#undef D9_EVENT
#undef D9_FIELD
#undef D9_TAIL
#undef D9_END

/* 4: ids are unique: a duplicate is a duplicate case label.  Returns 0 for an id that is not known. */
static inline const char *d9_event_name(unsigned id)
{
	switch (id) {
#define D9_EVENT(id, name, kind, since, doc) \
	case (id):                           \
		return #name;
#define D9_FIELD(type, field, unit, since, doc)
#define D9_TAIL(field, unit, since, doc)
#define D9_END(name)
#include "events.def"
#undef D9_EVENT
#undef D9_FIELD
#undef D9_TAIL
#undef D9_END
	default:
		return 0;
	}
}

/* 5: the same table at run time, for the writer, the reader and `d9 schema` */
struct d9_field_desc {
	const char *name, *type, *unit_name, *doc;
	d9_u8 size; /* 4 or 8; 0 for a tail.  No padding: an offset is the sum of the sizes before it. */
	d9_u8 unit; /* enum d9_unit */
	d9_u8 since, is_signed, is_tail;
};
struct d9_event_desc {
	const char *name, *kind_name, *doc;    /* name is 0 where no event has this id */
	d9_u16 size;                           /* of the fixed part, header included */
	d9_u8 kind, since, n_fields, has_tail; /* n_fields does not count the tail, which stands after them */
	const struct d9_field_desc *fields;
};
extern const struct d9_event_desc d9_events[D9_EVENT_ID_MAX + 1]; /* by id */

#endif
