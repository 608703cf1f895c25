/* See facts.h. */
#include "facts.h"
#include "procfs.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

int d9_kfacts_add(struct d9_kseg *s, const char *key, const char *value)
{
	char text[512];
	struct d9_ev_info e = {0};
	int n = snprintf(text, sizeof(text), "%s=%s", key, value);
	return d9_kseg_add(s, D9_THREAD_NONE, D9_EV_info, &e, D9_TAIL_STRING, text,
			   n < (int)sizeof(text) ? (d9_u32)n : sizeof(text) - 1);
}

int d9_kfacts_add_number(struct d9_kseg *s, const char *key, d9_u64 v)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return d9_kfacts_add(s, key, text);
}

static int add_boot_id(struct d9_kseg *s)
{
	char uuid[64], hex[64];
	size_t n = 0;
	if (d9_kproc_read("/proc/sys/kernel/random/boot_id", uuid, sizeof(uuid)) <= 0)
		return 0;
	for (const char *p = uuid; *p; p++)
		if (strchr("0123456789abcdef", *p))
			hex[n++] = *p;
	hex[n] = 0;
	return d9_kfacts_add(s, "boot_id", hex);
}

int d9_kfacts_all(struct d9_kseg *s, const struct d9_koptions *o)
{
	static const char *const by[] = {"", "pid ", "session ", "comm ", "cgroup "};
	char target[400];
	struct utsname u;
	snprintf(target, sizeof(target), "%s%s", by[o->by], o->what);
	int e = d9_kfacts_add(s, "version", D9_VERSION);
	if (!e)
		e = d9_kfacts_add(s, "kernel", uname(&u) ? "" : u.release);
	if (!e)
		e = add_boot_id(s);
	if (!e)
		e = d9_kfacts_add_number(s, "clock_hz", 1000000000u);
	if (!e)
		e = d9_kfacts_add_number(s, "pid_ns", d9_kproc_pid_ns(getpid()));
	if (!e)
		e = d9_kfacts_add(s, "target", target);
	if (!e)
		e = d9_kfacts_add_number(s, "runq_min_ns", o->runq_min_ns);
	if (!e)
		e = d9_kfacts_add_number(s, "offcpu_min_ns", o->offcpu_min_ns);
	if (!e)
		e = d9_kfacts_add(s, "user_stacks", o->user_stacks ? "on" : "off");
	if (!e)
		e = d9_kfacts_add(s, "wakers", o->wakers ? "all" : "of CPUs that were busy");
	if (!e && o->syscalls)
		e = d9_kfacts_add_number(s, "syscall_min_ns", o->syscall_min_ns);
	return e;
}
