/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mistakes that this service can be told to make, so that a report can be seen to name them.  A
 * service of yours has none of this file.
 */
#ifndef METRICS_PLANTED_H
#define METRICS_PLANTED_H

#include "database.h"

enum regression {
	NO_REGRESSION,
	BLOCKING_CALL, /* a query that is waited for, in the callback that stores */
	GROWING_QUERY, /* all samples are read, not the latest */
	HELD_LOCK,     /* a transaction keeps its rows locked while it waits for something else */
	N_REGRESSIONS
};

struct event_base;
struct planted;

/* The regression called |name|, or -1. */
int regression_named(const char *name);

/* NULL: it cannot be made, and stderr tells why. */
struct planted *planted_new(struct event_base *base, enum regression regression,
			    const char *address);
void planted_free(struct planted *planted);

/* Places in the service where one of them is. */
void planted_before_store(struct planted *planted);
enum statement planted_latest(const struct planted *planted);

#endif
