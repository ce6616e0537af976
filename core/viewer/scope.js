// SPDX-License-Identifier: Apache-2.0
// What the panel is about: a range of time or the whole trace, all threads or one, all callbacks or one.

import { rowsIn } from '../toolkit/index.js';
import { showName } from '../toolkit/show.js';
import { Durations } from '../toolkit/statistics.js';
import { laneName } from './lanes.js';

/** The panel as it is before anybody opens it. */
export const CLOSED_PANEL = { open: false, tab: 'callbacks', height: 0, thread: '', callback: '', kind: 'cpu', inverted: false, zoom: [], find: '', order: '',
	hidden: '', compare: '', view: '' };

export function isPanelOpen(state) {
	return state.range !== null || state.panel.open;
}

/** Threads to choose from: [{key, name, trace, lane or null, workers, tids}], those that run loops first. */
export function threadsOf(model) {
	if (model.threads) return model.threads;
	const loops = model.lanes.map((lane) => ({ key: `${lane.trace.number}.w${lane.worker.id}`, name: laneName(model, lane), trace: lane.trace, lane,
		workers: new Set([lane.worker.id]), tids: new Set(lane.worker.tids) }));
	const others = [];
	for (const trace of model.traces) {
		const known = new Set(trace.workers.flatMap((worker) => worker.tids)), seen = new Map();
		const { samples } = trace;
		for (let i = 0; i < samples.tid.length; i++) {
			if (known.has(samples.tid[i])) continue;
			if (!seen.get(samples.tid[i])) seen.set(samples.tid[i], samples.thread[i] || '');
		}
		for (const [tid, name] of seen)
			others.push({ key: `${trace.number}.t${tid}`, name: showName(`${name || 'thread'} ${tid}`), trace, lane: null, workers: new Set(), tids: new Set([tid]) });
	}
	model.threads = [...loops, ...others];
	return model.threads;
}

/** [from, to) of the axis that the panel is about; the end is in the whole trace. */
export function rangeOf(state) {
	return state.range ?? [state.model.first, state.model.last + 1];
}

function siteOf(trace, location) {
	trace.siteByLocation ??= new Map(trace.strings.map((text, i) => [text, i]));
	return trace.siteByLocation.get(location) ?? -2;
}

/** The toolkit's scope for one process; null: it has nothing to do with it. */
export function scopeOf(state, trace, range = rangeOf(state)) {
	const { thread, callback } = state.panel, chosen = thread ? threadsOf(state.model).find((t) => t.key === thread) : null;
	if (chosen && chosen.trace !== trace) return null;
	const site = callback ? siteOf(trace, callback) : -1;
	if (site === -2) return null;
	return { from: range[0] - trace.shift, to: range[1] - trace.shift, workers: chosen?.workers ?? null, tids: chosen?.tids ?? null, site };
}

/** Lanes of the thread that is chosen, or all. */
export function lanesOf(state) {
	const { thread } = state.panel;
	return thread ? state.model.lanes.filter((lane) => `${lane.trace.number}.w${lane.worker.id}` === thread) : state.model.lanes;
}

/** Calls |each|(lane, row) of |range| on the chosen threads and of the chosen callback. */
export function eachCall(state, range, each) {
	const { callback } = state.panel;
	for (const lane of lanesOf(state)) {
		const site = callback ? siteOf(lane.trace, callback) : -1;
		if (site === -2) continue;
		const [first, last] = rowsIn(lane.polls, range[0] - lane.shift, range[1] - lane.shift);
		for (let row = first; row < last; row++) if (site < 0 || lane.polls.site[row] === site) each(lane, row);
	}
}

/** What the calls of one row of the callbacks have in common: the callback, and the user's function that it was for. */
export function rowKey(model, lane, row) {
	const inner = model.innerFunction(lane, row);
	return inner < 0 ? lane.polls.site[row] : `${lane.polls.site[row]}>${inner}`;
}

/**
 * Callbacks of |range|: [{name, source, site, location, trace, key, n, total, longest, lane, row, durations, lanes}]; total
 * is the time inside of the range, all else is of whole calls.
 */
export function callbacksOf(state, range = rangeOf(state)) {
	const tables = new Map();
	eachCall(state, range, (lane, row) => {
		const { polls, trace } = lane, key = rowKey(state.model, lane, row), from = range[0] - lane.shift, to = range[1] - lane.shift;
		let rows = tables.get(trace);
		if (!rows) tables.set(trace, rows = new Map());
		let sum = rows.get(key);
		if (!sum) rows.set(key, sum = { key, trace, total: 0, longest: -1, lane, row, durations: new Durations(), lanes: new Set() });
		const start = polls.start[row], dur = polls.dur[row];
		sum.total += Math.min(start + dur, to) - Math.max(start, from);
		sum.durations.add(dur);
		sum.lanes.add(lane);
		if (dur <= sum.longest) return;
		sum.longest = dur;
		sum.lane = lane;
		sum.row = row;
	});
	return [...tables.values()].flatMap((rows) => [...rows.values()]).map((sum) => ({
		...state.model.wayTo(sum.trace, sum.lane.polls.site[sum.row], state.model.innerFunction(sum.lane, sum.row)), ...sum, n: sum.durations.n }));
}
