// SPDX-License-Identifier: Apache-2.0
// Red flags of a trace for which there is no report of `dial9 report --json`, in the shape of its findings.

import { histogramBin, quantileOf, statsBySite, wakeOf } from './index.js';
import { showCount, showDuration, showName, splitLocation } from './show.js';
import { longLimit } from './statistics.js';
import { lowerBound } from './table.js';
import { POLL } from './trace.js';

const LATE = 5e6;
const LOOK_BACK = 1e9;
const TOLD = 5;

/** Calls from here on are long for a worker. */
function longCall(polls) {
	const bins = new Uint32Array(56);
	for (let i = 0; i < polls.n; i++) bins[histogramBin(polls.dur[i])]++;
	return longLimit(quantileOf(bins, polls.n, 0.99));
}

/** Long calls by place, worst first. */
function longCallbacks(trace) {
	const bySite = new Map();
	for (const worker of trace.workers) {
		const { polls } = worker, limit = longCall(polls);
		for (let i = 0; i < polls.n; i++) {
			// A call that has no end of its own was cut by a loss, a crash or a missing segment: how long it took is not known.
			if (polls.dur[i] < limit || polls.flags[i] & POLL.OPEN_ENDED) continue;
			if (!bySite.has(polls.site[i])) bySite.set(polls.site[i], []);
			bySite.get(polls.site[i]).push({ worker: worker.id, time: polls.start[i], duration: polls.dur[i], task: polls.task[i] });
		}
	}
	const sites = statsBySite(trace, histogramBin);
	return [...bySite].map(([site, calls]) => {
		calls.sort((a, b) => b.duration - a.duration);
		const [name] = splitLocation(trace.strings[site] ?? 'a callback'), worst = calls[0];
		return { worst: worst.duration, finding: {
			check: 'long-callback', severity: worst.duration >= 1e8 ? 'critical' : 'warning', name: showName(name),
			message: `${showName(name)} blocked worker ${worst.worker} for ${showDuration(worst.duration)} (${showCount(calls.length)} of ${
				showCount(sites.get(site).n)} calls were long).`,
			evidence: calls.slice(0, TOLD).map((call) => ({ text: `ran for ${showDuration(call.duration)}`, ...call })),
			advice: 'Open the trace with `dial9 serve` to see why, and who waited.',
		} };
	}).sort((a, b) => b.worst - a.worst).map(({ finding }) => finding);
}

/** The longest time from a wake to its call. */
function lateCalls(trace) {
	const late = [];
	for (const worker of trace.workers) {
		const { polls } = worker, previous = new Map();
		for (let i = 0; i < polls.n; i++) {
			const before = previous.get(polls.task[i]) ?? -Infinity, start = polls.start[i];
			previous.set(polls.task[i], start);
			// Only where the loop was busy for long before can a call be late.
			if (i === 0 || polls.dur[i - 1] < LATE / 2) continue;
			const wake = wakeOf(trace, polls.task[i], start, Math.max(before, start - LOOK_BACK));
			if (wake && start - wake.time >= LATE)
				late.push({ worker: worker.id, time: start, duration: polls.dur[i], task: polls.task[i], delay: start - wake.time, site: polls.site[i] });
		}
	}
	if (!late.length) return [];
	late.sort((a, b) => b.delay - a.delay);
	const [name] = splitLocation(trace.strings[late[0].site] ?? 'a callback');
	return [{ check: 'wake-delay', severity: 'warning', name: showName(name),
		message: `${showName(name)} ran ${showDuration(late[0].delay)} after it was ready (${showCount(late.length)} calls waited over ${showDuration(LATE)}).`,
		evidence: late.slice(0, TOLD).map((call) => ({ text: `waited for ${showDuration(call.delay)}`, ...call })),
		advice: 'Look at what ran on the same loop before it.' }];
}

function dataFlags(trace) {
	const damaged = trace.segments.filter((segment) => segment.error);
	const told = [];
	if (!trace.workers.some((worker) => worker.polls.n))
		told.push({ check: 'nothing-recorded', severity: 'warning', name: null, evidence: [],
			message: 'The trace has no callback of an event loop: was a loop attached?', advice: 'dial9 doctor tells what can be recorded.' });
	if (damaged.length || trace.lost)
		told.push({ check: 'incomplete-data', severity: 'warning', name: null, evidence: damaged.map((s) => ({ text: `${showName(s.name)}: ${showName(s.error)}` })),
			message: [trace.lost && `${showCount(trace.lost)} events were lost`, damaged.length && `${damaged.length} segments are damaged`].filter(Boolean).join(', ') +
				': all figures are of the rest.', advice: null });
	return told;
}

/** Findings, worst first; times are relative to the trace's origin. */
export function redFlags(trace) {
	return [...dataFlags(trace), ...longCallbacks(trace), ...lateCalls(trace)];
}

/** Callbacks that were ready at |time| on a worker, before a call there ended at |end|, and ran after it. */
export function waitersOf(trace, worker, time, end) {
	const { polls } = worker, waiting = new Map(), { wakes } = trace;
	for (let i = lowerBound(wakes.time, time - LOOK_BACK, wakes.n); i < wakes.n && wakes.time[i] < end; i++) waiting.set(wakes.woken[i], wakes.time[i]);
	// What ran before the call has used its wake, and so has the call itself.
	for (let i = lowerBound(polls.start, time - LOOK_BACK, polls.n); i < polls.n && polls.start[i] <= time; i++)
		if (waiting.get(polls.task[i]) <= polls.start[i]) waiting.delete(polls.task[i]);
	const found = [];
	for (let i = lowerBound(polls.start, end, polls.n); i < polls.n && waiting.size && polls.start[i] < end + LOOK_BACK; i++) {
		const ready = waiting.get(polls.task[i]);
		if (ready === undefined) continue;
		waiting.delete(polls.task[i]);
		found.push({ row: i, task: polls.task[i], site: polls.site[i], delay: polls.start[i] - ready });
	}
	return found;
}
