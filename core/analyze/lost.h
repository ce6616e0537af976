/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that sleep on although another thread has made one of their callbacks ready. */

#pragma once

#include <stdint.h>

#include "analyze/latency.h"
#include "base/time.h"

/* Wakes of one callback, by other threads, that found its loop asleep. */
struct d9__lost_wakes {
	uint64_t asleep, lost; /* |lost|: it slept on for D9__LOST_NS and more */
	uint64_t slept_ns;     /* in the lost ones */

	/* The longest. */
	uint64_t longest_ns, at_ns, worker, task, waker, waker_worker;
};

/* Nobody who is woken takes so long to get up, what the kernel ran meanwhile left out. */
#define D9__LOST_NS (10 * D9__MS_NS)

/* A call of |task| begins on |worker|, which another thread had woken as |delay| tells.  0 or -ENOMEM. */
int d9__lost_wakes_look(const struct d9__worker *worker, const struct d9__traced_task *task,
			const struct d9__delay *delay);
