/* SPDX-License-Identifier: Apache-2.0 */
/* One event as one line: JSON for programs, columns for people. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "text/text.h"

struct d9__symbolizer;

/* A field name as it stands before its value. */
struct d9__line_field {
	char *json; /* ,"worker_id": */
	size_t json_len;
	char *text; /* worker_id= */
	size_t text_len;
	const char *unit;  /* annotation, or NULL */
	bool is_address;   /* a number that text shows as a function or in hex */
	bool is_return;    /* of these, or the innermost of a stack, one behind a call */
	bool is_spawn_loc; /* CALLBACK @ SITE */
	bool is_reason;    /* of a wake */
};

/* The parts of a line that are the same for all events of a schema. */
struct d9__line_shape {
	bool ready;
	char *json; /* {"event":"PollStartEvent","timestamp_ns": */
	size_t json_len;
	const char *name;
	size_t name_len;
	int worker; /* index of worker_id, or -1 */
	struct d9__line_field *fields;
	size_t n_fields;
};

struct d9__event_lines {
	struct d9__text_out *out;
	struct d9__symbolizer *symbols; /* borrowed; NULL: addresses stay numbers */
	const char *process;  /* borrowed: label of the next event's process; NULL: there is one */
	size_t process_width; /* of the longest label */
	const struct d9_span_fields *spans; /* borrowed: has taken the event; NULL: nothing is inherited */
	uint64_t at_ns; /* of the event that is being written */
	bool has_origin;
	uint64_t origin_ns; /* text: time 0, the first event with a time */
	struct d9__line_shape *shapes; /* by d9_schema_id() */
	size_t n_shapes;
};

void d9__event_lines_init(struct d9__event_lines *lines, struct d9__text_out *out,
			  struct d9__symbolizer *symbols);
void d9__event_lines_release(struct d9__event_lines *lines);

/* Write |event| as a JSON object and a newline.  0 or -ENOMEM. */
int d9__event_lines_json(struct d9__event_lines *lines, const struct d9_event *event);

/* Write |event| as text and a newline.  0 or -ENOMEM. */
int d9__event_lines_text(struct d9__event_lines *lines, const struct d9_event *event);

/* The fields of |event| as in a text line, and a newline: " a=1 b=2".  0 or -ENOMEM. */
int d9__event_lines_fields(struct d9__event_lines *lines, const struct d9_event *event);

/* The integer in |value|; false if it is absent, no integer or negative. */
static inline bool d9__value_u64(const struct d9_value *value, uint64_t *out)
{
	if (!value->present)
		return false;
	switch (value->type) {
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		*out = value->u.u64;
		return true;
	case D9_FIELD_I64:
		*out = (uint64_t)value->u.i64;
		return value->u.i64 >= 0;
	default:
		return false;
	}
}
