/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes: why a watcher is ready. */

#pragma once

#include <dial9/loop.h>

#include "libev/records.h"

/*
 * Since when |w|, whose call is |poll|, is ready, and why, where libev's own feeding and stopping
 * is not seen.
 */
void d9__libev_wake_tell_ready(struct d9__libev_record *record, struct d9__libev_watcher *known,
			  const struct ev_watcher *w, int events, struct d9_poll *poll);
