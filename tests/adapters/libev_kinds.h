/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of libev_every_kind, also built into programs that compile libev into themselves. */

#ifndef D9_LIBEV_KINDS_H
#define D9_LIBEV_KINDS_H

#include <ev.h>

#include "counters.h"

/* What is waited for, in one word. */
void run_until(struct ev_loop *loop, const bool *done, const char *what);

/* The program's own: attach |loop|, if it attaches any. */
void record_loop(struct ev_loop *loop);

void run_core_kinds(struct ev_loop *loop);
void run_extra_kinds(struct ev_loop *loop);

#endif /* D9_LIBEV_KINDS_H */
