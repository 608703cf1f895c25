/*
 * kernel-delay, cpu-oversubscribed, noisy-neighbour, cpu-throttled: threads could run and had no CPU.  Of each process one is told of a wait:
 * its quota first, then its own threads, for these are its own doing; then single waits that were long, by who had the CPUs; then waits
 * that are short and add up.
 *
 * Rests on what the kernel's side saw.  Waits too short to be told of are in the sums.
 */
#include "findings.h"
#include "kernel_who.h"

#define SUM_MIN_NS 200000000ull /* short waits are worth a word from here on, */
#define SHARE_MIN 0.2           /* and if they are this much of the time in which a thread ran or could have run */
#define OWN_SHARE_MIN 0.25
#define OWN_MIN 0.7              /* of its waits its own threads had the CPU, or */
#define CROWD_OWN 0.3            /* not so much, but there are */
#define CROWD_MIN 2.0            /* as many of them for each CPU that could run */
#define STARVED_NS 1000000000ull /* a thread that waited so long, and half of its time, is in need of help at once */
#define THROTTLED_MIN_NS 50000000ull

struct process {
	d9_u32 proc;
	D9_VEC(d9_u32) threads; /* with waits; [0]: that waited longest */
	d9_u64 waited, ran;
	bool calls; /* its calls were recorded, so that roles are known */
};
typedef D9_VEC(struct process) processes;

static d9_u64 waited_by(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
	d9_u64 sum = 0;
	for (size_t i = 0; i < k->runq.n; i++)
		sum += k->runq.v[i].t1 - k->runq.v[i].t0;
	return k->sums && d9_model_is_whole(m) && k->sums->total > sum ? k->sums->total : sum;
}

static void gather(const struct d9_model *m, processes *all)
{
	struct d9_map map = {0};
	D9_VEC(d9_u64) most = {0};
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		if (th->proc == D9_NO_INDEX || m->threads[i].role == D9_ROLE_RECORDER || !th->kernel.watched.n)
			continue;
		d9_u32 k = d9_map_get(&map, th->proc);
		if (k == D9_MAP_EMPTY) {
			k = (d9_u32)all->n;
			d9_vec_push(all, (struct process){.proc = th->proc});
			d9_vec_push(&most, 0);
			d9_map_put(&map, th->proc, k);
		}
		struct process *p = &all->v[k];
		d9_u64 waited = waited_by(m, i);
		p->waited += waited;
		p->ran += m->threads[i].busy;
		p->calls |= th->spans.n || th->calls.n || th->pending.since;
		d9_vec_push(&p->threads, i);
		if (waited > most.v[k]) {
			most.v[k] = waited;
			p->threads.v[p->threads.n - 1] = p->threads.v[0];
			p->threads.v[0] = i;
		}
	}
	d9_vec_free(&most);
	d9_map_free(&map);
}

/* Does somebody else wait while this thread does not run? */
static bool matters(const struct d9_model *m, const struct process *p, d9_u32 thread)
{
	enum d9_role r = m->threads[thread].role;
	return !p->calls || r == D9_ROLE_WORKER || r == D9_ROLE_MAIN || r == D9_ROLE_DRIVER;
}

static double share_of(d9_u64 waited, d9_u64 ran)
{
	return waited + ran ? (double)waited / ((double)waited + (double)ran) : 0;
}

/* Without the waits that a finding has already. */
static d9_u64 unclaimed_by(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_kernel_side *k = &m->t->threads.v[thread].kernel;
	d9_u64 claimed = 0, waited = waited_by(m, thread);
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

#define EACH_WAIT(q, m, thread)                                                     \
	for (struct d9_runq *q = (m)->t->threads.v[thread].kernel.runq.v,           \
			    *q##_end = q + (m)->t->threads.v[thread].kernel.runq.n; \
	     q < q##_end; q++)

/* ---- cpu-throttled ------------------------------------------------------------------------------------------------------ */

/* The last reading of the cgroup that stopped the process longest, or NULL. */
static const struct d9_quota *worst_quota(const struct d9_model *m, d9_u32 proc)
{
	const struct d9_quota *worst = NULL;
	for (size_t i = 0; i < m->t->quotas.n; i++) {
		const struct d9_quota *q = &m->t->quotas.v[i];
		if (q->proc == proc && (!worst || q->throttled_ns > worst->throttled_ns))
			worst = q;
	}
	return worst;
}

/*
 * A thread that its quota stopped waits like any other.  Where that is most of the waiting it is the cause; else what it explains for certain
 * are the waits in which nobody had the CPU.
 */
static void claim_throttled(struct d9_model *m, const struct process *p, d9_u64 throttled_ns)
{
	for (size_t i = 0; i < p->threads.n; i++)
		EACH_WAIT (q, m, p->threads.v[i])
			if (q->prev <= 0 || throttled_ns >= p->waited / 2)
				q->flags |= D9_KERNEL_CLAIMED;
}

static void judge_quota(struct d9_model *m, struct d9_findings *out, const struct process *p)
{
	const struct d9_quota *q = worst_quota(m, p->proc);
	char dur[32], quota[32], period[32], limit[80] = "";
	if (!q || q->throttled_ns < THROTTLED_MIN_NS || q->throttled * 20 < q->periods)
		return;
	struct d9_finding *f = add_finding(m, out, "cpu-throttled", p->threads.v[0]);
	f->severity = q->throttled * 4 >= q->periods ? D9_CRITICAL : D9_WARNING;
	f->count = q->throttled;
	f->harm = q->throttled_ns;
	if (q->quota != D9_NOT_KNOWN)
		snprintf(limit, sizeof(limit), ", %s in %s,", d9_format_duration(q->quota, quota),
			 d9_format_duration(q->period, period));
	d9_finding_title(f, "the CPU quota of %s%s stopped pid %d in %llu of %llu periods, for %s in all",
			 m->t->names.v[q->cgroup], limit, m->t->procs.v[p->proc].pid, (unsigned long long)q->throttled,
			 (unsigned long long)q->periods, d9_format_duration(q->throttled_ns, dur));
	d9_finding_n(f, "throttled_ns", q->throttled_ns);
	f->try[0] = "Raise the quota (cpu.max, cpu.cfs_quota_us), or let the program use fewer threads: all of them "
		    "spend it together.";
	claim_throttled(m, p, q->throttled_ns);
}

/* How many of its threads ran or could have run, for each CPU on which they were seen, on an average. */
static double crowd_of(const struct d9_model *m, const struct process *p)
{
	struct d9_map cpus = {0};
	d9_u64 from = D9_NOT_KNOWN, to = 0;
	for (size_t i = 0; i < p->threads.n; i++) {
		const struct d9_model_thread *mt = &m->threads[p->threads.v[i]];
		from = mt->begin < from ? mt->begin : from;
		to = mt->end > to ? mt->end : to;
		EACH_WAIT (q, m, p->threads.v[i])
			d9_map_put(&cpus, q->cpu, 0);
	}
	double n = (double)cpus.n;
	d9_map_free(&cpus);
	return to > from && n > 0 ? ((double)p->waited + (double)p->ran) / (double)(to - from) / n : 0;
}

/* ---- cpu-oversubscribed ------------------------------------------------------------------------------------------------- */

static void judge_own(struct d9_model *m, struct d9_findings *out, const struct process *p)
{
	double share = share_of(p->waited, p->ran);
	struct d9_who who;
	if (p->waited < SUM_MIN_NS || share < OWN_SHARE_MIN || p->threads.n < 2)
		return;
	d9_who_begin(&who, m, false);
	for (size_t i = 0; i < p->threads.n; i++)
		EACH_WAIT (q, m, p->threads.v[i])
			if (!(q->flags & D9_KERNEL_CLAIMED))
				d9_who_add(&who, q);
	double own = who.total ? (double)who.own / (double)who.total : 0;
	d9_who_fini(&who);
	if (own < OWN_MIN && (own < CROWD_OWN || crowd_of(m, p) < CROWD_MIN))
		return;
	struct d9_finding *f = add_finding(m, out, "cpu-oversubscribed", p->threads.v[0]);
	char dur[32];
	f->severity = share >= 0.5 ? D9_CRITICAL : D9_WARNING;
	f->harm = p->waited;
	f->count = p->threads.n;
	d9_finding_title(f,
			 "pid %d has more busy threads than CPUs: they waited %s for one, %.0f %% of the time "
			 "in which they could have run",
			 m->t->procs.v[p->proc].pid, d9_format_duration(p->waited, dur), share * 100);
	d9_finding_real(f, "runq_share", share);
	f->try[0] = "As many busy threads as there are CPUs do the same work with fewer switches: lower the number of "
		    "workers or of jobs at a time.";
	f->try[1] = "`nproc` and the CPU affinity say how many CPUs there are for it.";
	for (size_t i = 0; i < p->threads.n; i++) {
		d9_u64 waited = waited_by(m, p->threads.v[i]);
		if (waited)
			d9_finding_victim(f, p->threads.v[i], waited);
		EACH_WAIT (q, m, p->threads.v[i])
			q->flags |= D9_KERNEL_CLAIMED;
	}
}

/* ---- kernel-delay, noisy-neighbour ---------------------------------------------------------------------------------------- */

struct delays {
	struct d9_ref worst;
	d9_u64 count, total, max;
};

/* Waits that nothing explains yet of threads that matter, `least` and more. */
static struct delays find_delays(struct d9_model *m, const struct process *p, d9_u64 least, struct d9_who *who)
{
	struct delays d = {.worst.thread = D9_NO_INDEX};
	for (size_t i = 0; i < p->threads.n; i++) {
		d9_u32 thread = p->threads.v[i];
		if (!matters(m, p, thread))
			continue;
		EACH_WAIT (q, m, thread) {
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

static void take_delays(struct d9_model *m, struct d9_finding *f, const struct process *p, d9_u64 least)
{
	for (size_t i = 0; i < p->threads.n; i++) {
		d9_u64 waited = 0;
		if (!matters(m, p, p->threads.v[i]))
			continue;
		EACH_WAIT (q, m, p->threads.v[i])
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

static void had_cpus(const struct d9_who *who, char *buf, size_t n)
{
	char names[120];
	if (who->had.n)
		snprintf(buf, n, "%s had its CPUs", d9_who_names(who, names, sizeof(names)));
	else
		snprintf(buf, n, "nobody else was seen on its CPUs");
}

static bool is_starved(const struct d9_model *m, d9_u32 thread)
{
	d9_u64 waited = waited_by(m, thread);
	return waited >= STARVED_NS && share_of(waited, m->threads[thread].busy) >= 0.5;
}

static void advise(struct d9_finding *f)
{
	f->try[0] = "`d9 runq --worst 20` lists the waits, with who had the CPU and from whom the wake came.";
	f->try[1] = "Give the service CPUs of its own (cpuset, CPUAffinity=), or more weight than what runs beside it "
		    "(CPUWeight=, nice).";
}

static bool judge_long(struct d9_model *m, struct d9_findings *out, const struct process *p)
{
	struct d9_who who;
	d9_who_begin(&who, m, false);
	struct delays d = find_delays(m, p, D9_WARN_NS, &who);
	if (d.count) {
		const struct d9_runq *q = &m->t->threads.v[d.worst.thread].kernel.runq.v[d.worst.index];
		struct d9_finding *f = add_finding(m, out, "kernel-delay", d.worst.thread);
		char thread[96], dur[32], had[160];
		had_cpus(&who, had, sizeof(had));
		f->severity = d.max >= D9_CRITICAL_NS || is_starved(m, d.worst.thread) ? D9_CRITICAL : D9_WARNING;
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
		advise(f);
		take_delays(m, f, p, D9_WARN_NS);
	}
	d9_who_fini(&who);
	return d.count > 0;
}

/* None of them is long, and yet they are a large part of a thread's time. */
static void judge_sum(struct d9_model *m, struct d9_findings *out, const struct process *p)
{
	d9_u32 worst = D9_NO_INDEX;
	d9_u64 most = 0;
	for (size_t i = 0; i < p->threads.n; i++) {
		d9_u32 thread = p->threads.v[i];
		d9_u64 waited = matters(m, p, thread) ? unclaimed_by(m, thread) : 0;
		if (waited >= SUM_MIN_NS && waited > most && share_of(waited, m->threads[thread].busy) >= SHARE_MIN) {
			most = waited;
			worst = thread;
		}
	}
	if (worst == D9_NO_INDEX)
		return;
	struct d9_who names, pids;
	d9_who_begin(&names, m, false);
	d9_who_begin(&pids, m, true);
	struct delays d = find_delays(m, p, 0, &names);
	find_delays(m, p, 0, &pids);
	/* What was told one by one must be most of it, or nothing is known of who had the CPUs. */
	bool known = d.total * 2 >= most,
	     one = known && pids.had.n && !pids.had.v[0].own && pids.had.v[0].total / 7 * 10 >= pids.total;
	if (d.count) {
		struct d9_finding *f = add_finding(m, out, one ? "noisy-neighbour" : "kernel-delay", worst);
		char thread[96], dur[32], had[160];
		had_cpus(one ? &pids : &names, had, sizeof(had));
		f->harm = most;
		f->count = d.count;
		d9_finding_title(f, "%s waited %s for a CPU, %.0f %% of the time in which it could have run%s%s",
				 d9_show_thread(m, worst, thread, sizeof(thread)), d9_format_duration(most, dur),
				 share_of(most, m->threads[worst].busy) * 100, known ? "; " : "", known ? had : "");
		d9_finding_n(f, "runq_ns", most);
		if (one)
			d9_finding_n(f, "neighbour", (d9_u64)pids.had.v[0].pid);
		else
			d9_finding_n(f, "runq_max_ns", d.max);
		d9_finding_span(f, d.worst);
		advise(f);
		take_delays(m, f, p, 0);
	}
	d9_who_fini(&names);
	d9_who_fini(&pids);
}

void d9_find_kernel_delay(struct d9_model *m, struct d9_findings *out)
{
	processes all = {0};
	gather(m, &all);
	for (size_t i = 0; i < all.n; i++) {
		judge_quota(m, out, &all.v[i]);
		judge_own(m, out, &all.v[i]);
		if (!judge_long(m, out, &all.v[i]))
			judge_sum(m, out, &all.v[i]);
		d9_vec_free(&all.v[i].threads);
	}
	d9_vec_free(&all);
}
