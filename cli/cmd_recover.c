/* d9 recover: what families left in shared memory when they died, written to the segments where it belongs. */
#include "cmd.h"

#include "format/segment.h"
#include "shim/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One process folder. Counts what was done; 0 or an exit code. */
static int recover_one(const char *path, unsigned *families, unsigned long *records)
{
	char link[PATH_MAX];
	if (snprintf(link, sizeof(link), "%s/arena", path) >= (int)sizeof(link))
		return D9_EXIT_OK;
	if (readlink(link, (char[2]){0}, 1) < 0) {
		const char *base = strrchr(path, '/');
		if (errno == EACCES && d9_is_folder_name(base ? base + 1 : path))
			return d9_fail(D9_EXIT_PERMISSION,
				       "%s: no permission to look into it; use the user that records there, or root",
				       path);
		return D9_EXIT_OK; /* nothing left behind here */
	}
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = dir < 0 ? -errno : d9_adopt_dead(dir, D9_LEASE_RECOVER);
	if (r >= 0) {
		(*families)++;
		*records += (unsigned long)r;
		return D9_EXIT_OK;
	}
	switch (r) {
	case -EBUSY:
	case -EAGAIN:
		return D9_EXIT_OK; /* alive, or being drained: not ours to touch */
	case -ENOENT:
		unlink(link); /* its memory is gone: a reboot, or somebody removed it */
		return d9_fail(D9_EXIT_DATA, "%s: its session memory is gone; what reached the segments is there",
			       path);
	case -EPERM:
	case -EACCES:
		return d9_fail(D9_EXIT_PERMISSION,
			       "%s: its session memory belongs to another user than the folder, or than you; use that "
			       "user or root",
			       path);
	case -ESTALE:
		return d9_fail(D9_EXIT_DATA, "%s: its session memory is of an earlier boot; remove the link `arena`",
			       path);
	case -EBADMSG:
		return d9_fail(D9_EXIT_DATA, "%s: `arena` is no session memory of this version", path);
	default:
		return d9_fail(D9_EXIT_DATA, "%s: cannot be recovered: %s", path, strerror(-r));
	}
}

int d9_cmd_recover(const struct d9_cmd *self, int argc, char **argv)
{
	struct d9_read_opts o;
	struct dirent **names;
	unsigned families = 0;
	unsigned long records = 0;
	int r = d9_read_opts_parse(self, argc, argv, 0, NULL, 0, &o);
	if (r)
		return r - 1;
	int code = recover_one(o.dir, &families, &records);
	int n = scandir(o.dir, &names, NULL, alphasort);
	if (n < 0)
		return code ? code
			    : d9_fail(errno == EACCES ? D9_EXIT_PERMISSION : D9_EXIT_DATA, "cannot read %s: %s", o.dir,
				      strerror(errno));
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];
		if (names[i]->d_name[0] != '.' &&
		    snprintf(path, sizeof(path), "%s/%s", o.dir, names[i]->d_name) < (int)sizeof(path) &&
		    !d9_is_link(path)) {
			int one = recover_one(path, &families, &records);
			code = one > code ? one : code;
		}
		free(names[i]);
	}
	free(names);
	printf("recovered %lu records of %u famil%s\n", records, families, families == 1 ? "y" : "ies");
	return code;
}
