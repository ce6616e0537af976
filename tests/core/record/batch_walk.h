/* SPDX-License-Identifier: Apache-2.0 */
/* Walk: a second, small and strict decoder of one batch, written from FORMAT.md alone. */

#ifndef D9_TEST_BATCH_WALK_H
#define D9_TEST_BATCH_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_FIELDS 16

struct walk_value {
	const char *name;
	size_t name_len;
	uint8_t type;
	bool present;
	uint64_t number;  /* integers, Bool, U8..U32, Varint; pool id of a PooledString */
	const char *text; /* String, Bytes, PooledString; not terminated */
	size_t text_len;
};

struct walk_event {
	const char *name;
	size_t name_len;
	uint16_t type_id;
	uint64_t ns;
	unsigned count;
	struct walk_value value[WALK_FIELDS];
};

struct walk_totals {
	unsigned events, schemas, names, annotations, resets;
	const char *error; /* NULL, or what is wrong with the batch */
	size_t offset;     /* where */
};

typedef void (*walk_fn)(const struct walk_event *event, void *arg);

/*
 * Decode bytes[0, len), which has to be one whole batch: header first, ids from 0 without
 * redefinition, each schema once, a reset before the first event, nothing cut.  |fn| may be NULL.
 */
struct walk_totals walk_batch(const uint8_t *bytes, size_t len, walk_fn fn, void *arg);

/* The value called |name|; NULL if there is none. */
const struct walk_value *walk_value(const struct walk_event *event, const char *name);
bool walk_is(const struct walk_event *event, const char *name);

#endif /* D9_TEST_BATCH_WALK_H */
