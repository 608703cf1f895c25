#include "member.h"

#include "shim/files.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

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
	struct d9_pid_stat st;
	if (p->state != D9_PROC_LIVE || p->pid <= 0)
		return false;
	if (!d9_pid_stat(p->pid, &st))
		return !kill(p->pid, 0) || errno == EPERM;
	if (st.state == 'X' || (p->start && p->start != st.start) || has_mapped(p->pid, arena) == 0)
		return false; /* gone, another one of this number, or another program since */
	*ret_start = st.start;
	return true;
}
