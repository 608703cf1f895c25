/*
 * Makes what lies in tests/golden, by hand and seldom: once per version of the format that is released.
 *
 *   golden write FILE   a segment with every event, always the same one
 *   golden dump FILE    a segment as text
 *   golden schema       the table of events, one line per event and field
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static int write_segment(const char *path)
{
	struct stream s = {.shift = 4};
	struct buffer b = {0};
	chance_set(20250101);
	stream_write(&s, &b, 260, VALUES_TAME);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(b.p, 1, b.n, f) != b.n || fclose(f))
		return 1;
	buffer_free(&b);
	stream_free(&s);
	return 0;
}

static int print_schema(void)
{
	for (unsigned id = 1; id <= D9_EVENT_ID_MAX; id++)
		if (d9_events[id].name)
			print_event(stdout, id);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "write"))
		return write_segment(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "dump")) {
		struct buffer b = {0};
		buffer_load(&b, argv[2]);
		return dump_segment(stdout, b.p, b.n) != 0;
	}
	if (argc == 2 && !strcmp(argv[1], "schema"))
		return print_schema();
	fprintf(stderr, "usage: golden write FILE | dump FILE | schema\n");
	return 2;
}
