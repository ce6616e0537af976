/* SPDX-License-Identifier: Apache-2.0 */
/* Silence: a quarter of a second or more in which a slot took no stamp; the latest of each. */

#pragma once

#include <stdint.h>

#include "base/time.h"
#include "ring/slot.h"

/* As long as a conversion of ticks reaches: the first stamp behind it goes by the slow half. */
#define D9__SILENCE_NS (250 * D9__MS_NS)

struct d9__silence {
	uint64_t before_ns, after_ns; /* the stamps around it; 0: there was none */
};

/* The stamp |ns| of |slot| ends a silence that began with the slot's latest one.  Its owner. */
void d9__silence_end(const struct d9__slot *slot, uint64_t ns);

/* The latest one of |slot| that ended.  Any thread. */
struct d9__silence d9__silence_of(const struct d9__slot *slot);
