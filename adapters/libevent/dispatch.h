/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: entered, about to wait, has waited, left. */

#pragma once

#include "libevent/real.h"

/* The dispatch function in the table of an attached base. */
int d9__libevent_dispatch(struct event_base *base, struct timeval *timeout);
