/* Choosing and reading the clock. */
#include "clock.h"
#include "files.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

struct d9_clock d9_clock = {.kind = D9_CLOCK_MONOTONIC};

static bool kernel_uses_tsc(void)
{
	char name[8] = "";
	/* No /sys (chroot, container): the slower clock is always right. */
	(void)d9_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof(name));
	return !strcmp(name, "tsc\n");
}

/* A sandbox may forbid rdtsc (prctl PR_SET_TSC); then the vDSO faults too. */
static bool tsc_allowed(void)
{
	int mode = 0;
	return d9_sys3(SYS_prctl, PR_GET_TSC, (long)&mode, 0) != 0 || mode == PR_TSC_ENABLE;
}

/* __vdso_clock_gettime by its name; the vDSO is a small ELF image that the kernel mapped. */
static void *vdso_lookup(const char *want)
{
	const Elf64_Ehdr *e = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!e)
		return NULL;
	const Elf64_Phdr *ph = (const void *)((const char *)e + e->e_phoff);
	const Elf64_Dyn *dyn = NULL;
	Elf64_Addr bias = 0;
	for (int i = 0; i < e->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD)
			bias = (Elf64_Addr)e + ph[i].p_offset - ph[i].p_vaddr;
		else if (ph[i].p_type == PT_DYNAMIC)
			dyn = (const void *)((const char *)e + ph[i].p_offset);
	}
	const Elf64_Sym *sym = NULL;
	const char *str = NULL;
	const Elf64_Word *hash = NULL;
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		const void *p = (const void *)(bias + dyn->d_un.d_ptr);
		if (dyn->d_tag == DT_SYMTAB)
			sym = p;
		else if (dyn->d_tag == DT_STRTAB)
			str = p;
		else if (dyn->d_tag == DT_HASH)
			hash = p;
	}
	if (!sym || !str || !hash)
		return NULL;
	for (Elf64_Word i = 0; i < hash[1]; i++)
		if (sym[i].st_shndx != SHN_UNDEF && !strcmp(str + sym[i].st_name, want))
			return (void *)(bias + sym[i].st_value);
	return NULL;
}

void d9_clock_start(void)
{
	bool allowed = tsc_allowed();
	*(void **)&d9_clock.vdso_gettime = allowed ? vdso_lookup("__vdso_clock_gettime") : NULL;
	d9_clock.kind = allowed && kernel_uses_tsc() ? D9_CLOCK_TSC : D9_CLOCK_MONOTONIC;
}

static d9_u64 gettime(clockid_t id)
{
	struct timespec t = {0};
	if (!d9_clock.vdso_gettime || d9_clock.vdso_gettime(id, &t))
		(void)d9_sys2(SYS_clock_gettime, id, (long)&t);
	return (d9_u64)t.tv_sec * 1000000000u + (d9_u64)t.tv_nsec;
}

d9_u64 d9_clock_slow(void) { return gettime(CLOCK_MONOTONIC); }

/* The tightest of a few readings: an interruption between two of them widens the bracket, and shows. */
void d9_clock_pair(d9_u32 kind, struct d9_clock_pair *ret)
{
	struct d9_clock_pair best = {.width = D9_NOT_KNOWN};
	for (int i = 0; i < 5; i++) {
		d9_u64 m0 = gettime(CLOCK_MONOTONIC);
		d9_u64 tsc = kind == D9_CLOCK_TSC ? d9_tsc() : m0;
		d9_u64 m1 = gettime(CLOCK_MONOTONIC);
		d9_u64 real = gettime(CLOCK_REALTIME), boot = gettime(CLOCK_BOOTTIME);
		if (m1 - m0 < best.width)
			best = (struct d9_clock_pair){tsc, kind == D9_CLOCK_TSC ? m0 + (m1 - m0) / 2 : m0, real, boot,
						      m1 - m0};
	}
	*ret = best;
}

d9_u32 d9_clock_shift(d9_u64 hz)
{
	d9_u32 s = 0;
	while (s < 16 && (1000000000ull << (s + 1)) <= 10 * hz)
		s++;
	return s;
}
