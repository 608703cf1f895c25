/* d9 locks: what threads waited for, who waited, who held it and what they did meanwhile. */
#include "show.h"

#include <errno.h>

static void where(const struct d9_model *m, d9_u32 thread, d9_u32 span)
{
	if (span == D9_NO_INDEX)
		return;
	const struct d9_span *s = d9_model_span(m, thread, span);
	struct d9_stack *st = d9_must_alloc(1, sizeof(*st));
	char line[256];
	d9_show_resolve(m->t, m->t->threads.v[thread].proc, d9_show_span_stack(m->t, s), m->t->sites.v[s->site].ra, st);
	if (st->n)
		printf("  %s", d9_show_headline(st, 2, line, sizeof(line)));
	free(st);
}

static void lock_text(const struct d9_model *m, const struct d9_lock *l)
{
	char a[32], b[32], who[96];
	const char *name = d9_show_lock_name(m, l);
	printf("%s 0x%llx%s%s%s in pid %d: %llu waits, %s in all, longest %s\n", d9_kind_name(l->kind),
	       (unsigned long long)l->object, name ? " (" : "", name ? name : "", name ? ")" : "",
	       l->proc == D9_NO_INDEX ? 0 : m->t->procs.v[l->proc].pid, (unsigned long long)l->waits,
	       d9_format_duration(l->total, a), d9_format_duration(l->max, b));
	for (size_t i = 0; i < l->waiters.n; i++) {
		printf("  waited  %-40s %6llu x %10s", d9_show_thread(m, l->waiters.v[i].thread, who, sizeof(who)),
		       (unsigned long long)l->waiters.v[i].waits, d9_format_duration(l->waiters.v[i].total, a));
		if (l->waiters.v[i].thread == l->worst.thread)
			where(m, l->worst.thread, l->worst.span);
		putchar('\n');
	}
	for (size_t i = 0; i < l->holders.n; i++) {
		const struct d9_holder *h = &l->holders.v[i];
		printf("  held    %-40s %19s  (%s)", d9_show_thread(m, h->thread, who, sizeof(who)),
		       d9_format_duration(h->total, a), d9_show_known_by(h->known_by));
		for (size_t k = 0; k < h->inside.n && k < 3; k++)
			printf("%s %s %s", k ? "," : ", in", m->t->hooks.v[h->inside.v[k].hook].name,
			       d9_format_duration(h->inside.v[k].total, b));
		where(m, h->thread, h->worst);
		putchar('\n');
	}
	for (size_t i = 0; i < l->pending.n; i++) {
		const struct d9_pending *p = &m->t->threads.v[l->pending.v[i]].pending;
		printf("  waits   %-40s %19s  so far\n", d9_show_thread(m, l->pending.v[i], who, sizeof(who)),
		       d9_format_duration(p->t - p->since, a));
	}
}

static int write_locks(const struct d9_model *m, bool json)
{
	if (json) {
		struct d9_json j;
		d9_json_document(&j, stdout, "locks");
		d9_show_locks_json(&j, m);
		return d9_json_end_document(&j) < 0
			       ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno))
			       : D9_EXIT_OK;
	}
	size_t n;
	const struct d9_lock **v = d9_show_locks(m, &n);
	if (!n)
		puts("no waits for locks, conditions or semaphores away from where threads park");
	for (size_t i = 0; i < n; i++)
		lock_text(m, v[i]);
	free(v);
	return D9_EXIT_OK;
}

int d9_cmd_locks(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	int r = d9_read_opts_parse(self, argc, argv, 0, NULL, 0, &o);
	if (r)
		return r - 1;
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (r)
		return r;
	r = write_locks(m, o.json);
	d9_model_close(m);
	return r;
}
