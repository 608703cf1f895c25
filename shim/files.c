/* See files.h. */
#include "files.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

long d9_read_file(const char *path, char *buf, size_t size)
{
	buf[0] = 0;
	long fd = d9_sys3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	long n = d9_sys3(SYS_read, fd, (long)buf, (long)size - 1);
	(void)d9_sys1(SYS_close, fd);
	buf[n > 0 ? n : 0] = 0;
	return n;
}

int d9_write_all(int fd, const void *bytes, size_t n, d9_u64 *written)
{
	for (const char *p = bytes; n;) {
		long r = d9_sys3(SYS_write, fd, (long)p, (long)n);
		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r ? (int)r : -EIO;
		p += r;
		n -= (size_t)r;
		*written += (d9_u64)r;
	}
	return 0;
}

void d9_segment_file(char kind, d9_u32 sequence, char *buf, size_t size)
{
	struct d9_text t = d9_text_in(buf, size);
	d9_text_char(&t, kind);
	d9_text_char(&t, '-');
	for (d9_u32 digit = 100000; digit; digit /= 10)
		d9_text_char(&t, (char)('0' + sequence / digit % 10));
	d9_text_str(&t, ".d9");
}

d9_u64 d9_decimal(const char *p, const char **end)
{
	d9_u64 v = 0;
	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (d9_u64)(*p - '0');
	if (end)
		*end = p;
	return v;
}

bool d9_boot_id(d9_u8 ret[16])
{
	char uuid[40];
	int digits = 0;
	memset(ret, 0, 16);
	if (d9_read_file("/proc/sys/kernel/random/boot_id", uuid, sizeof(uuid)) <= 0)
		return false;
	for (const char *p = uuid; *p && digits < 32; p++) {
		int v = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
		if (v < 0)
			continue;
		ret[digits / 2] |= (d9_u8)(v << (digits & 1 ? 0 : 4));
		digits++;
	}
	return digits == 32;
}

bool d9_pid_stat(int pid, struct d9_pid_stat *ret)
{
	char path[32], buf[512];
	struct d9_text t = d9_text_in(path, sizeof(path));
	d9_text_str(&t, "/proc/");
	d9_text_u64(&t, (d9_u64)pid);
	d9_text_str(&t, "/stat");
	if (d9_read_file(path, buf, sizeof(buf)) <= 0)
		return false;
	const char *p = strrchr(buf, ')'); /* the name may hold anything */
	if (!p || p[1] != ' ')
		return false;
	*ret = (struct d9_pid_stat){.state = p[2]};
	p += 2;
	for (int field = 3; field <= 22; field++) {
		d9_u64 *number = field == 4    ? &ret->parent
				 : field == 20 ? &ret->threads
				 : field == 22 ? &ret->start
					       : NULL;
		if (number)
			*number = d9_decimal(p, NULL);
		p += strcspn(p, " ");
		p += *p == ' ';
	}
	return true;
}

d9_u64 d9_pid_ns(void)
{
	struct stat st;
	return d9_sys2(SYS_stat, (long)"/proc/self/ns/pid", (long)&st) ? 0 : st.st_ino;
}

bool d9_filtered(void) { return d9_sys6(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != 0; }

/* Layout of getdents64's records (man 2 getdents64). */
struct entry {
	d9_u64 ino, off;
	d9_u16 len;
	d9_u8 type;
	char name[];
};

bool d9_dir_open(struct d9_dir *d, int dirfd, const char *path)
{
	d->at = d->have = 0;
	d->fd = (int)d9_sys4(SYS_openat, dirfd, (long)path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return d->fd >= 0;
}

const char *d9_dir_next(struct d9_dir *d)
{
	for (;;) {
		if (d->at >= d->have) {
			d->have = (int)d9_sys3(SYS_getdents64, d->fd, (long)d->buf, sizeof(d->buf));
			d->at = 0;
			if (d->have <= 0)
				return NULL;
		}
		const struct entry *e = (const void *)(d->buf + d->at);
		d->at += e->len;
		if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
			return e->name;
	}
}

void d9_dir_close(struct d9_dir *d) { (void)d9_sys1(SYS_close, d->fd); }
