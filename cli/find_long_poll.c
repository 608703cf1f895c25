/*
 * long-poll: a worker computed.  Rests on CPU time that was measured, never on the length of the gap: a
 * worker that had no CPU, or that waited where no hook looks, did not compute.
 */
#include "findings.h"

struct worst {
	d9_u64 count, total, poll, on_cpu;
	d9_u32 index;
};

static struct worst look(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	struct worst w = {0};
	for (d9_u32 i = 0; i < mt->polls.n; i++) {
		const struct d9_poll *p = &mt->polls.v[i];
		/* What a thread did after its last park may be the program's end; of a task's poll it is known that it is one. */
		if (p->t1 - p->t0 < D9_WARN_NS || (!p->ended && !p->rt) || d9_poll_is_job(m, thread, p))
			continue;
		struct d9_split s = d9_model_split(m, thread, p);
		d9_u64 on_cpu = s.on_cpu == D9_NOT_KNOWN ? s.on_cpu_least : s.on_cpu;
		/* What was in a call is told of by that; what a stop or a fault took is not what it computed. */
		d9_u64 elsewhere = s.on_cpu_least < D9_CRITICAL_NS ? s.blocked : s.blocked - s.unhooked;
		if (s.on_cpu_least < D9_WARN_NS || elsewhere > on_cpu)
			continue;
		if (d9_model_watched(m, thread, p->t0, p->t1) && s.runnable > on_cpu)
			continue; /* it was not given a CPU, which is told of by who saw that: as the kernel's delay */
		w.count++;
		w.total += on_cpu;
		if (on_cpu > w.on_cpu) {
			w.on_cpu = on_cpu;
			w.poll = p->t1 - p->t0;
			w.index = i;
		}
	}
	return w;
}

static void report(struct d9_model *m, struct d9_findings *out, d9_u32 thread, const struct worst *w)
{
	const struct d9_poll *p = &m->threads[thread].polls.v[w->index];
	struct d9_finding *f = d9_finding_add(out, "long-poll", thread);
	char who[96], dur[32];
	f->severity = d9_severity_of(w->on_cpu);
	f->from = p->t0;
	f->to = p->t1;
	f->count = w->count;
	f->harm = w->total;
	d9_finding_title(f, "%s %s for %s%s without coming back to its event wait",
			 d9_show_thread(m, thread, who, sizeof(who)), p->ended ? "computed" : "has computed",
			 d9_format_duration(w->on_cpu, dur), p->ended ? "" : " so far");
	d9_finding_task(f, m, thread, d9_poll_told(m, thread, p));
	d9_finding_n(f, "poll_ns", w->poll);
	d9_finding_n(f, "on_cpu_ns", w->on_cpu);
	d9_finding_n(f, "total_ns", w->total);
	d9_finding_span(f, (struct d9_ref){thread, D9_REF_POLL, w->index});
	f->try[0] = "Move the computation to a thread of its own, or cut it into pieces that return to the event loop "
		    "in between.";
	f->try[1] = "D9_SAMPLE_HZ and `perf record` show which function it was: no hooked call lies inside.";
}

void d9_find_long_poll(struct d9_model *m, struct d9_findings *out)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (m->threads[i].role != D9_ROLE_WORKER)
			continue;
		struct worst w = look(m, i);
		if (w.count)
			report(m, out, i, &w);
	}
}
