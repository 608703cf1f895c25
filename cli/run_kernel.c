/* See run_kernel.h. */
#include "run_kernel.h"
#include "cmd.h"
#include "shim_path.h"

#include "shim/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_MS 1000     /* how long the program is held at most */
#define READY_ON_MS 10000 /* where it was asked for by `on` */
#define STOP_MS 2000

/* In the child: a program of its own, neither recorded nor stopped by what the terminal sends to the service. */
static _Noreturn void become(const char *path, pid_t target, const char *dir, int out, int err)
{
	char pid[16];
	sigset_t none;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	unsetenv("LD_PRELOAD");
	snprintf(pid, sizeof(pid), "%d", (int)target);
	if (null >= 0 && dup2(null, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0)
		execl(path, path, "--pid", pid, "--dir", dir, (char *)NULL);
	_exit(127);
}

static int launch(struct d9_run_kernel *k, const char *path, pid_t target, const char *dir)
{
	int out[2], err[2];
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(err, O_CLOEXEC)) {
		int e = -errno;
		close(out[0]);
		close(out[1]);
		return e;
	}
	k->pid = fork();
	if (!k->pid)
		become(path, target, dir, out[1], err[1]);
	int e = k->pid < 0 ? -errno : 0;
	close(out[1]);
	close(err[1]);
	k->out = out[0];
	k->err = err[0];
	return e;
}

/* The next line that it said, without its name before it.  False: none for now. */
static bool next_line(FILE *f, char *buf, size_t size)
{
	static const char name[] = "d9-kernel: ";
	if (!f || !fgets(buf, (int)size, f))
		return false;
	buf[strcspn(buf, "\n")] = 0;
	if (!strncmp(buf, name, sizeof(name) - 1))
		memmove(buf, buf + sizeof(name) - 1, strlen(buf + sizeof(name) - 1) + 1);
	return true;
}

static FILE *said(struct d9_run_kernel *k)
{
	if (k->err < 0)
		return NULL;
	(void)fcntl(k->err, F_SETFL, O_NONBLOCK); /* it may live on and say nothing more */
	FILE *f = fdopen(k->err, "r");
	if (!f)
		close(k->err);
	k->err = -1;
	return f;
}

/* It ended at once: its last line says why. */
static void note_why(struct d9_run_kernel *k)
{
	char line[sizeof(k->why) - 16];
	FILE *f = said(k);
	snprintf(k->why, sizeof(k->why), "d9-kernel ended at once and did not say why");
	while (next_line(f, line, sizeof(line)))
		snprintf(k->why, sizeof(k->why), "d9-kernel %s", line);
	if (f)
		fclose(f);
}

static bool wait_end(struct d9_run_kernel *k, int ms)
{
	for (; ms >= 0; ms -= 10) {
		if (waitpid(k->pid, &k->status, WNOHANG)) {
			k->pid = 0;
			return true;
		}
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return false;
}

static void end(struct d9_run_kernel *k)
{
	if (!k->pid)
		return;
	kill(k->pid, SIGTERM);
	if (!wait_end(k, STOP_MS)) {
		kill(k->pid, SIGKILL);
		wait_end(k, STOP_MS);
	}
}

static bool is_ready(struct d9_run_kernel *k)
{
	char word[8] = "";
	int ms = k->mode == D9_KERNEL_ON ? READY_ON_MS : READY_MS;
	struct pollfd p = {k->out, POLLIN, 0};
	d9_u64 until = d9_mono_ns() + (d9_u64)ms * 1000000;
	int n;
	while ((n = poll(&p, 1, ms)) < 0 && errno == EINTR && d9_mono_ns() < until)
		;
	if (n > 0 && read(k->out, word, sizeof(word)) > 0)
		return true;
	if (n > 0) {
		note_why(k);
		wait_end(k, STOP_MS);
	} else if (k->mode == D9_KERNEL_ON) {
		snprintf(k->why, sizeof(k->why), "d9-kernel was not ready within %d s", ms / 1000);
	} else {
		return true; /* it will be, and what the program does before that is not recorded */
	}
	end(k);
	return false;
}

bool d9_run_kernel_start(struct d9_run_kernel *k, pid_t target, const char *dir)
{
	char path[PATH_MAX];
	k->out = k->err = -1;
	if (d9_kernel_path(path, sizeof(path))) {
		if (k->mode == D9_KERNEL_ON)
			snprintf(k->why, sizeof(k->why),
				 "d9-kernel was not found beside d9: build it with meson setup -Dkernel=enabled");
		return false;
	}
	int e = launch(k, path, target, dir);
	if (e) {
		k->pid = 0;
		snprintf(k->why, sizeof(k->why), "d9-kernel could not be started: %s", strerror(-e));
		return false;
	}
	return is_ready(k);
}

void d9_run_kernel_drop(struct d9_run_kernel *k)
{
	if (!k->pid)
		return;
	kill(k->pid, SIGKILL);
	wait_end(k, STOP_MS);
	close(k->out);
	close(k->err);
}

void d9_run_kernel_stop(struct d9_run_kernel *k, bool quiet)
{
	char line[1024];
	if (!k->pid)
		return;
	k->recorded = true;
	bool died = wait_end(k, 0) && (WIFSIGNALED(k->status) || WEXITSTATUS(k->status));
	end(k);
	FILE *f = said(k);
	if (died && !quiet)
		d9_warn("kernel's side: d9-kernel ended before the program, %s %d: it has nothing of what came after",
			WIFSIGNALED(k->status) ? "by signal" : "with exit code",
			WIFSIGNALED(k->status) ? WTERMSIG(k->status) : WEXITSTATUS(k->status));
	while (!quiet && next_line(f, line, sizeof(line)))
		d9_warn("kernel's side: %s", line);
	if (f)
		fclose(f);
	close(k->out);
}
