/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <dial9/reader.h>

#include "symbol/symbolizer.h"

struct d9__namer;

/*
 * Return the options that all symbolizers of this program begin with: no further places, no
 * network, and a cache below $XDG_CACHE_HOME/dial9, or ~/.cache/dial9, if that is a directory of
 * this user's that no other user can write to.
 */
struct d9__symbolizer_options d9__symbol_options(void);

/* d9__symbolizer_open() with them.  0 or -ENOMEM. */
int d9__symbol_open(struct d9__symbolizer **out);

/* d9__symbol_learn() of an event that tells of modules, symbols or a segment. */
int d9__symbol_learn_from(struct d9__symbolizer *symbolizer, const struct d9_reader *reader,
			  const struct d9_event *event);

/*
 * Let |symbolizer|, unless it is NULL, learn from |event| of |reader| and from the files beside its
 * segment.  0 or -ENOMEM.
 */
static inline int d9__symbol_learn(struct d9__symbolizer *symbolizer,
				   const struct d9_reader *reader, const struct d9_event *event)
{
	if (event->kind != D9_EVENT_MODULE && event->kind != D9_EVENT_SYMBOL &&
	    event->kind != D9_EVENT_SEGMENT_METADATA)
		return 0;
	return d9__symbol_learn_from(symbolizer, reader, event);
}

/* A namer by |symbolizer|: by module and offset in the binaries, else by address in the trace's
 * symbols. */
struct d9__namer d9__symbol_namer(struct d9__symbolizer *symbolizer);
