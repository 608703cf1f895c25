/* replay FOLDER: gives each file of the folder to the fuzzer that this is linked with, and every beginning of
   a small one.  So what a fuzzer once found stays found, with any compiler. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 1024

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END))
		return -1;
	size_t n = (size_t)ftell(f);
	rewind(f);
	for (size_t part = n < SMALL ? 0 : n; part <= n; part++) {
		/* Memory of just this size: a step beyond it is seen. */
		uint8_t *p = malloc(part + !part);
		if (!p || fseek(f, 0, SEEK_SET) || fread(p, 1, part, f) != part)
			return -1;
		LLVMFuzzerTestOneInput(p, part);
		free(p);
	}
	return fclose(f);
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : 0;
	if (!dir) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 99;
	}
	unsigned n = 0;
	for (struct dirent *e; (e = readdir(dir));) {
		char path[1024];
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		if (replay_file(path)) {
			fprintf(stderr, "%s cannot be read\n", path);
			return 99;
		}
		n++;
	}
	closedir(dir);
	printf("%u files\n", n);
	return n ? 0 : 99;
}
