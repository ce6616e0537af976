/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: where the trace goes. */

#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#define D9__RECORD_DIR "./dial9-traces"

struct d9__record_dir {
	char path[PATH_MAX];
	const char *why_not; /* D9__RECORD_DIR was not taken, and this one instead; NULL */
	bool shared;	     /* -EPERM: other users may write to it, so recorders refuse it */
	bool made;    /* it was not there */
	bool foreign; /* it is another user's: CMD's, if CMD becomes that user */
};

/*
 * Make |wanted| and its missing parents, mode 0700.  NULL: dial9-traces in systemd's
 * $STATE_DIRECTORY, or D9__RECORD_DIR, or, if that fails, a folder of this user alone in $TMPDIR,
 * /tmp or /dev/shm.  Returns 0, or -errno for the directory in |out->path|.
 */
int d9__record_dir_make(const char *wanted, struct d9__record_dir *out);

/*
 * True if the path does not lead to the directory of |st| any more, because it was moved or
 * removed.
 */
bool d9__record_dir_is_gone(const struct d9__record_dir *dir, const struct stat *st);

/* Why |dir| could not be made or is not fit, which was |err|. */
const char *d9__record_dir_fault(const struct d9__record_dir *dir, int err);
