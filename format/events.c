/* The run-time descriptors of events.def. */
#include "events.h"

#define D9_SIGNED_u32 0
#define D9_SIGNED_u64 0
#define D9_SIGNED_i32 1
#define D9_SIGNED_i64 1

#define D9_EVENT(id, name, kind, since, doc) static const struct d9_field_desc fields_##name[] = {
#define D9_FIELD(type, field, unit, since, doc) \
	{#field, #type, #unit, doc, sizeof(d9_##type), D9_UNIT_##unit, since, D9_SIGNED_##type, 0},
#define D9_TAIL(field, unit, since, doc) {#field, "tail", #unit, doc, 0, D9_UNIT_##unit, since, 0, 1},
#define D9_END(name)                      \
	{                                 \
		0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}                                 \
	}                                 \
	;
#include "events.def"
#undef D9_EVENT
#undef D9_FIELD
#undef D9_TAIL
#undef D9_END

const struct d9_event_desc d9_events[D9_EVENT_ID_MAX + 1] = {
#define D9_EVENT(id, ename, ekind, esince, edoc)      \
	[id] = {.name = #ename,                       \
		.kind_name = #ekind,                  \
		.doc = edoc,                          \
		.size = sizeof(struct d9_ev_##ename), \
		.kind = D9_KIND_##ekind,              \
		.since = esince,                      \
		.n_fields = 0
#define D9_FIELD(type, field, unit, since, doc) +1
#define D9_TAIL(field, unit, since, doc) , .has_tail = 1
#define D9_END(ename)              \
	, .fields = fields_##ename \
	}                          \
	,
#include "events.def"
#undef D9_EVENT
#undef D9_FIELD
#undef D9_TAIL
#undef D9_END
};
