/* What d9-kernel recorded: how it is joined to the service, what the model makes of it, and what is found; with chosen times. */
#include "model_case.h"

#include "cli/kernel_groups.h"
#include "cli/kernel_stack.h"
#include "cli/kernel_who.h"
#include "cli/syscall_name.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RCU "synchronize_rcu_normal+0x91\nexpand_files+0x3c\nalloc_fd+0x7a\n"
#define BEHIND "expand_files+0x3c\nalloc_fd+0x7a\n"
#define FLUSH "io_schedule+0x46\nblkdev_issue_flush+0x5\next4_sync_file+0x1\n"
#define FAULT \
	"io_schedule+0x46\nfolio_wait_bit_common+0x9\nfilemap_fault+0x3\nhandle_mm_fault+0x2\nexc_page_fault+0x1\n"
#define FUTEX "schedule+0x1\nfutex_wait_queue+0x6\n"

/* The service's files are written; what follows is the helper's, of the same process. */
static void kernel(d9_u32 helper)
{
	tb_end(&B);
	tb_kernel(&B, helper, NULL);
	tb_proc(&B, 7, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
}

static unsigned threads_of_tid(int tid)
{
	unsigned n = 0;
	for (d9_u32 i = 0; i < T->threads.n; i++)
		n += T->threads.v[i].tid == tid;
	return n;
}

static const struct d9_finding *only(const char *id)
{
	for (size_t i = 0; i < F.of.n; i++)
		ck_assert_msg(!strcmp(F.of.v[i].id, id), "also found %s: %s", F.of.v[i].id, F.of.v[i].title);
	ck_assert_msg(F.of.n == 1, "%zu findings of %s", F.of.n, id);
	return find(id);
}

static void says(const struct d9_finding *f, const char *what)
{
	ck_assert_msg(strstr(f->title, what) != NULL, "`%s` does not say `%s`", f->title, what);
}

/* A worker: 30 parks, a poll of `poll` ns after them, and 3 parks more.  Returns when the poll begins. */
static d9_u64 worker(d9_u64 poll)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	d9_u64 t = loop(1, home, 0, 30, 5) - MS(1);
	loop(1, home, t + poll, 3, 5);
	return t;
}

/* ---- joining --------------------------------------------------------------------------------------------------------------- */

START_TEST(joined_by_pid_start_and_tid)
{
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_kernel_thread(&B, 40, 4100, 4100);
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(9), .t1 = MS(9.5), .prev = 77, .prev_pid = 70, .name = "cc1"});
	tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = MS(20), .t1 = MS(25), .woken = MS(24), .nr = 0, .stack = FUTEX});
	tb_cpu(&B, 40, MS(300), MS(30), MS(2));
	analyse();
	ck_assert_uint_eq(T->procs.n, 1);
	ck_assert_uint_eq(threads_of_tid(100), 1);
	const struct d9_trace_thread *th = &T->threads.v[thread(100)];
	ck_assert_uint_gt(th->spans.n, 30);
	ck_assert_uint_eq(th->kernel.runq.n, 1);
	ck_assert_uint_eq(th->kernel.runq.v[0].t0, TB_BASE + MS(9));
	ck_assert_str_eq(T->names.v[th->kernel.runq.v[0].name], "cc1");
	ck_assert_uint_eq(th->kernel.offcpu.n, 1);
	ck_assert_uint_eq(th->kernel.offcpu.v[0].woken, TB_BASE + MS(24));
	ck_assert_uint_eq(th->cpu.n, 1);
	ck_assert_int_eq(th->kernel_tid, 4100);
	ck_assert_uint_eq(th->kernel.watched.n, 1);
	ck_assert_uint_eq(th->kernel.watched.v[0].t0, TB_BASE);
	ck_assert_uint_eq(th->kernel.watched.v[0].t1, TB_BASE + MS(300));
	ck_assert_uint_eq(T->families.n, 2);
}
END_TEST

START_TEST(another_start_is_another_process)
{
	worker(MS(1));
	tb_end(&B);
	tb_kernel(&B, 1, NULL);
	tb_proc(&B, 7, D9_NO_INDEX, 100, 1, 501, "/bin/old");
	tb_thread(&B, 40, 7, 100, "old");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(9), .t1 = MS(9.5)});
	analyse();
	ck_assert_uint_eq(T->procs.n, 2);
	ck_assert_uint_eq(threads_of_tid(100), 2);
	ck_assert_uint_eq(T->threads.v[thread(100)].kernel.runq.n, 0);
}
END_TEST

/* Two threads had tid 101, one after the other, and a third in between of which the recorder saw nothing. */
START_TEST(a_tid_that_comes_again)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	tb_thread(&B, 2, 0, 101, "first");
	loop(2, home, 0, 2, 5);
	B.at = TB_BASE + MS(60);
	tb_thread(&B, 3, 0, 101, "second");
	loop(3, home, 0, 2, 5);
	B.at = TB_BASE;
	kernel(1);
	tb_thread(&B, 41, 7, 101, "first");
	tb_runq(&B, 41, (struct tb_runq){.t0 = MS(1), .t1 = MS(2)});
	B.at = TB_BASE + MS(30);
	tb_thread(&B, 42, 7, 101, "unseen");
	tb_runq(&B, 42, (struct tb_runq){.t0 = MS(1), .t1 = MS(3)});
	B.at = TB_BASE + MS(55);
	tb_thread(&B, 43, 7, 101, "second");
	tb_runq(&B, 43, (struct tb_runq){.t0 = MS(1), .t1 = MS(4)});
	tb_runq_total(&B, 43, MS(50), 1, MS(3), MS(3), NULL, 0);
	analyse();
	ck_assert_uint_eq(threads_of_tid(101), 3);
	unsigned seen = 0;
	for (size_t i = 0; i < T->threads.n; i++) {
		const struct d9_trace_thread *th = &T->threads.v[i];
		if (th->tid != 101)
			continue;
		ck_assert_uint_eq(th->kernel.runq.n, 1);
		d9_u64 waited = th->kernel.runq.v[0].t1 - th->kernel.runq.v[0].t0;
		ck_assert_uint_eq(waited, !strcmp(th->name, "first")    ? MS(1)
					  : !strcmp(th->name, "unseen") ? MS(2)
									: MS(3));
		ck_assert_uint_eq(th->spans.n, strcmp(th->name, "unseen") ? 2 : 0);
		ck_assert_uint_eq(th->proc, 0);
		seen++;
	}
	ck_assert_uint_eq(seen, 3);
}
END_TEST

/* An exec keeps pid, start and tid, and is another family: each wait goes to the program that ran, whether the helper noticed it (1) or not. */
START_TEST(an_exec_divides_a_thread)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, home, 0, 2, 5);
	tb_exec(&B, 1, MS(30), 100, "/bin/next");
	tb_exit(&B, 1, MS(30), 4, 0);
	tb_end(&B);
	char folder[sizeof(B.folder)];
	memcpy(folder, B.folder, sizeof(folder));
	B.at = TB_BASE + MS(40);
	tb_family(&B, "next");
	tb_proc(&B, 0, D9_NO_INDEX, 100, 1, 500, "/bin/next");
	tb_thread(&B, 1, 0, 100, "next");
	home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, home, 0, 2, 5);
	tb_end(&B);
	B.at = TB_BASE;
	memcpy(B.folder, folder, sizeof(folder));
	tb_kernel(&B, 1, NULL);
	tb_proc(&B, 7, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(1), .t1 = MS(2)});
	if (_i) {
		B.at = TB_BASE + MS(31);
		tb_proc(&B, 8, D9_NO_INDEX, 100, 1, 500, "/bin/next");
		tb_thread(&B, 41, 8, 100, "next");
		B.at = TB_BASE;
	}
	tb_runq(&B, 40 + (d9_u32)_i, (struct tb_runq){.t0 = MS(45), .t1 = MS(47)});
	tb_runq_total(&B, 40 + (d9_u32)_i, MS(60), 2, MS(3), MS(2), NULL, 0);
	analyse();
	ck_assert_uint_eq(T->procs.n, 2);
	ck_assert_uint_eq(threads_of_tid(100), 2);
	for (size_t i = 0; i < T->threads.n; i++) {
		const struct d9_trace_thread *th = &T->threads.v[i];
		if (th->tid != 100)
			continue;
		ck_assert_uint_eq(th->kernel.runq.n, 1);
		ck_assert_uint_eq(th->kernel.runq.v[0].t1 - TB_BASE, strcmp(th->name, "next") ? MS(2) : MS(47));
		ck_assert((th->kernel.sums != NULL) ==
			  (_i && !strcmp(th->name, "next"))); /* of both together: neither's */
	}
}
END_TEST

START_TEST(what_only_the_kernel_saw_stays)
{
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_thread(&B, 41, 7, 155, "quiet");
	tb_runq(&B, 41, (struct tb_runq){.t0 = MS(9), .t1 = MS(9.5)});
	tb_proc(&B, 8, D9_NO_INDEX, 200, 1, 600, "/bin/other");
	tb_thread(&B, 42, 8, 200, "other");
	tb_offcpu(&B, 42, (struct tb_offcpu){.t0 = MS(20), .t1 = MS(25), .nr = 1});
	tb_gap(&B, D9_THREAD_NONE, MS(100), MS(120), 17);
	analyse();
	ck_assert_uint_eq(T->procs.n, 2);
	const struct d9_trace_thread *quiet = &T->threads.v[thread(155)], *other = &T->threads.v[thread(200)];
	ck_assert_uint_eq(quiet->proc, 0);
	ck_assert_int_eq(M->threads[thread(155)].role, D9_ROLE_OTHER);
	ck_assert_uint_eq(quiet->kernel.runq.n, 1);
	ck_assert_str_eq(T->procs.v[other->proc].exe, "/bin/other");
	ck_assert_uint_eq(other->kernel.offcpu.v[0].woken, other->kernel.offcpu.v[0].t1);
	/* what the helper lost says nothing of the service's own records, and bounds what it saw */
	ck_assert(!d9_model_has_hole(M, 0, TB_BASE, TB_BASE + MS(300)));
	ck_assert(d9_model_watched(M, thread(100), TB_BASE + MS(10), TB_BASE + MS(90)));
	ck_assert(!d9_model_watched(M, thread(100), TB_BASE + MS(90), TB_BASE + MS(110)));
}
END_TEST

START_TEST(two_helpers_of_one_folder)
{
	worker(MS(1));
	for (d9_u32 helper = 1; helper <= 2; helper++) {
		kernel(helper);
		B.at = TB_BASE + (helper - 1) * MS(50); /* the second came later and stayed longer */
		tb_thread(&B, 40 + helper, 7, 100, "svc");
		tb_thread(&B, 50 + helper, 7, 155, "quiet");
		B.at = TB_BASE;
		for (int i = helper == 1 ? 0 : 5; i < (helper == 1 ? 10 : 20); i++) {
			d9_u64 t = MS(10 * i + 5) + helper; /* two clocks are never read at the same moment */
			tb_runq(&B, 40 + helper, (struct tb_runq){.t0 = t, .t1 = t + MS(1)});
			tb_runq(&B, 50 + helper, (struct tb_runq){.t0 = t, .t1 = t + MS(1)});
		}
		tb_cpu(&B, 40 + helper, helper == 1 ? MS(100) : MS(200), MS(1), 0);
	}
	analyse();
	ck_assert_uint_eq(T->families.n, 3);
	ck_assert_uint_eq(T->procs.n, 1);
	for (int tid = 100; tid <= 155; tid += 55) {
		const struct d9_kernel_side *k = &T->threads.v[thread(tid)].kernel;
		ck_assert_uint_eq(threads_of_tid(tid), 1);
		ck_assert_uint_eq(k->runq.n, 20);
		ck_assert_uint_eq(k->watched.n, 1);
	}
}
END_TEST

/* Written first, and yet the second to be believed. */
START_TEST(d9_kernel_is_believed_before_perf)
{
	worker(MS(1));
	for (d9_u32 helper = 1; helper <= 2; helper++) {
		B.perf = helper == 1;
		kernel(helper);
		tb_thread(&B, 40 + helper, 7, 100, "svc");
		tb_thread(&B, 50 + helper, 7, 155, "quiet");
		for (int i = 0; i < (helper == 1 ? 20 : 10); i++) {
			d9_u64 t = MS(10 * i + 5) + helper;
			tb_runq(&B, 40 + helper,
				(struct tb_runq){.t0 = t, .t1 = t + MS(1), .flags = helper == 1 ? 17 : 2});
			tb_offcpu(&B, 40 + helper, (struct tb_offcpu){.t0 = t + MS(2), .t1 = t + MS(4), .nr = -2});
		}
		tb_cpu(&B, 40 + helper, helper == 1 ? MS(200) : MS(100), MS(1), 0);
	}
	analyse();
	const struct d9_kernel_side *k = &T->threads.v[thread(100)].kernel;
	ck_assert_uint_eq(threads_of_tid(100), 1);
	ck_assert_uint_eq(k->runq.n, 20); /* ten of each */
	ck_assert_uint_eq(k->offcpu.n, 20);
	ck_assert_uint_eq(k->runq.v[9].flags, 2);
	ck_assert_uint_eq(k->runq.v[10].flags, 17);
	ck_assert(k->by_perf);
	ck_assert_uint_eq(k->watched.n, 1);
	ck_assert_uint_le(k->watched.v[0].t1, TB_BASE + MS(101));
	ck_assert(d9_trace_has_helper(T));
}
END_TEST

START_TEST(a_folder_of_its_own)
{
	/* of the service's process: part of its session; of another one: a session of its own */
	worker(MS(1));
	tb_end(&B);
	tb_kernel(&B, 1, "svc");
	tb_proc(&B, 7, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(9), .t1 = MS(9.5)});
	analyse();
	ck_assert_str_eq(T->session, "svc-00000001");
	ck_assert_uint_eq(T->threads.v[thread(100)].kernel.runq.n, 1);
	d9_findings_free(&F);
	d9_model_free(M);
	d9_trace_free(T);
	B.at = TB_BASE + MS(5000);
	tb_kernel(&B, 1, "other");
	tb_proc(&B, 7, D9_NO_INDEX, 300, 1, 900, "/bin/other");
	tb_thread(&B, 40, 7, 300, "other");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(9), .t1 = MS(9.5)});
	analyse();
	ck_assert_str_eq(T->session, "other-00000003");
	ck_assert_uint_eq(T->families.n, 1);
	ck_assert_uint_eq(T->threads.v[thread(300)].kernel.runq.n, 1);
	ck_assert_uint_gt(T->start_real, 0);
}
END_TEST

static char *file_named(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", B.folder, name);
	return path;
}

START_TEST(one_file_and_a_torn_one)
{
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(9), .t1 = MS(9.5)});
	tb_segment(&B);
	tb_proc(&B, 7, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
	tb_thread(&B, 40, 7, 100, "svc");
	for (int i = 0; i < 100; i++)
		tb_runq(&B, 40, (struct tb_runq){.t0 = MS(10 + i), .t1 = MS(10.5 + i)});
	tb_end(&B);
	struct stat st;
	ck_assert_int_eq(stat(file_named("k-000002.d9"), &st), 0);
	ck_assert_int_eq(truncate(file_named("k-000002.d9"), st.st_size - 80), 0);
	read_all();
	ck_assert_uint_eq(threads_of_tid(100), 1);
	ck_assert_uint_ge(T->threads.v[thread(100)].kernel.runq.n, 1);
	ck_assert_uint_gt(T->threads.v[thread(100)].spans.n, 30);
	d9_findings_free(&F);
	d9_model_free(M);
	d9_trace_free(T);
	struct d9_read_opts o = {.dir = file_named("k-000001.d9"), .pid = -1};
	ck_assert_int_eq(d9_trace_open(&o, &T), 0);
	M = d9_model_new(T);
	d9_findings_make(M, &F);
	ck_assert(T->families.v[0].kernel);
	ck_assert_uint_eq(T->threads.v[thread(100)].kernel.runq.n, 1);
}
END_TEST

/* Whatever stands in a file, sums stay within the time that passed and nothing is read from where nothing is. */
START_TEST(values_of_no_sense)
{
	static const d9_u64 wild[] = {0, 1, MS(50), MS(5000), 1ull << 62, D9_NOT_KNOWN - 1, D9_NOT_KNOWN};
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_thread(&B, 41, 99, 100, "of a process nobody told of");
	for (size_t i = 0; i < 7; i++)
		for (size_t k = 0; k < 7; k++) {
			struct d9_ev_runq q = {
				.rec = {.head = D9_EV_runq, .t = wild[i]}, .dur = wild[k], .waking = wild[k]};
			struct d9_ev_offcpu o = {.rec = {.head = D9_EV_offcpu, .t = wild[i]},
						 .dur = wild[k],
						 .woken = wild[6 - k],
						 .nr = (d9_i32)wild[k]};
			tb_raw(&B, 40 + (i & 1), &q, sizeof(q), D9_TAIL_STRING, "\x1b\xff\n", 3);
			tb_raw(&B, 40 + (k & 1), &o, sizeof(o), k & 1 ? D9_TAIL_KERNEL : D9_TAIL_FRAMES, "\n+\n.\n\0x",
			       7);
			tb_raw(&B, 33, &q, sizeof(q), 0, NULL, 0);
			tb_quota(&B, (d9_u32)wild[i], wild[k], wild[i], wild[k], wild[i]);
			tb_runq_total(&B, 40, wild[i], wild[k], wild[k], wild[k], wild, 7);
		}
	struct d9_ev_span s = {
		.rec = {.head = D9_EV_span, .site = 1, .t = TB_BASE}, .waker = 12345, .waker_t = TB_BASE};
	tb_raw(&B, 40, &s, sizeof(s), 0, NULL, 0);
	analyse();
	for (d9_u32 i = 0; i < T->threads.n; i++) {
		const struct d9_kernel_side *k = &T->threads.v[i].kernel;
		for (size_t n = 0; n < k->runq.n; n++)
			ck_assert(k->runq.v[n].t0 <= k->runq.v[n].t1 && (!n || k->runq.v[n - 1].t1 <= k->runq.v[n].t0));
		for (size_t n = 0; n < k->offcpu.n; n++)
			ck_assert(k->offcpu.v[n].t0 <= k->offcpu.v[n].woken &&
				  k->offcpu.v[n].woken <= k->offcpu.v[n].t1);
		const struct d9_model_thread *mt = &M->threads[i];
		d9_u64 known = mt->busy + mt->parked + mt->blocked + (mt->runnable == D9_NOT_KNOWN ? 0 : mt->runnable) +
			       (mt->unexplained == D9_NOT_KNOWN ? 0 : mt->unexplained);
		ck_assert_uint_le(known, mt->wall);
	}
}
END_TEST

/* ---- where time went ------------------------------------------------------------------------------------------------------- */

START_TEST(a_poll_is_split)
{
	/* of 40 ms: 10 in a call, of which the last 3 it was woken and not run; 5 in a page fault; 9 preempted; 13 on a CPU; 3 nobody knows */
	d9_u64 t = worker(MS(40));
	d9_u32 read = tb_site(&B, "read", 0x9000, 800, NULL);
	tb_span(&B, 1, read, (struct tb_span){.t0 = t + MS(2), .t1 = t + MS(12), .fd = 7, .result = 1});
	tb_cpu(&B, 1, t, MS(29), D9_NOT_KNOWN);
	tb_cpu(&B, 1, t + MS(40), MS(42), D9_NOT_KNOWN);
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = t + MS(2), .t1 = t + MS(12), .woken = t + MS(9), .nr = 0});
	tb_runq(&B, 40, (struct tb_runq){.t0 = t + MS(9), .t1 = t + MS(12), .prev = 9, .prev_pid = 9, .name = "cc1"});
	tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = t + MS(14), .t1 = t + MS(19), .nr = -1, .state = 2, .stack = FAULT});
	tb_runq(&B, 40,
		(struct tb_runq){
			.t0 = t + MS(20), .t1 = t + MS(29), .prev = 9, .prev_pid = 9, .name = "cc1", .flags = 1});
	tb_runq_total(&B, 40, MS(400), 12, MS(12.5), MS(9), NULL, 0);
	analyse();
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	const struct d9_poll *p = NULL;
	for (size_t i = 0; i < mt->polls.n; i++)
		if (mt->polls.v[i].t1 - mt->polls.v[i].t0 == MS(40))
			p = &mt->polls.v[i];
	ck_assert_ptr_nonnull(p);
	struct d9_split s = d9_model_split(M, thread(100), p);
	ck_assert_uint_eq(s.runnable, MS(12));
	ck_assert_uint_eq(s.blocked, MS(7) + MS(5));
	ck_assert_uint_eq(s.on_cpu, MS(13));
	ck_assert_uint_eq(s.unexplained, MS(3));
	/* of the whole thread the short waits that its sums tell of are runnable too */
	ck_assert_uint_eq(mt->runnable, MS(12.5));
	ck_assert_uint_eq(mt->busy + mt->parked + mt->blocked + mt->runnable + mt->unexplained, mt->wall);
}
END_TEST

START_TEST(a_late_return_to_the_loop_is_no_park)
{
	/* the park's last 4 ms it was woken and had no CPU */
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, home, 0, 30, 5);
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(105), .t1 = MS(109), .prev = 9, .prev_pid = 9, .name = "cc1"});
	tb_runq_total(&B, 40, MS(400), 1, MS(4), MS(4), NULL, 0);
	analyse();
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	ck_assert_uint_eq(mt->runnable, MS(4));
	ck_assert_uint_eq(mt->parked, 30 * MS(9) - MS(4));
	nothing();
}
END_TEST

START_TEST(unwatched_is_not_known)
{
	d9_u64 t = worker(MS(40));
	kernel(1);
	B.at = TB_BASE + t + MS(10); /* the helper came in the middle of the poll */
	tb_thread(&B, 40, 7, 100, "svc");
	B.at = TB_BASE;
	tb_runq_total(&B, 40, MS(400), 0, 0, 0, NULL, 0);
	analyse();
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	ck_assert_uint_eq(mt->runnable, D9_NOT_KNOWN);
	for (size_t i = 0; i < mt->polls.n; i++)
		if (mt->polls.v[i].t1 - mt->polls.v[i].t0 == MS(40))
			ck_assert_uint_eq(d9_model_split(M, thread(100), &mt->polls.v[i]).runnable, D9_NOT_KNOWN);
}
END_TEST

/* What it saw counts, though it came late: a wait for a CPU is not parked because the rest of the time is known by samples only. */
START_TEST(a_part_that_was_watched)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, home, 0, 30, 5);
	tb_cpu(&B, 1, MS(1), MS(1), 0);
	tb_cpu(&B, 1, MS(299), MS(200), MS(30)); /* all that is no park it ran */
	kernel(1);
	B.at = TB_BASE + MS(100);
	tb_thread(&B, 40, 7, 100, "svc");
	B.at = TB_BASE;
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(105), .t1 = MS(109), .prev = 9, .prev_pid = 9, .name = "cc1"});
	tb_runq_total(&B, 40, MS(400), 1, MS(4), MS(4), NULL, 0);
	analyse();
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	ck_assert_uint_eq(mt->runnable, MS(4));
	ck_assert_uint_eq(mt->parked, 30 * MS(9) - MS(4));
	ck_assert_uint_eq(mt->busy + mt->parked + mt->blocked + mt->runnable + mt->unexplained, mt->wall);
}
END_TEST

START_TEST(histograms_have_the_short_waits)
{
	const d9_u64 buckets[21] = {[10] = 900, [12] = 98, [20] = 2};
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(9), .t1 = MS(10.5)});
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(19), .t1 = MS(20.5)});
	tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = MS(50), .t1 = MS(52), .nr = 0});
	tb_runq_total(&B, 40, MS(400), 1000, MS(5), MS(1.5), buckets, 21);
	analyse();
	struct d9_hist h = {0}, o = {0};
	d9_hist_thread(M, thread(100), D9_KIND_RUNQ, &h);
	d9_hist_thread(M, thread(100), D9_KIND_OFFCPU, &o);
	ck_assert_uint_eq(h.count, 1000);
	ck_assert_uint_eq(h.total, MS(5));
	ck_assert_uint_eq(h.max, MS(1.5));
	ck_assert_uint_eq(d9_hist_bucket(&h, 10), 900);
	ck_assert_uint_eq(d9_hist_bucket(&h, 20), 2);
	ck_assert_uint_eq(o.count, 1);
	d9_hist_free(&h);
	d9_hist_free(&o);
}
END_TEST

/* ---- findings ------------------------------------------------------------------------------------------------------------- */

static void preempt(d9_u32 th, d9_u64 t, d9_u64 dur, d9_i32 pid, const char *name)
{
	tb_runq(&B, th,
		(struct tb_runq){.t0 = t, .t1 = t + dur, .prev = pid + 1, .prev_pid = pid, .name = name, .flags = 1});
}

START_TEST(kernel_delay)
{
	d9_u64 t = worker(MS(75));
	tb_cpu(&B, 1, t, MS(29), D9_NOT_KNOWN);
	tb_cpu(&B, 1, t + MS(75), MS(36), D9_NOT_KNOWN);
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40,
		(struct tb_runq){
			.t0 = MS(5), .t1 = MS(5) + MS(18), .prev = 71, .prev_pid = 71, .waker = 5, .name = "nginx"});
	preempt(40, t + MS(2), MS(20), 81, "cc1");
	preempt(40, t + MS(24), MS(4), 82, "idle enough");
	preempt(40, t + MS(30), MS(38), 71, "nginx");
	analyse();
	const struct d9_finding *f = only("kernel-delay");
	says(f, "was preempted and ran 38 ms later; nginx and cc1 had its CPUs");
	ck_assert_int_eq(f->severity, D9_WARNING);
	ck_assert_uint_eq(f->count, 3);
	ck_assert_uint_eq(measured(f, "runq_ns"), MS(76));
	ck_assert_uint_eq(measured(f, "runq_max_ns"), MS(38));
	ck_assert(!f->inferred);
}
END_TEST

START_TEST(kernel_delay_critical_and_of_no_other_thread)
{
	worker(MS(1));
	tb_thread(&B, 2, 0, 133, "helper");
	tb_span(&B, 2, tb_site(&B, "nanosleep", 0x4000, 300, NULL), (struct tb_span){.t0 = MS(1), .t1 = MS(90)});
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_thread(&B, 41, 7, 133, "helper");
	preempt(41, MS(30), MS(60), 71, "cc1"); /* of a thread for which nobody waits */
	if (_i)
		tb_runq(&B, 40, (struct tb_runq){.t0 = MS(5), .t1 = MS(65), .prev = 71, .prev_pid = 71, .name = "cc1"});
	analyse();
	if (!_i) {
		nothing();
		return;
	}
	const struct d9_finding *f = only("kernel-delay");
	ck_assert_int_eq(f->severity, D9_CRITICAL);
	says(f, "was woken and ran 60 ms later; cc1 had its CPUs");
}
END_TEST

/* One or two such waits come about on any machine: they are told, and are no warning. */
START_TEST(kernel_delay_now_and_then)
{
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	for (int i = 0; i < 2 + _i; i++)
		preempt(40, MS(30 + 20 * i), MS(12), 71, "cc1");
	analyse();
	ck_assert_int_eq(only("kernel-delay")->severity, _i ? D9_WARNING : D9_INFO);
}
END_TEST

/* A process without hooks has no roles: each of its threads counts. */
START_TEST(kernel_delay_without_hooks)
{
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_proc(&B, 8, D9_NO_INDEX, 200, 1, 600, "/bin/other");
	tb_thread(&B, 42, 8, 201, "tokio-rt-worker");
	preempt(42, MS(30), MS(18), 71, "cc1");
	analyse();
	says(only("kernel-delay"), "tokio-rt-worker (201) was preempted and ran 18 ms later; cc1 had its CPUs");
}
END_TEST

/* Through perf a preemption is seen, and nothing of a thread that was woken and not run: no stretch is watched for it. */
START_TEST(perf_says_what_it_saw)
{
	d9_u64 t = worker(MS(60));
	B.perf = true;
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40, (struct tb_runq){.t0 = t + MS(2), .t1 = t + MS(20), .prev = -1, .flags = 17});
	tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = t + MS(21), .t1 = t + MS(61), .nr = -2});
	analyse();
	ck_assert(d9_trace_has_kernel(T) && !d9_trace_has_helper(T));
	const struct d9_kernel_side *k = &T->threads.v[thread(100)].kernel;
	ck_assert(k->by_perf);
	ck_assert_uint_eq(k->watched.n, 0);
	ck_assert(!d9_model_watched(M, thread(100), t, t + MS(60)));
	ck_assert_uint_eq(k->offcpu.v[0].woken, k->offcpu.v[0].t1);
	const struct d9_finding *f = find("kernel-delay");
	says(f, "was preempted and ran 18 ms later; who had its CPU was not watched");
	for (size_t i = 0; i < F.of.n; i++) {
		ck_assert_msg(!strstr(F.of.v[i].title, "woken"), "%s", F.of.v[i].title);
		ck_assert_msg(strcmp(F.of.v[i].id, "disk-stall") && strcmp(F.of.v[i].id, "fd-table-growth"), "%s",
			      F.of.v[i].title);
	}
}
END_TEST

/* own: of so many waits one ends when a thread of the process leaves the CPU; 0: none. */
static void share_cpus(const char *name, d9_i32 pid, int own)
{
	worker(MS(1));
	for (d9_u32 i = 0; i < 3; i++) {
		d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
		tb_thread(&B, 2 + i, 0, 101 + (int)i, "worker");
		loop(2 + i, home, 0, 100, 10 + (int)i);
		for (int k = 0; k < 100; k++)
			tb_cpu(&B, 2 + i, MS(10 * k + 10), MS(4) * (d9_u64)(k + 1), D9_NOT_KNOWN);
	}
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_kernel_thread(&B, 40, 4100, 4100);
	for (d9_u32 i = 0; i < 3; i++) {
		tb_thread(&B, 41 + i, 7, 101 + (int)i, "worker");
		tb_kernel_thread(&B, 41 + i, 4101 + (int)i, 4100);
		for (int k = 0; k < 100; k++)
			preempt(41 + i, MS(10 * k + 1), MS(6), own && k % own == 0 ? 4100 : pid, name);
	}
	analyse();
}

START_TEST(cpu_oversubscribed)
{
	share_cpus("worker", 900, 1 + _i); /* of one CPU three threads are too many, whoever comes on top */
	const struct d9_finding *f = only("cpu-oversubscribed");
	ck_assert_uint_ge(measured(f, "runq_share"), 500);
	ck_assert_uint_ge(f->victims.n, 3);
	says(f, "pid 100: more busy threads than CPUs");
}
END_TEST

/* Who came last before a wait's end had the CPU for a moment; for how long counts, and of the rest nobody knows. */
START_TEST(who_had_the_cpu_by_how_long)
{
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	for (int i = 0; i < 9; i++) {
		struct tb_runq q = {.t0 = MS(20 * i),
				    .t1 = MS(20 * i + 12),
				    .ran = MS(0.1),
				    .prev = 5,
				    .prev_pid = 5,
				    .name = "short"};
		if (i % 3 == 0)
			q = (struct tb_runq){.t0 = q.t0,
					     .t1 = q.t1,
					     .ran = MS(20),
					     .prev = 6 + i % 2,
					     .prev_pid = 6 + i % 2,
					     .name = "long"};
		tb_runq(&B, 40, q);
	}
	analyse();
	struct d9_who w;
	d9_who_begin(&w, M, false);
	D9_EACH_WAIT (q, M, thread(100))
		d9_who_add(&w, q);
	d9_who_finish(&w);
	ck_assert_uint_eq(w.had.n, 2);
	ck_assert_str_eq(T->names.v[w.had.v[0].name], "long");
	ck_assert_uint_eq(w.had.v[0].total, 3 * MS(12)); /* before the wait it was nobody's loss */
	ck_assert_uint_eq(w.had.v[1].total, 6 * MS(0.1));
	ck_assert_uint_eq(w.seen, 3 * MS(12) + 6 * MS(0.1));
	char names[64];
	ck_assert_str_eq(d9_who_names(&w, names, sizeof(names)), "long");
	d9_who_fini(&w);
	d9_who_begin(&w, M, true);
	D9_EACH_WAIT (q, M, thread(100))
		d9_who_add(&w, q);
	d9_who_finish(&w);
	ck_assert_uint_eq(w.had.n, 3); /* two of them have one name */
	ck_assert_str_eq(d9_who_names(&w, names, sizeof(names)), "long");
	d9_who_fini(&w);
	says(only("kernel-delay"), "; long had its CPUs last");
}
END_TEST

START_TEST(noisy_neighbour)
{
	share_cpus("backup", 900, 0);
	const struct d9_finding *f = only("noisy-neighbour");
	ck_assert_uint_eq(measured(f, "neighbour"), 900);
	ck_assert_uint_ge(measured(f, "runq_ns"), MS(599));
	says(f, "backup had its CPUs");
}
END_TEST

/* A quota stops threads, and nobody has their CPU. */
START_TEST(cpu_throttled)
{
	worker(MS(1));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_runq(&B, 40, (struct tb_runq){.t0 = MS(5), .t1 = MS(85), .flags = 1});
	for (int i = 0; i < 30 && _i; i++) /* short ones of the same cause: it comes back when others run */
		preempt(40, MS(90 + 10 * i), MS(8), 71, "cc1");
	tb_quota(&B, 7, MS(100), 10, _i ? 5 : 0, _i ? MS(400) : 0);
	analyse();
	if (!_i) {
		says(only("kernel-delay"), "nobody else was seen on its CPUs");
		return;
	}
	const struct d9_finding *f = only("cpu-throttled");
	ck_assert_uint_eq(measured(f, "throttled_ns"), MS(400));
	says(f, "the CPU quota of /svc, 20 ms in 100 ms, stopped pid 100 in 5 of 10 periods");
}
END_TEST

START_TEST(disk_stall_in_a_pool)
{
	worker(MS(1));
	tb_thread(&B, 2, 0, 133, "blocking-1");
	d9_u32 fsync_ = tb_site(&B, "fsync", 0x7000, 300, NULL);
	tb_span(&B, 2, fsync_, (struct tb_span){.t0 = MS(10), .t1 = MS(263), .fd = 9});
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_thread(&B, 41, 7, 133, "blocking-1");
	tb_offcpu(&B, 41,
		  (struct tb_offcpu){.t0 = MS(10),
				     .t1 = MS(263),
				     .woken = MS(262.75),
				     .nr = SYS_fsync,
				     .state = 2,
				     .arg0 = 9,
				     .stack = FLUSH});
	analyse();
	const struct d9_finding *f = only("disk-stall");
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(252.75));
	says(f, "blocking-1 (133) waited 253 ms for storage, in fsync, in the kernel's blkdev_issue_flush; the polls "
		"of the event loops stayed short");
	ck_assert_int_eq(f->severity, D9_WARNING);
	ck_assert_str_eq(T->hooks.v[f->cause.hook].name, "fsync");
	ck_assert_uint_eq(f->cause.stack->kind, D9_TAIL_KERNEL);
}
END_TEST

/*
 * Of Tokio: a thread that runs the pool's jobs.  0: it waits for them where workers wait for tasks, for one function of the library's serves
 * both; 1: it was a worker itself before.
 */
START_TEST(disk_stall_in_a_job)
{
	const d9_u32 rt = 1u << 24 | 2;
	d9_u32 home = tb_site(&B, "futex_wait", 0x1000, 400, NULL), flush = tb_site(&B, "fsync", 0x7000, 300, NULL);
	tb_thread(&B, 2, 0, 133, "tokio-rt-worker");
	B.runtime_module = 1;
	for (int i = 0; i < 20; i++) {
		tb_span(&B, 1, home, (struct tb_span){.t0 = MS(20 * i), .t1 = MS(20 * i + 19), .object = 0x900});
		tb_poll(&B, 1, 7, rt, 0, MS(20 * i + 19), MS(20 * i + 19.5));
	}
	for (int i = 0; i < 9; i++)
		tb_span(&B, 2, home, (struct tb_span){.t0 = MS(i), .t1 = MS(i + 0.9), .object = 0xa00});
	if (_i)
		tb_poll(&B, 2, 8, rt, 1, MS(9), MS(9.5));
	tb_span(&B, 2, flush, (struct tb_span){.t0 = MS(10), .t1 = MS(263), .fd = 9});
	tb_poll(&B, 2, 9, 1u << 24, D9_NO_INDEX, MS(9.7), MS(264));
	tb_span(&B, 2, home, (struct tb_span){.t0 = MS(265), .t1 = MS(380), .object = 0xa00});
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_thread(&B, 41, 7, 133, "tokio-rt-worker");
	tb_offcpu(&B, 41,
		  (struct tb_offcpu){
			  .t0 = MS(10), .t1 = MS(263), .woken = MS(262), .nr = SYS_fsync, .state = 2, .stack = FLUSH});
	analyse();
	ck_assert_int_eq(M->threads[thread(133)].role, _i ? D9_ROLE_WORKER : D9_ROLE_OTHER);
	const struct d9_finding *f = only("disk-stall");
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(252));
	says(f, "tokio-rt-worker (133) waited 252 ms for storage, in fsync, in the kernel's blkdev_issue_flush; the "
		"polls of the event "
		"loops stayed short");
	ck_assert_int_eq(f->severity, D9_WARNING);
}
END_TEST

/* The call of the event loop is the disk's doing, and told once; one that waits for a peer is not. */
START_TEST(disk_stall_on_an_event_loop)
{
	d9_u64 t = worker(MS(70));
	d9_u32 site = tb_site(&B, _i ? "fsync" : "read", 0x7000, 800, NULL);
	tb_span(&B, 1, site, (struct tb_span){.t0 = t + MS(2), .t1 = t + MS(62), .fd = 9});
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_offcpu(&B, 40,
		  (struct tb_offcpu){.t0 = t + MS(2),
				     .t1 = t + MS(62),
				     .nr = _i ? SYS_fsync : SYS_read,
				     .state = _i ? 2 : 1,
				     .stack = _i ? FLUSH : "pipe_read+0x1\n"});
	analyse();
	const struct d9_finding *f = only(_i ? "disk-stall" : "blocking-call");
	ck_assert_int_eq(f->severity, D9_CRITICAL);
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(60));
}
END_TEST

/* A worker's, of 60 ms in a poll of 70; and d9-kernel watches it.  Returns when the poll begins. */
static d9_u64 long_send(void)
{
	d9_u64 t = worker(MS(70));
	tb_span(&B, 1, tb_site(&B, "send", 0x7000, 800, NULL),
		(struct tb_span){.t0 = t + MS(2), .t1 = t + MS(62), .fd = 9});
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	return t;
}

/* A call that does not wait for anything is long where its thread is kept off the CPU in it: the kernel knows how much of it that was. */
START_TEST(a_call_that_had_no_cpu)
{
	d9_u64 t = long_send();
	tb_runq(&B, 40, (struct tb_runq){.t0 = t + MS(3), .t1 = t + MS(_i ? 8 : 60), .flags = 1});
	tb_runq_total(&B, 40, MS(900), 1, MS(_i ? 5 : 57), MS(_i ? 5 : 57), NULL, 0);
	analyse();
	if (_i)
		ck_assert_uint_eq(measured(only("blocking-call"), "blocked_ns"), MS(60));
	else
		ck_assert_uint_eq(measured(only("kernel-delay"), "runq_ns"), MS(57));
}
END_TEST

/* 0: it was in the kernel on a CPU, for there is no word of a sleep where shorter ones are told of; 1: it slept. */
START_TEST(a_call_that_did_not_sleep)
{
	d9_u64 t = long_send();
	tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = MS(1), .t1 = MS(5), .nr = SYS_epoll_wait, .state = 1});
	if (_i)
		tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = t + MS(10), .t1 = t + MS(55), .nr = SYS_sendto, .state = 1});
	tb_runq_total(&B, 40, MS(900), 1, MS(1), MS(1), NULL, 0);
	analyse();
	if (_i)
		ck_assert_uint_eq(measured(only("blocking-call"), "blocked_ns"), MS(60));
	else
		nothing();
}
END_TEST

/* Stopped for a second in a poll that computed: the computing is told of, and without the stop. */
START_TEST(a_poll_that_was_stopped)
{
	d9_u64 t = worker(MS(1600));
	tb_cpu(&B, 1, t, MS(29), D9_NOT_KNOWN);
	tb_cpu(&B, 1, t + MS(1600), MS(629), D9_NOT_KNOWN);
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_offcpu(&B, 40,
		  (struct tb_offcpu){.t0 = t + MS(300),
				     .t1 = t + MS(1300),
				     .woken = t + MS(1300),
				     .nr = -1,
				     .state = 4,
				     .stack = "do_signal_stop+0x1\n"});
	tb_runq_total(&B, 40, MS(2500), 0, 0, 0, NULL, 0);
	analyse();
	const struct d9_finding *f = only("long-poll");
	ck_assert_uint_eq(measured(f, "on_cpu_ns"), MS(600));
	ck_assert_int_eq(f->severity, D9_CRITICAL);
}
END_TEST

START_TEST(short_waits_for_a_disk_are_nothing)
{
	worker(MS(9));
	tb_thread(&B, 2, 0, 133, "blocking-1");
	tb_span(&B, 2, tb_site(&B, "fsync", 0x7000, 300, NULL), (struct tb_span){.t0 = MS(10), .t1 = MS(30), .fd = 9});
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_thread(&B, 41, 7, 133, "blocking-1");
	tb_offcpu(&B, 41, (struct tb_offcpu){.t0 = MS(10), .t1 = MS(30), .nr = SYS_fsync, .state = 2, .stack = FLUSH});
	tb_offcpu(&B, 40, (struct tb_offcpu){.t0 = MS(300), .t1 = MS(307), .nr = -1, .state = 2, .stack = FAULT});
	tb_offcpu(&B, 40,
		  (struct tb_offcpu){
			  .t0 = MS(20), .t1 = MS(28), .nr = SYS_epoll_wait, .state = 1, .stack = "ep_poll+0x2\n"});
	analyse();
	nothing();
}
END_TEST

START_TEST(page_fault_stall)
{
	d9_u64 t = worker(MS(30));
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	for (int i = 0; i < 4; i++) /* each is short, and together they hold the poll up */
		tb_offcpu(&B, 40,
			  (struct tb_offcpu){.t0 = t + MS(1 + 7 * i),
					     .t1 = t + MS(6 + 7 * i),
					     .nr = -1,
					     .state = 2,
					     .stack = FAULT});
	analyse();
	const struct d9_finding *f = only("page-fault-stall");
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(20));
	ck_assert_uint_eq(f->count, 4);
	says(f, "waited 20 ms for a page of its memory, in a page fault, in the kernel's filemap_fault");
}
END_TEST

/* With the kernel's side it is seen: who grew the table, and who came meanwhile, also where no descriptor tells. */
START_TEST(fd_table_growth)
{
	d9_u64 t = worker(MS(20));
	d9_u32 socket_ = tb_site(&B, "socket", 0x8000, 800, NULL), accept_ = tb_site(&B, "accept4", 0x8100, 300, NULL);
	tb_span(&B, 1, socket_, (struct tb_span){.t0 = t + MS(2), .t1 = t + MS(17), .result = 1024});
	tb_thread(&B, 2, 0, 133, "accepts");
	tb_span(&B, 2, accept_, (struct tb_span){.t0 = t + MS(4), .t1 = t + MS(17), .fd = 3, .result = 1025});
	kernel(1);
	tb_thread(&B, 40, 7, 100, "svc");
	tb_thread(&B, 41, 7, 133, "accepts");
	tb_offcpu(&B, 40,
		  (struct tb_offcpu){.t0 = t + MS(2), .t1 = t + MS(17), .nr = SYS_socket, .state = 2, .stack = RCU});
	tb_offcpu(
		&B, 41,
		(struct tb_offcpu){.t0 = t + MS(4), .t1 = t + MS(17), .nr = SYS_accept4, .state = 2, .stack = BEHIND});
	tb_offcpu(&B, 41, (struct tb_offcpu){.t0 = MS(100), .t1 = MS(101.2), .nr = SYS_dup, .state = 2, .stack = RCU});
	analyse();
	ck_assert_uint_eq(F.of.n, 2);
	const struct d9_finding *f = &F.of.v[0], *dup_ = &F.of.v[1];
	ck_assert_str_eq(f->id, "fd-table-growth");
	ck_assert(!f->inferred);
	ck_assert_uint_eq(measured(f, "fd"), 1024);
	ck_assert_uint_eq(f->victims.n, 1);
	ck_assert_uint_eq(f->victims.v[0].waited, MS(13));
	ck_assert(d9_kernel_stack_has(f->cause.stack, (const char *const[]){"synchronize_rcu*", NULL}));
	ck_assert_str_eq(dup_->id, "fd-table-growth");
	ck_assert_uint_eq(measured(dup_, "fd"), D9_NOT_KNOWN);
	says(dup_, "dup took 1.20 ms to make a descriptor");
}
END_TEST

/* ---- words ------------------------------------------------------------------------------------------------------------------ */

START_TEST(names)
{
	char buf[32];
	ck_assert_str_eq(d9_syscall_name(SYS_fsync, buf), "fsync");
	ck_assert_str_eq(d9_syscall_name(SYS_epoll_wait, buf), "epoll_wait");
	ck_assert_str_eq(d9_syscall_name(-1, buf), "no call");
	ck_assert_str_eq(d9_syscall_name(77777, buf), "syscall 77777");
	ck_assert_str_eq(d9_syscall_name(-2, buf), "unknown call");
	const char text[] = "__schedule+0x1\nfutex_wait_queue.isra.0+0x6\n\n?\ndo_futex";
	struct d9_bytes stack = {.kind = D9_TAIL_KERNEL, .n = sizeof(text) - 1, .p = (const d9_u8 *)text};
	const char *name;
	size_t at = 0, n, count = 0;
	while (d9_kernel_frame_next(&stack, &at, &name, &n))
		count++;
	ck_assert_uint_eq(count, 4);
	ck_assert(d9_kernel_stack_has(&stack, (const char *const[]){"futex_wait_queue", NULL}));
	ck_assert(!d9_kernel_stack_has(&stack, (const char *const[]){"futex_wait", NULL}));
	struct d9_trace t = {0};
	struct d9_kernel_places p = {0};
	d9_vec_push(&t.tails, (struct d9_bytes){0});
	d9_vec_push(&t.tails, stack);
	ck_assert_uint_eq(d9_kernel_place(&p, &t, 0), 0);
	ck_assert_str_eq(p.names.v[d9_kernel_place(&p, &t, 1)], "futex_wait_queue");
	d9_kernel_places_fini(&p);
	d9_vec_free(&t.tails);
}
END_TEST

int main(void)
{
	const TTest *const with_trace[] = {joined_by_pid_start_and_tid,
					   another_start_is_another_process,
					   a_tid_that_comes_again,
					   what_only_the_kernel_saw_stays,
					   two_helpers_of_one_folder,
					   d9_kernel_is_believed_before_perf,
					   perf_says_what_it_saw,
					   a_folder_of_its_own,
					   one_file_and_a_torn_one,
					   values_of_no_sense,
					   a_poll_is_split,
					   a_late_return_to_the_loop_is_no_park,
					   unwatched_is_not_known,
					   a_part_that_was_watched,
					   histograms_have_the_short_waits,
					   kernel_delay,
					   kernel_delay_without_hooks,
					   cpu_oversubscribed,
					   noisy_neighbour,
					   who_had_the_cpu_by_how_long,
					   disk_stall_in_a_pool,
					   short_waits_for_a_disk_are_nothing,
					   a_poll_that_was_stopped,
					   page_fault_stall,
					   fd_table_growth};
	const TTest *const both_ways[] = {an_exec_divides_a_thread,
					  kernel_delay_critical_and_of_no_other_thread,
					  cpu_throttled,
					  cpu_oversubscribed,
					  kernel_delay_now_and_then,
					  disk_stall_in_a_job,
					  a_call_that_had_no_cpu,
					  a_call_that_did_not_sleep,
					  disk_stall_on_an_event_loop};
	Suite *s = suite_create("kernel");
	TCase *a = tcase_create("trace"), *b = tcase_create("plain");
	tcase_add_checked_fixture(a, setup, teardown);
	tcase_set_timeout(a, 30);
	for (size_t i = 0; i < sizeof(with_trace) / sizeof(with_trace[0]); i++)
		tcase_add_test(a, with_trace[i]);
	for (size_t i = 0; i < sizeof(both_ways) / sizeof(both_ways[0]); i++)
		tcase_add_loop_test(a, both_ways[i], 0, 2);
	tcase_add_test(b, names);
	suite_add_tcase(s, a);
	suite_add_tcase(s, b);
	return suite_run(s);
}
