/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: the trace has to say how much of libevent is seen. */

#pragma once

#include <stdbool.h>

#include "hook/capabilities.h"
#include "libevent/real.h"

extern struct d9__capabilities d9__libevent_capabilities;

/*
 * Say what the calibration found: once, behind it.  |base| tells the method.  |assigns|,
 * |activations|: libevent's inner calls of those functions reach the hooks.
 */
void d9__libevent_capability_describe(const struct event_base *base, bool assigns, bool activations);

/*
 * Say that nothing is recorded, for the reason that |err| stands for.  |record|: the trace has to
 * say so, because no program looks at what attach returned.
 */
void d9__libevent_capability_refuse(int err, bool record);

/* Say that a base could not be wrapped: its waits are not seen. */
void d9__libevent_capability_degrade_park(void);

/* Say that some callbacks run unrecorded.  |reason| is a literal.  Any lock may be held. */
void d9__libevent_capability_degrade_poll(const char *reason);
