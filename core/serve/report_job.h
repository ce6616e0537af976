/* SPDX-License-Identifier: Apache-2.0 */
/* Report job: `dial9 report --json` of what is served or of some of it.  What several clients want
 * is computed once. */

#pragma once

#include <stdint.h>

#include "serve/child.h"

struct event_base;
struct d9__report_job;

/* On |base|, which stays the caller's.  NULL: out of memory. */
struct d9__report_job *d9__report_job_new(struct event_base *base);

/*
 * Call |done| with the report of |paths|, NULL-terminated, as they were under |identity|: at once
 * where it is known, else later, once.  It may not take the answer's text.  0, -ENOMEM, -EBUSY if
 * too many different ones are wanted, or an error of starting the process, and |done| is never
 * called.
 */
int d9__report_job_ask(struct d9__report_job *job, char *const *paths, uint64_t identity,
		       d9__child_done *done, void *context);

/* Ends a process that is still at it; who waits for it is answered that there is no report. */
void d9__report_job_free(struct d9__report_job *job);
