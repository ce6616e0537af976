/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pace: how often the flush thread looks.  Every 10 ms while events flow; every 100 ms where most
 * of those looks would find none, so that a process that does little costs little; ever more
 * rarely, once a second in the end, where nothing was recorded for a while.  While a callback runs that
 * may hang, every 10 ms for its first tenth of a second, whatever else there is, and then half as often each time.
 * A loop that wakes from a long sleep ends a long one of the flush thread: what it calls now may be what hangs.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define D9__PACE_BRISK_NS   UINT64_C(10000000)
#define D9__PACE_CALM_NS    UINT64_C(100000000)
#define D9__PACE_REST_NS    D9__SECOND_NS
#define D9__PACE_SILENCE_NS UINT64_C(300000000) /* without events: looks come ever more rarely */

struct d9__pace {
	uint64_t period_ns;	  /* until the next look */
	bool brisk;		  /* events come about as often as D9__PACE_BRISK_NS */
	uint64_t active_ns;	  /* when events were seen last */
	uint64_t measured_ns;	  /* since when |brisk| is measured */
	uint64_t measured_events; /* that came since */
	unsigned busy_looks;	  /* that found any, since */
	uint64_t open_ns;	  /* the longest period while a callback is open; 0: none is */
};

/* A recorder starts: as if events were flowing. */
void d9__pace_begin(struct d9__pace *pace, uint64_t now_ns);

/* A look: threads recorded |events| since the last one. */
void d9__pace_look(struct d9__pace *pace, uint64_t now_ns, uint64_t events);

/* Whether there were events lately. */
bool d9__pace_active(const struct d9__pace *pace, uint64_t now_ns);

/* The youngest of the callbacks that are open has been quiet for |quiet_ns|; UINT64_MAX: none is open. */
void d9__pace_open_call(struct d9__pace *pace, uint64_t quiet_ns);

/* After a look that |worked|, or found nothing to do: |period_ns|.  Segments live |rotation_ns|. */
void d9__pace_choose(struct d9__pace *pace, uint64_t now_ns, bool worked, uint64_t rotation_ns);
