/*
 * Roles.  A worker is a thread that keeps coming back to an event wait (or to a place where other workers
 * of its process park), or that a runtime polls tasks on as one of its workers; a pool is threads that wait for the same object at the same place (R7), or at
 * least at the same place.
 */
#include "model_internal.h"

const char *d9_role_name(enum d9_role role)
{
	static const char *const names[] = {"other", "main", "worker", "pool", "driver", "recorder"};
	return names[role];
}

/* The rule of a worker: often home, or home most of its time. */
static bool keeps_coming_back(const struct d9_model *m, d9_u32 thread)
{
	const struct d9_model_thread *mt = &m->threads[thread];
	d9_u64 parked = 0;
	for (size_t i = 0; i < mt->parks.n; i++)
		parked += mt->parks.v[i].t1 - mt->parks.v[i].t0;
	if (mt->polling)
		return false;
	bool polls = mt->home != D9_NO_INDEX && m->t->sites.v[mt->home].kind == D9_FAMILY_epoll;
	if (mt->parks.n >= (polls ? 8 : 16)) /* epoll is for loops; poll and conditions have other uses */
		return true;
	return mt->parks.n >= 4 && parked * 2 >= mt->end - mt->begin;
}

static bool is_event_home(const struct d9_model *m, d9_u32 thread)
{
	d9_u32 home = m->threads[thread].home;
	return home != D9_NO_INDEX && d9_kind_class(m->t->sites.v[home].kind) == D9_CLASS_EVENT;
}

/* A worker's thread that runs jobs too was its pool's before or after, and waits for them where the pool does. */
static bool runs_jobs(const struct d9_trace_thread *th)
{
	for (size_t i = 0; i < th->rt.n; i++)
		if (!th->rt.v[i].park && d9_is_pool(&th->rt.v[i]))
			return true;
	return false;
}

static bool polls_tasks(const struct d9_trace_thread *th)
{
	for (size_t i = 0; i < th->rt.n; i++)
		if (!th->rt.v[i].park && !d9_is_pool(&th->rt.v[i]))
			return true;
	return false;
}

/* The standard library's one function waits for all conditions, so where a pool waits may look like where workers park. */
static bool is_of_pool(const struct d9_trace_thread *th) { return runs_jobs(th) && !polls_tasks(th); }

static void first_roles(struct d9_model *m)
{
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		const struct d9_trace_thread *th = &m->t->threads.v[i];
		struct d9_model_thread *mt = &m->threads[i];
		mt->pool = mt->worker = D9_NO_INDEX;
		bool reported = mt->parks.n && mt->parks.v[0].site == D9_NO_INDEX;
		if (th->role == 2)
			mt->role = D9_ROLE_RECORDER;
		else if (reported || d9_polls_as_worker(th) || (is_event_home(m, i) && keeps_coming_back(m, i)))
			mt->role = D9_ROLE_WORKER;
		else
			mt->role = th->role == 1 ? D9_ROLE_MAIN : D9_ROLE_OTHER;
	}
}

/*
 * Threads that park for objects where a worker of their process also parks are workers without the poller; those that
 * wait at its place for events of its descriptor share the poller with it.
 */
static void spread_workers(struct d9_model *m)
{
	struct d9_map sites = {0}; /* proc and site -> a worker that parks there */
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (m->threads[i].role != D9_ROLE_WORKER || runs_jobs(&m->t->threads.v[i]))
			continue;
		for (size_t k = 0; k < m->threads[i].homes.n; k++)
			d9_map_put(&sites, (d9_u64)m->t->threads.v[i].proc << 32 | m->threads[i].homes.v[k], i);
	}
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		struct d9_model_thread *mt = &m->threads[i];
		if (mt->home == D9_NO_INDEX || mt->role == D9_ROLE_RECORDER || is_of_pool(&m->t->threads.v[i]))
			continue;
		d9_u32 other = d9_map_get(&sites, (d9_u64)m->t->threads.v[i].proc << 32 | mt->home);
		if (other == D9_MAP_EMPTY)
			continue;
		if (!is_event_home(m, i) ||
		    (mt->home_fd >= 0 && m->threads[other].home_fd == mt->home_fd && !mt->polling))
			mt->role = D9_ROLE_WORKER;
	}
	d9_map_free(&sites);
}

static void name_pool(const struct d9_model *m, struct d9_pool *p)
{
	const char *name = m->t->threads.v[p->threads.v[0]].name;
	size_t n = strlen(name);
	while (n && (name[n - 1] == '-' || name[n - 1] == ':' || name[n - 1] == '/' ||
		     (name[n - 1] >= '0' && name[n - 1] <= '9')))
		n--;
	snprintf(p->name, sizeof(p->name), "%.*s pool", (int)n, n ? name : "");
}

static void join_pool(struct d9_model *m, struct d9_map *map, d9_u64 key, d9_u32 thread, d9_u64 object)
{
	d9_u32 i = d9_map_get(map, key);
	if (i == D9_MAP_EMPTY) {
		i = (d9_u32)m->pools.n;
		d9_vec_push(&m->pools, (struct d9_pool){.proc = m->t->threads.v[thread].proc,
							.site = m->threads[thread].home,
							.object = object});
		d9_map_put(map, key, i);
	}
	d9_vec_push(&m->pools.v[i].threads, thread);
	m->threads[thread].pool = i;
}

static bool may_pool(const struct d9_model *m, d9_u32 i)
{
	const struct d9_model_thread *mt = &m->threads[i];
	return mt->home != D9_NO_INDEX && !is_event_home(m, i) && mt->role != D9_ROLE_WORKER &&
	       mt->role != D9_ROLE_RECORDER;
}

static d9_u64 place_key(const struct d9_model *m, d9_u32 i, d9_u64 object)
{
	const struct d9_trace_site *s = &m->t->sites.v[m->threads[i].home];
	return (d9_u64)m->t->threads.v[i].proc << 48 ^ s->ra * 0x9e3779b97f4a7c15ull ^ object ^
	       (object ? 0 : (d9_u64)m->threads[i].home << 20);
}

static void drop_lone_pools(struct d9_model *m)
{
	for (size_t i = 0; i < m->pools.n; i++) {
		struct d9_pool *p = &m->pools.v[i];
		d9_u32 lone = p->threads.n == 1 ? p->threads.v[0] : D9_NO_INDEX;
		for (size_t k = 0; k < p->threads.n; k++) {
			struct d9_model_thread *mt = &m->threads[p->threads.v[k]];
			if (lone == D9_NO_INDEX || keeps_coming_back(m, lone))
				mt->role = m->t->threads.v[p->threads.v[k]].role == 1 ? D9_ROLE_MAIN : D9_ROLE_POOL;
			else
				mt->pool = D9_NO_INDEX;
		}
		if (lone != D9_NO_INDEX && m->threads[lone].pool == D9_NO_INDEX)
			p->threads.n = 0;
		if (p->threads.n)
			name_pool(m, p);
	}
}

/* By object first; a thread that shares its object with nobody joins those at the same place. */
static void find_pools(struct d9_model *m)
{
	struct d9_map count = {0}, map = {0};
	for (d9_u32 i = 0; i < m->t->threads.n; i++)
		if (may_pool(m, i)) {
			d9_u64 key = place_key(m, i, m->threads[i].home_object);
			d9_u32 n = d9_map_get(&count, key);
			d9_map_put(&count, key, n == D9_MAP_EMPTY ? 1 : n + 1);
		}
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (!may_pool(m, i))
			continue;
		d9_u64 object = m->threads[i].home_object, key = place_key(m, i, object);
		if (d9_map_get(&count, key) < 2)
			key = place_key(m, i, object = 0);
		join_pool(m, &map, key, i, object);
	}
	drop_lone_pools(m);
	d9_map_free(&count);
	d9_map_free(&map);
}

static void number_workers(struct d9_model *m)
{
	struct d9_map next = {0}; /* by proc; threads are in the order in which they were first seen */
	for (d9_u32 i = 0; i < m->t->threads.n; i++) {
		if (m->threads[i].role != D9_ROLE_WORKER)
			continue;
		d9_u32 n = d9_map_get(&next, m->t->threads.v[i].proc);
		m->threads[i].worker = n == D9_MAP_EMPTY ? 0 : n;
		d9_map_put(&next, m->t->threads.v[i].proc, m->threads[i].worker + 1);
	}
	d9_map_free(&next);
}

void d9_pools_find(struct d9_model *m)
{
	first_roles(m);
	spread_workers(m);
	find_pools(m);
	number_workers(m);
}
