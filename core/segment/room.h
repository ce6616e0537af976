/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room: what of the history may go when the device is full.  A neighbour that fills it takes what
 * is given up at once, so one segment is tried in each episode, and all episodes together leave
 * half.  No side effects.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "segment/retention.h"

/* Of good writes: ends an episode; lets half of what is there then go anew. */
#define D9__ROOM_EPISODE_NS UINT64_C(60000000000)
#define D9__ROOM_FREE_NS    UINT64_C(3600000000000)

struct d9__room {
	uint64_t since_ns, good_ns; /* the first and the last write since the last failure; 0: none */
	bool episode;               /* one segment was tried, or could not be */
	bool counted;               /* |left| is what may go yet */
	uint64_t left;
};

/* Whether |family| has a second name, so that nothing is gained where it loses this one. */
typedef bool (*d9__room_linked_fn)(void *arg, const struct d9__family *family);

/* A write succeeded. */
void d9__room_wrote(struct d9__room *room, uint64_t now_ns);

/* A write failed, for whatever reason. */
void d9__room_failed(struct d9__room *room);

/* It did for want of room.  The family that may go, which is not |spared|; false: none may. */
bool d9__room_victim(struct d9__room *room, const struct d9__retention *ret, uint64_t spared,
		     d9__room_linked_fn is_linked, void *arg, struct d9__family *victim);
