// SPDX-License-Identifier: Apache-2.0
// Who makes calls run: the wakes of a range by who sent them and what they made run.

import { callsInOrder } from './index.js';
import { Durations } from './statistics.js';
import { pollAt } from './trace.js';

const WAKE_LOOK = 1e10; // ns: a wake that is older than that made nothing run
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
	const { wakes, workers } = trace, latest = new Map(), found = new Map(), waits = workers.map(() => 0);
	let wake = 0, calls = 0;
	for (const [w, row] of callsInOrder(workers)) {
		if (calls++ % WAKES_AT_ONCE === 0) yield;
		const { id, polls, parks } = workers[w], start = polls.start[row], task = polls.task[row], site = polls.site[row];
		let slept = false;
		for (; waits[w] < parks.n && parks.end[waits[w]] <= start; waits[w]++) slept ||= parks.end[waits[w]] - parks.start[waits[w]] >= ASLEEP_NS;
		for (; wake < wakes.n && wakes.time[wake] <= start; wake++) latest.set(wakes.woken[wake], wake);
		// A call uses its wake up, and those that came before it.
		const sent = latest.get(task) ?? -1, known = sent >= 0 && start - wakes.time[sent] < WAKE_LOOK;
		latest.delete(task);
		if (start < scope.from || start >= scope.to || (scope.workers && !scope.workers.has(id)) || (scope.site >= 0 && scope.site !== site)) continue;
		const by = known ? senderOf(trace, sent) : -1, reason = known ? wakes.reason[sent] : -1;
		const sender = by < 0 ? -1 : workers[by].polls.site[pollAt(workers[by].polls, wakes.time[sent])], key = `${sender}/${reason}/${site}`;
		let sum = found.get(key);
		if (!sum) found.set(key, sum = { sender, reason, woken: site, n: 0, asleep: 0, delays: new Durations(), workers: new Set(), longest: { worker: w, row, delay: -1 } });
		sum.n++;
		if (slept) sum.asleep++;
		if (by >= 0) sum.workers.add(by);
		if (!known) continue;
		const delay = start - wakes.time[sent];
		sum.delays.add(delay);
		if (delay > sum.longest.delay) sum.longest = { worker: w, row, delay };
	}
	return [...found.values()];
}
