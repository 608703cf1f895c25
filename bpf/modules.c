/* See modules.h. */
#include "modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN_NS 1000000000ull
#define MODULES_MAX 4096 /* of a process */
#define HEADERS_MAX 64
#define NOTES_MAX 4096
#define ID_MAX 32 /* bytes of a build id */

/* ---- build ids ------------------------------------------------------------------------------- */

static bool read_at(int fd, void *to, size_t n, d9_u64 at) { return pread(fd, to, n, (off_t)at) == (ssize_t)n; }

static void to_hex(const d9_u8 *p, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", p[i]);
}

static bool find_id(const d9_u8 *p, size_t n, char ret[2 * ID_MAX + 1])
{
	Elf64_Nhdr h;
	for (size_t name, desc; n >= sizeof(h); p += sizeof(h) + name + desc, n -= sizeof(h) + name + desc) {
		memcpy(&h, p, sizeof(h));
		name = ((size_t)h.n_namesz + 3) & ~(size_t)3;
		desc = ((size_t)h.n_descsz + 3) & ~(size_t)3;
		if (name > n - sizeof(h) || desc > n - sizeof(h) - name)
			return false;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(p + sizeof(h), "GNU", 4) &&
		    h.n_descsz <= ID_MAX) {
			to_hex(p + sizeof(h) + name, h.n_descsz, ret);
			return true;
		}
	}
	return false;
}

static void read_id(int fd, char ret[2 * ID_MAX + 1])
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	d9_u8 notes[NOTES_MAX];
	if (!read_at(fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_phentsize != sizeof(p))
		return;
	for (unsigned i = 0; i < e.e_phnum && i < HEADERS_MAX; i++) {
		if (!read_at(fd, &p, sizeof(p), e.e_phoff + i * sizeof(p)))
			return;
		size_t n = p.p_filesz < sizeof(notes) ? p.p_filesz : sizeof(notes);
		if (p.p_type == PT_NOTE && read_at(fd, notes, n, p.p_offset) && find_id(notes, n, ret))
			return;
	}
}

/* Of the file that is mapped; another one of its path is none of it. */
static void id_of(int pid, const char *path, unsigned long long inode, char ret[2 * ID_MAX + 1])
{
	char name[PATH_MAX + 32];
	struct stat st;
	ret[0] = 0;
	if (*path != '/' || snprintf(name, sizeof(name), "/proc/%d/root%s", pid, path) >= (int)sizeof(name))
		return;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == inode)
		read_id(fd, ret);
	close(fd);
}

/* ---- mappings -------------------------------------------------------------------------------- */

void d9_kmodules_free(struct d9_kmodules *ms)
{
	for (struct d9_kmodule *m = ms->of, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	*ms = (struct d9_kmodules){0};
}

static const struct d9_kmodule *find(const struct d9_kmodules *ms, d9_u64 address)
{
	const struct d9_kmodule *m = ms->of;
	while (m && (address < m->start || address >= m->end))
		m = m->next;
	return m;
}

bool d9_kmodules_have(const struct d9_kmodules *ms, d9_u64 address) { return find(ms, address) != NULL; }

static bool is_known(const struct d9_kmodules *ms, const struct d9_kmodule *as, const char *path)
{
	const struct d9_kmodule *m = find(ms, as->start);
	return m && m->start == as->start && m->end == as->end && m->offset == as->offset &&
	       !strcmp(m->text + strlen(m->text) + 1, path);
}

static void add(struct d9_kmodules *ms, const struct d9_kmodule *as, const char *id, const char *path, d9_u32 *next_id)
{
	size_t n_id = strlen(id) + 1, n = n_id + strlen(path);
	struct d9_kmodule *m = malloc(sizeof(*m) + n + 1);
	if (!m)
		return; /* addresses in it stay plain ones */
	*m = *as;
	m->next = ms->of;
	m->from = d9_kseg_mono();
	m->id = (*next_id)++;
	m->n_text = (d9_u32)n;
	memcpy(m->text, id, n_id);
	strcpy(m->text + n_id, path);
	ms->of = m;
	ms->defined_in = 0;
}

/* "start-end perms offset dev inode   path" */
static void take_line(struct d9_kmodules *ms, int pid, char *line, d9_u32 *next_id)
{
	unsigned long long start, end, offset, inode;
	char perms[8], id[2 * ID_MAX + 1];
	int at = 0;
	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &start, &end, perms, &offset, &inode, &at) < 5 || !at ||
	    perms[2] != 'x' || !line[at])
		return;
	struct d9_kmodule m = {.start = start, .end = end, .offset = offset};
	if (is_known(ms, &m, line + at))
		return;
	id_of(pid, line + at, inode, id);
	add(ms, &m, id, line + at, next_id);
}

int d9_kmodules_look(struct d9_kmodules *ms, int pid, d9_u32 *next_id)
{
	char path[32], line[PATH_MAX + 128];
	d9_u64 now = d9_kseg_mono();
	if (ms->looked && now - ms->looked < AGAIN_NS)
		return 0;
	ms->looked = now;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	for (unsigned n = 0; n < MODULES_MAX && fgets(line, sizeof(line), f); n++)
		take_line(ms, pid, line, next_id);
	int r = ferror(f) ? -EACCES : 0; /* opened, and may not be read */
	fclose(f);
	return r;
}

int d9_kmodules_define(struct d9_kmodules *ms, d9_u32 process, struct d9_kseg *s)
{
	int r = 0;
	if (ms->defined_in == d9_kseg_number(s))
		return 0;
	for (const struct d9_kmodule *m = ms->of; !r && m; m = m->next) {
		struct d9_ev_module e = {.start = m->start,
					 .end = m->end,
					 .offset = m->offset,
					 .from = m->from,
					 .id = m->id,
					 .proc = process};
		r = d9_kseg_add(s, D9_THREAD_NONE, D9_EV_module, &e, D9_TAIL_STRING, m->text, m->n_text);
	}
	if (!r)
		ms->defined_in = d9_kseg_number(s);
	return r;
}
