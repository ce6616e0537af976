/* SPDX-License-Identifier: Apache-2.0 */
/* Object key: under which name a segment or a dump's manifest lies in the store.  A function of the segment. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__OBJECT_PART 128 /* bytes of a part at most, without an end */

struct d9__object_key {
	const char *prefix; /* "" or NULL: none */
	const char *service, *instance, *boot_id;
	uint64_t epoch_s; /* of its first clock anchor */
	uint64_t index;
	const char *ending; /* ".bin.zst" */
	bool original; /* as the original's 0.4 has them: without names of parts */
};

/* Copy |text| with bytes other than [A-Za-z0-9._-] replaced by '_'; never "", "." or "..". */
void d9__object_part(const char *text, char out[D9__OBJECT_PART + 1]);

/* Write the key of a segment.  Its length, or -ENAMETOOLONG. */
int d9__object_key_write(const struct d9__object_key *key, char *out, size_t size);

/* The key of the manifest of the dump |id|, likewise. */
int d9__object_key_dump(const char *prefix, const char *id, char *out, size_t size);
