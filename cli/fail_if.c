#include "fail_if.h"
#include "cmd.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const durations[] = {"poll", "wait", "wake", "runq", "offcpu"};
static const char *const counts[] = {"findings", "critical", "dropped"};

static bool one_of(const char *s, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, names[i]))
			return true;
	return false;
}

static int parse_stat(const char *name, enum d9_stat *ret)
{
	static const char *const names[] = {"max", "p50", "p99"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum d9_stat)i;
			return 0;
		}
	return -EINVAL;
}

/* Moves *p behind the operator. */
static int parse_op(const char **p, enum d9_op *ret)
{
	static const struct {
		const char *text;
		enum d9_op op;
	} ops[] = {{">=", D9_OP_GE}, {"<=", D9_OP_LE}, {"!=", D9_OP_NE}, {"==", D9_OP_EQ},
		   {">", D9_OP_GT},  {"<", D9_OP_LT},  {"=", D9_OP_EQ}};
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strncmp(*p, ops[i].text, strlen(ops[i].text))) {
			*p += strlen(ops[i].text);
			*ret = ops[i].op;
			return 0;
		}
	return -EINVAL;
}

static void trim(char *s)
{
	size_t n = strlen(s), from = 0;
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = '\0';
	while (isspace((unsigned char)s[from]))
		from++;
	memmove(s, s + from, n - from + 1);
}

static int parse_value(struct d9_clause *c, const char *text)
{
	if (c->is_duration)
		return d9_parse_duration(text, &c->value);
	char *end;
	errno = 0;
	c->value = strtoull(text, &end, 10);
	return !isdigit((unsigned char)*text) || *end || errno ? -EINVAL : 0;
}

static int parse_clause(char *text, bool (*known)(const char *id), struct d9_clause *c, char *err, size_t n_err)
{
	*c = (struct d9_clause){0};
	trim(text);
	size_t n = strcspn(text, "<>=! \t");
	if (!n || n >= sizeof(c->subject)) {
		snprintf(err, n_err, "`%s` begins with no subject", text);
		return -EINVAL;
	}
	memcpy(c->subject, text, n);
	char *dot = strchr(c->subject, '.');
	if (dot)
		*dot++ = '\0';
	c->is_duration = one_of(c->subject, durations, sizeof(durations) / sizeof(durations[0]));
	if (!c->is_duration && !one_of(c->subject, counts, sizeof(counts) / sizeof(counts[0])) && !known(c->subject)) {
		snprintf(err, n_err,
			 "`%s` is no subject: poll, wait, wake, runq, offcpu, findings, critical, dropped or the id of "
			 "a finding",
			 c->subject);
		return -EINVAL;
	}
	if (dot && (!c->is_duration || parse_stat(dot, &c->stat) < 0)) {
		snprintf(err, n_err, "`%s` has no .%s; durations have .p50, .p99 and .max", c->subject, dot);
		return -EINVAL;
	}
	const char *p = text + n + strspn(text + n, " \t");
	if (parse_op(&p, &c->op) < 0) {
		snprintf(err, n_err, "`%s` lacks one of > >= < <= = !=", text);
		return -EINVAL;
	}
	p += strspn(p, " \t");
	if (parse_value(c, p) < 0) {
		snprintf(err, n_err, "`%s` compares with `%s`, which is no %s", text, p,
			 c->is_duration ? "duration such as 20ms" : "number");
		return -EINVAL;
	}
	return 0;
}

int d9_fail_if_parse(const char *text, bool (*known)(const char *id), struct d9_fail_if *ret, char *err, size_t n_err)
{
	struct d9_fail_if f = {.n = 0};
	for (const char *p = text;; p++) {
		size_t n = strcspn(p, ",");
		char clause[128];
		if (n >= sizeof(clause) || f.n == D9_CLAUSES_MAX) {
			snprintf(err, n_err, "the condition is too long");
			return -EINVAL;
		}
		memcpy(clause, p, n);
		clause[n] = '\0';
		int r = parse_clause(clause, known, &f.clause[f.n++], err, n_err);
		if (r < 0)
			return r;
		p += n;
		if (!*p)
			break;
	}
	*ret = f;
	return 0;
}

static bool holds(enum d9_op op, d9_u64 a, d9_u64 b)
{
	switch (op) {
	case D9_OP_GT:
		return a > b;
	case D9_OP_GE:
		return a >= b;
	case D9_OP_LT:
		return a < b;
	case D9_OP_LE:
		return a <= b;
	case D9_OP_EQ:
		return a == b;
	default:
		return a != b;
	}
}

const struct d9_clause *d9_fail_if_check(const struct d9_fail_if *f, d9_fail_if_fn *measure, void *ctx)
{
	for (size_t i = 0; i < f->n; i++) {
		d9_u64 v;
		if (measure(ctx, &f->clause[i], &v) && holds(f->clause[i].op, v, f->clause[i].value))
			return &f->clause[i];
	}
	return NULL;
}
