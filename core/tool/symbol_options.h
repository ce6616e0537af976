/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "symbol/symbolizer.h"

struct d9__place;

/*
 * Return the options that all symbolizers of this program begin with: no further places, no
 * network, and a cache below $XDG_CACHE_HOME/dial9, or ~/.cache/dial9, if that is a directory of
 * this user's that no other user can write to.
 */
struct d9__symbolizer_options d9__symbol_options(void);

/* d9__symbolizer_open() with them.  0 or -ENOMEM. */
int d9__symbol_open(struct d9__symbolizer **out);

/*
 * Let |symbolizer| learn from |event| of |reader|, and from what lies beside its segment; no |symbolizer|, nothing to do.
 * 0 or -ENOMEM.
 */
int d9__symbol_learn(struct d9__symbolizer *symbolizer, const struct d9_reader *reader, const struct d9_event *event);

/* struct d9__namer, whose context is a symbolizer: by module and offset in the binaries, else by address in the trace's symbols. */
bool d9__symbol_name(void *symbolizer, struct d9__place *place);
