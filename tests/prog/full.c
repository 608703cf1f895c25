/*
 * full: waits; then somebody fills the memory that the recorder needs more of, and the waits go on, in old threads and in new
 * ones.  The program must live, and every call be kept or counted.
 */
#include "prog.h"

#include <sys/stat.h>

#define CALLS 40000

static void *calls(void *arg)
{
	char c;
	(void)arg;
	for (int i = 0; i < CALLS; i++)
		(void)read(-1, &c, 1);
	printf("ISSUED tid=%d hook=read n=%d\n", my_tid(), CALLS);
	return NULL;
}

static void fill(const char *path)
{
	static char block[1 << 16];
	int fd = (int)raw(SYS_open, path, O_WRONLY | O_CREAT, 0600);
	MUST(fd >= 0);
	memset(block, 1, sizeof(block));
	size_t size = sizeof(block);
	while (size >= 512) /* to the last page */
		if (raw(SYS_write, fd, block, size) <= 0)
			size /= 2;
	printf("FILLED\n");
}

int main(int argc, char **argv)
{
	pthread_t t[4];
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&t[i], NULL, calls, NULL));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (argc > 1)
		fill(argv[1]);
	for (int i = 2; i < 4; i++)
		MUST(!pthread_create(&t[i], NULL, calls, NULL));
	calls(NULL);
	for (int i = 2; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("ALIVE\n");
	return 0;
}
