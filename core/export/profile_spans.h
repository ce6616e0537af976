/* SPDX-License-Identifier: Apache-2.0 */
/* The program's spans that each thread is inside of, while events are read in order of time: for samples. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/texts.h"
#include "base/table.h"

/* Where a sample was taken. */
struct d9__profile_thread {
	bool has_worker;
	uint64_t worker, tid;
};

/* All zero is empty. */
struct d9__profile_spans {
	struct d9__texts names;	  /* of all spans; they live as long as this */
	struct d9__table threads; /* struct thread, by worker or tid */
	/* If not NULL, told of each time in a span. */
	void (*on_leave)(void *context, const struct d9__profile_thread *thread, const char *name, uint64_t from_ns,
			 uint64_t to_ns);
	void *context;
};

/* Take |event|, of whatever kind.  0 or -ENOMEM. */
int d9__profile_spans_take(struct d9__profile_spans *spans, const struct d9_event *event);

/* Return the name of the span that |thread| entered last and has not left; NULL: none. */
const char *d9__profile_spans_innermost(const struct d9__profile_spans *spans, const struct d9__profile_thread *thread);

/* True if |thread| is inside of a span called |name|. */
bool d9__profile_spans_inside(const struct d9__profile_spans *spans, const struct d9__profile_thread *thread,
			      const char *name);

void d9__profile_spans_release(struct d9__profile_spans *spans);
