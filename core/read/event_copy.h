/* SPDX-License-Identifier: Apache-2.0 */
/* Event copy: an event that outlives the next one. */

#pragma once

#include <dial9/reader.h>

#include "base/arena.h"

/*
 * Copy |event|, and all that it borrows but its schema, into |arena|: |*out|.  Lists and maps are
 * absent in the copy, because none of the built-in events has any.  0 or -ENOMEM.
 */
int d9__event_copy(struct d9__arena *arena, const struct d9_event *event, struct d9_event *out);

/* d9__event_copy() of an event of |schema| that has its |values| already.  0 or -ENOMEM. */
int d9__event_copy_borrowed(struct d9__arena *arena, const struct d9_schema *schema,
			    struct d9_value *values);
