/*
 * Rust names.  Old: an Itanium nested name whose last part is a hash and whose odd characters are
 * spelled $LT$ and so on.  v0 (RFC 2603): a small grammar with back references, read by recursive
 * descent; what is not understood fails as a whole, and the name is shown as it is.
 * Output like rustc's own without hashes and crate numbers.
 */
#include "demangle.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- output ------------------------------------------------------------------------------------ */

struct out {
	char *s;
	size_t n, max;
	bool full;
};

static void put_n(struct out *o, const char *s, size_t n)
{
	if (n >= o->max - o->n) {
		o->full = true;
		return;
	}
	memcpy(o->s + o->n, s, n);
	o->n += n;
	o->s[o->n] = 0;
}
static void put(struct out *o, const char *s) { put_n(o, s, strlen(s)); }

/* ---- old names ----------------------------------------------------------------------------------- */

/* "$LT$" and friends at s; bytes taken, 0 if none. */
static size_t put_escape(struct out *o, const char *s, size_t n)
{
	static const struct {
		const char *code, *text;
	} codes[] = {{"$LT$", "<"}, {"$GT$", ">"}, {"$RF$", "&"}, {"$BP$", "*"},
		     {"$LP$", "("}, {"$RP$", ")"}, {"$C$", ","},  {"$SP$", "@"}};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		size_t len = strlen(codes[i].code);
		if (len <= n && !memcmp(s, codes[i].code, len)) {
			put(o, codes[i].text);
			return len;
		}
	}
	unsigned c;
	int len = 0;
	char copy[8] = "";
	memcpy(copy, s, n < 7 ? n : 7);
	if (sscanf(copy, "$u%2x$%n", &c, &len) == 1 && len && c >= 0x20 && c < 0x7f) {
		char text = (char)c;
		put_n(o, &text, 1);
		return (size_t)len;
	}
	return 0;
}

static void put_old_part(struct out *o, const char *s, size_t n)
{
	size_t i = n > 2 && s[0] == '_' && s[1] == '$' ? 1 : 0; /* a part may not begin with '$' */
	while (i < n) {
		size_t len = s[i] == '$' ? put_escape(o, s + i, n - i) : 0;
		if (!len && s[i] == '.' && i + 1 < n && s[i + 1] == '.') {
			put(o, "::");
			len = 2;
		}
		if (!len)
			put_n(o, s + i, len = 1);
		i += len;
	}
}

static bool is_hash(const char *s, size_t n)
{
	if (n != 17 || s[0] != 'h')
		return false;
	for (size_t i = 1; i < n; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

bool d9_demangle_rust_legacy(const char *raw, char *ret, size_t max)
{
	struct out o = {.s = ret, .max = max};
	const char *p = raw + 3, *end = raw + strlen(raw), *last = NULL;
	size_t last_n = 0;
	if (strncmp(raw, "_ZN", 3))
		return false;
	while (*p != 'E') {
		size_t n = 0;
		if (!isdigit((unsigned char)*p))
			return false;
		for (; isdigit((unsigned char)*p) && n < 100000; p++)
			n = n * 10 + (size_t)(*p - '0');
		if (n == 0 || n > (size_t)(end - p))
			return false;
		if (last) {
			put(&o, o.n ? "::" : "");
			put_old_part(&o, last, last_n);
		}
		last = p;
		last_n = n;
		p += n;
	}
	/* what follows the E is a compiler's suffix (.llvm.123) */
	return last && is_hash(last, last_n) && o.n && !o.full && (!p[1] || p[1] == '.');
}

/* ---- v0 ------------------------------------------------------------------------------------------- */

#define DEPTH_MAX 128

struct v0 {
	const char *s; /* behind "_R" */
	size_t at, end;
	unsigned depth;
	unsigned long bound; /* lifetimes bound by the binders around us */
	bool failed, silent; /* silent: parse without output */
	struct out *o;
};

static bool fail(struct v0 *v)
{
	v->failed = true;
	return false;
}
static void say_n(struct v0 *v, const char *s, size_t n)
{
	if (!v->silent)
		put_n(v->o, s, n);
}
static void say(struct v0 *v, const char *s) { say_n(v, s, strlen(s)); }
static char peek(const struct v0 *v) { return v->at < v->end ? v->s[v->at] : 0; }
static char next(struct v0 *v) { return v->at < v->end ? v->s[v->at++] : 0; }
static bool eat(struct v0 *v, char c)
{
	if (peek(v) != c)
		return false;
	v->at++;
	return true;
}

static bool enter(struct v0 *v)
{
	/* Back references can make a short name endless: stop at a depth, or when nothing more can be written. */
	if (v->failed || v->o->full || ++v->depth > DEPTH_MAX)
		return fail(v);
	return true;
}
static void leave(struct v0 *v) { v->depth--; }

/* {0-9a-zA-Z} "_"; "_" alone is 0, "0_" is 1. */
static unsigned long base62(struct v0 *v)
{
	unsigned long n = 0;
	if (eat(v, '_'))
		return 0;
	for (;;) {
		char c = next(v);
		unsigned d;
		if (c == '_')
			return n + 1;
		if (c >= '0' && c <= '9')
			d = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'z')
			d = (unsigned)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'Z')
			d = (unsigned)(c - 'A' + 36);
		else
			return fail(v), 0ul;
		if (__builtin_mul_overflow(n, 62, &n) || __builtin_add_overflow(n, d, &n) || n > ~0ul - 2)
			return fail(v), 0ul;
	}
}

static unsigned long optional62(struct v0 *v, char tag) { return eat(v, tag) ? base62(v) + 1 : 0; }

struct ident {
	const char *s;
	size_t n;
	bool puny;
};

static struct ident undisambiguated(struct v0 *v)
{
	struct ident id = {.puny = eat(v, 'u')};
	if (!isdigit((unsigned char)peek(v)))
		return fail(v), id;
	size_t n = 0;
	if (!eat(v, '0'))
		while (isdigit((unsigned char)peek(v)) && n < 1000000)
			n = n * 10 + (size_t)(next(v) - '0');
	eat(v, '_');
	if (n > v->end - v->at)
		return fail(v), id;
	id.s = v->s + v->at;
	id.n = n;
	v->at += n;
	return id;
}

static void say_ident(struct v0 *v, struct ident id)
{
	if (!id.puny) {
		say_n(v, id.s, id.n);
		return;
	}
	say(v, "punycode{"); /* not decoded: such names are rare, and this form is unambiguous */
	say_n(v, id.s, id.n);
	say(v, "}");
}

static void path(struct v0 *v, bool in_value);
static void type(struct v0 *v);
static void constant(struct v0 *v);

/* Runs f at the place that a back reference names; it must lie before the reference. */
static void backref(struct v0 *v, size_t tag_at, void (*f)(struct v0 *, bool), bool arg)
{
	unsigned long to = base62(v);
	size_t back = v->at;
	if (v->failed || to >= tag_at) {
		fail(v);
		return;
	}
	if (v->silent)
		return;
	v->at = to;
	f(v, arg);
	v->at = back;
}
static void type_(struct v0 *v, bool unused)
{
	(void)unused;
	type(v);
}
static void constant_(struct v0 *v, bool unused)
{
	(void)unused;
	constant(v);
}

static void lifetime(struct v0 *v, unsigned long index)
{
	char buf[32];
	if (index == 0) {
		say(v, "'_");
		return;
	}
	if (index > v->bound) {
		fail(v);
		return;
	}
	unsigned long depth = v->bound - index;
	if (depth < 26)
		snprintf(buf, sizeof(buf), "'%c", (char)('a' + depth));
	else
		snprintf(buf, sizeof(buf), "'_%lu", depth);
	say(v, buf);
}

/* "for<'a, 'b> " and f within it. */
static unsigned long open_binder(struct v0 *v)
{
	unsigned long n = optional62(v, 'G');
	if (n > 64)
		return fail(v), 0ul;
	if (n) {
		say(v, "for<");
		for (unsigned long i = 0; i < n; i++) {
			say(v, i ? ", " : "");
			v->bound++;
			lifetime(v, 1);
		}
		say(v, "> ");
	}
	return n;
}

static void generic_args(struct v0 *v)
{
	for (unsigned i = 0; !v->failed && !eat(v, 'E'); i++) {
		say(v, i ? ", " : "");
		if (eat(v, 'L'))
			lifetime(v, base62(v));
		else if (eat(v, 'K'))
			constant(v);
		else
			type(v);
	}
}

/* The impl's own path says where it stands, which nobody asks for. */
static void skip_impl_path(struct v0 *v)
{
	bool was = v->silent;
	optional62(v, 's');
	v->silent = true;
	path(v, false);
	v->silent = was;
}

static void nested_path(struct v0 *v, bool in_value)
{
	char ns = next(v), buf[48];
	path(v, in_value);
	unsigned long dis = optional62(v, 's');
	struct ident id = undisambiguated(v);
	if (v->failed || !isalpha((unsigned char)ns)) {
		fail(v);
		return;
	}
	if (islower((unsigned char)ns)) {
		if (id.n) {
			say(v, "::");
			say_ident(v, id);
		}
		return;
	}
	const char *what = ns == 'C' ? "closure" : ns == 'S' ? "shim" : NULL;
	char other[2] = {ns, 0};
	say(v, "::{");
	say(v, what ? what : other);
	if (id.n) {
		say(v, ":");
		say_ident(v, id);
	}
	snprintf(buf, sizeof(buf), "#%lu}", dis);
	say(v, buf);
}

static void path_body(struct v0 *v, bool in_value)
{
	size_t at = v->at;
	switch (next(v)) {
	case 'C':
		optional62(v, 's');
		say_ident(v, undisambiguated(v));
		return;
	case 'N':
		nested_path(v, in_value);
		return;
	case 'M':
		skip_impl_path(v);
		say(v, "<");
		type(v);
		say(v, ">");
		return;
	case 'X':
		skip_impl_path(v);
		__attribute__((fallthrough));
	case 'Y':
		say(v, "<");
		type(v);
		say(v, " as ");
		path(v, false);
		say(v, ">");
		return;
	case 'I':
		path(v, in_value);
		say(v, in_value ? "::<" : "<");
		generic_args(v);
		say(v, ">");
		return;
	case 'B':
		backref(v, at, path, in_value);
		return;
	default:
		fail(v);
	}
}

static void path(struct v0 *v, bool in_value)
{
	if (!enter(v))
		return;
	path_body(v, in_value);
	leave(v);
}

static const char *basic_type(char c)
{
	static const char *const names[26] = {"i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
					      "usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
					      "i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!"};
	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void fn_type(struct v0 *v)
{
	unsigned long bound = open_binder(v);
	if (eat(v, 'U'))
		say(v, "unsafe ");
	if (eat(v, 'K')) {
		say(v, "extern \"");
		if (eat(v, 'C'))
			say(v, "C");
		else
			say_ident(v, undisambiguated(v));
		say(v, "\" ");
	}
	say(v, "fn(");
	for (unsigned i = 0; !v->failed && !eat(v, 'E'); i++) {
		say(v, i ? ", " : "");
		type(v);
	}
	say(v, ")");
	if (!eat(v, 'u')) { /* () is not said */
		say(v, " -> ");
		type(v);
	}
	v->bound -= bound;
}

/* A trait in a `dyn`: its generic arguments and its associated types share one pair of brackets. */
static void dyn_trait(struct v0 *v)
{
	bool open = false;
	if (eat(v, 'I')) {
		path(v, false);
		say(v, "<");
		generic_args(v);
		open = true;
	} else {
		path(v, false);
	}
	while (!v->failed && eat(v, 'p')) {
		say(v, open ? ", " : "<");
		open = true;
		say_ident(v, undisambiguated(v));
		say(v, " = ");
		type(v);
	}
	if (open)
		say(v, ">");
}

static void dyn_type(struct v0 *v)
{
	say(v, "dyn ");
	unsigned long bound = open_binder(v);
	for (unsigned i = 0; !v->failed && !eat(v, 'E'); i++) {
		say(v, i ? " + " : "");
		dyn_trait(v);
	}
	v->bound -= bound;
	if (!eat(v, 'L')) {
		fail(v);
		return;
	}
	unsigned long l = base62(v);
	if (l) {
		say(v, " + ");
		lifetime(v, l);
	}
}

static void reference(struct v0 *v, const char *suffix)
{
	say(v, "&");
	if (eat(v, 'L')) {
		unsigned long l = base62(v);
		if (l) {
			lifetime(v, l);
			say(v, " ");
		}
	}
	say(v, suffix);
	type(v);
}

static void tuple(struct v0 *v)
{
	unsigned n = 0;
	say(v, "(");
	for (; !v->failed && !eat(v, 'E'); n++) {
		say(v, n ? ", " : "");
		type(v);
	}
	say(v, n == 1 ? ",)" : ")");
}

static void type_body(struct v0 *v)
{
	size_t at = v->at;
	const char *basic = basic_type(peek(v));
	if (basic) {
		v->at++;
		say(v, basic);
		return;
	}
	switch (next(v)) {
	case 'A':
		say(v, "[");
		type(v);
		say(v, "; ");
		constant(v);
		say(v, "]");
		return;
	case 'S':
		say(v, "[");
		type(v);
		say(v, "]");
		return;
	case 'T':
		tuple(v);
		return;
	case 'R':
		reference(v, "");
		return;
	case 'Q':
		reference(v, "mut ");
		return;
	case 'P':
		say(v, "*const ");
		type(v);
		return;
	case 'O':
		say(v, "*mut ");
		type(v);
		return;
	case 'F':
		fn_type(v);
		return;
	case 'D':
		dyn_type(v);
		return;
	case 'B':
		backref(v, at, type_, false);
		return;
	default:
		v->at = at;
		path(v, false);
	}
}

static void type(struct v0 *v)
{
	if (!enter(v))
		return;
	type_body(v);
	leave(v);
}

/* Integers, bool and char; constants of other types are shown as their digits. */
static void constant_body(struct v0 *v)
{
	size_t at = v->at;
	char tag = next(v), buf[40];
	if (tag == 'B') {
		backref(v, at, constant_, false);
		return;
	}
	if (tag == 'p') {
		say(v, "_");
		return;
	}
	if (!basic_type(tag)) {
		fail(v);
		return;
	}
	if (eat(v, 'n'))
		say(v, "-");
	size_t first = v->at;
	while (isxdigit((unsigned char)peek(v)))
		v->at++;
	size_t n = v->at - first;
	unsigned long value = 0;
	if (!eat(v, '_') || n == 0 || n > 32) {
		fail(v);
		return;
	}
	for (size_t i = 0; i < n && n <= 16; i++) {
		char c = v->s[first + i];
		value = value << 4 | (unsigned long)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	if (tag == 'b' && value < 2)
		snprintf(buf, sizeof(buf), "%s", value ? "true" : "false");
	else if (tag == 'c' && value >= 0x20 && value < 0x7f)
		snprintf(buf, sizeof(buf), "'%c'", (char)value);
	else if (n <= 16)
		snprintf(buf, sizeof(buf), "%lu", value);
	else
		snprintf(buf, sizeof(buf), "0x%.*s", (int)n, v->s + first);
	say(v, buf);
}

static void constant(struct v0 *v)
{
	if (!enter(v))
		return;
	constant_body(v);
	leave(v);
}

bool d9_demangle_rust_v0(const char *raw, char *ret, size_t max)
{
	struct out o = {.s = ret, .max = max};
	if (strncmp(raw, "_R", 2) || !isupper((unsigned char)raw[2]))
		return false;
	/* A compiler's suffix begins with a point, which no v0 name holds. */
	struct v0 v = {.s = raw + 2, .end = strcspn(raw + 2, ".$"), .o = &o};
	path(&v, true);
	if (!v.failed && v.at < v.end) { /* the crate that instantiated it */
		v.silent = true;
		path(&v, false);
	}
	return !v.failed && !o.full && o.n && v.at == v.end;
}
