/* SPDX-License-Identifier: Apache-2.0 */
/* Event types: what the recorder itself writes as one table, and the program's own types. */

#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "format/schema.h"

/* Fixed for the process, so that batches of all threads agree.  0 is never used. */
enum d9__event_type {
	/* The hot ones: their schemas are in the preamble of every batch. */
	D9__EVENT_POLL_START = 1,
	D9__EVENT_POLL_END,
	D9__EVENT_PARK,
	D9__EVENT_UNPARK,
	D9__EVENT_WAKE,
	D9__EVENT_TASK_SPAWN,
	D9__EVENT_TASK_TERMINATE,
	D9__EVENT_HOT_LAST = D9__EVENT_TASK_TERMINATE,

	/* Defined in a batch at their first use there. */
	D9__EVENT_CLOCK_SYNC,
	D9__EVENT_SEGMENT_METADATA,
	D9__EVENT_QUEUE_SAMPLE,
	D9__EVENT_RESOURCE_USAGE,
	D9__EVENT_TCP_ACCEPT_QUEUE,
	D9__EVENT_LOOP_TASKS,
	D9__EVENT_MODULE,
	D9__EVENT_LOSS,
	D9__EVENT_HEALTH,
	D9__EVENT_SPAN_CLOSE,
	D9__EVENT_SPAN_OPEN,
	D9__EVENT_SPAN_MISUSE,
	D9__EVENT_STUCK_POLL,
	D9__EVENT_LAST_SIGN,
	D9__EVENT_PROCESS_STATE,
	D9__EVENT_OFF_CPU,
	D9__EVENT_CPU_SAMPLE,
	D9__EVENT_BLOCKING_CALL,
	D9__EVENT_TASK_IO,
	D9__EVENT_TASK_DUMP,
	D9__EVENT_SYMBOL,
	D9__EVENT_ALLOC,
	D9__EVENT_FREE,
	D9__EVENT_MEMORY_OVERFLOW,
	D9__EVENT_LOG,
	D9__EVENT_DUMP_TRIGGER,
	D9__EVENT_LOOP_OUTSIDE,
	D9__EVENT_PROCESS_STOPPED,
	D9__EVENT_RUN_QUEUE,
	D9__EVENT_BOUND_THREAD,
	D9__EVENT_BUILTIN_END,

	D9__EVENT_PROGRAM = 256, /* first id of types that the program defines */
};

#define D9__TYPES_MAX 4096u /* ids below this */

/* The fields that each "SpanEnter:ORIGIN" begins with. */
#define D9__SPAN_ENTER_FIELDS 6u
extern const struct d9__field d9__span_enter_fields[D9__SPAN_ENTER_FIELDS];

/* The type id of "SpanEnter:|library|", registered if it has to be; below 0: as
 * d9__schema_register(). */
int d9__span_enter_of(const char *library);

/*
 * True if events are written as before FORMAT.md of 2026-11-29: one fact in several events.  Set by
 * the recorder when it starts.  For tests.
 */
extern _Atomic(uint32_t) d9__event_types_old;

#define D9__OLD_EVENTS	   1u
#define D9__OLD_EVENTS_TOO 2u /* wakes are told both ways, for who compares */

static inline uint32_t d9__old_events(void)
{
	return (uint32_t)__builtin_expect(
		atomic_load_explicit(&d9__event_types_old, memory_order_relaxed), 0);
}

/* Frames that a batch needs before the first event of a type: schema, then annotations. */
struct d9__type_frames {
	uint32_t len;
	uint8_t bytes[];
};

/*
 * Encode the frames of the built-in types and the preamble.  Idempotent.  0 or -ENOMEM.
 * Called by d9__ring_start(); nothing below works before.
 */
int d9__event_types_init(void);

/*
 * A type id for |schema|, which is copied.  An equal schema gets the same id again.  Takes a
 * mutex and allocates.  The id (256 or above), -EINVAL (field types, names), -ENOSPC (no id
 * left), -E2BIG (the frames exceed 8 KiB), -ENOMEM.
 */
int d9__schema_register(const struct d9__schema *schema);

/* The frames of |type_id|, borrowed for ever; NULL if there is no such type.  Any thread. */
const struct d9__type_frames *d9__event_type_frames(uint32_t type_id);

/* Return a bound above the ids of types that the program defined.  Any thread. */
uint32_t d9__event_types_end(void);

/* The schema of a built-in type; NULL if there is none. */
const struct d9__schema *d9__builtin_schema(uint32_t type_id);

/* Header and schemas of the hot types: the first |*len| bytes of every batch.  For ever. */
const uint8_t *d9__preamble(size_t *len);

/* The atfork handler's three. */
void d9__event_types_fork_prepare(void);
void d9__event_types_fork_parent(void);
void d9__event_types_fork_child(void);
