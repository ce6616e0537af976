/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner calls: functions of the program that a loop library called inside its own callback, each
 * told by one "SpanCall:LIBRARY" at its end.  In time order a reader gets three events for it, as
 * if they had been written: "SpanEnter:LIBRARY" at its beginning, "SpanExit:LIBRARY" and
 * "SpanCloseEvent" at its end.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "base/table.h"
#include "format/decoder.h"

#define D9__INNER_FIELDS 6u /* of a close, which has most */
#define D9__INNER_OPEN_MAX                                                                         \
	256u /* calls that are open at a time; of those inside more the parent is not told */

/* The calls of a trace.  All zero is valid. */
struct d9__inner_calls {
	struct d9__table types; /* id of the schema of a SpanCall -> its struct inner_type */
	struct d9_event written;       /* the latest one */
	const struct d9_schema *close; /* that of the closing event which is due; NULL: none is */
	struct d9_value values[D9__INNER_FIELDS]; /* of the events that are made of it */
	struct {
		uint64_t worker, id;
	} open[D9__INNER_OPEN_MAX];
	size_t n_open;
};

/*
 * True if |frame|, an event whose schema has |begins_earlier|, tells when the call began:
 * |*start_ns|.  Bytes up to |frame->end| may be read.
 */
bool d9__inner_call_start(const struct d9__frame *frame, uint64_t *start_ns);

/*
 * Make |event|, a SpanCall as it was written, the event of its beginning or of its end, with a
 * schema out of |set|. 0 or -ENOMEM.
 */
int d9__inner_calls_tell(struct d9__inner_calls *calls, struct d9__definitions *set, bool enters,
			 struct d9_event *event);

/* True if the call that ended last has to be closed yet: then |event| becomes the event that does
 * it. */
bool d9__inner_calls_close(struct d9__inner_calls *calls, struct d9_event *event);

/*
 * The event as the trace has it, to be shown: |event| itself, as the reader delivered it, or the
 * call that it is the end of; NULL for the two others that are made of it.
 */
const struct d9_event *d9__inner_calls_written(const struct d9_event *event);

void d9__inner_calls_release(struct d9__inner_calls *calls);
