/* What a segment says of the recording itself: `info` events. */
#ifndef D9_BPF_FACTS_H
#define D9_BPF_FACTS_H
#include "options.h"
#include "segment.h"

/* 0 or as d9_kseg_add. */
int d9_kfacts_add(struct d9_kseg *s, const char *key, const char *value);
int d9_kfacts_add_number(struct d9_kseg *s, const char *key, d9_u64 v);
/* Version, host, and what was asked. */
int d9_kfacts_all(struct d9_kseg *s, const struct d9_koptions *o);

#endif
