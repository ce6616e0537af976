/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "text/fail.h"
#include "watch/recover_dir.h"
#include "watch/recover_users.h"

void d9__recover_dir(const char *command, const char *dir)
{
	struct d9__recover_users users;
	struct d9__recovered found;
	char why[D9__RECOVER_WHY_LEN];

	if (d9__recover_users_begin(&users, dir, NULL, 0))
		return;
	while (d9__recover_users_next(&users, &found) == 1)
		if (found.err)
			d9__cmd_fail(command, "%s: cannot recover what was not written: %s%s", found.dir, strerror(-found.err),
				     d9__recover_why(why, &found));
	d9__recover_users_end(&users);
}
