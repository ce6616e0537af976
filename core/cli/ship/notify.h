/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify: messages of a service to systemd, over the socket NOTIFY_SOCKET.  Does nothing without
 * one.
 */

#pragma once

#include <stdint.h>

/* Send |state|: "READY=1", "WATCHDOG=1", "STOPPING=1". */
void d9__notify(const char *state);

/* How long systemd waits for WATCHDOG=1 of this process; 0: it does not. */
uint64_t d9__notify_watchdog_ns(void);
