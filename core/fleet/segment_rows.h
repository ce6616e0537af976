/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment rows: what one segment adds to the fleet's tables.  It adds up by minute what the analysis tells of each call, piece
 * and sample, so that the sums are those of `dial9 report`.
 *
 *	d9__segment_rows_begin(&rows, &analysis, to_wall_ns, slow_ns);
 *	while (there are events)
 *		d9__analysis_event(&analysis, event), d9__segment_rows_event(&rows, event);
 *	d9__analysis_finish(&analysis, reader);
 *	d9__segment_rows_finish(&rows);
 *	... d9__segment_table_write() ...
 *	d9__segment_rows_release(&rows);
 */

#pragma once

#include "analyze/analysis.h"

#define D9__POWERS 64 /* of two */

/* Minutes count from 1970, UTC. */
struct d9__calls_row {
	const struct d9__callback *callback;
	uint32_t minute; /* in which the calls began */
	uint64_t polls, busy_ns, max_ns;
	uint64_t lost; /* events of the minute, in the first of its rows; of minutes without rows in the first of all */
	uint64_t by_power[D9__POWERS]; /* calls of 2^i ns and less than twice that; [0]: also of 0 ns */
};

struct d9__loop_row {
	const struct d9__worker *worker;
	uint32_t minute;
	uint64_t polls, parks, busy_ns, queue_max, wakes;
	struct d9__histogram late; /* from ready to running */
};

struct d9__slow_row {
	const struct d9__callback *callback;
	uint64_t worker, task, start_ns, ns;
	uint64_t blocked_ns, ready_ns; /* UINT64_MAX: not known */
};

struct d9__sample_row {
	const struct d9__callback *callback; /* NULL: in none */
	uint32_t minute, stack, thread;      /* stack and thread: their numbers + 1, or 0 */
	bool off_cpu;
	const struct d9__weight *weight; /* NULL: in no stratum */
	uint64_t samples;
};

struct d9__lost_row {
	uint32_t minute;
	uint64_t events;
};

/* Rows of one size, in order of their first sight. */
struct d9__row_list {
	void *items;
	size_t n, size;
	struct d9__table places; /* of each, + 1, by its row_key */
};

struct d9__segment_rows {
	struct d9__analysis *analysis; /* borrowed */
	uint64_t to_wall_ns;	       /* from the recorded process's clock, modulo 2^64 */
	uint64_t slow_ns;
	struct d9__row_list calls, loops, samples, lost, slow;
	struct d9__texts stacks;  /* of addresses, the innermost first */
	struct d9__texts threads; /* names */
	uint64_t *stack_ns;	  /* of each stack: when it was met first */
	size_t n_stacks;
	struct {
		uint64_t *parks; /* of each worker, so far */
		size_t n;
	} before;
	uint64_t lost_before;
	int err;
};

/* |rows| starts as all zero.  |analysis| has had no event yet; its hooks are taken. */
void d9__segment_rows_begin(struct d9__segment_rows *rows, struct d9__analysis *analysis, uint64_t to_wall_ns,
			    uint64_t slow_ns);

/* |event|, which the analysis has had.  0 or -ENOMEM. */
int d9__segment_rows_event(struct d9__segment_rows *rows, const struct d9_event *event);

/* After d9__analysis_finish(): bring the rows into the order of the tables.  0 or -ENOMEM. */
int d9__segment_rows_finish(struct d9__segment_rows *rows);

void d9__segment_rows_release(struct d9__segment_rows *rows);
