/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that one pass over a trace tells, for reports, budgets and comparisons. */

#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/accepts.h"
#include "analyze/blocked.h"
#include "analyze/callbacks.h"
#include "analyze/fired.h"
#include "analyze/gauges.h"
#include "analyze/growth.h"
#include "analyze/heap.h"
#include "analyze/helpers.h"
#include "analyze/idle.h"
#include "analyze/latency.h"
#include "analyze/bound.h"
#include "analyze/machine.h"
#include "analyze/metadata.h"
#include "analyze/population.h"
#include "analyze/processes.h"
#include "analyze/samples.h"
#include "analyze/shape.h"
#include "analyze/spans.h"
#include "analyze/spawn_texts.h"
#include "analyze/stalls.h"
#include "analyze/tasks.h"
#include "analyze/timeline.h"

/* Events of one wire name. */
struct d9__event_count {
	char *name;
	enum d9_event_kind kind;
	uint64_t events;
};

/* Whether a segment's |err| is damage: one that was cut short or is not there (-ENOENT) is whole as far as it goes. */
static inline bool d9__segment_is_damaged(int err)
{
	return err && err != -ENODATA && err != -ENOENT;
}

/* Whether a segment was cut before its first event.  One being written may have none yet. */
static inline bool d9__segment_is_unreadable(bool truncated, bool active, uint64_t events)
{
	return truncated && !active && !events;
}

/* A segment, as the reader knows it at the end. */
struct d9__segment_fact {
	char *path, *container, *message; /* message: NULL if nothing is wrong */
	uint64_t stored_bytes, unpacked_bytes, events, first_ns, last_ns, err_offset;
	bool active, truncated;
	int err;
};

/* Stops of the process that are remembered. */
#define D9__STOPS_MAX 32

/* A file of the recorded program from which functions have no names. */
struct d9__lacking_file {
	const char *path, *why; /* "is not here" */
	bool is_other;		/* the file at that path is not the recorded one */
	uint64_t places;
};

#define D9__LACKING_MAX 3

/*
 * Of one process: feed it its events in time order, then finish it.  Memory grows with workers,
 * tasks that live at once and distinct callbacks, not with events.  Its parts point into each
 * other, so they are released together: by d9__analysis_release() and nothing else.
 */
struct d9__analysis {
	struct d9__timeline timeline;
	struct d9__tasks tasks;
	struct d9__callbacks callbacks;
	struct d9__stalls stalls;
	struct d9__pauses pauses;
	struct d9__latency latency;
	struct d9__spans spans;
	struct d9__worker no_worker; /* of spans on threads that run no loop */
	struct d9__samples samples;
	struct d9__idle idle;
	struct d9__accepts accepts;
	struct d9__fired fired;
	struct d9__heap heap;
	struct d9__blocked blocked;
	struct d9__metadata metadata;
	struct d9__trace_losses losses;
	struct d9__gauge queue;      /* work that no worker has picked up yet */
	struct d9__gauge registered; /* tasks of a loop */
	struct d9__population population;
	struct d9__resource_usage usage;
	/* The whole process stood still, as its recorder says. */
	struct {
		uint64_t n, ns, longest_ns, longest_at_ns;
		struct {
			uint64_t from_ns, to_ns;
		} items[D9__STOPS_MAX]; /* the first */
		uint64_t suspended_ns; /* the machine was suspended: no part of any time here */
	} stopped;
	struct d9__machine machine;
	struct d9__bound bound;
	struct d9__growth_state growth;
	struct d9__lacking_file
		lacking[D9__LACKING_MAX]; /* with the most places; texts are the namer's */
	size_t n_lacking;		  /* all, of which some may not be there */
	struct d9__texts places; /* where calls were found asleep */
	struct d9__texts functions; /* that block, as they were told */
	struct d9__spawn_texts spawn_texts; /* of segments with names in them */

	uint64_t events;
	struct d9__event_count *counts; /* by schema id; several may share a name */
	size_t n_counts;

	uint64_t first_ns, last_ns;           /* of all events that carry a time */
	uint64_t loop_first_ns, loop_last_ns; /* of polls, parks, queue samples and wakes */
	bool any_metadata, from_start; /* the latter: the trace begins when the process's recorder did */
	bool any_time, any_loop;
	bool has_wall; /* a clock anchor was seen: wall = monotonic + (anchor_wall - anchor) */
	uint64_t anchor_ns, anchor_wall_ns;
	uint64_t told_ns; /* TaskSpawnEvents of that time tell the tasks that lived when a segment began; 0: there are none */
	uint64_t uninstrumented_polls;
	bool off_cpu_seen; /* calls tell how long they were off the CPU */

	struct d9__segment_fact *segments; /* set by d9__analysis_finish() */
	size_t n_segments;

	struct d9__helper_runs helper_runs;

	bool beside; /* set by the caller: another process of the trace ran loops */
	size_t unwritten; /* set by the caller: other processes that the trace should know of, and does not */
	int write_error;       /* errno of the last write that failed, as the recorder tells; 0: none */
	size_t unwritten_ends; /* likewise: processes with more to tell than their segments say */

	/* Called, if it is set, for each piece of a call that ends, beside what is done here. */
	void (*on_piece)(void *context, struct d9__worker *worker, const struct d9__piece *piece);
	void *on_piece_context;
	struct d9__call_hook on_call; /* spans.on_call is told of those inside of others */

	/* Which process of the trace this is about: set before the first event.  NULL: it is one. */
	const struct d9__processes *processes;
	size_t process;
};

/* |analysis| starts as all zero.  0 or -ENOMEM. */
int d9__analysis_event(struct d9__analysis *analysis, const struct d9_event *event);

/* A call that began before the first event, and counts from |from_ns| on. */
struct d9__going_call {
	uint64_t task;
	struct d9_text place; /* where that was registered, in case it is not known */
	struct d9_text
		inner; /* the function of the program that the library has called; "": none */
	uint64_t from_ns;
};

/* |worker| is in the middle of |call|.  0 or -ENOMEM. */
int d9__analysis_goes_on(struct d9__analysis *analysis, struct d9__worker *worker,
			 const struct d9__going_call *call);

/* The worker whose thread |event|, a CpuSampleEvent, found at work: by its tid, else by what it says; NULL: none. */
struct d9__worker *d9__analysis_sampled(const struct d9__analysis *analysis, const struct d9_event *event);

/* Put |event|, an AllocEvent or a FreeEvent, into |heap|, which need not be the analysis's own.  0 or -ENOMEM. */
int d9__analysis_alloc(struct d9__analysis *analysis, const struct d9_event *event, struct d9__heap *heap);
void d9__analysis_free(const struct d9_event *event, struct d9__heap *heap);

/*
 * Whether the process still started until |to_ns|: in the first second of its loops, of which three times as much is recorded.
 * A program that does something once then (reads its files, asks a bus for its name) disturbs no client, if nothing of it
 * |waited|, or if that began as soon as its loops did, at |from_ns|.
 */
bool d9__analysis_is_start(const struct d9__analysis *a, uint64_t from_ns, uint64_t to_ns, bool waited);

/* Read from |event|, an OffCpuEvent, how long its call slept and how long it was ready without a CPU. */
void d9__analysis_off_cpu(const struct d9_event *event, uint64_t *blocked_ns, uint64_t *ready_ns);

/* After the last event.  |reader| may be NULL.  0 or -ENOMEM. */
int d9__analysis_finish(struct d9__analysis *analysis, const struct d9_reader *reader);

void d9__analysis_release(struct d9__analysis *analysis);

/* Whether loops, stacks or allocations were recorded: what else is in a trace is about the recording itself. */
bool d9__analysis_has_any(const struct d9__analysis *analysis);

/* Whether the program ended in the middle of its recording; why is not known. */
#define D9__KILLED "killed or left by _exit()"
bool d9__analysis_was_killed(const struct d9__analysis *analysis);

/*
 * The share of the time in which the recorder told the kernel's switches: samples of them stand for the rest of it, too.
 * 1: all of it, or nothing is said of that.
 */
double d9__analysis_switch_share(const struct d9__analysis *analysis);

/* Below this share of the CPU time, samples do not tell where the process's time went. */
#define D9__SAMPLED_ENOUGH 0.8

/*
 * The share of the process's CPU time, without the recorder's, that samples stand for.  It can be a
 * little over 1.  Below 0: not known, because nothing was sampled or less than half a second was
 * used.
 */
double d9__analysis_sampled_share(const struct d9__analysis *analysis);

/* A place in the recorded program, and what is found there.  All texts are borrowed. */
struct d9__place {
	const char *text; /* "memcached+0x1a2b0" */
	size_t len;
	uint64_t address; /* in the recorded process, or 0 */
	uint64_t ns;	  /* when it was met there; 0: not known */
	enum d9__place_role {
		D9__PLACE_FUNCTION, /* where one begins */
		D9__PLACE_CALL,     /* the address behind a call: the call is meant */
		D9__PLACE_RUNNING,  /* what was being executed */
	} role;
	const char *function, *file, *module; /* NULL: unknown */
	unsigned line;
	const char *outermost; /* function that it was inlined into; NULL: none */
};

/* Names for people. */
struct d9__namer {
	/* Fill the last five; false if no function is known: then it is NULL, or
	 * "memcached+0x1a2b0". */
	bool (*name)(void *context, struct d9__place *place);
	void *context;
	/* Fill in the file |i| that lacks names, with texts that live as long as |context|; false:
	 * that was the last.  Or NULL. */
	bool (*lacking)(void *context, size_t i, struct d9__lacking_file *out);
};

/* Give names to all callbacks and to the frames of all stacks, and find inner functions.  0 or -ENOMEM. */
int d9__analysis_name(struct d9__analysis *analysis, const struct d9__namer *namer);

/*
 * Give names to callbacks alone, because frames cost more: for a caller that tells nothing of the
 * stacks.  May be called again, for those that have none yet.  0 or -ENOMEM.
 */
int d9__analysis_name_callbacks(struct d9__analysis *analysis, const struct d9__namer *namer);

/* CPU time of the process, from its start on where the trace begins with it. */
struct d9__cpu_shares {
	uint64_t all_ns;       /* 0: not known */
	uint64_t loops_ns;     /* of threads that run loops, before the first wait too */
	uint64_t recorder_ns;  /* of the recorder's own thread */
	uint64_t elsewhere_ns; /* the rest */
};
struct d9__cpu_shares d9__analysis_cpu(const struct d9__analysis *analysis);

/* Name of a worker for people: its lane group, else its thread, else NULL. */
const char *d9__analysis_worker_name(const struct d9__analysis *analysis,
				     const struct d9__worker *worker);

/* Where the trace's times begin for people: the first loop event, else the first event. */
uint64_t d9__analysis_start_ns(const struct d9__analysis *analysis);
uint64_t d9__analysis_end_ns(const struct d9__analysis *analysis);

/* Wall time of a monotonic one, in ns since 1970; 0 if the trace has no anchor. */
uint64_t d9__analysis_wall_ns(const struct d9__analysis *analysis, uint64_t ns);
