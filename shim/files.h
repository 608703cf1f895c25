/*
 * Small files and folders without libc: no allocation, no errno, no cancellation point.  Runs inside
 * the host, in its drain thread and in d9.
 */
#ifndef D9_SHIM_FILES_H
#define D9_SHIM_FILES_H
#include "format/types.h"

#include <stdbool.h>
#include <stddef.h>

/* The first size - 1 bytes of a file, NUL-ended.  Bytes read, or -errno; buf is "" then. */
long d9_read_file(const char *path, char *buf, size_t size);

/* Writes all of it; *written grows by what is there then.  0 or -errno. */
int d9_write_all(int fd, const void *bytes, size_t n, d9_u64 *written);

/* The name of a segment: s-000001.d9 for kind 's'. */
void d9_segment_file(char kind, d9_u32 sequence, char *buf, size_t size);

/* The leading decimal number of a text; 0 if there is none.  *end: behind it; may be NULL. */
d9_u64 d9_decimal(const char *p, const char **end);

/* This boot's id, as 16 bytes.  False: the kernel does not say. */
bool d9_boot_id(d9_u8 ret[16]);

struct d9_pid_stat {
	char state;
	d9_u64 parent, threads, start;
};
/* State, parent, threads and start time (fields 3, 4, 20, 22) of /proc/PID/stat.  False: no such process, or it cannot be seen. */
bool d9_pid_stat(int pid, struct d9_pid_stat *ret);

/* The PID namespace of the calling process, as the inode that stands for it; 0: not known. */
d9_u64 d9_pid_ns(void);

/*
 * Does a filter of system calls stand over the calling thread?  One that was there before this program's exec may kill for what the
 * program itself has no use for, so what few programs do is not done then: all that is left is what libc's own threads and files need,
 * and close_range, which container runtimes allow.
 */
bool d9_filtered(void);

/* The names in a folder, one after the other. */
struct d9_dir {
	int fd;
	int at, have;
	_Alignas(16) char buf[2048];
};
/* dirfd and path as openat takes them.  False: cannot be opened; then nothing is to be closed. */
bool d9_dir_open(struct d9_dir *d, int dirfd, const char *path);
/* The next name, "." and ".." left out, valid until the next call; NULL at the end. */
const char *d9_dir_next(struct d9_dir *d);
void d9_dir_close(struct d9_dir *d);

#endif
