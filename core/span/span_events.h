/* SPDX-License-Identifier: Apache-2.0 */
/* Span events: enter, exit and close as the wire wants them, FORMAT.md section 9. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/schema.h"
#include "ring/slot.h"

#define D9__SPAN_VALUES_MAX 16u

/* Worker of a thread that runs no loop. */
#define D9__SPAN_NO_WORKER 255u

/* The properties of a span that never change.  Lives as long as the process. */
struct d9__span_event_type {
	uint32_t enter, exit; /* type ids */
	uint32_t origin, target, file, level; /* name handles; D9__NAME_EMPTY: none */
	uint32_t line;
	uint16_t n_fields;
	uint16_t pooled; /* a bit per field that holds a name */
	struct d9__span_field {
		const char *name;
		uint8_t type; /* on the wire, without the optional bit */
	} fields[D9__SPAN_VALUES_MAX];
};

/* The values of a span that an event has. */
struct d9__span_state {
	const struct d9__span_event_type *type;
	uint64_t id, parent; /* |parent| 0: none */
	uint32_t name;	     /* handle */
	/*
	 * The values as they are written: one after the other, each a byte that says whether it is
	 * there and what the type wants; a handle where an id of the chunk goes.
	 */
	const uint8_t *values;
	const uint16_t *at; /* where each begins; behind the last, where they end */
};

/* A call of the program by a loop library inside its own callback, as one event tells it. */
struct d9__span_call {
	uint32_t type;	       /* d9__span_call_register() */
	uint32_t name;	       /* handle */
	uint64_t start_ns, id; /* |id| 0: nothing refers to it */
};

/* The further values of a close. */
struct d9__span_times {
	uint64_t start_ns, first_ns; /* |first_ns| 0: never entered */
	uint64_t active_ns;
	uint32_t unbalanced; /* exits that the recorder wrote on its own */
};

/*
 * Register "SpanEnter:|origin|" and "SpanExit:|origin|", with the |n| |fields| of the program behind
 * the dialect's own, each optional, and set |type|'s ids and fields.  Names of fields are kept, not
 * copied.  0 or as d9__schema_register().
 */
int d9__span_type_register(struct d9__span_event_type *type, const char *origin,
			   const struct d9__field *fields, uint16_t n);

/* Register "SpanCall:|library|".  Its type id or as d9__schema_register(). */
int d9__span_call_register(const char *library);

/* Write an event.  False: lost and counted. */
bool d9__span_write_enter(struct d9__slot *slot, uint64_t ns, uint32_t worker,
			  const struct d9__span_state *span);
bool d9__span_write_exit(struct d9__slot *slot, uint64_t ns, uint32_t worker,
			 const struct d9__span_state *span);
bool d9__span_write_close(struct d9__slot *slot, uint64_t ns, const struct d9__span_state *span,
			  const struct d9__span_times *times);

/* Write |call|, which returned at |ns|. */
bool d9__span_write_call(struct d9__slot *slot, uint64_t ns, uint32_t worker,
			 const struct d9__span_call *call);

/* A call that made no sense; |mistake| is a name handle. */
void d9__span_write_misuse(struct d9__slot *slot, uint64_t ns, uint32_t worker, uint64_t id,
			   uint32_t name, uint32_t mistake);
