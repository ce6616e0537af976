/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Burns: CPU time that a loop uses where it should sleep.  A thread that is in its loop's wait, or
 * goes round there between callbacks, leaves no stamp, and with it what it uses there is unseen: a
 * circle of the library, poll() over thousands of descriptors, a handler of signals.
 *
 * So the flush thread reads the CPU clock of each worker that has been quiet for a while, five
 * times a second, and tells of those that used more than half of the time since.
 */

#pragma once

#include <stdint.h>

struct d9__open_calls;

/* Look at all workers, and tell of those that burn, each at most once a second.  Flush thread. */
void d9__burns_look(struct d9__open_calls *calls, uint64_t now_ns);
