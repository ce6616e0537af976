/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old wakes: frames for readers that know nothing of wakes which polls tell, FORMAT.md 9.3.  Each
 * is a WakeEvent of its own, in front of the poll, which tells none then.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/decoder.h"

/* All zero is valid. */
struct d9__old_wakes {
	struct d9__poll_wakes seen; /* in the open batch */
	uint16_t type;		    /* WakeEvent's id in it; 0: none is defined */
	uint8_t *bytes;
	size_t capacity;
};

/*
 * Make the frames for |frame|, which |decoder| has passed: |*out| and |*len|, borrowed until the
 * next call.  |*n_ids|: how many ids of types were made up in the batch, from 65535 down.  1; 0: it
 * stays as it is; -ENOMEM.
 */
int d9__old_wakes_frame(struct d9__old_wakes *wakes, const struct d9__decoder *decoder,
			const struct d9__frame *frame, uint16_t *n_ids, const uint8_t **out,
			size_t *len);

void d9__old_wakes_release(struct d9__old_wakes *wakes);
