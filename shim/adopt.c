/* See adopt.h. Raw system calls only: it also runs in the host's drain thread. */
#include "adopt.h"
#include "atomic.h"
#include "files.h"
#include "lease.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool same_boot(const struct d9_arena_header *h)
{
	d9_u8 id[16];
	if (!d9_boot_id(id))
		return true; /* cannot be told; the arena's file would not have outlived a boot on a tmpfs */
	return !memcmp(id, h->boot_id, sizeof(id));
}

bool d9_adopt_same_pids(const struct d9_arena_header *h) { return h->pid_ns && h->pid_ns == d9_pid_ns(); }

static bool back_populate(const void *p, d9_u64 n)
{
	d9_u64 a = (d9_u64)p & ~4095ull, end = ((d9_u64)p + n + 4095) & ~4095ull;
	return !d9_sys3(SYS_madvise, (long)a, (long)(end - a), D9_MADV_POPULATE_WRITE);
}

static int open_file(int dirfd, struct d9_adopted *a)
{
	long n = d9_sys4(SYS_readlinkat, dirfd, (long)"arena", (long)a->path, sizeof(a->path) - 1);
	if (n < 0)
		return n == -EINVAL ? -EBADMSG : (int)n;
	a->path[n] = 0;
	if (!d9_is_arena_path(a->path))
		return -EBADMSG;
	long fd = d9_sys3(SYS_open, (long)a->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd == -EACCES ? -EPERM : (int)fd;
	struct stat st, folder;
	d9_u32 uid = (d9_u32)d9_sys0(SYS_geteuid);
	int r = (int)d9_sys2(SYS_fstat, fd, (long)&st);
	if (!r)
		r = (int)d9_sys2(SYS_fstat, dirfd, (long)&folder);
	if (!r && (!S_ISREG(st.st_mode) || st.st_size < (long)D9_HEADER_BYTES))
		r = -EBADMSG;
	/* Root may take anybody's, but not into the folder of a third, who could have made any link there. */
	if (!r && ((st.st_uid != uid && uid) || st.st_uid != folder.st_uid))
		r = -EPERM;
	if (r) {
		(void)d9_sys1(SYS_close, fd);
		return r;
	}
	a->fd = (int)fd;
	a->bytes = (d9_u64)st.st_size;
	return 0;
}

static int map(struct d9_adopted *a, d9_u32 kind, const char *run, int dirfd)
{
	long m = d9_sys6(SYS_mmap, 0, (long)a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a->fd, 0);
	if (m < 0 && m > -4096)
		return (int)m;
	a->h = (void *)m;
	if (!d9_drain_check(a->h, a->bytes))
		return -EBADMSG;
	if (!same_boot(a->h))
		return -ESTALE;
	if (run && strncmp(run, a->h->run, sizeof(a->h->run)))
		return -EXDEV;
	if (!d9_lease_take(a->fd, &a->h->lease, kind))
		return -EAGAIN;
	m = d9_sys6(SYS_mmap, 0, (long)d9_drain_bytes(), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m < 0 && m > -4096)
		return (int)m;
	a->mem = (void *)m;
	struct d9_drain_options o = {.kind = kind,
				     .dirfd = dirfd,
				     .lease_fd = a->fd,
				     .same_pids = d9_adopt_same_pids(a->h),
				     .back = back_populate,
				     .path = a->path};
	a->d = d9_drain_init(a->mem, a->h, a->h->n_chunks, &o);
	a->dirfd = dirfd;
	return 0;
}

int d9_adopt_open(int dirfd, d9_u32 kind, const char *run, struct d9_adopted *ret)
{
	*ret = (struct d9_adopted){.fd = -1, .dirfd = -1};
	int r = open_file(dirfd, ret);
	if (!r)
		r = map(ret, kind, run, dirfd);
	if (r)
		d9_adopt_close(ret);
	return r;
}

void d9_adopt_remove(struct d9_adopted *a)
{
	(void)d9_sys1(SYS_unlink, (long)a->path);
	(void)d9_sys3(SYS_unlinkat, a->dirfd, (long)"arena", 0);
}

void d9_adopt_close(struct d9_adopted *a)
{
	if (a->d) {
		d9_lease_release(&a->h->lease);
		d9_drain_close(a->d); /* closes dirfd */
	}
	if (a->mem)
		(void)d9_sys2(SYS_munmap, (long)a->mem, (long)d9_drain_bytes());
	if (a->h)
		(void)d9_sys2(SYS_munmap, (long)a->h, (long)a->bytes);
	if (a->fd >= 0)
		(void)d9_sys1(SYS_close, a->fd);
	*a = (struct d9_adopted){.fd = -1, .dirfd = -1};
}

int d9_adopt_dead(int dirfd, d9_u32 kind)
{
	struct d9_adopted a;
	int r = d9_adopt_open(dirfd, kind, NULL, &a);
	if (r) {
		(void)d9_sys1(SYS_close, dirfd);
		return r;
	}
	if (!d9_adopt_same_pids(a.h) || d9_drain_alive(a.d))
		r = -EBUSY;
	else if ((r = d9_drain_pass(a.d, D9_PASS_FINAL)) >= 0)
		d9_adopt_remove(&a);
	d9_adopt_close(&a);
	return r;
}

void d9_adopt_scan(const char *dir, unsigned max)
{
	struct d9_dir d;
	if (!d9_dir_open(&d, AT_FDCWD, dir))
		return;
	unsigned adopted = 0;
	for (const char *e; adopted < max && (e = d9_dir_next(&d));) {
		char name[300], target[8];
		struct d9_text t = d9_text_in(name, sizeof(name));
		d9_text_str(&t, e);
		d9_text_str(&t, "/arena");
		if (d9_sys4(SYS_readlinkat, d.fd, (long)name, (long)target, sizeof(target)) < 0)
			continue;
		long folder = d9_sys4(SYS_openat, d.fd, (long)e, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
		if (folder >= 0)
			adopted += d9_adopt_dead((int)folder, D9_LEASE_RECOVER) >= 0;
	}
	d9_dir_close(&d);
}
