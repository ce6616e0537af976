/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a timeline: calls, rounds and waits that the trace's end cut. */
#include "config.h"

#include <errno.h>

#include "analyze/timeline_parts.h"
#include "base/u64.h"

uint64_t d9__worker_last_used_ns(const struct d9__worker *worker, uint64_t wall_ns)
{
	bool hung = worker->piece.open || worker->piece.open_ended;

	if (!worker->cpu_seen || (hung && !worker->sign.running) ||
	    worker->unpark.told_ns > wall_ns)
		return 0;
	return wall_ns - worker->unpark.told_ns;
}

uint64_t d9__worker_burns(const struct d9__worker *worker, uint64_t from_ns)
{
	if (worker->library.until_ns <= from_ns)
		return 0;
	return d9__u64_min(worker->library.cpu_ns, worker->library.until_ns - from_ns);
}

uint64_t d9__worker_awake_until(const struct d9__worker *worker, uint64_t ns)
{
	uint64_t end_ns = worker->piece.open ? ns : worker->piece.end_ns;

	if (worker->outside.ns > end_ns)
		end_ns = worker->outside.ns;
	if (!worker->piece.open && worker->library.until_ns > end_ns)
		end_ns = worker->library.until_ns;
	return end_ns;
}

/*
 * The account of the worker's last round, which no park ended: it goes on until the trace ends at
 * |ns| in a callback, or the last one ended; or the loop stood still for longer, outside of
 * callbacks.
 */
static void account_last(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__piece *piece = &worker->piece;
	uint64_t end_ns = d9__worker_awake_until(worker, ns);

	if (end_ns <= worker->unpark.ns)
		return;
	if (piece->open) {
		uint64_t open_ns = end_ns - piece->start_ns;

		worker->unpark.pieces_ns -= open_ns;
		d9__callback_stayed(piece->task->callback, worker->number,
				    open_ns - d9__u64_min(open_ns, piece->users.ns));
	}
	d9__timeline_account_awake(worker, end_ns,
				   (struct d9__loop_awake) { .own_ns = end_ns - worker->unpark.ns,
							     .unread = worker->cpu_seen });
}

/*
 * The trace ends at |ns|, and no park ended the worker's last round: it went on until its last
 * callback did, or goes on still.
 */
static void end_last_period(struct d9__worker *worker, uint64_t ns)
{
	uint64_t end_ns = worker->piece.open ? ns : worker->piece.end_ns;

	d9__timeline_note_round(worker, ns);
	account_last(worker, ns);
	if (end_ns <= worker->unpark.ns)
		return;
	worker->active_ns += end_ns - worker->unpark.ns;
	d9__time_period_end(&worker->period, &worker->time, end_ns - worker->unpark.ns, UINT64_MAX);
	worker->cpu_ns += d9__worker_last_used_ns(worker, end_ns - worker->unpark.ns);
}

/* The trace ends at |ns|, and no unpark ended the worker's last wait. */
static void end_last_park(struct d9__worker *worker, uint64_t ns)
{
	uint64_t left_ns = ns > worker->park.ns ? ns - worker->park.ns : 0;

	worker->parks++;
	worker->parked_ns += left_ns;
	worker->waiting_ns += left_ns;
	worker->park.valid = false;
	d9__loop_time_waited(&worker->loop_time, worker->park.ns, worker->park.ns + left_ns, 0, 0);
	d9__loop_time_burnt(&worker->loop_time, d9__worker_burns(worker, worker->park.ns));
}

int d9__timeline_finish(struct d9__timeline *timeline, uint64_t ns)
{
	int err = 0;

	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		d9__timeline_ready_awake(worker, 0);
		if (d9__rounds_finish(worker, ns) < 0)
			err = -ENOMEM;
		d9__starved_finish(&worker->starved);
		if (worker->unpark.valid && ns > worker->unpark.ns)
			end_last_period(worker, ns);
		if (worker->park.valid)
			end_last_park(worker, ns);
		d9__loop_time_finish(&worker->loop_time);
	}
	return err;
}
