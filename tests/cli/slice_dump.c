/*
 * The dump, as text:   M START END OFFSET PATH BUILD_ID|-   one line a mapping, hex
 *                      S HEX                                struct d9_slice and the stack
 * Build ids come from the notes in memory, as the recorder reads them.
 */
#include "slice_dump.h"
#include "format/events.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_MAX (48u << 10)

void capture(struct d9_slice *ret);
__asm__(".text\n.globl capture\n.type capture,@function\ncapture:\n.cfi_startproc\n"
	"mov (%rsp),%rax\nmov %rax,0(%rdi)\nlea 8(%rsp),%rax\nmov %rax,8(%rdi)\nmov %rbp,16(%rdi)\nmov %rbx,24(%rdi)\n"
	"mov %r12,32(%rdi)\nmov %r13,40(%rdi)\nmov %r14,48(%rdi)\nmov %r15,56(%rdi)\nret\n.cfi_endproc\n"
	".size capture,.-capture\n");

struct wanted {
	unsigned long address;
	char id[129];
};

static void read_notes(const char *p, size_t n, char *hex)
{
	while (n >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *nh = (const void *)p;
		size_t name = (nh->n_namesz + 3) & ~3u, desc = (nh->n_descsz + 3) & ~3u,
		       all = sizeof(*nh) + name + desc;
		if (all > n)
			return;
		if (nh->n_type == NT_GNU_BUILD_ID && !strcmp(p + sizeof(*nh), "GNU"))
			for (unsigned i = 0; i < nh->n_descsz && i < 64; i++)
				sprintf(hex + 2 * i, "%02x", (unsigned char)p[sizeof(*nh) + name + i]);
		p += all;
		n -= all;
	}
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct wanted *w = arg;
	int here = 0;
	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		here |= ph->p_type == PT_LOAD &&
			w->address - (info->dlpi_addr + (ph->p_vaddr & ~4095ul)) < ph->p_memsz + 4096;
	}
	for (int i = 0; here && i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			read_notes((const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
				   info->dlpi_phdr[i].p_memsz, w->id);
	return here;
}

static void write_maps(FILE *out)
{
	char line[4096];
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end, offset;
		char perms[8], path[4096] = "";
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095[^\n]", &start, &end, perms, &offset, path) < 4 ||
		    perms[2] != 'x')
			continue;
		struct wanted w = {.address = start};
		dl_iterate_phdr(visit, &w);
		fprintf(out, "M %lx %lx %lx %s %s\n", start, end, offset, *path ? path : "-", *w.id ? w.id : "-");
	}
	if (f)
		fclose(f);
}

static unsigned long stack_end(void)
{
	pthread_attr_t attr;
	void *low;
	size_t n;
	if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &low, &n))
		exit(99);
	pthread_attr_destroy(&attr);
	return (unsigned long)low + n;
}

__attribute__((noinline)) void dump_self(void)
{
	struct d9_slice regs;
	static char stack[SLICE_MAX];
	capture(&regs);
	unsigned long n = stack_end() - regs.rsp;
	if (n > SLICE_MAX)
		n = SLICE_MAX;
	memcpy(stack, (const void *)regs.rsp, n);
	FILE *out = fopen(getenv("DUMP"), "we");
	if (!out)
		exit(99);
	write_maps(out);
	fputs("S ", out);
	for (size_t i = 0; i < sizeof(regs); i++)
		fprintf(out, "%02x", ((unsigned char *)&regs)[i]);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%02x", (unsigned char)stack[i]);
	fputc('\n', out);
	fclose(out);
}

void dump_self_and_exit(void)
{
	dump_self();
	exit(0);
}
