/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the report share. */

#pragma once

#include "findings/owners.h"
#include "report/report.h"
#include "report/report_cells.h"
#include "text/json.h"
#include "text/page.h"

/* The processes of one trace. */
struct d9__report_all {
	const struct d9__report *reports;
	size_t n;
	const struct d9__analysis *first; /* times count from its start */
	const struct d9__report_style *style;
	struct d9__page *page;
};

/* The name of the recorded program, or "". */
const char *d9__report_program(const struct d9__analysis *a);

/* The process id of |a| if the trace tells it, else what tells it apart. */
const char *d9__report_pid(const struct d9__analysis *a);

/* Whether the trace says what its hooks could see. */
bool d9__report_tells_hooks(const struct d9__metadata *metadata);

/* A process, and the figures by which it is ranked. */
struct d9__ranked_process {
	const struct d9__report *report;
	uint64_t calls, busy_ns;
	uint64_t sampled_ns; /* on the CPU */
};

/* All processes, the worst first, in new memory; NULL: out of memory, and the page says so. */
struct d9__ranked_process *d9__report_rank(const struct d9__report_all *all);

/* Print the table of the first |rows| of |ranked|. */
void d9__report_processes(const struct d9__report_all *all, const struct d9__ranked_process *ranked,
			  size_t rows);

/* The table of callbacks of one process, at most |rows| of them. */
void d9__report_callbacks(const struct d9__report *report, const struct d9__report_style *style,
			  struct d9__page *page, size_t rows);

/* The functions that its threads were found in, at most |rows| of them.  Nothing without samples. */
void d9__report_threads(const struct d9__report *report, const struct d9__report_style *style, struct d9__page *page,
			size_t rows);

/* The tables of calls that blocked, and of locks; nothing if there are none. */
void d9__report_blocked(const struct d9__report *report, const struct d9__report_style *style, struct d9__page *page);

/* The table of where time went in one process. */
void d9__report_time(const struct d9__report *report, const struct d9__report_style *style, struct d9__page *page);

/* The first line of it: the program, how long, what is missing.  |findings|: the |n| of all
 * processes. */
void d9__report_headline(const struct d9__report_all *all, const struct d9__report_finding *findings, size_t n);

/*
 * Print whose the time of the loops was: a line each for those that were awake most; and, of loops
 * at their limit, where the largest owner's time went, unless that has a graver one of the |n|
 * |findings|, or |places| is false.
 */
void d9__report_accounts(const struct d9__report_all *all,
			 const struct d9__report_finding *findings, size_t n, bool places);

/* A line of advice or of effects begins so far in. */
#define D9__REPORT_INDENT 6

/* The column at which what stands at the right edge ends. */
size_t d9__report_edge(const struct d9__page *page);

/* "  at: 83 % in render_row (svc.c:88)": |text| behind |label|, in one line, or |whole|. */
void d9__report_put_labelled(struct d9__page *page, const char *label, const char *text,
			     bool whole);

/* Whether a loop ran in any process. */
bool d9__report_has_loops(const struct d9__report_all *all);

/* Print for each process the first trigger that fired, by which its recorder kept this trace; nothing where none did. */
void d9__report_fired(const struct d9__report_all *all);

/* Print the findings with their advice, on a screen of style->lines lines. */
void d9__report_first(const struct d9__report_all *all);

/* Print everything of one process behind the findings. */
void d9__report_sections(const struct d9__report *report, const struct d9__report_style *style,
			 struct d9__page *page);

/* Sections of one process. */
void d9__report_section_waits(struct d9__section *c);
void d9__report_section_timers(struct d9__section *c);
void d9__report_section_samples(struct d9__section *c);

/* ---- JSON ---- */

/* Where the time went while tasks were registered: "tasks" of a callback, and "time" of all. */
void d9__report_json_tasks_time(struct d9__json *json, const struct d9__analysis *a,
			 const struct d9__callback *callback);
void d9__report_json_all_tasks_time(struct d9__json *json, const struct d9__analysis *a);

/* Whole keys: "account" of a worker, "ready", and "gain" of a finding. */
void d9__report_json_account(struct d9__json *json, const struct d9__analysis *a,
			     const struct d9__worker *worker,
			     const struct d9__owners *owners);
void d9__report_json_ready(struct d9__json *json, const struct d9__analysis *a);
void d9__report_json_gain(struct d9__json *json, const struct d9__finding *finding);

/* "blocking_calls" and "locks".  0 or -ENOMEM. */
int d9__report_json_blocked(struct d9__json *json, const struct d9__analysis *a);
