/* d9 tasks: a line for each task that a program told of or that was seen of its runtime.  d9 task: the life of one. */
#include "clean.h"
#include "format/arena.h"
#include "show.h"
#include "tasks.h"

#include <errno.h>
#include <regex.h>

#define TEXT_TASKS 50
#define TEXT_MOMENTS 200 /* of a life: the first half of them and the last */
#define INSIDE_NS 100000 /* a call in a poll that is worth a word */
#define AWAITED_MAX 8    /* stacks of what one task awaits at once */

/* ---- one form for both ------------------------------------------------------------------------------- */

static const char *key_of(const struct d9_model *m, const struct d9_task *k, char buf[D9_TASK_KEY_BYTES])
{
	return d9_task_key(m, k->proc, k->module, k->id, buf);
}

static void id_json(struct d9_json *j, const char *key, d9_u64 id)
{
	if (id)
		d9_json_u64(j, key, id);
	else
		d9_json_null(j, key);
}

/* Each stack once: one place may have been met in several forms. */
static size_t awaited(const struct d9_model *m, struct d9_tasks *t, const struct d9_task *k,
		      const struct d9_stack *ret[AWAITED_MAX])
{
	size_t n = 0;
	for (size_t i = k->n_awaiting; i-- > 0 && n < AWAITED_MAX;) {
		const struct d9_stack *s = d9_task_dump_stack(m, &t->dumps, &k->awaiting[i]);
		size_t same = 0;
		while (same < n && !d9_same_stack(ret[same], s))
			same++;
		if (s->n && same == n)
			ret[n++] = s;
	}
	return n;
}

static void task_json(struct d9_json *j, const char *key, const struct d9_model *m, struct d9_tasks *t,
		      const struct d9_task *k)
{
	const struct d9_stack *stacks[AWAITED_MAX];
	char text[D9_TASK_KEY_BYTES];
	d9_json_object(j, key);
	d9_json_str(j, "key", key_of(m, k, text));
	d9_json_i64(j, "pid", k->proc == D9_NO_INDEX ? 0 : m->t->procs.v[k->proc].pid);
	d9_json_u64(j, "module", k->module);
	d9_json_u64(j, "id", k->id);
	if (k->name.n)
		d9_json_strn(j, "name", (const char *)k->name.p, k->name.n);
	else
		d9_json_null(j, "name");
	d9_json_known(j, "runtime", k->runtime == D9_NO_INDEX ? D9_NOT_KNOWN : k->runtime);
	d9_json_str(j, "kind", k->job ? "blocking" : "async");
	d9_json_u64(j, "spawned_ns", k->spawned);
	d9_json_str(j, "spawn", k->exact ? "exact" : "bounded");
	id_json(j, "parent", k->parent);
	d9_json_known(j, "ended_ns", k->ended);
	d9_json_str(j, "outcome", k->outcome >= D9_TASK_OVER ? NULL : d9_task_outcome_name(k->outcome));
	d9_json_u64(j, "polls", k->polls);
	d9_json_u64(j, "poll_total_ns", k->poll_total);
	d9_json_u64(j, "poll_max_ns", k->poll_max);
	d9_json_u64(j, "wakes", k->wakes);
	d9_json_known(j, "wake_delay_max_ns", k->waits ? k->queue_max : D9_NOT_KNOWN);
	d9_json_u64(j, "workers", k->workers);
	d9_json_u64(j, "migrations", k->migrations);
	d9_json_known(j, "idle_since_ns", k->idle_since);
	d9_json_known(j, "queue_ns", k->waits ? k->queue_total : D9_NOT_KNOWN);
	d9_json_array(j, "awaiting");
	for (size_t i = 0, n = awaited(m, t, k, stacks); i < n; i++)
		d9_show_frames_json(j, NULL, stacks[i]);
	d9_json_end_array(j);
	d9_json_str(j, "awaiting_task", k->awaited ? d9_task_key(m, k->proc, k->module, k->awaited, text) : NULL);
	d9_json_end_object(j);
}

static int end_json(struct d9_json *j)
{
	return d9_json_end_document(j) < 0 ? d9_fail(D9_EXIT_DATA, "cannot write to stdout: %s", strerror(errno))
					   : D9_EXIT_OK;
}

static const char *seconds(const struct d9_model *m, d9_u64 t, char *buf, size_t n)
{
	d9_u64 us = (t - m->t->t_begin) / 1000;
	snprintf(buf, n, "%llu.%06llu s", (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
	return buf;
}

static const char *state_of(const struct d9_model *m, const struct d9_task *k, char *buf, size_t n)
{
	char dur[32];
	if (k->polled)
		return k->job ? "running" : "being polled";
	if (k->job && !k->polls && k->outcome == D9_TASK_ALIVE)
		return "in the queue";
	if (k->outcome != D9_TASK_ALIVE || k->idle_since == D9_NOT_KNOWN)
		return d9_task_outcome_name(k->outcome);
	snprintf(buf, n, "idle for %s", d9_format_duration(m->t->to - k->idle_since, dur));
	return buf;
}

/* ---- d9 tasks --------------------------------------------------------------------------------------- */

enum order { LONGEST_POLL, MOST_POLLS, IDLE };

static d9_u64 rank(const struct d9_task *k, enum order o)
{
	switch (o) {
	case MOST_POLLS:
		return k->polls;
	case IDLE:
		return ~k->idle_since; /* the earliest first */
	default:
		return k->poll_max;
	}
}

static int by_rank(const void *a, const void *b, void *order)
{
	const struct d9_task *x = *(const struct d9_task *const *)a, *y = *(const struct d9_task *const *)b;
	d9_u64 rx = rank(x, *(enum order *)order), ry = rank(y, *(enum order *)order);
	return rx != ry ? (rx > ry ? -1 : 1) : x < y ? -1 : x > y;
}

static void line(const struct d9_model *m, const struct d9_task *k)
{
	char key[D9_TASK_KEY_BYTES], total[32], longest[32], wait[32], state[64],
		*name = d9_clean_copy(k->name.p, k->name.n);
	printf("  %-20s %8llu %10s %10s %8llu %10s %7u %6u  %-18s %s\n", key_of(m, k, key),
	       (unsigned long long)k->polls, d9_format_duration(k->poll_total, total),
	       d9_format_duration(k->poll_max, longest), (unsigned long long)k->wakes,
	       k->waits ? d9_format_duration(k->queue_max, wait) : "-", k->workers, k->migrations,
	       state_of(m, k, state, sizeof(state)), name);
	free(name);
}

static bool wanted(const struct d9_task *k, enum order order, const regex_t *name)
{
	if (order == IDLE && k->idle_since == D9_NOT_KNOWN)
		return false;
	if (!name)
		return true;
	char *text = d9_clean_copy(k->name.p, k->name.n);
	bool yes = !regexec(name, text, 0, NULL, 0);
	free(text);
	return yes;
}

/* "PATH: Tokio, 3 kinds of tasks, recorded as module 1": what runtimes were found in the programs. */
static void modules_json(struct d9_json *j, const struct d9_trace *t)
{
	static const char note[] = "note=", warning[] = "warning=";
	d9_json_array(j, "modules");
	for (size_t i = 0; i < t->infos.n; i++) {
		const char *line = t->infos.v[i], *number = strstr(line, D9_NOTE_MODULE),
			   *end = strstr(line, D9_NOTE_TOKIO), *why = strstr(line, D9_NOTE_REFUSED);
		bool patched = !strncmp(line, note, sizeof(note) - 1) && end && number;
		if (!patched && (strncmp(line, warning, sizeof(warning) - 1) != 0 || !why))
			continue;
		line += patched ? sizeof(note) - 1 : sizeof(warning) - 1;
		const char *pid = patched ? strstr(number, D9_NOTE_PROCESS) : NULL;
		d9_json_object(j, NULL);
		d9_json_known(j, "index", patched ? strtoull(number + strlen(D9_NOTE_MODULE), NULL, 10) : D9_NOT_KNOWN);
		d9_json_known(j, "pid", pid ? strtoull(pid + strlen(D9_NOTE_PROCESS), NULL, 10) : D9_NOT_KNOWN);
		d9_json_strn(j, "path", line, (size_t)((patched ? end : why) - line));
		d9_json_null(j, "tokio"); /* its version is not in the recording */
		d9_json_str(j, "state", patched ? "patched" : "refused");
		d9_json_str(j, "why", patched ? NULL : why + strlen(D9_NOTE_REFUSED));
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

static void tell_why_none(const struct d9_tasks *t)
{
	fprintf(stderr,
		t->of.n ? "d9: none of the %zu tasks of this recording is of that kind\n"
			: "d9: no task here: neither did a Tokio make one that was seen (--json says which were "
			  "found), nor did a "
			  "program tell of any (shim/d9.h)\n",
		t->of.n);
}

static int write_tasks(const struct d9_model *m, struct d9_tasks *t, enum order order, const regex_t *name, bool json)
{
	const struct d9_task **v = d9_must_alloc(t->of.n + 1, sizeof(struct d9_task *));
	size_t n = 0;
	int r = D9_EXIT_OK;
	for (size_t i = 0; i < t->of.n; i++)
		if (wanted(&t->of.v[i], order, name))
			v[n++] = &t->of.v[i];
	qsort_r(v, n, sizeof(*v), by_rank, &order);
	if (json) {
		struct d9_json j;
		d9_json_document(&j, stdout, "tasks");
		modules_json(&j, m->t);
		d9_json_array(&j, "tasks");
		for (size_t i = 0; i < n; i++)
			task_json(&j, NULL, m, t, v[i]);
		d9_json_end_array(&j);
		r = end_json(&j);
	} else if (n) {
		printf("  %-20s %8s %10s %10s %8s %10s %7s %6s  %-18s %s\n", "key", "polls", "in all", "longest",
		       "wakes", "waited", "workers", "moves", "state", "name");
		for (size_t i = 0; i < n && i < TEXT_TASKS; i++)
			line(m, v[i]);
		if (n > TEXT_TASKS)
			printf("  %d of %zu; --longest-poll, --most-polls, --idle and --name choose, --json gives "
			       "all\n",
			       TEXT_TASKS, n);
	}
	if (!n)
		tell_why_none(t);
	free(v);
	return r;
}

int d9_cmd_tasks(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	const char *longest = NULL, *most = NULL, *idle = NULL, *name = NULL;
	const struct d9_opt extra[] = {{"--longest-poll", false, &longest},
				       {"--most-polls", false, &most},
				       {"--idle", false, &idle},
				       {"--name", true, &name}};
	int r = d9_read_opts_parse(self, argc, argv, 0, extra, 4, &o);
	if (r)
		return r - 1;
	if (!!longest + !!most + !!idle > 1)
		return d9_fail(D9_EXIT_USAGE, "tasks: one of --longest-poll, --most-polls and --idle, not two");
	regex_t re;
	int bad = name ? regcomp(&re, name, REG_EXTENDED | REG_NOSUB) : 0;
	if (bad) {
		char why[128];
		regerror(bad, &re, why, sizeof(why));
		return d9_fail(D9_EXIT_USAGE, "tasks: --name %s is no regular expression: %s", name, why);
	}
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (!r) {
		r = write_tasks(m, d9_model_tasks(m),
				most   ? MOST_POLLS
				: idle ? IDLE
				       : LONGEST_POLL,
				name ? &re : NULL, o.json);
		d9_model_close(m);
	}
	if (name)
		regfree(&re);
	return r;
}

/* ---- d9 task ---------------------------------------------------------------------------------------- */

static const char *const moment_names[] = {"spawn", "wake", "poll", "end"};

/* NULL: no wake. */
static const struct d9_ev_wake *wake_of(const struct d9_model *m, const struct d9_moment *x)
{
	return x->what == D9_TASK_WAKE ? (const void *)m->t->threads.v[x->thread].events.v[x->index].rec : NULL;
}

/* NULL: a program that tells of its tasks says no more than that no task did it. */
static const char *wake_source(const struct d9_ev_wake *e)
{
	if (e->by)
		return "task";
	return e->flags & D9_WAKE_DRIVER ? "driver" : e->module ? "thread" : NULL;
}

static void moment_json(struct d9_json *j, const struct d9_model *m, const struct d9_moment *x)
{
	const struct d9_rt_span *poll = x->what == D9_TASK_POLL ? &m->t->threads.v[x->thread].rt.v[x->index] : NULL;
	d9_json_object(j, NULL);
	d9_json_u64(j, "t_ns", x->t);
	d9_json_str(j, "event", moment_names[x->what]);
	const struct d9_ev_wake *wake = wake_of(m, x);
	d9_json_i64(j, "tid", d9_show_tid(m, x->by_thread));
	d9_json_known(j, "dur_ns", poll ? x->t1 - x->t : D9_NOT_KNOWN);
	d9_json_known(j, "worker", poll && poll->worker != D9_NO_INDEX ? poll->worker : D9_NOT_KNOWN);
	d9_json_known(j, "outcome", poll && poll->outcome != D9_NO_INDEX ? poll->outcome : D9_NOT_KNOWN);
	d9_json_known(j, "queue_ns", x->since ? x->t - x->since : D9_NOT_KNOWN);
	id_json(j, "by", wake ? wake->by : 0);
	d9_json_str(j, "source", wake ? wake_source(wake) : NULL);
	d9_json_end_object(j);
}

static void poll_text(const struct d9_model *m, struct d9_tasks *t, const struct d9_moment *x)
{
	static const char *const outcomes[] = {"pending", "ready", "cancelled", "pending, woken meanwhile",
					       "over, and aborted meanwhile"};
	const struct d9_trace_thread *th = &m->t->threads.v[x->thread];
	const struct d9_rt_span *s = &th->rt.v[x->index];
	char dur[32], wait[32], in[32];
	printf("polled for %s%s", d9_format_duration(x->t1 - x->t, dur), s->unfinished ? "+" : "");
	if (s->outcome < sizeof(outcomes) / sizeof(outcomes[0]))
		printf(": %s", outcomes[s->outcome]);
	if (x->since)
		printf("; waited %s for it", d9_format_duration(x->t - x->since, wait));
	d9_u64 inside;
	d9_u32 span = d9_model_busiest_span(m, x->thread, x->t, x->t1, &inside);
	if (span != D9_NO_INDEX && inside >= INSIDE_NS)
		printf("; of that %s in %s", d9_format_duration(inside, in),
		       m->t->hooks.v[th->spans.v[span].hook].name);
	const struct d9_task_dump *dumps;
	size_t n = d9_task_dumps_in(&t->dumps, x->proc, x->module, x->task, x->t, x->t1, &dumps);
	char line[512];
	if (n && s->outcome == D9_OUTCOME_PENDING &&
	    *d9_show_headline(d9_task_dump_stack(m, &t->dumps, &dumps[n - 1]), 3, line, sizeof(line)))
		printf("; awaits %s", line);
}

static void wake_text(const struct d9_ev_wake *e)
{
	const char *source = wake_source(e);
	printf("woken%s", e->flags & D9_WAKE_CANCEL ? ", to be cancelled," : "");
	if (e->by)
		printf(" by task %llu", (unsigned long long)e->by);
	else if (!source)
		printf(" by no task");
	else
		printf(" by %s",
		       strcmp(source, "driver") ? "no task of the runtime" : "the runtime's driver or timers");
}

static void moment_text(const struct d9_model *m, struct d9_tasks *t, const struct d9_task *k,
			const struct d9_moment *x)
{
	char at[48], who[96];
	printf("  %14s  ", seconds(m, x->t, at, sizeof(at)));
	if (x->what == D9_TASK_POLL)
		poll_text(m, t, x);
	else if (x->what == D9_TASK_WAKE)
		wake_text(wake_of(m, x));
	else if (x->what == D9_TASK_END)
		printf("over%s%s", k->outcome == D9_TASK_OVER ? "" : ": ",
		       k->outcome == D9_TASK_OVER ? "" : d9_task_outcome_name(k->outcome));
	else if (!k->exact)
		printf("first seen; when it was spawned was not");
	else if (k->parent)
		printf("spawned by task %llu", (unsigned long long)k->parent);
	else
		printf("spawned");
	printf("  on %s\n", d9_show_thread(m, x->by_thread, who, sizeof(who)));
}

static void task_text(const char *key, struct d9_bytes name)
{
	char *text = d9_clean_copy(name.p, name.n);
	printf("task %s%s%s%s", key, *text ? " (" : "", text, *text ? ")" : "");
	free(text);
}

static void awaited_text(struct d9_model *m, struct d9_tasks *t, const struct d9_task *k)
{
	const struct d9_stack *stacks[AWAITED_MAX];
	char frame[256];
	size_t n = awaited(m, t, k, stacks);
	for (size_t i = 0; i < n; i++) {
		printf("  awaits\n");
		for (d9_u32 f = 0; f < stacks[i]->n; f++)
			printf("      %s\n", d9_show_frame(&stacks[i]->frames[f], frame, sizeof(frame)));
	}
	if (!n && k->n_awaiting)
		printf("  awaits what was not kept: there were more places than D9_TASK_DUMPS=auto keeps, or no stack "
		       "was to be had\n");
	if (!k->awaited)
		return;
	char key[D9_TASK_KEY_BYTES];
	printf("  awaits the end of ");
	task_text(d9_task_key(m, k->proc, k->module, k->awaited, key),
		  d9_model_task_name(m, k->proc, k->module, k->awaited));
	putchar('\n');
}

static void life_text(struct d9_model *m, struct d9_tasks *t, const struct d9_task *k)
{
	char key[D9_TASK_KEY_BYTES], a[48], b[48];
	task_text(key_of(m, k, key), k->name);
	printf(": %s\n", state_of(m, k, a, sizeof(a)));
	printf("  polled %llu times, %s in all, longest %s; on %u workers, moved %u times\n",
	       (unsigned long long)k->polls, d9_format_duration(k->poll_total, a), d9_format_duration(k->poll_max, b),
	       k->workers, k->migrations);
	printf("  woken %llu times", (unsigned long long)k->wakes);
	if (k->waits)
		printf("; %llu times from a wake to the poll: %s in all, longest %s", (unsigned long long)k->waits,
		       d9_format_duration(k->queue_total, a), d9_format_duration(k->queue_max, b));
	putchar('\n');
	awaited_text(m, t, k);
	putchar('\n');
	if (!k->exact && k->moments->what != D9_TASK_SPAWN)
		printf("  %14s  first seen; when it was spawned was not told\n", seconds(m, k->spawned, a, sizeof(a)));
	size_t n = k->n_moments, half = TEXT_MOMENTS / 2;
	for (size_t i = 0; i < n; i++) {
		if (n > TEXT_MOMENTS && i == half) {
			i = n - half;
			printf("  ... %zu more; --json gives all\n", n - TEXT_MOMENTS);
		}
		moment_text(m, t, k, &k->moments[i]);
	}
}

static int write_life(struct d9_model *m, struct d9_tasks *t, const struct d9_task *k, bool json)
{
	if (!json) {
		life_text(m, t, k);
		return D9_EXIT_OK;
	}
	struct d9_json j;
	d9_json_document(&j, stdout, "task");
	task_json(&j, "task", m, t, k);
	d9_json_array(&j, "events");
	for (size_t i = 0; i < k->n_moments; i++)
		moment_json(&j, m, &k->moments[i]);
	d9_json_end_array(&j);
	return end_json(&j);
}

/* The whole key, or the task's own number where just one task has it. */
static int find_task(const struct d9_model *m, const struct d9_tasks *t, const char *key, const struct d9_task **ret)
{
	char text[D9_TASK_KEY_BYTES];
	size_t same = 0;
	*ret = NULL;
	for (size_t i = 0; i < t->of.n; i++) {
		const struct d9_task *k = &t->of.v[i];
		const char *whole = key_of(m, k, text);
		bool here = !strcmp(whole, key);
		if (!here && strcmp(strrchr(whole, ':') + 1, key) != 0)
			continue;
		*ret = k;
		same++;
		if (here)
			return D9_EXIT_OK;
	}
	if (same > 1)
		return d9_fail(D9_EXIT_DATA, "task: %zu tasks have the number %s; the whole key is one as %s", same,
			       key, key_of(m, *ret, text));
	if (!same && !t->of.n)
		tell_why_none(t);
	return same ? D9_EXIT_OK
		    : d9_fail(D9_EXIT_DATA, "task: no task %s in this recording; `d9 tasks` lists them", key);
}

int d9_cmd_task(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	int r = d9_read_opts_parse(self, argc, argv, 1, NULL, 0, &o);
	if (r)
		return r - 1;
	struct d9_model *m;
	r = d9_model_open(&o, &m);
	if (r)
		return r;
	struct d9_tasks *t = d9_model_tasks(m);
	const struct d9_task *k;
	r = find_task(m, t, o.operand, &k);
	if (!r)
		r = write_life(m, t, k, o.json);
	d9_model_close(m);
	return r;
}
