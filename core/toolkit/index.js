// SPDX-License-Identifier: Apache-2.0
// Questions about ranges of polls, answered without looking at each: a pyramid of the longest over the
// numbers of rows, prefix sums, and rows by task and by place.

import { lowerBound } from './table.js';

const FAN = 16;
export const SUM_EVERY = 64;

/** Maxima of 16^k neighbours among the first |n| values, from k = 1. */
export function pyramidOf(values, n) {
	const levels = [];
	while (n > FAN) {
		const level = new Float64Array(Math.ceil(n / FAN));
		for (let i = 0; i < n; i++) if (values[i] > level[i / FAN | 0]) level[i / FAN | 0] = values[i];
		levels.push(level);
		values = level;
		n = level.length;
	}
	return levels;
}

/** Index of a worker's polls: the pyramid of their durations, and sums. */
export function indexPolls(polls) {
	const sums = new Float64Array(Math.ceil(polls.n / SUM_EVERY) + 1);
	let sum = 0;
	for (let i = 0; i < polls.n; i++) {
		if (i % SUM_EVERY === 0) sums[i / SUM_EVERY] = sum;
		sum += polls.dur[i];
	}
	sums[sums.length - 1] = sum;
	return { levels: pyramidOf(polls.dur, polls.n), sums };
}

/** The greatest of |values| [from, to), which are not negative, by their pyramid; 0 without any. */
export function greatestOf(values, levels, from, to) {
	let greatest = 0, level = 0;
	while (from < to) {
		const last = to - from <= 2 * FAN || level >= levels.length;
		while (from < to && (last || from % FAN)) {
			if (values[from] > greatest) greatest = values[from];
			from++;
		}
		while (from < to && to % FAN) {
			to--;
			if (values[to] > greatest) greatest = values[to];
		}
		from /= FAN;
		to /= FAN;
		values = levels[level++];
	}
	return greatest;
}

/** Call |each|(row) for the rows [from, to) of |values| that are at least |least|, in order. */
export function eachAtLeast(values, levels, least, from, to, each) {
	const visit = (level, a, b) => {
		const row = level < 0 ? values : levels[level], size = FAN ** (level + 1);
		for (let i = Math.floor(a / size); i * size < b; i++) {
			if (row[i] < least) continue;
			if (level < 0) each(i);
			else visit(level - 1, Math.max(a, i * size), Math.min(b, (i + 1) * size));
		}
	};
	if (from < to) visit(levels.length - 1, from, to);
}

/** Rows [first, last) that overlap [from, to); of no length, those inside. */
export function rowsIn(polls, from, to) {
	let first = lowerBound(polls.start, from, polls.n);
	if (first > 0 && polls.start[first - 1] + polls.dur[first - 1] > from) first--;
	return [first, lowerBound(polls.start, to, polls.n, first)];
}

/** Polls by task: [[worker index, row]] in order of time, for one task. */
export function pollsOfTask(trace, task) {
	const found = [];
	trace.workers.forEach(({ polls }, w) => {
		for (let row = 0; row < polls.n; row++) if (polls.task[row] === task) found.push([w, row]);
	});
	return found.sort((a, b) => trace.workers[a[0]].polls.start[a[1]] - trace.workers[b[0]].polls.start[b[1]]);
}

/**
 * The wake that made the poll of |task| at |start| run: the newest at or before it, unless an earlier poll
 * of the task began after it.  {time, waker, by, reason} or null.
 */
export function wakeOf(trace, task, start, previousStart) {
	const { wakes } = trace;
	for (let i = lowerBound(wakes.time, start, wakes.n); i < wakes.n && wakes.time[i] === start; i++)
		if (wakes.woken[i] === task) return wakeAt(wakes, i);
	for (let i = lowerBound(wakes.time, start, wakes.n) - 1; i >= 0 && wakes.time[i] > previousStart; i--)
		if (wakes.woken[i] === task) return wakeAt(wakes, i);
	return null;
}

function wakeAt(wakes, i) {
	return { time: wakes.time[i], waker: wakes.waker[i], by: wakes.by[i], reason: wakes.reason[i] };
}

/** Durations of all polls of a place: {n, total, longest, classes: [7 counts], sorted()}, by site number. */
export function statsBySite(trace, classOf) {
	const sites = new Map();
	trace.workers.forEach(({ polls }, w) => {
		for (let row = 0; row < polls.n; row++) {
			let stats = sites.get(polls.site[row]);
			if (!stats) sites.set(polls.site[row], stats = { site: polls.site[row], n: 0, total: 0, longest: 0, at: [w, row], bins: new Uint32Array(56) });
			stats.n++;
			stats.total += polls.dur[row];
			stats.bins[classOf(polls.dur[row])]++;
			if (polls.dur[row] > stats.longest) {
				stats.longest = polls.dur[row];
				stats.at = [w, row];
			}
		}
	});
	return sites;
}

const BINS = 56; // eight a decade, from 100 ns to 1 s

/** The bin of a histogram for a duration. */
export function histogramBin(ns) {
	return Math.max(0, Math.min(BINS - 1, Math.floor((Math.log10(Math.max(ns, 1)) - 2) * 8)));
}

/** Where bin |i| begins, in ns. */
export function binStart(i) {
	return 10 ** (2 + i / 8);
}
