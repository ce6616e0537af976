/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: the program makes one, which the sampler wants to know of. */

#pragma once

#include <dial9/export.h>

/* Redirect the calls that make threads, by which the recorder may begin, too. */
D9_API void d9__block_watch_threads(void);
