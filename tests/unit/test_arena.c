/*
 * The record path and the drainer, called directly: several writers beside a drainer, records inside records as signal
 * handlers make them, an arena that is full.  Also built with ThreadSanitizer, where the portable atomics serve.
 */
#include "format/segment_read.h"
#include "shim/arena.h"
#include "shim/calls.h"
#include "shim/drain.h"
#include "shim/modules.h"
#include "shim/record.h"
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 4
#define RECORDS 60000

static char dir[] = "/tmp/d9-unit-XXXXXX";

/* ---- an arena, and what was drained from it ------------------------------------------------------------ */

static void remove_arena(void)
{
	char command[1200];
	if (d9_shim.arena_path[0])
		unlink(d9_shim.arena_path);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

static void open_arena(d9_u64 mib)
{
	struct d9_config c;
	char *argv[] = {(char[]){"unit"}, NULL}, *env[] = {NULL};
	ck_assert_ptr_nonnull(mkdtemp(dir));
	d9_config_from_env(&c, env);
	snprintf(c.dir, sizeof(c.dir), "%s", dir);
	c.mem_mb = mib;
	ck_assert_int_eq(d9_arena_open(&c, "unit", 1, argv), 0);
	d9_shim.v.h->mask = ~0ull;
	d9_shim.mask = &d9_shim.v.h->mask;
	ck_assert_ptr_nonnull(d9_enter_thread()); /* as the constructor does, before there are other threads */
}

static struct d9_drain *open_drain(void)
{
	void *mem = mmap(NULL, d9_drain_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			 -1, 0);
	struct d9_drain_options o = {
		.kind = D9_LEASE_RUN, .lease_fd = -1, .same_pids = true, .back = d9_back, .path = d9_shim.arena_path};
	ck_assert(mem != MAP_FAILED);
	o.dirfd = open(d9_shim.v.h->dir, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(o.dirfd, 0);
	return d9_drain_init(mem, d9_shim.v.h, d9_shim.v.n_chunks, &o);
}

/* By writer: its records, by their place in the arena: that is the thread's own order. */
struct place {
	d9_u64 key, task;
};
struct seen {
	struct place *of[WRITERS];
	d9_u64 n[WRITERS], lost, out_of_order, pending;
};

static int see(void *ctx, const struct d9_segr_event *ev)
{
	struct seen *s = ctx;
	const struct d9_ev_wake *e = (const struct d9_ev_wake *)ev->rec;
	s->pending += ev->id == D9_EV_pending;
	if (ev->id == D9_EV_gap)
		s->lost += ((const struct d9_ev_gap *)ev->rec)->events;
	if (ev->id != D9_EV_wake || e->by >= WRITERS)
		return 0;
	d9_u64 n = s->n[e->by]++;
	if (!(n & (n - 1)))
		s->of[e->by] = realloc(s->of[e->by], (n ? 2 * n : 1) * sizeof(struct place));
	s->of[e->by][n] = (struct place){(d9_u64)ev->run.serial << 32 | (ev->run.begin + ev->index), e->task};
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	return x->key < y->key ? -1 : x->key > y->key;
}

static void judge_order(struct seen *s)
{
	for (int i = 0; i < WRITERS; i++) {
		if (s->n[i])
			qsort(s->of[i], s->n[i], sizeof(struct place), by_place);
		for (d9_u64 k = 0; k < s->n[i]; k++)
			s->out_of_order += k && s->of[i][k].task <= s->of[i][k - 1].task;
		free(s->of[i]);
	}
}

static void read_back(struct seen *s)
{
	struct dirent **names;
	char path[1400], err[256];
	int n = scandir(d9_shim.v.h->dir, &names, NULL, alphasort);
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < n; i++) {
		struct d9_segr *r;
		snprintf(path, sizeof(path), "%s/%s", d9_shim.v.h->dir, names[i]->d_name);
		if (names[i]->d_name[0] == 's') {
			ck_assert_msg(!d9_segr_open(path, &r, err, sizeof(err)), "%s", err);
			ck_assert_int_eq(d9_segr_each(r, see, s), 0);
			d9_segr_close(r);
		}
		free(names[i]);
	}
	free(names);
	judge_order(s);
}

/* ---- writers ---------------------------------------------------------------------------------------------- */

static struct d9_cell *cell(void) { return d9_me && d9_me->slot ? d9_me : d9_enter_thread(); }

static struct d9_ev_wake *begin(void)
{
	struct d9_cell *me = cell();
	return me ? (struct d9_ev_wake *)d9_record_begin(me, sizeof(struct d9_ev_wake), D9_EV_wake) : NULL;
}

static void fill(struct d9_ev_wake *e, d9_u64 writer, d9_u64 i)
{
	e->rec.site = 0;
	e->rec.t = 1000 + i;
	e->task = i;
	e->by = writer;
	e->module = e->runtime = 0;
	d9_record_commit(&e->rec, sizeof(*e), D9_EV_wake);
}

static d9_u32 issued[WRITERS];

static void *write_many(void *arg)
{
	d9_u64 me = (d9_u64)arg;
	for (d9_u64 i = 0; i < RECORDS; i++) {
		struct d9_ev_wake *e = begin();
		if (e)
			fill(e, me, i);
		issued[me]++;
	}
	return NULL;
}

static volatile int stop;
static void *drain_on(void *d)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		ck_assert_int_ge(d9_drain_pass(d, 0), 0);
	return NULL;
}

static void write_at_once(void)
{
	pthread_t t[WRITERS];
	for (d9_u64 i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, write_many, (void *)i), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
}

START_TEST(writers_beside_a_drainer)
{
	struct seen s;
	pthread_t t;
	open_arena(64);
	struct d9_drain *d = open_drain();
	ck_assert_int_eq(pthread_create(&t, NULL, drain_on, d), 0);
	write_at_once();
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	ck_assert_int_ge(d9_drain_pass(d, D9_PASS_FINAL), 0);
	read_back(&s);
	for (int i = 0; i < WRITERS; i++)
		ck_assert_uint_eq(s.n[i], RECORDS);
	ck_assert_uint_eq(s.out_of_order, 0);
	ck_assert_uint_eq(s.lost, 0);
	ck_assert_int_eq(d9_drain_pass(d, D9_PASS_FINAL), 0); /* nothing is drained twice */
	remove_arena();
}
END_TEST

START_TEST(a_full_arena_counts)
{
	struct seen s;
	open_arena(1);
	struct d9_drain *d = open_drain();
	write_at_once();
	ck_assert_int_ge(d9_drain_pass(d, D9_PASS_FINAL), 0);
	read_back(&s);
	d9_u64 kept = 0, all = 0;
	for (int i = 0; i < WRITERS; i++) {
		kept += s.n[i];
		all += issued[i];
	}
	ck_assert_uint_gt(s.lost, 0);
	ck_assert_msg(kept + s.lost == all,
		      "kept %llu, told lost %llu of %llu; the header: %u dropped, %u threads refused",
		      (unsigned long long)kept, (unsigned long long)s.lost, (unsigned long long)all, d9_shim.v.h->drops,
		      d9_shim.v.h->unrecorded);
	remove_arena();
}
END_TEST

/* ---- a drainer that is late -------------------------------------------------------------------------------- */

#define LATE_RECORDS 60000

/* Records that say little that can be packed, of writers that went on side by side. */
static void *write_noise(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	for (d9_u64 i = 0; i < LATE_RECORDS; i++) {
		struct d9_ev_wake *e = begin();
		ck_assert_ptr_nonnull(e);
		e->rec.site = 0;
		e->rec.t = 1000 + i;
		e->task = i;
		e->by = (d9_u64)(uintptr_t)arg;
		e->module = (d9_u32)rand_r(&seed);
		e->runtime = (d9_u32)rand_r(&seed);
		e->flags = (d9_u32)rand_r(&seed);
		e->pad = 0;
		d9_record_commit(&e->rec, sizeof(*e), D9_EV_wake);
	}
	return NULL;
}

struct stretch {
	d9_u64 n, first, last;
};

static int see_stretch(void *ctx, const struct d9_segr_event *ev)
{
	struct stretch *s = ctx;
	if (ev->id != D9_EV_wake)
		return 0;
	if (!s->n++ || ev->rec->t < s->first)
		s->first = ev->rec->t;
	if (ev->rec->t > s->last)
		s->last = ev->rec->t;
	return 0;
}

/* What waited for it goes into segments of the usual size, each later than the one before: the budget removes whole ones. */
START_TEST(a_late_drainer_makes_no_larger_segments)
{
	struct dirent **names;
	char path[1400], err[256];
	pthread_t t[WRITERS];
	struct stat st;
	struct stretch before = {0};
	d9_u64 n = 0, n_segments = 0;
	open_arena(64);
	d9_shim.v.h->segment_bytes = 1 << 20;
	struct d9_drain *d = open_drain();
	for (d9_u64 i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, write_noise, (void *)i), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
	ck_assert_int_ge(d9_drain_pass(d, _i ? D9_PASS_FINAL : 0), 0);
	ck_assert_int_ge(d9_drain_pass(d, D9_PASS_FINAL), 0);
	int n_names = scandir(d9_shim.v.h->dir, &names, NULL, alphasort);
	for (int i = 0; i < n_names; i++) {
		struct d9_segr *r;
		snprintf(path, sizeof(path), "%s/%s", d9_shim.v.h->dir, names[i]->d_name);
		if (names[i]->d_name[0] == 's') {
			struct stretch s = {0};
			ck_assert_int_eq(stat(path, &st), 0);
			ck_assert_int_lt(st.st_size, 3 << 19);
			ck_assert_msg(!d9_segr_open(path, &r, err, sizeof(err)), "%s", err);
			ck_assert_int_eq(d9_segr_each(r, see_stretch, &s), 0);
			d9_segr_close(r);
			ck_assert(!s.n || s.first >= before.last);
			if (s.n)
				before = s;
			n += s.n;
			n_segments++;
		}
		free(names[i]);
	}
	free(names);
	ck_assert_uint_eq(n, WRITERS * LATE_RECORDS);
	ck_assert_uint_ge(n_segments, 3);
	remove_arena();
}
END_TEST

/*
 * What a signal handler does: between the reservation of a record and its commit, records of its own, and handlers within
 * handlers.  Here by plain calls, with counts that make them end up at every place of a chunk.
 */
static d9_u64 next_of[WRITERS];
static void nested(int depth, unsigned pattern)
{
	struct d9_ev_wake *e = begin();
	if (depth < WRITERS - 1)
		for (unsigned i = pattern >> 2 * depth & 3; i > 0; i--)
			nested(depth + 1, pattern);
	ck_assert_ptr_nonnull(e);
	fill(e, (d9_u64)depth, next_of[depth]++);
}

START_TEST(records_inside_records)
{
	struct seen s;
	open_arena(64);
	struct d9_drain *d = open_drain();
	for (unsigned i = 0; i < 20000; i++) {
		nested(0, i * 7);
		if (i % 1000 == 0)
			ck_assert_int_ge(d9_drain_pass(d, 0), 0);
	}
	ck_assert_int_ge(d9_drain_pass(d, D9_PASS_FINAL), 0);
	read_back(&s);
	for (int i = 0; i < WRITERS; i++)
		ck_assert_uint_eq(s.n[i], next_of[i]);
	ck_assert_uint_eq(s.lost, 0);
	ck_assert_uint_eq(s.out_of_order, 0);
	remove_arena();
}
END_TEST

/* A record that was reserved and never committed, by a thread that died there, hides nothing that follows it. */
START_TEST(a_reservation_that_is_left)
{
	struct seen s;
	open_arena(64);
	struct d9_drain *d = open_drain();
	struct d9_ev_wake *left = begin();
	ck_assert_ptr_nonnull(left);
	for (d9_u64 i = 0; i < 10; i++)
		fill(begin(), 0, i);
	ck_assert_int_ge(d9_drain_pass(d, 0), 0);
	d9_me->slot->state = D9_SLOT_DEAD;
	ck_assert_int_ge(d9_drain_pass(d, D9_PASS_FINAL), 0);
	read_back(&s);
	ck_assert_uint_eq(s.n[0], 10);
	remove_arena();
}
END_TEST

/* Whoever wakes leaves its name where somebody waited, and nowhere else; a child is no waker of its parent's threads. */
START_TEST(a_waker_is_of_the_same_process)
{
	open_arena(64);
	const d9_u64 object = 0x7f0000001040, t0 = d9_now();
	d9_u64 t = 0, other = object + 8;
	while (D9_WAITED_BIT(other) != D9_WAITED_BIT(object))
		other += 8;
	struct d9_call c = {.site = 1};
	d9_waker_note(object); /* before anybody waits */
	ck_assert_uint_eq(d9_shim.waited, 0);
	d9_waker_mark(&c, object);
	ck_assert_uint_eq(d9_shim.waited, 1ull << D9_WAITED_BIT(object));
	ck_assert_uint_eq(d9_waker_find(c.waker, object, t0, d9_now() - t0, &t), D9_THREAD_NONE);
	d9_waker_note(other);
	ck_assert_uint_eq(d9_waker_find(c.waker, object, t0, d9_now() - t0, &t), D9_THREAD_NONE);
	pid_t child = fork();
	if (!child) {
		d9_waker_note(object); /* its first event: until now it has its parent's word for which process it is */
		bool entered = d9_me && d9_me->slot && d9_shim.priv->proc == 1;
		d9_waker_note(object);
		_exit(entered && d9_waker_find(c.waker, object, t0, d9_now() - t0, &t) == D9_THREAD_NONE ? 0 : 1);
	}
	int status = -1;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(d9_waker_find(c.waker, object, t0, d9_now() - t0, &t), D9_THREAD_NONE);
	d9_waker_note(object);
	ck_assert_uint_eq(d9_waker_find(c.waker, object, t0, d9_now() - t0, &t), d9_me->thread);
	ck_assert_uint_ge(t, t0);
	ck_assert_uint_eq(d9_waker_find(c.waker, object, d9_now(), 1000, &t), D9_THREAD_NONE); /* a later wait */
	remove_arena();
}
END_TEST

/* Frames of the runtime ABI: for 64 slots at a time, a child's own, none under a filter; afterwards all is as if there were no recorder. */
START_TEST(memory_is_taken_by_need_and_given_back)
{
	open_arena(1);
	d9_u64 held = d9_arena_held(true), all = d9_arena_held(false);
	ck_assert_uint_eq(d9_shim.v.n_threads, 256);
	ck_assert_uint_eq(all - held, d9_shim.v.h->bytes);
	ck_assert(d9_frames_for(63));
	ck_assert_uint_eq(d9_arena_held(true), held);
	d9_shim.priv->nosys = 1;
	ck_assert(!d9_frames_for(64));
	d9_shim.priv->nosys = 0;
	ck_assert(d9_frames_for(64) && d9_frames_for(127) && !d9_shim.frames[2]);
	ck_assert_uint_eq(d9_arena_held(true), held + D9_FRAMES_BYTES);
	d9_shim.frames[1][63].abi.depth = 3;
	pid_t child = fork();
	if (!child)
		_exit(d9_frames_for(64) && d9_shim.frames[1][63].abi.depth == 0 ? 0 : 1);
	int status = -1;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	const void *gone[] = {d9_shim.v.h, d9_shim.priv, d9_shim.frames[1]};
	char *file = strdup(d9_shim.arena_path);
	d9_arena_close();
	unsigned char in_memory;
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(mincore((void *)(uintptr_t)gone[i], 4096, &in_memory), -1);
	ck_assert(!d9_enter_thread() && !d9_me && !d9_load_relaxed(d9_shim.mask) && !d9_shim.v.h);
	unlink(file);
	free(file);
	d9_shim.arena_path[0] = 0;
	remove_arena();
}
END_TEST

/*
 * Threads go one by one when their process ends: one of another process that is gone in the middle of a call has its last word then.
 * One of this process, which goes on, was cancelled there.
 */
enum { IN_NOTHING, IN_A_CALL, IN_A_CALL_HERE, GONE_WAYS };
START_TEST(who_is_gone_first_has_a_last_word)
{
	struct seen s;
	open_arena(64);
	struct d9_thread *me = d9_me->slot;
	struct d9_drain *d = open_drain();
	pid_t other = fork();
	if (!other)
		for (;;)
			pause();
	if (_i != IN_NOTHING)
		d9_in_call_fill(&me->call,
				d9_site_new(d9_me, 1, __builtin_return_address(0), __builtin_frame_address(0)), 3,
				d9_now(), 0, __builtin_frame_address(0));
	me->tid = 1 << 30; /* no thread has that */
	if (_i != IN_A_CALL_HERE) {
		d9_shim.v.procs[0].pid = other;
		d9_shim.v.procs[0].start = 0;
	}
	ck_assert_int_ge(d9_drain_pass(d, 0), 0);
	ck_assert_uint_eq(d9_load_acquire(&me->state), _i == IN_A_CALL ? D9_SLOT_LIVE : D9_SLOT_FREE);
	d9_drain_child_ended(d, d9_shim.v.procs[0].pid, 0);
	ck_assert_int_ge(d9_drain_pass(d, D9_PASS_FINAL), 0);
	read_back(&s);
	ck_assert_uint_eq(s.pending, _i == IN_A_CALL);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	remove_arena();
}
END_TEST

/* A worker that dropped its rights can write every word of the arena, and must gain nothing by it. */
START_TEST(what_another_member_writes_leads_nowhere)
{
	open_arena(1);
	struct d9_cell *me = cell();
	d9_u64 lo = (d9_u64)d9_shim.v.chunks, hi = lo + d9_shim.v.n_chunks * (d9_u64)D9_CHUNK_BYTES;
	static const d9_u32 heads[] = {D9_COMMITTED, D9_REC_HEAD(0, 1), D9_REC_HEAD(0x7ff8, 1), D9_REC_HEAD(4096, 1)};
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		fill(begin(), 0, i);
		((struct d9_rec *)me->cursor)->head = heads[i];
		struct d9_ev_wake *e = begin(); /* comes back, and with room of its own */
		ck_assert_ptr_nonnull(e);
		ck_assert_uint_ge((d9_u64)e, lo);
		ck_assert_uint_le((d9_u64)(e + 1), hi);
		ck_assert_uint_eq((d9_u64)e / D9_CHUNK_BYTES, ((d9_u64)me->cursor - 1) / D9_CHUNK_BYTES);
		fill(e, 0, i);
	}
	static const d9_u32 chunks[] = {~0u, 1u << 20};
	d9_shim.main_stack_hi = (d9_u64)__builtin_frame_address(0) + 1024; /* so that sites have stacks */
	me->stack_hi = 0;
	for (d9_u64 i = 0; i < 2; i++) {
		d9_shim.v.h->pinned_chunk = chunks[i];
		ck_assert_uint_ne(d9_site_new(me, 1, (void *)(0x1000 + i), __builtin_frame_address(0)), 0);
	}
	d9_u32 pinned = d9_shim.v.h->pinned_chunk;
	ck_assert(pinned && pinned <= d9_shim.v.n_chunks);
	d9_shim.v.chunks[pinned - 1].used = ~0ull - 63; /* with a stack's length added it would be small again */
	ck_assert_uint_ne(d9_site_new(me, 1, (void *)0x3000, __builtin_frame_address(0)), 0);
	ck_assert_uint_ne(d9_shim.v.h->pinned_chunk, pinned);
	remove_arena();
}
END_TEST

/* A path may be longer than what is read at a time: its line is cut, and those around it are whole. */
START_TEST(mappings_with_long_paths)
{
	static const size_t lengths[] = {0, 10, 2000, 2047, 2048, 2049, 4096, 9000, 1};
	const size_t n = sizeof(lengths) / sizeof(lengths[0]);
	FILE *f = tmpfile();
	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "%zx-%zx r-xp %zx 00:01 7   %s", (i + 1) << 12, (i + 2) << 12, i << 12,
			lengths[i] ? "/" : "");
		for (size_t k = 1; k < lengths[i]; k++)
			fputc('p', f);
		fputc('\n', f);
	}
	rewind(f);
	struct d9_maps_reader r = {.fd = fileno(f)};
	struct d9_map_line m;
	for (size_t i = 0; i < n; i++) {
		ck_assert(d9_next_mapping(&r, &m));
		ck_assert_uint_eq(m.start, (i + 1) << 12);
		ck_assert_uint_eq(m.end, (i + 2) << 12);
		ck_assert_uint_eq(m.offset, i << 12);
		ck_assert(m.exec);
		if (lengths[i] < 2000)
			ck_assert_uint_eq(strlen(m.path), lengths[i]);
		else
			ck_assert(strlen(m.path) >= 1900 && strspn(m.path + 1, "p") == strlen(m.path) - 1);
	}
	ck_assert(!d9_next_mapping(&r, &m));
	fclose(f);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("arena");
	TCase *c = tcase_create("record path");
	tcase_set_timeout(c, 240);
	tcase_add_test(c, writers_beside_a_drainer);
	tcase_add_test(c, a_full_arena_counts);
	tcase_add_loop_test(c, a_late_drainer_makes_no_larger_segments, 0, 2);
	tcase_add_test(c, records_inside_records);
	tcase_add_test(c, a_reservation_that_is_left);
	tcase_add_test(c, a_waker_is_of_the_same_process);
	tcase_add_loop_test(c, who_is_gone_first_has_a_last_word, 0, GONE_WAYS);
	tcase_add_test(c, what_another_member_writes_leads_nowhere);
	tcase_add_test(c, memory_is_taken_by_need_and_given_back);
	tcase_add_test(c, mappings_with_long_paths);
	suite_add_tcase(suite, c);
	return suite_run(suite);
}
