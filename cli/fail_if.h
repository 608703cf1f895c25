/* --fail-if: `poll.p99>20ms,critical>0,lock-contention>=1`; the grammar is the contract's. */
#ifndef D9_CLI_FAIL_IF_H
#define D9_CLI_FAIL_IF_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

enum d9_stat { D9_STAT_MAX, D9_STAT_P50, D9_STAT_P99 };
enum d9_op { D9_OP_GT, D9_OP_GE, D9_OP_LT, D9_OP_LE, D9_OP_EQ, D9_OP_NE };

struct d9_clause {
	char subject[40];
	enum d9_stat stat;
	enum d9_op op;
	d9_u64 value; /* ns or a count */
	bool is_duration;
};
#define D9_CLAUSES_MAX 32
struct d9_fail_if {
	struct d9_clause clause[D9_CLAUSES_MAX];
	size_t n;
};

/* 0, or -EINVAL with a sentence. known: is this the id of a finding? */
int d9_fail_if_parse(const char *text, bool (*known)(const char *id), struct d9_fail_if *ret, char *err, size_t n_err);
/* measure: gives the value of a clause's subject; false if nothing was measured, then the clause does not hold. */
typedef bool d9_fail_if_fn(void *ctx, const struct d9_clause *c, d9_u64 *ret);
/* The first clause that holds, or NULL. */
const struct d9_clause *d9_fail_if_check(const struct d9_fail_if *f, d9_fail_if_fn *measure, void *ctx);

#endif
