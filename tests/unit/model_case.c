/* See model_case.h. */
#include "model_case.h"

struct tb B;
struct d9_trace *T;
struct d9_model *M;
struct d9_findings F;

void setup(void)
{
	tb_new(&B);
	tb_family(&B, "svc");
	tb_proc(&B, 0, D9_NO_INDEX, 100, 1, 500, "/bin/svc");
	tb_thread(&B, 1, 0, 100, "svc");
}

void teardown(void)
{
	d9_findings_free(&F);
	d9_model_free(M);
	d9_trace_free(T);
	M = NULL;
	T = NULL;
	tb_free(&B);
}

void read_all(void)
{
	T = tb_read(&B);
	M = d9_model_new(T);
	d9_findings_make(M, &F);
}

void analyse(void)
{
	tb_end(&B);
	read_all();
}

d9_u32 thread(int tid)
{
	for (d9_u32 i = 0; i < T->threads.n; i++)
		if (T->threads.v[i].tid == tid)
			return i;
	ck_abort_msg("no thread %d", tid);
	return 0;
}

const struct d9_finding *find(const char *id)
{
	for (size_t i = 0; i < F.of.n; i++)
		if (!strcmp(F.of.v[i].id, id))
			return &F.of.v[i];
	return NULL;
}

const struct d9_finding *need(const char *id)
{
	const struct d9_finding *f = find(id);
	for (size_t i = 0; !f && i < F.of.n; i++)
		fprintf(stderr, "# found instead: %s: %s\n", F.of.v[i].id, F.of.v[i].title);
	ck_assert_msg(f != NULL, "no finding %s", id);
	return f;
}

void nothing(void)
{
	for (size_t i = 0; i < F.of.n; i++)
		ck_abort_msg("found %s: %s", F.of.v[i].id, F.of.v[i].title);
}

d9_u64 measured(const struct d9_finding *f, const char *key)
{
	for (size_t i = 0; i < f->measured.n; i++)
		if (!strcmp(f->measured.v[i].key, key))
			return f->measured.v[i].is_real ? (d9_u64)(f->measured.v[i].real * 1000) : f->measured.v[i].n;
	ck_abort_msg("%s has no %s", f->id, key);
	return 0;
}

d9_u64 loop(d9_u32 th, d9_u32 site, d9_u64 t, unsigned n, int fd)
{
	for (unsigned i = 0; i < n; i++, t += MS(10))
		tb_span(&B, th, site, (struct tb_span){.t0 = t, .t1 = t + MS(9), .fd = fd, .result = 1});
	return t;
}
