/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redact: a segment once more, without what rules name.  Every byte of the new one was put there
 * because something that stays needs it: texts and stacks of the pools are defined where the first
 * event that refers to them stands, so what only dropped events and emptied fields refer to is
 * gone.
 */

#pragma once

#include <stddef.h>

#include "stage/redact_rules.h"

/*
 * Write the segment |from| to |to|, packed as it was.  0; -EBADMSG for a damaged or cut one, |why|
 * says where; -ENOMEM, or an error of reading or writing.  After an error |to| is worth nothing.
 */
int d9__redact(struct d9__redact_rules *rules, int from, int to, char *why, size_t why_size);
