// SPDX-License-Identifier: Apache-2.0
// What the panel is about: a range of time or the whole trace, all threads or one, all callbacks or one.

import { eachCall, eachRun, ranIn } from '../toolkit/runs.js';
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

/** Calls |each|(call) for the calls of |range| on one lane in which the chosen callback ran, as eachCall() of the toolkit tells them. */
export function eachCallOf(state, { trace, worker, shift }, range, each) {
	const { callback } = state.panel, site = callback ? siteOf(trace, callback) : -1;
	if (site === -2) return;
	eachCall(trace, worker, range[0] - shift, range[1] - shift, (call) => {
		if (site < 0 || ranIn(trace, worker, call.row, site)) each(call);
	});
}

/** Calls |each|(lane, run) for the runs of callbacks in |range| on the chosen threads and of the chosen callback, as eachRun() of the toolkit tells them. */
export function eachRunOf(state, range, each) {
	const { callback } = state.panel;
	for (const lane of lanesOf(state)) {
		const site = callback ? siteOf(lane.trace, callback) : -1;
		if (site === -2) continue;
		eachRun(lane.trace, lane.worker, range[0] - lane.shift, range[1] - lane.shift, (run) => {
			if (site < 0 || run.site === site) each(lane, run);
		});
	}
}

/** What the runs of one row of the callbacks have in common: the callback, and the library's that called it. */
export function rowKey({ site, caller }) {
	return `${site}<${caller}`;
}

/**
 * Callbacks of |range|: [{name, source, site, location, trace, key, n, total, longest, lane, row, durations, lanes}]; total
 * is the time inside of the range, all else is of whole runs.  |n| counts one that had not ended, too; |row| is the poll of the longest, -1: none.
 */
export function callbacksOf(state, range = rangeOf(state)) {
	const tables = new Map();
	eachRunOf(state, range, (lane, run) => {
		const { trace } = lane, key = rowKey(run);
		let rows = tables.get(trace);
		if (!rows) tables.set(trace, rows = new Map());
		let sum = rows.get(key);
		if (!sum) rows.set(key, sum = { key, trace, place: run.site, caller: run.caller, n: 0, total: 0, longest: -1, lane, row: -1, durations: new Durations(), lanes: new Set() });
		sum.n++;
		sum.lanes.add(lane);
		if (Number.isNaN(run.ns)) return;
		sum.total += run.part;
		sum.durations.add(run.ns);
		if (run.ns <= sum.longest) return;
		Object.assign(sum, { longest: run.ns, lane, row: run.row });
	});
	return [...tables.values()].flatMap((rows) => [...rows.values()]).map((sum) => ({ ...state.model.wayTo(sum.trace, sum.place, sum.caller), ...sum }));
}
