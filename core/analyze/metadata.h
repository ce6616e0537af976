/* SPDX-License-Identifier: Apache-2.0 */
/* The trace's description of itself: metadata, capabilities of its hooks, losses. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/texts.h"

/* Later values win.  In order of first appearance.  All zero is empty. */
struct d9__metadata {
	struct d9__metadata_entry {
		const char *key;
		char *value; /* both terminated */
	} *items;
	size_t n;
	struct d9__texts keys; /* item i has text i */
};

void d9__metadata_release(struct d9__metadata *metadata);

/* 0 or -ENOMEM. */
int d9__metadata_put(struct d9__metadata *metadata, const char *key, size_t key_len,
		     const char *value, size_t value_len);

/* NULL if there is no such key. */
const char *d9__metadata_value(const struct d9__metadata *metadata, const char *key);

/* Whether the text |key| has the form PREFIX...SUFFIX; |*middle| and |*len| are what is between. */
bool d9__metadata_key_is(const char *key, const char *prefix, const char *suffix,
			 const char **middle, size_t *len);

/*
 * How well the capability |key| ("poll", "wake", ...) is recorded, over all loop libraries of the
 * trace.
 */
enum d9__coverage {
	D9__COVERAGE_FULL,    /* or nothing is said about it */
	D9__COVERAGE_PARTIAL, /* a library says anything but full, on, yes */
	D9__COVERAGE_NONE,    /* every library that says something says off */
};
enum d9__coverage d9__metadata_coverage(const struct d9__metadata *metadata, const char *key);

/* Whether all loops of the trace are of |library|: "libevent", "libev", "glib". */
bool d9__metadata_is_only(const struct d9__metadata *metadata, const char *library);

/* Whether a loop library says |key|=|text|. */
bool d9__metadata_says(const struct d9__metadata *metadata, const char *key, const char *text);

/* The lane group ("runtime.NAME" = "0,1,2") that lists the worker |id|, or NULL. */
const char *d9__metadata_group(const struct d9__metadata *metadata, uint64_t id);

/* Events that are not in the trace, by cause. */
struct d9__trace_loss {
	char cause[32];
	uint64_t events, gaps;
	uint64_t from_ns, to_ns; /* of the widest span over its gaps */
};

/* A time of which events are missing because they could not be written. */
struct d9__left_rings_time {
	uint64_t from_ns, to_ns, events;
};

#define D9__LOSSES_MAX 16
#define D9__UNWRITTEN_TIMES 16
struct d9__trace_losses {
	struct d9__trace_loss items[D9__LOSSES_MAX]; /* causes beyond that share the last */
	size_t n;
	uint64_t events;
	struct d9__left_rings_time unwritten[D9__UNWRITTEN_TIMES]; /* of cause disk; what is beyond that widens the last */
	size_t n_unwritten;
	uint64_t dropped_allocs, dropped_frees;
};

void d9__losses_add(struct d9__trace_losses *losses, const char *cause, size_t len,
		    const struct d9__trace_loss *loss);
