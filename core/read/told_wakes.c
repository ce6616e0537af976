/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/told_wakes.h"

#include <errno.h>
#include <string.h>

#define FIELDS 4

/* As recorders define it, behind tag and type id: the set knows it if any event of the trace tells
 * a wake. */
static const uint8_t definition[] = "\x0e\0WakeEventEvent\x01\x04\0"
				    "\x0d\0waker_task_id\x09"
				    "\x0d\0woken_task_id\x09"
				    "\x0d\0target_worker\x0b"
				    "\x06\0reason\x0b";

const uint8_t *d9__told_wake_definition(size_t *len)
{
	*len = sizeof(definition) - 1;
	return definition;
}

bool d9__told_wake_is(const struct d9_schema *schema)
{
	return schema->definition_len == sizeof(definition) - 1 &&
	       !memcmp(schema->definition, definition, sizeof(definition) - 1);
}

static void put(struct d9_value *to, enum d9_field_type type, uint64_t value)
{
	/* Field by field: compilers make a whole value in other memory first. */
	to->type = type;
	to->present = true;
	to->unresolved = false;
	to->u.u64 = value;
}

int d9__told_wake_schema(struct d9__definitions *set, const struct d9_schema **out)
{
	return d9__definitions_intern(set, definition, sizeof(definition) - 1, NULL, 0, out);
}

int d9__told_wake_values(const struct d9__poll_wake *wake, struct d9__values *values)
{
	if (d9__values_room(values, FIELDS))
		return -ENOMEM;
	put(&values->items[0], D9_FIELD_VARINT, wake->waker);
	put(&values->items[1], D9_FIELD_VARINT, wake->woken);
	put(&values->items[2], D9_FIELD_U8, wake->worker < 255 ? wake->worker : 255);
	put(&values->items[3], D9_FIELD_U8, wake->reason);
	return 0;
}
