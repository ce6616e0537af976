/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that no hook saw: found by their ids. */

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "glib/real.h"

struct d9__glib_context;

/* Patch the tables of all sources that |context| has now.  Uses up one source id. */
void d9__glib_scan(struct d9__glib_context *record, GMainContext *context);

/*
 * In a wait of the loop's own thread: a scan that had to be put off, or one because |unseen|, or the
 * number of waits with no dispatch behind them, has grown.  At most ten a second.
 */
void d9__glib_scan_if_wanted(struct d9__glib_context *record, uint64_t now_ns, uint64_t unseen);
