/* fsync and fdatasync. */
#include "prog.h"

int main(void)
{
	int fd = (int)raw(SYS_memfd_create, "x", 0), p[2], r;
	MUST(fd >= 0 && !pipe(p));
	for (int i = 0; i < 5; i++) {
		r = fsync(fd);
		fast("fsync", RESULT(r), "fd=%d", fd);
		r = fdatasync(fd);
		fast("fdatasync", RESULT(r), "fd=%d", fd);
	}
	r = fsync(p[0]);
	fast("fsync", RESULT(r), "fd=%d", p[0]); /* -EINVAL */
	r = fdatasync(-1);
	fast("fdatasync", RESULT(r), "%s", "fd=-1");
	return 0;
}
