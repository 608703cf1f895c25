/* d9 disk: requests that threads made to disks: by device and operation, by thread, and the longest. */
#include "kernel_spans.h"
#include "show.h"

#include <errno.h>

#define WORST_DEFAULT 10

struct disk {
	const struct d9_model *m;
	struct d9_kernel_spans spans;
	struct d9_kernel_rows devices, threads; /* device and operation; thread */
	size_t n_worst;
};

static const struct d9_ev_block_io *io_of(const struct d9_kernel_span *s) { return (const void *)s->ev->rec; }

/* As REQ_OP_ numbers them. */
static const char *op_name(d9_u32 op, char *buf)
{
	static const char *const names[] = {[0] = "read",    [1] = "write",        [2] = "flush",
					    [3] = "discard", [5] = "secure erase", [9] = "write zeroes"};
	if (op < sizeof(names) / sizeof(*names) && names[op])
		return names[op];
	snprintf(buf, 32, "operation %u", op);
	return buf;
}

static const char *device_name(d9_u32 dev, char *buf)
{
	snprintf(buf, 32, "%u:%u", dev >> 20, dev & 0xfffff);
	return buf;
}

static d9_u32 device_of(const struct d9_kernel_row *r) { return (d9_u32)(r->key >> 32); }
static d9_u32 op_of(const struct d9_kernel_row *r) { return (d9_u32)r->key; }

static void add(struct d9_kernel_row *r, const struct d9_kernel_span *s)
{
	d9_hist_add(&r->h, s->dur);
	r->bytes += io_of(s)->bytes;
	r->errors += io_of(s)->error < 0;
}

static void gather(struct disk *d, size_t worst)
{
	d9_kernel_spans_find(d->m, D9_EV_block_io, &d->spans);
	for (size_t i = 0; i < d->spans.of.n; i++) {
		const struct d9_kernel_span *s = &d->spans.of.v[i];
		add(d9_kernel_row(&d->devices, (d9_u64)io_of(s)->dev << 32 | io_of(s)->op), s);
		add(d9_kernel_row(&d->threads, s->thread), s);
	}
	d9_kernel_rows_sort(&d->devices);
	d9_kernel_rows_sort(&d->threads);
	d->n_worst = worst < d->spans.of.n ? worst : d->spans.of.n;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

static void device_json(struct d9_json *j, const struct d9_kernel_row *r)
{
	char buf[32];
	d9_json_object(j, NULL);
	d9_json_str(j, "device", device_name(device_of(r), buf));
	d9_json_str(j, "op", op_name(op_of(r), buf));
	d9_json_u64(j, "bytes", r->bytes);
	d9_json_u64(j, "errors", r->errors);
	d9_show_hist_numbers_json(j, &r->h);
	d9_json_end_object(j);
}

static void thread_json(struct d9_json *j, const struct d9_model *m, const struct d9_kernel_row *r)
{
	d9_json_object(j, NULL);
	d9_show_who_json(j, m, (d9_u32)r->key);
	d9_json_u64(j, "count", r->h.count);
	d9_json_u64(j, "bytes", r->bytes);
	d9_json_u64(j, "total_ns", r->h.total);
	d9_json_u64(j, "max_ns", r->h.max);
	d9_json_end_object(j);
}

static void worst_json(struct d9_json *j, const struct d9_model *m, const struct d9_kernel_span *s)
{
	char buf[32];
	const struct d9_ev_block_io *io = io_of(s);
	d9_json_object(j, NULL);
	d9_show_who_json(j, m, s->thread);
	d9_json_u64(j, "t_ns", s->t0);
	d9_json_u64(j, "dur_ns", s->dur);
	d9_json_str(j, "device", device_name(io->dev, buf));
	d9_json_str(j, "op", op_name(io->op, buf));
	d9_json_u64(j, "sector", io->sector);
	d9_json_u64(j, "bytes", io->bytes);
	d9_json_i64(j, "error", io->error);
	d9_json_end_object(j);
}

static int write_json(const struct disk *d)
{
	struct d9_json j;
	d9_json_document(&j, stdout, "disk");
	d9_json_array(&j, "devices");
	for (size_t i = 0; i < d->devices.of.n; i++)
		device_json(&j, &d->devices.of.v[i]);
	d9_json_end_array(&j);
	d9_json_array(&j, "threads");
	for (size_t i = 0; i < d->threads.of.n; i++)
		thread_json(&j, d->m, &d->threads.of.v[i]);
	d9_json_end_array(&j);
	d9_json_array(&j, "worst");
	for (size_t i = 0; i < d->n_worst; i++)
		worst_json(&j, d->m, &d->spans.of.v[i]);
	d9_json_end_array(&j);
	return d9_json_end_document(&j);
}

/* ---- text ------------------------------------------------------------------------------------------------------------- */

static void line(const struct d9_kernel_row *r)
{
	char b[4][32];
	printf("  %8llu %12llu %10s %10s %10s %10s  ", (unsigned long long)r->h.count, (unsigned long long)r->bytes,
	       d9_format_duration(r->h.total, b[0]), d9_format_duration(d9_hist_quantile(&r->h, 0.5), b[1]),
	       d9_format_duration(d9_hist_quantile(&r->h, 0.99), b[2]), d9_format_duration(r->h.max, b[3]));
}

static void tables_text(const struct disk *d)
{
	char a[32], b[96];
	printf("  %8s %12s %10s %10s %10s %10s  %s\n", "requests", "bytes", "total", "p50", "p99", "longest",
	       "what, to which device");
	for (size_t i = 0; i < d->devices.of.n; i++) {
		const struct d9_kernel_row *r = &d->devices.of.v[i];
		line(r);
		printf("%s %s", op_name(op_of(r), a), device_name(device_of(r), b));
		if (r->errors)
			printf(", %llu failed", (unsigned long long)r->errors);
		putchar('\n');
	}
	putchar('\n');
	for (size_t i = 0; i < d->threads.of.n; i++) {
		line(&d->threads.of.v[i]);
		printf("%s\n", d9_show_thread(d->m, (d9_u32)d->threads.of.v[i].key, b, sizeof(b)));
	}
}

static void worst_text(const struct disk *d)
{
	char a[32], b[32];
	printf("\n  %10s  %14s %8s %-15s %s\n", "took", "at", "tid", "thread",
	       "what, to which device, where, how much");
	for (size_t i = 0; i < d->n_worst; i++) {
		const struct d9_kernel_span *s = &d->spans.of.v[i];
		const struct d9_ev_block_io *io = io_of(s);
		d9_show_when_text(d->m, s->thread, s->t0, s->dur);
		printf("%s %s, sector %llu, %u bytes", op_name(io->op, a), device_name(io->dev, b),
		       (unsigned long long)io->sector, io->bytes);
		if (io->error)
			printf(": error %d", io->error);
		putchar('\n');
	}
}

static void write_text(const struct disk *d)
{
	char a[32], b[32];
	if (!d->spans.of.n)
		return;
	tables_text(d);
	for (size_t i = 0; i < d->devices.of.n; i++) {
		const struct d9_kernel_row *r = &d->devices.of.v[i];
		printf("\n%s %s\n", op_name(op_of(r), a), device_name(device_of(r), b));
		d9_show_hist_bars(&r->h);
	}
	worst_text(d);
}

/* ---- the command -------------------------------------------------------------------------------------------------------- */

static int write_disk(const struct d9_model *m, size_t worst, bool json)
{
	struct disk d = {.m = m};
	int r = 0;
	gather(&d, worst);
	if (!d.spans.of.n)
		d9_warn("no disk here: the kernel's side saw no request of these threads that was long enough to be "
			"told "
			"of (--offcpu-min)");
	if (json)
		r = write_json(&d);
	else
		write_text(&d);
	d9_kernel_spans_fini(&d.spans);
	d9_kernel_rows_fini(&d.devices);
	d9_kernel_rows_fini(&d.threads);
	return r < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno)) : D9_EXIT_OK;
}

int d9_cmd_disk(const struct d9_cmd *self, int argc, char **argv)
{
	return d9_cmd_of_kernel(self, argc, argv, WORST_DEFAULT, write_disk);
}
