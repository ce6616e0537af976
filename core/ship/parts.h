/* SPDX-License-Identifier: Apache-2.0 */
/* Parts: a job that uploads in parts: a request that begins it, one a part, one that puts them
 * together. */

#pragma once

#include <stdbool.h>

#include "ship/job.h"

#define D9__PART_SIZE (UINT64_C(16) << 20)

/* Send the request of |job|'s step.  0 or -errno. */
int d9__parts_ask(struct d9__session *session, struct d9__job *job);

/*
 * Advance |job| after a step that succeeded.  True: another step follows.  False: |*code| is an
 * error, or NULL after the last step.
 */
bool d9__parts_advance(struct d9__job *job, const char **code);
