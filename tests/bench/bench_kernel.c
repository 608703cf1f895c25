/*
 * What d9-kernel's programs cost a context switch with its wake: two threads on one CPU pass a byte to and fro while the programs are
 * attached and taken off again, every few milliseconds by turns, so that whatever else slows the machine slows all of them.  Prints the
 * least and lower quantiles: the rest is other people's load.
 */
#include "format/types.h"

#include <stdbool.h>
#include <bpf/bpf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sched.skel.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 300 /* of a slice: about 2 ms */
#define SLICES 12
#define TURNS 60

enum way { WITHOUT, BYSTANDER, BYSTANDER_WAKERS, TARGET, TARGET_WAKERS, WAYS };
static const char *const names[WAYS] = {"without", "bystander", "bystander, --wakers", "target", "target, --wakers"};
static const char *const bars[WAYS] = {"", "bar +120", "", "bar +350", ""};

static double ns[WAYS][TURNS * SLICES];
static int to[2], fro[2];

static void must(bool x, const char *what)
{
	if (x)
		return;
	fprintf(stderr, "bench_kernel: %s\n", what);
	exit(1);
}

static void *answer(void *arg)
{
	char c;
	while (read(to[0], &c, 1) == 1 && write(fro[1], &c, 1) == 1)
		;
	return arg;
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double slice(void)
{
	char c = 'x';
	double from = now_ns();
	for (int i = 0; i < ROUNDS; i++)
		must(write(to[1], &c, 1) == 1 && read(fro[0], &c, 1) == 1, "a pipe broke");
	return (now_ns() - from) / (2 * ROUNDS);
}

/* Makes this process a target of these programs. */
static void take(struct sched *s)
{
	char buf[4096];
	int pid = getpid();
	d9_u8 one = 1;
	must(!bpf_map_update_elem(bpf_map__fd(s->maps.wanted), &pid, &one, BPF_ANY), "cannot ask for this process");
	struct bpf_link *find = bpf_program__attach(s->progs.d9_find);
	int fd = find ? bpf_iter_create(bpf_link__fd(find)) : -1;
	must(fd >= 0, "cannot iterate over tasks");
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
	bpf_link__destroy(find);
}

static struct sched *load(enum way way)
{
	struct sched *s = way == WITHOUT ? NULL : sched__open();
	if (!s)
		return NULL;
	(void)bpf_program__set_autoload(s->progs.d9_waking, way == BYSTANDER_WAKERS || way == TARGET_WAKERS);
	(void)bpf_program__set_autoload(s->progs.d9_sys_enter, false);
	(void)bpf_program__set_autoload(s->progs.d9_sys_exit, false);
	must(!sched__load(s), "the programs cannot be loaded here");
	if (way >= TARGET)
		take(s);
	return s;
}

static void measure(enum way way, struct sched *s, int turn)
{
	struct bpf_link *links[4] = {NULL};
	if (s) {
		struct bpf_program *of[] = {s->progs.d9_switch, s->progs.d9_wakeup, s->progs.d9_wakeup_new,
					    s->progs.d9_waking};
		for (int i = 0; i < 4; i++)
			links[i] = bpf_program__autoload(of[i]) ? bpf_program__attach(of[i]) : NULL;
	}
	(void)slice();
	for (int i = 0; i < SLICES; i++)
		ns[way][turn * SLICES + i] = slice();
	for (int i = 0; i < 4; i++)
		bpf_link__destroy(links[i]);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void start_pair(void)
{
	pthread_t t;
	cpu_set_t s;
	struct sched_param first = {.sched_priority = 1};
	(void)sched_setscheduler(0, SCHED_FIFO,
				 &first); /* where that is allowed, others of this machine stay out of it */
	CPU_ZERO(&s);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &s);
	must(!sched_setaffinity(0, sizeof(s), &s) && !pipe2(to, O_CLOEXEC) && !pipe2(fro, O_CLOEXEC) &&
		     !pthread_create(&t, NULL, answer, NULL),
	     "no second thread");
}

int main(void)
{
	struct sched *of[WAYS];
	start_pair();
	for (int w = 0; w < WAYS; w++)
		of[w] = load((enum way)w);
	for (int turn = 0; turn < TURNS; turn++)
		for (int k = 0; k < WAYS; k++) {
			int w = (turn + k) % WAYS;
			measure((enum way)w, of[w], turn);
		}
	for (int w = 0; w < WAYS; w++)
		qsort(ns[w], TURNS * SLICES, sizeof(**ns), by_size);
	printf("%-20s %8s %8s %8s %8s ns\n", "", "least", "1/20", "1/10", "1/4");
	for (int w = 0; w < WAYS; w++) {
		static const int at[] = {0, TURNS * SLICES / 20, TURNS * SLICES / 10, TURNS * SLICES / 4};
		printf("%-20s", names[w]);
		for (int i = 0; i < 4; i++)
			printf(w ? " %+8.0f" : " %8.0f", ns[w][at[i]] - (w ? ns[WITHOUT][at[i]] : 0));
		printf("  %s\n", bars[w]);
	}
	for (int w = 0; w < WAYS; w++)
		sched__destroy(of[w]);
	return 0;
}
