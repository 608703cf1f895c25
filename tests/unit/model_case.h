/*
 * What the tests of the model share: a recording of one service (process 0 with pid 100, its thread 1), which the test goes on with, and
 * what d9 makes of it.
 */
#ifndef D9_TESTS_MODEL_CASE_H
#define D9_TESTS_MODEL_CASE_H
#include "support.h"
#include "cli/trace_internal.h"
#include "trace_builder.h"

#include "cli/findings.h"

extern struct tb B;
extern struct d9_trace *T;
extern struct d9_model *M;
extern struct d9_findings F;

/* Before and after each test. */
void setup(void);
void teardown(void);

/* Ends the folder that is being written, and reads them all. */
void analyse(void);
/* The same where it was ended already. */
void read_all(void);

/* Index of the thread with that tid. */
d9_u32 thread(int tid);
/* NULL: there is none; or that fails the test. */
const struct d9_finding *find(const char *id);
const struct d9_finding *need(const char *id);
/* Fails the test if anything was found. */
void nothing(void);
/* What was measured; of a real number, thousandths. */
d9_u64 measured(const struct d9_finding *f, const char *key);

/* An event loop: n parks of 9 ms with polls of 1 ms between them, from t on. Returns when it is done. */
d9_u64 loop(d9_u32 th, d9_u32 site, d9_u64 t, unsigned n, int fd);

#endif
