#include "trace_builder.h"

#include "format/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *family, *name;
	d9_u32 flags;
} hooks[] = {
	{"epoll", "epoll_wait", 1},
	{"poll", "poll", 1},
	{"futex", "futex_wait", 2},
	{"cond", "pthread_cond_wait", 2},
	{"cond", "pthread_cond_timedwait", 2},
	{"mutex", "pthread_mutex_lock", 2},
	{"sem", "sem_wait", 2},
	{"sem", "sem_timedwait", 2},
	{"sleep", "nanosleep", 4},
	{"read", "read", 8},
	{"write", "write", 8},
	{"open", "open", 8},
	{"accept", "accept4", 8},
	{"socket", "socket", 8},
	{"sync", "fsync", 8},
	{"join", "pthread_join", 0},
	{"recv", "recv", 8},
	{"send", "send", 8},
};
#define N_HOOKS (sizeof(hooks) / sizeof(hooks[0]))

static void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "trace_builder: %s: %s\n", what, strerror(errno));
		exit(99);
	}
}

static d9_u32 hook_id(const char *name)
{
	for (d9_u32 i = 0; i < N_HOOKS; i++)
		if (!strcmp(hooks[i].name, name))
			return i + 1;
	must(false, name);
	return 0;
}

void tb_new(struct tb *b)
{
	*b = (struct tb){.fd = -1, .at = TB_BASE};
	snprintf(b->dir, sizeof(b->dir), "/tmp/d9-test-XXXXXX");
	must(mkdtemp(b->dir), "mkdtemp");
	must(!posix_memalign(&b->memory, 64, d9_segw_bytes()), "memory");
	memset(b->memory, 0, d9_segw_bytes());
	b->w = d9_segw_init(b->memory);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void tb_free(struct tb *b)
{
	if (!getenv("D9_TEST_KEEP"))
		nftw(b->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(b->memory);
}

static int sink(void *ctx, const void *bytes, size_t n)
{
	return write(*(int *)ctx, bytes, n) == (ssize_t)n ? 0 : -EIO;
}

void tb_raw(struct tb *b, d9_u32 thread, const void *rec, size_t n, d9_u32 tail_kind, const void *tail, size_t n_tail)
{
	static _Alignas(8) unsigned char buf[D9_CHUNK_BYTES];
	memset(buf, 0, sizeof(buf));
	memcpy(buf, rec, n);
	size_t len = n;
	d9_u16 id = (d9_u16)((const struct d9_rec *)rec)->head;
	if (d9_events[id].has_tail) {
		struct d9_tail word = {D9_TAIL_WORD(tail_kind, n_tail), 0};
		memcpy(buf + n, &word, sizeof(word));
		if (n_tail)
			memcpy(buf + n + sizeof(word), tail, n_tail);
		len = (n + sizeof(word) + n_tail + 7) & ~(size_t)7;
	}
	((struct d9_rec *)buf)->head = D9_REC_HEAD(len, id) | D9_COMMITTED;
	d9_u32 begin = thread == D9_THREAD_NONE ? 0 : b->offset[thread & 255],
	       end = thread == D9_THREAD_NONE ? 0 : begin + (d9_u32)len;
	int r = d9_segw_add(b->w, thread, 1, begin, end, (const void *)buf);
	if (r == -ENOSPC) {
		must(!d9_segw_flush(b->w), "flush");
		r = d9_segw_add(b->w, thread, 1, begin, end, (const void *)buf);
	}
	errno = -r;
	must(!r, d9_event_name(id));
	if (thread != D9_THREAD_NONE)
		b->offset[thread & 255] = end;
}

#define REC(ev, ...) ((struct d9_ev_##ev){.rec = {.head = D9_EV_##ev, __VA_ARGS__}})
#define PUT(b, thread, e) tb_raw(b, thread, &(e), sizeof(e), 0, NULL, 0)

static void put_hooks(struct tb *b)
{
	for (d9_u32 i = 0; i < N_HOOKS; i++) {
		char tail[64];
		int n = snprintf(tail, sizeof(tail), "%s%c%s", hooks[i].family, 0, hooks[i].name);
		struct d9_ev_hook e = REC(hook);
		e.id = i + 1;
		e.flags = hooks[i].flags;
		tb_raw(b, D9_THREAD_NONE, &e, sizeof(e), D9_TAIL_STRING, tail, (size_t)n);
	}
}

static void begin(struct tb *b)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%c-%06u.d9", b->folder, b->helper ? 'k' : 's', ++b->sequence);
	b->fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	must(b->fd >= 0, path);
	struct d9_seg_header h = {.compat = b->helper && b->perf ? D9_SEG_BY_PERF : 0,
				  .family = {b->family + 1000 * b->helper, 7},
				  .sequence = b->sequence,
				  .clock = D9_CLOCK_WORD(D9_CLOCK_MONOTONIC, 0),
				  .created_real = 1700000000000000000ull + b->at + b->family};
	must(!d9_segw_begin(b->w, &h, sink, &b->fd), "begin");
	struct d9_ev_clock c = REC(clock, .t = b->at);
	c.tsc = c.mono = b->at;
	c.real = 1700000000000000000ull + b->at;
	PUT(b, D9_THREAD_NONE, c);
	if (!b->helper)
		put_hooks(b);
}

void tb_family(struct tb *b, const char *name)
{
	snprintf(b->folder, sizeof(b->folder), "%s/%s-%08x", b->dir, name, ++b->family);
	must(!mkdir(b->folder, 0700), b->folder);
	b->helper = 0;
	b->sequence = 0;
	b->next_site = D9_SITE_FIRST;
	memset(b->offset, 0, sizeof(b->offset));
	begin(b);
}

void tb_kernel(struct tb *b, d9_u32 number, const char *name)
{
	if (name)
		snprintf(b->folder, sizeof(b->folder), "%s/%s-%08x", b->dir, name, ++b->family);
	must(!name || !mkdir(b->folder, 0700), b->folder);
	b->sequence = b->helper && !name ? b->sequence : 0;
	b->helper = number;
	memset(b->offset, 0, sizeof(b->offset));
	begin(b);
}

void tb_segment(struct tb *b)
{
	must(!d9_segw_end(b->w), "end");
	close(b->fd);
	begin(b);
}

void tb_end(struct tb *b)
{
	must(!d9_segw_end(b->w), "end");
	close(b->fd);
	b->fd = -1;
}

void tb_proc(struct tb *b, d9_u32 id, d9_u32 parent, d9_i32 pid, d9_i32 ppid, d9_u64 start, const char *exe)
{
	struct d9_ev_proc e = REC(proc);
	e.generation = id + 1;
	e.start = start;
	e.born = b->at;
	e.id = id;
	e.parent = parent;
	e.pid = pid;
	e.ppid = ppid;
	tb_raw(b, D9_THREAD_NONE, &e, sizeof(e), D9_TAIL_STRING, exe, strlen(exe) + 1);
}

void tb_thread(struct tb *b, d9_u32 id, d9_u32 proc, d9_i32 tid, const char *name)
{
	struct d9_ev_thread e = REC(thread);
	e.born = b->at;
	e.id = id;
	e.proc = proc;
	e.tid = tid;
	e.role = tid % 100 == 0;
	tb_raw(b, D9_THREAD_NONE, &e, sizeof(e), D9_TAIL_STRING, name, strlen(name));
}

void tb_module(struct tb *b, d9_u32 id, d9_u32 proc, d9_u64 start, d9_u64 end, const char *path)
{
	struct d9_ev_module e = REC(module);
	char tail[256] = "";
	snprintf(tail + 1, sizeof(tail) - 1, "%s", path);
	e.start = start;
	e.end = end;
	e.id = id;
	e.proc = proc;
	tb_raw(b, D9_THREAD_NONE, &e, sizeof(e), D9_TAIL_STRING, tail, strlen(path) + 2);
}

d9_u32 tb_site(struct tb *b, const char *hook, d9_u64 ra, d9_u32 depth, const d9_u64 *chain)
{
	struct d9_ev_site e = REC(site);
	size_t n = 0;
	while (chain && chain[n])
		n++;
	e.id = b->next_site++;
	e.hook = hook_id(hook);
	e.ra = ra;
	e.depth = depth;
	tb_raw(b, D9_THREAD_NONE, &e, sizeof(e), n ? D9_TAIL_FRAMES : 0, chain, n * sizeof(*chain));
	return e.id;
}

void tb_span(struct tb *b, d9_u32 thread, d9_u32 site, struct tb_span s)
{
	struct d9_ev_span e = REC(span, .site = site, .t = b->at + s.t1);
	e.dur = s.t1 - s.t0;
	e.object = s.object;
	e.waker_t = s.waker_t ? b->at + s.waker_t : 0;
	e.result = s.result;
	e.fd = s.fd ? s.fd : -1;
	e.waker = s.waker ? s.waker - 1 : D9_THREAD_NONE;
	e.owner = s.owner;
	PUT(b, thread, e);
}

void tb_pending(struct tb *b, d9_u32 thread, d9_u32 site, d9_u64 since, d9_u64 t, d9_u64 object, d9_u32 owner)
{
	struct d9_ev_pending e = REC(pending, .site = site, .t = b->at + t);
	e.since = b->at + since;
	e.object = object;
	e.fd = -1;
	e.owner = owner;
	PUT(b, thread, e);
}

void tb_waits(struct tb *b, d9_u32 thread, d9_u32 site, d9_u64 since, d9_u64 t, d9_i32 fd)
{
	struct d9_ev_pending e = REC(pending, .site = site, .t = b->at + t);
	e.since = b->at + since;
	e.fd = fd;
	PUT(b, thread, e);
}

void tb_held(struct tb *b, d9_u32 thread, d9_u64 object, d9_u64 since, d9_u64 t)
{
	struct d9_ev_held e = REC(held, .t = b->at + t);
	e.object = object;
	e.since = b->at + since;
	PUT(b, thread, e);
}

void tb_cpu(struct tb *b, d9_u32 thread, d9_u64 t, d9_u64 run, d9_u64 delay)
{
	struct d9_ev_cpu e = REC(cpu, .t = b->at + t);
	e.run = run;
	e.delay = delay;
	e.source = delay == D9_NOT_KNOWN ? 0 : 1;
	PUT(b, thread, e);
}

void tb_calls(struct tb *b, d9_u32 thread, const char *hook, d9_u64 count, d9_u64 total, d9_u32 errors, d9_u64 t)
{
	struct d9_ev_calls e = REC(calls, .t = b->at + t);
	e.count = count;
	e.total = total;
	e.max = count ? total / count : 0;
	e.hook = hook_id(hook);
	e.errors = errors;
	PUT(b, thread, e);
}

void tb_gap(struct tb *b, d9_u32 thread, d9_u64 since, d9_u64 t, d9_u64 events)
{
	struct d9_ev_gap e = REC(gap, .t = b->at + t);
	e.events = events;
	e.since = b->at + since;
	PUT(b, thread, e);
}

void tb_poll(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u32 worker, d9_u64 t0, d9_u64 t1)
{
	struct d9_ev_poll e = REC(poll, .t = b->at + t1);
	e.dur = t1 - t0;
	e.task = task;
	e.module = b->runtime_module;
	e.outcome = b->outcome;
	e.runtime = runtime;
	e.worker = worker;
	PUT(b, thread, e);
}

void tb_park(struct tb *b, d9_u32 thread, d9_u32 runtime, d9_u32 worker, d9_u64 t0, d9_u64 t1)
{
	struct d9_ev_park e = REC(park, .t = b->at + t1);
	e.dur = t1 - t0;
	e.runtime = runtime;
	e.worker = worker;
	PUT(b, thread, e);
}

void tb_wake(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u64 t)
{
	struct d9_ev_wake e = REC(wake, .t = b->at + t);
	e.task = task;
	e.module = b->runtime_module;
	e.runtime = runtime;
	PUT(b, thread, e);
}

void tb_spawn(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u64 t, const char *name)
{
	struct d9_ev_task_spawn e = REC(task_spawn, .t = b->at + t);
	e.task = task;
	e.runtime = runtime;
	if (name)
		tb_raw(b, thread, &e, sizeof(e), D9_TAIL_STRING, name, strlen(name));
	else
		PUT(b, thread, e);
}

void tb_seen(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u64 t, struct tb_maker by)
{
	struct d9_ev_task_spawn e = REC(task_spawn, .t = b->at + t);
	e.task = task;
	e.module = b->runtime_module;
	e.runtime = runtime;
	e.made = by.t ? b->at + by.t : 0;
	e.thread = by.t ? by.thread : D9_THREAD_NONE;
	e.parent = by.task;
	e.flags = by.flags;
	e.code = by.code;
	PUT(b, thread, e);
}

void tb_in_poll(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 runtime, d9_u32 worker, d9_u64 t0, d9_u64 t)
{
	struct d9_ev_in_poll e = REC(in_poll, .t = b->at + t);
	e.task = task;
	e.since = b->at + t0;
	e.module = b->runtime_module;
	e.runtime = runtime;
	e.worker = worker;
	PUT(b, thread, e);
}

void tb_task_end(struct tb *b, d9_u32 thread, d9_u64 task, d9_u32 outcome, d9_u64 t)
{
	struct d9_ev_task_end e = REC(task_end, .t = b->at + t);
	e.task = task;
	e.module = b->runtime_module;
	e.outcome = outcome;
	PUT(b, thread, e);
}

void tb_control(struct tb *b, d9_u64 t, d9_u64 mask)
{
	struct d9_ev_control e = REC(control, .t = b->at + t);
	e.mask = mask;
	PUT(b, D9_THREAD_NONE, e);
}

void tb_exec(struct tb *b, d9_u32 thread, d9_u64 t, d9_i32 pid, const char *path)
{
	struct d9_ev_exec e = REC(exec, .t = b->at + t);
	e.pid = pid;
	tb_raw(b, thread, &e, sizeof(e), D9_TAIL_STRING, path, strlen(path));
}

void tb_runq(struct tb *b, d9_u32 thread, struct tb_runq q)
{
	struct d9_ev_runq e = REC(runq, .t = b->at + q.t1);
	e.dur = q.t1 - q.t0;
	e.waker = q.waker;
	e.prev = q.prev;
	e.prev_pid = q.prev_pid;
	e.ran = q.ran ? q.ran : e.dur;
	e.flags = q.flags ? q.flags : 2;
	const char *name = q.name ? q.name : "";
	tb_raw(b, thread, &e, sizeof(e), *name ? D9_TAIL_STRING : 0, name, strlen(name));
}

void tb_offcpu(struct tb *b, d9_u32 thread, struct tb_offcpu o)
{
	struct d9_ev_offcpu e = REC(offcpu, .t = b->at + o.t1);
	e.dur = o.t1 - o.t0;
	e.woken = o.woken ? b->at + o.woken : 0;
	e.nr = o.nr;
	e.state = o.state;
	e.arg0 = o.arg0;
	const char *stack = o.stack ? o.stack : "";
	tb_raw(b, thread, &e, sizeof(e), *stack ? D9_TAIL_KERNEL : 0, stack, strlen(stack));
}

void tb_user_stack(struct tb *b, d9_u32 thread, d9_u64 t, d9_u64 frame)
{
	struct d9_ev_user_stack e = REC(user_stack, .t = b->at + t);
	tb_raw(b, thread, &e, sizeof(e), D9_TAIL_FRAMES, &frame, sizeof(frame));
}

void tb_runq_total(struct tb *b, d9_u32 thread, d9_u64 t, d9_u64 count, d9_u64 total, d9_u64 max, const d9_u64 *buckets,
		   d9_u32 n)
{
	struct d9_ev_runq_total e = REC(runq_total, .t = b->at + t);
	e.count = count;
	e.total = total;
	e.max = max;
	e.stat = D9_NOT_KNOWN;
	tb_raw(b, thread, &e, sizeof(e), n ? D9_TAIL_DATA : 0, buckets, n * sizeof(*buckets));
}

void tb_kernel_thread(struct tb *b, d9_u32 thread, d9_i32 tid, d9_i32 pid)
{
	struct d9_ev_kernel_thread e = REC(kernel_thread);
	e.id = thread;
	e.tid = tid;
	e.pid = pid;
	PUT(b, D9_THREAD_NONE, e);
}

void tb_block_io(struct tb *b, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_u32 op, d9_u32 bytes, d9_i32 error)
{
	struct d9_ev_block_io e = REC(block_io, .t = b->at + t1);
	e.dur = t1 - t0;
	e.sector = 2048;
	e.bytes = bytes;
	e.dev = 8u << 20 | 16;
	e.op = op;
	e.error = error;
	PUT(b, thread, e);
}

void tb_syscall(struct tb *b, d9_u32 thread, d9_u64 t0, d9_u64 t1, d9_i32 nr, d9_u64 arg0, d9_i64 result)
{
	struct d9_ev_syscall e = REC(syscall, .t = b->at + t1);
	e.dur = t1 - t0;
	e.nr = nr;
	e.arg0 = arg0;
	e.arg1 = ~0ull;
	e.result = result;
	PUT(b, thread, e);
}

void tb_quota(struct tb *b, d9_u32 proc, d9_u64 t, d9_u64 periods, d9_u64 throttled, d9_u64 throttled_ns)
{
	struct d9_ev_quota e = REC(quota, .t = b->at + t);
	e.periods = periods;
	e.throttled = throttled;
	e.throttled_ns = throttled_ns;
	e.quota = MS(20);
	e.period = MS(100);
	e.proc = proc;
	tb_raw(b, D9_THREAD_NONE, &e, sizeof(e), D9_TAIL_STRING, "/svc", 4);
}

void tb_exit(struct tb *b, d9_u32 thread, d9_u64 t, d9_u32 how, d9_i32 code)
{
	struct d9_ev_exit e = REC(exit, .t = b->at + t);
	e.code = code;
	e.how = how;
	PUT(b, thread, e);
}

struct d9_trace *tb_read(struct tb *b)
{
	struct d9_read_opts o = {.dir = b->dir, .pid = -1};
	struct d9_trace *t = NULL;
	int r = d9_trace_open(&o, &t);
	must(!r, "d9_trace_open");
	return t;
}
