/* Reads a JIT's map.  Code moves and memory is used again, so that the last entry for an address holds. */
#include "perf_map.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAP_BYTES_MAX (256u << 20)

struct entry {
	d9_u64 start, bytes;
	const char *name;
};
struct d9_perf_map {
	char *text;            /* the file, names ended by NUL */
	struct entry *entries; /* in the file's order */
	size_t n, capacity;
};

static char *read_text(int fd, size_t bytes)
{
	char *text = malloc(bytes + 1);
	size_t n = 0;
	while (text && n < bytes) {
		ssize_t r = read(fd, text + n, bytes - n);
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	if (text)
		text[n] = 0;
	return text;
}

static char *open_text(int pid)
{
	char path[64], *text = NULL;
	struct stat st;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
	    st.st_size > 0 && st.st_size <= MAP_BYTES_MAX)
		text = read_text(fd, (size_t)st.st_size);
	close(fd);
	return text;
}

static bool add(struct d9_perf_map *m, struct entry e)
{
	if (m->n == m->capacity) {
		size_t more = m->capacity ? m->capacity * 2 : 1024;
		void *p = realloc(m->entries, more * sizeof(e));
		if (!p)
			return false;
		m->entries = p;
		m->capacity = more;
	}
	m->entries[m->n++] = e;
	return true;
}

/* A line; its end is a NUL already. */
static bool parse_line(char *line, struct entry *ret)
{
	char *p;
	ret->start = strtoull(line, &p, 16);
	if (p == line || *p != ' ')
		return false;
	line = p + 1;
	ret->bytes = strtoull(line, &p, 16);
	if (p == line || *p != ' ' || !p[1])
		return false;
	ret->name = p + 1;
	return ret->bytes && ret->start + ret->bytes > ret->start;
}

struct d9_perf_map *d9_perf_map_open(int pid)
{
	char *text = open_text(pid);
	struct d9_perf_map *m = text ? calloc(1, sizeof(*m)) : NULL;
	if (!m) {
		free(text);
		return NULL;
	}
	m->text = text;
	for (char *line = text, *end; (end = strchr(line, '\n'));
	     line = end + 1) { /* an unfinished last line is left out */
		struct entry e;
		*end = 0;
		if (parse_line(line, &e) && !add(m, e))
			break;
	}
	return m;
}

void d9_perf_map_free(struct d9_perf_map *m)
{
	if (!m)
		return;
	free(m->entries);
	free(m->text);
	free(m);
}

/* Linear, from the newest on: entries overlap, and a caller asks for each address once. */
const char *d9_perf_map_find(const struct d9_perf_map *m, d9_u64 address, d9_u64 *ret_start)
{
	for (size_t i = m ? m->n : 0; i-- > 0;)
		if (address - m->entries[i].start < m->entries[i].bytes) {
			*ret_start = m->entries[i].start;
			return m->entries[i].name;
		}
	return NULL;
}
