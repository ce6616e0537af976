/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture: a ring of its own for a test, and a consumer that checks all that comes out. */

#ifndef D9_TEST_FIXTURE_H
#define D9_TEST_FIXTURE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/record/batch_walk.h"
#include "ring/chunk.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

/* Forget the ring of the test before, make one in a memfd of at most |chunks| chunks. */
void fixture_ring(unsigned chunks);

struct fixture_taken {
	uint64_t batches, events, bad;
	const char *error; /* of the first bad batch */
};

/* Take, walk and release all full chunks. */
void fixture_drain(struct fixture_taken *taken, walk_fn fn, void *arg);

/* Do so, then take and walk the open chunks of all slots. */
void fixture_drain_all(struct fixture_taken *taken, walk_fn fn, void *arg);

/* All events lost by |slot|, or by the process (-1). */
uint64_t fixture_lost(int slot);
uint64_t fixture_lost_for(int slot, enum d9__loss_cause cause);

#endif /* D9_TEST_FIXTURE_H */
