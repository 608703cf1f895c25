/* See syscall_name.h. */
#include "syscall_name.h"
#include "format/events.h"

#include <stdio.h>
#include <sys/syscall.h>

static const char *const names[] = {
#define D9_SYSCALL(nr, name) [nr] = name,
#include <cli/syscalls.def> /* made by scripts/gen_syscalls */
#undef D9_SYSCALL
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

const char *d9_syscall_name(d9_i32 nr, char *buf)
{
	if (nr >= 0 && (size_t)nr < N_NAMES && names[nr])
		return names[nr];
	if (nr < 0)
		return nr == D9_NR_NONE ? "no call" : "unknown call";
	snprintf(buf, 32, "syscall %d", nr);
	return buf;
}

bool d9_syscall_has_fd(d9_i32 nr)
{
	static const d9_i32 of_fds[] = {
		SYS_read,       SYS_write,   SYS_pread64, SYS_pwrite64,  SYS_readv,           SYS_writev,
		SYS_preadv,     SYS_pwritev, SYS_fsync,   SYS_fdatasync, SYS_sync_file_range, SYS_fallocate,
		SYS_ftruncate,  SYS_flock,   SYS_close,   SYS_accept,    SYS_accept4,         SYS_connect,
		SYS_recvfrom,   SYS_sendto,  SYS_recvmsg, SYS_sendmsg,   SYS_epoll_wait,      SYS_epoll_pwait,
		SYS_getdents64, SYS_syncfs};
	for (size_t i = 0; i < sizeof(of_fds) / sizeof(of_fds[0]); i++)
		if (of_fds[i] == nr)
			return true;
	return false;
}
