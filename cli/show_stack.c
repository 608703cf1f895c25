/* Stacks as JSON and as a headline. */
#include "clean.h"
#include "show.h"

void d9_show_resolve(struct d9_trace *t, d9_u32 proc, const struct d9_bytes *stack, d9_u64 ra, struct d9_stack *ret)
{
	struct d9_maps maps = d9_trace_maps(t, proc);
	ret->proc = proc;
	ret->n = 0;
	if (stack && stack->n)
		ret->n = (d9_u32)d9_symbols_stack(t->symbols, &maps, stack->kind, stack->p, stack->n, ret->frames,
						  D9_SHOW_FRAMES);
	if (!ret->n && ra) {
		d9_symbols_name(t->symbols, &maps, ra, true, &ret->frames[0]);
		ret->n = 1;
	}
}

void d9_show_whose_json(struct d9_json *j, const struct d9_bytes *stack, d9_u64 ra, bool own)
{
	bool there = stack && stack->n;
	d9_json_str(j, "stack_of", own || (!there && ra) ? "call" : there ? "place" : NULL);
}

const struct d9_bytes *d9_show_span_stack(const struct d9_trace *t, const struct d9_span *s)
{
	return s->stack ? &t->tails.v[s->stack] : &t->sites.v[s->site].stack;
}

static void frame_json(struct d9_json *j, const struct d9_frame *f)
{
	d9_json_object(j, NULL);
	d9_json_str(j, "module", f->module);
	d9_json_addr(j, "offset", f->offset);
	d9_json_str(j, "symbol", f->symbol);
	d9_json_str(j, "file", f->file);
	if (f->line > 0)
		d9_json_i64(j, "line", f->line);
	else
		d9_json_null(j, "line");
	d9_json_end_object(j);
}

void d9_show_frames_json(struct d9_json *j, const char *key, const struct d9_stack *s)
{
	d9_json_array(j, key);
	for (d9_u32 i = 0; i < s->n; i++)
		frame_json(j, &s->frames[i]);
	d9_json_end_array(j);
}

void d9_show_stack_json(struct d9_json *j, const char *key, struct d9_trace *t, d9_u32 proc,
			const struct d9_bytes *stack)
{
	struct d9_stack *s = d9_must_alloc(1, sizeof(*s));
	d9_show_resolve(t, proc, stack, 0, s);
	d9_show_frames_json(j, key, s);
	free(s);
}

/* Template arguments and parameters make a name long and say little: what is inside <> and () goes. */
static void short_name(const char *symbol, char *buf, size_t n)
{
	size_t k = 0;
	int depth = 0;
	for (const char *p = symbol; *p && k + 1 < n; p++) {
		bool arrow = p > symbol && p[-1] == '-' && *p == '>';
		if (*p == '(' && !depth && p != symbol && p[1] != 'a') /* keeps "(anonymous namespace)" */
			break;
		if (*p == '<' && p != symbol && !arrow)
			depth++;
		if (!depth)
			buf[k++] = *p;
		if (*p == '>' && depth && !arrow)
			depth--;
	}
	buf[k] = '\0';
}

const char *d9_show_frame(const struct d9_frame *f, char *buf, size_t n)
{
	if (!f->symbol) {
		snprintf(buf, n, "%s+0x%llx", f->module ? f->module : "?", (unsigned long long)f->offset);
		return d9_clean(buf, strlen(buf));
	}
	char name[160];
	short_name(f->symbol, name, sizeof(name));
	const char *base = f->file ? strrchr(f->file, '/') : NULL;
	base = base ? base + 1 : f->file;
	if (base && f->line > 0)
		snprintf(buf, n, "%s (%s:%d)", name, base, f->line);
	else
		snprintf(buf, n, "%s", name);
	return d9_clean(buf, strlen(buf)); /* a symbol is whatever the file says */
}

static size_t add_frame(const struct d9_frame *f, char *buf, size_t used, size_t n)
{
	char one[256];
	d9_show_frame(f, one, sizeof(one));
	int len = snprintf(buf + used, n - used, "%s%s", used ? " < " : "", one);
	return len > 0 && used + (size_t)len < n ? used + (size_t)len : n - 1;
}

const char *d9_show_headline(const struct d9_stack *s, unsigned max, char *buf, size_t n)
{
	size_t used = 0;
	unsigned shown = 0;
	buf[0] = '\0';
	for (d9_u32 i = 0; i < s->n && shown < max && used + 1 < n; i++)
		if (!s->frames[i].plumbing && (s->frames[i].module || s->frames[i].symbol)) {
			used = add_frame(&s->frames[i], buf, used, n);
			shown++;
		}
	if (!shown && s->n)
		add_frame(&s->frames[0], buf, 0, n);
	return buf;
}
