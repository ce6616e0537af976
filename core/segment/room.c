/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/room.h"

void d9__room_wrote(struct d9__room *room, uint64_t now_ns)
{
	room->good_ns = now_ns;
	if (!room->since_ns)
		room->since_ns = now_ns;
}

void d9__room_failed(struct d9__room *room)
{
	uint64_t good_for_ns = room->good_ns - room->since_ns;

	room->episode &= good_for_ns < D9__ROOM_EPISODE_NS;
	room->counted &= good_for_ns < D9__ROOM_FREE_NS;
	room->good_ns = room->since_ns = 0;
}

static uint64_t own_bytes(const struct d9__retention *ret)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < ret->n; i++)
		bytes += ret->families[i].peer ? 0 : ret->families[i].bytes;
	return bytes;
}

bool d9__room_victim(struct d9__room *room, const struct d9__retention *ret, uint64_t spared,
		     d9__room_linked_fn is_linked, void *arg, struct d9__family *victim)
{
	if (room->episode)
		return false;
	room->episode = true;
	if (!room->counted)
		room->left = own_bytes(ret) / 2;
	room->counted = true;
	for (size_t i = 0; i < ret->n; i++) {
		const struct d9__family *family = &ret->families[i];

		if (family->peer || family->index == spared || is_linked(arg, family))
			continue;
		if (family->bytes > room->left)
			return false;
		room->left -= family->bytes;
		*victim = *family;
		return true;
	}
	return false;
}
