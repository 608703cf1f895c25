/* The names under which programs open files; a fifo opens when its other end does. */
#include "prog.h"

#include <sys/stat.h>

static char fifo[64], file[64], none[64];

static void act_open_writer(void *arg)
{
	(void)arg;
	long fd = raw(SYS_open, fifo, O_WRONLY, 0);
	MUST(fd >= 0);
	raw(SYS_close, fd);
}
static void act_open_reader(void *arg)
{
	(void)arg;
	long fd = raw(SYS_open, fifo, O_RDONLY, 0);
	MUST(fd >= 0);
	raw(SYS_close, fd);
}

#define SLOW(hook, call, act)                            \
	do {                                             \
		when_asleep(act, NULL);                  \
		int fd = call;                           \
		woken();                                 \
		expect(hook, RESULT(fd), "%s", "fd=-1"); \
		MUST(fd >= 0);                           \
		close(fd);                               \
	} while (0)
#define FAST(hook, call, ok)                           \
	do {                                           \
		int fd = call;                         \
		fast(hook, RESULT(fd), "%s", "fd=-1"); \
		MUST((fd >= 0) == (ok));               \
		if (fd >= 0)                           \
			close(fd);                     \
	} while (0)

int main(void)
{
	struct stat st;
	snprintf(fifo, sizeof(fifo), "fifo-%d", (int)getpid());
	snprintf(file, sizeof(file), "file-%d", (int)getpid());
	snprintf(none, sizeof(none), "none-%d/x", (int)getpid());
	MUST(!mkfifo(fifo, 0600));
	umask(0);
	partner_start();
	SLOW("open", open(fifo, O_RDONLY), act_open_writer);
	SLOW("open64", open64(fifo, O_RDONLY), act_open_writer);
	SLOW("openat", openat(AT_FDCWD, fifo, O_RDONLY), act_open_writer);
	SLOW("openat64", openat64(AT_FDCWD, fifo, O_RDONLY), act_open_writer);
	SLOW("creat", creat(fifo, 0600), act_open_reader);
	SLOW("creat64", creat64(fifo, 0600), act_open_reader);
	FAST("open", open(file, O_RDWR | O_CREAT | O_EXCL, 0640), 1);
	MUST(!stat(file, &st) && (st.st_mode & 0777) == 0640); /* the third argument arrived */
	FAST("open", open(file, O_RDONLY), 1);
	FAST("open64", open64(file, O_RDONLY), 1);
	FAST("openat", openat(AT_FDCWD, file, O_RDONLY), 1);
	FAST("openat64", openat64(AT_FDCWD, file, O_RDONLY), 1);
	FAST("creat", creat(file, 0600), 1);
	FAST("creat64", creat64(file, 0600), 1);
	MUST(!unlink(file));
	FAST("openat", openat(AT_FDCWD, file, O_RDWR | O_CREAT, 0604), 1);
	MUST(!stat(file, &st) && (st.st_mode & 0777) == 0604 && !unlink(file));
	FAST("open64", open64(file, O_RDWR | O_CREAT, 0603), 1);
	MUST(!stat(file, &st) && (st.st_mode & 0777) == 0603 && !unlink(file));
	FAST("openat64", openat64(AT_FDCWD, file, O_RDWR | O_CREAT, 0601), 1);
	MUST(!stat(file, &st) && (st.st_mode & 0777) == 0601 && !unlink(file));
	FAST("open", open(none, O_RDONLY), 0);
	FAST("open64", open64(none, O_RDONLY), 0);
	FAST("openat", openat(-1, none, O_RDONLY), 0);
	FAST("openat64", openat64(-1, none, O_RDONLY), 0);
	FAST("creat", creat(none, 0600), 0);
	FAST("creat64", creat64(none, 0600), 0);
	MUST(!unlink(fifo));
	partner_end();
	return 0;
}
