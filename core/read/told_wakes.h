/* SPDX-License-Identifier: Apache-2.0 */
/* Told wakes: what PollStart tells of its wake, as the WakeEvent that it stands for. */

#pragma once

#include "format/poll_wakes.h"
#include "format/values.h"

#define D9__TOLD_WAKE_DEFINITION_MAX 128u

/* A WakeEvent as recorders define it, behind tag and type id. */
const uint8_t *d9__told_wake_definition(size_t *len);

/* Whether |schema| is just that. */
bool d9__told_wake_is(const struct d9_schema *schema);

/* The schema of such an event, out of |set|.  0, -ENOMEM, -EFBIG. */
int d9__told_wake_schema(struct d9__definitions *set, const struct d9_schema **out);

/* Make |values| those of a WakeEvent for |wake|.  0 or -ENOMEM. */
int d9__told_wake_values(const struct d9__poll_wake *wake, struct d9__values *values);

/* |values| are of an event of |schema|: if that is a poll, its wake is left to an event of its own.
 */
static inline void d9__told_wake_settle(const struct d9_schema *schema, struct d9__values *values)
{
	if (schema->tells_wakes && schema->kind == D9_EVENT_POLL_START)
		values->items[schema->known[D9_POLL_START_WAKE]].present = false;
}
