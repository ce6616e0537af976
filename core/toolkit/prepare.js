// SPDX-License-Identifier: Apache-2.0
// What the page asks of each trace, found where it is read, so that the page never stands still for it.

import { histogramBin, indexPolls, pyramidOf, statsBySite } from './index.js';
import { timersOf } from './timers.js';

/** Adds stats and timers to |trace|; index, ready, waits, busy and peak to its workers.  Once. */
export function prepareTrace(trace) {
	if (trace.stats) return;
	for (const worker of trace.workers) {
		const { polls, parks } = worker;
		let busy = 0, peak = 0;
		for (let i = 0; i < polls.n; i++) {
			busy += polls.dur[i];
			if (polls.ready[i] > peak) peak = polls.ready[i];
		}
		Object.assign(worker, { index: indexPolls(polls), ready: pyramidOf(polls.ready, polls.n), waits: pyramidOf(parks.wait, parks.n), busy, peak });
	}
	trace.timers = timersOf(trace);
	trace.stats = statsBySite(trace, histogramBin);
}
