/*
 * Tokio's tables and nothing behind them, so that a poll can do what Tokio's own does not: let an exception or a forced unwinding
 * out, be left by longjmp, fork, be entered deeper than is kept, come with a head that names another table.  Whatever happens, the
 * program finds its tasks with the references that it gave them.
 *
 * Prints a line for each poll, wake and end that must be recorded.
 */
#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

enum : uint64_t { RUNNING = 1, COMPLETE = 2, NOTIFIED = 4, REFERENCE = 64 };
enum outcome { PENDING, READY, WOKEN = 3 };

struct table;
struct task {
	std::atomic<uint64_t> state{REFERENCE | NOTIFIED};
	void *queue_next = nullptr;
	const struct table *of;
	uint64_t owner = 7;
	void *scheduler = nullptr;
	uint64_t id;
	void (*body)(task *);
	task *inner = nullptr;
	uint64_t trailer[4] = {};
};
struct table {
	void (*poll)(task *), (*schedule)(task *), (*dealloc)(task *), (*others[3])(task *), (*shutdown)(task *);
	uint64_t trailer, scheduler, id;
};

static void fail(const char *what)
{
	std::printf("WRONG %s\n", what);
	std::exit(1);
}

static int freed;
static void poll(task *t)
{
	t->state = (t->state & ~NOTIFIED) | RUNNING;
	t->body(t);
	t->state &= ~RUNNING;
}
static void schedule(task *t) { t->state |= NOTIFIED; }
static void dealloc(task *) { freed++; }
static void nothing(task *) {}
static void drop_it(task *t) { t->state |= COMPLETE; }

extern "C" {
extern const table fake_table, fake_other, fake_jobs;
const table fake_table = {poll, schedule, dealloc, {nothing, nothing, nothing}, drop_it, 0x60, 0x20, 0x28};
const table fake_other = {poll, schedule, dealloc, {nothing, nothing, nothing}, drop_it, 0x68, 0x20, 0x28};
const table fake_jobs = {poll, schedule, dealloc, {nothing, nothing, nothing}, drop_it, 0x60, 0x20, 0x28};
void fake_clone();
struct wakers {
	void (*clone)(), (*wake)(task *), (*wake_by_ref)(task *), (*drop)(task *);
};
extern const wakers fake_wakers;
const wakers fake_wakers = {fake_clone, schedule, schedule, nothing};
}
__asm__(".text\n"
	".globl fake_clone\n"
	"fake_clone:\n"
	"	movl $0x40, %eax\n"
	"	lock xaddq %rax, (%rdi)\n"
	"	leaq fake_wakers(%rip), %rax\n"
	"	movq %rdi, %rdx\n"
	"	ret\n");

/* As Tokio does: through the table that the task names. */
static void run(task *t)
{
	const table *volatile of = t->of;
	of->poll(t);
}

static uint64_t last_id;
static void expect(const task &t, outcome o) { std::printf("POLL task=%llu outcome=%d\n", (unsigned long long)t.id, o); }
static void whole(const task &t, uint64_t state)
{
	if (t.state != state)
		fail("the task has other references, or marks that are not Tokio's");
}

static jmp_buf out;
static void is_pending(task *) {}
static void is_ready(task *t) { t->state |= COMPLETE; }
static void throws(task *) { throw std::runtime_error("out of a poll"); }
static void jumps(task *) { longjmp(out, 1); }
static void runs_inner(task *t) { run(t->inner); }
static void is_last(task *t)
{
	t->state |= COMPLETE;
	if (t->state.fetch_sub(REFERENCE) / REFERENCE == 1)
		dealloc(t);
}
static void ends_thread(task *) { pthread_exit(nullptr); }
static void forks(task *t)
{
	int status = 0;
	pid_t pid = fork();
	if (!pid)
		return; /* the child goes on in the poll */
	waitpid(pid, &status, 0);
	if (status)
		fail("the child");
	t->scheduler = t;
}
static void descends(task *t)
{
	if (t->inner)
		run(t->inner);
}

#define TASK(name, ...)                \
	task name;                     \
	name.of = &fake_table;         \
	name.id = ++last_id;           \
	name.body = __VA_ARGS__;       \
	(void)0

static void exceptions()
{
	TASK(inner, throws);
	TASK(outer, runs_inner);
	outer.inner = &inner;
	for (int i = 0; i < 3; i++) {
		try {
			run(&outer);
			fail("nothing came out");
		} catch (const std::runtime_error &) {
		}
		expect(inner, PENDING);
		expect(outer, PENDING);
		whole(inner, REFERENCE | RUNNING);
		whole(outer, REFERENCE | RUNNING);
		inner.state = outer.state = REFERENCE | NOTIFIED;
	}
	TASK(after, is_ready); /* the thread is in no poll any more */
	run(&after);
	expect(after, READY);
	whole(after, REFERENCE | COMPLETE);
}

static void *in_thread(void *p)
{
	run(static_cast<task *>(p));
	fail("the thread went on");
	return nullptr;
}
static void forced()
{
	TASK(t, ends_thread);
	pthread_t thread;
	if (pthread_create(&thread, nullptr, in_thread, &t))
		fail("pthread_create");
	pthread_join(thread, nullptr);
	expect(t, PENDING);
	whole(t, REFERENCE | RUNNING);
}

/* What is jumped out of never ends: no record, and the poll around it ends as ever. */
static void jump_inside(task *t)
{
	if (!setjmp(out))
		run(t->inner);
}
static void jump()
{
	TASK(left, jumps);
	TASK(around, jump_inside);
	around.inner = &left;
	run(&around);
	expect(around, PENDING);
	whole(around, REFERENCE);
	TASK(after, is_pending);
	run(&after);
	expect(after, PENDING);
}

static void in_fork()
{
	TASK(t, forks);
	run(&t);
	if (!t.scheduler) {
		if (t.state != REFERENCE)
			_exit(1);
		TASK(childs, is_ready);
		run(&childs);
		_exit(childs.state != (REFERENCE | COMPLETE));
	}
	expect(t, PENDING);
	whole(t, REFERENCE);
	std::printf("POLL task=%llu outcome=1\n", (unsigned long long)last_id + 1); /* the child's */
}

static void frees()
{
	TASK(t, is_last);
	run(&t);
	expect(t, READY);
	if (freed != 1)
		fail("the last reference, and the task was not freed once");
}

/* Fourteen are kept; those below go by unseen. */
static void deep()
{
	task all[20];
	for (int i = 0; i < 20; i++) {
		all[i].of = &fake_table;
		all[i].id = ++last_id;
		all[i].body = descends;
		all[i].inner = i + 1 < 20 ? &all[i + 1] : nullptr;
	}
	run(&all[0]);
	for (int i = 14; i-- > 0;)
		expect(all[i], PENDING);
	for (const task &t : all)
		whole(t, REFERENCE);
}

/* A task that does not name the table by which it is polled is none that we know. */
static void strange()
{
	TASK(t, is_ready);
	t.of = &fake_other;
	const table *volatile of = &fake_table;
	of->poll(&t);
	whole(t, REFERENCE | COMPLETE);
}

static void woken()
{
	TASK(t, is_pending);
	const wakers *volatile w = &fake_wakers;
	w->wake_by_ref(&t);
	run(&t);
	expect(t, PENDING);
	const table *volatile of = t.of;
	of->schedule(&t);
	std::printf("WAKE task=%llu\n", (unsigned long long)t.id);
	of->shutdown(&t);
	std::printf("END task=%llu outcome=2\n", (unsigned long long)t.id);
	whole(t, REFERENCE | NOTIFIED | COMPLETE);
}

/*
 * A job that holds what a worker's life does whose core is another's, and goes on: a job of the program's, for such a life ends at once; or, if
 * tasks of that worker are polled in it, its life after all.
 */
static uint64_t handle[2] = {2, 1}, worker[5] = {1, 1, reinterpret_cast<uint64_t>(handle), 0, 0};
static void waits_for_a_line(task *t)
{
	if (t->queue_next)
		run(static_cast<task *>(t->queue_next));
	std::printf("READY\n");
	std::fflush(stdout);
	(void)std::getchar();
	t->state |= COMPLETE;
}
static int job(bool polls)
{
	TASK(inner, is_ready);
	inner.scheduler = handle;
	TASK(t, waits_for_a_line);
	t.of = &fake_jobs;
	t.owner = 0;
	t.inner = reinterpret_cast<task *>(worker);
	t.queue_next = polls ? &inner : nullptr;
	run(&t);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return job(!std::strcmp(argv[1], "worker"));
	exceptions();
	forced();
	jump();
	frees();
	deep();
	strange();
	woken();
	std::fflush(stdout);
	in_fork();
	std::printf("DONE\n");
	return 0;
}
