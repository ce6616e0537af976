/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report job: `dial9 report --json` of the served segments or of some.  A report that several
 * clients want is computed once.
 */

#pragma once

#include <stdint.h>

#include "serve/child.h"

struct event_base;
struct d9__report_job;

/* Of the process that makes a report: ten million events take a few seconds. */
extern const struct d9__child_options d9__report_limits;

/* Its command for |paths|, both NULL-terminated, in new memory; NULL: out of memory. */
char **d9__report_command(char *const *paths);

void d9__report_command_free(char **argv);

/* On |base|, which stays the caller's.  NULL: out of memory. */
struct d9__report_job *d9__report_job_new(struct event_base *base);

/*
 * Call |done| once with the report of |paths|, NULL-terminated, as they were under |identity|: at
 * once if it is known, else later.  It may not keep the text.  Returns 0, -ENOMEM, -EBUSY if too
 * many reports wait, or an error of starting the process; with an error |done| is never called.
 */
int d9__report_job_ask(struct d9__report_job *job, char *const *paths, uint64_t identity,
		       d9__child_done *done, void *context);

/* Free it.  A running process is ended, and requests for its report are answered without one. */
void d9__report_job_free(struct d9__report_job *job);
