/*
 * The environment's D9_* variables as a struct.  Used by the shim at start (before libc is set up: no
 * allocation, no stdio, no getenv) and by d9 to refuse a bad value beforehand.
 */
#ifndef D9_SHIM_CONFIG_H
#define D9_SHIM_CONFIG_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

enum d9_enabled { D9_ENABLED_OFF, D9_ENABLED_ON, D9_ENABLED_STANDBY };
enum d9_follow { D9_FOLLOW_ALL, D9_FOLLOW_FORK, D9_FOLLOW_EXEC, D9_FOLLOW_NONE };
enum d9_task_dumps { D9_TASK_DUMPS_AUTO, D9_TASK_DUMPS_OFF, D9_TASK_DUMPS_ALL };
enum d9_runtimes { D9_RUNTIMES_AUTO, D9_RUNTIMES_OFF, D9_RUNTIMES_TOKIO, D9_RUNTIMES_SCAN };
enum d9_stacks { D9_STACKS_AUTO, D9_STACKS_FP, D9_STACKS_SLICE, D9_STACKS_OFF };

struct d9_config {
#define D9_OPT_NUMBER(name, field, def, min, max, unit, doc) d9_u64 field;
#define D9_OPT_CHOICE(name, field, def, word, words, doc) d9_u64 field;
#define D9_OPT_TEXT(name, field, def, bytes, doc) char field[bytes];
#define D9_OPT_FAMILIES(name, field, doc) d9_u64 field;
#define D9_OPT_UNBUILT(name, doc)
#include "options.def"
#undef D9_OPT_NUMBER
#undef D9_OPT_CHOICE
#undef D9_OPT_TEXT
#undef D9_OPT_FAMILIES
#undef D9_OPT_UNBUILT
	char warnings[1024]; /* a line for each value that could not be used: variable, value, what is used instead */
};

/* Defaults, then the D9_* entries of envp.  Never fails; what could not be used is in warnings. */
void d9_config_from_env(struct d9_config *c, char *const *envp);

/* Sets one option by its variable's name.  0; -ENOENT no such option; -EINVAL bad value; -ENOSYS not built: warnings tells. */
int d9_config_set(struct d9_config *c, const char *name, const char *value);

/* Does a list of program names, `a,b` or `-a,-b`, name this one?  Empty: all are; names to be left out alone: all the others. */
bool d9_config_names(const char *list, const char *program);

/* The table, for help and docs. */
struct d9_option {
	const char *name, *type, *default_text, *range, *doc;
	int built;
};
extern const struct d9_option d9_options[];
extern const unsigned d9_n_options;

#endif
