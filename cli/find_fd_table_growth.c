/*
 * fd-table-growth: the call that got the first descriptor beyond the table's size had to wait until every
 * CPU had stopped looking at the old table.  The kernel doubles it: the descriptor is a power of two.
 *
 * Where the kernel's side watched, its stack says so itself: who grows the table waits for RCU in expand_files, and who comes meanwhile waits
 * there for him.
 */
#include "findings.h"
#include "kernel_stack.h"
#include "syscall_name.h"

#define STALL_MIN_NS 2000000u
#define SEEN_MIN_NS 1000000u /* by the kernel's side */
#define FINDINGS_MAX 1000u   /* no table grows as often */
#define MAKES_FD (D9_KIND_BIT(D9_FAMILY_socket) | D9_KIND_BIT(D9_FAMILY_accept) | D9_KIND_BIT(D9_FAMILY_open))

bool d9_is_fd_table_growth(const struct d9_span *s)
{
	return D9_KIND_BIT(s->kind) & MAKES_FD && s->result >= 64 && (s->result & (s->result - 1)) == 0 &&
	       d9_span_dur(s) >= STALL_MIN_NS;
}

/* An accept on a socket that blocks waits for a client, and an open of a FIFO for the other end. */
static bool was_idle(const struct d9_model *m, d9_u32 thread, const struct d9_span *s)
{
	return s->kind != D9_FAMILY_socket && m->threads[thread].role != D9_ROLE_WORKER;
}

static struct d9_finding *add(struct d9_model *m, struct d9_findings *out, d9_u32 thread, const char *call, d9_u64 t0,
			      d9_u64 t1, d9_u64 fd)
{
	struct d9_finding *f = d9_finding_add(out, "fd-table-growth", thread);
	char who[96], dur[32], which[32] = "a descriptor";
	if (fd != D9_NOT_KNOWN)
		snprintf(which, sizeof(which), "descriptor %llu", (unsigned long long)fd);
	f->severity = t1 - t0 < STALL_MIN_NS ? D9_INFO : d9_severity_of(t1 - t0);
	f->from = t0;
	f->to = t1;
	f->harm = t1 - t0;
	d9_finding_title(f, "%s: %s took %s to make %s: the table had to grow",
			 d9_show_thread(m, thread, who, sizeof(who)), call, d9_format_duration(t1 - t0, dur), which);
	d9_finding_n(f, "fd", fd);
	d9_finding_n(f, "blocked_ns", t1 - t0);
	f->try[0] = "Grow the table before there are threads: dup2 a descriptor to the highest number that will be "
		    "needed, and close it.";
	return f;
}

static void report(struct d9_model *m, struct d9_findings *out, d9_u32 thread, d9_u32 span)
{
	const struct d9_span *s = d9_model_span(m, thread, span);
	struct d9_finding *f = add(m, out, thread, m->t->hooks.v[s->hook].name, s->t0, s->t1, (d9_u64)s->result);
	f->inferred = true;
	d9_finding_cause(f, m, (struct d9_ref){thread, D9_REF_SPAN, span});
	d9_finding_span(f, (struct d9_ref){thread, D9_REF_SPAN, span});
	d9_claim(m, thread, span);
}

/* ---- where the kernel's side saw it ------------------------------------------------------------------------------------- */

static bool in_table(struct d9_model *m, const struct d9_offcpu *o)
{
	return !(o->flags & D9_KERNEL_CLAIMED) && d9_offcpu_blocked(o) >= SEEN_MIN_NS &&
	       d9_model_kernel_says(m, o->stack) & D9_SAYS_FD_TABLE;
}

/* Those of the process that came while the table grew. */
static void take_victims(struct d9_model *m, struct d9_finding *f, d9_u64 t0, d9_u64 t1)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		struct d9_kernel_side *k = &m->t->threads.v[i].kernel;
		if (m->t->threads.v[i].proc != f->cause.proc)
			continue;
		for (size_t n = D9_FIRST_AFTER(k->offcpu.v, k->offcpu.n, t1, t0);
		     n < k->offcpu.n && k->offcpu.v[n].t0 < t1; n++) {
			struct d9_offcpu *o = &k->offcpu.v[n];
			if (!in_table(m, o) || d9_model_kernel_says(m, o->stack) & D9_SAYS_RCU)
				continue;
			struct d9_ref ref = {i, D9_REF_OFFCPU, (d9_u32)n};
			d9_claim_offcpu(m, ref, d9_call_around(m, ref));
			d9_finding_victim(f, i, d9_offcpu_blocked(o));
			f->harm += d9_offcpu_blocked(o);
		}
	}
}

static void report_seen(struct d9_model *m, struct d9_findings *out, struct d9_ref ref)
{
	const struct d9_offcpu *o = d9_offcpu_at(m, ref);
	d9_u32 call = d9_call_around(m, ref);
	const struct d9_span *s = call == D9_NO_INDEX ? NULL : d9_model_span(m, ref.thread, call);
	bool makes = s && D9_KIND_BIT(s->kind) & MAKES_FD && s->result >= 0;
	char buf[32];
	if (s && s->flags & D9_SPAN_CLAIMED)
		return;
	const char *name = s ? m->t->hooks.v[s->hook].name : d9_syscall_name(o->nr, buf);
	struct d9_finding *f = add(m, out, ref.thread, name, o->t0, o->woken, makes ? (d9_u64)s->result : D9_NOT_KNOWN);
	d9_finding_offcpu(f, m, ref, call);
	if (out->of.n < FINDINGS_MAX)
		take_victims(m, f, o->t0, o->t1);
}

static void look_in_kernel(struct d9_model *m, struct d9_findings *out)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		for (d9_u32 k = 0; k < m->t->threads.v[i].kernel.offcpu.n; k++) {
			const struct d9_offcpu *o = &m->t->threads.v[i].kernel.offcpu.v[k];
			if (in_table(m, o) && d9_model_kernel_says(m, o->stack) & D9_SAYS_RCU)
				report_seen(m, out, (struct d9_ref){i, D9_REF_OFFCPU, k});
		}
}

void d9_find_fd_table_growth(struct d9_model *m, struct d9_findings *out)
{
	look_in_kernel(m, out);
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		for (d9_u32 k = 0; m->t->threads.v[i].kinds & MAKES_FD && k < m->t->threads.v[i].spans.n; k++) {
			const struct d9_span *s = &m->t->threads.v[i].spans.v[k];
			if (d9_is_fd_table_growth(s) && !was_idle(m, i, s) && !(s->flags & D9_SPAN_CLAIMED))
				report(m, out, i, k);
		}
}
