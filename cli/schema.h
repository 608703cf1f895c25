/* Sections of `d9 schema` whose tables belong to other folders, and `d9 help env`. */
#ifndef D9_CLI_SCHEMA_H
#define D9_CLI_SCHEMA_H
#include "json.h"

void d9_schema_options_json(struct d9_json *j);
void d9_schema_options_md(void);
void d9_schema_findings_json(struct d9_json *j);
void d9_schema_findings_md(void);
int d9_help_env(void); /* returns enum d9_exit */

#endif
