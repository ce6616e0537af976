/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/lost.h"

/* How long |worker| slept on after |wake_ns|; 0: it was awake then. */
static uint64_t slept_on_ns(const struct d9__worker *worker, uint64_t wake_ns)
{
	uint64_t ns;

	if (!worker->slept.until_ns || wake_ns < worker->slept.from_ns ||
	    wake_ns >= worker->slept.until_ns)
		return 0;
	ns = worker->slept.until_ns - wake_ns;
	/* Ready, but without a CPU. */
	return worker->slept.taken_ns < ns ? ns - worker->slept.taken_ns : 1;
}

static void keep_longest(struct d9__lost_wakes *lost, const struct d9__traced_task *task,
			 const struct d9__delay *delay, uint64_t ns)
{
	if (ns <= lost->longest_ns)
		return;
	lost->longest_ns = ns;
	lost->at_ns = delay->from_ns;
	lost->worker = delay->worker;
	lost->task = task->id;
	lost->waker = delay->waker;
	lost->waker_worker = task->waker_worker;
}

int d9__lost_wakes_look(const struct d9__worker *worker, const struct d9__traced_task *task,
			const struct d9__delay *delay)
{
	uint64_t ns = slept_on_ns(worker, delay->from_ns);
	struct d9__lost_wakes *lost = task->callback->lost;

	if (ns == 0)
		return 0;
	if (!lost)
		lost = task->callback->lost = calloc(1, sizeof(*lost));
	if (!lost)
		return -ENOMEM;
	lost->asleep++;
	if (ns < D9__LOST_NS)
		return 0;
	lost->lost++;
	lost->slept_ns += ns;
	keep_longest(lost, task, delay, ns);
	return 0;
}
