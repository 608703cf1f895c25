/*
 * daemon FILE KIND: the parent leaves at once; the child records its first call only when the parent is gone, then says in FILE
 * who it is and what it called.
 */
#include "prog.h"

#include <poll.h>

int main(int argc, char **argv)
{
	MUST(argc > 2);
	int fd = (int)raw(SYS_open, argv[1], O_WRONLY | O_CREAT, 0600), p[2], n = 0;
	char c, line[80];
	MUST(fd >= 0 && !pipe(p));
	poll(NULL, 0, 1);
	if (!strcmp(argv[2], "daemon"))
		MUST(!daemon(1, 1));
	else if (!strcmp(argv[2], "fork")) {
		if (fork())
			_exit(0);
	} else if (!strcmp(argv[2], "raw")) {
		if (raw(SYS_fork))
			exit(0);
	} else if (!strcmp(argv[2], "twice")) {
		if (fork())
			_exit(0);
		if (fork())
			_exit(0);
	}
	raw(SYS_close, p[1]); /* the read end says so when all ancestors are gone */
	(void)raw(SYS_read, p[0], &c, 1);
	for (; n < 500; n++)
		poll(NULL, 0, 0);
	int len =
		snprintf(line, sizeof(line), "COUNT pid=%d tid=%d hook=poll n=%d\n", (int)raw(SYS_getpid), my_tid(), n);
	MUST(raw(SYS_write, fd, line, len) == len);
	return 0;
}
