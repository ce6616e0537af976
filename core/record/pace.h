/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pace: how often the flush thread looks.  A tick, with all that it does, comes every 100 ms while
 * events flow, or when threads have filled chunks; ever more rarely, once a second in the end,
 * where nothing was recorded for a while.  Between ticks it only looks at callbacks that may hang:
 * 10 ms after a tick that found one open, and so on while one stays open, every 10 ms for its first
 * tenth of a second, whatever else there is, and then half as often each time: every 100 ms in its
 * first second, so that a process that is killed in it has told nearly all of it, once a second in
 * the end. A loop that wakes from a long sleep ends a long one of the flush thread: what it calls
 * now may be what hangs.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define D9__PACE_LOOK_NS    UINT64_C(10000000)
#define D9__PACE_TICK_NS    UINT64_C(100000000)
#define D9__PACE_REST_NS    D9__SECOND_NS
#define D9__PACE_SILENCE_NS UINT64_C(300000000) /* without events: ticks come ever more rarely */

struct d9__pace {
	uint64_t period_ns; /* from this tick to the next */
	uint64_t look_ns;   /* from this look at open calls to the next; 0: at the next tick */
	uint64_t active_ns; /* when events were seen last */
};

/* A recorder starts: as if events were flowing. */
void d9__pace_begin(struct d9__pace *pace, uint64_t now_ns);

/* At a tick: threads recorded |events| since the last one. */
void d9__pace_events(struct d9__pace *pace, uint64_t now_ns, uint64_t events);

/* Whether there were events lately. */
bool d9__pace_active(const struct d9__pace *pace, uint64_t now_ns);

/*
 * A look at open calls is over.  The youngest of those that were open for 10 ms is |age_ns| old;
 * UINT64_MAX: there is none, and |any| tells whether a tick found one at all.
 */
void d9__pace_open_calls(struct d9__pace *pace, uint64_t age_ns, bool any);

/* The end of a tick: choose |period_ns|.  Segments live |rotation_ns|. */
void d9__pace_choose(struct d9__pace *pace, uint64_t now_ns, uint64_t rotation_ns);
