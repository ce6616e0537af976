/* SPDX-License-Identifier: Apache-2.0 */
/* Health: what the recorder tells about itself, in the ring file and once a second in the trace. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ring/ring_file.h"
#include "segment/builder.h"
#include "segment/writer.h"

/* Events lost since the recorder started, all causes and slots; any thread. */
uint64_t d9__health_lost(void);

/* Events lost since then by |cause|. */
uint64_t d9__health_lost_by(unsigned cause);

/*
 * Write the health page of the ring: the caller puts the calls that are open into what the first
 * returns, and the second follows.  Flush thread.
 */
struct d9__ring_health *d9__health_begin(const struct d9__writer *writer, int state, uint64_t now_ns);
void d9__health_end(struct d9__ring_health *health);

/*
 * Have |fn| add lines KEY=VALUE to those of the metadata that `dial9 status` reads: figures that
 * change too often to be metadata.  Flush thread, at each tick.  At most one, for ever.
 */
void d9__health_provide(void (*fn)(char *buf, size_t size));

/* Make |out| a batch with one RecorderHealthEvent.  Flush thread. */
void d9__health_event(struct d9__builder *out, const struct d9__writer *writer, int state,
		      uint64_t now_ns);
