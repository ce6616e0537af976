/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User callbacks: the thread on which the program's own functions run, with the program's descriptors.
 * It exists only if the program registered any.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/options.h>
#include <dial9/recorder.h>

/* A segment that was sealed; counted references, freed with the last one. */
struct d9_sealed_segment {
	_Atomic(unsigned) references;
	char *path;    /* NULL in memory */
	uint8_t *data; /* NULL in a file */
	uint64_t bytes, index, events, first_ns, last_ns;
	bool complete;
	struct d9_sealed_segment *next; /* of whichever list holds it */
};

void d9__sealed_segment_drop(struct d9_sealed_segment *segment);

/* Start the thread if |options| names a callback.  0 or -errno.  Not from the flush thread. */
int d9__user_callbacks_start(const struct d9_options *options);

/*
 * Run what waits, then end the thread.  False if |deadline_ns| (CLOCK_MONOTONIC) passed first; the
 * thread then ends on its own.
 */
bool d9__user_callbacks_stop(uint64_t deadline_ns);

/* A line of the recorder's own log that goes to the program's callback too; not to it if 64 wait.  |fmt| like printf.  Any thread. */
void d9__log(enum d9_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Queue the news of |segment|; takes a reference of its own.  False if 64 wait or the program has no callback. */
bool d9__user_callbacks_announce(struct d9_sealed_segment *segment);

/* End the thread for a while, if it waits or comes to an end until then; what is pushed meanwhile waits.  False: it goes on. */
bool d9__user_callbacks_pause(uint64_t deadline_ns);

/* Start it again, if it was paused. */
void d9__user_callbacks_go_on(void);

/* Whether there is such a thread now. */
bool d9__user_callbacks_running(void);

/* Whether the caller is the callback thread. */
bool d9__user_callbacks_inside(void);

/* In a forked child: there is no thread, and what waited is the parent's. */
void d9__user_callbacks_fork_child(void);
