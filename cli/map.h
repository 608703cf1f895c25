/* A hash map from u64 to an index: what joins the ids of a family to the numbers of a session. */
#ifndef D9_CLI_MAP_H
#define D9_CLI_MAP_H
#include "vec.h"

#define D9_MAP_EMPTY 0xffffffffu /* never a value */

struct d9_map {
	struct d9_map_slot {
		d9_u64 key;
		d9_u32 value;
	} * v;
	size_t n, cap; /* cap is a power of two */
};

static inline size_t d9_map_hash(d9_u64 key)
{
	key *= 0x9e3779b97f4a7c15ull;
	return (size_t)(key ^ key >> 29);
}

static inline struct d9_map_slot *d9_map_slot_of(const struct d9_map *m, d9_u64 key)
{
	size_t i = d9_map_hash(key) & (m->cap - 1);
	while (m->v[i].value != D9_MAP_EMPTY && m->v[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->v[i];
}

/* A key for bytes (FNV-1a), behind those of `key`; D9_MAP_NO_BYTES at first. */
#define D9_MAP_NO_BYTES 1469598103934665603ull
static inline d9_u64 d9_map_bytes(d9_u64 key, const void *p, size_t n)
{
	for (const unsigned char *b = p; n; n--)
		key = (key ^ *b++) * 1099511628211ull;
	return key;
}

/* D9_MAP_EMPTY if the key is not there. */
static inline d9_u32 d9_map_get(const struct d9_map *m, d9_u64 key)
{
	return m->cap ? d9_map_slot_of(m, key)->value : D9_MAP_EMPTY;
}

static inline void d9_map_put(struct d9_map *m, d9_u64 key, d9_u32 value)
{
	if (m->n * 2 >= m->cap) {
		struct d9_map grown = {.cap = m->cap ? m->cap * 2 : 64};
		grown.v = d9_must_resize(NULL, grown.cap, sizeof(*grown.v));
		memset(grown.v, 0xff, grown.cap * sizeof(*grown.v));
		for (size_t i = 0; i < m->cap; i++)
			if (m->v[i].value != D9_MAP_EMPTY)
				*d9_map_slot_of(&grown, m->v[i].key) = m->v[i];
		grown.n = m->n;
		free(m->v);
		*m = grown;
	}
	struct d9_map_slot *slot = d9_map_slot_of(m, key);
	m->n += slot->value == D9_MAP_EMPTY;
	*slot = (struct d9_map_slot){.key = key, .value = value};
}

static inline void d9_map_free(struct d9_map *m)
{
	free(m->v);
	*m = (struct d9_map){0};
}

#endif
