/* d9 spans: what took longest, in one form whatever it was. */
#include "show.h"

#include <errno.h>

#define TEXT_MAX 50

static int write_spans(const struct d9_model *m, d9_u32 kind, d9_u64 longer, const struct d9_read_opts *o)
{
	size_t n = o->json ? (size_t)-1 : TEXT_MAX;
	struct d9_ref *refs = d9_show_longest(m, kind, longer, &n);
	int r = 0;
	if (o->json) {
		struct d9_json j;
		d9_json_document(&j, stdout, "spans");
		d9_json_array(&j, "spans");
		for (size_t i = 0; i < n; i++)
			d9_show_span_json(&j, NULL, m, refs[i]);
		d9_json_end_array(&j);
		r = d9_json_end_document(&j);
	} else {
		printf("  %9s  %14s %8s %-15s %-30s %s\n", "took", "at", "tid", "thread", "what", "where");
		for (size_t i = 0; i < n; i++)
			d9_show_span_text(stdout, m, refs[i]);
		if (n == TEXT_MAX)
			printf("  the longest %d; --longer and --kind choose, --json gives all\n", TEXT_MAX);
	}
	if (!n)
		d9_show_why_empty(m, kind);
	free(refs);
	return r < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno)) : D9_EXIT_OK;
}

int d9_cmd_spans(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	const char *longer_text = NULL, *kind_text = NULL;
	const struct d9_opt extra[] = {{"--longer", true, &longer_text}, {"--kind", true, &kind_text}};
	int r = d9_read_opts_parse(self, argc, argv, 0, extra, 2, &o);
	if (r)
		return r - 1;
	d9_u64 longer = 0;
	if (longer_text && d9_parse_duration(longer_text, &longer) < 0)
		return d9_fail(D9_EXIT_USAGE, "spans: --longer %s is no duration such as 20ms", longer_text);
	int kind = kind_text ? d9_kind_find(kind_text) : D9_N_KINDS;
	if (kind < 0)
		return d9_fail(
			D9_EXIT_USAGE,
			"spans: `%s` is no KIND: a hook family (epoll, futex, read, ...), park, poll-span, wake, "
			"queue, runq or offcpu",
			kind_text);
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (r)
		return r;
	r = write_spans(m, (d9_u32)kind, longer, &o);
	d9_model_close(m);
	return r;
}
