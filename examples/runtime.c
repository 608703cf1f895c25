/*
 * How a runtime tells d9shim of its tasks: two workers poll the tasks of one queue, everything they do is said through d9.h.
 *
 *	cc -O2 -pthread -Ishim -o runtime examples/runtime.c
 *	d9 run -- ./runtime && d9 dump --json
 *
 * Without a recorder every D9_CALL is a load and a branch.  Ends by itself and prints what a recording of it must hold.
 */
#include "d9.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORKERS = 2, TASKS = 20, STEPS = 5, RUNTIME = 1 };

struct task {
	uint64_t id;
	int left; /* polls until it is ready */
	struct task *next;
};

static struct task tasks[TASKS];
static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct task *head, **tail;
	int length, alive;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &queue.head, 0, TASKS};
static atomic_int polls, wakes, ends, spans, logs, counters, customs, parks;
static uint32_t order_type; /* the kind of event that main declares */

/* ---- the queue ---- */

static void make_runnable(struct task *t, uint64_t by)
{
	D9_CALL(wake, t->id, by, RUNTIME);
	wakes++;
	pthread_mutex_lock(&queue.lock);
	t->next = NULL;
	*queue.tail = t;
	queue.tail = &t->next;
	queue.length++;
	pthread_cond_signal(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
}

/* The next task, or NULL if all are over.  A worker that finds none says that it parks. */
static struct task *take(uint32_t worker)
{
	pthread_mutex_lock(&queue.lock);
	if (!queue.head && queue.alive) {
		D9_CALL(worker_park, RUNTIME, worker);
		while (!queue.head && queue.alive)
			pthread_cond_wait(&queue.filled, &queue.lock);
		D9_CALL(worker_unpark);
		parks++;
	}
	struct task *t = queue.head;
	if (t && !(queue.head = t->next))
		queue.tail = &queue.head;
	queue.length -= t != NULL;
	D9_CALL(counter, "queue", queue.length);
	counters++;
	pthread_mutex_unlock(&queue.lock);
	return t;
}

static void task_is_over(void)
{
	pthread_mutex_lock(&queue.lock);
	if (!--queue.alive)
		pthread_cond_broadcast(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
}

/* ---- tasks ---- */

/* An event of the program's own: the fields one after the other, as event_type was told. */
static void say_order(const struct task *t)
{
	struct __attribute__((packed)) {
		uint64_t id;
		int64_t delta;
		double ratio;
		char what[8];
	} order = {t->id, -(int64_t)t->id, (double)t->id / 4, ""};
	int n = snprintf(order.what, sizeof(order.what), "box-%d", (int)t->id % 100) + 1;
	D9_CALL(event, order_type, &order, offsetof(__typeof__(order), what) + (size_t)n);
	customs++;
	printf("CUSTOM name=order id=%llu delta=%lld ratio=%g what=%s\n", (unsigned long long)order.id,
	       (long long)order.delta, order.ratio, order.what);
}

/* True if the task is ready. */
static int poll_task(struct task *t)
{
	D9_CALL(span_begin, "parse", t->id);
	for (volatile int i = 0; i < 20000; i++)
		;
	D9_CALL(span_end);
	spans++;
	if (--t->left)
		return 0;
	say_order(t);
	D9_CALL(log_line, D9_LOG_INFO, "order parsed");
	logs++;
	return 1;
}

static void *work(void *arg)
{
	uint32_t worker = (uint32_t)(uintptr_t)arg;
	for (struct task *t; (t = take(worker));) {
		D9_CALL(poll_begin, t->id, RUNTIME, worker);
		int ready = poll_task(t);
		D9_CALL(poll_end, ready ? D9_POLL_READY : D9_POLL_PENDING);
		polls++;
		if (ready) {
			D9_CALL(task_end, t->id, D9_POLL_READY);
			ends++;
			task_is_over();
		} else {
			make_runnable(t, t->id); /* it goes on by itself, after the others */
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t workers[WORKERS];
	const struct d9_abi *d9 = d9_abi_get();
	if (d9)
		order_type = d9->event_type("order", "id:u64,delta:i64,ratio:f64,what:str");
	for (int i = 0; i < TASKS; i++) {
		tasks[i] = (struct task){.id = (uint64_t)i + 1, .left = STEPS};
		D9_CALL(task_spawn, tasks[i].id, 0, RUNTIME, "order");
		make_runnable(&tasks[i], 0);
	}
	for (uintptr_t i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, work, (void *)i);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	printf("TRUTH recorder=%d task_spawn=%d poll=%d ready=%d wake=%d task_end=%d app_span=%d log=%d counter=%d "
	       "custom=%d "
	       "park=%d\n",
	       d9 != NULL, TASKS, polls, TASKS, wakes, ends, spans, logs, counters, customs, parks);
	return 0;
}
