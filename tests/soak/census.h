/* SPDX-License-Identifier: Apache-2.0 */
/* Census: events of a trace, counted, to be compared with the count that the program kept. */

#ifndef D9_SOAK_CENSUS_H
#define D9_SOAK_CENSUS_H

#include <stdint.h>

#define CENSUS_SOURCES 64

struct census {
	uint64_t segments, events;
	uint64_t lead;	  /* clock, metadata, modules, tasks that live: what a segment begins with */
	uint64_t told_ns; /* as of when the newest segment told those */
	uint64_t notes;	  /* of the recorder about itself: health, losses, its log */
	uint64_t steps;	  /* our custom events */
	uint64_t starts, ends; /* of polls */
	uint64_t noted_losses; /* events that RecorderLossEvents speak of */
	uint64_t next[CENSUS_SOURCES]; /* number that the next step of each source must reach */
	uint64_t disorder;	       /* steps that came again or too early */
	uint64_t damaged;	       /* segments that could not be read to their end */
	char message[256];	       /* of the first such */
};

/* Add the segment or the folder of segments |path|.  Steps carry `source` and `number`, which grows. */
void census_add(struct census *census, const char *path);

#endif /* D9_SOAK_CENSUS_H */
