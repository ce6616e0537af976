/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Living tasks: the writer begins each segment but the first with the tasks and spans that live, so that
 * it can be read alone.  It lists them when the segment before ends: events of the new segment tell
 * what begins or ends later.
 * Flush thread only, unless a function says otherwise.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

struct d9__task_spawn;
struct d9__writer;

/* A span of the program that is open. */
struct d9__living_span {
	uint64_t id, start_ns, parent; /* |parent| 0: none */
	uint32_t name, origin;	       /* handles */
};

typedef void (*d9__living_span_fn)(void *arg, const struct d9__living_span *span);

/* From now on |each| tells of all spans that are open.  Any thread. */
void d9__living_tasks_provide_spans(void (*each)(d9__living_span_fn fn, void *arg));

/* All zero: nothing is listed. */
struct d9__living_tasks {
	uint64_t ns; /* when they were listed; 0: they were not */
	struct d9__task_spawn *items;
	size_t n;
	struct d9__living_span *spans;
	size_t n_spans;
};

/* How a writer tells of what lives.  It calls these by pointer, because they write with it. */
struct d9__lead_in {
	/*
	 * List the tasks that live, and the spans: all, or as many as fit into a small part of a
	 * segment of |file_bytes|, and D9__DUMP_TASKS_MAX tasks at most, those that were polled in
	 * the last seconds first.  Without memory it lists fewer.
	 */
	void (*list)(struct d9__living_tasks *living, uint64_t file_bytes);

	/*
	 * Add what is listed to the segment of |w| that is open, and forget it.  0 or an error of
	 * the writer.
	 */
	int (*tell)(struct d9__living_tasks *living, struct d9__writer *w);

	void (*release)(struct d9__living_tasks *living);
};

extern const struct d9__lead_in d9__living_tasks_lead_in;

