/* See task_names.h. */
#include "task_names.h"
#include "model.h"

#include <stdio.h>

/* Bytes of the type that p begins with: up to a comma or a closing bracket that is not its own. */
static size_t type_length(const char *p)
{
	size_t n = 0;
	int depth = 0;
	for (; p[n]; n++) {
		bool arrow = p[n] == '>' && n && p[n - 1] == '-'; /* fn() -> T */
		if (strchr("<([{", p[n]))
			depth++;
		else if (strchr(">)]}", p[n]) && !arrow && depth-- == 0)
			break;
		else if (p[n] == ',' && !depth)
			break;
	}
	return n;
}

/* Types that stand around the one that somebody wrote. */
static const char *const wrappers[] = {"::BlockingTask<", "::Instrumented<"};

static bool unwrap(const char **p, size_t *n)
{
	const char *open = memchr(*p, '<', *n);
	for (size_t i = 0; open && i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
		size_t len = strlen(wrappers[i]);
		const char *at = open + 1 - len;
		if (at < *p || memcmp(at, wrappers[i], len) != 0)
			continue;
		*p = open + 1;
		*n = type_length(*p);
		return true;
	}
	return false;
}

bool d9_future_in(const char *function, const char **ret, size_t *ret_n)
{
	const char *v0 = strstr(function, "::poll::<"), *debug = strncmp(function, "poll<", 5) ? NULL : function;
	if (!v0 && !debug)
		return false;
	*ret = v0 ? v0 + 9 : debug + 5;
	*ret_n = type_length(*ret);
	while (unwrap(ret, ret_n))
		;
	return *ret_n > 0;
}

static char *keep(const char *text)
{
	size_t n = strlen(text) + 1;
	return memcpy(d9_must_alloc(n, 1), text, n);
}

static struct d9_task_kind make_name(struct d9_trace *t, d9_u32 proc, d9_u64 code)
{
	struct d9_maps maps = d9_trace_maps(t, proc);
	const char *function = d9_symbols_function(t->symbols, &maps, code), *future;
	char text[1024];
	size_t n;
	if (function && d9_future_in(function, &future, &n)) {
		snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), future);
		return (struct d9_task_kind){.name = keep(text)};
	}
	struct d9_frame f;
	d9_symbols_name(t->symbols, &maps, code, false, &f);
	if (!f.module)
		return (struct d9_task_kind){.name = keep("")};
	snprintf(text, sizeof(text), "%s+0x%llx", f.module, (unsigned long long)f.offset);
	return (struct d9_task_kind){.name = keep(text), .by_place = true};
}

struct d9_bytes d9_task_name(struct d9_task_names *names, struct d9_trace *t, d9_u32 proc, d9_u64 code)
{
	if (!code || proc == D9_NO_INDEX)
		return (struct d9_bytes){0};
	d9_u64 key = d9_object_key(proc, code);
	d9_u32 i = d9_map_get(&names->by_code, key);
	if (i == D9_MAP_EMPTY) {
		i = (d9_u32)names->of.n;
		d9_vec_push(&names->of, make_name(t, proc, code));
		d9_map_put(&names->by_code, key, i);
	}
	const char *name = names->of.v[i].name;
	return (struct d9_bytes){.kind = D9_TAIL_STRING, .n = (d9_u32)strlen(name), .p = (const d9_u8 *)name};
}

static struct d9_task_kind *kind_of(const struct d9_task_names *names, d9_u32 proc, d9_u64 code)
{
	d9_u32 i = d9_map_get(&names->by_code, d9_object_key(proc, code));
	return i == D9_MAP_EMPTY ? NULL : &names->of.v[i];
}

bool d9_task_name_wanted(const struct d9_task_names *names, d9_u32 proc, d9_u64 code)
{
	const struct d9_task_kind *k = kind_of(names, proc, code);
	return k && k->by_place && !k->several;
}

void d9_task_name_seen(struct d9_task_names *names, d9_u32 proc, d9_u64 code, const char *function)
{
	struct d9_task_kind *k = kind_of(names, proc, code);
	if (!k || !function)
		return;
	k->several |= k->function && strcmp(k->function, function) != 0;
	k->function = function;
}

/*
 * Of several functions none is the task's own for all: what it awaits first and what it awaits next are called from one that was compiled into the
 * runtime's.
 */
void d9_task_names_finish(struct d9_task_names *names)
{
	for (size_t i = 0; i < names->of.n; i++) {
		struct d9_task_kind *k = &names->of.v[i];
		if (!k->by_place || k->several || !k->function)
			continue;
		char text[1024];
		snprintf(text, sizeof(text), "%.900s in %.100s", k->function, k->name);
		free(k->name);
		k->name = keep(text);
		k->by_place = false;
	}
}

void d9_task_names_free(struct d9_task_names *names)
{
	for (size_t i = 0; i < names->of.n; i++)
		free(names->of.v[i].name);
	d9_vec_free(&names->of);
	d9_map_free(&names->by_code);
}
