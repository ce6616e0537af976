/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "export/old_wakes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "format/encoder.h"
#include "read/told_wakes.h"

#define WAKE_BYTES                                                                                 \
	(2 * D9__WIRE_TIME_RESET_LEN + D9__WIRE_EVENT_HEAD_LEN + 2 * D9__VARINT_MAX + 2 +          \
	 D9__TOLD_WAKE_DEFINITION_MAX)

/* WakeEvent, where the batch has no such type. */
static uint8_t *put_definition(struct d9__old_wakes *wakes, uint8_t *p, uint16_t *n_ids)
{
	const uint8_t *definition;
	size_t len;

	if (wakes->type)
		return p;
	wakes->type = (uint16_t)(UINT16_MAX - (*n_ids)++);
	definition = d9__told_wake_definition(&len);
	*p++ = D9__WIRE_SCHEMA;
	return d9__wire_put_bytes(d9__wire_put_u16(p, wakes->type), definition, len);
}

/* The time goes back and forth: the poll's own distance counts from the event before it. */
static uint8_t *put_wake(uint8_t *p, uint16_t type, const struct d9__poll_wake *wake,
			 const struct d9__frame *frame)
{
	p = d9__wire_put_event_head(d9__wire_put_time_reset(p, wake->ns), type, 0);
	p = d9__varint_put(d9__varint_put(p, wake->waker), wake->woken);
	*p++ = wake->worker < 255 ? (uint8_t)wake->worker : 255;
	*p++ = wake->reason;
	return d9__wire_put_time_reset(p, frame->timestamp_ns - d9__wire_get_u24(frame->start + 3));
}

static uint8_t *put_untold(uint8_t *p, const struct d9__frame *frame)
{
	const uint8_t *end, *told = d9__poll_wakes_place(
				    (struct d9__cursor) { frame->payload, frame->end, 0 }, &end);

	p = d9__wire_put_bytes(p, frame->start, (size_t)(told - frame->start));
	*p++ = 0;
	return d9__wire_put_bytes(p, end, (size_t)(frame->end - end));
}

int d9__old_wakes_frame(struct d9__old_wakes *wakes, const struct d9__decoder *decoder,
			const struct d9__frame *frame, uint16_t *n_ids, const uint8_t **out,
			size_t *len)
{
	struct d9__poll_wake wake;
	uint8_t *p;
	int got = d9__decoder_wake(decoder, frame, &wakes->seen, &wake);

	if (frame->kind == D9__FRAME_HEADER)
		wakes->type = 0;
	else if (frame->kind == D9__FRAME_SCHEMA && d9__told_wake_is(frame->schema))
		wakes->type = d9__wire_get_u16(frame->start + 1);
	if (got <= 0)
		return got;
	if (!d9__array_reserve(wakes->bytes, &wakes->capacity, 0,
			       WAKE_BYTES + (size_t)(frame->end - frame->start)))
		return -ENOMEM;
	p = put_definition(wakes, wakes->bytes, n_ids);
	p = put_untold(put_wake(p, wakes->type, &wake, frame), frame);
	*out = wakes->bytes;
	*len = (size_t)(p - wakes->bytes);
	return 1;
}

void d9__old_wakes_release(struct d9__old_wakes *wakes)
{
	d9__poll_wakes_release(&wakes->seen);
	free(wakes->bytes);
	*wakes = (struct d9__old_wakes) { 0 };
}
