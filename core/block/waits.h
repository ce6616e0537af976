/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits: calls that wait for other threads and for signals, locks apart: barriers, initialisations,
 * futexes, pause(3).
 *
 * C++ and Rust wait in their own ways, which end in syscall(SYS_futex); so libc's syscall() is
 * among them.
 */

#pragma once

#include "hook/got.h"

#define D9__WAIT_HOOKS 8
extern const struct d9__got_hook d9__wait_hooks[D9__WAIT_HOOKS];
