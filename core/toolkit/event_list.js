// SPDX-License-Identifier: Apache-2.0
// All events of a range in the order of their times, as a list of which each place is found when it is asked for:
// nothing is copied, so that ten million cost no more than ten.

import { rowsIn } from './index.js';
import { isInScope } from './profile.js';
import { lowerBound } from './table.js';
import { fieldReader } from './trace.js';

/** Names under which calls, waits and wakes are listed, which have no table. */
export const LISTED = { poll: 'callback', park: 'wait', wake: 'wake' };

/** Whether an event has no time of its own, such as the name of an address. */
export function isTimeless({ source: { table }, row }) {
	return Boolean(table) && (!table.hasTime || Number.isNaN(table.rows.time[row]));
}

/** Times of a table, and its rows in their order, null where they are so already; what has no time stands first. */
function timesOfTable(trace, table) {
	const { n } = table.rows, keys = table.rows.time.subarray(0, n), before = Math.floor(trace.start) - 1;
	const times = keys.some(Number.isNaN) || !table.hasTime ? keys.map((time) => (Number.isNaN(time) || !table.hasTime ? before : time)) : keys;
	for (let i = 1; i < n; i++) if (times[i] < times[i - 1]) return { times, order: Uint32Array.from({ length: n }, (_, k) => k).sort((a, b) => times[a] - times[b] || a - b) };
	return { times, order: null };
}

/** A source of |n| rows at |times|: of |rows| if not all in turn.  Its places [from, to) are in the range. */
function sourceOf(trace, name, kind, times, n, rows, scope, more) {
	let keys = n === times.length ? times : times.subarray(0, n);
	if (rows) keys = Float64Array.from(rows, (row) => times[row]);
	return { trace, name, kind, keys, rows, from: lowerBound(keys, scope.from), to: lowerBound(keys, scope.to), ...more };
}

/** Rows of |keep|(row), in the order of |order|. */
function keptRows(n, order, keep) {
	const kept = [];
	for (let i = 0; i < n; i++) {
		const row = order ? order[i] : i;
		if (keep(row)) kept.push(row);
	}
	return Uint32Array.from(kept);
}

function workerSources(trace, scope) {
	const sources = [];
	for (const worker of trace.workers) {
		if (scope.workers && !scope.workers.has(worker.id)) continue;
		const { polls, parks } = worker, [first] = rowsIn(polls, scope.from, scope.to);
		const rows = scope.site < 0 ? null : keptRows(polls.n, null, (row) => row >= first && polls.site[row] === scope.site);
		const calls = sourceOf(trace, LISTED.poll, 'poll', polls.start, polls.n, rows, scope, { worker });
		// A call that began before and reaches into the range is of the range.
		calls.from = rows ? 0 : Math.min(calls.from, first);
		sources.push(calls);
		if (scope.site >= 0) continue;
		const waits = sourceOf(trace, LISTED.park, 'park', parks.start, parks.n, null, scope, { worker });
		if (waits.from > 0 && parks.end[waits.from - 1] > scope.from) waits.from--;
		sources.push(waits);
	}
	return sources;
}

function tableSources(trace, scope, whole) {
	const filtered = scope.workers !== null || scope.site >= 0;
	return trace.tables.filter((table) => !table.places && table.rows.n).map((table) => {
		const { n } = table.rows, worker = fieldReader(trace, table, 'worker_id'), tid = fieldReader(trace, table, 'tid');
		table.sorted ??= timesOfTable(trace, table);
		const { times, order } = table.sorted;
		const rows = filtered ? keptRows(n, order, (row) => isInScope(trace, scope, Number(worker(row) ?? -1), Number(tid(row) ?? -1), times[row])) : order;
		// What has no time of its own is of the whole trace.
		return sourceOf(trace, table.name, 'table', times, n, rows, whole && !filtered ? { from: -Infinity, to: Infinity } : scope, { table });
	});
}

/** Where the events of a process in |scope| are.  |whole|: those without a time, too. */
export function eventSources(trace, scope, whole = false) {
	const { wakes } = trace, filtered = scope.workers !== null || scope.site >= 0;
	const rows = filtered ? keptRows(wakes.n, null, (row) => isInScope(trace, scope, wakes.by[row], -1, wakes.time[row])) : null;
	return [...workerSources(trace, scope), sourceOf(trace, LISTED.wake, 'wake', wakes.time, wakes.n, rows, scope), ...tableSources(trace, scope, whole)]
		.filter((source) => source.to > source.from);
}

/** The events of |sources| by time: length, and at(i), which is {source, row, time}, time being the axis's. */
export class EventList {
	constructor(sources) {
		this.sources = sources;
		this.length = sources.reduce((sum, { from, to }) => sum + to - from, 0);
		this.next = -1; // the place that the cursors stand before
		this.cursors = sources.map(({ from }) => from);
		this.first = Math.min(...sources.map(({ keys, from, trace }) => keys[from] + (trace.shift ?? 0)));
		this.last = Math.max(...sources.map(({ keys, to, trace }) => keys[to - 1] + (trace.shift ?? 0)));
	}

	placesBefore(time) {
		return this.sources.map(({ keys, from, to, trace }) => lowerBound(keys, time - (trace.shift ?? 0), to, from));
	}

	countOf(places) {
		return places.reduce((sum, place, i) => sum + place - this.sources[i].from, 0);
	}

	/** Put the cursors before place |i|. */
	seek(i) {
		// Times are whole ns: find the last one that not more than |i| events come before, or, where doubles do not hold each, one near it.
		let low = Math.floor(this.first), high = Math.ceil(this.last);
		const near = 4 * Number.EPSILON * Math.max(Math.abs(low), Math.abs(high));
		while (high - low > near) {
			const middle = Math.ceil((low + high) / 2);
			if (this.countOf(this.placesBefore(middle)) <= i) low = middle;
			else high = middle - 1;
		}
		this.cursors = this.placesBefore(low);
		this.next = this.countOf(this.cursors);
		while (this.next < i) this.step();
	}

	step() {
		let best = -1, least = Infinity;
		for (let k = 0; k < this.sources.length; k++) {
			const { keys, to, trace } = this.sources[k], at = this.cursors[k];
			if (at >= to) continue;
			const time = keys[at] + (trace.shift ?? 0);
			if (time >= least) continue;
			least = time;
			best = k;
		}
		const source = this.sources[best], at = this.cursors[best]++;
		this.next++;
		return { source, row: source.rows ? source.rows[at] : at, time: least };
	}

	at(i) {
		if (i !== this.next) this.seek(i);
		return this.step();
	}
}

/** Fields of an event: [[name, value, unit]], values as they are in the trace. */
export function eventFields({ source: { trace, kind, table, worker }, row }) {
	if (kind === 'table')
		return table.fields.map((field, i) => [field.name, fieldReader(trace, table, field.name)(row), table.annotations.find((a) => a[0] === i && a[1] === 'unit')?.[2] ?? '']);
	if (kind === 'poll') {
		const { polls } = worker;
		return [['duration', polls.dur[row], 'ns'], ['worker_id', worker.id, ''], ['task_id', polls.task[row], ''], ['local_queue', polls.ready[row], ''], ['spawn_loc', trace.strings[polls.site[row]] ?? '', '']];
	}
	if (kind === 'park') {
		const { parks } = worker;
		return [['duration', parks.end[row] - parks.start[row], 'ns'], ['worker_id', worker.id, ''], ['sched_wait_ns', parks.wait[row], 'ns'],
			['cpu_time_ns', parks.cpuBefore[row], 'ns'], ['tid', worker.tid, '']];
	}
	const { wakes } = trace;
	return [['waker_task_id', wakes.waker[row], ''], ['woken_task_id', wakes.woken[row], ''], ['target_worker', wakes.by[row], ''], ['reason', wakes.reason[row], '']];
}
