/* SPDX-License-Identifier: Apache-2.0 */
/* Values: the fields of one event, decoded and with their pooled parts resolved. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "format/decoder.h"

/* All zero is empty. */
struct d9__values {
	struct d9_value *items; /* one per field of the schema, after a build */
	size_t capacity;
	struct d9_value *own; /* |items|, unless they were put elsewhere */
	size_t own_capacity;
	struct d9__arena arena; /* what items point to, besides input and pools */
	uint64_t unresolved;    /* pooled values without a definition, since the start */
	uint64_t repeats;       /* keys of StringMaps that had been there before in the same one, likewise */
};

/*
 * Decode the fields of the event |frame|, which |decoder| has passed.  Texts stay in the input
 * or in the decoder's pools.  0, -ENOMEM; -EBADMSG if the bytes have changed since.
 */
int d9__values_build(struct d9__values *values, const struct d9__decoder *decoder,
		     const struct d9__frame *frame);

/*
 * Build the values of an event that d9__decoder_peek() has found, and set its end.  0, -EBADMSG if
 * a value is malformed, -ENOMEM.
 */
int d9__values_quick(struct d9__values *values, const struct d9__decoder *decoder,
		     struct d9__frame *frame);

/* Make room for |n| items.  0 or -ENOMEM. */
int d9__values_room_slow(struct d9__values *values, size_t n);

static inline int d9__values_room(struct d9__values *values, size_t n)
{
	return __builtin_expect(n <= values->capacity, 1) ? 0 : d9__values_room_slow(values, n);
}

/* Put the items of events to come at |items|, as long as they are no more than |n|. */
static inline void d9__values_put_at(struct d9__values *values, struct d9_value *items, size_t n)
{
	values->items = items;
	values->capacity = n;
}

void d9__values_release(struct d9__values *values);
