/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include "drain/description.h"
#include "ring/clock.h"
#include "ring/event_types.h"
#include "ring/ring_file.h"
#include "segment/metadata.h"
#include "segment/modules.h"
#include "segment/writer.h"

/* The program's own types: what signal handlers left in side rings is of these, too. */
static void add_types(struct d9__builder *note, uint32_t end)
{
	for (uint32_t id = D9__EVENT_PROGRAM; id < end; id++) {
		const struct d9__type_frames *frames = d9__event_type_frames(id);

		if (frames && note->len + frames->len <= D9__RING_DESCRIPTION_BYTES)
			d9__builder_put(note, frames->bytes, frames->len);
	}
}

void d9__description_refresh(struct d9__description *description, struct d9__builder *note)
{
	struct d9__description now = { d9__metadata_generation(), d9__modules_generation(),
				d9__event_types_end() };

	if (now.metadata == description->metadata && now.modules == description->modules &&
	    now.types == description->types)
		return;
	*description = now;
	d9__writer_describe(note);
	add_types(note, now.types);
	if (!note->failed && d9__ring_set_description(note->data, note->len) == -E2BIG) {
		/* Names are worth less than what the process says of itself. */
		d9__metadata_write(note, d9__clock_mono_ns(), NULL);
		if (!note->failed)
			d9__ring_set_description(note->data, note->len);
	}
}
