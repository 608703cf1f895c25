/* d9 syscalls: slow system calls, sleeping or not, where d9-kernel was asked to watch them: by call, and the longest with what they were given. */
#include "kernel_spans.h"
#include "show.h"
#include "syscall_name.h"

#include <errno.h>

#define WORST_DEFAULT 20
#define ERRNO_MAX 4095

struct syscalls {
	const struct d9_model *m;
	struct d9_kernel_spans spans;
	struct d9_kernel_rows calls; /* by number */
	size_t n_worst;
};

static const struct d9_ev_syscall *call_of(const struct d9_kernel_span *s) { return (const void *)s->ev->rec; }
static bool has_failed(const struct d9_ev_syscall *e) { return e->result < 0 && e->result >= -ERRNO_MAX; }

static void gather(struct syscalls *c, size_t worst)
{
	d9_kernel_spans_find(c->m, D9_EV_syscall, &c->spans);
	for (size_t i = 0; i < c->spans.of.n; i++) {
		const struct d9_ev_syscall *e = call_of(&c->spans.of.v[i]);
		struct d9_kernel_row *r = d9_kernel_row(&c->calls, (d9_u32)e->nr);
		d9_hist_add(&r->h, c->spans.of.v[i].dur);
		r->errors += has_failed(e);
	}
	d9_kernel_rows_sort(&c->calls);
	c->n_worst = worst < c->spans.of.n ? worst : c->spans.of.n;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

static void name_json(struct d9_json *j, d9_i32 nr)
{
	char buf[32];
	d9_json_str(j, "syscall", nr < 0 ? NULL : d9_syscall_name(nr, buf));
	d9_json_known(j, "nr", nr < 0 ? D9_NOT_KNOWN : (d9_u64)nr);
}

/* Any number may be one: none of them is an address that is not known. */
static void arg_json(struct d9_json *j, d9_u64 arg)
{
	char buf[32];
	snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)arg);
	d9_json_str(j, NULL, buf);
}

static void worst_json(struct d9_json *j, const struct d9_model *m, const struct d9_kernel_span *s)
{
	const struct d9_ev_syscall *e = call_of(s);
	d9_json_object(j, NULL);
	d9_show_who_json(j, m, s->thread);
	d9_json_u64(j, "t_ns", s->t0);
	d9_json_u64(j, "dur_ns", s->dur);
	name_json(j, e->nr);
	d9_json_array(j, "args");
	arg_json(j, e->arg0);
	arg_json(j, e->arg1);
	arg_json(j, e->arg2);
	d9_json_end_array(j);
	d9_json_i64(j, "result", e->result);
	d9_json_end_object(j);
}

static int write_json(const struct syscalls *c)
{
	struct d9_json j;
	d9_json_document(&j, stdout, "syscalls");
	d9_json_array(&j, "calls");
	for (size_t i = 0; i < c->calls.of.n; i++) {
		const struct d9_kernel_row *r = &c->calls.of.v[i];
		d9_json_object(&j, NULL);
		name_json(&j, (d9_i32)(d9_u32)r->key);
		d9_json_u64(&j, "errors", r->errors);
		d9_show_hist_numbers_json(&j, &r->h);
		d9_json_end_object(&j);
	}
	d9_json_end_array(&j);
	d9_json_array(&j, "worst");
	for (size_t i = 0; i < c->n_worst; i++)
		worst_json(&j, c->m, &c->spans.of.v[i]);
	d9_json_end_array(&j);
	return d9_json_end_document(&j);
}

/* ---- text ------------------------------------------------------------------------------------------------------------- */

static void calls_text(const struct syscalls *c)
{
	char b[4][32];
	printf("  %8s %10s %10s %10s %10s %8s  %s\n", "calls", "total", "p50", "p99", "longest", "failed", "what");
	for (size_t i = 0; i < c->calls.of.n; i++) {
		const struct d9_kernel_row *r = &c->calls.of.v[i];
		printf("  %8llu %10s %10s %10s %10s %8llu  ", (unsigned long long)r->h.count,
		       d9_format_duration(r->h.total, b[0]), d9_format_duration(d9_hist_quantile(&r->h, 0.5), b[1]),
		       d9_format_duration(d9_hist_quantile(&r->h, 0.99), b[2]), d9_format_duration(r->h.max, b[3]),
		       (unsigned long long)r->errors);
		printf("%s\n", d9_syscall_name((d9_i32)(d9_u32)r->key, b[0]));
	}
}

static void worst_text(const struct syscalls *c)
{
	char a[32];
	printf("\n  %10s  %14s %8s %-15s %s\n", "took", "at", "tid", "thread", "what, with its first arguments");
	for (size_t i = 0; i < c->n_worst; i++) {
		const struct d9_kernel_span *s = &c->spans.of.v[i];
		const struct d9_ev_syscall *e = call_of(s);
		d9_show_when_text(c->m, s->thread, s->t0, s->dur);
		printf("%s(0x%llx, 0x%llx, 0x%llx) = %lld\n", d9_syscall_name(e->nr, a), (unsigned long long)e->arg0,
		       (unsigned long long)e->arg1, (unsigned long long)e->arg2, (long long)e->result);
	}
}

/* ---- the command -------------------------------------------------------------------------------------------------------- */

static int write_syscalls(const struct d9_model *m, size_t worst, bool json)
{
	struct syscalls c = {.m = m};
	int r = 0;
	gather(&c, worst);
	if (!c.spans.of.n)
		d9_warn("no syscalls here: d9-kernel tells of slow system calls only where it was asked to, with "
			"--syscalls "
			"DUR");
	if (json) {
		r = write_json(&c);
	} else if (c.spans.of.n) {
		calls_text(&c);
		worst_text(&c);
	}
	d9_kernel_spans_fini(&c.spans);
	d9_kernel_rows_fini(&c.calls);
	return r < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno)) : D9_EXIT_OK;
}

int d9_cmd_syscalls(const struct d9_cmd *self, int argc, char **argv)
{
	return d9_cmd_of_kernel(self, argc, argv, WORST_DEFAULT, write_syscalls);
}
