/*
 * d9 schema: the tables that scripts, documents and other readers may rely on, as this d9 was built with
 * them.  One section per table; --md prints the committed documents.
 */
#include "cmd.h"
#include "format/arena.h"
#include "format/events.h"
#include "hooks_table.h"
#include "json.h"
#include "schema.h"

#include <stdio.h>
#include <string.h>

/* ---- events ------------------------------------------------------------------------------------------------------ */

static unsigned n_columns(const struct d9_event_desc *e) { return (unsigned)e->n_fields + e->has_tail; }

static void events_json(struct d9_json *j)
{
	d9_json_array(j, "events");
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		const struct d9_event_desc *e = &d9_events[id];
		if (!e->name)
			continue;
		d9_json_object(j, NULL);
		d9_json_u64(j, "id", id);
		d9_json_str(j, "name", e->name);
		d9_json_str(j, "kind", e->kind_name);
		d9_json_u64(j, "since", e->since);
		d9_json_str(j, "doc", e->doc);
		d9_json_array(j, "fields");
		for (unsigned i = 0; i < n_columns(e); i++) {
			const struct d9_field_desc *f = &e->fields[i];
			d9_json_object(j, NULL);
			d9_json_str(j, "name", f->name);
			d9_json_str(j, "type", f->type);
			d9_json_str(j, "unit", f->unit_name);
			d9_json_u64(j, "since", f->since);
			d9_json_str(j, "doc", f->doc);
			d9_json_end_object(j);
		}
		d9_json_end_array(j);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

static void events_md(void)
{
	puts("# Events\n\nEvery event begins with `site` (where, an ID, 0 = none) and `t` (TIME: the end of a SPAN, "
	     "the moment of a POINT).");
	for (unsigned id = 0; id <= D9_EVENT_ID_MAX; id++) {
		const struct d9_event_desc *e = &d9_events[id];
		if (!e->name)
			continue;
		printf("\n## %s (%u, %s)\n\n%s\n", e->name, id, e->kind_name, e->doc);
		if (n_columns(e))
			puts("\n| field | type | unit | meaning |\n|---|---|---|---|");
		for (unsigned i = 0; i < n_columns(e); i++) {
			const struct d9_field_desc *f = &e->fields[i];
			printf("| %s | %s | %s | %s |\n", f->name, f->type, f->unit_name, f->doc);
		}
	}
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static const char *wait_kind(unsigned flags)
{
	return flags & D9_HOOK_PARKS ? "park" : flags & D9_HOOK_LOCK ? "lock" : flags & D9_HOOK_SLEEP ? "sleep" : NULL;
}

static void hooks_json(struct d9_json *j)
{
	size_t n;
	const struct d9_hook_row *rows = d9_hook_rows(&n);
	d9_json_array(j, "hooks");
	for (size_t i = 0; i < n; i++) {
		d9_json_object(j, NULL);
		d9_json_str(j, "family", rows[i].family);
		d9_json_str(j, "name", rows[i].name);
		d9_json_str(j, "wait", wait_kind(rows[i].flags));
		d9_json_bool(j, "slow_only", rows[i].flags & D9_HOOK_SLOW);
		d9_json_bool(j, "always", rows[i].flags & D9_HOOK_ALWAYS);
		d9_json_bool(j, "primitive", rows[i].primitive);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

static void hooks_md(void)
{
	size_t n;
	const struct d9_hook_row *rows = d9_hook_rows(&n);
	puts("# Hooks\n\n| family | function | waits for | recorded |\n|---|---|---|---|");
	for (size_t i = 0; i < n; i++) {
		unsigned f = rows[i].flags;
		const char *wait = wait_kind(f);
		printf("| %s | `%s` | %s | %s |\n", rows[i].family, rows[i].name,
		       !wait               ? ""
		       : f & D9_HOOK_PARKS ? "events"
		       : f & D9_HOOK_LOCK  ? "an object"
					   : "time",
		       f & D9_HOOK_ALWAYS ? "always"
		       : f & D9_HOOK_SLOW ? "if longer than D9_IO_MIN_US, else counted"
					  : "");
	}
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static const struct section {
	const char *option;
	void (*json)(struct d9_json *);
	void (*md)(void);
} sections[] = {{"--events", events_json, events_md},
		{"--hooks", hooks_json, hooks_md},
		{"--options", d9_schema_options_json, d9_schema_options_md},
		{"--findings", d9_schema_findings_json, d9_schema_findings_md}};
#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

int d9_cmd_schema(const struct d9_cmd *self, int argc, char **argv)
{
	const char *asked[N_SECTIONS] = {0}, *md = NULL;
	struct d9_opt opts[N_SECTIONS + 1] = {[N_SECTIONS] = {"--md", false, &md}};
	struct d9_json j;
	unsigned n = 0;
	bool any = false;
	for (size_t i = 0; i < N_SECTIONS; i++)
		opts[i] = (struct d9_opt){sections[i].option, false, &asked[i]};
	int r = d9_opts_parse(self, argc, argv, opts, N_SECTIONS + 1, NULL, 0, &n);
	if (r)
		return r - 1;
	for (size_t i = 0; i < N_SECTIONS; i++)
		any |= asked[i] != NULL;
	if (!md)
		d9_json_document(&j, stdout, "schema");
	for (size_t i = 0; i < N_SECTIONS; i++) {
		if (any && !asked[i])
			continue;
		if (md)
			sections[i].md();
		else
			sections[i].json(&j);
	}
	if (!md)
		(void)d9_json_end_document(&j); /* main() tells what stdout did not take */
	return D9_EXIT_OK;
}
