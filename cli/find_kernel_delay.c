/*
 * kernel-delay, cpu-oversubscribed, noisy-neighbour, cpu-throttled: threads could run and had no CPU.  A wait is told of once: by a
 * quota first, then by the program's own threads, for these are its own doing; then, of all together, single waits that were long, by who
 * had the CPUs; else waits that are short and add up.
 *
 * Rests on what the kernel's side saw.  Waits too short to be told of are in the sums.
 */
#include "findings.h"
#include "kernel_groups.h"
#include "kernel_who.h"

#define SUM_MIN_NS 200000000ull /* short waits are worth a word from here on, */
#define SHARE_MIN 0.25          /* and if they are this much of a thread's time */
#define OWN_SHARE_MIN 0.25      /* of the time in which a program's threads ran or could have run */
/* Of the time that somebody was seen to have the CPU its own threads had so much of it, and so many for each CPU could run; or */
#define OWN_MIN 0.7
#define OWN_CROWD_MIN 1.5 /* little more than one meet now and then, though CPUs are idle */
/* not so much, but there are as many of them. */
#define CROWD_OWN 0.3
#define CROWD_MIN 2.0
#define STARVED_NS 1000000000ull /* a thread that waited so long, and half of its time, is in need of help at once */
#define FEW 2                    /* as many waits of 10 ms, */
#define FEW_NS 15000000ull       /* and none of so much, come about on any machine that has other work too */
#define THROTTLED_MIN_NS 50000000ull

struct search {
	struct d9_model *m;
	struct d9_findings *out;
	bool *calls; /* by process: its calls were recorded, so that roles are known */
};

static bool *find_calls(const struct d9_model *m)
{
	bool *calls = d9_must_alloc(m->t->procs.n + 1, sizeof(*calls));
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->proc != D9_NO_INDEX)
			calls[th->proc] |= th->spans.n || th->calls.n || th->pending.since;
	}
	return calls;
}

/* Does somebody else wait while this thread does not run? */
static bool matters(const struct search *s, d9_u32 thread)
{
	enum d9_role r = s->m->threads[thread].role;
	return !s->calls[s->m->t->threads.v[thread].proc] || r == D9_ROLE_WORKER || r == D9_ROLE_MAIN ||
	       r == D9_ROLE_DRIVER;
}

static double share_of(d9_u64 waited, d9_u64 ran)
{
	return waited + ran ? (double)waited / ((double)waited + (double)ran) : 0;
}

/* Without the waits that a finding has already. */
static d9_u64 unclaimed_by(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
	d9_u64 claimed = 0, waited = d9_waited_by(m, thread);
	for (size_t i = 0; i < k->runq.n; i++)
		claimed += k->runq.v[i].flags & D9_KERNEL_CLAIMED ? k->runq.v[i].t1 - k->runq.v[i].t0 : 0;
	return waited > claimed ? waited - claimed : 0;
}

static struct d9_finding *add_finding(const struct d9_model *m, struct d9_findings *out, const char *id, d9_u32 thread)
{
	struct d9_finding *f = d9_finding_add(out, id, thread);
	f->from = m->threads[thread].begin;
	f->to = m->threads[thread].end;
	f->cause.proc = m->t->threads.v[thread].proc;
	return f;
}

/* ---- cpu-throttled ------------------------------------------------------------------------------------------------------ */

/* The last reading of the cgroup that stopped the process longest, if that is worth a word, or NULL. */
static const struct d9_quota *worst_quota(const struct d9_model *m, d9_u32 proc)
{
	const struct d9_quota *worst = NULL, *v = m->t->quotas.v;
	size_t n = m->t->quotas.n;
	for (size_t i = proc ? D9_FIRST_AFTER(v, n, proc, proc - 1) : 0; i < n && v[i].proc == proc; i++)
		if (!worst || v[i].throttled_ns > worst->throttled_ns)
			worst = &v[i];
	bool worth = worst && worst->throttled_ns >= THROTTLED_MIN_NS && worst->throttled >= worst->periods / 20;
	return worth ? worst : NULL;
}

static d9_u64 by_cgroup(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_quota *q = worst_quota(m, m->t->threads.v[thread].proc);
	return q ? q->cgroup : D9_NOT_KNOWN;
}

/*
 * A thread that its quota stopped waits like any other.  Where that is most of the waiting it is the cause; else what it explains for certain
 * are the waits in which nobody had the CPU.
 */
static void claim_throttled(struct d9_model *m, const struct d9_wait_group *p, d9_u64 throttled_ns)
{
	for (size_t i = 0; i < p->threads.n; i++)
		D9_EACH_WAIT (q, m, p->threads.v[i])
			if (q->prev <= 0 || throttled_ns >= p->waited / 2)
				q->flags |= D9_KERNEL_CLAIMED;
}

static void judge_quota(const struct search *s, const struct d9_wait_group *p)
{
	struct d9_model *m = s->m;
	const struct d9_quota *q = worst_quota(m, p->proc);
	char who[32], dur[32], quota[32], period[32], limit[80] = "";
	if (!q)
		return;
	struct d9_finding *f = add_finding(m, s->out, "cpu-throttled", p->threads.v[0]);
	f->severity = q->throttled >= q->periods / 4 ? D9_CRITICAL : D9_WARNING;
	f->count = q->throttled;
	f->harm = q->throttled_ns;
	if (q->quota != D9_NOT_KNOWN)
		snprintf(limit, sizeof(limit), ", %s in %s,", d9_format_duration(q->quota, quota),
			 d9_format_duration(q->period, period));
	d9_finding_title(f, "the CPU quota of %s%s stopped %s in %llu of %llu periods, for %s in all",
			 m->t->names.v[q->cgroup], limit, d9_wait_group_procs(m, p, who, sizeof(who)),
			 (unsigned long long)q->throttled, (unsigned long long)q->periods,
			 d9_format_duration(q->throttled_ns, dur));
	d9_finding_n(f, "throttled_ns", q->throttled_ns);
	f->try[0] = "Raise the quota (cpu.max, cpu.cfs_quota_us), or let the program use fewer threads: all of them "
		    "spend it together.";
	claim_throttled(m, p, q->throttled_ns);
}

/* ---- cpu-oversubscribed ------------------------------------------------------------------------------------------------- */

/* What was forked is of one program, and shares its CPUs. */
static d9_u64 by_program(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_trace_thread *th = &m->t->threads.v[thread];
	d9_u32 family = m->t->procs.v[th->proc].family;
	return m->t->families.v[family].kernel ? 1ull << 32 | th->proc : family;
}

/* How many of its threads ran or could have run, for each CPU on which they were seen, on an average. */
static double crowd_of(const struct d9_model *m, const struct d9_wait_group *p)
{
	struct d9_map cpus = {0};
	d9_u64 from = D9_NOT_KNOWN, to = 0;
	for (size_t i = 0; i < p->threads.n; i++) {
		const struct d9_model_thread *mt = &m->threads[p->threads.v[i]];
		from = mt->begin < from ? mt->begin : from;
		to = mt->end > to ? mt->end : to;
		D9_EACH_WAIT (q, m, p->threads.v[i])
			d9_map_put(&cpus, q->cpu, 0);
	}
	double n = (double)cpus.n;
	d9_map_free(&cpus);
	return to > from && n > 0 ? ((double)p->waited + (double)p->ran) / (double)(to - from) / n : 0;
}

static void judge_own(const struct search *s, const struct d9_wait_group *p)
{
	struct d9_model *m = s->m;
	double share = share_of(p->waited, p->ran);
	struct d9_who who;
	if (p->waited < SUM_MIN_NS || share < OWN_SHARE_MIN || p->threads.n < 2)
		return;
	d9_who_begin(&who, m, false);
	for (size_t i = 0; i < p->threads.n; i++)
		D9_EACH_WAIT (q, m, p->threads.v[i])
			if (!(q->flags & D9_KERNEL_CLAIMED))
				d9_who_add(&who, q);
	double own = who.seen ? (double)who.own / (double)who.seen : 0;
	d9_who_fini(&who);
	double crowd = own < CROWD_OWN ? 0 : crowd_of(m, p);
	if (crowd < (own < OWN_MIN ? CROWD_MIN : OWN_CROWD_MIN))
		return;
	struct d9_finding *f = add_finding(m, s->out, "cpu-oversubscribed", p->threads.v[0]);
	char procs[32], dur[32];
	f->severity = share >= 0.5 ? D9_CRITICAL : D9_WARNING;
	f->harm = p->waited;
	f->count = p->threads.n;
	d9_finding_title(f,
			 "%s: more busy threads than CPUs, which waited %s for one, %.0f %% of the time in which they "
			 "could have run",
			 d9_wait_group_procs(m, p, procs, sizeof(procs)), d9_format_duration(p->waited, dur),
			 share * 100);
	d9_finding_real(f, "runq_share", share);
	f->try[0] = "As many busy threads as there are CPUs do the same work with fewer switches: lower the number of "
		    "workers or of jobs at a time.";
	f->try[1] = "`nproc` and the CPU affinity say how many CPUs there are for it.";
	for (size_t i = 0; i < p->threads.n; i++) {
		d9_u64 waited = d9_waited_by(m, p->threads.v[i]);
		if (waited)
			d9_finding_victim(f, p->threads.v[i], waited);
		D9_EACH_WAIT (q, m, p->threads.v[i])
			q->flags |= D9_KERNEL_CLAIMED;
	}
}

/* ---- kernel-delay, noisy-neighbour ---------------------------------------------------------------------------------------- */

struct delays {
	struct d9_ref worst;
	d9_u64 count, total, max;
};

/* Waits that nothing explains yet of threads that matter, `least` and more. */
static struct delays find_delays(const struct search *s, const struct d9_wait_group *p, d9_u64 least,
				 struct d9_who *who)
{
	struct d9_model *m = s->m;
	struct delays d = {.worst.thread = D9_NO_INDEX};
	for (size_t i = 0; i < p->threads.n; i++) {
		d9_u32 thread = p->threads.v[i];
		if (!matters(s, thread))
			continue;
		D9_EACH_WAIT (q, m, thread) {
			d9_u64 dur = q->t1 - q->t0;
			if (dur < least || q->flags & D9_KERNEL_CLAIMED)
				continue;
			d9_who_add(who, q);
			d.count++;
			d.total += dur;
			if (dur > d.max) {
				d.max = dur;
				d.worst = (struct d9_ref){thread, D9_REF_RUNQ,
							  (d9_u32)(q - m->t->threads.v[thread].kernel.runq.v)};
			}
		}
	}
	d9_who_finish(who);
	return d;
}

static void take_delays(const struct search *s, struct d9_finding *f, const struct d9_wait_group *p, d9_u64 least)
{
	struct d9_model *m = s->m;
	for (size_t i = 0; i < p->threads.n; i++) {
		d9_u64 waited = 0;
		if (!matters(s, p->threads.v[i]))
			continue;
		D9_EACH_WAIT (q, m, p->threads.v[i])
			if (q->t1 - q->t0 >= least && !(q->flags & D9_KERNEL_CLAIMED)) {
				waited += q->t1 - q->t0;
				q->flags |= D9_KERNEL_CLAIMED;
			}
		if (waited && p->threads.v[i] != f->thread)
			d9_finding_victim(f, p->threads.v[i], waited);
	}
}

static const char *what_happened(const struct d9_runq *q)
{
	return q->flags & D9_RUNQ_PREEMPTED ? "was preempted" : q->flags & D9_RUNQ_NEW ? "was made" : "was woken";
}

/* Of waits that came to so much. */
static void had_cpus(const struct d9_who *who, d9_u64 waited, bool by_perf, char *buf, size_t n)
{
	char names[120];
	bool mostly = who->seen >= waited / 2;
	if (by_perf)
		snprintf(buf, n, "who had its CPU was not watched");
	else if (who->had.n)
		snprintf(buf, n, "%s had its CPUs%s", d9_who_names(who, names, sizeof(names)), mostly ? "" : " last");
	else
		snprintf(buf, n, "nobody else was seen on its CPUs");
}

static bool is_starved(const struct d9_model *m, d9_u32 thread)
{
	d9_u64 waited = d9_waited_by(m, thread);
	return waited >= STARVED_NS && share_of(waited, m->threads[thread].busy) >= 0.5;
}

static void advise(struct d9_finding *f, bool by_perf)
{
	f->try[0] = by_perf ? "d9-kernel beside the service says who had the CPU, and how long threads waited that "
			      "were woken."
			    : "`d9 runq --worst 20` lists the waits, with who had the CPU and from whom the wake came.";
	f->try[1] = "Give the service CPUs of its own (cpuset, CPUAffinity=), or more weight than what runs beside it "
		    "(CPUWeight=, nice).";
}

/* A machine that is short of CPUs is short of them for all: told once, by the worst. */
static d9_u64 all_shown(const struct d9_model *m, d9_u32 thread)
{
	return m->t->threads.v[thread].shown ? 0 : D9_NOT_KNOWN;
}

static bool judge_long(const struct search *s, const struct d9_wait_group *p)
{
	struct d9_model *m = s->m;
	struct d9_who who;
	d9_who_begin(&who, m, false);
	struct delays d = find_delays(s, p, D9_WARN_NS, &who);
	if (d.count) {
		const struct d9_runq *q = &m->t->threads.v[d.worst.thread].kernel.runq.v[d.worst.index];
		struct d9_finding *f = add_finding(m, s->out, "kernel-delay", d.worst.thread);
		char thread[96], dur[32], had[160];
		bool by_perf = q->flags & D9_KERNEL_BY_PERF;
		had_cpus(&who, d.total, by_perf, had, sizeof(had));
		f->severity = d.max >= D9_CRITICAL_NS || is_starved(m, d.worst.thread) ? D9_CRITICAL
			      : d.count <= FEW && d.max < FEW_NS                       ? D9_INFO
										       : D9_WARNING;
		f->from = q->t0;
		f->to = q->t1;
		f->count = d.count;
		f->harm = d.total;
		d9_finding_title(f, "%s %s and ran %s later; %s",
				 d9_show_thread(m, d.worst.thread, thread, sizeof(thread)), what_happened(q),
				 d9_format_duration(d.max, dur), had);
		d9_finding_n(f, "runq_ns", d.total);
		d9_finding_n(f, "runq_max_ns", d.max);
		d9_finding_span(f, d.worst);
		advise(f, by_perf);
		take_delays(s, f, p, D9_WARN_NS);
	}
	d9_who_fini(&who);
	return d.count > 0;
}

/* None of them is long, and yet they are a large part of a thread's time. */
static void judge_sum(const struct search *s, const struct d9_wait_group *all)
{
	struct d9_model *m = s->m;
	d9_u32 worst = D9_NO_INDEX;
	d9_u64 most = 0;
	for (size_t i = 0; i < all->threads.n; i++) {
		d9_u32 thread = all->threads.v[i];
		d9_u64 waited = matters(s, thread) ? unclaimed_by(m, thread) : 0;
		if (waited >= SUM_MIN_NS && waited > most &&
		    (double)waited >= SHARE_MIN * (double)m->threads[thread].wall) {
			most = waited;
			worst = thread;
		}
	}
	if (worst == D9_NO_INDEX)
		return;
	struct d9_wait_group one_thread = {0}, *p = &one_thread;
	d9_vec_push(&p->threads, worst);
	struct d9_who names, pids;
	d9_who_begin(&names, m, false);
	d9_who_begin(&pids, m, true);
	struct delays d = find_delays(s, p, 0, &names);
	find_delays(s, p, 0, &pids);
	/* What was told one by one must be most of it, or nothing is known of who had the CPUs. */
	bool known = d.total * 2 >= most,
	     one = known && pids.had.n && !pids.had.v[0].own && pids.had.v[0].total / 7 * 10 >= pids.seen;
	if (d.count) {
		struct d9_finding *f = add_finding(m, s->out, one ? "noisy-neighbour" : "kernel-delay", worst);
		char thread[96], dur[32], had[160];
		bool by_perf = m->t->threads.v[worst].kernel.by_perf && !names.had.n;
		had_cpus(one ? &pids : &names, d.total, by_perf, had, sizeof(had));
		f->harm = most;
		f->count = d.count;
		d9_finding_title(f, "%s waited %s for a CPU, %.0f %% of its time%s%s",
				 d9_show_thread(m, worst, thread, sizeof(thread)), d9_format_duration(most, dur),
				 100.0 * (double)most / (double)(m->threads[worst].wall + 1), known ? "; " : "",
				 known ? had : "");
		d9_finding_n(f, "runq_ns", most);
		if (one)
			d9_finding_n(f, "neighbour", (d9_u64)pids.had.v[0].pid);
		else
			d9_finding_n(f, "runq_max_ns", d.max);
		d9_finding_span(f, d.worst);
		advise(f, by_perf);
		take_delays(s, f, all, 0);
	}
	d9_vec_free(&p->threads);
	d9_who_fini(&names);
	d9_who_fini(&pids);
}

void d9_find_kernel_delay(struct d9_model *m, struct d9_findings *out)
{
	if (!d9_trace_has_kernel(m->t))
		return;
	struct search s = {m, out, find_calls(m)};
	d9_wait_groups throttled = d9_wait_groups_gather(m, by_cgroup), programs = d9_wait_groups_gather(m, by_program),
		       all = d9_wait_groups_gather(m, all_shown);
	for (size_t i = 0; i < throttled.n; i++)
		judge_quota(&s, &throttled.v[i]);
	for (size_t i = 0; i < programs.n; i++)
		judge_own(&s, &programs.v[i]);
	if (all.n && !judge_long(&s, &all.v[0]))
		judge_sum(&s, &all.v[0]);
	d9_wait_groups_free(&throttled);
	d9_wait_groups_free(&programs);
	d9_wait_groups_free(&all);
	free(s.calls);
}
