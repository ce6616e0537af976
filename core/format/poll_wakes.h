/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poll wakes: the wakes that the polls of a batch tell (FORMAT.md 9.3), by what stands in front of
 * them in the batch.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/cursor.h"

struct d9_schema;

#define D9__POLL_WAKES_WORKERS 1024u /* in one batch; of more, wakes are not told */

struct d9__poll_wake {
	uint64_t ns, waker, woken, worker;
	uint8_t reason;
	bool refers_back; /* to what was seen before |part| was set */
};

struct d9__polls_of_worker {
	uint64_t worker;
	uint64_t unpark_ns; /* the latest; 0: none yet */
	bool unpark_part;
	bool open; /* the last poll has not ended */
	struct d9__poll_span {
		uint64_t start_ns, end_ns, task;
		bool part;
	} * polls;
	size_t n, capacity;
};

/* All zero is empty. */
struct d9__poll_wakes {
	struct d9__polls_of_worker *workers;
	size_t n, capacity, latest; /* of |workers|; those behind |n| keep their memory */
	bool part; /* what is seen from here on belongs to the part that is asked about */
	bool times_only; /* of wakes only |ns| is asked for: polls need not be remembered */
};

/* A batch begins. */
void d9__poll_wakes_reset(struct d9__poll_wakes *seen);
void d9__poll_wakes_release(struct d9__poll_wakes *seen);

/* The events of a batch in its order.  0 or -ENOMEM; start: 1 if the poll tells a wake, |*out|. */
int d9__poll_wakes_unpark(struct d9__poll_wakes *seen, uint64_t worker, uint64_t ns);
int d9__poll_wakes_start(struct d9__poll_wakes *seen, uint64_t worker, uint64_t task, uint64_t ns,
			 uint64_t told, struct d9__poll_wake *out);
void d9__poll_wakes_end(struct d9__poll_wakes *seen, uint64_t worker, uint64_t ns);

/*
 * Whether events of |schema|, as the catalogue knows it, tell wakes, which PollStart alone does, or
 * what those refer to. A reader asks for |tells| once, because it is in the schema then.
 */
bool d9__poll_wakes_tell(const struct d9_schema *schema);

/* The place of the wake among the fields of a PollStart, which begin at |in|, and its end. */
const uint8_t *d9__poll_wakes_place(struct d9__cursor in, const uint8_t **end);

/* The event whose fields begin at |in|, of a schema that tells: as start, unpark and end do. */
int d9__poll_wakes_see(struct d9__poll_wakes *seen, const struct d9_schema *schema,
		       struct d9__cursor in, uint64_t ns, struct d9__poll_wake *out);
