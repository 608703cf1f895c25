/* The model's rules and the findings, on recordings with chosen times. */
#include "model_case.h"

#include "cli/fail_if.h"
#include "cli/model_internal.h"
#include "cli/show.h"
#include "cli/tasks.h"
#include "cli/timeline.h"

#include <stdarg.h>
#include <unistd.h>

static void only(const char *id)
{
	need(id);
	for (size_t i = 0; i < F.of.n; i++)
		ck_assert_msg(!strcmp(F.of.v[i].id, id), "also found %s: %s", F.of.v[i].id, F.of.v[i].title);
}

/* ---- rules --------------------------------------------------------------------------------------- */

START_TEST(r1_home_is_the_most_frequent_event_wait)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), rare = tb_site(&B, "poll", 0x2000, 4000, NULL);
	d9_u32 cond = tb_site(&B, "pthread_cond_wait", 0x3000, 9000, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_span(&B, 1, rare, (struct tb_span){.t0 = t, .t1 = t + MS(30)});
	for (int i = 0; i < 60; i++) /* more often, but no event wait */
		tb_span(&B, 1, cond, (struct tb_span){.t0 = t + MS(31 + i), .t1 = t + MS(31.5 + i), .object = 0x77});
	loop(1, home, t + MS(100), 3, 5);
	analyse();
	d9_u32 i = thread(100);
	ck_assert_int_eq(M->threads[i].role, D9_ROLE_WORKER);
	ck_assert_uint_eq(T->sites.v[M->threads[i].home].ra, 0x1000);
	ck_assert_int_eq(M->threads[i].home_fd, 5);
	ck_assert_uint_eq(M->threads[i].parks.n, 23);
}
END_TEST

/* Two threads that come there for the first time at once each give the place a number. */
START_TEST(a_place_with_two_numbers_is_one)
{
	d9_u32 a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), b = tb_site(&B, "epoll_wait", 0x1000, 400, NULL),
	       deeper = tb_site(&B, "epoll_wait", 0x1000, 408, NULL);
	ck_assert_uint_ne(a, b);
	tb_span(&B, 1, a, (struct tb_span){.t0 = MS(1), .t1 = MS(2)});
	tb_span(&B, 1, b, (struct tb_span){.t0 = MS(3), .t1 = MS(4)});
	tb_span(&B, 1, deeper, (struct tb_span){.t0 = MS(5), .t1 = MS(6)});
	analyse();
	const struct d9_trace_thread *th = &T->threads.v[thread(100)];
	ck_assert_uint_eq(th->spans.n, 3);
	ck_assert_uint_eq(th->spans.v[0].site, th->spans.v[1].site);
	ck_assert_uint_ne(th->spans.v[1].site, th->spans.v[2].site);
}
END_TEST

START_TEST(r2_nested_wait_is_no_park)
{
	/* the same function waits for another descriptor 21 KB deeper, inside a callback */
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL),
	       nested = tb_site(&B, "epoll_wait", 0x1000, 21400, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_span(&B, 1, nested, (struct tb_span){.t0 = t + MS(1), .t1 = t + MS(81), .fd = 9, .result = 1});
	loop(1, home, t + MS(82), 3, 5);
	analyse();
	d9_u32 i = thread(100);
	ck_assert_uint_eq(M->threads[i].parks.n, 23);
	const struct d9_finding *f = need("blocking-call");
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(80));
	ck_assert_uint_eq(measured(f, "poll_ns"), MS(83));
}
END_TEST

START_TEST(r3_depth_alone_does_not_decide)
{
	/* interpreted and compiled frames of one park differ by some bytes; a sleep that is shallower is still none */
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 4000, NULL),
	       jit = tb_site(&B, "epoll_wait", 0x1000, 4064, NULL);
	d9_u32 sleep = tb_site(&B, "nanosleep", 0x4000, 3000, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	t = loop(1, jit, t, 2, 5);
	for (int k = 0; k < 4; k++)
		tb_span(&B, 1, sleep, (struct tb_span){.t0 = t + MS(12 * k), .t1 = t + MS(12 * k + 11)});
	loop(1, home, t + MS(60), 3, 5);
	analyse();
	ck_assert_uint_eq(M->threads[thread(100)].parks.n, 25);
	ck_assert_uint_eq(M->threads[thread(100)].homes.n, 2);
	need("blocking-call");
}
END_TEST

START_TEST(r4_distance_in_the_code)
{
	const d9_u64 poll[] = {0x1000, 0x50, 0x40, 0x30, 0}, cond[] = {0x3000, 0x50, 0x40, 0x30, 0},
		     handler[] = {0x3100, 0x91, 0x92, 0x93, 0x94, 0x50, 0x40, 0x30, 0}, other[] = {0x3200, 0x61, 0},
		     twin[] = {0x3300, 0x51, 0x50, 0x40, 0x30, 0};
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, poll),
	       near = tb_site(&B, "pthread_cond_wait", 0x3000, 300, cond);
	d9_u32 deep = tb_site(&B, "pthread_cond_wait", 0x3100, 900, handler),
	       apart = tb_site(&B, "sem_wait", 0x3200, 390, other);
	d9_u64 t = loop(1, home, 0, 20, 5);
	d9_u32 second = tb_site(&B, "poll", 0x3300, 500, twin); /* two frames away */
	d9_u32 sites[] = {near, deep, apart, second};
	for (int s = 0; s < 4; s++)
		for (int k = 0; k < 4; k++, t += MS(4))
			tb_span(&B, 1, sites[s],
				(struct tb_span){.t0 = t, .t1 = t + MS(3), .object = 0x500 + (d9_u64)s});
	loop(1, home, t, 3, 5);
	analyse();
	d9_u32 i = thread(100);
	ck_assert_uint_eq(M->threads[i].homes.n, 3);
	ck_assert_uint_eq(M->threads[i].parks.n, 31);
	int left;
	ck_assert_int_eq(d9_model_distance(M, M->threads[i].home, M->threads[i].homes.v[1], &left), 1);
}
END_TEST

START_TEST(r5_probe_and_wait_are_one_park)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	d9_u64 t = 0;
	for (int k = 0; k < 20; k++, t += MS(10)) {
		tb_span(&B, 1, home, (struct tb_span){.t0 = t, .t1 = t + US(1), .fd = 5, .result = 0});
		tb_span(&B, 1, home, (struct tb_span){.t0 = t + US(2), .t1 = t + MS(8), .fd = 5, .result = 1});
	}
	for (int k = 0; k < 5; k++, t += MS(1)) { /* asyncio: callbacks for 20 us after a look that found nothing */
		tb_span(&B, 1, home, (struct tb_span){.t0 = t, .t1 = t + US(1), .fd = 5, .result = 0});
		tb_span(&B, 1, home, (struct tb_span){.t0 = t + US(21), .t1 = t + US(900), .fd = 5, .result = 1});
	}
	analyse();
	ck_assert_uint_eq(M->threads[thread(100)].parks.n, 30);
}
END_TEST

START_TEST(r5_a_wait_that_timed_out_is_no_probe)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	for (int k = 0; k < 7; k++) /* 50 ms with nothing to do, and again at once */
		tb_span(&B, 1, home,
			(struct tb_span){.t0 = MS(50 * k), .t1 = MS(50 * k + 50) - US(2), .fd = 5, .result = 0});
	analyse();
	ck_assert_uint_eq(M->threads[thread(100)].parks.n, 7);
	ck_assert_int_eq(M->threads[thread(100)].role, D9_ROLE_WORKER);
}
END_TEST

START_TEST(r6_null_wakeups_are_counted_apart)
{
	d9_u32 wait = tb_site(&B, "pthread_cond_wait", 0x3000, 400, NULL);
	tb_thread(&B, 2, 0, 102, "pool-1");
	tb_thread(&B, 3, 0, 103, "pool-2");
	for (d9_u32 th = 2; th <= 3; th++) {
		d9_u64 t = 0;
		for (int k = 0; k < 20; k++, t += MS(10)) {
			tb_span(&B, th, wait, (struct tb_span){.t0 = t, .t1 = t + MS(4), .object = 0x900});
			tb_span(&B, th, wait,
				(struct tb_span){.t0 = t + MS(4) + US(0.5), .t1 = t + MS(9), .object = 0x900});
		}
	}
	analyse();
	ck_assert_uint_eq(M->threads[thread(102)].null_polls, 20);
	ck_assert_uint_eq(M->threads[thread(102)].polls.n, 19);
	nothing();
}
END_TEST

START_TEST(r7_pools_by_object)
{
	d9_u32 wait = tb_site(&B, "pthread_cond_wait", 0x3000, 400, NULL);
	for (d9_u32 th = 2; th <= 9; th++) {
		char name[16];
		snprintf(name, sizeof(name), "io-%u", th);
		tb_thread(&B, th, 0, 100 + (d9_i32)th, name);
		for (int k = 0; k < 6; k++)
			tb_span(&B, th, wait,
				(struct tb_span){
					.t0 = MS(10 * k), .t1 = MS(10 * k + 9), .object = th < 6 ? 0x900 : 0xa00});
	}
	analyse();
	const struct d9_model_thread *a = &M->threads[thread(102)], *b = &M->threads[thread(105)],
				     *c = &M->threads[thread(106)];
	ck_assert_int_eq(a->role, D9_ROLE_POOL);
	ck_assert_uint_eq(a->pool, b->pool);
	ck_assert_uint_ne(a->pool, c->pool);
	ck_assert_uint_eq(M->pools.v[a->pool].threads.n, 4);
	ck_assert_str_eq(M->pools.v[a->pool].name, "io pool");
}
END_TEST

START_TEST(worker_rule)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), nap = tb_site(&B, "nanosleep", 0x2000, 300, NULL);
	loop(1, home, 0, 4, 5); /* four cycles, parked 90 % */
	tb_thread(&B, 2, 0, 102, "once");
	tb_span(&B, 2, home, (struct tb_span){.t0 = 0, .t1 = MS(1), .fd = 6});
	tb_span(&B, 2, nap, (struct tb_span){.t0 = MS(1), .t1 = MS(400)});
	tb_thread(&B, 3, 0, 103, "looks"); /* polls without waiting, sleeps in between */
	for (int k = 0; k < 40; k++) {
		tb_span(&B, 3, home, (struct tb_span){.t0 = MS(20 * k), .t1 = MS(20 * k) + US(2), .fd = 7});
		tb_span(&B, 3, nap, (struct tb_span){.t0 = MS(20 * k) + US(10), .t1 = MS(20 * k + 19)});
	}
	analyse();
	ck_assert_int_eq(M->threads[thread(100)].role, D9_ROLE_WORKER);
	ck_assert_int_eq(M->threads[thread(102)].role, D9_ROLE_OTHER);
	ck_assert_int_eq(M->threads[thread(103)].role, D9_ROLE_OTHER);
	nothing();
}
END_TEST

START_TEST(times_add_up)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), rd = tb_site(&B, "read", 0x5000, 900, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_span(&B, 1, rd, (struct tb_span){.t0 = t, .t1 = t + MS(5), .fd = 3});
	loop(1, home, t + MS(10), 5, 5);
	tb_cpu(&B, 1, t, MS(12), MS(3));
	tb_cpu(&B, 1, t + MS(59), MS(16), MS(4));
	analyse();
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	ck_assert_uint_eq(mt->parked, MS(25 * 9));
	ck_assert_uint_eq(mt->blocked, MS(5));
	ck_assert_uint_eq(mt->busy, MS(16));
	ck_assert_uint_eq(mt->runnable, MS(4));
	ck_assert_uint_eq(mt->busy + mt->parked + mt->blocked + mt->runnable + mt->unexplained, mt->wall);
}
END_TEST

/* ---- what was not seen ------------------------------------------------------------------------------- */

static d9_u64 longest_poll(d9_u32 th)
{
	d9_u64 longest = 0;
	for (size_t i = 0; i < M->threads[th].polls.n; i++) {
		const struct d9_poll *p = &M->threads[th].polls.v[i];
		longest = p->t1 - p->t0 > longest ? p->t1 - p->t0 : longest;
	}
	return longest;
}

/* A loop, then a second of which nothing was recorded, then the loop again. */
static void with_a_hole(bool lost)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	d9_u64 from = loop(1, home, 0, 20, 5) + MS(4), to = from + MS(1000);
	tb_cpu(&B, 1, from - MS(5), MS(20), 0);
	if (lost) {
		tb_gap(&B, 1, from, to, 99);
	} else {
		tb_control(&B, 0, 7);
		tb_control(&B, from, 0);
		tb_control(&B, to, 7);
	}
	(void)loop(1, home, to + MS(5), 20, 5);
	tb_cpu(&B, 1, to + MS(205), MS(800), 0);
	analyse();
}

static void nothing_is_said_of_the_hole(void)
{
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	nothing();
	ck_assert_int_eq(mt->role, D9_ROLE_WORKER);
	ck_assert_uint_eq(mt->polls.n, 38);
	ck_assert_uint_eq(longest_poll(thread(100)), MS(1));
	ck_assert_uint_eq(mt->parked, MS(40 * 9));
	ck_assert_uint_eq(d9_hole_time(&mt->holes, mt->begin, mt->end), MS(1000));
}

START_TEST(off_for_a_second)
{
	with_a_hole(false);
	nothing_is_said_of_the_hole();
	ck_assert_uint_eq(d9_model_off(M, &T->procs.v[0]), MS(1000));
}
END_TEST

START_TEST(lost_for_a_second)
{
	with_a_hole(true);
	nothing_is_said_of_the_hole();
	ck_assert_uint_eq(d9_model_off(M, &T->procs.v[0]), 0);
}
END_TEST

/* Off from the start, on for a while, off to the end. */
START_TEST(on_for_a_while)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	tb_control(&B, 0, 0);
	tb_control(&B, MS(500), 7);
	d9_u64 t = loop(1, home, MS(510), 20, 5);
	tb_control(&B, t, 0);
	tb_exit(&B, 1, t + MS(300), 1, 0);
	analyse();
	nothing();
	ck_assert_uint_eq(d9_model_off(M, &T->procs.v[0]), MS(500) + MS(300));
	ck_assert_uint_eq(M->threads[thread(100)].polls.n, 19);
	ck_assert(M->threads[thread(100)].busy <= MS(30));
}
END_TEST

/* A call that was seen is told of whatever was lost around it; how long the poll was is not known. */
START_TEST(a_slow_call_before_a_hole)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), nap = tb_site(&B, "nanosleep", 0x2000, 500, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_span(&B, 1, nap, (struct tb_span){.t0 = t, .t1 = t + MS(300)});
	tb_gap(&B, 1, t + MS(310), t + MS(800), 9);
	(void)loop(1, home, t + MS(900), 20, 5);
	analyse();
	only("blocking-call");
	ck_assert_uint_eq(measured(need("blocking-call"), "blocked_ns"), MS(300));
	ck_assert_uint_eq(measured(need("blocking-call"), "poll_ns"), MS(301));
}
END_TEST

/* ---- findings -------------------------------------------------------------------------------------- */

/* One poll of dur in a healthy loop; the CPU clock ran for on_cpu of it, and the thread waited delay for a CPU. */
static void one_long_poll(d9_u64 dur, d9_u64 on_cpu, d9_u64 delay)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_cpu(&B, 1, t - MS(1), MS(20), MS(2));
	tb_cpu(&B, 1, t - MS(1) + dur, MS(20) + on_cpu, MS(2) + delay);
	loop(1, home, t - MS(1) + dur, 5, 5);
	analyse();
}

START_TEST(long_poll)
{
	one_long_poll(MS(260), MS(255), 0);
	only("long-poll");
	const struct d9_finding *f = need("long-poll");
	ck_assert_int_eq(f->severity, D9_CRITICAL);
	ck_assert(!f->inferred);
	ck_assert_uint_eq(measured(f, "poll_ns"), MS(260));
	ck_assert_uint_eq(measured(f, "on_cpu_ns"), MS(255));
	ck_assert_uint_eq(f->to - f->from, MS(260));
}
END_TEST

START_TEST(long_poll_warns_above_10_ms)
{
	one_long_poll(MS(12), MS(11), 0);
	ck_assert_int_eq(need("long-poll")->severity, D9_WARNING);
}
END_TEST

START_TEST(short_poll_is_fine)
{
	one_long_poll(MS(9.5), MS(9.5), 0);
	nothing();
}
END_TEST

START_TEST(waiting_for_a_cpu_is_no_long_poll)
{
	one_long_poll(MS(60), MS(4), MS(56));
	nothing();
	struct d9_split s = {0};
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	for (size_t i = 0; i < mt->polls.n; i++)
		if (mt->polls.v[i].t1 - mt->polls.v[i].t0 == MS(60))
			s = d9_model_split(M, thread(100), &mt->polls.v[i]);
	ck_assert_uint_eq(s.on_cpu, MS(4));
	ck_assert_uint_eq(s.runnable, MS(56));
	ck_assert_uint_eq(s.unexplained, 0);
}
END_TEST

START_TEST(unexplained_is_no_long_poll)
{
	one_long_poll(MS(60), MS(4), 0);
	nothing();
}
END_TEST

START_TEST(unmeasured_is_no_long_poll)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	loop(1, home, t + MS(300), 5, 5);
	analyse();
	nothing();
}
END_TEST

/* A call inside a poll of a healthy loop. */
static void one_call(const char *hook, d9_u64 dur, d9_u64 delay)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), site = tb_site(&B, hook, 0x5000, 900, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_cpu(&B, 1, t, MS(20), MS(2));
	tb_span(&B, 1, site, (struct tb_span){.t0 = t, .t1 = t + dur, .fd = 3, .result = 1});
	tb_cpu(&B, 1, t + dur, MS(20) + US(20), MS(2) + delay);
	loop(1, home, t + dur, 5, 5);
	analyse();
}

START_TEST(blocking_call)
{
	one_call("read", MS(300), 0);
	only("blocking-call");
	const struct d9_finding *f = need("blocking-call");
	ck_assert_int_eq(f->severity, D9_CRITICAL);
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(300));
	ck_assert_uint_eq(measured(f, "poll_ns"), MS(301));
	ck_assert_str_eq(f->cause.kind, "read");
	ck_assert_int_eq(f->cause.fd, 3);
}
END_TEST

START_TEST(blocking_call_warning)
{
	one_call("nanosleep", MS(20), 0);
	ck_assert_int_eq(need("blocking-call")->severity, D9_WARNING);
}
END_TEST

START_TEST(short_call_is_fine)
{
	one_call("open", MS(9), 0);
	nothing();
}
END_TEST

START_TEST(preempted_call_is_no_blocking_call)
{
	one_call("send", MS(30), MS(28));
	nothing();
}
END_TEST

START_TEST(a_sleep_is_a_sleep_on_a_busy_machine)
{
	one_call("nanosleep", MS(250), MS(130));
	only("blocking-call");
}
END_TEST

/* The interpreter's lock: a condition beside libpython's code; the loop has to win it back after each wake-up. */
static void gil(d9_u64 wait, unsigned n)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL),
	       cond = tb_site(&B, "pthread_cond_timedwait", 0x700100, 600, NULL);
	tb_module(&B, 1, 0, 0x700000, 0x780000, "/usr/lib/libpython3.11.so.1.0");
	tb_thread(&B, 2, 0, 102, "hog");
	d9_u64 t = loop(1, home, 0, 20, 5);
	for (unsigned k = 0; k < n; k++) {
		tb_span(&B, 1, cond,
			(struct tb_span){
				.t0 = t, .t1 = t + wait, .object = 0x790000, .waker = 3, .waker_t = t + wait - US(5)});
		tb_span(&B, 2, cond,
			(struct tb_span){.t0 = t + wait,
					 .t1 = t + wait + US(40),
					 .object = 0x790000,
					 .waker = 2,
					 .waker_t = t + wait + US(30)});
		t = loop(1, home, t + wait + MS(1), 1, 5);
	}
	analyse();
}

START_TEST(gil_contention)
{
	gil(MS(20), 40);
	only("gil-contention");
	ck_assert_uint_eq(measured(need("gil-contention"), "wait_p50_ns") / 1000000, 20);
	ck_assert_uint_eq(measured(need("gil-contention"), "count"), 40);
	ck_assert_uint_eq(need("gil-contention")->cause.owner_tid, 102);
	ck_assert_int_eq(M->threads[thread(102)].role, D9_ROLE_OTHER);
}
END_TEST

START_TEST(a_gil_won_now_and_then_is_fine)
{
	gil(MS(5), 12);
	nothing();
}
END_TEST

/* A call or a lock wait of 24 ms, and nobody read how long the thread waited for a CPU. */
static void unmeasured_call(const char *hook, d9_u64 object, d9_u64 dur)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), site = tb_site(&B, hook, 0x5000, 900, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_span(&B, 1, site,
		(struct tb_span){.t0 = t, .t1 = t + dur, .fd = object ? 0 : 3, .object = object, .result = 1});
	loop(1, home, t + dur, 5, 5);
	analyse();
}

START_TEST(unmeasured_recv)
{
	unmeasured_call("recv", 0, MS(24));
	nothing();
}
END_TEST

START_TEST(unmeasured_lock_wait)
{
	unmeasured_call("pthread_mutex_lock", 0xabc, MS(24));
	nothing();
}
END_TEST

START_TEST(unmeasured_fsync)
{
	unmeasured_call("fsync", 0, MS(24));
	only("blocking-call");
}
END_TEST

START_TEST(short_fsync)
{
	unmeasured_call("fsync", 0, MS(9.5));
	nothing();
}
END_TEST

START_TEST(hot_lock_with_one_slow_holder)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL), rd = tb_site(&B, "read", 0x2000, 300, NULL);
	for (d9_u32 th = 2; th <= 5; th++)
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "w");
	tb_span(&B, 2, rd, (struct tb_span){.t0 = MS(200), .t1 = MS(220), .fd = 4, .result = 1});
	for (d9_u32 th = 3; th <= 5; th++)
		for (int k = 0; k < 60; k++) {
			d9_u64 t0 = MS(10 * k), t1 = MS(10 * k + (k == 20 ? 9.5 : 4));
			tb_span(&B, th, lock, (struct tb_span){.t0 = t0, .t1 = t1, .object = 0xabc, .owner = 102});
		}
	analyse();
	only("lock-contention");
}
END_TEST

START_TEST(a_loop_that_holds_is_not_told_twice)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL),
	       lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 900, NULL);
	d9_u32 rd = tb_site(&B, "read", 0x2000, 300, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_thread(&B, 2, 0, 102, "waiter");
	tb_span(&B, 1, rd, (struct tb_span){.t0 = t, .t1 = t + MS(200), .fd = 4, .result = 1});
	tb_span(&B, 2, lock, (struct tb_span){.t0 = t + MS(10), .t1 = t + MS(200), .object = 0xabc, .owner = 100});
	loop(1, home, t + MS(200), 5, 5);
	analyse();
	only("lock-holder-io");
	ck_assert_uint_eq(F.of.n, 1);
}
END_TEST

/* Four threads open a FIFO; an idle fifth of their pool would have had room. */
static void pool(bool idle_fifth, bool they_wait_for_work)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), op = tb_site(&B, "open", 0x5000, 900, NULL);
	d9_u32 work = tb_site(&B, "pthread_cond_wait", 0x3000, 300, NULL);
	loop(1, home, 0, 60, 5);
	for (d9_u32 th = 2; th <= (idle_fifth ? 6u : 5u); th++) {
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "uv");
		for (int k = 0; k < 4 && they_wait_for_work; k++)
			tb_span(&B, th, work,
				(struct tb_span){.t0 = MS(10 * k), .t1 = MS(10 * k + 9), .object = 0x900});
		if (th == 6)
			tb_span(&B, th, work, (struct tb_span){.t0 = MS(45), .t1 = MS(500), .object = 0x900});
		else
			tb_span(&B, th, op, (struct tb_span){.t0 = MS(50), .t1 = MS(380), .result = 9});
	}
	analyse();
}

START_TEST(pool_saturated)
{
	pool(false, true);
	only("pool-saturated");
	ck_assert_uint_eq(measured(need("pool-saturated"), "pool_threads"), 4);
	ck_assert_uint_eq(measured(need("pool-saturated"), "blocked_ns"), MS(330));
	ck_assert_uint_eq(measured(need("pool-saturated"), "queue_wait_ns"), D9_NOT_KNOWN);
	ck_assert(need("pool-saturated")->inferred);
}
END_TEST

/* A job of Tokio that was made at 100 ms and polled by the first thread at 390: it waited, and that was seen. */
START_TEST(pool_saturated_with_jobs)
{
	B.runtime_module = 1;
	tb_thread(&B, 2, 0, 102, "uv");
	for (int i = 0; i < 2; i++) {
		tb_seen(&B, 2, 7 + i, 1u << 24, MS(390 + 10 * i),
			(struct tb_maker){.t = MS(100 + 50 * i), .thread = 1, .flags = D9_SPAWN_EXACT | D9_SPAWN_JOB});
		tb_poll(&B, 2, 7 + i, 1u << 24, D9_NO_INDEX, MS(390 + 10 * i), MS(395 + 10 * i));
	}
	pool(false, true);
	only("pool-saturated");
	ck_assert_uint_eq(measured(need("pool-saturated"), "queue_wait_ns"), MS(290));
	ck_assert(!need("pool-saturated")->inferred);
}
END_TEST

START_TEST(pool_with_room)
{
	pool(true, true);
	nothing();
}
END_TEST

START_TEST(siblings_that_sleep_are_no_pool)
{
	pool(false, false);
	nothing();
}
END_TEST

START_TEST(sleeping_main_is_no_worker)
{
	d9_u32 nap = tb_site(&B, "nanosleep", 0x2000, 300, NULL);
	for (int k = 0; k < 20; k++)
		tb_span(&B, 1, nap, (struct tb_span){.t0 = MS(100 * k), .t1 = MS(100 * k + 99)});
	analyse();
	ck_assert_int_eq(M->threads[thread(100)].role, D9_ROLE_MAIN);
	nothing();
}
END_TEST

static void starve(bool somebody_polls)
{
	const d9_u64 ep[] = {0x1000, 0x51, 0x50, 0x40, 0}, park[] = {0x3000, 0x50, 0x40, 0};
	d9_u32 epoll = tb_site(&B, "epoll_wait", 0x1000, 400, ep), futex = tb_site(&B, "futex_wait", 0x3000, 380, park);
	d9_u32 nap = tb_site(&B, "nanosleep", 0x5000, 900, NULL);
	for (d9_u32 th = 2; th <= 4; th++)
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "tokio-worker");
	d9_u64 t = loop(2, epoll, 0, 20, 5);
	for (d9_u32 th = 3; th <= 4; th++) {
		for (int k = 0; k < 5; k++)
			tb_span(&B, th, futex,
				(struct tb_span){.t0 = MS(20 * k), .t1 = MS(20 * k + 19), .object = 0x900 + th});
		tb_span(&B, th, epoll, (struct tb_span){.t0 = MS(101), .t1 = MS(101) + US(5), .fd = 5, .result = 0});
		tb_span(&B, th, futex, (struct tb_span){.t0 = MS(110), .t1 = t + MS(500), .object = 0x900 + th});
	}
	for (int k = 0; k < 3; k++)
		tb_span(&B, 2, futex, (struct tb_span){.t0 = t + MS(k), .t1 = t + MS(k + 0.5), .object = 0x902});
	tb_span(&B, 2, epoll, (struct tb_span){.t0 = t + MS(4), .t1 = t + MS(5), .fd = 5, .result = 1});
	tb_span(&B, 2, nap, (struct tb_span){.t0 = t + MS(5), .t1 = t + MS(405)});
	loop(2, epoll, t + MS(406), 3, 5);
	if (somebody_polls) {
		tb_thread(&B, 5, 0, 105, "tokio-worker");
		loop(5, epoll, t, 60, 5);
	}
	analyse();
}

START_TEST(driver_starved)
{
	starve(false);
	only("driver-starved");
	const struct d9_finding *f = need("driver-starved");
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(400));
	ck_assert_uint_ge(measured(f, "late_ns"), MS(400));
	ck_assert_uint_eq(measured(f, "idle_workers"), 2);
	ck_assert_int_eq(M->threads[thread(103)].role, D9_ROLE_WORKER);
}
END_TEST

START_TEST(driver_not_starved_if_a_sibling_polls)
{
	starve(true);
	only("blocking-call");
}
END_TEST

/* The same, and it sleeps still when the recording ends; a sibling waits for events or for being called. */
static void starve_to_the_end(bool somebody_polls)
{
	d9_u32 epoll = tb_site(&B, "epoll_wait", 0x1000, 400, NULL),
	       futex = tb_site(&B, "futex_wait", 0x3000, 380, NULL);
	d9_u32 nap = tb_site(&B, "nanosleep", 0x5000, 900, NULL);
	for (d9_u32 th = 2; th <= 3; th++)
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "tokio-worker");
	B.runtime_module = 1;
	d9_u64 t = loop(2, epoll, 0, 20, 5);
	if (somebody_polls) {
		(void)loop(3, epoll, 0, 20, 5);
		tb_waits(&B, 3, epoll, t + MS(2), t + MS(400), 5);
	} else {
		tb_pending(&B, 3, futex, MS(1), t + MS(400), 0x903, 0);
	}
	tb_in_poll(&B, 2, 7, 1u << 24 | 2, 0, t, t + MS(400));
	tb_pending(&B, 2, nap, t, t + MS(400), 0, 0);
	analyse();
}

START_TEST(driver_starved_so_far)
{
	starve_to_the_end(false);
	only("driver-starved");
	const struct d9_finding *f = need("driver-starved");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(400));
	ck_assert_uint_eq(measured(f, "late_ns"), MS(401));
	ck_assert_uint_eq(measured(f, "idle_workers"), 1);
	ck_assert(strstr(f->title, "has sat in nanosleep for 400 ms so far and nobody else polled for events"));
}
END_TEST

START_TEST(driver_not_starved_if_a_sibling_polls_still)
{
	starve_to_the_end(true);
	only("blocking-call");
}
END_TEST

/* S11: four threads, one lock, a nap under it. */
START_TEST(lock_contention)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL),
	       nap = tb_site(&B, "nanosleep", 0x2000, 300, NULL);
	for (d9_u32 th = 2; th <= 5; th++)
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "w");
	for (int k = 0; k < 400; k++) { /* thread k % 4 holds it in its millisecond, and has waited three */
		d9_u32 th = 2 + (d9_u32)k % 4;
		if (k >= 4)
			tb_span(&B, th, lock,
				(struct tb_span){.t0 = MS(k - 2.75),
						 .t1 = MS(k),
						 .object = 0xabc,
						 .owner = 102 + ((d9_u32)k + 1) % 4,
						 .waker = 2 + ((d9_u32)k + 3) % 4 + 1,
						 .waker_t = MS(k)});
		tb_span(&B, th, nap, (struct tb_span){.t0 = MS(k), .t1 = MS(k + 1)});
	}
	analyse();
	only("lock-contention");
	const struct d9_finding *f = need("lock-contention");
	ck_assert_uint_ge(measured(f, "share"), 600);
	ck_assert_uint_le(measured(f, "share"), 750);
	ck_assert_uint_eq(measured(f, "waiters"), 4);
	ck_assert_uint_eq(measured(f, "wait_total_ns"), 396 * MS(2.75));
	ck_assert_uint_eq(f->cause.object, 0xabc);
}
END_TEST

START_TEST(a_little_contention_is_fine)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL);
	for (d9_u32 th = 2; th <= 5; th++) {
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "w");
		for (int k = 0; k < 100; k++)
			tb_span(&B, th, lock,
				(struct tb_span){
					.t0 = MS(10 * k), .t1 = MS(10 * k) + US(700), .object = 0xabc, .owner = 102});
	}
	analyse();
	nothing();
}
END_TEST

static void holder(const char *hook, int fd, double dur_ms)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL), call = tb_site(&B, hook, 0x2000, 300, NULL);
	tb_thread(&B, 2, 0, 102, "holder");
	tb_span(&B, 2, call, (struct tb_span){.t0 = MS(10), .t1 = MS(10 + dur_ms), .fd = fd, .result = 1});
	for (d9_u32 th = 3; th <= 5; th++) {
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "waiter");
		tb_span(&B, th, lock,
			(struct tb_span){.t0 = MS(30), .t1 = MS(10.1 + dur_ms), .object = 0xabc, .owner = 102});
	}
	analyse();
}

START_TEST(lock_holder_io)
{
	holder("read", 7, 270);
	only("lock-holder-io");
	const struct d9_finding *f = need("lock-holder-io");
	ck_assert_uint_eq(measured(f, "holder_ns"), MS(270));
	ck_assert_uint_eq(measured(f, "wait_total_ns"), 3 * (MS(280.1) - MS(30)));
	ck_assert_uint_eq(measured(f, "waiters"), 3);
	ck_assert_int_eq(T->threads.v[f->thread].tid, 102);
	ck_assert_str_eq(f->cause.kind, "read");
	ck_assert(!f->inferred);
	const struct d9_lock *l = d9_model_lock(M, T->threads.v[f->thread].proc, 0xabc);
	ck_assert_uint_eq(l->holders.n, 1);
	ck_assert_int_eq(l->holders.v[0].known_by, D9_KNOWN_OWNER_WORD);
	ck_assert_uint_eq(l->holders.v[0].total, MS(280.1) - MS(30));
	ck_assert_uint_eq(l->holders.v[0].inside.v[0].total, MS(250));
}
END_TEST

/* The same place again and again, under whatever locks: one finding, told by the worst. */
START_TEST(lock_holder_io_at_one_place)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL), rd = tb_site(&B, "read", 0x2000, 300, NULL);
	for (d9_u32 th = 2; th <= 4; th++)
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "w");
	for (int i = 0; i < 6; i++) { /* each holds it in turn, the third time for longest */
		d9_u32 th = 2 + (d9_u32)i % 3, other = 2 + (d9_u32)(i + 1) % 3;
		d9_u64 t = MS(200 * i), until = t + MS(i == 3 ? 90 : 60);
		tb_span(&B, th, rd, (struct tb_span){.t0 = t, .t1 = until, .fd = 4, .result = 1});
		tb_span(&B, other, lock,
			(struct tb_span){
				.t0 = t + MS(1), .t1 = until, .object = 0xab0 + (d9_u64)i % 2, .owner = 100 + th});
	}
	analyse();
	only("lock-holder-io");
	const struct d9_finding *f = need("lock-holder-io");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert_uint_eq(f->count, 6);
	ck_assert_uint_eq(measured(f, "holder_ns"), MS(90));
	ck_assert_uint_eq(measured(f, "wait_total_ns"), MS(89));
	ck_assert_uint_eq(measured(f, "waiters"), 1);
	ck_assert_uint_eq(f->from - T->t_begin, MS(600));
	ck_assert_uint_eq(f->victims.n, 3);
	ck_assert_uint_eq(f->victims.v[0].waited, MS(89 + 59));
}
END_TEST

START_TEST(what_names_say_of_a_futex)
{
	static const struct {
		const char *names[5];
		enum d9_site_says says;
	} of[] = {{{"std::sys::pal::unix::futex::futex_wait", "std::sys::sync::mutex::futex::Mutex::lock_contended"},
		   D9_SAYS_LOCK},
		  {{"std::sys::pal::unix::futex::futex_wait", "<std::sys::sync::condvar::futex::Condvar>::wait",
		    "app::Mutex"},
		   D9_SAYS_NO_LOCK},
		  {{"std::thread::park", "app::lock_slow"}, D9_SAYS_NO_LOCK},
		  {{"app::main"}, D9_SAYS_NOTHING},
		  {{"parking_lot_core::thread_parker::imp::ThreadParker::futex_wait",
		    "<parking_lot_core::thread_parker::imp::ThreadParker as parking_lot_core::ThreadParkerT>::park",
		    "parking_lot_core::parking_lot::park", "parking_lot::raw_mutex::RawMutex::lock_slow"},
		   D9_SAYS_LOCK_BEHIND},
		  {{"parking_lot_core::parking_lot::park::<<parking_lot::raw_rwlock::RawRwLock>::lock_common>",
		    "<parking_lot::raw_rwlock::RawRwLock>::lock_shared_slow"},
		   D9_SAYS_LOCK_BEHIND},
		  {{"parking_lot_core::parking_lot::park", "parking_lot::condvar::Condvar::wait_until_internal",
		    "app::lock_slow"},
		   D9_SAYS_NO_LOCK},
		  {{"parking_lot_core::parking_lot::park", "parking_lot::once::Once::call_once_slow", "app::Mutex"},
		   D9_SAYS_NO_LOCK},
		  {{"parking_lot_core::parking_lot::park"}, D9_SAYS_NO_LOCK},
		  {{NULL, "parking_lot::raw_mutex::RawMutex::lock_slow"}, D9_SAYS_LOCK_BEHIND}};
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct d9_frame frames[5] = {{0}};
		for (size_t k = 0; k < 5; k++)
			frames[k].symbol = of[i].names[k];
		ck_assert_msg(d9_names_say(frames, 5) == of[i].says, "%zu: %s", i, of[i].names[0]);
	}
}
END_TEST

START_TEST(short_holder_is_fine)
{
	holder("read", 7, 22);
	nothing();
}
END_TEST

START_TEST(log_pipe_stall)
{
	holder("write", 1, 500);
	only("log-pipe-stall");
	const struct d9_finding *f = need("log-pipe-stall");
	ck_assert_uint_eq(measured(f, "fd"), 1);
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(500));
	ck_assert_uint_eq(measured(f, "waiters"), 3);
}
END_TEST

/* A convoy: each waiter was woken by the one before it, the first by the writer. */
START_TEST(convoy_ends_at_its_root)
{
	d9_u32 lock = tb_site(&B, "futex_wait", 0x6000, 300, NULL), wr = tb_site(&B, "write", 0x2000, 300, NULL);
	for (d9_u32 th = 2; th <= 5; th++)
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "w");
	tb_span(&B, 2, wr, (struct tb_span){.t0 = 0, .t1 = MS(500), .fd = 2, .result = 1});
	for (d9_u32 th = 3; th <= 5; th++)
		tb_span(&B, th, lock,
			(struct tb_span){.t0 = MS(20),
					 .t1 = MS(500 + th),
					 .object = 0x77,
					 .waker = th,
					 .waker_t = MS(499 + th)});
	analyse();
	only("log-pipe-stall");
	ck_assert_uint_eq(measured(need("log-pipe-stall"), "waiters"), 3);
	ck_assert(need("log-pipe-stall")->inferred);
}
END_TEST

START_TEST(slow_stdout_alone_is_fine)
{
	d9_u32 wr = tb_site(&B, "write", 0x2000, 300, NULL);
	for (int k = 0; k < 10; k++)
		tb_span(&B, 1, wr, (struct tb_span){.t0 = MS(100 * k), .t1 = MS(100 * k + 90), .fd = 1, .result = 1});
	analyse();
	nothing();
}
END_TEST

/* S14: three wait for a lock whose owner waits for their signal. */
static void cond_cycle(double ms)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL),
	       cond = tb_site(&B, "pthread_cond_wait", 0x6100, 300, NULL);
	tb_thread(&B, 2, 0, 102, "registrar");
	for (d9_u32 th = 3; th <= 5; th++) {
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "worker");
		tb_pending(&B, th, lock, MS(1), MS(1 + ms), 0xa, 102);
	}
	tb_pending(&B, 2, cond, MS(1), MS(1 + ms), 0xc, 0);
	analyse();
}

START_TEST(deadlock_through_a_condition)
{
	cond_cycle(790);
	only("deadlock-cycle");
	const struct d9_finding *f = need("deadlock-cycle");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert_uint_eq(measured(f, "pending_ns"), MS(790));
	ck_assert_uint_eq(measured(f, "cycle"), 2);
	ck_assert_uint_eq(measured(f, "waiters"), 4);
	ck_assert(f->inferred);
}
END_TEST

START_TEST(short_condition_wait_is_no_deadlock)
{
	cond_cycle(300);
	nothing();
}
END_TEST

/* S25: two semaphores, opposite order. */
static void abba(const char *how, bool cross)
{
	d9_u32 sem = tb_site(&B, how, 0x6000, 300, NULL);
	tb_thread(&B, 2, 0, 102, "one");
	tb_thread(&B, 3, 0, 103, "two");
	tb_held(&B, 2, 0xa0, MS(1), MS(800));
	tb_held(&B, 3, cross ? 0xb0 : 0xc0, MS(1), MS(800));
	tb_pending(&B, 2, sem, MS(50), MS(800), 0xb0, 0);
	tb_pending(&B, 3, sem, MS(50), MS(800), 0xa0, 0);
	analyse();
}

START_TEST(deadlock_of_two)
{
	abba("sem_wait", true);
	only("deadlock-cycle");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert_uint_eq(measured(need("deadlock-cycle"), "cycle"), 2);
	ck_assert(!need("deadlock-cycle")->inferred);
}
END_TEST

START_TEST(waits_that_end_by_themselves_are_no_deadlock)
{
	abba("sem_timedwait", true);
	nothing();
}
END_TEST

START_TEST(waiting_in_a_row_is_no_deadlock)
{
	abba("sem_wait", false);
	nothing();
}
END_TEST

START_TEST(self_deadlock)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL);
	tb_pending(&B, 1, lock, MS(50), MS(800), 0xb0, 100);
	analyse();
	only("self-deadlock");
	ck_assert_uint_eq(measured(need("self-deadlock"), "pending_ns"), MS(750));
}
END_TEST

/* A lock by its kind, nobody seen to have it, in a task's poll; elsewhere: another thread polls tasks of that runtime too. */
static void lonely(bool elsewhere, bool worker)
{
	const d9_u32 rt = 1u << 24 | 2;
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL);
	B.runtime_module = 1;
	tb_thread(&B, 2, 0, 101, "other");
	tb_poll(&B, elsewhere ? 2 : 1, 8, rt, D9_NO_INDEX, MS(5), MS(6));
	tb_poll(&B, 1, 7, rt, worker ? 0 : D9_NO_INDEX, MS(10), MS(11));
	tb_in_poll(&B, 1, 7, rt, worker ? 0 : D9_NO_INDEX, MS(40), MS(800));
	tb_pending(&B, 1, lock, MS(50), MS(800), 0xb0, 0);
	analyse();
	only("self-deadlock");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert_uint_eq(measured(need("self-deadlock"), "pending_ns"), MS(750));
	ck_assert(need("self-deadlock")->inferred);
}

START_TEST(self_deadlock_of_a_whole_runtime)
{
	lonely(false, false);
	ck_assert_str_eq(need("self-deadlock")->title, "svc (100) has waited 750 ms for mutex 0xb0; no holder seen; "
						       "only thread of its runtime; task 100:1:7");
}
END_TEST

START_TEST(self_deadlock_of_one_of_several)
{
	lonely(true, false);
	ck_assert_str_eq(need("self-deadlock")->title,
			 "svc (100) has waited 750 ms for mutex 0xb0; no holder seen; task 100:1:7");
}
END_TEST

/* It is no blocking call besides. */
START_TEST(self_deadlock_of_a_worker)
{
	lonely(true, true);
	ck_assert_int_eq(M->threads[thread(100)].role, D9_ROLE_WORKER);
}
END_TEST

/* Waits that have not ended: the stack of their place was taken in one of the calls that were made there. */
static void stuck_at(int others, bool whole, const char *hook)
{
	const d9_u64 stack[] = {0x6000, 0x50, 0x40, 0};
	d9_u32 lock = tb_site(&B, hook, 0x6000, 300, stack), rd = tb_site(&B, "read", 0x7000, 300, stack);
	tb_thread(&B, 2, 0, 102, "other");
	tb_span(&B, 2, rd, (struct tb_span){.t0 = MS(1), .t1 = MS(2), .fd = 4});
	if (others == 1)
		tb_span(&B, 2, lock, (struct tb_span){.t0 = MS(10), .t1 = MS(11), .object = 0xc0});
	if (others == 2)
		tb_pending(&B, 2, lock, MS(60), MS(800), 0xc0, 0);
	if (others == 3)
		tb_calls(&B, 2, hook, 5, US(10), 0, MS(700));
	if (!whole)
		tb_gap(&B, 2, MS(20), MS(21), 3);
	tb_pending(&B, 1, lock, MS(50), MS(800), 0xb0, 100);
	analyse();
}

static bool is_own(void) { return d9_ref_info(M, (struct d9_ref){thread(100), D9_REF_PENDING, 0}).own_stack; }

START_TEST(a_stack_that_is_the_stuck_calls_own)
{
	stuck_at(0, true, "pthread_mutex_lock");
	ck_assert(is_own() && need("self-deadlock")->cause.own_stack);
	ck_assert(!d9_ref_info(M, (struct d9_ref){thread(102), D9_REF_SPAN, 0}).own_stack);
}
END_TEST

START_TEST(a_stack_that_may_be_another_calls)
{
	stuck_at(_i, _i > 0, _i == 3 ? "sem_wait" : "pthread_mutex_lock");
	ck_assert(!is_own());
}
END_TEST

START_TEST(a_stack_of_a_place_that_was_there_before_the_recording)
{
	const d9_u64 stack[] = {0x6000, 0x50, 0x40, 0};
	tb_segment(&B);
	tb_proc(&B, 0, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
	tb_thread(&B, 1, 0, 100, "svc");
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, stack);
	tb_pending(&B, 1, lock, MS(50), MS(800), 0xb0, 100);
	tb_end(&B);
	char path[256];
	snprintf(path, sizeof(path), "%s/s-000001.d9", B.folder);
	ck_assert_int_eq(unlink(path), 0); /* as a drainer does that keeps to its budget */
	read_all();
	ck_assert(!is_own());
}
END_TEST

START_TEST(a_call_that_ended_is_not_pending)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL);
	tb_pending(&B, 1, lock, MS(50), MS(800), 0xb0, 100);
	tb_span(&B, 1, lock, (struct tb_span){.t0 = MS(50), .t1 = MS(900), .object = 0xb0, .owner = 100});
	analyse();
	nothing();
}
END_TEST

static void spin(d9_u64 every, unsigned n, d9_u64 sends)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	for (unsigned k = 0; k < n; k++)
		tb_span(&B, 1, home, (struct tb_span){.t0 = every * k, .t1 = every * k + US(1), .fd = 5, .result = 1});
	tb_calls(&B, 1, "read", n, n * US(0.3), 0, 0);
	tb_calls(&B, 1, "send", sends, sends * US(0.3), 0, 0);
	analyse();
}

START_TEST(event_loop_spin)
{
	spin(US(4), 100000, 0);
	only("event-loop-spin");
	const struct d9_finding *f = need("event-loop-spin");
	ck_assert_uint_eq(measured(f, "wakeups"), 100000);
	ck_assert_uint_ge(measured(f, "per_ms"), 249000);
	ck_assert_uint_eq(measured(f, "fd"), D9_NOT_KNOWN);
}
END_TEST

START_TEST(busy_server_does_not_spin)
{
	spin(US(20), 40000, 40000);
	nothing();
}
END_TEST

START_TEST(slow_loop_does_not_spin)
{
	spin(US(100), 10000, 0);
	nothing();
}
END_TEST

/* How often each worker accepts and how often it reads and writes; NULL: only connections that say nothing. */
static void accepts(const d9_u64 *n, const d9_u64 *transfers, unsigned n_workers, bool own_fd)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	for (d9_u32 k = 0; k < n_workers; k++) {
		tb_thread(&B, 2 + k, 0, 102 + (d9_i32)k, "worker");
		loop(2 + k, home, 0, 30, own_fd ? 5 + (int)k : 5);
		tb_calls(&B, 2 + k, "accept4", n[k] + 3, US(n[k]), 3, 0);
		if (transfers) {
			tb_calls(&B, 2 + k, "read", transfers[k] / 2 + 50, US(n[k]), 50, 0);
			tb_calls(&B, 2 + k, "write", transfers[k] / 2, US(n[k]), 0, 0);
		}
	}
	analyse();
}

START_TEST(accept_imbalance)
{
	accepts((const d9_u64[]){279, 21, 0}, NULL, 3, true);
	only("accept-imbalance");
	const struct d9_finding *f = need("accept-imbalance");
	ck_assert_uint_eq(measured(f, "share"), 930);
	ck_assert_uint_eq(measured(f, "count"), 300);
	ck_assert_int_eq(T->threads.v[f->thread].tid, 102);
}
END_TEST

START_TEST(balanced_accepts)
{
	accepts((const d9_u64[]){150, 100, 50}, NULL, 3, true);
	nothing();
}
END_TEST

START_TEST(connections_that_are_handed_out)
{
	accepts((const d9_u64[]){300, 0, 0}, (const d9_u64[]){300, 800, 1000}, 3, true);
	nothing();
}
END_TEST

START_TEST(who_accepts_most_serves_most)
{
	accepts((const d9_u64[]){279, 21, 0}, (const d9_u64[]){4000, 320, 80}, 3, true);
	only("accept-imbalance");
}
END_TEST

START_TEST(a_little_traffic_of_the_others)
{
	accepts((const d9_u64[]){300, 0, 0}, (const d9_u64[]){0, 120, 120}, 3, true); /* timers, not connections */
	only("accept-imbalance");
}
END_TEST

START_TEST(one_poller_for_all_is_no_imbalance)
{
	accepts((const d9_u64[]){300, 0, 0}, NULL, 3, false);
	nothing();
}
END_TEST

static void open_fd(int fd, d9_u64 dur)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), acc = tb_site(&B, "accept4", 0x5000, 900, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_span(&B, 1, acc, (struct tb_span){.t0 = t, .t1 = t + dur, .fd = 3, .result = fd});
	loop(1, home, t + dur, 5, 5);
	analyse();
}

START_TEST(fd_table_growth)
{
	open_fd(256, MS(15));
	only("fd-table-growth");
	ck_assert_uint_eq(measured(need("fd-table-growth"), "fd"), 256);
	ck_assert_uint_eq(measured(need("fd-table-growth"), "blocked_ns"), MS(15));
}
END_TEST

START_TEST(slow_accept_is_no_growth)
{
	open_fd(257, MS(8));
	nothing();
}
END_TEST

/* Everything is late by up to 40 ms because there are twice as many threads as CPUs; nothing is wrong. */
START_TEST(oversubscribed_and_healthy)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), snd = tb_site(&B, "send", 0x5000, 900, NULL);
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 900, NULL);
	for (d9_u32 th = 2; th <= 5; th++) {
		tb_thread(&B, th, 0, 100 + (d9_i32)th, "worker");
		d9_u64 t = 0, run = 0, delay = 0;
		for (int k = 0; k < 60; k++) {
			tb_span(&B, th, home,
				(struct tb_span){.t0 = t, .t1 = t + MS(2), .fd = 5 + (int)th, .result = 1});
			tb_cpu(&B, th, t + MS(2), run, delay);
			d9_u64 late = MS((k * 7 + (int)th * 11) % 40);
			if (k % 3 == 0)
				tb_span(&B, th, snd,
					(struct tb_span){
						.t0 = t + MS(3), .t1 = t + MS(3) + late, .fd = 9, .result = 10});
			else if (k % 3 == 1)
				tb_span(&B, th, lock,
					(struct tb_span){.t0 = t + MS(3),
							 .t1 = t + MS(3) + late / 20,
							 .object = 0xabc,
							 .owner = 102});
			t += MS(4) + late;
			run += MS(2);
			delay += late;
			tb_cpu(&B, th, t, run, delay);
		}
	}
	analyse();
	nothing();
}
END_TEST

START_TEST(one_incident_is_one_finding)
{
	/* an event loop waits for a lock whose holder reads: the read is the root, the loop a victim */
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL),
	       lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 900, NULL);
	d9_u32 rd = tb_site(&B, "read", 0x2000, 300, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_thread(&B, 2, 0, 102, "holder");
	tb_span(&B, 2, rd, (struct tb_span){.t0 = t - MS(20), .t1 = t + MS(200), .fd = 4, .result = 1});
	tb_span(&B, 1, lock, (struct tb_span){.t0 = t, .t1 = t + MS(200), .object = 0xabc, .owner = 102});
	loop(1, home, t + MS(200), 5, 5);
	analyse();
	only("lock-holder-io");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert_uint_eq(need("lock-holder-io")->victims.n, 1);
	ck_assert_int_eq(T->threads.v[need("lock-holder-io")->victims.v[0].thread].tid, 100);
}
END_TEST

START_TEST(criticals_first_by_harm)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), nap = tb_site(&B, "nanosleep", 0x5000, 900, NULL);
	d9_u32 rd = tb_site(&B, "read", 0x5100, 900, NULL), sy = tb_site(&B, "fsync", 0x5200, 900, NULL);
	d9_u64 t = loop(1, home, 0, 20, 5);
	for (int k = 0; k < 20; k++) { /* 600 ms in all, but each one a warning */
		tb_span(&B, 1, nap, (struct tb_span){.t0 = t, .t1 = t + MS(30)});
		t = loop(1, home, t + MS(30), 1, 5);
	}
	tb_span(&B, 1, rd, (struct tb_span){.t0 = t, .t1 = t + MS(60), .fd = 3});
	t = loop(1, home, t + MS(60), 1, 5);
	tb_span(&B, 1, sy, (struct tb_span){.t0 = t, .t1 = t + MS(90), .fd = 3});
	loop(1, home, t + MS(90), 1, 5);
	analyse();
	ck_assert_uint_eq(F.of.n, 3);
	ck_assert_str_eq(F.of.v[0].cause.kind, "sync");
	ck_assert_str_eq(F.of.v[1].cause.kind, "read");
	ck_assert_str_eq(F.of.v[2].cause.kind, "sleep");
	ck_assert_uint_eq(F.of.v[2].count, 20);
	ck_assert_uint_eq(d9_findings_count(&F, "critical"), 2);
	ck_assert_uint_eq(d9_findings_count(&F, "blocking-call"), 3);
}
END_TEST

/* ---- the trace ------------------------------------------------------------------------------------- */

static int in_order(void *ctx, const struct d9_timeline_item *it)
{
	d9_u64 *last = ctx;
	ck_assert_uint_ge(it->t, last[0]);
	last[0] = it->t;
	last[1]++;
	return 0;
}

START_TEST(dump_order)
{
	d9_u32 a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), b = tb_site(&B, "read", 0x2000, 900, NULL);
	tb_thread(&B, 2, 0, 102, "x");
	for (int k = 0; k < 3000; k++) {
		tb_span(&B, 1, a, (struct tb_span){.t0 = US(100 * k), .t1 = US(100 * k + 90), .fd = 5});
		tb_span(&B, 2, b, (struct tb_span){.t0 = US(70 * k), .t1 = US(70 * k + 60), .fd = 5});
		if (k % 1000 == 999)
			tb_segment(&B);
	}
	/* a handler's call lies within the wait that it interrupted */
	tb_span(&B, 1, b, (struct tb_span){.t0 = MS(305), .t1 = MS(306), .fd = 5});
	tb_span(&B, 1, a, (struct tb_span){.t0 = MS(304), .t1 = MS(310), .fd = 5});
	tb_gap(&B, 2, MS(250), MS(260), 17);
	tb_exit(&B, 1, MS(400), 1, 3);
	tb_end(&B);
	T = tb_read(&B);
	ck_assert_uint_eq(T->procs.v[0].end_how, 1);
	ck_assert_int_eq(T->procs.v[0].end_code, 3);
	ck_assert_uint_eq(T->threads.v[thread(102)].gaps.v[0].events, 17);
	d9_u64 last[2] = {0, 0};
	ck_assert_int_eq(d9_timeline_walk(T, in_order, last), 0);
	ck_assert_uint_eq(last[1], 6004);
}
END_TEST

START_TEST(nested_spans_count_once)
{
	d9_u32 a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), b = tb_site(&B, "read", 0x2000, 900, NULL);
	d9_u64 t = loop(1, a, 0, 20, 5);
	tb_span(&B, 1, b, (struct tb_span){.t0 = t + MS(1), .t1 = t + MS(7), .fd = 5});
	tb_span(&B, 1, a, (struct tb_span){.t0 = t, .t1 = t + MS(9), .fd = 5});
	analyse();
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	ck_assert_uint_eq(mt->parked, MS(21 * 9));
	ck_assert_uint_eq(mt->blocked, 0);
}
END_TEST

START_TEST(session_is_a_family_tree)
{
	d9_u32 a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	tb_proc(&B, 1, 0, 200, 100, 600, "/bin/svc");
	loop(1, a, 0, 3, 5);
	tb_end(&B);
	B.at += MS(50);
	tb_family(&B, "child"); /* exec'd by the forked process */
	tb_proc(&B, 0, D9_NO_INDEX, 200, 100, 600, "/bin/child");
	tb_thread(&B, 1, 0, 200, "child");
	a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, a, 0, 3, 5);
	tb_end(&B);
	B.at += MS(50);
	tb_family(&B, "grand"); /* a child of that one */
	tb_proc(&B, 0, D9_NO_INDEX, 300, 200, 700, "/bin/grand");
	tb_thread(&B, 1, 0, 300, "grand");
	a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, a, 0, 3, 5);
	tb_end(&B);
	T = tb_read(&B);
	ck_assert_str_eq(T->session, "svc-00000001");
	ck_assert_uint_eq(T->families.n, 3);
	ck_assert_uint_eq(T->procs.n, 4);
	d9_trace_free(T);
	B.at += MS(50);
	tb_family(&B, "other"); /* later, and no relation */
	tb_proc(&B, 0, D9_NO_INDEX, 900, 1, 800, "/bin/other");
	tb_thread(&B, 1, 0, 900, "other");
	tb_end(&B);
	T = tb_read(&B);
	ck_assert_str_eq(T->session, "other-00000004");
	ck_assert_uint_eq(T->families.n, 1);
	d9_trace_free(T);
	struct d9_read_opts o = {.dir = B.dir, .pid = -1, .session = "all"};
	ck_assert_int_eq(d9_trace_open(&o, &T), 0);
	ck_assert_uint_eq(T->families.n, 4);
	d9_trace_free(T);
	o.session = "svc-00000001";
	ck_assert_int_eq(d9_trace_open(&o, &T), 0);
	ck_assert_uint_eq(T->families.n, 3);
}
END_TEST

/* Each became the next so soon that no drainer asked the kernel when it had started: what it said must do. */
START_TEST(session_of_quick_execs)
{
	tb_thread(&B, 1, 0, 100, "svc");
	tb_end(&B);
	for (int i = 0; i < 3; i++) {
		B.at += MS(5);
		tb_family(&B, "quick");
		tb_proc(&B, 0, D9_NO_INDEX, 200, 100, i < 2 ? 0 : 700, "/bin/quick");
		tb_thread(&B, 1, 0, 200, "quick");
		if (i < 2)
			tb_exec(&B, 1, MS(1), 200, "/bin/quick");
		tb_end(&B);
	}
	T = tb_read(&B);
	ck_assert_str_eq(T->session, "svc-00000001");
	ck_assert_uint_eq(T->families.n, 4);
}
END_TEST

START_TEST(from_and_to)
{
	d9_u32 a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, a, 0, 100, 5);
	tb_end(&B);
	struct d9_read_opts o = {
		.dir = B.dir, .pid = -1, .from = {D9_TIME_FROM_START, MS(200)}, .to = {D9_TIME_BEFORE_END, MS(299)}};
	ck_assert_int_eq(d9_trace_open(&o, &T), 0);
	ck_assert_uint_eq(T->to - T->from, MS(999 - 200 - 299));
	ck_assert_uint_eq(T->threads.v[thread(100)].spans.n, 51);
	M = d9_model_new(T);
	ck_assert_uint_eq(M->threads[thread(100)].wall, MS(500));
}
END_TEST

static void write_field(void *ctx, const struct d9_custom_field *f)
{
	char *out = ctx, value[64] = "null";
	if (f->type == D9_CUSTOM_U64)
		snprintf(value, sizeof(value), "u%llu", (unsigned long long)f->v.u);
	else if (f->type == D9_CUSTOM_I64)
		snprintf(value, sizeof(value), "i%lld", (long long)f->v.i);
	else if (f->type == D9_CUSTOM_F64)
		snprintf(value, sizeof(value), "f%g", f->v.f);
	else if (f->type == D9_CUSTOM_STR)
		snprintf(value, sizeof(value), "\"%.*s\"", (int)f->n_text, f->text);
	snprintf(out + strlen(out), 256 - strlen(out), "%s=%s ", f->name, value);
}

static void custom_is(const char *fields, const void *data, size_t n, const char *want)
{
	char out[256] = "", *exact = malloc(n + !n); /* so that a byte too far is seen by a sanitizer */
	struct d9_trace_type type = {0, "order", fields};
	memcpy(exact, data, n);
	struct d9_bytes bytes = {.p = (const unsigned char *)exact, .n = (d9_u32)n};
	d9_show_custom(&type, &bytes, write_field, out);
	free(exact);
	ck_assert_str_eq(out, want);
}

START_TEST(custom_events)
{
	const struct __attribute__((packed)) {
		d9_u64 u;
		d9_i64 i;
		char s[4];
		double f;
	} d = {7, -9, "abc", 0.5};
	const char *all = "u:u64,i:i64,s:str,f:f64";
	custom_is(all, &d, sizeof(d), "u=u7 i=i-9 s=\"abc\" f=f0.5 ");
	custom_is(all, &d, sizeof(d) - 1, "u=u7 i=i-9 s=\"abc\" f=null ");
	custom_is(all, &d, 18, "u=u7 i=i-9 s=\"ab\" f=null "); /* cut within the text */
	custom_is(all, &d, 15, "u=u7 i=null s=null f=null ");
	custom_is(all, &d, 0, "u=null i=null s=null f=null ");
	custom_is("u:u64,i:u32,s:str", &d, sizeof(d), "u=u7 "); /* how long a u32 is was not agreed */
	custom_is("u:u64,i", &d, sizeof(d), "u=u7 ");
	custom_is("u:u64,", &d, sizeof(d), "u=u7 ");
	custom_is("", &d, sizeof(d), "");
}
END_TEST

START_TEST(one_file_and_foreign_files)
{
	d9_u32 a = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	loop(1, a, 0, 10, 5);
	tb_segment(&B);
	loop(1, a, MS(100), 10, 5);
	tb_end(&B);
	char path[256];
	snprintf(path, sizeof(path), "%s/notes.d9", B.folder);
	FILE *f = fopen(path, "w");
	fputs("not ours", f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/s-000001.d9", B.folder);
	struct d9_read_opts o = {.dir = path, .pid = -1};
	ck_assert_int_eq(d9_trace_open(&o, &T), 0);
	ck_assert_uint_eq(T->threads.v[thread(100)].spans.n, 10);
	d9_trace_free(T);
	o.dir = B.folder;
	ck_assert_int_eq(d9_trace_open(&o, &T), 0);
	ck_assert_uint_eq(T->threads.v[thread(100)].spans.n, 20);
	ck_assert_uint_eq(T->warnings.n, 0);
}
END_TEST

/* ---- --fail-if --------------------------------------------------------------------------------------- */

static bool always(const char *id) { return !strcmp(id, "long-poll"); }

static bool seven_ms(void *ctx, const struct d9_clause *c, d9_u64 *ret)
{
	(void)ctx;
	*ret = c->is_duration ? MS(7) : 2;
	return strcmp(c->subject, "runq") != 0;
}

START_TEST(fail_if_grammar)
{
	struct d9_fail_if f;
	char err[256];
	const char *good[] = {"poll>5ms",     "poll.p99 >= 7ms", "wait.max<1s", "findings=2", "critical==2,poll>1s",
			      "long-poll!=0", " poll > 1us "};
	const char *bad[] = {
		"",          "poll",      "poll>",    "poll>5",    "poll.p42>1ms", "findings.max>1", "findings>1ms",
		"nothing>1", "poll>5ms,", "poll~5ms", "poll>>5ms", "critical>-1",  "fd-table>1",     "poll>5 parsecs"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_msg(!d9_fail_if_parse(good[i], always, &f, err, sizeof(err)), "%s: %s", good[i], err);
		ck_assert_msg(d9_fail_if_check(&f, seven_ms, NULL) != NULL, "%s does not hold", good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(d9_fail_if_parse(bad[i], always, &f, err, sizeof(err)) < 0, "`%s` was taken", bad[i]);
	ck_assert_int_eq(d9_fail_if_parse("poll>7ms,findings>2,runq>1ns", always, &f, err, sizeof(err)), 0);
	ck_assert_ptr_null(d9_fail_if_check(&f, seven_ms, NULL));
}
END_TEST

/* ---- order ---------------------------------------------------------------------------------------- */

/* Chunks that were written the wrong way round, as a drainer may: n spans, number k of them at place(k). */
static void out_of_order(d9_u32 n, d9_u32 (*place)(d9_u32 k, d9_u32 n))
{
	d9_u32 site = tb_site(&B, "read", 0x1000, 400, NULL);
	for (d9_u32 i = 0; i < n; i++) {
		d9_u32 k = place(i, n);
		tb_span(&B, 1, site, (struct tb_span){.t0 = US(10) * k, .t1 = US(10) * k + US(5), .fd = (d9_i32)k + 1});
	}
	analyse();
	const struct d9_trace_thread *th = &T->threads.v[thread(100)];
	ck_assert_uint_eq(th->spans.n, n);
	for (d9_u32 i = 0; i < n; i++) {
		ck_assert_uint_eq(th->spans.v[i].fd, i + 1);
		ck_assert_uint_eq(th->spans.v[i].t1 - T->t_begin, US(10) * i + US(5));
	}
	ck_assert_uint_eq(th->last - T->t_begin, US(10) * (n - 1) + US(5));
}

static d9_u32 pairs_swapped(d9_u32 i, d9_u32 n) { return i < n / 128 * 128 ? i ^ 64 : i; }
static d9_u32 last_first(d9_u32 i, d9_u32 n) { return i < 50 ? n - 50 + i : i - 50; }
static d9_u32 interleaved(d9_u32 i, d9_u32 n) { return i % 2 ? n / 2 + i / 2 : i / 2; }
static d9_u32 backwards(d9_u32 i, d9_u32 n) { return n - 1 - i; }

START_TEST(chunks_out_of_order_are_put_right)
{
	d9_u32 (*const places[])(d9_u32, d9_u32) = {pairs_swapped, last_first, interleaved, backwards};
	out_of_order(4000, places[_i]);
}
END_TEST

START_TEST(polls_out_of_order_are_put_right)
{
	tb_poll(&B, 1, 7, 3, 0, MS(11), MS(12));
	tb_poll(&B, 1, 7, 3, 0, MS(10), MS(12));
	tb_poll(&B, 1, 7, 3, 0, MS(5), MS(6)); /* of a chunk that was written later */
	tb_poll(&B, 1, 8, 3, 0, MS(7), MS(8));
	analyse();
	static const double t0[] = {5, 7, 11, 10};
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	ck_assert_uint_eq(mt->polls.n, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(mt->polls.v[i].t0 - T->t_begin, MS(t0[i]));
	ck_assert_uint_eq(d9_model_task(M, thread(100), T->t_begin + MS(7.5), T->t_begin + MS(8)), 8);
}
END_TEST

/* ---- tasks ---------------------------------------------------------------------------------------- */

static void queued(d9_u32 i, size_t n, ...)
{
	va_list ap;
	va_start(ap, n);
	const struct d9_model_thread *mt = &M->threads[thread((int)i)];
	ck_assert_uint_eq(mt->queued.n, n);
	for (size_t k = 0; k < n; k++) {
		double t0 = va_arg(ap, double), t1 = va_arg(ap, double);
		ck_assert_uint_eq(mt->queued.v[k].t0 - T->t_begin, MS(t0));
		ck_assert_uint_eq(mt->queued.v[k].t1 - T->t_begin, MS(t1));
	}
	va_end(ap);
}

START_TEST(a_task_is_queued_from_its_wake_to_its_poll)
{
	tb_thread(&B, 2, 0, 101, "worker");
	tb_spawn(&B, 1, 7, 3, MS(1), NULL);
	tb_poll(&B, 2, 7, 3, 0, MS(1.5), MS(2)); /* its first: no wake, so not known since when it could run */
	tb_wake(&B, 1, 7, 3, MS(3));
	tb_wake(&B, 1, 7, 3, MS(3.5)); /* the first counts */
	tb_wake(&B, 1, 8, 3, MS(4));   /* another task */
	tb_poll(&B, 2, 7, 3, 0, MS(5), MS(8));
	tb_wake(&B, 1, 7, 3, MS(6)); /* while it is polled: from the end of that on */
	tb_poll(&B, 1, 7, 3, 1, MS(9), MS(9.5));
	tb_poll(&B, 2, 7, 3, 0, MS(10), MS(11)); /* without a wake */
	analyse();
	queued(101, 1, 3.0, 5.0);
	queued(100, 1, 8.0, 9.0);
	struct d9_hist all[D9_N_KINDS] = {0}, h = {0};
	d9_hist_all(M, all);
	ck_assert_uint_eq(all[D9_KIND_QUEUE].count, 2);
	ck_assert_uint_eq(all[D9_KIND_QUEUE].max, MS(2));
	d9_hist_thread(M, thread(101), D9_KIND_QUEUE, &h);
	ck_assert_uint_eq(h.total, MS(2));
	for (unsigned k = 0; k < D9_N_KINDS; k++)
		d9_hist_free(&all[k]);
	d9_hist_free(&h);
	size_t n = 9;
	struct d9_ref *refs = d9_show_longest(M, D9_KIND_QUEUE, 0, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(d9_show_task(M, refs[0]), 7);
	ck_assert_uint_eq(d9_ref_info(M, refs[0]).t1 - T->t_begin, MS(5));
	free(refs);
}
END_TEST

START_TEST(a_lost_event_makes_no_long_queue)
{
	tb_thread(&B, 2, 0, 101, "worker");
	tb_wake(&B, 1, 7, 3, 0);
	tb_gap(&B, 2, MS(1), MS(2), 4);
	tb_poll(&B, 2, 7, 3, 0, MS(100), MS(101)); /* a poll of it may have been lost meanwhile */
	tb_wake(&B, 1, 7, 3, MS(102));
	tb_poll(&B, 2, 7, 3, 0, MS(103), MS(104));
	analyse();
	queued(101, 1, 102.0, 103.0);
}
END_TEST

START_TEST(runtimes_are_counted)
{
	tb_thread(&B, 2, 0, 101, "worker");
	tb_proc(&B, 1, 0, 200, 100, 501, "/bin/svc");
	tb_thread(&B, 3, 1, 200, "child");
	tb_park(&B, 2, 3, 0, 0, MS(1));
	tb_park(&B, 1, 3, 1, 0, MS(1));
	tb_spawn(&B, 1, 7, 3, MS(1), NULL);
	tb_spawn(&B, 1, 8, 3, MS(1), NULL);
	for (int i = 0; i < 4; i++) {
		tb_wake(&B, 1, 7, 3, MS(2 + i));
		tb_poll(&B, 2, 7, 3, 0, MS(2.25 + i), MS(2.5 + i));
	}
	tb_poll(&B, 1, 9, 3, D9_NO_INDEX, MS(8), MS(8.5));
	tb_poll(&B, 1, 7, 4, 0, MS(9), MS(9.1)); /* another runtime of the process */
	tb_poll(&B, 3, 7, 3, 0, MS(9), MS(9.1)); /* the same number in another process */
	analyse();
	ck_assert_uint_eq(M->runtimes.n, 3);
	const struct d9_runtime *r = M->runtimes.v;
	ck_assert_uint_eq(r[0].id, 3);
	ck_assert_uint_eq(r[0].workers, 2);
	ck_assert_uint_eq(r[0].tasks, 3);
	ck_assert_uint_eq(r[0].polls, 5);
	ck_assert_uint_eq(r[0].wakes, 4);
	ck_assert_uint_eq(r[0].poll_total, MS(1.5));
	ck_assert_uint_eq(r[0].poll_max, MS(0.5));
	ck_assert_uint_eq(r[1].id, 4);
	ck_assert_uint_eq(r[2].polls, 1);
	ck_assert_uint_ne(r[2].proc, r[0].proc);
}
END_TEST

START_TEST(lives_of_tasks)
{
	struct d9_tasks all;
	tb_thread(&B, 2, 0, 101, "worker");
	tb_spawn(&B, 1, 7, 3, MS(1), NULL);
	tb_wake(&B, 1, 7, 3, MS(1));
	tb_poll(&B, 2, 7, 3, 0, MS(2), MS(5));
	tb_wake(&B, 1, 7, 3, MS(6));
	tb_poll(&B, 1, 7, 3, 1, MS(10), MS(11));
	tb_wake(&B, 1, 7, 3, MS(12));
	tb_poll(&B, 1, 7, 3, 0, MS(13), MS(14)); /* the worker of before, on another thread: moved again */
	tb_task_end(&B, 1, 7, 2, MS(14));
	tb_poll(&B, 2, 8, 3, 0, MS(20), MS(21)); /* began before the recording; waits since */
	tb_poll(&B, 2, 9, 3, 0, MS(22), MS(24));
	tb_wake(&B, 1, 9, 3, MS(23));          /* meanwhile: may run again */
	tb_spawn(&B, 1, 10, 3, MS(25), "ten"); /* not polled yet */
	analyse();
	d9_tasks_make(M, &all);
	ck_assert_uint_eq(all.of.n, 4);
	const struct d9_task *k = all.of.v;
	ck_assert_uint_eq(k[0].id, 7);
	ck_assert_uint_eq(k[0].runtime, 3);
	ck_assert(k[0].exact);
	ck_assert_uint_eq(k[0].spawned - T->t_begin, MS(1));
	ck_assert_int_eq(k[0].outcome, D9_TASK_CANCELLED);
	ck_assert_uint_eq(k[0].ended - T->t_begin, MS(14));
	ck_assert_uint_eq(k[0].idle_since, D9_NOT_KNOWN);
	ck_assert_uint_eq(k[0].polls, 3);
	ck_assert_uint_eq(k[0].poll_total, MS(5));
	ck_assert_uint_eq(k[0].poll_max, MS(3));
	ck_assert_uint_eq(k[0].wakes, 3);
	ck_assert_uint_eq(k[0].waits, 3);
	ck_assert_uint_eq(k[0].queue_total, MS(6));
	ck_assert_uint_eq(k[0].queue_max, MS(4));
	ck_assert_uint_eq(k[0].workers, 2);
	ck_assert_uint_eq(k[0].migrations, 2);
	ck_assert_uint_eq(k[0].n_moments, 8);
	ck_assert(!k[1].exact);
	ck_assert_uint_eq(k[1].spawned - T->t_begin, MS(20));
	ck_assert_uint_eq(k[1].waits, 0);
	ck_assert_int_eq(k[1].outcome, D9_TASK_ALIVE);
	ck_assert_uint_eq(k[1].idle_since - T->t_begin, MS(21));
	ck_assert_uint_eq(k[2].idle_since, D9_NOT_KNOWN);
	ck_assert_uint_eq(k[3].polls, 0);
	ck_assert_uint_eq(k[3].idle_since, D9_NOT_KNOWN);
	ck_assert_uint_eq(d9_model_task_name(M, k[0].proc, 0, 7).n, 0);
	ck_assert_uint_eq(d9_model_task_name(M, k[0].proc, 0, 10).n, 3);
	ck_assert_uint_eq(d9_model_task_name(M, k[0].proc, 1, 10).n, 0);
	d9_tasks_free(&all);
	T->threads.v[thread(100)].shown = false;
	d9_tasks_make(M, &all);
	ck_assert_uint_eq(all.of.n, 3); /* of 10 that thread alone told */
	d9_tasks_free(&all);
}
END_TEST

START_TEST(polls_that_have_not_ended)
{
	struct d9_tasks all;
	tb_thread(&B, 2, 0, 101, "worker");
	tb_wake(&B, 1, 7, 3, MS(5));
	tb_in_poll(&B, 2, 7, 3, 0, MS(10), MS(40)); /* at the roll of a segment */
	tb_in_poll(&B, 2, 7, 3, 0, MS(10), MS(90));
	tb_in_poll(&B, 1, 8, 3, 0, MS(20), MS(40)); /* this one ended after all */
	tb_poll(&B, 1, 8, 3, 0, MS(20), MS(60));
	tb_poll(&B, 1, 8, 3, 0, MS(61), MS(62));
	analyse();
	d9_tasks_make(M, &all);
	ck_assert_uint_eq(all.of.n, 2);
	const struct d9_task *k = all.of.v;
	ck_assert(k[0].polled && !k[1].polled);
	ck_assert_uint_eq(k[0].polls, 1);
	ck_assert_uint_eq(k[0].poll_max, MS(80));
	ck_assert_uint_eq(k[0].queue_max, MS(5));
	ck_assert_uint_eq(k[0].idle_since, D9_NOT_KNOWN);
	ck_assert_uint_eq(k[1].polls, 2);
	ck_assert_uint_eq(k[1].poll_total, MS(41));
	d9_tasks_free(&all);
	ck_assert(!M->threads[thread(101)].polls.v[0].ended && M->threads[thread(100)].polls.v[0].ended);
}
END_TEST

/* A worker whose task polls are seen: what it does between them for long is a poll too, of no task. */
START_TEST(polls_of_no_task)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x4000, 300, NULL), call = tb_site(&B, "nanosleep", 0x5000, 300, NULL);
	for (int i = 0; i < 20; i++)
		tb_span(&B, 1, home, (struct tb_span){.t0 = MS(100.0 * i), .t1 = MS(100.0 * i + 10)});
	B.runtime_module = 1;
	tb_poll(&B, 1, 7, 1u << 24 | 1, 0, MS(10.2), MS(40)); /* 0.2 ms before it are the runtime's */
	tb_poll(&B, 1, 7, 1u << 24 | 1, 0, MS(52), MS(55));   /* within the next: block_in_place, block_on */
	tb_poll(&B, 1, 8, 1u << 24 | 1, 0, MS(50), MS(60));
	tb_span(&B, 1, call, (struct tb_span){.t0 = MS(62), .t1 = MS(98)}); /* in what block_on runs */
	tb_poll(&B, 1, 8, 1u << 24 | 1, 0, MS(105), MS(210.5));             /* over a park, if one is inside */
	analyse();
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	struct {
		double t0, t1;
		d9_u32 rt, calls;
	} want[] = {{10.2, 40, 1, 0}, {40, 50, 0, 0}, {52, 55, 2, 0}, {50, 60, 3, 0}, {60, 100, 0, 1}};
	for (size_t i = 0; i < 5; i++) {
		ck_assert_uint_eq(mt->polls.v[i].t0 - T->t_begin, MS(want[i].t0));
		ck_assert_uint_eq(mt->polls.v[i].t1 - T->t_begin, MS(want[i].t1));
		ck_assert_uint_eq(mt->polls.v[i].rt, want[i].rt);
		ck_assert_uint_eq(mt->polls.v[i].n, want[i].calls);
	}
	ck_assert_uint_eq(mt->polls.v[5].rt, 4);
	ck_assert_uint_eq(mt->polls.v[6].t0 - T->t_begin, MS(210.5));
	ck_assert_uint_eq(mt->polls.v[6].t1 - T->t_begin, MS(300));
}
END_TEST

/* What was seen of a runtime that tells nobody: module 1, whose runtime 3 is 1 << 24 | 3 and its blocking pools 1 << 24. */
START_TEST(lives_of_tasks_that_were_seen)
{
	const d9_u32 rt = 1u << 24 | 3, pools = 1u << 24;
	struct d9_tasks all;
	tb_thread(&B, 2, 0, 101, "worker");
	B.runtime_module = 1;
	tb_seen(&B, 2, 7, rt, MS(4), (struct tb_maker){.t = MS(1), .task = 5, .thread = 1, .flags = D9_SPAWN_EXACT});
	B.outcome = 3; /* woken meanwhile, by what was compiled into it */
	tb_poll(&B, 2, 7, rt, 0, MS(4), MS(5));
	B.outcome = 4; /* over, and aborted meanwhile */
	tb_poll(&B, 2, 7, rt, 0, MS(8), MS(9));
	tb_task_end(&B, 2, 7, 4, MS(9));
	tb_seen(&B, 2, 8, rt, MS(10), (struct tb_maker){0}); /* not known when it was made */
	B.outcome = 0;
	tb_poll(&B, 2, 8, rt, 0, MS(10), MS(11));
	tb_seen(&B, 1, 9, pools, MS(15),
		(struct tb_maker){.t = MS(12), .task = 8, .thread = 2, .flags = D9_SPAWN_EXACT | D9_SPAWN_JOB});
	B.outcome = 1;
	tb_poll(&B, 1, 9, pools, D9_NO_INDEX, MS(15), MS(20));
	B.outcome = 2; /* aborted when it was idle: dropped, not run */
	tb_poll(&B, 2, 8, rt, 0, MS(25), MS(26));
	tb_task_end(&B, 2, 8, 2, MS(26));
	B.runtime_module = 0; /* a program may tell of the same numbers, and say what it likes */
	tb_poll(&B, 2, 7, 1u << 24 | 3, 0, MS(30), MS(31));
	analyse();
	d9_tasks_make(M, &all);
	ck_assert_uint_eq(all.of.n, 4);
	ck_assert_uint_eq(all.of.v[0].module, 0);
	const struct d9_task *k = &all.of.v[1];
	ck_assert(k[0].exact && !k[0].job && !k[0].name.n);
	ck_assert_uint_eq(k[0].spawned - T->t_begin, MS(1));
	ck_assert_uint_eq(k[0].parent, 5);
	ck_assert_uint_eq(k[0].moments->thread, thread(101));
	ck_assert_uint_eq(k[0].moments->by_thread, thread(100));
	ck_assert_int_eq(k[0].outcome, D9_TASK_OVER);
	ck_assert_uint_eq(k[0].ended - T->t_begin, MS(9));
	ck_assert_uint_eq(k[0].waits, 2); /* from 1 to 4, from 5 to 8 */
	ck_assert_uint_eq(k[0].queue_total, MS(6));
	ck_assert(!k[1].exact);
	ck_assert_uint_eq(k[1].waits, 0);
	ck_assert_uint_eq(k[1].spawned - T->t_begin, MS(10));
	ck_assert_uint_eq(k[1].polls, 1);
	ck_assert_uint_eq(k[1].workers, 1);
	ck_assert_int_eq(k[1].outcome, D9_TASK_CANCELLED);
	ck_assert_uint_eq(k[1].ended - T->t_begin, MS(26));
	ck_assert(k[2].exact && k[2].job);
	ck_assert_uint_eq(k[2].queue_max, MS(3));
	ck_assert_int_eq(k[2].outcome, D9_TASK_READY);
	d9_tasks_free(&all);
	ck_assert_uint_eq(M->runtimes.n, 3);
	ck_assert_uint_eq(M->runtimes.v[0].module, 0);
	ck_assert_uint_eq(M->runtimes.v[0].polls, 1);
	ck_assert_uint_eq(M->runtimes.v[1].id, pools);
	ck_assert_uint_eq(M->runtimes.v[1].tasks, 1);
	ck_assert_uint_eq(M->runtimes.v[2].polls, 3);
}
END_TEST

START_TEST(the_future_in_the_name_of_a_function)
{
	static const struct {
		const char *function, *future;
	} of[] = {
		{"tokio::runtime::task::raw::poll::<app::serve::{closure#0}, alloc::sync::Arc<tokio::x::Handle>>",
		 "app::serve::{closure#0}"},
		{"poll<app::serve::{async_fn_env#0}, alloc::sync::Arc<tokio::x::Handle, alloc::alloc::Global>>",
		 "app::serve::{async_fn_env#0}"},
		{"poll<app::Wrap<app::a::{async_block_env#0}, (u8, fn(u8, [u8; 2]) -> u16)>, S>",
		 "app::Wrap<app::a::{async_block_env#0}, (u8, fn(u8, [u8; 2]) -> u16)>"},
		{"poll<tokio::runtime::blocking::task::BlockingTask<app::job::{closure_env#0}<u8>>, "
		 "tokio::x::BlockingSchedule>",
		 "app::job::{closure_env#0}<u8>"},
		{"poll<tracing::instrument::Instrumented<tokio::runtime::blocking::task::BlockingTask<app::job>>, S>",
		 "app::job"},
		{"poll<core::pin::Pin<alloc::boxed::Box<dyn core::future::Future<Output=()>>>, S>",
		 "core::pin::Pin<alloc::boxed::Box<dyn core::future::Future<Output=()>>>"},
		{"tokio::runtime::task::raw::poll", NULL},
		{"poll<>", NULL},
		{"polled<a, b>", NULL},
		{"poll<unfinished::<", "unfinished::<"},
		{"", NULL},
	};
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const char *p;
		size_t n;
		bool there = d9_future_in(of[i].function, &p, &n);
		ck_assert_msg(there == !!of[i].future, "%s", of[i].function);
		if (there) {
			ck_assert_uint_eq(n, strlen(of[i].future));
			ck_assert_msg(!memcmp(p, of[i].future, n), "%s: %.*s", of[i].function, (int)n, p);
		}
	}
}
END_TEST

START_TEST(no_task_is_idle_across_a_hole)
{
	struct d9_tasks all;
	tb_poll(&B, 1, 7, 3, 0, MS(1), MS(2));
	tb_gap(&B, 1, MS(3), MS(4), 2); /* its end, or a wake, may be among these */
	tb_poll(&B, 1, 8, 3, 0, MS(5), MS(6));
	analyse();
	d9_tasks_make(M, &all);
	ck_assert_uint_eq(all.of.v[0].idle_since, D9_NOT_KNOWN);
	ck_assert_uint_eq(all.of.v[1].idle_since - T->t_begin, MS(6));
	d9_tasks_free(&all);
}
END_TEST

/* ---- what tasks' polls say of a thread ------------------------------------------------------------ */

static bool says(const struct d9_finding *f, const char *text) { return strstr(f->title, text) != NULL; }

/*
 * A runtime without a driver for I/O, whose workers park on a futex and are not told: ten times, and twice as often thread 1 waits in its
 * polls for a lock that has no name.  loop: other tasks are polled between those waits, as by a block_on in the poll.
 */
static void locks_in_polls(bool loop)
{
	const d9_u32 rt = 1u << 24 | 2;
	d9_u32 park = tb_site(&B, "futex_wait", 0x3000, 400, NULL), lock = tb_site(&B, "futex_wait", 0x3000, 450, NULL);
	B.runtime_module = 1;
	for (int i = 0; i < 10; i++) {
		d9_u64 t = MS(20 * i);
		tb_span(&B, 1, park, (struct tb_span){.t0 = t, .t1 = t + MS(9), .object = 0x901});
		tb_span(&B, 1, lock, (struct tb_span){.t0 = t + MS(11), .t1 = t + MS(14), .object = 0xabc});
		if (loop)
			tb_poll(&B, 1, 8, rt, D9_NO_INDEX, t + MS(14), t + MS(14.5));
		tb_span(&B, 1, lock, (struct tb_span){.t0 = t + MS(15), .t1 = t + MS(18), .object = 0xabc});
		tb_poll(&B, 1, 7, rt, D9_NO_INDEX, t + MS(10), t + MS(19));
	}
	tb_in_poll(&B, 1, 7, rt, D9_NO_INDEX, MS(210), MS(900));
	tb_pending(&B, 1, lock, MS(220), MS(900), 0xabc, 0);
	analyse();
}

START_TEST(a_lock_in_a_poll_is_no_park)
{
	locks_in_polls(false);
	const struct d9_model_thread *mt = &M->threads[thread(100)];
	const struct d9_lock *l = d9_model_lock(M, 0, 0xabc);
	ck_assert_uint_eq(T->sites.v[mt->home].depth, 400);
	ck_assert_uint_eq(mt->parks.n, 10);
	ck_assert_uint_eq(mt->parked, MS(90));
	ck_assert_uint_eq(l->waits, 20);
	ck_assert_uint_eq(l->pending.n, 1);
	ck_assert(!d9_model_pending_parks(M, thread(100)));
}
END_TEST

START_TEST(a_loop_in_a_poll_parks)
{
	locks_in_polls(true);
	ck_assert_uint_eq(M->threads[thread(100)].parks.n, 30);
}
END_TEST

/* Too seldom home to be taken for a worker but for the number that its polls have: worker 3 of a runtime that was seen. */
static void seldom_home(d9_u32 worker)
{
	const d9_u32 rt = 1u << 24 | 2;
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), nap = tb_site(&B, "nanosleep", 0x5000, 900, NULL);
	tb_thread(&B, 2, 0, 101, "tokio-rt-worker");
	B.runtime_module = 1;
	(void)loop(2, home, 0, 2, 5);
	tb_span(&B, 2, nap, (struct tb_span){.t0 = MS(30), .t1 = MS(330)});
	tb_poll(&B, 2, 7, rt, worker, MS(29), MS(331));
	analyse();
}

START_TEST(a_worker_by_its_polls)
{
	seldom_home(3);
	ck_assert_int_eq(M->threads[thread(101)].role, D9_ROLE_WORKER);
	ck_assert_uint_eq(M->threads[thread(101)].worker, 3);
	only("blocking-call");
	ck_assert_uint_eq(measured(need("blocking-call"), "poll_ns"), MS(302));
	ck_assert(says(need("blocking-call"), "; task 100:1:7"));
}
END_TEST

/* block_in_place: another thread is worker 3 meanwhile. */
START_TEST(a_worker_that_was_replaced)
{
	tb_thread(&B, 3, 0, 103, "tokio-rt-worker");
	B.runtime_module = 1;
	tb_poll(&B, 3, 8, 1u << 24 | 2, 3, MS(100), MS(101));
	seldom_home(3);
	nothing();
}
END_TEST

START_TEST(no_worker_without_a_number)
{
	seldom_home(D9_NO_INDEX);
	ck_assert_int_eq(M->threads[thread(101)].role, D9_ROLE_OTHER);
	nothing();
}
END_TEST

/* A thread that was a worker while another's call blocked, and is its pool's again: a job may take as long as it likes. */
START_TEST(jobs_of_a_former_worker)
{
	d9_u32 nap = tb_site(&B, "nanosleep", 0x5000, 900, NULL);
	tb_thread(&B, 2, 0, 101, "tokio-rt-worker");
	B.runtime_module = 1;
	tb_poll(&B, 2, 7, 1u << 24 | 2, 0, MS(1), MS(2));
	tb_span(&B, 2, nap, (struct tb_span){.t0 = MS(30), .t1 = MS(330)});
	tb_poll(&B, 2, 8, 1u << 24, D9_NO_INDEX, MS(29), MS(331));
	tb_in_poll(&B, 2, 9, 1u << 24, D9_NO_INDEX, MS(340), MS(900));
	tb_pending(&B, 2, nap, MS(350), MS(900), 0, 0);
	analyse();
	ck_assert_int_eq(M->threads[thread(101)].role, D9_ROLE_WORKER);
	nothing();
}
END_TEST

/* A task's poll that was going on when somebody looked last; on_cpu: of its 400 ms; else it sits in a call. */
static void still_polled(d9_u64 on_cpu, bool at_home)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), nap = tb_site(&B, "nanosleep", 0x5000, 900, NULL);
	B.runtime_module = 1;
	d9_u64 t = loop(1, home, 0, 20, 5);
	tb_cpu(&B, 1, t, MS(20), 0);
	tb_cpu(&B, 1, t + MS(401), MS(20) + on_cpu, 0);
	tb_in_poll(&B, 1, 7, 1u << 24 | 2, 0, t, t + MS(200)); /* at the roll of a segment */
	tb_in_poll(&B, 1, 7, 1u << 24 | 2, 0, t, t + MS(400));
	if (at_home || !on_cpu)
		tb_pending(&B, 1, at_home ? home : nap, t + MS(1), t + MS(400), 0, 0);
	analyse();
}

START_TEST(a_call_that_a_poll_sits_in)
{
	still_polled(0, false);
	only("blocking-call");
	const struct d9_finding *f = need("blocking-call");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert_uint_eq(measured(f, "blocked_ns"), MS(399));
	ck_assert_uint_eq(measured(f, "poll_ns"), MS(400));
	ck_assert_str_eq(f->title, "event loop of svc (100) has sat in nanosleep for 399 ms so far; task 100:1:7");
}
END_TEST

START_TEST(a_poll_that_computes_still)
{
	still_polled(MS(395), false);
	only("long-poll");
	ck_assert_uint_eq(F.of.n, 1);
	ck_assert(says(need("long-poll"), "has computed for") && says(need("long-poll"), "so far"));
	ck_assert_uint_ge(measured(need("long-poll"), "on_cpu_ns"), MS(380));
}
END_TEST

START_TEST(a_poll_that_runs_the_loop_is_no_call)
{
	still_polled(0, true);
	nothing();
}
END_TEST

/* ---- lock-across-await ------------------------------------------------------------------------------ */

/*
 * Task 7 is polled from 10 to 11 ms and from 300 to 420, by thread 1, and lets a lock go at `released`; thread 2 waited for it
 * since `from`, and if there is a third, that got in at 200 ms.
 */
static void keeper(double from, double released, bool third, d9_u32 owner)
{
	const d9_u32 rt = 1u << 24 | 2;
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL);
	tb_thread(&B, 2, 0, 101, "waiter");
	tb_thread(&B, 3, 0, 103, "third");
	B.runtime_module = 1;
	tb_poll(&B, 1, 7, rt, D9_NO_INDEX, MS(10), MS(11));
	tb_poll(&B, 1, 8, rt, D9_NO_INDEX, MS(100), MS(103));
	tb_poll(&B, 1, 7, rt, D9_NO_INDEX, MS(300), MS(420));
	tb_span(&B, 2, lock,
		(struct tb_span){.t0 = MS(from),
				 .t1 = MS(released + 0.1),
				 .object = 0xabc,
				 .owner = owner,
				 .waker = 2,
				 .waker_t = MS(released)});
	if (third)
		tb_span(&B, 3, lock, (struct tb_span){.t0 = MS(150), .t1 = MS(200), .object = 0xabc, .owner = 100});
	analyse();
}

START_TEST(lock_across_await)
{
	keeper(50, 300.5, false, 100);
	only("lock-across-await");
	const struct d9_finding *f = need("lock-across-await");
	ck_assert_uint_eq(measured(f, "held_ns"), MS(289.5));
	ck_assert_uint_eq(measured(f, "waiters"), 1);
	ck_assert_uint_eq(f->cause.owner_tid, 100);
	ck_assert(f->inferred && says(f, "; task 100:1:7"));
}
END_TEST

START_TEST(a_lock_let_go_between_polls_is_no_tasks)
{
	keeper(50, 250, false, 100);
	ck_assert(!find("lock-across-await"));
}
END_TEST

START_TEST(a_lock_taken_in_the_poll_that_lets_it_go)
{
	keeper(310, 415, false, 100);
	ck_assert(!find("lock-across-await"));
}
END_TEST

START_TEST(a_lock_let_go_in_a_first_poll_is_no_tasks)
{
	keeper(50, 101, false, 100);
	ck_assert(!find("lock-across-await"));
}
END_TEST

START_TEST(a_lock_that_others_had_meanwhile)
{
	keeper(50, 300.5, true, 100);
	ck_assert(!find("lock-across-await"));
}
END_TEST

START_TEST(a_lock_of_another_owner)
{
	keeper(50, 300.5, false, 103);
	ck_assert(!find("lock-across-await"));
}
END_TEST

/* ---- idle-stall ------------------------------------------------------------------------------------ */

/*
 * Two workers of a runtime that park from 10 ms on; task 7 is woken at 100 ms.  polled: at that time, 0 = no more; busy: thread 1
 * sits in a call meanwhile; number: of the workers, be they told.
 */
static void stall(double polled, bool busy, bool numbers)
{
	const d9_u32 rt = 1u << 24 | 2;
	d9_u32 park = tb_site(&B, "futex_wait", 0x3000, 400, NULL), nap = tb_site(&B, "nanosleep", 0x5000, 900, NULL);
	tb_thread(&B, 2, 0, 101, "worker");
	B.runtime_module = 1;
	tb_wake(&B, 1, 7, rt, MS(1));
	for (d9_u32 th = 1; th <= 2; th++) {
		tb_poll(&B, th, 6 + th, rt, numbers ? th - 1 : D9_NO_INDEX, MS(2), MS(3));
		for (int k = 0; k < 3; k++)
			tb_span(&B, th, park,
				(struct tb_span){.t0 = MS(4 + 2 * k), .t1 = MS(5 + 2 * k), .object = 0x900 + th});
		if (busy && th == 1)
			tb_span(&B, th, nap, (struct tb_span){.t0 = MS(10), .t1 = MS(999)});
		else
			tb_span(&B, th, park,
				(struct tb_span){.t0 = MS(10), .t1 = MS(polled ? polled : 999), .object = 0x900 + th});
	}
	tb_wake(&B, 1, 7, rt, MS(100));
	if (polled)
		tb_poll(&B, 2, 7, rt, numbers ? 1 : D9_NO_INDEX, MS(polled), MS(polled + 1));
	tb_exit(&B, 1, MS(1000), 1, 0);
	analyse();
}

START_TEST(idle_stall)
{
	stall(800, false, true);
	only("idle-stall");
	const struct d9_finding *f = need("idle-stall");
	ck_assert_uint_eq(measured(f, "idle_ns"), MS(700));
	ck_assert_uint_eq(measured(f, "tasks"), 1);
	ck_assert(!f->inferred && says(f, "; task 100:1:7") && !f->cause.object);
}
END_TEST

START_TEST(idle_stall_to_the_end)
{
	stall(0, false, true);
	only("idle-stall");
	ck_assert_uint_eq(measured(need("idle-stall"), "idle_ns"), MS(900));
}
END_TEST

START_TEST(a_short_stall_is_none)
{
	stall(450, false, true);
	nothing();
}
END_TEST

/* The time of a wake that comes out a little after the poll that it asked for, and one that tells that there was such a poll. */
START_TEST(no_idle_stall_by_a_wake_that_was_polled)
{
	B.runtime_module = 1;
	tb_wake(&B, 1, 9, 1u << 24 | 2, MS(20)); /* of 9 nothing else is known but its end */
	tb_task_end(&B, 1, 9, 1, MS(20) - US(1));
	tb_wake(&B, 1, 8, 1u << 24 | 2, MS(3) + US(3));
	tb_wake(&B, 1, 7, 1u << 24 | 2, MS(3) + US(3));
	stall(450, false, true);
	nothing();
	ck_assert_uint_eq(M->left.n, 0);
}
END_TEST

START_TEST(no_idle_stall_where_a_worker_is_busy)
{
	stall(0, true, true);
	ck_assert(!find("idle-stall"));
}
END_TEST

START_TEST(no_idle_stall_of_a_runtime_without_workers)
{
	stall(0, false, false);
	nothing();
}
END_TEST

/* ---- the end of the recording ------------------------------------------------------------------------ */

START_TEST(a_call_before_the_end_is_a_blocking_call)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL), sleep = tb_site(&B, "nanosleep", 0x4000, 300, NULL);
	for (int i = 0; i < 20; i++)
		tb_span(&B, 1, home, (struct tb_span){.t0 = MS(10 * i), .t1 = MS(10 * i + 9), .fd = 5});
	tb_span(&B, 1, sleep, (struct tb_span){.t0 = MS(200), .t1 = MS(500)});
	tb_exit(&B, 1, MS(501), 3, 11);
	analyse();
	ck_assert_uint_eq(measured(need("blocking-call"), "blocked_ns"), MS(300));
}
END_TEST

START_TEST(a_join_before_the_end_is_none)
{
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL),
	       join = tb_site(&B, "pthread_join", 0x4000, 300, NULL);
	for (int i = 0; i < 20; i++)
		tb_span(&B, 1, home, (struct tb_span){.t0 = MS(10 * i), .t1 = MS(10 * i + 9), .fd = 5});
	tb_span(&B, 1, join, (struct tb_span){.t0 = MS(200), .t1 = MS(500)});
	tb_exit(&B, 1, MS(501), 1, 0);
	analyse();
	nothing();
}
END_TEST

START_TEST(a_place_of_any_number)
{
	tb_span(&B, 1, 0xffffffff, (struct tb_span){.t0 = MS(1), .t1 = MS(2)});
	tb_pending(&B, 1, 0xffffffff, MS(3), MS(4), 0, 0);
	analyse();
	ck_assert_uint_lt(T->threads.v[thread(100)].spans.v[0].site, T->sites.n);
	ck_assert_uint_lt(T->threads.v[thread(100)].pending.site, T->sites.n);
}
END_TEST

START_TEST(a_process_is_over_when_it_ended)
{
	tb_span(&B, 1, tb_site(&B, "nanosleep", 0x4000, 300, NULL), (struct tb_span){.t0 = MS(1), .t1 = MS(4)});
	tb_exit(&B, 1, MS(5), 2, 0);
	tb_calls(&B, 1, "write", 3, MS(1), 0, MS(400)); /* by a drainer, later */
	analyse();
	ck_assert_uint_eq(M->threads[thread(100)].wall, T->procs.v[0].end_t - T->threads.v[thread(100)].first);
	ck_assert_uint_eq(T->procs.v[0].end_t - T->t_begin, MS(5));
}
END_TEST

START_TEST(a_program_is_over_when_it_becomes_another)
{
	tb_span(&B, 1, tb_site(&B, "nanosleep", 0x4000, 300, NULL), (struct tb_span){.t0 = MS(1), .t1 = MS(2)});
	tb_exec(&B, 1, MS(3), 101, "/bin/child"); /* its child's, after vfork */
	tb_exec(&B, 1, MS(6), 100, "/bin/next");
	tb_calls(&B, 1, "write", 3, MS(1), 0, MS(400)); /* by a drainer, later */
	tb_exit(&B, 1, MS(400), 4, 0);                  /* when a drainer saw it */
	analyse();
	ck_assert_uint_eq(T->threads.v[thread(100)].last - T->t_begin, MS(6));
}
END_TEST

/*
 * Two workers that poll for 100 ms, one task after the other for `step` each, but for a park of worker 1 from 30 to 50 ms
 * if it parks; task 7 is woken at 20 ms and polled at 60 by worker 0.  delay, blocked: time in all that both had no CPU,
 * or were in calls.
 */
static void busy_workers(double step, bool parks, double delay, double blocked)
{
	tb_thread(&B, 2, 0, 101, "worker");
	B.runtime_module = 1;
	for (d9_u32 th = 1; th <= 2; th++) {
		tb_cpu(&B, th, 0, 0, 0);
		tb_cpu(&B, th, MS(100), MS(100 - delay - blocked), MS(delay));
		for (double t = 0; t < 100; t += step) {
			if (th == 2 && parks && t >= 30 && t < 50)
				continue;
			tb_poll(&B, th, th == 1 && t == 60 ? 7 : 50 + th, 1u << 24 | 1, th - 1, MS(t), MS(t + step));
		}
	}
	d9_u32 home = tb_site(&B, "epoll_wait", 0x1000, 400, NULL);
	if (parks)
		tb_span(&B, 2, home, (struct tb_span){.t0 = MS(30), .t1 = MS(50)});
	for (int i = 0; i < 20; i++) /* so that it is seen where they park */
		tb_span(&B, 2, home, (struct tb_span){.t0 = MS(100 + 2 * i), .t1 = MS(101 + 2 * i)});
	tb_wake(&B, 1, 7, 1u << 24 | 1, MS(20));
	analyse();
}

START_TEST(wake_delay)
{
	busy_workers(2, false, 3, 0);
	const struct d9_finding *f = need("wake-delay");
	ck_assert_uint_eq(measured(f, "wake_ns"), MS(40));
	ck_assert_uint_eq(f->count, 1);
	ck_assert_int_eq(f->severity, D9_WARNING);
	ck_assert(strstr(f->title, "40 ms for one of 2 workers") != NULL);
	ck_assert_uint_eq(measured(f, "workers"), 2);
	ck_assert_uint_eq(measured(f, "blocked_ns"), 0);
	ck_assert_uint_ge(measured(f, "on_cpu_ns"),
			  MS(75)); /* of 80, less what of the 6 without one may have fallen here */
	ck_assert(strstr(f->title, "meanwhile: of 80 ms ") != NULL && !strstr(f->title, "blocked"));
	only("wake-delay");
}
END_TEST

/* The same, and each poll waits all but half a millisecond: for a lock that has no holder, or for bytes, which takes less in all. */
START_TEST(wake_delay_by_blocked_workers)
{
	d9_u32 lock = tb_site(&B, "pthread_mutex_lock", 0x6000, 300, NULL), rd = tb_site(&B, "read", 0x2000, 300, NULL);
	for (double t = 0; t < 100; t += 2)
		for (d9_u32 th = 1; th <= 2; th++)
			if (th == 1 && (int)t % 8 == 0)
				tb_span(&B, 1, rd, (struct tb_span){.t0 = MS(t + 0.1), .t1 = MS(t + 1.6), .fd = 4});
			else
				tb_span(&B, th, lock,
					(struct tb_span){.t0 = MS(t + 0.1), .t1 = MS(t + 1.6), .object = 0xabc});
	busy_workers(2, false, 0, 75);
	const struct d9_finding *f = need("wake-delay");
	ck_assert_uint_eq(measured(f, "blocked_ns"), 2 * 20 * MS(1.5));
	ck_assert_uint_eq(measured(f, "on_cpu_ns"), D9_NOT_KNOWN); /* 25 ms in 100, and which of them was not read */
	ck_assert_uint_eq(measured(f, "wake_ns"), MS(40));
	ck_assert_uint_eq(f->cause.object, 0xabc);
	ck_assert_str_eq(f->cause.kind, "queue");
	ck_assert(strstr(f->title, ": of 80 ms 60 ms blocked, most in pthread_mutex_lock on 0xabc") != NULL);
	ck_assert(strstr(f->try[0], "d9 locks") != NULL);
}
END_TEST

START_TEST(no_wake_delay_where_a_worker_parked)
{
	busy_workers(2, true, 3, 0);
	ck_assert_ptr_null(find("wake-delay"));
}
END_TEST

START_TEST(no_wake_delay_for_want_of_a_cpu)
{
	busy_workers(2, false, 30, 0);
	ck_assert_ptr_null(find("wake-delay"));
}
END_TEST

START_TEST(no_wake_delay_behind_one_poll)
{
	busy_workers(30, false, 3, 0); /* from 30 to 60 of the 40 ms from 20: that one is the cause */
	ck_assert_ptr_null(find("wake-delay"));
}
END_TEST

/* One task is polled 1500 times, by one worker or another: moves of a hundred polls; from_first: polls of a hundred on worker 0. */
static void poll_often(unsigned moves, unsigned on_first)
{
	tb_thread(&B, 2, 0, 101, "worker");
	B.runtime_module = 1;
	for (d9_u32 i = 0; i < 1500; i++) {
		d9_u32 worker = moves > 50 ? i & 1 : i % 100 >= on_first;
		tb_poll(&B, 1 + worker, 7, 1u << 24 | 1, worker, MS(0.1 * i), MS(0.1 * i + 0.05));
	}
	analyse();
}

START_TEST(task_migration)
{
	poll_often(100, 50);
	const struct d9_finding *f = need("task-migration");
	ck_assert_uint_eq(measured(f, "migrations"), 1499);
	ck_assert_uint_eq(measured(f, "workers"), 2);
	ck_assert_uint_eq(measured(f, "per_ms") / 100, 99); /* 1499 in 149.95 ms */
	ck_assert_int_eq(f->severity, D9_INFO);
	only("task-migration");
}
END_TEST

START_TEST(worker_imbalance)
{
	poll_often(2, 80);
	const struct d9_finding *f = need("worker-imbalance");
	ck_assert_uint_eq(measured(f, "count"), 1500);
	ck_assert_uint_eq(measured(f, "share"), 800);
	ck_assert_int_eq(f->severity, D9_INFO);
	only("worker-imbalance");
}
END_TEST

START_TEST(polls_that_are_spread_are_no_finding)
{
	poll_often(2, 70);
	nothing();
}
END_TEST

/* 30 tasks, one every 50 ms, each polled once; a share of them ends. */
static void spawn_many(unsigned ending, bool polled_on)
{
	for (d9_u32 i = 0; i < 30; i++) {
		double t = 50.0 * i;
		tb_spawn(&B, 1, 100 + i, 3, MS(t), "co\033nn");
		tb_poll(&B, 1, 100 + i, 3, 0, MS(t + 1), MS(t + 2));
		if (i % 10 < ending)
			tb_task_end(&B, 1, 100 + i, 1, MS(t + 20));
		else if (polled_on)
			tb_wake(&B, 1, 100 + i, 3, MS(1499));
	}
	tb_poll(&B, 1, 99, 3, 0, MS(1500), MS(1501));
}

START_TEST(task_leak)
{
	spawn_many(1, false);
	analyse();
	const struct d9_finding *f = need("task-leak");
	ck_assert_uint_eq(measured(f, "tasks_last"), 28);
	ck_assert_uint_eq(measured(f, "tasks_first"), 3);
	ck_assert_uint_eq(measured(f, "tasks_idle"), 21);
	ck_assert(strstr(f->title, "`co?nn`") != NULL);
	only("task-leak");
}
END_TEST

START_TEST(tasks_that_end_are_no_leak)
{
	spawn_many(9, false);
	analyse();
	ck_assert_ptr_null(find("task-leak"));
}
END_TEST

START_TEST(tasks_whose_ends_are_not_told_are_no_leak)
{
	spawn_many(0, false);
	analyse();
	ck_assert_ptr_null(find("task-leak"));
}
END_TEST

START_TEST(tasks_that_run_are_no_leak)
{
	spawn_many(1, true);
	analyse();
	ck_assert_ptr_null(find("task-leak"));
}
END_TEST

START_TEST(lost_ends_are_no_leak)
{
	spawn_many(1, false);
	tb_gap(&B, 1, MS(700), MS(701), 1);
	analyse();
	ck_assert_ptr_null(find("task-leak"));
}
END_TEST

START_TEST(a_call_within_a_poll_has_its_task)
{
	d9_u32 site = tb_site(&B, "read", 0x1000, 400, NULL);
	tb_span(&B, 1, site, (struct tb_span){.t0 = MS(2), .t1 = MS(3), .fd = 5});
	tb_poll(&B, 1, 17, 3, 0, MS(1), MS(4));
	tb_span(&B, 1, site, (struct tb_span){.t0 = MS(5), .t1 = MS(6), .fd = 5});
	analyse();
	ck_assert_uint_eq(d9_show_task(M, (struct d9_ref){thread(100), D9_REF_SPAN, 0}), 17);
	ck_assert_uint_eq(d9_show_task(M, (struct d9_ref){thread(100), D9_REF_SPAN, 1}), D9_NOT_KNOWN);
}
END_TEST

START_TEST(wakes_are_spans_from_the_wakers_deed_on)
{
	d9_u32 cond = tb_site(&B, "pthread_cond_wait", 0x3000, 900, NULL);
	tb_thread(&B, 2, 0, 101, "waker");
	tb_span(&B, 1, cond, (struct tb_span){.t0 = 0, .t1 = MS(10), .object = 0x77, .waker = 3, .waker_t = MS(9)});
	tb_span(&B, 1, cond, (struct tb_span){.t0 = MS(11), .t1 = MS(30), .object = 0x77}); /* nobody was seen */
	analyse();
	size_t n = 9;
	struct d9_ref *refs = d9_show_longest(M, D9_KIND_WAKE, 0, &n);
	ck_assert_uint_eq(n, 1);
	struct d9_ref_info r = d9_ref_info(M, refs[0]);
	ck_assert_uint_eq(r.t1 - r.t0, MS(1));
	ck_assert_uint_eq(r.kind, D9_KIND_WAKE);
	free(refs);
}
END_TEST

START_TEST(histogram)
{
	struct d9_hist h = {0};
	for (d9_u64 i = 1; i <= 1000; i++)
		d9_hist_add(&h, i * 1000);
	d9_u64 p50 = d9_hist_quantile(&h, 0.5), p99 = d9_hist_quantile(&h, 0.99);
	ck_assert_uint_ge(p50, 485000);
	ck_assert_uint_le(p50, 515000);
	ck_assert_uint_ge(p99, 960000);
	ck_assert_uint_le(p99, 1000000);
	d9_u64 sum = 0;
	for (unsigned k = 0; k < 64; k++)
		sum += d9_hist_bucket(&h, k);
	ck_assert_uint_eq(sum, 1000);
	ck_assert_uint_eq(d9_hist_bucket(&h, 9), 1); /* 512 <= 1000 < 1024 */
	d9_hist_free(&h);
	d9_hist_add(&h, 0);
	d9_hist_add(&h, 1);
	d9_hist_add(&h, 2);
	d9_hist_add(&h, ~0ull);
	ck_assert_uint_eq(d9_hist_bucket(&h, 0), 2);
	ck_assert_uint_eq(d9_hist_bucket(&h, 1), 1);
	ck_assert_uint_eq(d9_hist_bucket(&h, 63), 1);
	d9_hist_free(&h);
}
END_TEST

/* The clock on the wall is set forward by 100 s at 2 s, and back by 50 s at 4 s; times of the recording go on as they were. */
START_TEST(a_clock_that_is_set)
{
	const d9_u64 s = 1000000000;
	struct d9_clock_map m = {.hz = 1e9};
	size_t cursor = 0;
	d9_clock_add(&m, 1 * s, 1 * s, 1001 * s);
	d9_clock_add(&m, 2 * s, 2 * s, 1102 * s);
	d9_clock_add(&m, 3 * s, 3 * s, 1103 * s);
	d9_clock_add(&m, 4 * s, 4 * s, 1054 * s);
	d9_clock_finish(&m);
	for (d9_u64 t = 0; t < 6 * s; t += s / 4)
		ck_assert_uint_eq(d9_clock_to_mono(&m, t, &cursor), t);
	ck_assert_uint_eq(d9_clock_mono_to_real(&m, 3 * s / 2), 1001 * s + s / 2);
	ck_assert_uint_eq(d9_clock_mono_to_real(&m, 5 * s / 2), 1102 * s + s / 2);
	ck_assert_uint_eq(d9_clock_mono_to_real(&m, 5 * s), 1055 * s);
	const struct {
		d9_u64 real, mono;
	} shown[] = {{1000 * s + s / 2, s / 2},     {1001 * s, s},
		     {1001 * s + s / 2, 3 * s / 2}, {1050 * s, 2 * s},
		     {1102 * s + s / 2, 5 * s / 2}, {1103 * s + s / 2, 7 * s / 2},
		     {1200 * s, 150 * s},           {0, 0}};
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		ck_assert_uint_eq(d9_clock_real_to_mono(&m, shown[i].real), shown[i].mono);
	free(m.v);
}
END_TEST

int main(void)
{
	const TTest *const with_trace[] = {r1_home_is_the_most_frequent_event_wait,
					   a_place_with_two_numbers_is_one,
					   r2_nested_wait_is_no_park,
					   r3_depth_alone_does_not_decide,
					   r4_distance_in_the_code,
					   r5_probe_and_wait_are_one_park,
					   r5_a_wait_that_timed_out_is_no_probe,
					   r6_null_wakeups_are_counted_apart,
					   r7_pools_by_object,
					   worker_rule,
					   times_add_up,
					   long_poll,
					   long_poll_warns_above_10_ms,
					   short_poll_is_fine,
					   waiting_for_a_cpu_is_no_long_poll,
					   unexplained_is_no_long_poll,
					   unmeasured_is_no_long_poll,
					   blocking_call,
					   blocking_call_warning,
					   short_call_is_fine,
					   preempted_call_is_no_blocking_call,
					   a_sleep_is_a_sleep_on_a_busy_machine,
					   unmeasured_recv,
					   pool_saturated,
					   pool_saturated_with_jobs,
					   a_task_is_queued_from_its_wake_to_its_poll,
					   a_lost_event_makes_no_long_queue,
					   runtimes_are_counted,
					   a_call_before_the_end_is_a_blocking_call,
					   a_join_before_the_end_is_none,
					   a_place_of_any_number,
					   a_process_is_over_when_it_ended,
					   a_program_is_over_when_it_becomes_another,
					   lives_of_tasks,
					   polls_out_of_order_are_put_right,
					   polls_that_have_not_ended,
					   lives_of_tasks_that_were_seen,
					   polls_of_no_task,
					   the_future_in_the_name_of_a_function,
					   no_task_is_idle_across_a_hole,
					   task_leak,
					   wake_delay,
					   wake_delay_by_blocked_workers,
					   no_wake_delay_where_a_worker_parked,
					   no_wake_delay_for_want_of_a_cpu,
					   no_wake_delay_behind_one_poll,
					   task_migration,
					   worker_imbalance,
					   polls_that_are_spread_are_no_finding,
					   tasks_that_end_are_no_leak,
					   tasks_whose_ends_are_not_told_are_no_leak,
					   tasks_that_run_are_no_leak,
					   lost_ends_are_no_leak,
					   a_call_within_a_poll_has_its_task,
					   wakes_are_spans_from_the_wakers_deed_on,
					   short_fsync,
					   hot_lock_with_one_slow_holder,
					   a_loop_that_holds_is_not_told_twice,
					   pool_with_room,
					   siblings_that_sleep_are_no_pool,
					   unmeasured_lock_wait,
					   unmeasured_fsync,
					   gil_contention,
					   a_gil_won_now_and_then_is_fine,
					   sleeping_main_is_no_worker,
					   driver_starved,
					   driver_not_starved_if_a_sibling_polls,
					   idle_stall,
					   idle_stall_to_the_end,
					   a_short_stall_is_none,
					   no_idle_stall_by_a_wake_that_was_polled,
					   no_idle_stall_where_a_worker_is_busy,
					   no_idle_stall_of_a_runtime_without_workers,
					   lock_across_await,
					   a_lock_let_go_between_polls_is_no_tasks,
					   a_lock_taken_in_the_poll_that_lets_it_go,
					   a_lock_let_go_in_a_first_poll_is_no_tasks,
					   a_lock_that_others_had_meanwhile,
					   a_lock_of_another_owner,
					   driver_starved_so_far,
					   driver_not_starved_if_a_sibling_polls_still,
					   a_worker_by_its_polls,
					   a_worker_that_was_replaced,
					   no_worker_without_a_number,
					   a_lock_in_a_poll_is_no_park,
					   a_loop_in_a_poll_parks,
					   jobs_of_a_former_worker,
					   a_call_that_a_poll_sits_in,
					   a_poll_that_computes_still,
					   a_poll_that_runs_the_loop_is_no_call,
					   lock_contention,
					   a_little_contention_is_fine,
					   lock_holder_io,
					   lock_holder_io_at_one_place,
					   short_holder_is_fine,
					   log_pipe_stall,
					   convoy_ends_at_its_root,
					   slow_stdout_alone_is_fine,
					   deadlock_through_a_condition,
					   short_condition_wait_is_no_deadlock,
					   deadlock_of_two,
					   waits_that_end_by_themselves_are_no_deadlock,
					   waiting_in_a_row_is_no_deadlock,
					   self_deadlock,
					   self_deadlock_of_a_whole_runtime,
					   self_deadlock_of_one_of_several,
					   self_deadlock_of_a_worker,
					   a_call_that_ended_is_not_pending,
					   a_stack_that_is_the_stuck_calls_own,
					   a_stack_of_a_place_that_was_there_before_the_recording,
					   event_loop_spin,
					   busy_server_does_not_spin,
					   slow_loop_does_not_spin,
					   accept_imbalance,
					   balanced_accepts,
					   connections_that_are_handed_out,
					   who_accepts_most_serves_most,
					   a_little_traffic_of_the_others,
					   one_poller_for_all_is_no_imbalance,
					   fd_table_growth,
					   slow_accept_is_no_growth,
					   oversubscribed_and_healthy,
					   one_incident_is_one_finding,
					   criticals_first_by_harm,
					   dump_order,
					   nested_spans_count_once,
					   session_is_a_family_tree,
					   session_of_quick_execs,
					   off_for_a_second,
					   lost_for_a_second,
					   on_for_a_while,
					   a_slow_call_before_a_hole,
					   from_and_to,
					   one_file_and_foreign_files};
	const TTest *const plain[] = {fail_if_grammar, histogram, custom_events, what_names_say_of_a_futex,
				      a_clock_that_is_set};
	Suite *s = suite_create("model");
	TCase *a = tcase_create("trace"), *b = tcase_create("plain");
	tcase_add_checked_fixture(a, setup, teardown);
	tcase_set_timeout(a, 30);
	for (size_t i = 0; i < sizeof(with_trace) / sizeof(with_trace[0]); i++)
		tcase_add_test(a, with_trace[i]);
	tcase_add_loop_test(a, a_stack_that_may_be_another_calls, 0, 4);
	tcase_add_loop_test(a, chunks_out_of_order_are_put_right, 0, 4);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		tcase_add_test(b, plain[i]);
	suite_add_tcase(s, a);
	suite_add_tcase(s, b);
	return suite_run(s);
}
