/* d9 hist KIND */
#include "show.h"

#include <errno.h>

static void text(const struct d9_hist *h, d9_u32 kind)
{
	char a[32], b[32], c[32], d[32], e[32];
	printf("%s: %llu, %s in all\n", d9_kind_name(kind), (unsigned long long)h->count,
	       d9_format_duration(h->total, a));
	if (!h->count)
		return;
	printf("p50 %s, p90 %s, p99 %s, p999 %s, longest %s\n\n", d9_format_duration(d9_hist_quantile(h, 0.5), a),
	       d9_format_duration(d9_hist_quantile(h, 0.9), b), d9_format_duration(d9_hist_quantile(h, 0.99), c),
	       d9_format_duration(d9_hist_quantile(h, 0.999), d), d9_format_duration(h->max, e));
	d9_show_hist_bars(h);
}

static void threads_json(struct d9_json *j, const struct d9_model *m, d9_u32 kind)
{
	d9_json_array(j, "threads");
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		struct d9_hist h = {0};
		if (m->t->threads.v[i].shown)
			d9_hist_thread(m, i, kind, &h);
		if (h.count) {
			d9_json_object(j, NULL);
			d9_json_i64(j, "tid", d9_show_tid(m, i));
			d9_json_str(j, "name", m->t->threads.v[i].name);
			d9_json_u64(j, "count", h.count);
			d9_json_u64(j, "total_ns", h.total);
			d9_json_end_object(j);
		}
		d9_hist_free(&h);
	}
	d9_json_end_array(j);
}

static int write_hist(const struct d9_model *m, d9_u32 kind, bool json)
{
	struct d9_hist h = {0};
	int r = 0;
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (m->t->threads.v[i].shown)
			d9_hist_thread(m, i, kind, &h);
	if (json) {
		struct d9_json j;
		d9_json_document(&j, stdout, "hist");
		d9_show_hist_json(&j, &h, kind);
		threads_json(&j, m, kind);
		r = d9_json_end_document(&j);
	} else {
		text(&h, kind);
	}
	if (!h.count)
		d9_show_why_empty(m, kind);
	d9_hist_free(&h);
	return r < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno)) : D9_EXIT_OK;
}

int d9_cmd_hist(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	int r = d9_read_opts_parse(self, argc, argv, 1, NULL, 0, &o);
	if (r)
		return r - 1;
	int kind = d9_kind_find(o.operand);
	if (kind < 0)
		return d9_fail(D9_EXIT_USAGE,
			       "hist: `%s` is no KIND: a hook family (epoll, futex, read, ...), park, poll-span, wake, "
			       "queue, runq or offcpu",
			       o.operand);
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (r)
		return r;
	r = write_hist(m, (d9_u32)kind, o.json);
	d9_model_close(m);
	return r;
}
