/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 record` of root: the helper process that gives directories to programs which may not make them, as
 * segment/directory_helper.h says.  It goes on after `dial9 record` has ended while a program lives that may still ask.
 */

#pragma once

#include <stdbool.h>

#include "segment/directory_helper.h"

struct d9__record_directory_helper {
	char text[D9__DIRECTORY_HELPER_TEXT + 1]; /* the variable's value; "" if there is no helper */
	int hold_fd; /* closed by our end, which the helper sees; -1 */
};

/*
 * Start the helper for the trace directory |dir|, absolute.  |made|: it was not there before, and lets others pass once
 * something in it is theirs.  Without a helper, as for all but root, it is
 * as if nobody had asked for one.
 */
void d9__record_directory_helper_begin(struct d9__record_directory_helper *handle, const char *dir, bool made);

/* If the trace directory is empty when the helper ends, it is removed. */
void d9__record_directory_helper_let_go(struct d9__record_directory_helper *handle);

void d9__record_directory_helper_end(struct d9__record_directory_helper *handle);
