#include "findings.h"
#include "clean.h"
#include "tasks.h"

#include <stdarg.h>

#define EVIDENCE_MAX 8

static const struct {
	const char *id;
	d9_find_fn *find;
} table[] = {
#define D9_FINDING(id, fn, says, measured) {id, fn},
#include "findings.def"
#undef D9_FINDING
};
#define N_TABLE (sizeof(table) / sizeof(table[0]))

/* Ids that docs/CONTRACT.md has and this version does not find. */
static const char *const reserved[] = {"queue-growth", "span-outlier", "span-unmatched", "spans-per-poll"};

bool d9_finding_reserved(const char *id)
{
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (!strcmp(reserved[i], id))
			return true;
	return false;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static int worst_first(const void *a, const void *b)
{
	const struct d9_finding *x = a, *y = b;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->harm != y->harm)
		return x->harm > y->harm ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void finding_fini(struct d9_finding *f)
{
	d9_vec_free(&f->victims);
	d9_vec_free(&f->measured);
	d9_vec_free(&f->spans);
}

static void keep_shown(struct d9_model *m, struct d9_findings *f)
{
	size_t n = 0;
	for (size_t i = 0; i < f->of.n; i++)
		if (m->t->threads.v[f->of.v[i].thread].shown)
			f->of.v[n++] = f->of.v[i];
		else
			finding_fini(&f->of.v[i]);
	f->of.n = n;
}

void d9_findings_make(struct d9_model *m, struct d9_findings *ret)
{
	*ret = (struct d9_findings){0};
	for (size_t i = 0; i < N_TABLE; i++)
		if (!i || table[i].find != table[i - 1].find)
			table[i].find(m, ret);
	keep_shown(m, ret);
	if (ret->of.n)
		qsort(ret->of.v, ret->of.n, sizeof(*ret->of.v), worst_first);
}

void d9_findings_free(struct d9_findings *f)
{
	for (size_t i = 0; i < f->of.n; i++)
		finding_fini(&f->of.v[i]);
	d9_vec_free(&f->of);
}

bool d9_finding_known(const char *id)
{
	for (size_t i = 0; i < N_TABLE; i++)
		if (!strcmp(table[i].id, id))
			return true;
	return false;
}

d9_u64 d9_findings_count(const struct d9_findings *f, const char *subject)
{
	d9_u64 n = 0;
	for (size_t i = 0; i < f->of.n; i++)
		n += !strcmp(subject, "findings") || !strcmp(subject, f->of.v[i].id) ||
		     (!strcmp(subject, "critical") && f->of.v[i].severity == D9_CRITICAL);
	return n;
}

const char *d9_severity_name(enum d9_severity s)
{
	static const char *const names[] = {"info", "warning", "critical"};
	return names[s];
}

enum d9_severity d9_severity_of(d9_u64 ns) { return ns > D9_CRITICAL_NS ? D9_CRITICAL : D9_WARNING; }

/* ---- one finding ------------------------------------------------------------------------------------- */

struct d9_finding *d9_finding_add(struct d9_findings *out, const char *id, d9_u32 thread)
{
	struct d9_finding f = {.id = id, .thread = thread, .count = 1, .severity = D9_WARNING};
	f.cause.kind = "cpu";
	f.cause.hook = D9_NO_INDEX;
	f.cause.fd = -1;
	f.cause.proc = D9_NO_INDEX;
	d9_vec_push(&out->of, f);
	return &out->of.v[out->of.n - 1];
}

void d9_finding_title(struct d9_finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->title, sizeof(f->title), fmt, ap);
	va_end(ap);
	d9_clean(f->title, strlen(f->title)); /* names are the program's */
}

#define NAME_BYTES 48 /* of a task in a title */

void d9_finding_task(struct d9_finding *f, struct d9_model *m, d9_u32 thread, const struct d9_rt_span *poll)
{
	if (!poll || !poll->task)
		return;
	char key[D9_TASK_KEY_BYTES];
	d9_u32 proc = m->t->threads.v[thread].proc;
	struct d9_bytes name = d9_model_task_name(m, proc, poll->module, poll->task);
	size_t n = strlen(f->title);
	n += (size_t)snprintf(f->title + n, sizeof(f->title) - n, "; task %s",
			      d9_task_key(m, proc, poll->module, poll->task, key));
	if (name.n && n < sizeof(f->title))
		snprintf(f->title + n, sizeof(f->title) - n, " `%.*s`",
			 (int)(name.n < NAME_BYTES ? name.n : NAME_BYTES), (const char *)name.p);
	d9_clean(f->title, strlen(f->title)); /* names are the program's */
}

void d9_finding_n(struct d9_finding *f, const char *key, d9_u64 value)
{
	d9_vec_push(&f->measured, (struct d9_measured){.key = key, .n = value});
}

void d9_finding_real(struct d9_finding *f, const char *key, double value)
{
	d9_vec_push(&f->measured, (struct d9_measured){.key = key, .is_real = true, .real = value});
}

void d9_finding_victim(struct d9_finding *f, d9_u32 thread, d9_u64 waited_ns)
{
	for (size_t i = 0; i < f->victims.n; i++)
		if (f->victims.v[i].thread == thread) {
			f->victims.v[i].waited += waited_ns;
			return;
		}
	d9_vec_push(&f->victims, (struct d9_victim){thread, waited_ns});
}

void d9_finding_span(struct d9_finding *f, struct d9_ref ref)
{
	if (f->spans.n < EVIDENCE_MAX)
		d9_vec_push(&f->spans, ref);
}

void d9_finding_cause(struct d9_finding *f, const struct d9_model *m, struct d9_ref ref)
{
	struct d9_ref_info r = d9_ref_info(m, ref);
	const struct d9_trace_thread *th = &m->t->threads.v[ref.thread];
	f->cause.kind = d9_kind_name(r.kind);
	f->cause.hook = r.hook;
	f->cause.object = r.object;
	f->cause.fd = r.object ? -1 : r.fd;
	f->cause.owner_tid = ref.what == D9_REF_PENDING ? th->pending.owner
			     : ref.what == D9_REF_SPAN  ? th->spans.v[ref.index].owner
							: 0;
	f->cause.proc = th->proc;
	f->cause.stack = r.stack;
	f->cause.own_stack = r.own_stack;
	f->cause.ended = r.ended;
	f->cause.ra = r.site == D9_NO_INDEX ? 0 : m->t->sites.v[r.site].ra;
}

d9_u32 d9_call_around(const struct d9_model *m, struct d9_ref ref)
{
	const struct d9_offcpu *o = d9_offcpu_at(m, ref);
	d9_u64 most, dur = o->t1 - o->t0;
	d9_u32 i = d9_model_busiest_span(m, ref.thread, o->t0, o->t1, &most);
	if (i == D9_NO_INDEX || most * 10 < dur * 9 || dur * 2 < d9_span_dur(d9_model_span(m, ref.thread, i)))
		return D9_NO_INDEX;
	return i;
}

void d9_claim_offcpu(struct d9_model *m, struct d9_ref ref, d9_u32 call)
{
	d9_offcpu_at(m, ref)->flags |= D9_KERNEL_CLAIMED;
	if (call != D9_NO_INDEX)
		d9_claim(m, ref.thread, call);
}

void d9_finding_offcpu(struct d9_finding *f, struct d9_model *m, struct d9_ref ref, d9_u32 call)
{
	d9_finding_cause(f, m, ref);
	d9_finding_span(f, ref);
	d9_claim_offcpu(m, ref, call);
	if (call == D9_NO_INDEX)
		return;
	const struct d9_span *s = d9_model_span(m, ref.thread, call);
	f->cause.kind = d9_kind_name(s->kind);
	f->cause.hook = s->hook;
	f->cause.fd = s->fd;
	d9_finding_span(f, (struct d9_ref){ref.thread, D9_REF_SPAN, call});
}
