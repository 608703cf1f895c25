/*
 * fd-table-growth: the call that got the first descriptor beyond the table's size had to wait until every
 * CPU had stopped looking at the old table.  The kernel doubles it: the descriptor is a power of two.
 */
#include "findings.h"

#define STALL_MIN_NS 2000000u
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

static void report(struct d9_model *m, struct d9_findings *out, d9_u32 thread, d9_u32 span)
{
	const struct d9_span *s = d9_model_span(m, thread, span);
	struct d9_finding *f = d9_finding_add(out, "fd-table-growth", thread);
	char who[96], dur[32];
	f->severity = d9_severity_of(d9_span_dur(s));
	f->inferred = true;
	f->from = s->t0;
	f->to = s->t1;
	f->harm = d9_span_dur(s);
	d9_finding_title(f, "%s: %s took %s to make descriptor %d: the table had to grow",
			 d9_show_thread(m, thread, who, sizeof(who)), m->t->hooks.v[s->hook].name,
			 d9_format_duration(d9_span_dur(s), dur), s->result);
	d9_finding_cause(f, m, (struct d9_ref){thread, D9_REF_SPAN, span});
	d9_finding_n(f, "fd", (d9_u64)s->result);
	d9_finding_n(f, "blocked_ns", d9_span_dur(s));
	d9_finding_span(f, (struct d9_ref){thread, D9_REF_SPAN, span});
	d9_claim(m, thread, span);
	f->try[0] = "Grow the table before there are threads: dup2 a descriptor to the highest number that will be "
		    "needed, and close it.";
}

void d9_find_fd_table_growth(struct d9_model *m, struct d9_findings *out)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		for (d9_u32 k = 0; m->t->threads.v[i].kinds & MAKES_FD && k < m->t->threads.v[i].spans.n; k++) {
			const struct d9_span *s = &m->t->threads.v[i].spans.v[k];
			if (d9_is_fd_table_growth(s) && !was_idle(m, i, s) && !(s->flags & D9_SPAN_CLAIMED))
				report(m, out, i, k);
		}
}
