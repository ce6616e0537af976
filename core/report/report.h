/* SPDX-License-Identifier: Apache-2.0 */
/* The diagnosis of a trace, as text for people and as JSON for programs. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "analyze/analysis.h"
#include "findings/check_parts.h"
#include "findings/findings.h"

/* Version of the JSON: grows when something is removed or changes its meaning. */
#define D9__REPORT_VERSION 1

struct d9__report {
	const struct d9__analysis *analysis; /* finished and named */
	const struct d9__findings *findings;
	const struct d9__worker **workers;     /* by id; as many as the timeline has */
	const struct d9__callback **callbacks; /* by total time, largest first */
	size_t n_callbacks;
	struct d9__span_name **spans; /* by name, most time first */
	size_t n_spans;
};

/* Spans of one display name, of all origins. */
struct d9__span_name {
	const char *name;
	uint64_t count, unmatched, unclosed, active_ns, active_in_polls_ns, idle_ns;
	struct d9__histogram durations;
	struct d9__account time;
	const struct d9__span_type **types;
	size_t n;
};

/* Sort and sum up what both forms need.  0 or -ENOMEM; release in both cases. */
int d9__report_init(struct d9__report *report, const struct d9__analysis *analysis,
		    const struct d9__findings *findings);
void d9__report_release(struct d9__report *report);

/* The trace's events, as the wire and REPORT-JSON.md call them, summed by name. */
struct d9__named_count {
	const char *name;
	enum d9_event_kind kind;
	uint64_t events;
};

/* Events of |n_reports| processes by name, most first, in new memory (free() it); NULL: out of memory. */
struct d9__named_count *d9__reports_counts(const struct d9__report *reports, size_t n_reports, size_t *n);

/* "main", "worker 3": its name, or what stands for it. */
void d9__report_loop_name(const struct d9__analysis *a, const struct d9__worker *worker, char *buf,
			  size_t size);

/*
 * "83 % awake: authorise_request 78 % (76 % asleep in read(3)), library 2 %" of one loop; with
 * |cpu| "83 % awake, 7 % CPU: ...".  The second puts "; without a CPU for another 20 % of the
 * time", if that is worth a word.
 */
struct d9__owners;
void d9__report_put_awake(FILE *out, const struct d9__analysis *a, const struct d9__owners *owners,
			  bool cpu);
void d9__report_put_taken(FILE *out, const struct d9__owners *owners);

/* From "left_ns" to "others_ns" of an account, as in REPORT-JSON.md. */
struct d9__json;
void d9__report_json_owners(struct d9__json *json, const struct d9__owners *owners);

/* Where time went: of all calls of a callback, of one call, of a loop, of the spans of one name. */
struct d9__parts d9__report_parts_of_callback(const struct d9__analysis *analysis, const struct d9__callback *callback);
struct d9__parts d9__report_parts_of_call(const struct d9__analysis *analysis, const struct d9__stall *stall);
struct d9__parts d9__report_parts_of_worker(const struct d9__worker *worker);
struct d9__parts d9__report_parts_of_spans(const struct d9__analysis *analysis, const struct d9__span_name *span);

/* A finding and whose it is. */
struct d9__report_finding {
	const struct d9__report *report;
	const struct d9__finding *finding;
};

/* Findings of |n| processes, worst first, in new memory (free() it); NULL: out of memory. */
struct d9__report_finding *d9__reports_findings(const struct d9__report *reports, size_t n,
						size_t *n_findings);

/* The process whose events begin first, and the time of the last event of all. */
const struct d9__analysis *d9__reports_first(const struct d9__report *reports, size_t n);
uint64_t d9__reports_end_ns(const struct d9__report *reports, size_t n);

/* Where "SpanEnter:ORIGIN" ends in an origin that is not terminated. */
size_t d9__span_origin_len(const struct d9__span_type *type);

struct d9__json;

/* Keys that the caller adds at the end of the object. */
struct d9__report_more {
	void (*put)(void *context, struct d9__json *json);
	void *context;
};

/*
 * The |n| processes of one trace, at least one: core/doc/REPORT-JSON.md.  |more| NULL: that is all.  0 or -ENOMEM;
 * errors of writing stay in |out|.
 */
int d9__report_json(const struct d9__report *reports, size_t n, const struct d9__report_more *more, FILE *out);

/* Parts that can be asked for by name: these two are about all processes of a trace, the others about each. */
#define D9__SECTION_DATA     1u
#define D9__SECTION_FINDINGS 2u

/* The bit of the section called |name|; 0: there is none. */
unsigned d9__report_section(const char *name);

/* Name |i| of all sections; NULL behind the last. */
const char *d9__report_section_name(size_t i);

/* The choice of what to show: one finding, else some sections, else everything, else what fits on a screen. */
struct d9__report_style {
	unsigned width; /* columns, at least 40 */
	unsigned lines; /* of the screen, one of which is left to the prompt */
	unsigned top;   /* rows of long tables */
	bool color;
	bool utf8;
	bool full;
	unsigned sections;  /* bits; 0: not by name */
	size_t finding;     /* from 1 in the order of d9__reports_findings(); 0: not by number */
	const char *traces; /* as the user names them, for commands to type; NULL: "TRACE" */
};

/* As d9__report_json(). */
int d9__report_text(const struct d9__report *reports, size_t n,
		    const struct d9__report_style *style, FILE *out);
