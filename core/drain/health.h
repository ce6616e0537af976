/* SPDX-License-Identifier: Apache-2.0 */
/* Health: what the recorder tells about itself, in the ring file and once a second in the trace. */

#pragma once

#include <stdint.h>

#include "record/open_calls.h"
#include "segment/builder.h"
#include "segment/writer.h"

/* Events lost since the recorder started, all causes and slots; any thread. */
uint64_t d9__health_lost(void);

/* The same by cause. */
uint64_t d9__health_lost_by(unsigned cause);

/* Write the health page of the ring.  Flush thread. */
void d9__health_publish(const struct d9__writer *writer, const struct d9__open_calls *open, int state,
			uint64_t now_ns);

/* Make |out| a batch with one RecorderHealthEvent.  Flush thread. */
void d9__health_event(struct d9__builder *out, const struct d9__writer *writer, int state,
		      uint64_t now_ns);
