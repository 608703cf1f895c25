/*
 * Names of generated code, from the /tmp/perf-PID.map that a JIT wrote (`START SIZE name`, hex).
 * The folder is everybody's: a map counts only if it is a regular file of root or of ours.
 */
#ifndef D9_CLI_PERF_MAP_H
#define D9_CLI_PERF_MAP_H
#include "format/types.h"

struct d9_perf_map;
struct d9_perf_map *d9_perf_map_open(int pid); /* NULL if there is none to be believed */
void d9_perf_map_free(struct d9_perf_map *m);
/* Newest entry that holds address, or NULL. */
const char *d9_perf_map_find(const struct d9_perf_map *m, d9_u64 address, d9_u64 *ret_start);

#endif
