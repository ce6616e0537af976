/* SPDX-License-Identifier: Apache-2.0 */
/* Notify: what a service tells systemd of itself, over the socket NOTIFY_SOCKET.  Without one nothing is told. */

#pragma once

#include <stdint.h>

/* Send |state|: "READY=1", "WATCHDOG=1", "STOPPING=1". */
void d9__notify(const char *state);

/* How long systemd waits for WATCHDOG=1 of this process; 0: it does not. */
uint64_t d9__notify_watchdog_ns(void);
