/* Processes and threads: fork, exec, _exit, creation and names of threads, changes of identity. */
#include "hook.h"
#include "interpose/runtime/tokio_patch.h"

#include <alloca.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>

/* ---- sleeps ----------------------------------------------------------------------------------------- */

D9_WRAP_AT(D9_PAUSE_POINT, int, nanosleep, (const struct timespec *t, struct timespec *left), (t, left),
	   D9_RESULT(d9_r))
D9_WRAP_AT(D9_PAUSE_POINT, int, clock_nanosleep,
	   (clockid_t id, int flags, const struct timespec *t, struct timespec *left), (id, flags, t, left),
	   D9_RETURNED(d9_r))
D9_WRAP_AT(D9_PAUSE_POINT, int, usleep, (useconds_t us), (us), D9_RESULT(d9_r))
D9_WRAP_AT(D9_PAUSE_POINT, unsigned, sleep, (unsigned s), (s), (d9_i32)d9_r)

D9_WRAP_AT(D9_PAUSE_POINT, int, thrd_sleep, (const struct timespec *t, struct timespec *left), (t, left),
	   d9_r == -1 ? -EINTR
	   : d9_r < 0 ? -EINVAL
		      : 0)

/* ---- threads ---------------------------------------------------------------------------------------- */

static void before_thread(void)
{
	d9_tokio_look_again(); /* the workers of a runtime that came with a plugin */
	d9_store_relaxed(&d9_shim.threaded, true);
}

D9_EXPORT int pthread_create(pthread_t *restrict t, const pthread_attr_t *restrict a, void *(*f)(void *),
			     void *restrict arg)
{
	before_thread();
	D9_BEGIN(pthread_create, 0, -1);
	int r = d9_real.pthread_create(t, a, f, arg);
	D9_END(pthread_create, D9_RETURNED(r), 0);
	return r;
}

D9_EXPORT int thrd_create(thrd_t *t, thrd_start_t f, void *arg)
{
	before_thread();
	D9_BEGIN(thrd_create, 0, -1);
	int r = d9_real.thrd_create(t, f, arg);
	D9_END(thrd_create, d9_thrd_result(r), 0);
	return r;
}

D9_EXPORT int pthread_setname_np(pthread_t t, const char *name)
{
	int r = d9_real.pthread_setname_np(t, name);
	if (!r && t == d9_thread_self())
		d9_shim_renamed();
	return r;
}

/* ---- fork and exec ------------------------------------------------------------------------------------ */

D9_EXPORT pid_t fork(void)
{
	D9_BEGIN(fork, 0, -1);
	pid_t r = d9_real.fork();
	D9_END(fork, D9_RESULT(r), 0); /* in the child the thread's cell is wiped: nothing is recorded there */
	return r;
}

/*
 * The real call with the environment that it was given; `other`, which is `env`, if the program would not start with it.  A macro because the copy lies
 * on the caller's stack, where a vfork child may have it.
 */
#define EXEC_REAL(r, file, envp, real, other)                                                \
	do {                                                                                 \
		const struct d9_exec_file d9_file = file;                                    \
		char *const *d9_envp = (envp);                                               \
		size_t d9_n_env = d9_exec_env_bytes(&d9_file, d9_envp);                      \
		if (__builtin_expect(d9_n_env != 0, 0)) {                                    \
			char *const *env = d9_exec_env(alloca(d9_n_env), d9_n_env, d9_envp); \
			(r) = d9_real.other;                                                 \
		} else                                                                       \
			(r) = d9_real.real;                                                  \
	} while (0)
#define FILE_AT(p) ((struct d9_exec_file){.path = (p), .fd = -1})
#define FILE_IN_PATH(p) ((struct d9_exec_file){.path = (p), .search = true, .fd = -1})
#define FILE_OF(f) ((struct d9_exec_file){.fd = (f)})

#define WRAP_EXEC(name, params, args, path, file, envp, other) \
	D9_EXPORT int name params                              \
	{                                                      \
		int d9_r;                                      \
		D9_BEGIN(name, 0, -1);                         \
		d9_shim_exec(path);                            \
		EXEC_REAL(d9_r, file, envp, name args, other); \
		d9_shim_exec_failed();                         \
		D9_END(name, D9_RESULT(d9_r), 0);              \
		return d9_r;                                   \
	}
WRAP_EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp), path, FILE_AT(path),
	  envp, execve(path, argv, env))
WRAP_EXEC(execv, (const char *path, char *const argv[]), (path, argv), path, FILE_AT(path), environ,
	  execve(path, argv, env))
WRAP_EXEC(execvp, (const char *file, char *const argv[]), (file, argv), file, FILE_IN_PATH(file), environ,
	  execvpe(file, argv, env))
WRAP_EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp), file,
	  FILE_IN_PATH(file), envp, execvpe(file, argv, env))
WRAP_EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp), d9_shim_exec_name(argv),
	  FILE_OF(fd), envp, fexecve(fd, argv, env))

/* The list forms, as the array forms they are.  On the stack: a vfork child may call them. */
#define COUNT_ARGS(n, first, last)                                                   \
	do {                                                                         \
		va_list d9_ap;                                                       \
		va_start(d9_ap, last);                                               \
		for ((n) = (first) ? 1 : 0; (first) && va_arg(d9_ap, char *); (n)++) \
			;                                                            \
		va_end(d9_ap);                                                       \
	} while (0)
#define LIST_ARGS(argv, n, first, ap)                      \
	do {                                               \
		(argv)[0] = (char *)(d9_u64)(first);       \
		for (size_t d9_i = 1; d9_i < (n); d9_i++)  \
			(argv)[d9_i] = va_arg(ap, char *); \
		(argv)[n] = NULL;                          \
	} while (0)

#define WRAP_EXEC_LIST(name, path, as, args, last, file, envp, other) \
	D9_EXPORT int name(const char *path, const char *arg, ...)    \
	{                                                             \
		size_t d9_n;                                          \
		int d9_r;                                             \
		va_list d9_list;                                      \
		D9_BEGIN(name, 0, -1);                                \
		COUNT_ARGS(d9_n, arg, arg);                           \
		char **argv = alloca((d9_n + 1) * sizeof(*argv));     \
		va_start(d9_list, arg);                               \
		LIST_ARGS(argv, d9_n, arg, d9_list);                  \
		last;                                                 \
		va_end(d9_list);                                      \
		d9_shim_exec(path);                                   \
		EXEC_REAL(d9_r, file, envp, as args, other);          \
		d9_shim_exec_failed();                                \
		D9_END(name, D9_RESULT(d9_r), 0);                     \
		return d9_r;                                          \
	}
/* After the list of execle, its NULL included, comes the environment. */
#define ENVIRONMENT                            \
	if (arg)                               \
		(void)va_arg(d9_list, char *); \
	char *const *envp = va_arg(d9_list, char *const *)
WRAP_EXEC_LIST(execl, path, execv, (path, argv), (void)0, FILE_AT(path), environ, execve(path, argv, env))
WRAP_EXEC_LIST(execlp, file, execvp, (file, argv), (void)0, FILE_IN_PATH(file), environ, execvpe(file, argv, env))
WRAP_EXEC_LIST(execle, path, execve, (path, argv, envp), ENVIRONMENT, FILE_AT(path), envp, execve(path, argv, env))

/* ---- children that libc makes, and waiting for children --------------------------------------------------- */

/* libc's own fork, wait and exec inside these are not seen; whatever is executed is a family of its own. */
D9_WRAP_IDLE(int, system, (const char *command), (command), D9_RESULT(d9_r))
D9_WRAP(FILE *, popen, (const char *command, const char *mode), (command, mode), -1, d9_r ? fileno(d9_r) : -errno)
D9_WRAP_IDLE(int, pclose, (FILE * f), (f), D9_RESULT(d9_r))

/* Two ABIs: the old one tries a shell where the kernel does not know the file's format. */
#define SPAWN                                                                                               \
	(pid_t * pid, const char *path, const posix_spawn_file_actions_t *does, const posix_spawnattr_t *a, \
	 char *const argv[], char *const envp[])
/* With a change of folder among its file actions a path may lead elsewhere; then the file is not found, or another is judged. */
#define WRAP_SPAWN(fn, id, file)                                                                                    \
	int fn SPAWN;                                                                                               \
	D9_EXPORT int fn SPAWN                                                                                      \
	{                                                                                                           \
		int d9_r;                                                                                           \
		D9_BEGIN(id, 0, -1);                                                                                \
		EXEC_REAL(d9_r, file, envp, id(pid, path, does, a, argv, envp), id(pid, path, does, a, argv, env)); \
		D9_END(id, D9_RETURNED(d9_r), 0);                                                                   \
		return d9_r;                                                                                        \
	}
WRAP_SPAWN(d9_posix_spawn_new, posix_spawn, FILE_AT(path))
WRAP_SPAWN(d9_posix_spawn_old, posix_spawn_old, FILE_AT(path))
WRAP_SPAWN(d9_posix_spawnp_new, posix_spawnp, FILE_IN_PATH(path))
WRAP_SPAWN(d9_posix_spawnp_old, posix_spawnp_old, FILE_IN_PATH(path))
__asm__(".symver d9_posix_spawn_new, posix_spawn@@@GLIBC_2.15\n"
	".symver d9_posix_spawn_old, posix_spawn@GLIBC_2.2.5\n"
	".symver d9_posix_spawnp_new, posix_spawnp@@@GLIBC_2.15\n"
	".symver d9_posix_spawnp_old, posix_spawnp@GLIBC_2.2.5\n");

/*
 * The parent ends inside, by libc's own _exit(0): that is its end, and not a call that was cut off.  The child comes back;
 * its cell is wiped, as after fork.
 */
D9_EXPORT int daemon(int nochdir, int noclose)
{
	D9_BEGIN(daemon, 0, -1);
	if (d9_c.site)
		d9_store_relaxed(&d9_me->slot->call.site, 0);
	d9_shim_leaves();
	int r = d9_real.daemon(nochdir, noclose);
	d9_shim_exec_failed();
	D9_END(daemon, D9_RESULT(r), 0);
	return r;
}

D9_WRAP_IDLE(pid_t, wait, (int *status), (status), D9_RESULT(d9_r))
D9_WRAP_IDLE(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags), D9_RESULT(d9_r))
D9_WRAP_IDLE(pid_t, wait3, (int *status, int flags, struct rusage *use), (status, flags, use), D9_RESULT(d9_r))
D9_WRAP_IDLE(pid_t, wait4, (pid_t pid, int *status, int flags, struct rusage *use), (pid, status, flags, use),
	     D9_RESULT(d9_r))
D9_WRAP_IDLE(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int flags), (type, id, info, flags),
	     D9_RESULT(d9_r))

/* ---- ends that run no destructors ---------------------------------------------------------------------- */

#define WRAP_EXIT(name)                           \
	D9_EXPORT void name(int code)             \
	{                                         \
		d9_shim_end(D9_PROC_UEXIT, code); \
		d9_real.name(code);               \
		__builtin_unreachable();          \
	}
WRAP_EXIT(_exit)
WRAP_EXIT(_Exit)
WRAP_EXIT(quick_exit)

/* ---- identity ------------------------------------------------------------------------------------------ */

#define WRAP_IDENTITY(name, params, args, before) \
	D9_EXPORT int name params                 \
	{                                         \
		D9_BEGIN(name, 0, -1);            \
		before;                           \
		int d9_r = d9_real.name args;     \
		D9_END(name, D9_RESULT(d9_r), 0); \
		return d9_r;                      \
	}
#define NOTHING ((void)0)
#define USER(u) d9_shim_before_uid((d9_u32)(u))
WRAP_IDENTITY(setuid, (uid_t u), (u), USER(u))
WRAP_IDENTITY(seteuid, (uid_t u), (u), USER(u))
WRAP_IDENTITY(setreuid, (uid_t r, uid_t e), (r, e), USER(e))
WRAP_IDENTITY(setresuid, (uid_t r, uid_t e, uid_t s), (r, e, s), USER(e))
WRAP_IDENTITY(setgid, (gid_t g), (g), NOTHING)
WRAP_IDENTITY(setegid, (gid_t g), (g), NOTHING)
WRAP_IDENTITY(setregid, (gid_t r, gid_t e), (r, e), NOTHING)
WRAP_IDENTITY(setresgid, (gid_t r, gid_t e, gid_t s), (r, e, s), NOTHING)
WRAP_IDENTITY(initgroups, (const char *user, gid_t g), (user, g), NOTHING)
WRAP_IDENTITY(setgroups, (size_t n, const gid_t *list), (n, list), NOTHING)
WRAP_IDENTITY(chroot, (const char *path), (path), d9_shim_before_root())
/* With a second thread, or one that shares the working directory, these would fail. */
WRAP_IDENTITY(unshare, (int flags), (flags), d9_unshare_needs_one_thread(flags) ? d9_shim_before_sandbox(0) : NOTHING)
WRAP_IDENTITY(setns, (int fd, int type), (fd, type), d9_shim_before_sandbox(0))

/*
 * What one thread may do changes for that thread alone.  A drain thread that kept the old rights would answer the next
 * setuid or setgid otherwise than the caller's thread, and glibc aborts on that; one that is started later has the new ones.
 */
D9_EXPORT int capset(void *head, const void *data);
WRAP_IDENTITY(capset, (void *head, const void *data), (head, data), d9_shim_before_sandbox(0))

/* ---- memory: what the recorder holds must not be missing ------------------------------------------------ */

#define WRAP_SETRLIMIT(name, limit)                                          \
	D9_EXPORT int name(__rlimit_resource_t what, const struct limit *to) \
	{                                                                    \
		d9_shim_before_limit(0, (int)what, to);                      \
		return d9_real.name(what, to);                               \
	}
WRAP_SETRLIMIT(setrlimit, rlimit)
WRAP_SETRLIMIT(setrlimit64, rlimit64)
#define WRAP_PRLIMIT(name, limit)                                                                             \
	D9_EXPORT int name(pid_t pid, enum __rlimit_resource what, const struct limit *to, struct limit *was) \
	{                                                                                                     \
		d9_shim_before_limit(pid, (int)what, to);                                                     \
		return d9_real.name(pid, what, to, was);                                                      \
	}
WRAP_PRLIMIT(prlimit, rlimit)
WRAP_PRLIMIT(prlimit64, rlimit64)

D9_EXPORT int mlockall(int flags)
{
	long r;
	return d9_shim_lock_all(flags, &r) ? (int)d9_as_libc(r) : d9_real.mlockall(flags);
}

D9_EXPORT int prctl(int op, ...)
{
	va_list ap;
	va_start(ap, op);
	unsigned long a = va_arg(ap, unsigned long), b = va_arg(ap, unsigned long), c = va_arg(ap, unsigned long),
		      d = va_arg(ap, unsigned long);
	va_end(ap);
	if (op == PR_SET_NAME) {
		int r = d9_real.prctl(op, a, b, c, d);
		d9_shim_renamed();
		return r;
	}
	if (d9_prctl_changes_rights(op))
		d9_shim_before_sandbox(0);
	if (d9_forbids_clock(op, a))
		d9_shim_before_no_clock();
	if (op != PR_SET_SECCOMP || a == SECCOMP_MODE_STRICT)
		return d9_real.prctl(op, a, b, c, d);
	D9_BEGIN(prctl, 0, -1);
	int was_free = d9_shim_free();
	d9_shim_before_sandbox(1);
	int r = d9_real.prctl(op, a, b, c, d);
	if (r)
		d9_shim_sandbox_failed(was_free);
	D9_END(prctl, D9_RESULT(r), 0);
	return r;
}
