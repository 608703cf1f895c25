/* Reading /proc/PID/maps and build ids; see modules.h. */
#include "modules.h"
#include "atomic.h"
#include "files.h"
#include "sys.h"
#include "text.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

/* The next line of the file, NUL-ended, or NULL.  Longer ones are cut. */
static char *next_line(struct d9_maps_reader *l)
{
	for (;;) {
		char *start = l->buf + l->at, *nl = memchr(start, '\n', l->have - l->at);
		bool whole = !l->cut;
		if (nl || l->cut)
			l->at = nl ? (d9_u32)(nl + 1 - l->buf) : l->have;
		if (nl) {
			*nl = 0;
			l->cut = false;
			if (whole)
				return start;
			continue;
		}
		if (l->eof)
			return NULL;
		if (l->at == 0 && l->have == sizeof(l->buf)) { /* a path may be longer */
			l->buf[sizeof(l->buf) - 1] = 0;
			l->at = l->have;
			l->cut = true;
			return l->buf;
		}
		memmove(l->buf, l->buf + l->at, l->have - l->at);
		l->have -= l->at;
		l->at = 0;
		long n = d9_sys3(SYS_read, l->fd, (long)(l->buf + l->have), (long)(sizeof(l->buf) - l->have));
		if (n <= 0)
			l->eof = true;
		else
			l->have += (d9_u32)n;
	}
}

static d9_u64 hex(char **p)
{
	d9_u64 v = 0;
	for (;; (*p)++) {
		unsigned c = (unsigned char)**p;
		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (c - 'a' + 10);
		else
			return v;
	}
}

/* pid 0: this process, whatever /proc calls it. */
static int open_proc(int pid, const char *file)
{
	char name[32];
	struct d9_text t = d9_text_in(name, sizeof(name));
	d9_text_str(&t, "/proc/");
	if (pid)
		d9_text_u64(&t, (d9_u64)pid);
	else
		d9_text_str(&t, "self");
	d9_text_str(&t, file);
	return (int)d9_sys3(SYS_open, (long)name, O_RDONLY | O_CLOEXEC, 0);
}

/* "start-end perms offset dev inode   path" */
static void parse_line(char *p, struct d9_map_line *ret)
{
	ret->start = hex(&p);
	p += *p == '-';
	ret->end = hex(&p);
	p += *p == ' ';
	ret->exec = strnlen(p, 4) == 4 && p[2] == 'x';
	p += strcspn(p, " ");
	p += *p == ' ';
	ret->offset = hex(&p);
	for (int field = 0; field < 2; field++) { /* device, inode */
		p += *p == ' ';
		p += strcspn(p, " ");
	}
	p += strspn(p, " ");
	ret->path = p;
}

bool d9_next_mapping(struct d9_maps_reader *r, struct d9_map_line *ret)
{
	char *line = next_line(r);
	if (line)
		parse_line(line, ret);
	return line != NULL;
}

/* A process whose memory is read. */
struct memory {
	int pid;
	bool by_file;
	int file; /* /proc/PID/mem; below 0: it cannot be had */
};

/* process_vm_readv reads its own process also after that gave up its user, but few programs use it; nobody forbids open and pread. */
static struct memory memory_of(int pid)
{
	bool filtered = d9_filtered();
	return (struct memory){pid ? pid : (int)d9_sys0(SYS_getpid), filtered, filtered ? open_proc(pid, "/mem") : -1};
}

static bool read_memory(const struct memory *m, d9_u64 from, void *to, d9_u64 n)
{
	struct iovec l = {to, n}, r = {(void *)from, n};
	if (m->by_file)
		return m->file >= 0 && d9_sys4(SYS_pread64, m->file, (long)to, (long)n, (long)from) == (long)n;
	return d9_sys6(SYS_process_vm_readv, m->pid, (long)&l, 1, (long)&r, 1, 0) == (long)n;
}

/* Looks through a notes segment for the GNU build id. */
static d9_u8 find_build_id(const d9_u8 *p, d9_u64 n, d9_u8 *ret, d9_u8 max)
{
	while (n >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr h;
		memcpy(&h, p, sizeof(h));
		d9_u64 name = ((d9_u64)h.n_namesz + 3) & ~3ull, desc = ((d9_u64)h.n_descsz + 3) & ~3ull,
		       all = sizeof(h) + name + desc;
		if (all > n)
			return 0;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(p + sizeof(h), "GNU", 4) &&
		    h.n_descsz <= max) {
			memcpy(ret, p + sizeof(h) + name, h.n_descsz);
			return (d9_u8)h.n_descsz;
		}
		p += all;
		n -= all;
	}
	return 0;
}

/* The build id of the image whose first byte is mapped at `base`; 0 bytes if it cannot be read. */
static d9_u8 build_id(const struct memory *from, d9_u64 base, d9_u8 *ret, d9_u8 max)
{
	Elf64_Ehdr e;
	if (!read_memory(from, base, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	d9_u64 first = ~0ull;
	for (int i = 0; i < e.e_phnum && i < 32; i++) {
		Elf64_Phdr ph;
		if (!read_memory(from, base + e.e_phoff + (d9_u64)i * sizeof(ph), &ph, sizeof(ph)))
			return 0;
		if (ph.p_type == PT_LOAD && first == ~0ull)
			first = ph.p_vaddr & ~4095ull;
		d9_u8 notes[512];
		d9_u64 n = ph.p_filesz < sizeof(notes) ? ph.p_filesz : sizeof(notes);
		/* Notes may be listed before the first PT_LOAD only in odd files; then vaddr 0 is assumed. */
		d9_u64 at = base + ph.p_vaddr - (first == ~0ull ? 0 : first);
		if (ph.p_type != PT_NOTE || !read_memory(from, at, notes, n))
			continue;
		d9_u8 got = find_build_id(notes, n, ret, max);
		if (got)
			return got;
	}
	return 0;
}

/* Is the mapping in the table already, as this process's or as one it inherited by fork? */
static struct d9_module *find(struct d9_view *v, d9_u32 proc, const struct d9_map_line *m, d9_u32 n)
{
	for (d9_u32 i = 0; i < n; i++) {
		struct d9_module *t = &v->modules[i];
		if (!d9_load_acquire(&t->ready) || t->until_tsc || t->start != m->start || t->end != m->end ||
		    t->offset != m->offset || strncmp(t->path, m->path, sizeof(t->path) - 1))
			continue;
		for (d9_u32 p = proc, hops = 0; p < D9_N_PROCS && hops < 64; p = v->procs[p].parent, hops++)
			if (t->proc == p)
				return t;
	}
	return NULL;
}

static void add(struct d9_view *v, d9_u32 proc, const struct memory *from, const struct d9_map_line *m, d9_u64 image,
		d9_u64 now, bool (*back)(const void *, d9_u64))
{
	d9_u32 i = d9_add_relaxed(&v->h->module_next, 1);
	if (i >= D9_N_MODULES || !back(&v->modules[i], sizeof(struct d9_module))) {
		d9_add_relaxed(&v->h->module_next, -1u);
		return; /* frames of this module stay plain addresses */
	}
	struct d9_module *t = &v->modules[i];
	t->proc = proc;
	t->start = m->start;
	t->end = m->end;
	t->offset = m->offset;
	t->from_tsc = now;
	t->until_tsc = 0;
	t->build_id_bytes = image ? build_id(from, image, t->build_id, sizeof(t->build_id)) : 0;
	struct d9_text path = d9_text_in(t->path, sizeof(t->path));
	d9_text_str(&path, m->path);
	d9_store_release(&t->ready, 1);
}

void d9_modules_add_image(struct d9_view *v, d9_u32 proc, const struct dl_phdr_info *image, d9_u64 now,
			  bool (*back)(const void *, d9_u64))
{
	struct memory mem = memory_of(0);
	d9_u64 first = 0;               /* address of the first byte of the file */
	bool known_first = mem.by_file; /* a descriptor in the program's table: the drainer will read the id */
	for (int i = 0; i < image->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &image->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		d9_u64 start = (image->dlpi_addr + p->p_vaddr) & ~4095ull;
		struct d9_map_line m = {.start = start,
					.end = D9_PAGES(image->dlpi_addr + p->p_vaddr + p->p_memsz),
					.offset = p->p_offset & ~4095ull,
					.exec = p->p_flags & PF_X,
					.path = image->dlpi_name};
		if (!known_first && !m.offset) {
			first = start;
			known_first = true;
		}
		d9_u32 n = d9_load_acquire(&v->h->module_next);
		if (m.exec && !find(v, proc, &m, n < D9_N_MODULES ? n : D9_N_MODULES))
			add(v, proc, &mem, &m, first, now, back);
	}
	if (mem.file >= 0)
		(void)d9_sys1(SYS_close, mem.file);
}

/* 1, 0, or -1: its maps cannot be read. */
static int holds(int pid, const char *path)
{
	struct d9_maps_reader l = {.fd = open_proc(pid, "/maps")};
	struct d9_map_line m;
	int found = 0;
	if (l.fd < 0)
		return -1;
	while (!found && d9_next_mapping(&l, &m))
		found = !strcmp(m.path, path);
	(void)d9_sys1(SYS_close, l.fd);
	return found;
}

bool d9_maps_hold(int pid, const char *path) { return holds(pid, path) > 0; }
bool d9_maps_lack(int pid, const char *path) { return !holds(pid, path); }

/* The id given out last, from /proc/loadavg; -1 = not known. */
static long last_pid(void)
{
	char buf[128];
	if (d9_read_file("/proc/loadavg", buf, sizeof(buf)) <= 0)
		return -1;
	const char *p = strrchr(buf, ' ');
	return (long)d9_decimal(p ? p + 1 : buf, NULL);
}

/* This process's id as /proc has it: in a PID namespace with the /proc of another one it is not what getpid says. */
static int own_name(void)
{
	char buf[16];
	long n = d9_sys3(SYS_readlink, (long)"/proc/self", (long)buf, sizeof(buf) - 1);
	if (n <= 0)
		return (int)d9_sys0(SYS_getpid);
	buf[n] = 0;
	return (int)d9_decimal(buf, NULL);
}

static bool any_other_holds(const char *path)
{
	struct d9_dir d;
	int self = own_name();
	bool found = false;
	if (!d9_dir_open(&d, AT_FDCWD, "/proc"))
		return true; /* cannot be told */
	for (const char *name; !found && (name = d9_dir_next(&d));) {
		int pid = (int)d9_decimal(name, NULL);
		found = pid && pid != self && d9_maps_hold(pid, path);
	}
	d9_dir_close(&d);
	return found;
}

/*
 * A look at /proc is no snapshot: one that forks and ends meanwhile may hide its child.  A look during which no process came to be
 * counts at once.  On a busy machine there is none such; then three in a row must find nobody, which only a chain of processes that
 * each fork and end at the right moments can outlive.
 */
bool d9_maps_held_by_others(const char *path)
{
	for (int looks = 0; looks < 3; looks++) {
		long before = last_pid();
		if (any_other_holds(path))
			return true;
		if (before >= 0 && last_pid() == before)
			return false;
	}
	return false;
}

bool d9_modules_scan(struct d9_view *v, d9_u32 proc, int pid, d9_u64 now, bool (*back)(const void *, d9_u64),
		     d9_u32 *ret_ring)
{
	struct d9_maps_reader l = {.fd = open_proc(pid, "/maps")};
	struct d9_map_line m;
	if (l.fd < 0)
		return false;
	struct memory mem = {.pid = 0, .file = -1};
	d9_u8 seen[D9_N_MODULES / 8] = {0};
	d9_u32 before = d9_load_acquire(&v->h->module_next);
	if (before > D9_N_MODULES)
		before = D9_N_MODULES;
	char image_path[256] = "";
	d9_u64 image = 0;
	while (d9_next_mapping(&l, &m)) {
		if (m.offset == 0 && *m.path) { /* first mapping of a file: its ELF header */
			image = m.start;
			struct d9_text ip = d9_text_in(image_path, sizeof(image_path));
			d9_text_str(&ip, m.path);
		}
		if (ret_ring && !strcmp(m.path, D9_RING_MAPPED))
			*ret_ring = 1;
		if (!m.exec || !*m.path || !strcmp(m.path, "[vsyscall]"))
			continue;
		const struct d9_module *known = find(v, proc, &m, before);
		if (known) {
			seen[(known - v->modules) / 8] |= (d9_u8)(1u << ((known - v->modules) & 7));
			continue;
		}
		if (!mem.pid)
			mem = memory_of(pid);
		add(v, proc, &mem, &m, strncmp(image_path, m.path, sizeof(image_path) - 1) ? 0 : image, now, back);
	}
	if (mem.file >= 0)
		(void)d9_sys1(SYS_close, mem.file);
	(void)d9_sys1(SYS_close, l.fd);
	for (d9_u32 i = 0; i < before; i++)
		if (v->modules[i].proc == proc && v->modules[i].ready && !v->modules[i].until_tsc &&
		    !(seen[i / 8] >> (i & 7) & 1))
			v->modules[i].until_tsc = now;
	return true;
}
