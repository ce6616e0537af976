/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that libev calls around each wait of an attached loop. */

#pragma once

#include "libev/real.h"

void d9__libev_run_release(struct ev_loop *loop);
void d9__libev_run_acquire(struct ev_loop *loop);
