/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "drain/flight.h"
#include "ring/emit_inl.h"
#include "ring/names.h"

/* False: there was no room. */
static bool emit_loss(struct d9__slot *own, const char *cause, const struct d9__drain_loss *lost)
{
	uint32_t handle = d9__name_intern(cause, strlen(cause)), id;
	uint8_t *p = d9__emit_begin_named(own, D9__EVENT_LOSS, lost->to_ns,
					  8 + 4 * D9__VARINT_MAX, &handle, &id, 1);

	if (!p)
		return false;
	p = d9__wire_put_u32(p, lost->tid);
	p = d9__varint_put(p, 255);
	p = d9__wire_put_u32(p, id);
	p = d9__varint_put(p, lost->events);
	p = d9__varint_put(p, lost->from_ns);
	d9__emit_end(own, d9__varint_put(p, lost->to_ns));
	return true;
}

uint64_t d9__flight_losses(struct d9__drain *drain, struct d9__slot *own, uint64_t now_ns)
{
	uint32_t high = d9__slot_high();
	uint64_t latest_ns = 0;

	for (uint32_t i = 0; i <= high; i++) {
		uint32_t index = i < high ? i : D9__SLOT_COUNT;

		for (int cause = 0; cause < D9__LOSS_CAUSES; cause++) {
			struct d9__drain_loss lost;

			if (!d9__drain_take_loss(drain, index, cause, &lost))
				continue;
			if (!lost.to_ns)
				lost.to_ns = now_ns;
			if (!lost.from_ns)
				lost.from_ns = now_ns;
			if (lost.to_ns > latest_ns)
				latest_ns = lost.to_ns;
			if (emit_loss(own, d9__loss_names[cause], &lost))
				d9__drain_told(drain, index, cause);
			else /* next time */
				d9__drain_put_back_loss(drain, index, cause, &lost);
		}
	}
	return latest_ns;
}
