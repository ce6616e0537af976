// SPDX-License-Identifier: Apache-2.0
// The five parts of time as a bar and in words: for callbacks and ranges.

import { showShare } from '../toolkit/show.js';
import { RunParts, partsOfRange } from '../toolkit/time.js';
import { element } from './dom.js';
import { eachRunOf, rowKey } from './scope.js';

const PARTS = { on_cpu: ['cpu', 'on the CPU'], ready: ['ready', 'ready, not running'], blocked: ['blocked', 'blocked in a call'], waiting: ['wait', 'idle, waiting'], unknown: ['unknown', 'unknown'] };
const LEAST_SHARE = 0.001, CALLS_AT_ONCE = 512;

function addParts(sum, parts) {
	for (const key of [...Object.keys(PARTS), 'total']) sum[key] = (sum[key] ?? 0) + (parts[key] ?? 0);
	return sum;
}

/** Parts of all runs of |range| by row of the table: fills |byCallback|, "process/key" -> parts, and yields now and then. */
export function* partsByCallback(state, range, byCallback) {
	const runs = [];
	eachRunOf(state, range, (lane, run) => {
		if (!Number.isNaN(run.ns)) runs.push(lane, { ...run });
	});
	for (let i = 0; i < runs.length; i += 2) {
		const lane = runs[i], run = runs[i + 1], key = `${lane.trace.number}/${rowKey(run)}`;
		let sum = byCallback.get(key);
		if (!sum) byCallback.set(key, sum = new RunParts(lane.trace));
		sum.add(lane.worker, run);
		if (i % CALLS_AT_ONCE === 0) yield i / runs.length;
	}
	for (const [key, sum] of byCallback) byCallback.set(key, sum.parts());
}

/** Parts of a range over the threads of |lanes|. */
export function partsOfLanes(lanes, [from, to]) {
	return lanes.reduce((sum, lane) => addParts(sum, partsOfRange(lane.trace, lane.worker, from - lane.shift, to - lane.shift)), {});
}

function partsInWords(parts) {
	return Object.entries(PARTS).filter(([key]) => parts[key] > parts.total * LEAST_SHARE).map(([key, [, text]]) => `${showShare(parts[key], parts.total)} ${text}`).join(', ');
}

/** A bar of the parts; its text says them. */
export function partsBar(parts) {
	const words = parts.total > 0 ? partsInWords(parts) : 'no time';
	return element('span', { class: 'parts', role: 'img', 'aria-label': words, title: words }, ...Object.entries(PARTS).filter(([key]) => parts[key] > parts.total * LEAST_SHARE).map(([key, [name]]) => {
		const bar = element('i', { class: `part-${name}` });
		bar.style.flexGrow = String(parts[key] / parts.total);
		return bar;
	}));
}
