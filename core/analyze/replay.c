/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/budget.h"
#include "analyze/replay.h"
#include "text/units.h"

/* Calls so close to each other are one step ahead. */
#define STEP_NS (50 * D9__US_NS)

/* Short calls of one callback that take so long together are worth a try. */
#define MANY_NS (5 * D9__MS_NS)

/* Waits shorter than this are taken as they are: they are not what anybody looks for, and most are.
 */
#define SHORT_NS (100 * D9__US_NS)

/* From here on a wait is worth a word. */
#define TOLD_NS D9__MS_NS

/* Where fewer calls waited nothing is promised. */
#define WAITS_LEAST 2

void d9__replay_release(struct d9__replay *replay)
{
	for (size_t i = 0; i < replay->n; i++) {
		struct d9__replay_without *without = replay->items[i];

		d9__histogram_release(&without->before);
		d9__histogram_release(&without->runs[0].after);
		d9__histogram_release(&without->runs[1].after);
		free(without);
		d9__budget_give(sizeof(*without));
	}
	replay->n = 0;
}

/* ---- how far a run is ahead ---- */

static struct d9__replay_point *newest(struct d9__replay_run *run)
{
	return &run->points[(run->n_points - 1) % D9__REPLAY_POINTS];
}

static void set_ahead(struct d9__replay_run *run, uint64_t at_ns, uint64_t ahead_ns)
{
	run->ahead_ns = ahead_ns;
	run->n_points++;
	run->in_calls = false;
	*newest(run) = (struct d9__replay_point) { at_ns, ahead_ns, run->lost_ns, 0 };
}

/*
 * A call that is left out, of |ns| up to |end_ns|.  Where it comes |again|, without another in
 * between, what the loop itself did for it goes as well, and what the machine took from that.
 */
static void leave_out(struct d9__replay_run *run, uint64_t end_ns, uint64_t ns, bool again)
{
	bool follows = run->in_calls && (again || end_ns - newest(run)->at_ns < ns + STEP_NS);

	if (follows && again)
		ns = end_ns - newest(run)->at_ns;
	if (!run->ahead_ns)
		run->level_ns = end_ns - ns;
	/* A call that runs inside itself would count twice. */
	if (run->ahead_ns + ns > end_ns)
		ns = end_ns - run->ahead_ns;
	if (follows) {
		run->ahead_ns += ns;
		newest(run)->at_ns = end_ns;
		newest(run)->ahead_ns = run->ahead_ns;
	} else {
		set_ahead(run, end_ns, run->ahead_ns + ns);
	}
	run->in_calls = true;
}

/* The loop slept from |from_ns| to |ns|, and is where it was. */
static void lose_ahead(struct d9__replay_run *run, uint64_t from_ns, uint64_t ns)
{
	run->lost_ns += run->ahead_ns;
	set_ahead(run, ns, 0);
	newest(run)->slept_ns = from_ns;
}

/* Events in a sleep come when they did. */
static uint64_t since(const struct d9__replay_point *point)
{
	return point->slept_ns ? point->slept_ns : point->at_ns;
}

/*
 * A call begins at |ns| that was ready at |wake_ns|: waits of the loop since then were looks,
 * however long they took.
 */
static void restore_ahead(struct d9__replay_run *run, uint64_t wake_ns, uint64_t ns)
{
	uint64_t n = run->n_points < D9__REPLAY_POINTS ? run->n_points : D9__REPLAY_POINTS;
	uint64_t before_ns = run->lost_ns;

	if (!before_ns)
		return;
	for (uint64_t i = 1; i <= n; i++) {
		const struct d9__replay_point *point =
			&run->points[(run->n_points - i) % D9__REPLAY_POINTS];

		if (point->lost_ns < before_ns)
			before_ns = point->lost_ns;
		if (since(point) < wake_ns)
			break;
		/* Nothing was lost before the first. */
		if (i == n && i == run->n_points)
			before_ns = 0;
	}
	if (before_ns == run->lost_ns)
		return;
	set_ahead(run, ns, run->ahead_ns + run->lost_ns - before_ns);
	run->lost_ns = newest(run)->lost_ns = before_ns;
}

/* When the run would have been where the loop was at |ns|. */
static uint64_t moved(const struct d9__replay_run *run, uint64_t ns)
{
	uint64_t n = run->n_points < D9__REPLAY_POINTS ? run->n_points : D9__REPLAY_POINTS;
	/* Without a point before it: not ahead yet, or as it was when it was last remembered. */
	uint64_t ahead_ns = 0, end_ns = UINT64_MAX;

	for (uint64_t i = 1; i <= n; i++) {
		const struct d9__replay_point *point =
			&run->points[(run->n_points - i) % D9__REPLAY_POINTS];

		if (since(point) <= ns || (i == n && run->n_points > n && ns > run->level_ns)) {
			ahead_ns = point->ahead_ns;
			break;
		}
		/* Of a call that is left out its end remains. */
		end_ns = point->at_ns - point->ahead_ns;
	}
	ns -= ahead_ns < ns ? ahead_ns : ns;
	return ns < end_ns ? ns : end_ns;
}

/* ---- events ---- */

static struct d9__replay_without *find(struct d9__replay *replay,
				       const struct d9__callback *callback, bool asleep)
{
	for (size_t i = 0; i < replay->n; i++)
		if (replay->callbacks[i] == callback && replay->items[i]->asleep == asleep)
			return replay->items[i];
	return NULL;
}

static int add(struct d9__replay *replay, struct d9__callback *callback, bool asleep)
{
	struct d9__replay_without *without;

	if (replay->n == D9__REPLAY_CALLBACKS ||
	    !d9__budget_take(D9__KEPT_CLASSES, sizeof(*without)))
		return 0;
	without = calloc(1, sizeof(*without));
	if (!without)
		return -ENOMEM;
	without->callback = callback;
	without->asleep = asleep;
	callback->replayed = true;
	replay->callbacks[replay->n] = callback;
	replay->items[replay->n++] = without;
	return 0;
}

/* Many short calls since the loop slept: more of one callback than of all others? */
static bool is_many(struct d9__replay *replay, struct d9__callback *callback, uint64_t ns)
{
	if (replay->candidate == callback) {
		replay->candidate_ns += ns;
	} else if (replay->candidate_ns >= ns) {
		replay->candidate_ns -= ns;
	} else {
		replay->candidate = callback;
		replay->candidate_ns = ns - replay->candidate_ns;
	}
	return replay->candidate == callback && replay->candidate_ns >= MANY_NS;
}

static void leave_out_of_runs(struct d9__replay *replay, struct d9__replay_without *without,
			      uint64_t end_ns, uint64_t ns, bool again)
{
	leave_out(&without->runs[0], end_ns, ns, again);
	if (without->bounds)
		leave_out(&without->runs[1], end_ns, ns, again);
	replay->any_ahead = true;
}

/* Leave out the sleep of the latest call. */
static int settle_asleep(struct d9__replay *replay)
{
	struct d9__callback *callback = replay->asleep.callback;
	struct d9__replay_without *without = find(replay, callback, true);
	uint64_t ns = replay->asleep.ns;

	replay->asleep.ns = 0;
	if (!without && ns >= D9__STALL_NS) {
		if (add(replay, callback, true) < 0)
			return -ENOMEM;
		without = find(replay, callback, true);
	}
	if (without)
		leave_out_of_runs(replay, without, replay->asleep.end_ns, ns, false);
	return 0;
}

/* The loop's wait was a sleep: then a run is where it was, unless it was ahead by no more than
 * |late_ns|, for a timer.  How late that would have been for it then. */
static uint64_t sleep_until(struct d9__replay *replay, uint64_t late_ns)
{
	uint64_t least_ns = late_ns;

	replay->candidate_ns = 0;
	replay->latest = NULL;
	if (!replay->any_ahead)
		return least_ns;
	replay->any_ahead = false;
	for (size_t i = 0; i < replay->n; i++) {
		for (unsigned j = 0; j < 2; j++) {
			struct d9__replay_run *run = &replay->items[i]->runs[j];

			if (run->ahead_ns > late_ns)
				lose_ahead(run, replay->wait.from_ns, replay->wait.to_ns);
			else if (late_ns - run->ahead_ns < least_ns)
				least_ns = late_ns - run->ahead_ns;
			replay->any_ahead |= run->ahead_ns != 0;
		}
	}
	return least_ns;
}

/*
 * Events behind the latest call tell now how long that slept, and whether the loop did
 * before |start|, NULL: a call of which no wake is known.
 */
static int settle(struct d9__worker *worker, const struct d9__replay_start *start)
{
	struct d9__replay *replay = &worker->replay;
	bool timer = start && start->timer;
	uint64_t late_ns = timer ? start->ns - start->wake_ns : 0;
	int err = replay->asleep.ns ? settle_asleep(replay) : 0;

	late_ns -= worker->slept.taken_ns < late_ns ? worker->slept.taken_ns : late_ns;
	if (replay->wait.to_ns && (!start || start->wake_ns > replay->wait.from_ns)) {
		late_ns = sleep_until(replay, late_ns);
		replay->late.n += timer;
		replay->late.ns += late_ns;
	}
	replay->wait.to_ns = 0;
	return err;
}

int d9__replay_call(struct d9__worker *worker, struct d9__callback *callback, uint64_t end_ns,
		    uint64_t own_ns)
{
	struct d9__replay *replay = &worker->replay;
	struct d9__replay_without *without;
	bool again;

	if ((replay->asleep.ns || replay->wait.to_ns) && settle(worker, NULL) < 0)
		return -ENOMEM;
	without = callback->replayed ? find(replay, callback, false) : NULL;
	again = replay->latest == callback;
	if (!again)
		replay->latest_from_ns = end_ns - own_ns;
	replay->latest = callback;
	if (!without) {
		bool many = is_many(replay, callback, own_ns);

		if (!many && own_ns < D9__STALL_NS)
			return 0;
		if (add(replay, callback, false) < 0)
			return -ENOMEM;
		without = find(replay, callback, false);
		/* The calls before it are left out now. */
		if (many && replay->candidate_ns > own_ns)
			own_ns = replay->candidate_ns;
		if (many && end_ns - replay->latest_from_ns > own_ns)
			own_ns = end_ns - replay->latest_from_ns;
	}
	if (without)
		leave_out_of_runs(replay, without, end_ns, own_ns, again);
	return 0;
}

void d9__replay_call_slept(struct d9__worker *worker, struct d9__callback *callback,
			   uint64_t end_ns, uint64_t ns)
{
	worker->replay.asleep.callback = callback;
	worker->replay.asleep.end_ns = end_ns;
	worker->replay.asleep.ns = ns;
}

/* Nothing ran from |from_ns| to |ns|, of the time in which the loop would run. */
static void note_idle(struct d9__replay_run *run, uint64_t from_ns, uint64_t ns)
{
	run->idle_from_ns = from_ns;
	run->idle_to_ns = ns;
}

/*
 * How long the call waits in |run|: no longer than it did, as a loop that has nothing else to run
 * would have run it before its turn.  |fixed|: it is ready when it was; a timer that the loop
 * sleeps for runs |late_ns| after that.  |gone|: it is left out, and holds nothing up.
 */
static uint64_t run_start(struct d9__replay_run *run, const struct d9__replay_start *call,
			  bool fixed, uint64_t late_ns, bool gone)
{
	uint64_t start_ns = call->ns - run->ahead_ns, wait_ns = call->ns - call->from_ns;
	uint64_t from_ns = fixed ? call->wake_ns : moved(run, call->wake_ns);

	/* The task's call before it ends as much earlier. */
	if (call->from_ns > call->wake_ns && moved(run, call->from_ns) > from_ns)
		from_ns = moved(run, call->from_ns);
	if (fixed && start_ns < call->wake_ns) {
		uint64_t idle_ns = start_ns;

		start_ns = call->ns - call->wake_ns > late_ns ? call->wake_ns + late_ns : call->ns;
		if (!gone) {
			note_idle(run, idle_ns, start_ns);
			set_ahead(run, call->ns, call->ns - start_ns);
		}
	} else if (from_ns < run->idle_to_ns && run->idle_to_ns <= start_ns) {
		/* Before the call that the loop slept for. */
		start_ns = run->idle_from_ns;
	}
	if (start_ns <= from_ns)
		return 0;
	return start_ns - from_ns < wait_ns ? start_ns - from_ns : wait_ns;
}

/* From now on there are two runs. */
static int fork_run(struct d9__replay_without *without)
{
	struct d9__histogram after = { .count = 0 };
	int err = d9__histogram_merge(&after, &without->runs[0].after);

	without->bounds = true;
	without->runs[1] = without->runs[0];
	without->runs[1].after = after;
	return err;
}

static int start_without(struct d9__replay_without *without, const struct d9__replay_start *call,
			 uint64_t late_ns)
{
	struct d9__replay_run *run = without->runs;
	uint64_t wait_ns = call->ns - call->from_ns, waits_ns[2];
	bool other_loop = call->wake == D9__REPLAY_BY_OTHER_LOOP;
	bool gone = call->callback == without->callback && !without->asleep;
	int err = 0;

	restore_ahead(&run[0], call->wake_ns, call->ns);
	if (without->bounds)
		restore_ahead(&run[1], call->wake_ns, call->ns);
	if (other_loop && !without->bounds && run->ahead_ns > call->ns - call->wake_ns)
		err = fork_run(without);
	waits_ns[0] = run_start(&run[0], call, call->wake != D9__REPLAY_BY_LOOP, late_ns, gone);
	waits_ns[1] = without->bounds
			      ? run_start(&run[1], call, call->wake == D9__REPLAY_FROM_OUTSIDE,
					  late_ns, gone)
			      : waits_ns[0];
	if ((call->own && call->callback == without->callback) || wait_ns < SHORT_NS ||
	    (waits_ns[0] == wait_ns && waits_ns[1] == wait_ns))
		return err;
	if (!err)
		err = d9__histogram_add(&without->before, wait_ns);
	if (!err)
		err = d9__histogram_add(&run[0].after, waits_ns[0]);
	return err || !without->bounds ? err : d9__histogram_add(&run[1].after, waits_ns[1]);
}

int d9__replay_start(struct d9__worker *worker, const struct d9__replay_start *start)
{
	struct d9__replay *replay = &worker->replay;
	uint64_t late_ns;
	bool any = false;
	int err = 0;

	if (start->from_ns > start->ns)
		return 0;
	if (replay->asleep.ns || replay->wait.to_ns)
		err = settle(worker, start);
	if (err || !replay->any_ahead ||
	    (start->wake == D9__REPLAY_BY_LOOP && start->ns - start->from_ns < SHORT_NS))
		return err;
	late_ns = start->timer && replay->late.n ? replay->late.ns / replay->late.n : 0;
	for (size_t i = 0; i < replay->n && !err; i++) {
		struct d9__replay_without *without = replay->items[i];

		if (without->runs[0].ahead_ns || without->runs[1].ahead_ns)
			err = start_without(without, start, late_ns);
		any = any || without->runs[0].ahead_ns || without->runs[1].ahead_ns;
	}
	replay->any_ahead = any;
	return err;
}

void d9__replay_slept(struct d9__worker *worker, uint64_t from_ns, uint64_t ns)
{
	struct d9__replay *replay = &worker->replay;

	/* Of several waits with no call in between the first tells. */
	if (!replay->wait.to_ns)
		replay->wait.from_ns = from_ns;
	replay->wait.to_ns = ns;
}

void d9__replay_outside(struct d9__worker *worker)
{
	worker->replay.latest = NULL;
}

/* ---- at the end ---- */

/* All waits of the process but those of |callback| for itself, as they are. */
static int waits_of_others(const struct d9__analysis *a, const struct d9__callback *callback,
			   struct d9__histogram *waits)
{
	int err = d9__histogram_merge(waits, &a->latency.delays);

	if (!err)
		d9__histogram_subtract(waits, &callback->own_delays);
	return err;
}

/* And as they would be in run |which|. */
static int waits_without(const struct d9__analysis *a, const struct d9__callback *callback,
			 bool asleep, unsigned which, struct d9__histogram *waits,
			 uint64_t *changed)
{
	int err = waits_of_others(a, callback, waits);

	*changed = 0;
	for (size_t i = 0; i < a->timeline.n && !err; i++) {
		struct d9__replay_without *without =
			find(&a->timeline.items[i]->replay, callback, asleep);

		if (!without)
			continue;
		*changed += without->before.count;
		d9__histogram_subtract(waits, &without->before);
		err = d9__histogram_merge(waits, &without->runs[without->bounds ? which : 0].after);
	}
	return err;
}

static struct d9__gain_of gain_at(const struct d9__histogram *before,
				  const struct d9__histogram *after, double q)
{
	struct d9__gain_of gain = { d9__histogram_quantile(before, q),
				    d9__histogram_quantile(&after[0], q),
				    d9__histogram_quantile(&after[1], q) };

	/* The second run was ahead of the first, and may have found a longer wait for that. */
	if (gain.after_least_ns > gain.after_ns)
		gain.after_least_ns = gain.after_ns;
	return gain;
}

int d9__replay_gain(const struct d9__analysis *a, const struct d9__callback *callback, bool asleep,
		    struct d9__gain *gain)
{
	struct d9__histogram before = { .count = 0 }, after[2] = { { .count = 0 }, { .count = 0 } };
	int err;

	if (!callback->replayed)
		return 0;
	err = waits_of_others(a, callback, &before);
	if (!err)
		err = waits_without(a, callback, asleep, 0, &after[0], &gain->changed);
	if (!err)
		err = waits_without(a, callback, asleep, 1, &after[1], &gain->changed);
	gain->waits = before.count;
	gain->p99 = gain_at(&before, after, 0.99);
	gain->p999 = gain_at(&before, after, 0.999);
	gain->longest = gain_at(&before, after, 1);
	d9__histogram_release(&before);
	d9__histogram_release(&after[0]);
	d9__histogram_release(&after[1]);
	return err ? err : gain->changed > 0;
}

const char *d9__gain_text(const struct d9__gain *gain, char *buf, size_t size)
{
	static const char *const names[] = { "p99", "p99.9", "longest" };
	/* Of fewer waits a quantile is but the longest. */
	static const unsigned waits[] = { 100, 1000, WAITS_LEAST };
	const struct d9__gain_of *const all[] = { &gain->p99, &gain->p999, &gain->longest };
	char least[D9__UNITS_MAX + 8] = "";
	size_t i = 0;

	buf[0] = '\0';
	while (i < 3 && (gain->waits < waits[i] || all[i]->before_ns < TOLD_NS ||
			 10 * all[i]->after_ns > 9 * all[i]->before_ns))
		i++;
	if (i == 3)
		return buf;
	if (100 * all[i]->after_least_ns < 99 * all[i]->after_ns)
		snprintf(least, sizeof(least), "%s to ", d9__units_ns(all[i]->after_least_ns).text);
	snprintf(buf, size, "callbacks would wait %s%s, not %s (%s)", least, d9__units_ns(all[i]->after_ns).text,
		 d9__units_ns(all[i]->before_ns).text, names[i]);
	return buf;
}
