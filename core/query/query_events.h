/* SPDX-License-Identifier: Apache-2.0 */
/* Events of one process as rows of a query's tables. */

#pragma once

#include "analyze/analysis.h"
#include "analyze/texts.h"
#include "base/table.h"
#include "query/query_rows.h"
#include "query/query_weights.h"
#include "symbol/symbolizer.h"
#include "tool/event_line.h"

/* A call that ended; an OffCpuEvent behind it may add to it. */
struct d9__query_poll {
	bool any;
	uint64_t id, task, callback, start_ns, duration_ns, delay_ns, local_queue, blocked_ns,
		ready_ns;
	bool told, resumed, open_ended, unended;
	unsigned on_samples, off_samples;
};

/* A run of a function that a library called in the poll that runs. */
struct d9__query_inner {
	uint64_t run, ns, told_ns;
};

/* The state of one worker. */
struct d9__query_lane {
	struct d9__query_inner *inner; /* long ones, whose reading comes behind the poll */
	size_t n_inner;
	struct d9__query_poll ended;
	uint64_t open_delay_ns, open_queue; /* of the running call */
	uint64_t off_ns, off_stack; /* its newest off-CPU sample, stack + 1, and 0: none */
};

/* Of all processes. */
struct d9__query_stacks {
	struct d9__texts keys; /* process, then addresses: stack i is text i */
	struct {
		uint64_t ns;
		bool running; /* its innermost address was being executed */
	} * met;
	size_t n;
};

struct d9__query_process {
	struct d9__query_rows *rows;	 /* borrowed, of all processes */
	struct d9__query_stacks *stacks; /* likewise */
	struct d9__event_lines *lines;	 /* likewise: their output is a buffer */
	uint64_t number, n_processes;
	struct d9__analysis analysis;
	struct d9__symbolizer *symbols; /* NULL: names are not wanted */
	struct d9__query_lane *lanes;	/* by the worker's number */
	size_t n_lanes;
	struct d9__table spans; /* that are not closed */
	struct d9__query_weights weights;
	bool out_of_memory;
};

/* |process| has its borrowed parts and its number. */
void d9__query_process_begin(struct d9__query_process *process);

/* One event, which goes to the analysis as well.  0 or -ENOMEM; errors of SQLite stay in the rows.
 */
int d9__query_event(struct d9__query_process *process, const struct d9_event *event);

/* After the last one.  0 or -ENOMEM. */
int d9__query_process_finish(struct d9__query_process *process, const struct d9_reader *reader);

void d9__query_process_release(struct d9__query_process *process);

/*
 * Return the stack's number + 1, or 0: the event has none, or out of memory, which is noted in
 * |process|.
 */
uint64_t d9__query_stack(struct d9__query_process *process, const struct d9_event *event,
			 unsigned k, bool running);
