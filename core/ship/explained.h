/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explained: the names of everything that would be sent with segments: types of events and their
 * fields, metadata, pairs beside objects.
 */

#pragma once

#include <stdio.h>

#include "ship/bucket.h"

struct json_object;

/* All zero is empty. */
struct d9__explained {
	struct json_object *types; /* of fields, by type of event; owned */
	struct json_object *metadata, *pairs; /* names; owned */
};

/*
 * Add the names in the segment |fd|, and in the |n| |pairs| beside it.  0, -EBADMSG: it is damaged;
 * -ENOMEM, or an error of reading.
 */
int d9__explained_add(struct d9__explained *explained, int fd, const struct d9__bucket_pair *pairs, size_t n);

/* A line for each type, sorted: "PollStartEvent: worker_id, ..."; then those of metadata and pairs. */
void d9__explained_print(const struct d9__explained *explained, FILE *out);

void d9__explained_release(struct d9__explained *explained);
