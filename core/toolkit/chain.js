// SPDX-License-Identifier: Apache-2.0
// The life of a task, and what led to a call and what it led to, step by step.

import { pollsOfTask, wakeOf } from './index.js';
import { lowerBound } from './table.js';
import { pollAt, rowsNamed } from './trace.js';

const CHAIN_STEPS = 16;
const CHAIN_LOOK = 1e10; // ns: a wake that is older than that made nothing run
const RUN_LOOK = 1e9;

/** The call of |task| of any worker that a wake at |time| made run: {worker (index), row} or null. */
function callAfter(trace, task, time) {
	let found = null;
	trace.workers.forEach(({ polls }, worker) => {
		for (let row = lowerBound(polls.start, time, polls.n); row < polls.n && polls.start[row] < time + RUN_LOOK; row++) {
			if (polls.task[row] !== task) continue;
			if (!found || polls.start[row] < trace.workers[found.worker].polls.start[found.row]) found = { worker, row };
			return;
		}
	});
	return found;
}

/** Who made a call run: {time, delay, reason, waker: {worker, row} or null}, or null. */
function causeOf(trace, worker, row) {
	const { polls } = trace.workers[worker], start = polls.start[row];
	let before = -Infinity;
	for (let i = row - 1; i >= 0 && i > row - 4096 && before === -Infinity; i--) if (polls.task[i] === polls.task[row]) before = polls.start[i];
	const wake = wakeOf(trace, polls.task[row], start, Math.max(before, start - CHAIN_LOOK));
	if (!wake) return null;
	let waker = null;
	trace.workers.forEach((other, i) => {
		const at = wake.waker ? pollAt(other.polls, wake.time) : -1;
		if (at >= 0 && other.polls.task[at] === wake.waker) waker = { worker: i, row: at };
	});
	return { time: wake.time, delay: start - wake.time, reason: wake.reason, waker };
}

/**
 * What led to the call in |row| of trace.workers[worker], the last cause first: [{time, delay, reason, waker}],
 * to the first one that no call made, at most 16, and never round in a circle.
 */
export function chainBack(trace, worker, row) {
	const chain = [], seen = new Set([`${worker}/${row}`]);
	for (let at = { worker, row }; at && chain.length < CHAIN_STEPS;) {
		const cause = causeOf(trace, at.worker, at.row);
		if (!cause) break;
		chain.push(cause);
		at = cause.waker;
		if (at && seen.has(`${at.worker}/${at.row}`)) break;
		if (at) seen.add(`${at.worker}/${at.row}`);
	}
	return chain;
}

/** What a call made run, in order: [{time, task, delay, call: {worker, row} or null}], at most |most|. */
export function chainOn(trace, worker, row, most = CHAIN_STEPS) {
	const { polls } = trace.workers[worker], { wakes } = trace, end = polls.start[row] + polls.dur[row], found = [];
	for (let i = lowerBound(wakes.time, polls.start[row], wakes.n); i < wakes.n && wakes.time[i] <= end && found.length < most; i++) {
		if (wakes.waker[i] !== polls.task[row] || !wakes.waker[i]) continue;
		const call = callAfter(trace, wakes.woken[i], wakes.time[i]);
		found.push({ time: wakes.time[i], task: wakes.woken[i], call, delay: call ? trace.workers[call.worker].polls.start[call.row] - wakes.time[i] : NaN });
	}
	return found;
}

/** Where tasks waited, by task: Map from id to [{time, stack}]. */
function dumpsByTask(trace) {
	if (trace.dumpsByTask) return trace.dumpsByTask;
	const byTask = trace.dumpsByTask = new Map();
	for (const { time, task_id: task, callchain } of rowsNamed(trace, 'TaskDumpEvent', ['task_id', 'callchain'])) {
		if (!byTask.has(task)) byTask.set(task, []);
		byTask.get(task).push({ time, stack: callchain ?? [] });
	}
	return byTask;
}

/**
 * A task from its birth to its death: {calls: [[worker, row]], total, longest: its call, gaps: [{from, to, stack}]},
 * gaps being the times between two of its calls, longest first, with the stack that armed the wait if it was taken.
 */
export function lifeOf(trace, id) {
	const calls = pollsOfTask(trace, id), dumps = dumpsByTask(trace).get(id) ?? [], gaps = [];
	let total = 0, longest = null, before = NaN;
	for (const call of calls) {
		const { polls } = trace.workers[call[0]], start = polls.start[call[1]], dur = polls.dur[call[1]];
		total += dur;
		if (!longest || dur > trace.workers[longest[0]].polls.dur[longest[1]]) longest = call;
		if (start > before) gaps.push({ from: before, to: start });
		before = start + dur;
	}
	gaps.sort((a, b) => b.to - b.from - (a.to - a.from));
	// A dump is stamped with the beginning of the wait, which is the end of the call that armed it.
	for (const gap of gaps) gap.stack = dumps.find(({ time }) => time >= gap.from - 1e6 && time < gap.to)?.stack ?? null;
	return { calls, total, longest, gaps };
}
