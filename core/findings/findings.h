/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, the faults that a trace shows: the rules as one table. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/analysis.h"

enum d9__severity {
	D9__CRITICAL,
	D9__WARNING,
	D9__INFO,
	D9__SEVERITIES
};

/* "critical", "warning", "info". */
const char *d9__severity_name(enum d9__severity severity);

/* The subject of a check.  Consequences stand under causes of the same. */
enum d9__about {
	D9__ABOUT_DATA,	 /* how far all other findings can be trusted */
	D9__ABOUT_TIME,	 /* what has the loop, and who waits for it */
	D9__ABOUT_WAKES, /* loops that are woken for little, or not when they should */
	D9__ABOUT_KEPT,	 /* tasks, memory, descriptors that only grow */
	D9__ABOUT_REST
};

/* One observation behind a finding.  Zero fields: not said. */
struct d9__evidence {
	char *text; /* without time and place */
	uint64_t at_ns, duration_ns;
	bool has_worker;
	uint64_t worker, task;
	const struct d9__callback *callback;
};

#define D9__EVIDENCE_MAX 12
#define D9__EFFECTS_MAX  8

/*
 * One cause, one finding: what follows from it is kept under it.  A check that finds a consequence (a
 * late timer, waits, a backlog) names the callback whose doing it is, d9__finding_set_effect(); when all
 * checks have run, those whose callback has a finding of its own become effects of that one.
 */
struct d9__finding {
	const char *check; /* stable id, "long-callback" */
	unsigned rank;	   /* of the check: causes before consequences */
	unsigned place;	   /* among findings of one severity: that of its check, or of one that tells of the same time */
	enum d9__about about;
	enum d9__severity severity;
	uint64_t impact;     /* larger first, among findings of one place and severity */
	char *message;       /* one sentence */
	char *name;          /* the function, span or loop it is about, or NULL */
	char *figure;	     /* "182 ms": the first in |brief| that has a unit, which the card shows; or NULL */
	char *brief;         /* |message| in a verb phrase without the name, at most 55 characters, or NULL */
	char *hot;	     /* "83 % in render_row (svc.c:88)": where its callback was found on the CPU; or NULL */
	char *time;	     /* "62 % on CPU, 38 % blocked in fsync": its callback's longest calls; or NULL */
	bool has_gain;	     /* what would be without its callback is known, */
	struct d9__gain gain; /* and is this */
	char *blocked; /* "fsync(7) at db_commit (svc.c:53), 20 times, 500 ms in all": what its callback blocks in; or NULL */
	const char *advice;  /* what to do */
	bool machine;        /* about the machine, not about the program */
	const struct d9__callback *callback; /* that it is about, or NULL */
	const char *source;  /* where that is, "hello.c:52", or NULL; borrowed */
	uint64_t task;       /* an example, for dial9 diagram --task; 0: none */
	struct d9__evidence evidence[D9__EVIDENCE_MAX];
	size_t n_evidence;

	/* Of a consequence: how it reads under its cause ("29 waits over 5 ms"), and who caused it. */
	char *effect;
	const struct d9__callback *culprit;
	struct d9__finding *effects[D9__EFFECTS_MAX]; /* owned, and not among the findings */
	size_t n_effects;
};

/* Worst first.  All zero is empty. */
struct d9__findings {
	struct d9__finding **items;
	size_t n;
	size_t by_severity[D9__SEVERITIES];

	/* Callbacks with a finding that says more of their long calls than that they are long. */
	struct d9__explained {
		const struct d9__callback *callback;
		struct d9__finding *finding;
	} *explained;
	size_t n_explained;

	struct d9__rhythm *rhythms; /* of its long calls, from the first check that asks on */
	size_t n_rhythms;

	/* While they are made. */
	const struct d9__analysis *analysis;
	unsigned rank, place;
	const char *check;
	enum d9__about about;
	int err;
};

/* Apply all checks to |analysis|, which is finished and named.  0 or -ENOMEM. */
int d9__findings_make(struct d9__findings *findings, const struct d9__analysis *analysis);

void d9__findings_release(struct d9__findings *findings);

/* All checks have run: put the findings in order, consequences under causes, with what is known of each.  0 or -ENOMEM. */
int d9__findings_finish(struct d9__findings *findings);

/* Free |finding| with its effects. */
void d9__finding_release(struct d9__finding *finding);

/* Order of findings: negative if |a| is the worse one. */
int d9__findings_compare(const struct d9__finding *a, const struct d9__finding *b);

/*
 * Calls from here on are long for |worker|: three times the 99th percentile of its calls, at least
 * a millisecond, at most D9__LONG_ALWAYS_NS.
 */
#define D9__LONG_ALWAYS_NS (10 * D9__MS_NS)
uint64_t d9__long_call_ns(const struct d9__worker *worker);

/* ---- for the checks ---- */

/* A new finding of the check that runs, or NULL: out of memory, noted in |findings|. */
struct d9__finding *d9__finding_add(struct d9__findings *findings, enum d9__severity severity,
				    uint64_t impact, const char *advice, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Name what |finding| is about; |name| is copied. */
void d9__finding_set_name(struct d9__findings *findings, struct d9__finding *finding,
			  const char *name, size_t len);

/* printf(3) arguments for the name of |callback|; NULL is "nothing". */
struct d9__shown_name {
	const char *text;
	int len;
};
struct d9__shown_name d9__finding_name(const struct d9__callback *callback);

/* |finding| is about |callback|: its name, its source. */
void d9__finding_set_callback(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback);

/* Set |finding|'s brief.  |finding| may be NULL, here and below. */
void d9__finding_set_brief(struct d9__findings *findings, struct d9__finding *finding, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* |finding| is about the machine, and not about the program: its brief says what is with it. */
void d9__finding_set_machine(struct d9__findings *findings, struct d9__finding *finding, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* |finding| is a consequence of what |culprit| did (NULL: unknown), and reads so under it. */
void d9__finding_set_effect(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *culprit, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * |n| in |ns| as so many a second, in two digits: exact ones would be taken for the number of calls, which tables
 * have.
 */
uint64_t d9__finding_rate(uint64_t n, uint64_t ns);

/* " (12.0 ms preempted)", or nothing if that is not worth telling. */
void d9__finding_taken(uint64_t taken_ns, char *buf, size_t size);

/* Append |evidence|, whose text is made from |format|.  Beyond D9__EVIDENCE_MAX nothing happens. */
void d9__finding_add_evidence(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__evidence *evidence, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* |finding| tells of the long calls of |callback|: no other accuses it for them, and what follows is its effect. */
void d9__finding_explain(struct d9__findings *findings, struct d9__finding *finding,
			 const struct d9__callback *callback);
bool d9__finding_is_explained(const struct d9__findings *findings, const struct d9__callback *callback);

/* Whether an earlier |check| found something. */
bool d9__finding_told(const struct d9__findings *findings, const char *check);

/* Print the name of the waker: "produce", "worker 2", "a thread without a loop". */
void d9__finding_waker(const struct d9__findings *findings, uint64_t waker, uint64_t waker_worker,
		       char *buf, size_t size);

/* findings_data.c */
void d9__check_nothing_recorded(struct d9__findings *findings);
void d9__check_incomplete_data(struct d9__findings *findings);
void d9__check_degraded_hooks(struct d9__findings *findings);
void d9__check_refused_source(struct d9__findings *findings);
void d9__check_missing_source(struct d9__findings *findings);

/* findings_calls.c */
void d9__check_blocked_callback(struct d9__findings *findings);
void d9__check_timer_overrun(struct d9__findings *findings);
void d9__check_long_callback(struct d9__findings *findings);
void d9__check_running_at_end(struct d9__findings *findings);

/* findings_accepts.c */
void d9__check_accept_queue(struct d9__findings *findings);

/* findings_stuck.c */
void d9__check_stuck_callback(struct d9__findings *findings);

/* findings_nested.c */
void d9__check_nested_loop(struct d9__findings *findings);

/* findings_outside.c */
void d9__check_source_time(struct d9__findings *findings);
void d9__check_busy_wait(struct d9__findings *findings);
void d9__check_loop_overhead(struct d9__findings *findings);

/* How long |worker| was in the prepare() or check() functions of sources. */
uint64_t d9__worker_in_sources_ns(const struct d9__analysis *a, const struct d9__worker *worker,
				  enum d9__outside_phase phase);

/* How long |worker| was awake, on the CPU, and in no callback and no function of a source's. */
uint64_t d9__worker_own_ns(const struct d9__analysis *a, const struct d9__worker *worker);

/* findings_balance.c */
void d9__check_idle_workers(struct d9__findings *findings);

/* Whether |worker| is one of GLib's own threads, whose loops no program has a hand in. */
bool d9__worker_is_librarys_own(const struct d9__analysis *a, const struct d9__worker *worker);

/* findings_budget.c */
void d9__check_many_wakes(struct d9__findings *findings);

/* findings_growth.c */
void d9__check_memory_growth(struct d9__findings *findings);

void d9__check_descriptor_growth(struct d9__findings *findings);

/* findings_heap.c */
void d9__check_leak_by_site(struct d9__findings *findings);

/* findings_inside.c */
void d9__check_page_faults(struct d9__findings *findings);

/* Return the advice on sleeping in |place|, such as "fsync(7)" or "futex: a lock"; NULL: that is not known. */
const char *d9__finding_remedy(const struct d9__findings *findings, const char *place);

/*
 * Whether |stall| may have slept only because whom it waited for had no CPU: |place|, "" if unknown, is none where it sleeps
 * for something else (a time, a disk), and loops' threads were without one for as long.
 */
bool d9__finding_looks_starved(const struct d9__findings *findings, const struct d9__stall *stall, const char *place);

/* |place| as "in fdatasync(7)", "waiting for a lock". */
void d9__finding_asleep(const char *place, char *buf, size_t size);

/* Tell where calls of |callback| were found asleep, if they were. */
void d9__finding_add_places(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *callback);

/* Whether the CPU time of |callback|'s long calls went into system calls for the most part. */
bool d9__finding_is_in_kernel(const struct d9__callback *callback);

/* findings_shape.c */
void d9__check_cold_start(struct d9__findings *findings);
void d9__check_growing_calls(struct d9__findings *findings);
void d9__check_periodic_pause(struct d9__findings *findings);

/* ", every 1.05 s", if the long calls of |callback| come in a rhythm; else nothing. */
void d9__finding_rhythm(const struct d9__findings *findings, const struct d9__callback *callback, char *buf,
			size_t size);

/* findings_waits.c */
void d9__check_unfair(struct d9__findings *findings);
void d9__check_backlog(struct d9__findings *findings);
void d9__check_timer_late(struct d9__findings *findings);
void d9__check_wake_delay(struct d9__findings *findings);

/* findings_blocked.c */

/*
 * Who held the lock that |site| waited for longest: "on_flush of worker 2 in flush_index (index.c:40)"; "": nobody
 * knows.
 */
void d9__finding_holder(const struct d9__analysis *a, const struct d9__blocked_site *site, char *buf, size_t size);

/* Return the functions in which |callback|'s calls block, for finding->blocked; NULL: nothing that matters, or no memory. */
char *d9__finding_blocked(const struct d9__analysis *a, const struct d9__callback *callback);

/* The site that |callback| blocks in longest. */
struct d9__finding_blocked {
	bool lock;	    /* or the like: it waits for |what|, else blocks in it */
	char what[64];	    /* "fsync(7)", "a lock" */
	char function[48];  /* that called it, or "" */
	char held_in[48];   /* the function that held the lock, or "" */
	char place[288];    /* both, with the line: "fsync(7) at db_commit (svc.c:53)" */
	char holder[320];   /* d9__finding_holder() */
};

/* False: what it blocks in is not known for most of the time that it sleeps. */
bool d9__finding_blocked_most(const struct d9__analysis *a, const struct d9__callback *callback,
			      struct d9__finding_blocked *out);

/* findings_rounds.c */
void d9__check_long_round(struct d9__findings *findings);

/* findings_timers.c */
void d9__check_stale_clock(struct d9__findings *findings);

/* findings_wakes.c */
void d9__check_lost_wake(struct d9__findings *findings);

/* findings_helpers.c */
void d9__check_helper_queue(struct d9__findings *findings);

/* findings_loops.c */
void d9__check_accept_storm(struct d9__findings *findings);
void d9__check_spin(struct d9__findings *findings);
void d9__check_wake_storm(struct d9__findings *findings);
void d9__check_empty_wakes(struct d9__findings *findings);
void d9__check_idle_wakes(struct d9__findings *findings);

/* findings_machine.c */
void d9__check_short_of_cpu(struct d9__findings *findings);
void d9__check_cpu_contention(struct d9__findings *findings);

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

/*
 * How much of |delay| the machine took from calls too short to tell it of themselves: what the active period's
 * CPU time lacks, as far as the process's threads had to wait for a CPU at all.
 */
uint64_t d9__delay_preempted_ns(const struct d9__analysis *analysis, const struct d9__delay *delay);

/* The longest time for which a loop's thread was ready without a CPU: when it woke, or in the middle of a call. */
uint64_t d9__ready_longest_ns(const struct d9__analysis *analysis);

/* findings_process.c */
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
