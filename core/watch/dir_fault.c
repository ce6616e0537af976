/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "watch/dir_fault.h"

static bool explain(char out[D9__DIR_FAULT_LEN], const char *dir, uid_t uid, enum d9__dir_use use, int err)
{
	struct stat st;
	unsigned mode;

	if (lstat(dir, &st) || !S_ISDIR(st.st_mode))
		return false;
	mode = st.st_mode & 07777;
	if (st.st_uid != uid && (use == D9__DIR_TRACE || err == -EACCES))
		snprintf(out, D9__DIR_FAULT_LEN,
			 "; %s belongs to user %u, and the process runs as %u: give it to that user, or name "
			 "another directory", dir, (unsigned)st.st_uid, (unsigned)uid);
	else if (err == -EPERM && mode & 022 && (use == D9__DIR_TRACE || !(mode & S_ISVTX)))
		snprintf(out, D9__DIR_FAULT_LEN, "; others may write to %s (mode %04o): chmod go-w %s", dir,
			 mode, dir);
	else if (err == -EACCES && (mode & 0300) != 0300)
		snprintf(out, D9__DIR_FAULT_LEN, "; its own user may not write to %s (mode %04o): chmod u+rwx %s",
			 dir, mode, dir);
	else
		return false;
	return true;
}

const char *d9__dir_fault(char out[D9__DIR_FAULT_LEN], pid_t pid, const char *dir, const char *boot_id,
			  enum d9__dir_use use, int err)
{
	char below[PATH_MAX];
	uid_t uid;
	gid_t gid;

	out[0] = '\0';
	if ((err != -EPERM && err != -EACCES) || !d9__proc_user(pid, &uid, &gid) ||
	    explain(out, dir, uid, use, err))
		return out;
	if (snprintf(below, sizeof(below), "%s/%s", dir, boot_id) < (int)sizeof(below))
		explain(out, below, uid, D9__DIR_TRACE, err);
	return out;
}
