/* SPDX-License-Identifier: Apache-2.0 */
/* Span sites: the program's descriptors, as the recorder knows them. */

#pragma once

#include <stdint.h>

#include <dial9/span.h>

#include "span/span_events.h"

/* Never freed: spans may outlive a module.  One that is loaded again has the same. */
struct d9__span_site_type {
	struct d9__span_site_type *next;
	struct d9__span_event_type type;
	uint32_t name;
	char texts[]; /* names of the fields */
};

/*
 * Let |site| know the word of its target and level, and if that is 1, its type.  0 or what
 * d9_span_create() returns.  Takes locks and allocates once; keeps errno.
 */
int d9__span_site_resolve(struct d9_span_site *site);

/* NULL: not wanted so far. */
static inline const struct d9__span_site_type *d9__span_site_type(const struct d9_span_site *site)
{
	/* acquire: pairs with the release in make_type() */
	return (const struct d9__span_site_type *)__atomic_load_n(&site->d9__type, __ATOMIC_ACQUIRE);
}

/* The names in the trace of calls in the wrong order. */
enum d9__span_mistake {
	D9__SPAN_EXIT_WITHOUT_ENTER,
	D9__SPAN_CLOSE_WHILE_ENTERED,
	D9__SPAN_ENTER_AFTER_CLOSE,
	D9__SPAN_EXIT_AFTER_CLOSE,
	D9__SPAN_CLOSE_TWICE,
	D9__SPAN_MISTAKES
};

/* The name handle of |mistake|, once a descriptor has a type.  Async-signal-safe. */
uint32_t d9__span_mistake_name(enum d9__span_mistake mistake);
