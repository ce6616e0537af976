/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that `dial9 info` prints, gathered in one pass over a trace in any order of events. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/processes.h"
#include "analyze/texts.h"
#include "tool/event_line.h"

/* A name and a number: events by type, events lost by cause. */
struct d9__tally {
	const char *name;
	uint64_t n;
};

struct d9__tallies {
	struct d9__tally *items;
	size_t n;
	struct d9__texts names; /* item i has text i, until they are sorted */
};

/* One entry of the metadata; later values replace earlier ones. */
struct d9__fact {
	const char *key;
	char *value;
	uint64_t at_ns;
};

#define D9__LOG_KEPT 10

/* A line of the recorder's own log.  Do not trust it: a trace can say anything. */
struct d9__log_line {
	uint64_t ns, times;
	char *level, *text;
};

/* All lines are counted, the latest are kept. */
struct d9__log {
	struct d9__tallies levels;
	struct d9__log_line last[D9__LOG_KEPT]; /* by time, NULL texts at the end */
	size_t n;
};

/* One recorded process. */
struct d9__process {
	const char *directory; /* borrowed; "-" for standard input */
	uint64_t first_ns, last_ns;      /* 0 and 0 without events that carry a time */
	uint64_t sync_ns, sync_wall_ns;  /* its earliest clock sync; 0 and 0 without one */
	uint64_t events;
	struct d9__tallies loss;
	struct d9__fact *metadata; /* sorted by key after d9__trace_facts_finish() */
	size_t n_metadata;
	struct d9__texts keys; /* fact i has text i, until they are sorted */
	uint64_t health_ns; /* of its latest health event */
	char *health_json, *health_text; /* that event as a line, or NULL */
	struct d9__log log;
};

struct d9__trace_facts {
	struct d9__tallies types; /* sorted by name after d9__trace_facts_finish() */
	struct d9__process *processes;
	size_t n_processes;

	/* While gathering. */
	struct d9__processes ids;
	size_t *type_of_schema; /* index in |types|, by d9_schema_id() */
	size_t n_schemas;
	struct d9__text_out *scratch;
	struct d9__event_lines lines;
};

/* 0 or -ENOMEM. */
int d9__trace_facts_init(struct d9__trace_facts *facts, const struct d9_reader *reader);
int d9__trace_facts_add(struct d9__trace_facts *facts, const struct d9_event *event);
void d9__trace_facts_finish(struct d9__trace_facts *facts);
void d9__trace_facts_release(struct d9__trace_facts *facts);

/* Wall-clock time of the first event, in ns since 1970; 0 if the process never told. */
uint64_t d9__process_wall_start_ns(const struct d9__process *process);

/* Return the value of |key| in the metadata, or NULL. */
const char *d9__process_fact(const struct d9__process *process, const char *key);
