// SPDX-License-Identifier: Apache-2.0
// Who makes calls run: the wakes of a range by who sent them and what they made run.

import { ranIn } from './runs.js';
import { Durations } from './statistics.js';
import { pollAt } from './trace.js';
import { WokenCalls } from './waking.js';

const ASLEEP_NS = 20000; // a wait of the loop that is shorter is none
const WAKES_AT_ONCE = 1024;

/** The worker (index) whose call sent wake |i|, or -1. */
function senderOf({ workers, wakes }, i) {
	return !wakes.waker[i] ? -1 : workers.findIndex(({ polls }) => {
		const row = pollAt(polls, wakes.time[i]);
		return row >= 0 && polls.task[row] === wakes.waker[i];
	});
}

/**
 * The calls in |scope|, as in profile.js, by what made them run: [{sender: place of the call that sent the wake or -1, reason (-1: no wake
 * was recorded), woken: place, n, asleep, delays, workers: Set of indices of those the senders ran on, longest: {worker, row, delay}}].
 * |asleep| counts calls with which their thread began to run after it had slept.  Yields now and then.
 */
export function* wakesBySender(trace, scope) {
	const { wakes, workers } = trace, found = new Map(), waits = workers.map(() => 0), calls = new WokenCalls(trace, true);
	while (calls.next()) {
		if (calls.at % WAKES_AT_ONCE === 1) yield;
		const { w, row, waking: { resumed, wake, ready } } = calls, { id, polls, parks } = workers[w], start = polls.start[row], site = polls.site[row];
		let slept = false;
		for (; waits[w] < parks.n && parks.end[waits[w]] <= start; waits[w]++) slept ||= parks.end[waits[w]] - parks.start[waits[w]] >= ASLEEP_NS;
		if (resumed || start < scope.from || start >= scope.to || (scope.workers && !scope.workers.has(id)) || (scope.site >= 0 && !ranIn(trace, workers[w], row, scope.site))) continue;
		const by = wake < 0 ? -1 : senderOf(trace, wake), reason = wake < 0 ? -1 : wakes.reason[wake];
		const sender = by < 0 ? -1 : workers[by].polls.site[pollAt(workers[by].polls, wakes.time[wake])], key = `${sender}/${reason}/${site}`;
		let sum = found.get(key);
		if (!sum) found.set(key, sum = { sender, reason, woken: site, n: 0, asleep: 0, delays: new Durations(), workers: new Set(), longest: { worker: w, row, delay: -1 } });
		sum.n++;
		if (slept) sum.asleep++;
		if (by >= 0) sum.workers.add(by);
		const delay = start - ready;
		// As in the report, a call that did not have to wait is none of those that waited.
		if (!(delay > 0)) continue;
		sum.delays.add(delay);
		if (delay > sum.longest.delay) sum.longest = { worker: w, row, delay };
	}
	return [...found.values()];
}
