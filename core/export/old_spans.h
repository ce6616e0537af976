/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old spans: frames for readers from before one event told a call, FORMAT.md 9.2.  Each
 * "SpanCall:LIBRARY" becomes "SpanEnter:LIBRARY", "SpanExit:LIBRARY" and "SpanCloseEvent", and
 * wakes become events of their own, see old_wakes.h; all other frames stay as they are.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "export/old_wakes.h"
#include "format/decoder.h"
#include "format/values.h"

/* All zero is valid. */
struct d9__old_spans {
	struct d9__table
		types; /* of the open batch: type id of a SpanCall -> its struct old_type */
	struct d9__table threads; /* worker -> its thread's id */
	struct d9__values values;
	struct d9__old_wakes wakes;
	uint16_t n_ids; /* of the open batch: given out, from 65535 down */
	uint64_t n_calls;
	uint8_t *bytes;
	size_t capacity;
};

/*
 * Make the frames for |frame|, which |decoder| has passed with schemas as the catalogue classifies
 * them: |*out| and
 * |*len|, borrowed until the next call.  0, -ENOMEM, -EBADMSG.
 */
int d9__old_spans_frame(struct d9__old_spans *spans, const struct d9__decoder *decoder,
			const struct d9__frame *frame, const uint8_t **out, size_t *len);

void d9__old_spans_release(struct d9__old_spans *spans);
