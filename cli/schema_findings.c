/* findings.def as `d9 schema` prints it: ids, what they say, and the keys of what was measured. */
#include "schema.h"

#include <string.h>

static const struct {
	const char *id, *says, *measured;
} rows[] = {
#define D9_FINDING(id, function, says, measured) {id, says, measured},
#include "findings.def"
#undef D9_FINDING
	{NULL, NULL, NULL}};

void d9_schema_findings_json(struct d9_json *j)
{
	d9_json_array(j, "findings");
	for (size_t i = 0; rows[i].id; i++) {
		d9_json_object(j, NULL);
		d9_json_str(j, "id", rows[i].id);
		d9_json_str(j, "says", rows[i].says);
		d9_json_array(j, "measured");
		for (const char *p = rows[i].measured; *p;) {
			size_t n = strcspn(p, " ");
			if (n)
				d9_json_strn(j, NULL, p, n);
			p += n + (p[n] == ' ');
		}
		d9_json_end_array(j);
		d9_json_end_object(j);
	}
	d9_json_end_array(j);
}

void d9_schema_findings_md(void)
{
	puts("# Findings\n\n| id | says | measured keys |\n|---|---|---|");
	for (size_t i = 0; rows[i].id; i++)
		printf("| `%s` | %s | %s |\n", rows[i].id, rows[i].says, rows[i].measured);
}
