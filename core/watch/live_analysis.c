/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "watch/live_analysis.h"

/* Events that wait for their order; of more, those that came first are told first. */
#define ORDER_BYTES ((size_t)32 << 20)

/* Events reach the segment so late, with the recorder's tick and the time that it takes to write.
 */
#define LATE_NS (2 * D9__SECOND_NS)

static int see(void *arg, const struct d9_event *event)
{
	struct d9__live_analysis *live = arg;
	int err = d9__analysis_event(&live->analysis, event);

	live->events++;
	return !err && live->on_event ? live->on_event(live->context, event) : err;
}

static void keep(void *arg, const struct d9_event *event)
{
	struct d9__live_analysis *live = arg;

	if (!live->err && d9__live_order_bytes(&live->order) > ORDER_BYTES)
		live->err = d9__live_order_tell(&live->order, see, live);
	if (!live->err)
		live->err = d9__live_order_add(&live->order, event);
}

/* ---- loops of which nothing is recorded since then ---- */

/* The call that |worker|, which is |seen|, is in the middle of: the recorder tells of it, not the
 * segment. */
static int adopt_call(struct d9__live_analysis *live, struct d9__worker *worker,
		      const struct d9__ring_worker *seen)
{
	const struct d9__ring_health *health = &live->recorder->look.health;
	struct d9__analysis *a = &live->analysis;

	for (uint32_t i = 0; i < health->n_open && i < D9__RING_OPEN_MAX; i++) {
		const struct d9__ring_open *call = &health->open[i];

		if (call->worker == seen->id && call->tid == seen->tid && !call->around &&
		    !call->outside)
			return d9__analysis_goes_on(
				a, worker,
				&(struct d9__going_call) {
					.task = call->task,
					.place = { call->loc, strlen(call->loc) },
					.inner = { call->span, strlen(call->span) },
					.from_ns = live->since_ns });
	}
	return 0;
}

/* Loops whose newest event is older have been asleep, or in one call, ever since. */
static int adopt_loops(struct d9__live_analysis *live)
{
	const struct d9__ring_look *look = &live->recorder->look;
	int err = 0;

	for (uint32_t i = 0; i < look->n_workers && !err; i++) {
		const struct d9__ring_worker *seen = &look->workers[i];
		struct d9__worker *worker;

		if (seen->last_ns >= live->since_ns || seen->state == D9__WORKER_UNKNOWN)
			continue;
		worker = d9__timeline_worker(&live->analysis.timeline, seen->id);
		if (!worker)
			return -ENOMEM;
		live->adopted = true;
		d9__worker_goes_on(worker, live->since_ns, seen->tid,
				   seen->state == D9__WORKER_PARKED);
		if (seen->state == D9__WORKER_POLLING)
			err = adopt_call(live, worker, seen);
	}
	return err;
}

/* ---- intervals ---- */

int d9__live_analysis_begin(struct d9__live_analysis *live,
			    const struct d9__recorder_seen *recorder, uint64_t since_ns)
{
	live->recorder = recorder;
	live->since_ns = live->until_ns = since_ns;
	d9__live_begin(&live->live, &recorder->view, since_ns, keep, live);
	return adopt_loops(live);
}

int d9__live_analysis_read(struct d9__live_analysis *live)
{
	int err = d9__live_read(&live->live, live->recorder->look.flight);

	if (!err)
		err = live->err;
	return err ? err : d9__live_order_tell(&live->order, see, live);
}

int d9__live_analysis_cut(struct d9__live_analysis *live)
{
	uint64_t quiet_ns = live->recorder->look.mono_ns - LATE_NS;
	uint64_t loops_ns = d9__analysis_end_ns(&live->analysis);
	struct d9__sums now = { .n_loops = 0 };
	int err;

	live->from_ns = live->until_ns;
	/* No loop was there before. */
	if (!live->before.n_loops && live->analysis.any_loop && !live->adopted)
		live->from_ns = live->analysis.loop_first_ns;
	/* The recorder's own may be newer: what loops did meanwhile is not in the segment yet. */
	if (loops_ns > live->until_ns)
		live->until_ns = loops_ns;
	/* Where nothing is recorded nothing happened. */
	if (live->recorder->look.mono_ns > LATE_NS && quiet_ns > live->until_ns)
		live->until_ns = quiet_ns;
	err = d9__sums_take(&now, &live->analysis, live->until_ns);
	if (err)
		return err;
	d9__sums_release(&live->interval);
	live->interval = now;
	d9__sums_subtract(&live->interval, &live->before);
	d9__sums_release(&live->before);
	return d9__sums_take(&live->before, &live->analysis, live->until_ns);
}

void d9__live_analysis_end(struct d9__live_analysis *live)
{
	if (!live->recorder)
		return;
	d9__live_end(&live->live);
	d9__live_order_release(&live->order);
	d9__sums_release(&live->interval);
	d9__sums_release(&live->before);
	d9__analysis_release(&live->analysis);
}
