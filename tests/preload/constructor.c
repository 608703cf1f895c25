/* A library that the program links, whose constructor makes hooked calls before most others have run. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static int waited;
int constructor_waited(void);
int constructor_waited(void) { return waited; }

__attribute__((constructor)) static void start(void)
{
	char b;
	int fd = open("/dev/null", O_RDONLY);
	waited += poll(0, 0, 1) == 0;
	waited += read(fd, &b, 1) == 0;
	waited += usleep(1) == 0;
	close(fd);
}
