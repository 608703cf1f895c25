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

/* Who was a target keeps a storage for as long as the programs are loaded: only who never was one is anybody else. */
enum who { ANYBODY, TARGET, WHO };
static const struct way {
	const char *name, *bar;
	enum who who;
	bool loaded, wakers;
} ways[] = {
	{"anybody: without", "", ANYBODY, false, false}, {"  with", "bar +120", ANYBODY, true, false},
	{"  with --wakers", "", ANYBODY, true, true},    {"target: without", "", TARGET, false, false},
	{"  with", "bar +350", TARGET, true, false},     {"  with --wakers", "", TARGET, true, true},
};
#define WAYS (sizeof(ways) / sizeof(*ways))

/* A process of two threads, which does a turn when it is asked to. */
struct pair {
	pid_t pid;
	int ask, answer;
};

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

/* Makes a process a target of these programs. */
static void take(struct sched *s, int pid)
{
	char buf[4096];
	d9_u8 one = 1;
	must(!bpf_map_update_elem(bpf_map__fd(s->maps.wanted), &pid, &one, BPF_ANY), "cannot ask for a process");
	struct bpf_link *find = bpf_program__attach(s->progs.d9_find);
	int fd = find ? bpf_iter_create(bpf_link__fd(find)) : -1;
	must(fd >= 0, "cannot iterate over tasks");
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
	bpf_link__destroy(find);
}

static struct sched *load(const struct way *way, int target)
{
	struct sched *s = way->loaded ? sched__open() : NULL;
	if (!s)
		return NULL;
	(void)bpf_program__set_autoload(s->progs.d9_waking, way->wakers);
	(void)bpf_program__set_autoload(s->progs.d9_sys_enter, false);
	(void)bpf_program__set_autoload(s->progs.d9_sys_exit, false);
	must(!sched__load(s), "the programs cannot be loaded here");
	if (way->who == TARGET)
		take(s, target);
	return s;
}

static void measure(const struct pair *p, struct sched *s, double ret[SLICES])
{
	struct bpf_link *links[4] = {NULL};
	if (s) {
		struct bpf_program *of[] = {s->progs.d9_switch, s->progs.d9_wakeup, s->progs.d9_wakeup_new,
					    s->progs.d9_waking};
		for (int i = 0; i < 4; i++)
			links[i] = bpf_program__autoload(of[i]) ? bpf_program__attach(of[i]) : NULL;
	}
	must(write(p->ask, "x", 1) == 1 && read(p->answer, ret, SLICES * sizeof(*ret)) == SLICES * sizeof(*ret),
	     "a pair has ended");
	for (int i = 0; i < 4; i++)
		bpf_link__destroy(links[i]);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static _Noreturn void be_a_pair(int asked, int answers)
{
	pthread_t t;
	cpu_set_t cpus;
	struct sched_param first = {.sched_priority = 1};
	(void)sched_setscheduler(0, SCHED_FIFO,
				 &first); /* where that is allowed, others of this machine stay out of it */
	CPU_ZERO(&cpus);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &cpus);
	must(!sched_setaffinity(0, sizeof(cpus), &cpus) && !pipe2(to, O_CLOEXEC) && !pipe2(fro, O_CLOEXEC) &&
		     !pthread_create(&t, NULL, answer, NULL),
	     "no second thread");
	for (char c; read(asked, &c, 1) == 1;) {
		double took[SLICES];
		(void)slice();
		for (int i = 0; i < SLICES; i++)
			took[i] = slice();
		must(write(answers, took, sizeof(took)) == sizeof(took), "nobody listens");
	}
	_exit(0);
}

static struct pair start_pair(void)
{
	int ask[2], answers[2];
	must(!pipe2(ask, O_CLOEXEC) && !pipe2(answers, O_CLOEXEC), "no pipe");
	struct pair p = {.pid = fork(), .ask = ask[1], .answer = answers[0]};
	must(p.pid >= 0, "no process");
	if (!p.pid) {
		close(ask[1]);
		be_a_pair(ask[0], answers[1]);
	}
	close(ask[0]);
	close(answers[1]);
	return p;
}

int main(void)
{
	struct sched *of[WAYS];
	struct pair pairs[WHO];
	for (int i = 0; i < WHO; i++)
		pairs[i] = start_pair();
	for (int i = 0; i < WHO; i++)
		measure(&pairs[i], NULL, ns[0]); /* its threads are there then */
	for (unsigned w = 0; w < WAYS; w++)
		of[w] = load(&ways[w], pairs[TARGET].pid);
	for (unsigned turn = 0; turn < TURNS; turn++)
		for (unsigned k = 0; k < WAYS; k++) {
			unsigned w = (turn + k) % WAYS;
			measure(&pairs[ways[w].who], of[w], &ns[w][turn * SLICES]);
		}
	for (unsigned w = 0; w < WAYS; w++)
		qsort(ns[w], TURNS * SLICES, sizeof(**ns), by_size);
	printf("%-20s %8s %8s %8s %8s ns\n", "", "least", "1/20", "1/10", "1/4");
	for (unsigned w = 0, base = 0; w < WAYS; w++) {
		static const int at[] = {0, TURNS * SLICES / 20, TURNS * SLICES / 10, TURNS * SLICES / 4};
		base = ways[w].loaded ? base : w;
		printf("%-20s", ways[w].name);
		for (int i = 0; i < 4; i++)
			printf(w > base ? " %+8.0f" : " %8.0f", ns[w][at[i]] - (w > base ? ns[base][at[i]] : 0));
		printf("  %s\n", ways[w].bar);
	}
	for (unsigned w = 0; w < WAYS; w++)
		sched__destroy(of[w]);
	for (int i = 0; i < WHO; i++)
		close(pairs[i].ask); /* it ends then */
	return 0;
}
