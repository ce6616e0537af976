/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead ring: the ring file of a process that is gone, read with distrust.  Nothing of it is mapped:
 * what was read and checked cannot change any more, and a file that shrinks is a short read.
 */

#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "ring/chunk.h"
#include "ring/ring_file.h"
#include "segment/segment_tail.h"
#include "segment/walk.h"

/* Zero bytes behind a batch: a decoder that trusts its first fields stays inside. */
#define D9__BATCH_PAD 64

/* The rest of one chunk, in the order in which it has to be written. */
struct d9__dead_batch {
	struct d9__batch batch; /* |bytes| NULL: see d9__dead_ring_read() */
	uint64_t order_ns;      /* of its last loop event */
};

struct d9__dead_ring {
	int fd; /* locked */
	char path[PATH_MAX];
	struct d9__ring_header header; /* texts are terminated */
	uint8_t *head;                 /* [0, D9__RING_CHUNKS_AT), after d9__dead_ring_load() */
	struct d9__ring view;          /* pointers into |head|, for the drain */
	uint32_t chunks;               /* that the file has */
	struct d9__dead_batch *batches;
	uint32_t n_batches;
	uint32_t bad;        /* batches that were left out because they do not decode */
	uint64_t bad_events; /* in these, as far as is known */
	uint64_t first_ns;   /* of what is left */
	uint8_t *buffer;     /* one chunk and padding */
};

/*
 * Open and lock the ring |path| and read its header.  0; -EBUSY: its process lives; -EAGAIN: the process is
 * dead, as far as we see, but another reader has held the lock for 50 ms, and |ring->header| is set; -EBADMSG:
 * it has no header; -EPERM: not ours; -ESTALE: it was removed meanwhile; or an errno of open(2).
 */
int d9__dead_ring_open(struct d9__dead_ring *ring, const char *path);

/*
 * Is nothing left in it that its trace has not?  Looks at chunk headers only.  False in doubt, and of another
 * layout.
 */
bool d9__dead_ring_is_empty(struct d9__dead_ring *ring);

/*
 * Read slots and chunk headers, decode every batch once, leave out what |tail| has already, and put
 * the rest in order.  0, -EPROTONOSUPPORT (another layout), -EBADMSG, -ENOMEM.
 */
int d9__dead_ring_load(struct d9__dead_ring *ring, const struct d9__segment_tail *tail,
		       struct d9__walker *walker);

/* Read batch |i| into the one buffer there is.  0 or -errno. */
int d9__dead_ring_read(struct d9__dead_ring *ring, uint32_t i);

/* Segment |index| is going to be made of the ring: note that in it. */
void d9__dead_ring_begin(struct d9__dead_ring *ring, uint64_t index);

/* The side ring of slot |slot| in |ring->buffer|, or NULL. */
uint8_t *d9__dead_ring_side(struct d9__dead_ring *ring, uint32_t slot);

/* Copy the batch with metadata and modules to a new allocation; 0 bytes if there is none. */
uint8_t *d9__dead_ring_description(const struct d9__dead_ring *ring, uint32_t *len);

/* Remove file and directory; a process that waits for the lock finds them gone. */
void d9__dead_ring_unlink(struct d9__dead_ring *ring);

void d9__dead_ring_close(struct d9__dead_ring *ring);
