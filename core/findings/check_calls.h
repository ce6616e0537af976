/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls, as check_long_callback.c and check_blocked_callback.c tell of them: from when on a call is
 * long, how bad it is, and the words that both use.
 */

#pragma once

#include "findings/finding.h"
#include "text/units.h"

/* Examples under a finding. */
#define D9__CALL_EXAMPLES 3

/* A brief is so long at most, and so long with a share of the time. */
#define D9__CALL_BRIEF_MAX	 55
#define D9__CALL_SHARE_BRIEF_MAX 58

/* Return the worker |id|, or NULL if there is none. */
const struct d9__worker *d9__call_worker(const struct d9__findings *findings, uint64_t id);

/* Return from when on a call is long as |stall| is, a call of |callback| or one that it lies in. */
uint64_t d9__call_limit_ns(const struct d9__findings *findings, const struct d9__callback *callback,
			   const struct d9__stall *stall);

/*
 * Write " (the library's own callback)", " (called by D-Bus method call)", or "" for the program's
 * own.  Returns |buf|.
 */
const char *d9__call_describe_caller(const struct d9__callback *callback, char *buf, size_t size);

/* When, where and whose |stall| was, without words. */
static inline struct d9__evidence d9__call_evidence(const struct d9__stall *stall)
{
	return (struct d9__evidence) { .at_ns = stall->start_ns,
				       .duration_ns = stall->culprit_ns,
				       .has_worker = true,
				       .worker = stall->worker,
				       .task = stall->task,
				       .callback = stall->culprit };
}

/* Write "; 3 waited behind it: event_handler 59 ms, tick 40 ms (timer)" */
void d9__call_describe_victims(const struct d9__stall *stall, char *buf, size_t size);

/*
 * Write where |stall|'s time went: ", called from bufferevent read, which took 41 ms", ", of which
 * 40 ms in the span parse", or "".
 */
void d9__call_describe_place(const struct d9__stall *stall, char *buf, size_t size);

/*
 * Add to |finding| the call of |callback| that had not ended, if there is one.  If it is |told|,
 * which the finding is about and which was |how| for |ns|, put that into the brief, too.
 */
void d9__call_tell_open(struct d9__findings *findings, struct d9__finding *finding,
			const struct d9__callback *callback, const struct d9__stall *told,
			uint64_t ns, const char *how);

/*
 * " in 23 calls" and ", 3 of 40 calls": |n| calls of |callback| are as long as |stall|.  Where some
 * of them are several in a row that its library made in one of its own, ", 3 times".
 */
struct d9__call_times {
	uint64_t n;
	char runs[D9__UNITS_MAX + 16], brief[2 * D9__UNITS_MAX + 32], whole[2 * D9__UNITS_MAX + 64];
};

void d9__call_describe_times(const struct d9__callback *callback, const struct d9__stall *stall,
			     uint64_t n, struct d9__call_times *out);

/* Return how bad it is that |calls| of |callback| are as long as |stall|, which held its loop for
 * |ns|. */
enum d9__severity d9__call_severity(const struct d9__findings *findings,
				    const struct d9__callback *callback,
				    const struct d9__stall *stall, uint64_t ns, uint64_t calls,
				    bool waited);

/*
 * True if all calls of |callback| over |limit| came while the program started, and none was a pause
 * that a client notices then: that is information.
 */
bool d9__call_is_start(const struct d9__findings *findings, const struct d9__callback *callback,
		       uint64_t limit);

/* Write "; others waited up to 59 ms behind it", or "".  True if one of them did for long. */
bool d9__call_describe_waiting(const struct d9__callback *callback, char *buf, size_t size);

/* Write ", every 1.05 s", ", while the program started" if it |starts|, or "". */
void d9__call_describe_when(const struct d9__findings *findings,
			    const struct d9__callback *callback, bool starts, char *buf,
			    size_t size);

/* Write ", 87 % of the time in all" if |callback| has much of its loop's time, else "". */
void d9__call_describe_share(const struct d9__findings *findings,
			     const struct d9__callback *callback, bool in_all, char *buf,
			     size_t size);

/*
 * Set the brief to |text|, the number of calls in |times|, and |callback|'s share of its loop's
 * time.  The number is left out where the calls are few and the share is large, because it would
 * belie the share, and where both would be too long.
 */
void d9__call_set_counted_brief(struct d9__findings *findings, struct d9__finding *finding,
				const struct d9__callback *callback,
				const struct d9__call_times *times, const char *text);
