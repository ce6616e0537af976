/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function behind a name that the preload library exports, by its caller.
 *
 * The library exports a few constructors of loops to gain control when the loop library is loaded
 * later.  Calls from a module that embeds its own copy must go to that copy, and calls in a
 * process without the loop library to another module that defines the name.
 */

#pragma once

#include <dial9/export.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "hook/images.h"

#define D9__TRIGGER_RANGES 32

struct d9__trigger_range {
	struct d9__module_range module;
	void *target; /* NULL: the hook */
};

/* One per exported name, static in the preload library: D9__TRIGGER(name, refresh, owns). */
struct d9__first_call {
	const char *name;
	/* The adapter's: patch what is new, and tell whether the loop library is mapped. */
	bool (*refresh)(void);
	/* The adapter's: does |address| lie in the loop library or in the adapter? */
	bool (*owns)(const void *address);

	/* The module's: callers that were judged before.  |lock| protects all that follows. */
	pthread_mutex_t lock;
	uint64_t unloads;
	unsigned n;
	struct d9__trigger_range ranges[D9__TRIGGER_RANGES];
};

#define D9__TRIGGER(name_, refresh_, owns_)                                                        \
	{                                                                                          \
		.name = (name_), .refresh = (refresh_), .owns = (owns_),                           \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                  \
	}

/*
 * Where a call that returns to |caller| shall go: NULL for the adapter's hook, else the function
 * of that name that the caller means.  If no other module defines the name and the loop library
 * is not mapped, *|undefined| is set.  No errno is changed.
 */
D9_API void *d9__first_call_target(struct d9__first_call *trigger, const void *caller,
				   bool *undefined);
