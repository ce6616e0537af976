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
 * Start the helper for the trace directory |dir|, an absolute path.  |made|: `dial9 record` made
 * it, so the helper lets other users pass once one of them has a trace in it.  Does nothing unless
 * this user is root.
 */
void d9__record_directory_helper_begin(struct d9__record_directory_helper *handle, const char *dir, bool made);

/* Let the helper remove the trace directory at its end if it is empty then. */
void d9__record_directory_helper_let_go(struct d9__record_directory_helper *handle);

void d9__record_directory_helper_end(struct d9__record_directory_helper *handle);
