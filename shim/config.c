/*
 * Reading the D9_* variables.  Called once from the library's constructor, which may run before libc's
 * own, and by d9; so no allocation, no locale, no errno.
 */
#include "config.h"
#include "format/families.h"
#include "text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum opt_type { NUMBER, CHOICE, TEXT, FAMILIES, UNBUILT };
struct opt {
	const char *name;
	enum opt_type type;
	size_t offset, bytes;
	d9_u64 def, min, max;
	const char *words, *def_text;
};

static const struct opt opts[] = {
#define D9_OPT_NUMBER(name, field, def, min, max, unit, doc) \
	{#name, NUMBER, offsetof(struct d9_config, field), 8, def, min, max, NULL, NULL},
#define D9_OPT_CHOICE(name, field, def, word, words, doc) \
	{#name, CHOICE, offsetof(struct d9_config, field), 8, def, 0, 0, words, NULL},
#define D9_OPT_TEXT(name, field, def, bytes, doc) \
	{#name, TEXT, offsetof(struct d9_config, field), bytes, 0, 0, 0, NULL, def},
#define D9_OPT_FAMILIES(name, field, doc) \
	{#name, FAMILIES, offsetof(struct d9_config, field), 8, D9_MASK_ALL, 0, 0, NULL, NULL},
#define D9_OPT_UNBUILT(name, doc) {#name, UNBUILT, 0, 0, 0, 0, 0, NULL, NULL},
#include "options.def"
#undef D9_OPT_NUMBER
#undef D9_OPT_CHOICE
#undef D9_OPT_TEXT
#undef D9_OPT_FAMILIES
#undef D9_OPT_UNBUILT
};
#define N_OPTS (sizeof(opts) / sizeof(*opts))

const struct d9_option d9_options[] = {
#define D9_OPT_NUMBER(name, field, def, min, max, unit, doc) {#name, "number", #def, #min ".." #max " " unit, doc, 1},
#define D9_OPT_CHOICE(name, field, def, word, words, doc) {#name, "choice", word, words, doc, 1},
#define D9_OPT_TEXT(name, field, def, bytes, doc) {#name, "text", def, "", doc, 1},
#define D9_OPT_FAMILIES(name, field, doc) {#name, "families", "all", "all, or a list of families", doc, 1},
#define D9_OPT_UNBUILT(name, doc) {#name, "unbuilt", "", "", doc, 0},
#include "options.def"
#undef D9_OPT_NUMBER
#undef D9_OPT_CHOICE
#undef D9_OPT_TEXT
#undef D9_OPT_FAMILIES
#undef D9_OPT_UNBUILT
};
const unsigned d9_n_options = sizeof(d9_options) / sizeof(*d9_options);

static const char *const families[] = {
#define D9_FAMILY(name, doc) #name,
#include "format/families.def"
#undef D9_FAMILY
};

/* One line: what cannot be used, and what is used instead. */
static void warn(struct d9_config *c, const char *name, const char *value, const char *why)
{
	struct d9_text t = {c->warnings, strlen(c->warnings), sizeof(c->warnings)};
	d9_text_str(&t, name);
	d9_text_str(&t, "=");
	for (unsigned i = 0; value[i] && i < 80; i++)
		d9_text_char(&t, value[i] >= ' ' && value[i] != 127 ? value[i] : '?');
	d9_text_str(&t, ": ");
	d9_text_str(&t, why);
	d9_text_str(&t, "\n");
}

static d9_u64 *number_field(struct d9_config *c, const struct opt *o) { return (d9_u64 *)((char *)c + o->offset); }

static bool parse_u64(const char *s, d9_u64 *ret)
{
	d9_u64 v = 0;
	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		if (v > (~0ull - 9) / 10)
			return false; /* an overflow is out of every range */
		v = v * 10 + (d9_u64)(*s - '0');
	}
	*ret = v;
	return true;
}

static int set_number(struct d9_config *c, const struct opt *o, const char *value)
{
	d9_u64 v;
	if (parse_u64(value, &v) && v >= o->min && v <= o->max) {
		*number_field(c, o) = v;
		return 0;
	}
	char why[128];
	struct d9_text t = d9_text_in(why, sizeof(why));
	d9_text_str(&t, "not a whole number from ");
	d9_text_u64(&t, o->min);
	d9_text_str(&t, " to ");
	d9_text_u64(&t, o->max);
	d9_text_str(&t, "; using ");
	d9_text_u64(&t, *number_field(c, o));
	warn(c, o->name, value, why);
	return -EINVAL;
}

/* Index of `word` (n bytes) in a list separated by '|', or -1. */
static int word_index(const char *words, const char *word, size_t n)
{
	int i = 0;
	for (const char *w = words; *w; i++) {
		size_t len = strcspn(w, "|");
		if (len == n && !memcmp(w, word, n))
			return i;
		w += len;
		if (*w)
			w++;
	}
	return -1;
}

static int set_choice(struct d9_config *c, const struct opt *o, const char *value)
{
	int i = word_index(o->words, value, strlen(value));
	if (i >= 0) {
		*number_field(c, o) = (d9_u64)i;
		return 0;
	}
	char why[128];
	struct d9_text t = d9_text_in(why, sizeof(why));
	d9_text_str(&t, "not one of ");
	d9_text_str(&t, o->words);
	d9_text_str(&t, "; using the default");
	warn(c, o->name, value, why);
	return -EINVAL;
}

static int set_text(struct d9_config *c, const struct opt *o, const char *value)
{
	size_t n = strlen(value);
	if (n >= o->bytes) {
		warn(c, o->name, value, "too long; using the default");
		return -EINVAL;
	}
	/* A relative one would be another file after each chdir. */
	if (o->offset == offsetof(struct d9_config, log) && *value && *value != '/' && strcmp(value, "stderr") != 0 &&
	    strcmp(value, "none") != 0) {
		warn(c, o->name, value, "neither an absolute path nor `stderr`; nothing is logged");
		return -EINVAL;
	}
	memcpy((char *)c + o->offset, value, n + 1);
	return 0;
}

static int family_bit(const char *word, size_t n)
{
	for (int i = 0; i < (int)D9_N_FAMILIES; i++)
		if (strlen(families[i]) == n && !memcmp(families[i], word, n))
			return i;
	return -1;
}

/* "all", "epoll,read", "-mutex" (from all), "all,-mutex". */
static int set_families(struct d9_config *c, const struct opt *o, const char *value)
{
	d9_u64 mask = 0;
	bool first = true;
	for (const char *w = value; *w; first = false) {
		size_t len = strcspn(w, ",");
		bool minus = *w == '-';
		int bit = family_bit(w + minus, len - minus);
		if (minus && first)
			mask = D9_MASK_ALL;
		if (!minus && len == 3 && !memcmp(w, "all", 3))
			mask = D9_MASK_ALL;
		else if (bit < 0) {
			warn(c, o->name, value,
			     "names a family that does not exist (d9 schema --hooks lists them); using all");
			return -EINVAL;
		} else if (minus)
			mask &= ~(1ull << bit);
		else
			mask |= 1ull << bit;
		w += len;
		if (*w)
			w++;
	}
	if (first) {
		warn(c, o->name, value, "empty; using all");
		return -EINVAL;
	}
	*number_field(c, o) = mask | D9_MASK(identity); /* contract: identity changes are always on */
	return 0;
}

static int check_pair(struct d9_config *c)
{
	if (c->total_mb >= 2 * c->segment_mb)
		return 0;
	char value[24];
	struct d9_text t = d9_text_in(value, sizeof(value));
	d9_text_u64(&t, c->total_mb);
	warn(c, "D9_TOTAL_MB", value, "less than two segments; using two segments");
	c->total_mb = 2 * c->segment_mb;
	return -EINVAL;
}

static const struct opt *find(const char *name, size_t n)
{
	for (size_t i = 0; i < N_OPTS; i++)
		if (strlen(opts[i].name) == n && !memcmp(opts[i].name, name, n))
			return &opts[i];
	return NULL;
}

static int set(struct d9_config *c, const struct opt *o, const char *value)
{
	switch (o->type) {
	case NUMBER:
		return set_number(c, o, value);
	case CHOICE:
		return set_choice(c, o, value);
	case TEXT:
		return set_text(c, o, value);
	case FAMILIES:
		return set_families(c, o, value);
	case UNBUILT:
		break;
	}
	warn(c, o->name, value, "not built in this version; ignored");
	return -ENOSYS;
}

bool d9_config_names(const char *list, const char *program)
{
	bool only_others = true, named = false;
	if (!strcmp(list, "all"))
		return true;
	for (size_t n; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		bool out = *list == '-';
		bool same = strlen(program) == n - out && !memcmp(list + out, program, n - out);
		if (same && out)
			return false;
		named |= same;
		only_others &= out || !n;
	}
	return named || only_others;
}

int d9_config_set(struct d9_config *c, const char *name, const char *value)
{
	const struct opt *o = find(name, strlen(name));
	if (!o) {
		warn(c, name, value, "no such option (d9 help env lists them); ignored");
		return -ENOENT;
	}
	int r = set(c, o, value);
	if (!r &&
	    (o->offset == offsetof(struct d9_config, total_mb) || o->offset == offsetof(struct d9_config, segment_mb)))
		return check_pair(c);
	return r;
}

static void defaults(struct d9_config *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < N_OPTS; i++)
		if (opts[i].type != TEXT && opts[i].type != UNBUILT)
			*number_field(c, &opts[i]) = opts[i].def;
}

void d9_config_from_env(struct d9_config *c, char *const *envp)
{
	defaults(c);
	for (; envp && *envp; envp++) {
		const char *e = *envp, *eq = strchr(e, '=');
		if (e[0] != 'D' || e[1] != '9' || e[2] != '_' || !eq)
			continue;
		const struct opt *o = find(e, (size_t)(eq - e));
		if (o)
			(void)set(c, o, eq + 1);
		else {
			char name[48];
			struct d9_text t = d9_text_in(name, sizeof(name));
			for (const char *p = e; p < eq; p++)
				d9_text_char(&t, *p);
			warn(c, name, eq + 1, "no such option (d9 help env lists them); ignored");
		}
	}
	(void)check_pair(c);
}
