/* SPDX-License-Identifier: Apache-2.0 */
/* "reading 42 %" on a terminal, for commands that take longer than a second. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__progress {
	bool on;    /* stderr is a terminal */
	bool shown; /* a line is on the screen */
	uint32_t ticks;
	uint64_t next_ns; /* when to draw again */
};

void d9__progress_init(struct d9__progress *progress);

/* Draw |done| of |total| if it is time to; with 0 of 0, draw no number. */
void d9__progress_draw(struct d9__progress *progress, uint64_t done, uint64_t total);

/* True if it may be time to draw: true for one call in 8192, never without a terminal. */
static inline bool d9__progress_due(struct d9__progress *progress)
{
	return progress->on && !(++progress->ticks & 8191);
}

/* Remove the line; call this before printing anything else. */
void d9__progress_clear(struct d9__progress *progress);
