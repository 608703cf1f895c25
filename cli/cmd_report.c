/* d9 report */
#include "fail_if.h"
#include "report.h"

#include <errno.h>

#define TOP_DEFAULT 10

static d9_u64 of_hist(const struct d9_hist *h, enum d9_stat stat)
{
	return stat == D9_STAT_MAX ? h->max : d9_hist_quantile(h, stat == D9_STAT_P50 ? 0.5 : 0.99);
}

/* The value of a clause's subject in this report. */
static bool measure(void *ctx, const struct d9_clause *c, d9_u64 *ret)
{
	const struct d9_report *r = ctx;
	const struct d9_hist *h = NULL;
	if (!strcmp(c->subject, "poll"))
		h = &r->hists[D9_KIND_POLL_SPAN];
	else if (!strcmp(c->subject, "wait"))
		h = &r->waits;
	else if (!strcmp(c->subject, "wake"))
		h = &r->hists[D9_KIND_WAKE];
	else if (!strcmp(c->subject, "runq"))
		h = &r->hists[D9_KIND_RUNQ];
	else if (!strcmp(c->subject, "offcpu"))
		h = &r->hists[D9_KIND_OFFCPU];
	if (h) {
		*ret = of_hist(h, c->stat);
		return h->count > 0;
	}
	*ret = !strcmp(c->subject, "dropped") ? r->dropped : d9_findings_count(&r->findings, c->subject);
	return true;
}

static int judge(const struct d9_fail_if *cond, struct d9_report *r)
{
	const struct d9_clause *c = d9_fail_if_check(cond, measure, r);
	if (!c)
		return D9_EXIT_OK;
	d9_u64 v = 0;
	char a[32];
	measure(r, c, &v);
	if (c->is_duration)
		fprintf(stderr, "d9: --fail-if holds: %s is %s\n", c->subject, d9_format_duration(v, a));
	else
		fprintf(stderr, "d9: --fail-if holds: %s is %llu\n", c->subject, (unsigned long long)v);
	return D9_EXIT_CONDITION;
}

/* The ids that this version does not find are refused by name, and not as if they were misspelt. */
static bool known_to_the_contract(const char *id) { return d9_finding_known(id) || d9_finding_reserved(id); }

/* A condition that can never hold would pass as one that was judged. */
static int refuse_unbuilt(const struct d9_fail_if *f)
{
	for (size_t i = 0; i < f->n; i++) {
		if (d9_finding_reserved(f->clause[i].subject))
			return d9_fail(D9_EXIT_USAGE, "report: --fail-if: `%s` is not built in this version",
				       f->clause[i].subject);
	}
	return 0;
}

static int refuse_unmeasured(const struct d9_fail_if *f, const struct d9_trace *t)
{
	for (size_t i = 0; i < f->n && !d9_trace_has_helper(t); i++)
		if (!strcmp(f->clause[i].subject, "runq") || !strcmp(f->clause[i].subject, "offcpu"))
			return d9_fail(D9_EXIT_DATA, "report: --fail-if: `%s` was not measured%s: %s",
				       f->clause[i].subject, d9_trace_has_kernel(t) ? " in full" : "",
				       d9_trace_has_kernel(t) ? D9_BY_PERF : D9_NO_KERNEL_SIDE);
	return 0;
}

static int write_report(struct d9_report *r, const struct d9_read_opts *o, bool stacks)
{
	if (!o->json) {
		d9_report_text(r, stacks);
		return D9_EXIT_OK;
	}
	return d9_report_json(r) < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno))
				     : D9_EXIT_OK;
}

int d9_cmd_report(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	struct d9_fail_if cond = {.n = 0};
	const char *fail_if = NULL, *top_text = NULL, *stacks = NULL;
	const struct d9_opt extra[] = {
		{"--fail-if", true, &fail_if}, {"--top", true, &top_text}, {"--stacks", false, &stacks}};
	size_t top = TOP_DEFAULT;
	char err[256];
	int r = d9_read_opts_parse(self, argc, argv, 0, extra, 3, &o);
	if (r)
		return r - 1;
	if (top_text && d9_parse_count(top_text, &top) < 0)
		return d9_fail(D9_EXIT_USAGE, "report: --top %s is no number", top_text);
	if (fail_if && d9_fail_if_parse(fail_if, known_to_the_contract, &cond, err, sizeof(err)) < 0)
		return d9_fail(D9_EXIT_USAGE, "report: --fail-if: %s", err);
	if ((r = refuse_unbuilt(&cond)))
		return r;
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (r)
		return r;
	if ((r = refuse_unmeasured(&cond, m->t))) {
		d9_model_close(m);
		return r;
	}
	struct d9_report report;
	d9_report_make(m, top, &report);
	r = write_report(&report, &o, stacks != NULL);
	if (!r && fail_if)
		r = judge(&cond, &report);
	d9_report_free(&report);
	d9_model_close(m);
	return r;
}
