/*
 * One ELF file: opening, proving which build it is, and the way between file offsets and addresses.
 * libelf checks what it walks; counts and offsets that we use ourselves are checked here.
 */
#include "object.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096ull
#define FLOOR(x) ((x) & ~(PAGE - 1))
#define CEIL(x) (((x) + PAGE - 1) & ~(PAGE - 1))
#define DEBUG_ROOT "/usr/lib/debug/.build-id"

/* ---- opening ----------------------------------------------------------------------------------- */

static void read_build_id(Elf *elf, char *hex)
{
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);
	hex[0] = 0;
	if (n <= 0 || n > D9_BUILD_ID_MAX)
		return;
	for (ssize_t i = 0; i < n; i++)
		sprintf(hex + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
}

static int read_loads(struct d9_object *o)
{
	size_t n;
	if (elf_getphdrnum(o->elf, &n) < 0 || n == 0)
		return -ENOEXEC;
	o->loads = calloc(n, sizeof(*o->loads));
	if (!o->loads)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		/* A segment whose end wraps around can hold nothing; later sums rely on that. */
		if (ph.p_vaddr + ph.p_memsz < ph.p_vaddr || ph.p_offset + ph.p_filesz < ph.p_offset)
			continue;
		o->loads[o->n_loads++] = (struct d9_load){.vaddr = ph.p_vaddr,
							  .offset = ph.p_offset,
							  .file_bytes = ph.p_filesz,
							  .mem_bytes = ph.p_memsz,
							  .executable = ph.p_flags & PF_X};
	}
	return o->n_loads ? 0 : -ENOEXEC;
}

static bool is_x86_64(Elf *elf)
{
	GElf_Ehdr eh;
	return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &eh) && gelf_getclass(elf) == ELFCLASS64 &&
	       eh.e_machine == EM_X86_64;
}

/* Takes fd (or -1) and elf, whatever comes of it. */
static int finish_open(int fd, Elf *elf, struct d9_object **ret)
{
	struct d9_object *o = calloc(1, sizeof(*o));
	int r = -ENOMEM;
	if (!o) {
		elf_end(elf);
		if (fd >= 0)
			close(fd);
		return r;
	}
	*o = (struct d9_object){.fd = fd, .debug_fd = -1, .elf = elf};
	r = elf && is_x86_64(elf) ? read_loads(o) : -ENOEXEC;
	if (r < 0) {
		d9_object_free(o);
		return r;
	}
	read_build_id(elf, o->build_id);
	*ret = o;
	return 0;
}

/* A recording can name a FIFO or a device: opening one must neither block nor do anything. */
static int open_regular(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOEXEC;
	}
	return fd;
}

int d9_object_open(const char *path, struct d9_object **ret)
{
	elf_version(EV_CURRENT);
	int fd = open_regular(path);
	return fd < 0 ? fd : finish_open(fd, elf_begin(fd, ELF_C_READ_MMAP, NULL), ret);
}

int d9_object_open_vdso(struct d9_object **ret)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	if (!eh)
		return -ENOENT;
	elf_version(EV_CURRENT);
	/* The kernel's own file: its section table stands last. */
	size_t bytes = eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
	return finish_open(-1, elf_memory((char *)(uintptr_t)eh, bytes), ret);
}

void d9_object_free(struct d9_object *o)
{
	if (!o)
		return;
	d9_object_free_lines(o);
	d9_object_free_symbols(o);
	elf_end(o->debug_elf);
	elf_end(o->elf);
	if (o->debug_fd >= 0)
		close(o->debug_fd);
	if (o->fd >= 0)
		close(o->fd);
	free(o->loads);
	free(o);
}

Elf *d9_object_debug_elf(struct d9_object *o)
{
	char path[sizeof(DEBUG_ROOT) + sizeof(o->build_id) + 16], id[sizeof(o->build_id)];
	if (o->debug_elf)
		return o->debug_elf;
	if (o->debug_fd != -1 || strlen(o->build_id) < 4)
		return o->elf;
	snprintf(path, sizeof(path), DEBUG_ROOT "/%.2s/%s.debug", o->build_id, o->build_id + 2);
	o->debug_fd = open_regular(path);
	if (o->debug_fd < 0) {
		o->debug_fd = -2; /* looked for, not there */
		return o->elf;
	}
	Elf *elf = elf_begin(o->debug_fd, ELF_C_READ_MMAP, NULL);
	if (elf && is_x86_64(elf)) {
		read_build_id(elf, id);
		if (!strcmp(id, o->build_id))
			return o->debug_elf = elf;
	}
	elf_end(elf);
	return o->elf;
}

/* ---- addresses --------------------------------------------------------------------------------- */

bool d9_object_has_layout(const struct d9_object *o, d9_u64 bytes, d9_u64 offset)
{
	for (size_t i = 0; i < o->n_loads; i++) {
		const struct d9_load *l = &o->loads[i];
		if (l->executable && FLOOR(l->offset) == offset &&
		    CEIL(l->vaddr + l->file_bytes) - FLOOR(l->vaddr) == bytes)
			return true;
	}
	return false;
}

int d9_object_address(const struct d9_object *o, d9_u64 offset, d9_u64 *ret)
{
	for (size_t i = 0; i < o->n_loads; i++) {
		const struct d9_load *l = &o->loads[i];
		/* The kernel maps whole pages, so a mapping shows a little of what lies around its segment. */
		if (!l->executable || offset < FLOOR(l->offset) || offset >= CEIL(l->offset + l->file_bytes))
			continue;
		*ret = offset - l->offset + l->vaddr;
		return 0;
	}
	return -ENOENT;
}

int d9_object_read(const struct d9_object *o, d9_u64 vaddr, void *buf, size_t n)
{
	size_t size;
	const char *raw = elf_rawfile(o->elf, &size);
	for (size_t i = 0; raw && i < o->n_loads; i++) {
		const struct d9_load *l = &o->loads[i];
		if (vaddr < FLOOR(l->vaddr) || vaddr >= CEIL(l->vaddr + l->mem_bytes))
			continue;
		d9_u64 offset = vaddr - l->vaddr + l->offset; /* may wrap for hostile files: the next test sees it */
		if (offset >= size)
			return -EFAULT;
		size_t there = size - offset < n ? size - offset : n;
		memset(buf, 0, n);
		memcpy(buf, raw + offset, there);
		return 0;
	}
	return -EFAULT;
}

/* ---- unwind tables ------------------------------------------------------------------------------ */

#define ENC_SIZE_4 0x03 /* udata4; sdata4 is 0x0b */
#define ENC_TABLE 0x3b  /* datarel | sdata4: the only table that can be searched */
#define ENC_OMIT 0xff

static size_t encoded_size(unsigned enc)
{
	switch (enc & 0x07) {
	case 0:
		return 8;
	case 2:
		return 2;
	case 3:
		return 4;
	case 4:
		return 8;
	default:
		return 0;
	}
}

void d9_object_read_eh(struct d9_object *o)
{
	size_t n;
	if (o->eh_read)
		return;
	o->eh_read = true;
	if (elf_getphdrnum(o->elf, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		unsigned char head[4];
		d9_u32 count;
		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		if (d9_object_read(o, ph.p_vaddr, head, sizeof(head)) < 0 || head[0] != 1 || head[1] == ENC_OMIT ||
		    (head[2] & 0x0f) != ENC_SIZE_4 || head[3] != ENC_TABLE)
			return;
		size_t skip = 4 + encoded_size(head[1]);
		if (skip == 4 || d9_object_read(o, ph.p_vaddr + skip, &count, sizeof(count)) < 0)
			return;
		if ((d9_u64)count * 8 + skip + 4 > ph.p_memsz)
			return;
		o->eh_hdr = ph.p_vaddr;
		o->eh_table = ph.p_vaddr + skip + 4;
		o->eh_count = count;
		return;
	}
}

unsigned d9_object_uring_sites(const struct d9_object *o)
{
	static const char uring[] = "\xb8\xaa\x01\x00\x00\x0f\x05"; /* mov $426,%eax; syscall */
	const size_t len = sizeof(uring) - 1;
	size_t n;
	unsigned found = 0;
	const char *raw = elf_rawfile(o->elf, &n);
	for (size_t i = 0; raw && i < o->n_loads; i++) {
		const struct d9_load *l = &o->loads[i];
		if (!l->executable || l->offset > n || l->file_bytes > n - l->offset)
			continue;
		const char *p = raw + l->offset, *end = p + l->file_bytes;
		for (; (p = memmem(p, (size_t)(end - p), uring, len)); p += len)
			found++;
	}
	return found;
}
