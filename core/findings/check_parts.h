/* SPDX-License-Identifier: Apache-2.0 */
/* Check parts: the checks of each file check_*.c, and the functions that several files need of one. */

#pragma once

#include "findings/finding.h"

/* check_data.c */
void d9__check_nothing_recorded(struct d9__findings *findings);
void d9__check_incomplete_data(struct d9__findings *findings);
void d9__check_degraded_hooks(struct d9__findings *findings);
void d9__check_refused_source(struct d9__findings *findings);
void d9__check_names_missing(struct d9__findings *findings);
void d9__check_missing_source(struct d9__findings *findings);

/* check_blocked_callback.c */
void d9__check_blocked_callback(struct d9__findings *findings);

/* check_long_callback.c */
void d9__check_long_callback(struct d9__findings *findings);

/* check_accepts.c */
void d9__check_accept_queue(struct d9__findings *findings);

/* check_stuck.c */
void d9__check_stuck_callback(struct d9__findings *findings);
void d9__check_running_at_end(struct d9__findings *findings);

/* check_nested.c */
void d9__check_nested_loop(struct d9__findings *findings);

/* check_library.c: of worker |number|, where the recorder did not see it burn CPU time, by its
 * rounds. */
void d9__check_held_by_library(struct d9__findings *findings, size_t number);

/* check_outside.c */
void d9__check_source_time(struct d9__findings *findings);
void d9__check_inside_library(struct d9__findings *findings);
void d9__check_busy_wait(struct d9__findings *findings);
void d9__check_loop_overhead(struct d9__findings *findings);

/* How long |worker| was in the prepare() or check() functions of sources. */
uint64_t d9__worker_in_sources_ns(const struct d9__analysis *a, const struct d9__worker *worker,
				  enum d9__outside_phase phase);

/* How long |worker| was awake, on the CPU, in its loop, and in no callback and no function of a
 * source's. */
uint64_t d9__worker_own_ns(const struct d9__analysis *a, const struct d9__worker *worker);

/* check_balance.c */
void d9__check_idle_workers(struct d9__findings *findings);

/* check_between.c */

/* Whether |worker|'s loop never waits, and is hardly more than asked for events: what lies between
 * its rounds is the asking. */
bool d9__finding_never_waits(const struct d9__findings *findings, const struct d9__worker *worker);

/* The program's function that runs the loop, as samples found one in it; NULL: not known. */
const char *d9__finding_runner(const struct d9__findings *findings);

void d9__check_between_rounds(struct d9__findings *findings);
void d9__check_sleeps_between(struct d9__findings *findings);

/* check_budget.c */
void d9__check_many_wakes(struct d9__findings *findings);

/* check_elsewhere.c */
void d9__check_elsewhere(struct d9__findings *findings);

/* check_growth.c */
void d9__check_memory_growth(struct d9__findings *findings);

void d9__check_descriptor_growth(struct d9__findings *findings);

/* check_heap.c */
void d9__check_leak_by_site(struct d9__findings *findings);

/* check_inside.c */
void d9__check_page_faults(struct d9__findings *findings);

/* Tell where calls of |callback| were found asleep, if they were. */
void d9__finding_add_places(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *callback);

/* Whether the CPU time of |callback|'s long calls went into system calls for the most part. */
bool d9__finding_is_in_kernel(const struct d9__callback *callback);

/* check_shares.c */
void d9__check_works_for_nothing(struct d9__findings *findings);
void d9__check_saturated(struct d9__findings *findings);
void d9__check_adds_up(struct d9__findings *findings);

/*
 * "read(7) returns 0", "accept(3) fails with EMFILE", "write(4) has to wait (EAGAIN)": the most
 * frequent of the calls that brought nothing; and what to do about it.
 */
void d9__finding_nothing(const struct d9__io *io, char *buf, size_t size);
const char *d9__finding_nothing_advice(const struct d9__io *io);

/* check_shape.c */
void d9__check_cold_start(struct d9__findings *findings);
void d9__check_growing_calls(struct d9__findings *findings);
void d9__check_periodic_pause(struct d9__findings *findings);

/* ", every 1.05 s", if the long calls of |callback| come in a rhythm; else nothing. */
void d9__finding_rhythm(const struct d9__findings *findings, const struct d9__callback *callback, char *buf,
			size_t size);

/* check_waits.c */
void d9__check_unfair(struct d9__findings *findings);
void d9__check_backlog(struct d9__findings *findings);
void d9__check_timer_late(struct d9__findings *findings);
void d9__check_wake_delay(struct d9__findings *findings);

/* check_blocked.c */

/*
 * Write the holder of the lock that |site| waited for longest: "on_flush of worker 2, released at
 * flush_index (index.c:40), had it for 25.0 ms, 0.10 ms of them on the CPU"; "": the trace does not
 * tell.
 */
void d9__finding_holder(const struct d9__analysis *a, const struct d9__blocked_site *site, char *buf, size_t size);

/* Return the functions in which |callback|'s calls block, for finding->blocked; NULL: nothing that matters, or no memory. */
char *d9__finding_blocked(const struct d9__analysis *a, const struct d9__callback *callback);

/* The site that |callback| blocks in longest. */
struct d9__finding_blocked {
	bool lock;	    /* or the like: it waits for |what|, else blocks in it */
	char call[48];	    /* the function that slept, "fsync" */
	char what[64];	    /* "fsync(7)", "a lock" */
	char function[48];  /* that called it, or "" */
	char held_in[48];   /* the function that held the lock, or "" */
	char place[288];    /* both, with the line: "fsync(7) at db_commit (svc.c:53)" */
	char holder[400];   /* d9__finding_holder() */
	uint64_t at_ns, ns; /* the longest of its calls */
};

/* False: what it blocks in is not known for most of the time that it sleeps. */
bool d9__finding_blocked_most(const struct d9__analysis *a, const struct d9__callback *callback,
			      struct d9__finding_blocked *out);

/* check_one_of_many.c */

/* Tell whose the long calls are that a finding is about, where they are of one task of many, or on
 * one thread. */
void d9__findings_add_one_of_many(struct d9__findings *findings);

/* check_rounds.c */
void d9__check_long_round(struct d9__findings *findings);

/* Whether |callback| keeps a loop in a round that does not end: that is told, and not who waited
 * behind which of its calls. */
bool d9__finding_is_endless(const struct d9__findings *findings,
			    const struct d9__callback *callback);

/* check_timers.c */
void d9__check_stale_clock(struct d9__findings *findings);
void d9__check_timer_overrun(struct d9__findings *findings);

/* check_wakes.c */
void d9__check_lost_wake(struct d9__findings *findings);
void d9__check_empty_wakes(struct d9__findings *findings);

/* Whether |worker| is one of GLib's own threads, whose loops no program has a hand in. */
bool d9__worker_is_librarys_own(const struct d9__analysis *a, const struct d9__worker *worker);

/* Print the name of the waker: "produce", "worker 2", "a thread without a loop". */
void d9__finding_waker(const struct d9__findings *findings, uint64_t waker, uint64_t waker_worker,
		       char *buf, size_t size);

/* How often the loop of |worker| went round, where sources of GLib tell; else 0. */
uint64_t d9__finding_rounds(const struct d9__analysis *a, const struct d9__worker *worker);

/* check_helpers.c */
void d9__check_helper_queue(struct d9__findings *findings);

/* check_loops.c */
void d9__check_accept_storm(struct d9__findings *findings);
void d9__check_spin(struct d9__findings *findings);
void d9__check_wake_storm(struct d9__findings *findings);
void d9__check_idle_wakes(struct d9__findings *findings);

/* check_machine.c */
void d9__check_short_of_cpu(struct d9__findings *findings);
void d9__check_cpu_contention(struct d9__findings *findings);
void d9__check_stopped(struct d9__findings *findings);

/*
 * How long loops' threads were ready without a CPU, and who had it: the limit of the process's cgroup held it (by
 * what the whole cgroup lost), the host ran other machines (on any CPU of this one), the process's own threads took
 * all it may use, or other programs ran.  Unknown is what lies outside of the samples of the first two (once a
 * second), unless it was the process itself.  The parts sum to |ns|.
 */
struct d9__ready {
	uint64_t ns, limit_ns, host_ns, own_ns, others_ns, unknown_ns;
};
struct d9__ready d9__ready_of(const struct d9__analysis *analysis);

/* Whether the trace tells what came of reads and writes. */
bool d9__finding_is_io_recorded(const struct d9__analysis *analysis);

/* Whether loops were ready without a CPU for longer than they were awake: then others made their
 * work pile up. */
bool d9__finding_is_machine_full(const struct d9__findings *findings);

/*
 * How much of |delay| the machine took from calls too short to tell it of themselves: what the active period's
 * CPU time lacks, as far as the process's threads had to wait for a CPU at all.
 */
uint64_t d9__delay_preempted_ns(const struct d9__analysis *analysis, const struct d9__delay *delay);

/* The longest time for which a loop's thread was ready without a CPU: when it woke, or in the middle of a call. */
uint64_t d9__ready_longest_ns(const struct d9__analysis *analysis);

/* check_process.c */
void d9__check_blocking(struct d9__findings *findings);
void d9__check_queue_depth(struct d9__findings *findings);
void d9__check_task_leak(struct d9__findings *findings);
void d9__check_many_spans(struct d9__findings *findings);
void d9__check_worker_imbalance(struct d9__findings *findings);
void d9__check_span_outlier(struct d9__findings *findings);
void d9__check_unmatched_spans(struct d9__findings *findings);
void d9__check_misused_spans(struct d9__findings *findings);
void d9__check_no_wakes(struct d9__findings *findings);
void d9__check_sample_setup(struct d9__findings *findings);
