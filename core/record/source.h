/* SPDX-License-Identifier: Apache-2.0 */
/* Source: something the flush thread asks at intervals. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/export.h>

struct d9__slot;

/* Owned by the code that adds it; lives for ever. */
struct d9__source {
	const char *name;
	_Atomic(uint64_t) period_ns; /* 0: not now; any thread */
	/* Flush thread, its own slot, recording on; emits what it finds.  errno and signals are
	 * free. */
	void (*sample)(struct d9__source *source, struct d9__slot *slot, uint64_t now_ns);
	struct d9__source *next;

	/* Flush thread only. */
	uint64_t due_ns;
};

/* Ask |source| from now on; at most once per source.  Any thread. */
D9_API void d9__source_add(struct d9__source *source);

/* Call |fn| once per tick, after the sources, recording on or off.  Any thread; for ever. */
D9_API void d9__tick_add(void (*fn)(void));

/* Call |fn| whenever a callback is found open for 10 ms or more.  Any thread; for ever; there is
 * one. */
void d9__open_call_add(void (*fn)(void));

/* Flush thread: a callback was found open. */
void d9__open_call_run(void);

/*
 * Flush thread: ask those that are due.  Returns when the next one is due that has a shorter period
 * than |tick_ns|, as others are asked at the tick that follows; UINT64_MAX if none.
 */
uint64_t d9__sources_run(struct d9__slot *slot, uint64_t now_ns, uint64_t tick_ns);

/* Flush thread: ask all once more, for the last time. */
void d9__sources_end(struct d9__slot *slot, uint64_t now_ns);

/* Flush thread. */
void d9__ticks_run(void);
