/* SPDX-License-Identifier: Apache-2.0 */
/* Place text: where a thread was found that is in a call for long, in words. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#define D9__WHEREABOUTS_LEN 96

/*
 * " in pause()", " waiting for a lock", " computing", or "": by what StuckPollEvent says of the system call, whether the
 * thread was running, and the kernel's function that it slept in.
 */
void d9__place_text(const char *syscall, bool running, const char *wchan, char *buf, size_t size);
