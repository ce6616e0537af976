/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report job: `dial9 report --json` of what is served, in a process of its own.  A trace that is
 * made to harm costs that process, the loop never waits for it, and what several clients want is
 * computed once.
 */

#ifndef D9_SERVE_REPORT_JOB_H
#define D9_SERVE_REPORT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/listing.h"

struct event_base;
struct d9__report_job;

/* What a job has found; borrowed until the callback returns. */
struct d9__report_answer {
	const char *json; /* NULL: there is no report */
	size_t len;
	const char *why; /* what the process said, where there is none */
};

typedef void d9__report_done(void *context, const struct d9__report_answer *answer);

/* On |base|, which stays the caller's.  NULL: out of memory. */
struct d9__report_job *d9__report_job_new(struct event_base *base);

/*
 * Call |done| with the report of |listing| as it is now: at once where it is known, else later,
 * once. 0, -ENOMEM, or an error of starting the process, and |done| is never called.
 */
int d9__report_job_ask(struct d9__report_job *job, const struct d9__listing *listing,
		       d9__report_done *done, void *context);

/* Ends a process that is still at it; who waits for it is answered that there is no report. */
void d9__report_job_free(struct d9__report_job *job);

#endif /* D9_SERVE_REPORT_JOB_H */
