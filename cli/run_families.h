/*
 * d9 run's other half: finds the families that record into a folder, drains them from outside, keeps the session within
 * its budget.
 */
#ifndef D9_CLI_RUN_FAMILIES_H
#define D9_CLI_RUN_FAMILIES_H
#include "format/types.h"

#include <stdbool.h>

struct d9_families;

/*
 * Watches `dir` (absolute, there) for families whose D9_RUN is `run`; all others are left alone.  NULL: out of memory.
 */
struct d9_families *d9_families_new(const char *dir, const char *run);
void d9_families_free(struct d9_families *f);

/* Families that end within the next moment are finished after it: d9-kernel finds its folder by their memory. */
void d9_families_hold(struct d9_families *f);

/* One round: new families are taken over, those with something to do are drained, those that ended are finished. */
void d9_families_round(struct d9_families *f);

/* pid ended with this waitpid status: the families that know it learn how. */
void d9_families_ended(struct d9_families *f, int pid, int status);

/* The last round: families that ended are finished; those that live on are left to their own drain thread. */
void d9_families_finish(struct d9_families *f);

/* A descriptor of the folder of the first family of this run; -1: there is none yet. */
int d9_families_folder(const struct d9_families *f);
/* Does one of them record at present?  True where that is not known. */
bool d9_families_on(const struct d9_families *f);

/* Adds a line to the warnings of a recording of this run.  False: there is none to add it to at present. */
bool d9_families_warn(const struct d9_families *f, const char *line);

/* For the summary. */
unsigned d9_families_count(const struct d9_families *f);
d9_u64 d9_families_events(const struct d9_families *f);
d9_u64 d9_families_dropped(const struct d9_families *f);
/* How many have records that could not be written and are in shared memory still; *ret_errno: why, of the last of them. */
unsigned d9_families_unwritten(const struct d9_families *f, int *ret_errno);
/* Bytes of the session's segments on disk. */
d9_u64 d9_families_bytes(const struct d9_families *f);
/* What the recorder said of the first program that was started and not recorded; NULL: of none.  From outside: not for a terminal as it is. */
const char *d9_families_left_out(const struct d9_families *f);

#endif
