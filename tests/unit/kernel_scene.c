/*
 * Writes a recording of a service and of its kernel's side, as d9-kernel would have made it, and prints the folder: what the tests of
 * commands read where no d9-kernel can run.
 */
#include "trace_builder.h"

#include <stdio.h>
#include <sys/syscall.h>

#define FLUSH "io_schedule+0x46\nblkdev_issue_flush+0x5\next4_sync_file+0x1\n"
#define RCU "synchronize_rcu_normal+0x91\nexpand_files+0x3c\nalloc_fd+0x7a\n"

static void service(struct tb *b)
{
	tb_family(b, "svc");
	tb_proc(b, 0, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
	tb_thread(b, 1, 0, 100, "svc");
	tb_thread(b, 2, 0, 133, "pool;1 \x1b[31m");
	d9_u32 home = tb_site(b, "epoll_wait", 0x1000, 400, NULL), sync = tb_site(b, "fsync", 0x7000, 300, NULL);
	for (int i = 0; i < 60; i++)
		tb_span(b, 1, home, (struct tb_span){.t0 = MS(10 * i), .t1 = MS(10 * i + 9), .fd = 5, .result = 1});
	tb_span(b, 2, sync, (struct tb_span){.t0 = MS(10), .t1 = MS(263), .fd = 9});
	tb_end(b);
}

static void kernel(struct tb *b)
{
	const d9_u64 buckets[25] = {[10] = 900, [24] = 1};
	tb_kernel(b, 1, NULL);
	tb_proc(b, 7, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
	tb_thread(b, 40, 7, 100, "svc");
	tb_thread(b, 41, 7, 133, "pool;1");
	tb_thread(b, 42, 7, 155, "unseen by hooks");
	tb_kernel_thread(b, 41, 4133, 4100);
	tb_runq(b, 40,
		(struct tb_runq){.t0 = MS(15),
				 .t1 = MS(33),
				 .prev = 71,
				 .prev_pid = 70,
				 .waker = 4133,
				 .name = "cc1\n\x1b[31m"});
	tb_runq(b, 42, (struct tb_runq){.t0 = MS(40), .t1 = MS(41), .flags = 1});
	tb_runq_total(b, 40, MS(600), 901, MS(19), MS(18), buckets, 25);
	tb_offcpu(b, 41,
		  (struct tb_offcpu){.t0 = MS(10),
				     .t1 = MS(263),
				     .woken = MS(262),
				     .nr = SYS_fsync,
				     .state = 2,
				     .arg0 = 9,
				     .stack = FLUSH});
	tb_user_stack(b, 41, MS(263), 0x4711);
	tb_offcpu(b, 42, (struct tb_offcpu){.t0 = MS(50), .t1 = MS(58), .nr = SYS_dup, .state = 2, .stack = RCU});
	tb_offcpu(b, 42, (struct tb_offcpu){.t0 = MS(60), .t1 = MS(64), .nr = -1, .state = 2});
	tb_offcpu(b, 42, (struct tb_offcpu){.t0 = MS(70), .t1 = MS(74), .nr = 99999, .state = 1});
	tb_block_io(b, 41, MS(11), MS(251), 2, 0, 0);
	tb_block_io(b, 41, MS(11), MS(20), 1, 4096, 0);
	tb_block_io(b, 42, MS(80), MS(83), 1, 8192, -5);
	tb_syscall(b, 41, MS(10), MS(263), SYS_fsync, 9, 0);
	tb_syscall(b, 42, MS(50), MS(58), SYS_dup, 3, -24);
	tb_syscall(b, 42, MS(70), MS(74), 99999, 0, -9);
	tb_gap(b, D9_THREAD_NONE, MS(500), MS(520), 17);
	tb_end(b);
}

int main(void)
{
	struct tb b;
	tb_new(&b);
	service(&b);
	kernel(&b);
	puts(b.dir);
	free(b.memory);
	return 0;
}
