/*
 * ASan ends a program in which its library is not the first one that the loader lists, and ours stands before all that a program
 * needs.  So a program that needs libasan as a library is executed without our entry in LD_PRELOAD: it runs as ever, unrecorded, and
 * the report says so.  One for which libasan stands before us already, as `d9 run` puts it, is recorded.
 *
 * Called by the hooks of exec and posix_spawn, in forked and vfork children too: raw system calls, no memory but the stack.  What cannot be
 * read is left as it is.  The descriptor is open for some microseconds; where another thread may see it, in posix_spawn, it is
 * closed on exec.
 */
#include "exec_env.h"
#include "arena.h"
#include "lifecycle.h"
#include "preload.h"
#include "sys.h"
#include "text.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

extern char **environ;

#define PATH_ROOM 384u
#define MOST_BYTES 16384u /* beyond it the stack may not have room: the environment stays as it is */
#define MOST_HEADERS 64u

/* Length of a string that may be none, -1 if it is none or as long as max. */
static long text_length(const char *s, long max)
{
	for (long n = 0; s && n < max; n++) {
		if ((!n || !((d9_u64)(s + n) & 4095)) && !d9_can_read(s + n))
			return -1;
		if (!s[n])
			return n;
	}
	return -1;
}

/* ---- the file -------------------------------------------------------------------------------------------- */

static bool get(int fd, void *to, size_t n, d9_u64 at)
{
	return d9_sys4(SYS_pread64, fd, (long)to, (long)n, (long)at) == (long)n;
}

struct elf {
	int fd;
	Elf64_Ehdr h;
	Elf64_Phdr dynamic;
};

/* The first program header of this type that holds the address. */
static bool find_header(const struct elf *e, d9_u32 type, d9_u64 address, Elf64_Phdr *ret)
{
	for (d9_u32 i = 0; i < e->h.e_phnum && i < MOST_HEADERS; i++)
		if (!get(e->fd, ret, sizeof(*ret), e->h.e_phoff + i * sizeof(*ret)))
			return false;
		else if (ret->p_type == type && (!address || address - ret->p_vaddr < ret->p_filesz))
			return true;
	return false;
}

/* Does the name stand for ASan's library, gcc's or clang's? */
static bool is_asan(const char *name, size_t n)
{
	static const char gcc[] = "libasan.so", clang[] = "libclang_rt.asan";
	for (const char *p = name; p < name + n; p++)
		if (*p == '/')
			return is_asan(p + 1, n - (size_t)(p + 1 - name));
	return (n >= sizeof(gcc) - 1 && !memcmp(name, gcc, sizeof(gcc) - 1)) ||
	       (n >= sizeof(clang) - 1 && !memcmp(name, clang, sizeof(clang) - 1));
}

/* Value of the first entry of this tag; with `strings`, the place of the strings, whether an entry of it names ASan. */
static bool look_dynamic(const struct elf *e, d9_i64 tag, d9_u64 strings, d9_u64 *ret)
{
	Elf64_Dyn d[8];
	char name[32] = "";
	d9_u64 end = e->dynamic.p_filesz < 4096 ? e->dynamic.p_filesz : 4096;
	for (d9_u64 at = 0; at + sizeof(*d) <= end; at += sizeof(d)) {
		size_t n = end - at < sizeof(d) ? (end - at) / sizeof(*d) : 8;
		if (!get(e->fd, d, n * sizeof(*d), e->dynamic.p_offset + at))
			return false;
		for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
			if (d[i].d_tag != tag)
				continue;
			*ret = d[i].d_un.d_val;
			if (!strings ||
			    (d9_sys4(SYS_pread64, e->fd, (long)name, sizeof(name) - 1, (long)(strings + *ret)) > 0 &&
			     is_asan(name, strlen(name))))
				return true;
		}
	}
	return false;
}

static __attribute__((noinline)) bool file_needs_asan(int fd)
{
	struct elf e = {.fd = fd};
	Elf64_Phdr load;
	d9_u64 address, name;
	return get(fd, &e.h, sizeof(e.h), 0) && !memcmp(e.h.e_ident, ELFMAG, SELFMAG) &&
	       e.h.e_ident[EI_CLASS] == ELFCLASS64 && e.h.e_machine == EM_X86_64 &&
	       e.h.e_phentsize == sizeof(Elf64_Phdr) && find_header(&e, PT_DYNAMIC, 0, &e.dynamic) &&
	       look_dynamic(&e, DT_STRTAB, 0, &address) && address && find_header(&e, PT_LOAD, address, &load) &&
	       look_dynamic(&e, DT_NEEDED, address - load.p_vaddr + load.p_offset, &name);
}

/* Only of files is it known that opening them has no effect. */
static __attribute__((noinline)) bool is_program(const char *path)
{
	struct stat st;
	return !d9_sys2(SYS_stat, (long)path, (long)&st) && S_ISREG(st.st_mode) && st.st_mode & 0111;
}

static bool path_needs_asan(const char *path)
{
	long fd = d9_sys3(SYS_open, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return false;
	bool needs = file_needs_asan((int)fd);
	(void)d9_sys1(SYS_close, fd);
	return needs;
}

/* As execvp looks for it. */
static bool search_needs_asan(const char *name)
{
	const char *list = "/bin:/usr/bin";
	char path[PATH_ROOM];
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "PATH=", 5)) {
			list = *e + 5;
			break;
		}
	for (const char *p = list;; p++) {
		struct d9_text t = d9_text_in(path, sizeof(path));
		for (; *p && *p != ':'; p++)
			d9_text_char(&t, *p);
		if (t.n)
			d9_text_char(&t, '/');
		d9_text_str(&t, name);
		if (t.n + 1 == t.size)
			return false; /* cut: another file would be looked at */
		if (is_program(path))
			return path_needs_asan(path);
		if (!*p)
			return false;
	}
}

static bool needs_asan(const struct d9_exec_file *f)
{
	if (!f->path)
		return file_needs_asan(f->fd);
	if (text_length(f->path, 4096) < 1)
		return false;
	return f->search && !strchr(f->path, '/') ? search_needs_asan(f->path)
						  : is_program(f->path) && path_needs_asan(f->path);
}

/* ---- the environment --------------------------------------------------------------------------------------- */

/* Is this an LD_PRELOAD in which we stand, and ASan's library not before us?  *ret_bytes: its length with the NUL. */
static bool keeps_it_from_starting(const char *entry, size_t *ret_bytes)
{
	if (text_length(entry, 12) >= 0 || !d9_can_read(entry) || !d9_can_read(entry + 11) ||
	    memcmp(entry, "LD_PRELOAD=", 11) != 0)
		return false;
	long n = text_length(entry, MOST_BYTES);
	if (n < 0)
		return false;
	*ret_bytes = (size_t)n + 1;
	for (const char *from = entry + 11; *from;) {
		size_t len = strcspn(from, ": ");
		if (is_asan(from, len))
			return false;
		if (d9_preload_is_ours(from, from + len, d9_shim.library))
			return true;
		from += len + (from[len] != 0);
	}
	return false;
}

size_t d9_exec_env_bytes(const struct d9_exec_file *f, char *const *envp)
{
	size_t n = 0, texts = 0, bytes;
	if (!d9_shim.library || !*d9_shim.library || d9_shim.filtered || !needs_asan(f))
		return 0;
	for (;; n++) {
		if (n * sizeof(*envp) > MOST_BYTES || ((!n || !((d9_u64)(envp + n) & 4095)) && !d9_can_read(envp + n)))
			return 0;
		if (!envp[n])
			break;
		if (keeps_it_from_starting(envp[n], &bytes))
			texts += bytes;
	}
	bytes = (n + 1) * sizeof(*envp) + texts;
	if (!texts || bytes > MOST_BYTES)
		return 0;
	d9_shim_unseen_anywhere(
		f->path ? f->path : "a program",
		" is not recorded: it needs libasan, which does not let it start after another library");
	return bytes;
}

char *const *d9_exec_env(void *room, size_t bytes, char *const *envp)
{
	size_t n = 0, length;
	for (size_t i = 0; envp[i]; i++)
		n++;
	char **to = room, *text = (char *)(to + n + 1), *end = (char *)room + bytes;
	if ((n + 1) * sizeof(*to) > bytes)
		return envp;
	for (size_t i = 0; i < n; i++) {
		to[i] = envp[i];
		if (!keeps_it_from_starting(envp[i], &length))
			continue;
		if (length > (size_t)(end - text))
			return envp;
		memcpy(text, envp[i], length);
		d9_preload_take_out(text + 11, d9_shim.library);
		to[i] = text;
		text += length;
	}
	to[n] = NULL;
	return to;
}
