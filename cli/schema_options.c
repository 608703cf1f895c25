/* shim/options.def as `d9 schema` and `d9 help env` print it. */
#include "cmd.h"
#include "schema.h"
#include "shim/config.h"

#include <stdio.h>

/* ---- options ------------------------------------------------------------------------------------------------------ */

void d9_schema_options_json(struct d9_json *j)
{
	d9_json_array(j, "options");
	for (unsigned i = 0; i < d9_n_options; i++) {
		const struct d9_option *o = &d9_options[i];
		d9_json_object(j, NULL);
		d9_json_str(j, "name", o->name);
		d9_json_str(j, "type", o->built ? o->type : NULL);
		d9_json_str(j, "default", o->built ? o->default_text : NULL);
		d9_json_str(j, "range", o->built && *o->range ? o->range : NULL);
		d9_json_bool(j, "built", o->built);
		d9_json_str(j, "doc", o->doc);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

void d9_schema_options_md(void)
{
	puts("# Options\n\n| variable | default | values | meaning |\n|---|---|---|---|");
	for (unsigned i = 0; i < d9_n_options; i++) {
		const struct d9_option *o = &d9_options[i];
		if (!o->built)
			continue;
		printf("| `%s` | %s | ", o->name, o->default_text);
		for (const char *p = o->range; *p; p++)
			printf(*p == '|' ? "\\%c" : "%c", *p);
		printf(" | %s |\n", o->doc);
	}
}

int d9_help_env(void)
{
	puts("Environment of a recorded program; `d9 run --OPT=V` sets D9_OPT.\n");
	for (unsigned i = 0; i < d9_n_options; i++) {
		const struct d9_option *o = &d9_options[i];
		if (!o->built)
			continue;
		printf("  %s (%s%s%s)\n      %s\n", o->name, o->default_text, *o->range ? "; " : "", o->range, o->doc);
	}
	puts("\nFamilies of hooks (D9_HOOKS):");
#define D9_FAMILY(name, doc) printf("  %-9s %s\n", #name, doc);
#include "format/families.def"
#undef D9_FAMILY
	puts("\nNot built in this version:");
	for (unsigned i = 0; i < d9_n_options; i++)
		if (!d9_options[i].built)
			printf("  %s (%s)\n", d9_options[i].name, d9_options[i].doc);
	return D9_EXIT_OK;
}
