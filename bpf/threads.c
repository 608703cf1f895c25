/* See threads.h. */
#include "threads.h"
#include "procfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 4096u
#define EXE_ARGS_BYTES 6000u

struct d9_kthreads {
	struct d9_kthread *by_id[BUCKETS];
	struct d9_kprocess *processes; /* newest first */
	d9_u32 n, next_index, next_id, listing;
	long ticks_per_s;
};

struct d9_kthreads *d9_kthreads_new(void)
{
	struct d9_kthreads *ts = calloc(1, sizeof(*ts));
	if (ts)
		ts->ticks_per_s = sysconf(_SC_CLK_TCK);
	return ts;
}

static void free_process(struct d9_kprocess *p)
{
	d9_kmodules_free(&p->modules);
	free(p->exe_args);
	free(p);
}

void d9_kthreads_free(struct d9_kthreads *ts)
{
	if (!ts)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		while (ts->by_id[i])
			d9_kthreads_forget(ts, ts->by_id[i]);
	free(ts);
}

struct d9_kthread *d9_kthreads_find(struct d9_kthreads *ts, d9_u32 id)
{
	struct d9_kthread *t = ts->by_id[id % BUCKETS];
	while (t && t->id != id)
		t = t->next;
	return t;
}

d9_u32 d9_kthreads_count(const struct d9_kthreads *ts) { return ts->n; }
d9_u32 d9_kthreads_next_id(const struct d9_kthreads *ts) { return ts->next_id; }

const struct d9_kprocess *d9_kthreads_process(const struct d9_kthreads *ts, int seen_pid)
{
	const struct d9_kprocess *p = ts->processes;
	while (p && (seen_pid ? p->seen_pid != seen_pid : p->next != NULL))
		p = p->next;
	return p;
}

/* ---- processes ------------------------------------------------------------------------------- */

static struct d9_kprocess *find_process(struct d9_kthreads *ts, d9_i32 kernel_pid, d9_u64 start)
{
	struct d9_kprocess *p = ts->processes;
	while (p && (p->kernel_pid != kernel_pid || (start && p->start != start)))
		p = p->next;
	return p;
}

/* What program it is.  It may be gone already; then its main thread's name is all that is known. */
static void read_program(struct d9_kprocess *p, const char *name)
{
	char buf[EXE_ARGS_BYTES];
	size_t n = p->seen_pid && d9_kproc_start(p->seen_pid) == p->start
			   ? d9_kproc_exe_args(p->seen_pid, buf, sizeof(buf))
			   : 0;
	if (n <= 1)
		n = (size_t)snprintf(buf, sizeof(buf), "%.16s", name) + 1;
	char *copy = malloc(n);
	if (!copy)
		return;
	free(p->exe_args);
	p->exe_args = memcpy(copy, buf, n);
	p->n_exe_args = (d9_u32)n;
	p->defined_in = 0;
}

static struct d9_kprocess *meet_process(struct d9_kthreads *ts, const struct d9_k_thread *r)
{
	d9_u64 start = r->process_start / (1000000000u / (d9_u64)ts->ticks_per_s);
	struct d9_kprocess *p = find_process(ts, r->kernel_pid, start);
	if (p)
		return p;
	const struct d9_kprocess *parent = find_process(ts, r->kernel_parent_pid, 0);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct d9_kprocess){.next = ts->processes,
				  .index = ts->next_index++,
				  .parent = parent ? parent->index : 0xffffffffu,
				  .start = start,
				  .born = r->t,
				  .kernel_pid = r->kernel_pid,
				  .pid = r->pid,
				  .ppid = r->parent_pid,
				  .seen_pid = r->seen_pid,
				  .uid = r->uid};
	read_program(p, r->head.name);
	return ts->processes = p;
}

static void leave_process(struct d9_kthreads *ts, struct d9_kprocess *p)
{
	if (--p->n_threads)
		return;
	for (struct d9_kprocess **at = &ts->processes; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	free_process(p);
}

static void become_program(struct d9_kprocess *p, const char *name)
{
	d9_kmodules_free(&p->modules);
	read_program(p, name);
}

/* ---- threads --------------------------------------------------------------------------------- */

void d9_kthread_call(struct d9_kthread *t, const char name[D9_K_NAME])
{
	if (!strncmp(t->name, name, D9_K_NAME))
		return;
	snprintf(t->name, sizeof(t->name), "%.*s", (int)D9_K_NAME, name);
	t->defined_in = 0;
}

static struct d9_kthread *add_thread(struct d9_kthreads *ts, const struct d9_k_thread *r)
{
	struct d9_kthread *t = calloc(1, sizeof(*t));
	struct d9_kprocess *p = t ? meet_process(ts, r) : NULL;
	if (!p) {
		free(t);
		return NULL;
	}
	struct d9_kthread **bucket = &ts->by_id[r->head.id % BUCKETS];
	*t = (struct d9_kthread){.next = *bucket, .id = r->head.id, .process = p, .born = r->t};
	*bucket = t;
	p->n_threads++;
	ts->n++;
	if (t->id >= ts->next_id)
		ts->next_id = t->id + 1;
	return t;
}

struct d9_kthread *d9_kthreads_meet(struct d9_kthreads *ts, const struct d9_k_thread *r)
{
	struct d9_kthread *t = d9_kthreads_find(ts, r->head.id);
	if (!t)
		t = add_thread(ts, r);
	else if (r->exec)
		become_program(t->process, r->head.name);
	if (!t)
		return NULL;
	t->listed = ts->listing;
	if (t->tid != r->head.tid || t->kernel_tid != r->kernel_tid)
		t->defined_in = 0;
	t->tid = r->head.tid;
	t->kernel_tid = r->kernel_tid;
	d9_kthread_call(t, r->head.name);
	return t;
}

void d9_kthreads_forget(struct d9_kthreads *ts, struct d9_kthread *t)
{
	for (struct d9_kthread **at = &ts->by_id[t->id % BUCKETS]; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
	ts->n--;
	leave_process(ts, t->process);
	free(t);
}

void d9_kthreads_begin_listing(struct d9_kthreads *ts) { ts->listing++; }

void d9_kthreads_sweep(struct d9_kthreads *ts, d9_u32 below_id)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct d9_kthread *t = ts->by_id[i], *next; t; t = next) {
			next = t->next;
			if (t->id < below_id && t->listed != ts->listing)
				d9_kthreads_forget(ts, t);
		}
}

const struct d9_kprocess *d9_kthreads_newest(const struct d9_kthreads *ts) { return ts->processes; }

void d9_kthreads_sum(const struct d9_kthreads *ts, d9_u64 *total, d9_u64 *stat, d9_u64 *count)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (const struct d9_kthread *t = ts->by_id[i]; t; t = t->next) {
			*total += t->total;
			*stat += t->stat;
			*count += t->count;
		}
}

/* ---- what a segment says of them ------------------------------------------------------------- */

static int define_process(struct d9_kprocess *p, struct d9_kseg *s)
{
	struct d9_ev_proc e = {.generation = p->index + 1,
			       .start = p->start,
			       .born = p->born,
			       .id = p->index,
			       .parent = p->parent,
			       .pid = p->pid,
			       .ppid = p->ppid,
			       .uid = p->uid};
	int r = d9_kseg_add(s, D9_THREAD_NONE, D9_EV_proc, &e, D9_TAIL_STRING, p->exe_args ? p->exe_args : "",
			    p->n_exe_args);
	if (!r)
		p->defined_in = d9_kseg_number(s);
	return r;
}

static int define_thread(struct d9_kthread *t, struct d9_kseg *s)
{
	struct d9_ev_thread e = {.rec.t = d9_kseg_mono(),
				 .born = t->born,
				 .id = t->id,
				 .proc = t->process->index,
				 .tid = t->tid,
				 .role = t->tid == t->process->pid};
	return d9_kseg_add(s, D9_THREAD_NONE, D9_EV_thread, &e, D9_TAIL_STRING, t->name, (d9_u32)strlen(t->name));
}

static int define_kernel_thread(struct d9_kthread *t, struct d9_kseg *s)
{
	struct d9_ev_kernel_thread e = {.id = t->id, .tid = t->kernel_tid, .pid = t->process->kernel_pid};
	return d9_kseg_add(s, D9_THREAD_NONE, D9_EV_kernel_thread, &e, D9_TAIL_NONE, NULL, 0);
}

int d9_kthread_define(struct d9_kthread *t, struct d9_kseg *s)
{
	d9_u32 segment = d9_kseg_number(s);
	int r = segment && t->process->defined_in != segment ? define_process(t->process, s) : 0;
	if (r || t->defined_in == segment)
		return r;
	if (!(r = define_thread(t, s)) && !(r = define_kernel_thread(t, s)))
		t->defined_in = segment;
	return r;
}

int d9_kthreads_define_all(struct d9_kthreads *ts, struct d9_kseg *s)
{
	int r = 0;
	for (unsigned i = 0; !r && i < BUCKETS; i++)
		for (struct d9_kthread *t = ts->by_id[i]; !r && t; t = t->next)
			r = d9_kthread_define(t, s);
	return r;
}
