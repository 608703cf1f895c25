#include "member.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool d9_members_are_here(const struct d9_arena_header *h)
{
	struct stat st;
	return h->pid_ns && !stat("/proc/self/ns/pid", &st) && st.st_ino == h->pid_ns;
}

/* State and start time (fields 3 and 22) of /proc/PID/stat. */
static bool read_stat(int pid, char *ret_state, d9_u64 *ret_start)
{
	char path[32], line[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	const char *p = strrchr(line, ')'); /* the name may hold anything */
	if (!p || p[1] != ' ')
		return false;
	*ret_state = p[2];
	p += 2;
	for (int field = 3; field < 22 && *p; field++) {
		p += strcspn(p, " ");
		p += *p == ' ';
	}
	*ret_start = strtoull(p, NULL, 10);
	return true;
}

/* -1: may not be looked at. */
static int has_mapped(int pid, ino_t inode)
{
	char path[32], *line = NULL;
	size_t room = 0;
	int found = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	while (!found && getline(&line, &room, f) > 0) {
		unsigned long long ino = 0;
		found = sscanf(line, "%*s %*s %*s %*s %llu", &ino) == 1 && ino == inode;
	}
	free(line);
	fclose(f);
	return found;
}

bool d9_member_runs(const struct d9_proc *p, ino_t arena, d9_u64 *ret_start)
{
	char state;
	d9_u64 start;
	if (p->state != D9_PROC_LIVE || p->pid <= 0)
		return false;
	if (!read_stat(p->pid, &state, &start))
		return !kill(p->pid, 0) || errno == EPERM;
	if (state == 'X' || (p->start && p->start != start) || has_mapped(p->pid, arena) == 0)
		return false; /* gone, another one of this number, or another program since */
	*ret_start = start;
	return true;
}
