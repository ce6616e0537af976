// SPDX-License-Identifier: Apache-2.0
// Timers: when each was due, and how late its callback ran.

import { BY_TIMER } from './waking.js';

/**
 * {n, due, ran, worker (index), row}, in order of due time: each call of a callback whose newest wake, of after
 * its call before, was its timer's.  Such a wake is stamped with the time at which the timer was due.
 */
export function timersOf(trace) {
	const { wakes } = trace, byTask = new Map(), due = [], ran = [], worker = [], row = [];
	for (let i = 0; i < wakes.n; i++) if (wakes.reason[i] === BY_TIMER) byTask.set(wakes.woken[i], []);
	for (let i = 0; byTask.size && i < wakes.n; i++) byTask.get(wakes.woken[i])?.push(i);
	trace.workers.forEach(({ polls }, w) => {
		const before = new Map();
		for (let r = 0; byTask.size && r < polls.n; r++) {
			const list = byTask.get(polls.task[r]);
			if (!list) continue;
			const start = polls.start[r], last = before.get(polls.task[r]) ?? -Infinity;
			before.set(polls.task[r], start);
			// The newest wake at or before the start.
			let low = 0, high = list.length;
			while (low < high) {
				const middle = low + high >>> 1;
				if (wakes.time[list[middle]] <= start) low = middle + 1;
				else high = middle;
			}
			const wake = list[low - 1];
			if (wake === undefined || wakes.time[wake] <= last || wakes.reason[wake] !== BY_TIMER) continue;
			due.push(wakes.time[wake]);
			ran.push(start);
			worker.push(w);
			row.push(r);
		}
	});
	const order = Uint32Array.from(due, (_, i) => i).sort((a, b) => due[a] - due[b]);
	const pick = (values, type) => type.from(order, (i) => values[i]);
	return { n: due.length, due: pick(due, Float64Array), ran: pick(ran, Float64Array), worker: pick(worker, Uint16Array), row: pick(row, Uint32Array) };
}
