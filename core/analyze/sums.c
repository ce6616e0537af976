/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/sums.h"
#include "base/array.h"
#include "base/u64.h"

/* The library that goes round in a wait is told again within so long. */
#define LIBRARY_TOLD_NS (2 * D9__SECOND_NS)

/* ---- taking them ---- */

/*
 * Until when the time awake of |worker| counts that goes on; 0: there is none, or it will be known
 * soon, with its readings.
 */
static uint64_t awake_until(const struct d9__worker *worker, uint64_t until_ns)
{
	uint64_t end_ns;

	if (!until_ns || worker->park.valid || !worker->unpark.valid)
		return 0;
	end_ns = d9__worker_awake_until(worker, until_ns);
	return end_ns >= worker->unpark.ns + D9__LONG_ROUND_NS ? end_ns : 0;
}

/*
 * The wait of |worker| goes on, or the library goes round in it: then the recorder tells each
 * second how long, samples find it there, and of the time since then it is not known.
 */
static void add_wait(struct d9__loop_sums *sums, const struct d9__worker *worker, uint64_t until_ns,
		     uint64_t period_ns)
{
	uint64_t burnt_ns = d9__worker_burns(worker, worker->park.ns),
		 seen_ns = worker->library.until_ns;
	uint64_t sampled_ns = worker->wait_samples * period_ns;

	if (worker->wait_samples >= D9__SAMPLES_FEW && sampled_ns > burnt_ns) {
		sums->library_ns += sampled_ns - burnt_ns;
		burnt_ns = sampled_ns;
		seen_ns = worker->wait_sampled_ns;
	}
	if (burnt_ns && until_ns < seen_ns + LIBRARY_TOLD_NS)
		until_ns = seen_ns;
	burnt_ns = d9__u64_min(burnt_ns, d9__u64_minus(until_ns, worker->park.ns));
	d9__loop_time_waited(&sums->time, worker->park.ns, until_ns, 0, 0);
	d9__loop_time_burnt(&sums->time, burnt_ns);
	sums->cpu_ns += burnt_ns;
}

static void add_awake(struct d9__loop_sums *sums, const struct d9__worker *worker, uint64_t end_ns)
{
	uint64_t wall_ns = end_ns - worker->unpark.ns;
	struct d9__loop_awake awake = { .from_ns = worker->unpark.ns,
					.to_ns = end_ns,
					.calls_ns = worker->poll_ns - worker->unpark.pieces_ns,
					.own_ns = wall_ns };

	if (worker->piece.open)
		awake.calls_ns += end_ns - worker->piece.start_ns;
	d9__loop_time_awake(&sums->time, &awake);
	sums->cpu_ns += worker->piece.open || worker->library.until_ns <= worker->unpark.ns
				? d9__worker_last_used_ns(worker, wall_ns)
				: d9__u64_min(wall_ns, d9__worker_burns(worker, worker->unpark.ns));
}

static void take_loop(struct d9__loop_sums *sums, const struct d9__worker *worker,
		      uint64_t until_ns, uint64_t period_ns)
{
	uint64_t end_ns = awake_until(worker, until_ns);

	*sums = (struct d9__loop_sums) { .time = worker->loop_time,
					 .account = worker->time,
					 .looked_ns = worker->looked_ns,
					 .cpu_ns = worker->cpu_ns,
					 .library_ns = worker->library.cpu_ns,
					 .outside = worker->outside_calls.told,
					 .held_outside = d9__returns_are_held(&worker->returns),
					 .cpu_seen = worker->cpu_seen };
	if (end_ns)
		add_awake(sums, worker, end_ns);
	else if (until_ns && worker->park.valid)
		add_wait(sums, worker, until_ns, period_ns);
	if (until_ns)
		d9__loop_time_finish(&sums->time);
}

/* The part of |worker|'s open call that is |callback|'s own. */
static uint64_t open_ns(const struct d9__worker *worker, const struct d9__callback *callback,
			uint64_t until_ns)
{
	uint64_t end_ns = worker->piece.open ? awake_until(worker, until_ns) : 0, user_ns = 0;

	if (!end_ns)
		return 0;
	if (worker->piece.users.open)
		user_ns = d9__u64_minus(end_ns, worker->piece.users.since_ns);
	if (worker->piece.users.open && worker->piece.users.callback == callback)
		return user_ns;
	if (worker->piece.task->callback != callback)
		return 0;
	return d9__u64_minus(end_ns - worker->piece.start_ns, worker->piece.users.ns + user_ns);
}

static int take_calls(struct d9__sums *sums, const struct d9__analysis *a,
		      const struct d9__callback *callback, uint64_t until_ns)
{
	for (size_t i = 0; i < callback->n_on && i < a->timeline.n; i++) {
		struct d9__call_sums *calls;

		if (!callback->on[i])
			continue;
		if (!d9__array_grow(sums->calls, sums->n_calls))
			return -ENOMEM;
		calls = &sums->calls[sums->n_calls++];
		*calls = (struct d9__call_sums) { callback, i, *callback->on[i] };
		calls->on.ns += open_ns(a->timeline.items[i], callback, until_ns);
	}
	return 0;
}

static int take_sources(struct d9__sums *sums, const struct d9__analysis *a,
			const struct d9__callback *callback)
{
	for (unsigned i = 0; i < D9__OUTSIDE_PHASES; i++) {
		const struct d9__outside *outside = &callback->outside[i];
		const struct d9__worker *worker =
			outside->ns ? d9__table_find(&a->timeline.by_id, outside->worker) : NULL;

		if (!worker)
			continue;
		if (!d9__array_grow(sums->sources, sums->n_sources))
			return -ENOMEM;
		sums->sources[sums->n_sources++] =
			(struct d9__source_sums) { callback, i, worker->number, outside->calls,
						   outside->ns };
	}
	return 0;
}

int d9__sums_take(struct d9__sums *sums, const struct d9__analysis *a, uint64_t until_ns)
{
	int err = 0;

	sums->loops = calloc(a->timeline.n + 1, sizeof(*sums->loops));
	if (!sums->loops)
		return -ENOMEM;
	sums->n_loops = a->timeline.n;
	sums->ready_ns = a->machine.ready_ns;
	for (size_t i = 0; i < a->timeline.n; i++) {
		sums->ready_ns += a->timeline.items[i]->run_queue_ns;
		take_loop(&sums->loops[i], a->timeline.items[i], until_ns, a->samples.period_ns);
	}
	for (size_t i = 0; i < a->callbacks.n && !err; i++) {
		err = take_calls(sums, a, a->callbacks.items[i], until_ns);
		if (!err)
			err = take_sources(sums, a, a->callbacks.items[i]);
	}
	sums->runqueue_known = a->machine.counters[D9__MACHINE_RUNQUEUE_NS].known;
	sums->runqueue_ns = a->machine.counters[D9__MACHINE_RUNQUEUE_NS].growth;
	sums->cpu_ns = a->usage.growth[D9__USAGE_USER_NS] + a->usage.growth[D9__USAGE_SYSTEM_NS];
	sums->sleeps = a->usage.growth[D9__USAGE_VOLUNTARY_SWITCHES];
	if (err)
		d9__sums_release(sums);
	return err;
}

/* ---- the difference of two ---- */

static void take_off(uint64_t *sum, uint64_t before)
{
	*sum = d9__u64_minus(*sum, before);
}

static void subtract_account(struct d9__account *account, const struct d9__account *before)
{
	take_off(&account->on_cpu_ns, before->on_cpu_ns);
	take_off(&account->ready_ns, before->ready_ns);
	take_off(&account->blocked_ns, before->blocked_ns);
	take_off(&account->by_period_ns, before->by_period_ns);
	take_off(&account->samples, before->samples);
	take_off(&account->major_faults, before->major_faults);
	d9__time_told_subtract(&account->told, &before->told);
}

static void subtract_loop(struct d9__loop_sums *sums, const struct d9__loop_sums *before)
{
	d9__loop_time_subtract(&sums->time, &before->time);
	subtract_account(&sums->account, &before->account);
	take_off(&sums->looked_ns, before->looked_ns);
	take_off(&sums->cpu_ns, before->cpu_ns);
	take_off(&sums->library_ns, before->library_ns);
	d9__time_told_subtract(&sums->outside, &before->outside);
}

static void subtract_calls(struct d9__callback_on *on, const struct d9__callback_on *before)
{
	subtract_account(&on->time, &before->time);
	take_off(&on->calls, before->calls);
	take_off(&on->ns, before->ns);
	take_off(&on->io.reads, before->io.reads);
	take_off(&on->io.writes, before->io.writes);
	take_off(&on->io.accepts, before->io.accepts);
	take_off(&on->io.again, before->io.again);
	take_off(&on->io.eof, before->io.eof);
	take_off(&on->io.errors, before->io.errors);
	take_off(&on->io.read_bytes, before->io.read_bytes);
	take_off(&on->io.write_bytes, before->io.write_bytes);
}

/* Both are in one order, and nothing that was there has gone. */
void d9__sums_subtract(struct d9__sums *sums, const struct d9__sums *before)
{
	size_t at = 0;

	for (size_t i = 0; i < sums->n_loops && i < before->n_loops; i++)
		subtract_loop(&sums->loops[i], &before->loops[i]);
	for (size_t i = 0; i < sums->n_calls && at < before->n_calls; i++)
		if (sums->calls[i].callback == before->calls[at].callback &&
		    sums->calls[i].worker == before->calls[at].worker)
			subtract_calls(&sums->calls[i].on, &before->calls[at++].on);
	at = 0;
	for (size_t i = 0; i < sums->n_sources && at < before->n_sources; i++) {
		struct d9__source_sums *source = &sums->sources[i];

		if (source->callback != before->sources[at].callback ||
		    source->phase != before->sources[at].phase)
			continue;
		take_off(&source->calls, before->sources[at].calls);
		take_off(&source->ns, before->sources[at++].ns);
	}
	take_off(&sums->runqueue_ns, before->runqueue_ns);
	take_off(&sums->ready_ns, before->ready_ns);
	take_off(&sums->cpu_ns, before->cpu_ns);
	take_off(&sums->sleeps, before->sleeps);
}

void d9__sums_release(struct d9__sums *sums)
{
	free(sums->loops);
	free(sums->calls);
	free(sums->sources);
	*sums = (struct d9__sums) { 0 };
}
