/* SPDX-License-Identifier: Apache-2.0 */
/* Named pieces of work, entered and left any number of times (events.md 5.1). */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/histogram.h"
#include "analyze/texts.h"
#include "analyze/timeline.h"
#include "base/table.h"

/* Spans of one origin (what follows "SpanEnter:") and one name. */
struct d9__span_type {
	const char *origin, *name;
	uint64_t spans, unmatched, with_parent;
	uint64_t unclosed;           /* the trace ended before them */
	uint64_t active_ns;          /* entered time */
	uint64_t active_in_polls_ns; /* the part inside polls of the owning task */
	uint64_t idle_ns;            /* from creation to close, less the entered time; closed ones */
	struct d9__histogram durations; /* first enter to last exit */
	struct d9__account time;        /* of the part inside polls */
};

/*
 * Spans named "CALLBACK @ SITE" are a loop adapter's: a user's function that the loop library calls
 * inside a callback of its own.  They count as calls of that function.
 */
struct d9__spans {
	struct d9__span_type **items;
	size_t n;
	struct d9__texts keys; /* origin, '\1', name: item i has text i */
	struct d9__table open;
	uint64_t finished, unmatched, misused;
	unsigned whole_in_poll_max; /* most whole spans of the program inside one poll */
	uint64_t polls_over_20;
	struct d9__call_hook on_call; /* of those that count as calls */
};

void d9__spans_release(struct d9__spans *spans);

/* The values of one event.  |id| 0 is treated as any other. */
struct d9__span_event {
	uint64_t ns, id;
	bool has_parent;
	const char *origin; /* terminated */
	const char *name;
	size_t name_len;
};

/* The values of a close.  Of old and foreign ones only the first two are known. */
struct d9__span_end {
	uint64_t ns, id;
	uint64_t start_ns;  /* of its creation; 0: not known */
	uint64_t active_ns; /* 0: not known */
	bool never_entered;
	bool has_parent;
	const char *origin; /* terminated */
	const char *name;
	size_t name_len;
};

/* 0 or -ENOMEM. */
int d9__span_enter(struct d9__spans *spans, struct d9__callbacks *callbacks,
		   struct d9__worker *worker, const struct d9__span_event *event);
int d9__span_exit(struct d9__spans *spans, uint64_t id, uint64_t ns);

/*
 * It was created at |event->ns|, before what is known of it, and is open: nothing if it is known.
 * |none|: the worker that stands for no worker.
 */
int d9__span_open(struct d9__spans *spans, struct d9__callbacks *callbacks,
		  struct d9__worker *none, const struct d9__span_event *event);
int d9__span_close(struct d9__spans *spans, const struct d9__span_end *end);

/* A span that was entered at |start_ns| and left and closed at |end->ns|.  0 or -ENOMEM. */
int d9__span_add(struct d9__spans *spans, const struct d9__span_end *end);

/* A poll of |worker| ended. */
void d9__spans_poll_end(struct d9__spans *spans, const struct d9__piece *piece);

/*
 * |worker|'s callback was open at |ns| for the last time, and so were the callbacks that it called: they end there.
 * |*innermost| becomes the one that was called last, if there is one, and |*since_ns|, which is 0, when it was.
 */
int d9__spans_end_of(struct d9__spans *spans, const struct d9__worker *worker, uint64_t ns,
		     struct d9__callback **innermost, uint64_t *since_ns);

/* The trace ends: finish what was left and not closed, count what was never left. */
int d9__spans_finish(struct d9__spans *spans);
