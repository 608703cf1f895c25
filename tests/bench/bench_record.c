/*
 * What a record costs by itself, over its clock reads, and what a stack costs: the recorder's own functions in
 * a loop, chunks given back at once so that the memory is what a drained arena's is.  Medians of interleaved rounds.
 */
#include "shim/calls.h"
#include "shim/stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 401
#define LOOP 2000

static double tsc_ns;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}
static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

/* What a drainer does, as far as the writer is concerned. */
static void give_back(void)
{
	for (d9_u32 i = 0; i < d9_shim.v.n_chunks; i++)
		if (D9_CHUNK_STATE(d9_shim.v.entries[i].state) == D9_CHUNK_FULL) {
			memset(d9_shim.v.chunks[i].rec, 0, D9_CHUNK_RECORDS);
			d9_shim.v.entries[i].state = D9_CHUNK_WORD(0, D9_CHUNK_BACKED);
		}
	d9_shim.v.h->chunks_full = 0;
	d9_shim.v.h->chunk_hint = 0;
}

static volatile d9_u64 sink;
static double clocks_alone(void)
{
	d9_u64 a = d9_tsc();
	for (int i = 0; i < LOOP; i++) {
		sink = d9_now();
		sink = d9_now();
	}
	return (double)(d9_tsc() - a) * tsc_ns / LOOP;
}
static double span(void)
{
	struct d9_call c = {.site = 7, .object = 1, .fd = 3};
	d9_u64 a = d9_tsc();
	for (int i = 0; i < LOOP; i++) {
		c.t0 = d9_now();
		d9_record_span(d9_me, &c, d9_now(), 0, D9_THREAD_NONE, 0);
	}
	double ns = (double)(d9_tsc() - a) * tsc_ns / LOOP;
	give_back();
	return ns;
}

static double walk_ns;
static __attribute__((noinline)) int deeper(int n)
{
	if (n) {
		int r = deeper(n - 1);
		__asm__ volatile("" : "+r"(r)); /* no tail call: each level is a frame */
		return r + 1;
	}
	d9_u64 frames[D9_STACK_FRAMES];
	d9_stack_known(d9_me, (d9_u64)__builtin_frame_address(0));
	d9_u64 a = d9_tsc();
	for (int i = 0; i < LOOP; i++)
		sink = d9_stack_walk((d9_u64)__builtin_frame_address(0), d9_me->stack_lo, d9_me->stack_hi, frames,
				     D9_STACK_FRAMES, NULL);
	walk_ns = (double)(d9_tsc() - a) * tsc_ns / LOOP;
	return (int)sink;
}

static void stacks(int depth)
{
	double v[ROUNDS];
	for (int i = 0; i < ROUNDS; i++) {
		deeper(depth);
		v[i] = walk_ns;
	}
	printf("frame-pointer stack, %2llu frames                     %6.1f ns\n", (unsigned long long)sink, median(v));
}

int main(int argc, char **argv)
{
	struct d9_config c;
	char dir[64];
	snprintf(dir, sizeof(dir), "/tmp/d9-bench-%d", (int)getpid());
	char env_dir[96];
	snprintf(env_dir, sizeof(env_dir), "D9_DIR=%s", dir);
	char *env[] = {env_dir, NULL};
	d9_config_from_env(&c, env);
	d9_shim.main_stack_hi = (d9_u64)argv;
	if (d9_arena_open(&c, "bench", argc, argv) || !d9_enter_thread())
		return 1;
	d9_u64 x = d9_tsc(), m = d9_mono_ns();
	while (d9_mono_ns() - m < 50000000)
		;
	tsc_ns = (double)(d9_mono_ns() - m) / (double)(d9_tsc() - x);
	double alone[ROUNDS], both[ROUNDS];
	for (int i = 0; i < ROUNDS; i++) {
		alone[i] = clocks_alone();
		both[i] = span();
	}
	double a = median(alone), b = median(both);
	printf("two clock reads                                     %6.1f ns\n", a);
	printf("two clock reads and a span record                   %6.1f ns: the record %.1f ns   bar 3: %s\n", b,
	       b - a, b - a <= 3 ? "met" : "not met");
	stacks(8);
	stacks(28);
	unlink(d9_shim.arena_path);
	char link[1200];
	snprintf(link, sizeof(link), "%s/arena", d9_shim.v.h->dir);
	unlink(link);
	rmdir(d9_shim.v.h->dir);
	rmdir(dir);
	return 0;
}
