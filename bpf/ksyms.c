/* See ksyms.h. */
#include "ksyms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REACH (1u << 20) /* kallsyms has no sizes: farther above a symbol than this is in none */

struct symbol {
	d9_u64 at;
	d9_u32 name; /* offset in names */
};
struct d9_ksyms {
	struct symbol *of;
	size_t n, room;
	char *names;
	size_t n_names, room_names;
};

static bool grow(void **p, size_t *room, size_t need, size_t each)
{
	if (need <= *room)
		return true;
	size_t more = *room ? *room * 2 : 65536;
	void *q = realloc(*p, more * each);
	if (!q)
		return false;
	*p = q;
	*room = more;
	return true;
}

static bool add(struct d9_ksyms *k, d9_u64 at, const char *name)
{
	size_t n = strlen(name) + 1;
	if (k->n && k->of[k->n - 1].at == at)
		return true; /* one name of each place is enough */
	if (!grow((void **)&k->of, &k->room, k->n + 1, sizeof(*k->of)) ||
	    !grow((void **)&k->names, &k->room_names, k->n_names + n, 1))
		return false;
	memcpy(k->names + k->n_names, name, n);
	k->of[k->n++] = (struct symbol){at, (d9_u32)k->n_names};
	k->n_names += n;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* "ffffffff81000000 T name", of a module with a tab and its name behind.  NULL: no function, or an address that one may not see. */
static const char *function_in(char *line, d9_u64 *ret_at)
{
	char *end;
	*ret_at = strtoull(line, &end, 16);
	if (!*ret_at || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return NULL;
	end[3 + strcspn(end + 3, " \t\n")] = 0;
	return end[3] ? end + 3 : NULL;
}

struct d9_ksyms *d9_ksyms_load(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	struct d9_ksyms *k = calloc(1, sizeof(*k));
	char line[1024];
	const char *name;
	d9_u64 at;
	bool good = f && k;
	while (good && fgets(line, sizeof(line), f))
		if ((name = function_in(line, &at)))
			good = add(k, at, name);
	if (f)
		fclose(f);
	if (!good || !k->n) {
		d9_ksyms_free(k);
		return NULL;
	}
	qsort(k->of, k->n, sizeof(*k->of), by_address);
	return k;
}

void d9_ksyms_free(struct d9_ksyms *k)
{
	if (!k)
		return;
	free(k->of);
	free(k->names);
	free(k);
}

static const struct symbol *find(const struct d9_ksyms *k, d9_u64 address)
{
	size_t lo = 0, hi = k->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (k->of[mid].at <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && address - k->of[lo - 1].at < REACH ? &k->of[lo - 1] : NULL;
}

size_t d9_ksyms_text(const struct d9_ksyms *k, const d9_u64 *addresses, size_t n, char *buf, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < n; i++) {
		const struct symbol *s = find(k, addresses[i]);
		int len = s ? snprintf(buf + used, size - used, "%s+0x%llx\n", k->names + s->name,
				       (unsigned long long)(addresses[i] - s->at))
			    : snprintf(buf + used, size - used, "?\n");
		if (len < 0 || (size_t)len >= size - used)
			break;
		used += (size_t)len;
	}
	return used;
}
