/* SPDX-License-Identifier: Apache-2.0 */
/* Rescue: one dead process: seal the segment it left open, write what its ring still holds. */

#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drain/dead_ring.h"
#include "segment/namespace.h"

/* What became of one process. */
struct d9__recovered {
	char dir[PATH_MAX + D9__BOOT_ID_MAX]; /* its directory of segments */
	char service[256];
	uid_t uid;    /* by whose rights that was done, or tried */
	uint32_t pid; /* 0: not known, there was no ring */
	bool sealed;  /* the segment it left open */
	bool ring;    /* it had a ring, which is gone now unless |err| */
	uint64_t bytes;  /* of a ring that was discarded */
	uint64_t events; /* of the ring, now in the trace */
	uint64_t lost;   /* and never seen in it before: losses of the ring, written down now */
	uint32_t bad;    /* batches of the ring that do not decode; their events are in |lost| */
	int err;         /* -errno; then all is as before, or nearly */
	const char *op;  /* what failed */
};

/*
 * Rescue the process |boot_id| below |trace_dir|; |ring| is its ring, NULL if it has none.  True
 * if there was anything to do or to complain of: |*out| tells.
 */
bool d9__rescue(const char *trace_dir, const char *boot_id, struct d9__dead_ring *ring,
		struct d9__recovered *out);

/* The same into |ns|, which stays open; |*out| is described already.  Nothing else of |ns| than its directory is used. */
bool d9__rescue_into(const struct d9__namespace *ns, struct d9__dead_ring *ring, struct d9__recovered *out);

/* Begin |*out|: what is known before anything is done. */
void d9__rescue_describe(const char *dir, const char *boot_id, const struct d9__dead_ring *ring,
			 struct d9__recovered *out);
