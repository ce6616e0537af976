/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: the trace has to say how much of libev is seen. */

#pragma once

#include <stdbool.h>

#include "hook/capabilities.h"

extern struct d9__capabilities d9__libev_capabilities;

/* Say what the calibration found, once.  When a loop is attached. */
void d9__libev_capability_describe(void);

/* Say that |key| works no better than |text|, because of |reason|.  All are literals. */
void d9__libev_capability_degrade(const char *key, const char *text, const char *reason);

/*
 * Say that nothing is recorded, for the reason that |err| stands for.  |record|: the trace has to
 * say so, because no program looks at what attach returned.
 */
void d9__libev_capability_refuse(int err, bool record);
