#include "kinds.h"

#include <string.h>

static const struct {
	const char *name;
	enum d9_class class;
} kinds[D9_N_KINDS] = {
#define D9_FAMILY(family, doc) [D9_FAMILY_##family] = {#family, D9_CLASS_IO},
#include "format/families.def"
#undef D9_FAMILY
	[D9_KIND_PARK] = {"park", D9_CLASS_NONE}, [D9_KIND_POLL_SPAN] = {"poll-span", D9_CLASS_NONE},
	[D9_KIND_WAKE] = {"wake", D9_CLASS_NONE}, [D9_KIND_QUEUE] = {"queue", D9_CLASS_NONE},
	[D9_KIND_RUNQ] = {"runq", D9_CLASS_NONE}, [D9_KIND_OFFCPU] = {"offcpu", D9_CLASS_NONE},
	[D9_KIND_OTHER] = {"other", D9_CLASS_IO},
};

const char *d9_kind_name(unsigned kind) { return kinds[kind < D9_N_KINDS ? kind : D9_KIND_OTHER].name; }

int d9_kind_find(const char *name)
{
	for (int i = 0; i < D9_KIND_OTHER; i++)
		if (!strcmp(kinds[i].name, name))
			return i;
	return -1;
}

enum d9_class d9_kind_class(unsigned kind)
{
	switch (kind) {
	case D9_FAMILY_epoll:
	case D9_FAMILY_poll:
	case D9_FAMILY_select:
	case D9_FAMILY_uring:
		return D9_CLASS_EVENT;
	case D9_FAMILY_futex:
	case D9_FAMILY_cond:
	case D9_FAMILY_sem:
		return D9_CLASS_SIGNAL;
	case D9_FAMILY_mutex:
	case D9_FAMILY_rwlock:
		return D9_CLASS_LOCK;
	case D9_FAMILY_sleep:
	case D9_FAMILY_join:
	case D9_FAMILY_wait:
		return D9_CLASS_SLEEP;
	case D9_FAMILY_exit:
	case D9_FAMILY_thread:
	case D9_FAMILY_identity:
	case D9_FAMILY_abi:
		return D9_CLASS_NONE;
	default:
		return kind < D9_N_FAMILIES || kind == D9_KIND_OTHER ? D9_CLASS_IO : D9_CLASS_NONE;
	}
}
