/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: where the trace goes. */

#ifndef D9_CLI_RECORD_DIR_H
#define D9_CLI_RECORD_DIR_H

#include <limits.h>
#include <stdbool.h>

#define D9__RECORD_DIR "./dial9-traces"

struct d9__record_dir {
	char path[PATH_MAX];
	int why_not; /* -errno: D9__RECORD_DIR cannot be written, and another was taken; 0 */
	bool shared;  /* -EPERM is because others may write to it: recorders refuse it */
	bool made;    /* it was not there */
	bool foreign; /* it is another user's: of CMD's, if CMD becomes that user */
};

/*
 * Make |wanted|, mode 0700, and what leads to it.  NULL: D9__RECORD_DIR or, where the file system is
 * read-only, full, or somebody else's, a folder of this user's alone in $TMPDIR, /tmp or /dev/shm.
 * 0, or -errno for the directory in |out->path|.
 */
int d9__record_dir_make(const char *wanted, struct d9__record_dir *out);

#endif /* D9_CLI_RECORD_DIR_H */
