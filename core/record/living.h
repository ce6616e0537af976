/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Living: each segment but the first begins by telling the tasks that live, so that it can be read alone.
 * They are listed when the segment before it ends: whatever begins or ends later is in its events.
 * Flush thread only.
 */

#ifndef D9_RECORD_LIVING_H
#define D9_RECORD_LIVING_H

#include <stddef.h>
#include <stdint.h>

struct d9__task_spawn;
struct d9__writer;

/* All zero: nothing is listed. */
struct d9__living {
	uint64_t ns; /* as of when */
	struct d9__task_spawn *items;
	size_t n;
};

/*
 * List all tasks, or where they would take much of a segment of |file_bytes|, or are more than
 * D9__DUMP_TASKS_MAX, those that were polled in the last seconds first.  Without memory none.
 */
void d9__living_list(struct d9__living *living, uint64_t file_bytes);

/* Add what is listed to the segment of |w| that is open, and forget it.  0 or an error of the writer. */
int d9__living_tell(struct d9__living *living, struct d9__writer *w);

void d9__living_release(struct d9__living *living);

#endif /* D9_RECORD_LIVING_H */
