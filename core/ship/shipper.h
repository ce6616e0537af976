/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shipper: sends what is sealed below directories to a store, and removes it here once the store has confirmed it and the
 * list of its process (shipped.h) tells so on disk.  Dumps go first, each one's manifest after its segments; then the processes
 * take turns, oldest segment first; then what hours that are over say (hour.h).  Killed at any moment, what was not
 * removed is sent again under the same key.
 */

#pragma once

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/breaker.h"
#include "ship/bucket.h"
#include "ship/outgoing.h"
#include "ship/tree.h"

#define D9__SHIPPER_PARALLEL_MAX 16

struct d9__shipper {
	struct d9__outgoing_options what;
	struct d9__bucket *bucket; /* NULL for |what.dry_run| */
	unsigned parallel;
	unsigned give_up;     /* failures in a row after which a store is left alone; 0: never */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	const volatile sig_atomic_t *stop; /* true: begin nothing new; running transfers get 30 s */
	/* One line about |path|, or about the store (NULL). */
	void (*tell)(void *context, const char *path, const char *what);
	/* An object is there, or would be. */
	void (*show)(void *context, const char *key, uint64_t bytes);
	/* Called again and again, many times a second while something is under way or waited for; may be NULL. */
	void (*pulse)(void *context);
	void *context;

	struct d9__breaker breaker;
	size_t stored, dumps, hours, taken, dropped, refused, failed, left;
	uint64_t bytes;

	/* Inside. */
	bool over;		/* no more is begun: the store, the deadline */
	char told[256];		/* of the store, the latest */
	char refused_code[64];	/* of the latest refusal, with no success since */
	char refused_path[PATH_MAX]; /* the segment that was refused then, now in refused/ */
	uint64_t texts;		/* how many were asked for */
};

/* Ship |tree| once.  0, or -ENOMEM. */
int d9__shipper_run(struct d9__shipper *shipper, const struct d9__ship_tree *tree);
