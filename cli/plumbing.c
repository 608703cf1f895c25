/* Matches a frame with plumbing.def. */
#include "plumbing.h"

#include <stddef.h>
#include <string.h>

static const char *const modules[] = {
#define D9_PLUMBING_MODULE(prefix, why) prefix,
#define D9_PLUMBING_SYMBOL(prefix, why)
#include "plumbing.def"
#undef D9_PLUMBING_MODULE
#undef D9_PLUMBING_SYMBOL
};
static const char *const symbols[] = {
#define D9_PLUMBING_MODULE(prefix, why)
#define D9_PLUMBING_SYMBOL(prefix, why) prefix,
#include "plumbing.def"
#undef D9_PLUMBING_MODULE
#undef D9_PLUMBING_SYMBOL
};

static bool begins_with_one(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(s, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* "void std::__invoke<int, f(int)>(int)" -> "std::__invoke...": C++ templates are demangled with their return type. */
static const char *past_return_type(const char *s)
{
	const char *start = s;
	int depth = 0;
	for (const char *p = s; *p; p++) {
		if (*p == '(' && depth == 0 && strncmp(p, "(anonymous", 10))
			break;
		if (*p == '<' || *p == '(')
			depth++;
		else if ((*p == '>' && p != s && p[-1] != '-') || *p == ')')
			depth--;
		else if (*p == ' ' && depth == 0 && strncmp(p, " as ", 4))
			start = p + 1;
	}
	return start;
}

/* "<&mut tokio::X as core::Y>::poll" -> "tokio::X ...": an implementation belongs to the type, not to the trait. */
static const char *past_brackets(const char *s)
{
	for (;;) {
		if (*s == '<' || *s == '&' || *s == '(' || *s == '[')
			s++;
		else if (!strncmp(s, "mut ", 4) || !strncmp(s, "dyn ", 4))
			s += 4;
		else
			return s;
	}
}

bool d9_is_plumbing(const char *module, const char *symbol)
{
	if (module && begins_with_one(module, modules, sizeof(modules) / sizeof(modules[0])))
		return true;
	if (!symbol)
		return false;
	const char *name = *symbol == '<' ? past_brackets(symbol) : past_return_type(symbol);
	return begins_with_one(name, symbols, sizeof(symbols) / sizeof(symbols[0]));
}
