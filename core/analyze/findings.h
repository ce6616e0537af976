/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace shows to be wrong: the rules as one table. */

#ifndef D9_ANALYZE_FINDINGS_H
#define D9_ANALYZE_FINDINGS_H

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

/* One observation behind a finding.  Zero fields: not said. */
struct d9__evidence {
	char *text; /* without time and place */
	uint64_t at_ns, duration_ns;
	bool has_worker;
	uint64_t worker, task;
	const struct d9__callback *callback;
};

#define D9__EVIDENCE_MAX 12

struct d9__finding {
	const char *check; /* stable id, "long-callback" */
	unsigned rank;     /* of the check: causes before consequences */
	bool first;        /* tells how far all other findings can be trusted */
	enum d9__severity severity;
	uint64_t impact;     /* larger first, among findings of one check and severity */
	char *message;       /* one sentence */
	char *name;          /* the function, span or loop it is about, or NULL */
	const char *advice;  /* what to do */
	struct d9__evidence evidence[D9__EVIDENCE_MAX];
	size_t n_evidence;
};

/* Worst first.  All zero is empty. */
struct d9__findings {
	struct d9__finding **items;
	size_t n;
	size_t by_severity[D9__SEVERITIES];

	/* While they are made. */
	const struct d9__analysis *analysis;
	unsigned rank;
	const char *check;
	bool first;
	int err;
};

/* Apply all checks to |analysis|, which is finished and named.  0 or -ENOMEM. */
int d9__findings_make(struct d9__findings *findings, const struct d9__analysis *analysis);

void d9__findings_release(struct d9__findings *findings);

/* Order of findings: negative if |a| is the worse one. */
int d9__findings_compare(const struct d9__finding *a, const struct d9__finding *b);

/*
 * Calls from here on are long for |worker|: three times the 99th percentile of its calls, at least
 * a millisecond, at most D9__LONG_ALWAYS_NS.
 */
#define D9__LONG_ALWAYS_NS D9__MS(10)
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
struct d9__name {
	const char *text;
	int len;
};
struct d9__name d9__finding_name(const struct d9__callback *callback);

/* Name what |finding| is about by |callback|. */
void d9__finding_set_callback(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback);

/* " (12.0 ms of it the kernel ran something else)", or nothing if that is not worth telling. */
void d9__finding_taken(uint64_t taken_ns, char *buf, size_t size);

/* Append |evidence|, whose text is made from |format|.  Beyond D9__EVIDENCE_MAX nothing happens. */
void d9__finding_add_evidence(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__evidence *evidence, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Whether an earlier |check| found something. */
bool d9__finding_told(const struct d9__findings *findings, const char *check);

/* Who wakes: "produce", "worker 2", "a thread without a loop". */
void d9__finding_waker(const struct d9__findings *findings, uint64_t waker, uint64_t waker_worker,
		       char *buf, size_t size);

/* findings_data.c */
void d9__check_nothing_recorded(struct d9__findings *findings);
void d9__check_incomplete_data(struct d9__findings *findings);
void d9__check_degraded_hooks(struct d9__findings *findings);

/* findings_calls.c */
void d9__check_blocked_callback(struct d9__findings *findings);
void d9__check_timer_overrun(struct d9__findings *findings);
void d9__check_long_callback(struct d9__findings *findings);
void d9__check_running_at_end(struct d9__findings *findings);

/* findings_waits.c */
void d9__check_unfair(struct d9__findings *findings);
void d9__check_backlog(struct d9__findings *findings);
void d9__check_timer_late(struct d9__findings *findings);
void d9__check_wake_delay(struct d9__findings *findings);

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

/* findings_process.c */
void d9__check_blocking(struct d9__findings *findings);
void d9__check_kernel_wait(struct d9__findings *findings);
void d9__check_cpu_contention(struct d9__findings *findings);
void d9__check_queue_depth(struct d9__findings *findings);
void d9__check_task_leak(struct d9__findings *findings);
void d9__check_many_spans(struct d9__findings *findings);
void d9__check_worker_imbalance(struct d9__findings *findings);
void d9__check_span_outlier(struct d9__findings *findings);
void d9__check_unmatched_spans(struct d9__findings *findings);
void d9__check_misused_spans(struct d9__findings *findings);
void d9__check_no_wakes(struct d9__findings *findings);
void d9__check_sample_setup(struct d9__findings *findings);

#endif /* D9_ANALYZE_FINDINGS_H */
