// SPDX-License-Identifier: Apache-2.0
// Lists with a stack beside them: blocking calls, and samples one by one.

import { blockingCalls, isInScope, samplesIn } from '../toolkit/profile.js';
import { showCount, showDuration, showName, showTime } from '../toolkit/show.js';
import { framesOf } from '../toolkit/stacks.js';
import { element } from './dom.js';
import { emptySentence } from './folded.js';
import { scopeOf, threadsOf } from './scope.js';
import { SortableTable } from './sortable.js';
import { selectCall, state } from './state.js';

const SOURCES_OF_SAMPLES = ['on the CPU', 'off the CPU'];
const PROCESS_STEP = 2 ** 32; // numbers of processes are above those of samples in one number

export function threadName(trace, worker, tid) {
	const thread = threadsOf(state.model).find((t) => t.trace === trace && (t.workers.has(worker) || t.tids.has(tid)));
	return thread?.name ?? (tid > 0 ? `thread ${tid}` : '');
}

export function callName(call) {
	return call ? state.model.label(call.lane, call.row).name : '';
}

export function clockText(trace, time, digits = 6) {
	const { model } = state, at = time + trace.shift;
	return showTime(at - model.first, model.wall(at), state.clock, digits);
}

function frameLines(trace, stack) {
	const frames = stack < 0 ? [] : framesOf(trace, stack);
	if (!frames.length) return [element('p', { class: 'small' }, 'No stack was recorded.')];
	return frames.map((frame) => element('div', { class: `frame${frame.known ? '' : ' unnamed'}` }, element('span', { title: showName(frame.name, 2000) }, showName(frame.name)), element('span', { class: 'where' }, showName(frame.where))));
}

/** A table and what its focused row has: its stack. */
class StackList {
	constructor(options) {
		this.pane = element('section', { class: 'stack-pane', 'aria-label': 'Stack', tabindex: '0' });
		this.table = new SortableTable({ ...options, onFocus: (row) => this.pane.replaceChildren(...this.beside(row)) });
		this.box = element('div', { class: 'list-tab' }, this.table.box, this.pane);
	}

	fill(rows) {
		this.table.orderBy(state.panel.order, 'time');
		this.table.setRows(rows);
		this.pane.replaceChildren(...(rows.length ? this.beside(this.table.at(this.table.focused)) : []));
		this.pane.hidden = !rows.length;
	}
}

function goTo(call) {
	if (call) selectCall(call.lane, call.row, true);
}

export class BlockingTab extends StackList {
	constructor(patchPanel) {
		super({ label: 'Blocking calls', order: 'time', onOrder: (order) => patchPanel({ order }), onEnter: (row) => goTo(state.model.callOfWorker(row.trace, row.worker, row.time)),
			columns: [
				{ key: 'time', title: 'began', class: 'faint', value: (r) => r.time + r.trace.shift, cell: (r) => clockText(r.trace, r.time) },
				{ key: 'name', title: 'function', class: 'code', value: (r) => r.name, cell: (r) => showName(r.name) },
				{ key: 'fd', title: 'descriptor', number: true, value: (r) => r.fd ?? -1, cell: (r) => (r.fd === null ? '–' : String(r.fd)) },
				{ key: 'dur', title: 'took', number: true, class: 'strong', value: (r) => r.dur, cell: (r) => showDuration(r.dur) },
				{ key: 'callback', title: 'in callback', class: 'code', value: (r) => callName(state.model.callOfWorker(r.trace, r.worker, r.time)), cell: (r) => callName(state.model.callOfWorker(r.trace, r.worker, r.time)) || '–' },
				{ key: 'thread', title: 'on', class: 'faint optional', value: (r) => threadName(r.trace, r.worker, -1), cell: (r) => threadName(r.trace, r.worker, -1) },
				{ key: 'holder', title: 'lock held by', class: 'faint', value: (r) => r.holderTid, cell: (r) => holderText(r) },
			] });
	}

	beside(row) {
		return [element('h2', {}, showName(row.name), element('span', {}, showDuration(row.dur))), ...frameLines(row.trace, row.stack),
			...(row.holderTid ? [element('h2', {}, 'The lock was held by', element('span', {}, holderText(row))), ...frameLines(row.trace, row.holderStack)] : [])];
	}

	show() {
		const rows = [];
		let of = 0;
		for (const trace of state.model.traces) {
			const all = blockingCalls(trace).rows, scope = scopeOf(state, trace);
			of += all.length;
			if (scope) for (const row of all) if (isInScope(trace, scope, row.worker, -1, row.time)) rows.push({ ...row, trace });
		}
		this.table.empty = emptySentence(state, 'blocking', of);
		this.fill(rows);
	}
}

/** Who held the lock: thread, and in which callback. */
function holderText(row) {
	if (!row.holderTid) return '–';
	const { trace } = row, location = trace.tasks.get(row.holderTask)?.location;
	return [threadName(trace, -1, row.holderTid), location ? `in ${state.model.callbackAt(trace, location).name}` : ''].filter(Boolean).join(', ');
}

export class SampleTab extends StackList {
	constructor(patchPanel) {
		const of = (row) => ({ trace: state.model.traces[Math.floor(row / PROCESS_STEP)], i: row % PROCESS_STEP });
		const callOf = (row) => {
			const { trace, i } = of(row);
			return state.model.callOfWorker(trace, trace.samples.worker[i], trace.samples.time[i]);
		};
		const leafOf = (row) => {
			const { trace, i } = of(row), stack = trace.samples.stack[i];
			return stack < 0 ? '' : framesOf(trace, stack)[0]?.name ?? '';
		};
		const threadOf = (row) => {
			const { trace, i } = of(row);
			return threadName(trace, trace.samples.worker[i], trace.samples.tid[i]);
		};
		super({ label: 'Samples', order: 'time', onOrder: (order) => patchPanel({ order }), onEnter: (row) => goTo(callOf(row)),
			columns: [
				{ key: 'time', title: 'at', class: 'faint', value: (r) => of(r).trace.samples.time[of(r).i] + of(r).trace.shift, cell: (r) => clockText(of(r).trace, of(r).trace.samples.time[of(r).i]) },
				{ key: 'kind', title: 'taken', class: 'faint', value: (r) => of(r).trace.samples.source[of(r).i], cell: (r) => SOURCES_OF_SAMPLES[of(r).trace.samples.source[of(r).i]] ?? 'otherwise' },
				{ key: 'leaf', title: 'in function', class: 'code', value: leafOf, cell: (r) => showName(leafOf(r)) || '–' },
				{ key: 'callback', title: 'in callback', class: 'code', value: (r) => callName(callOf(r)), cell: (r) => callName(callOf(r)) || '–' },
				{ key: 'thread', title: 'thread', class: 'faint', value: threadOf, cell: threadOf },
			] });
		this.of = of;
	}

	beside(row) {
		const { trace, i } = this.of(row), { samples } = trace;
		return [element('h2', {}, 'Stack', element('span', {}, SOURCES_OF_SAMPLES[samples.source[i]] ?? 'otherwise')), ...frameLines(trace, samples.stack[i]),
			...(samples.cut[i] ? [element('p', { class: 'small' }, 'Outer frames may be missing: the recorder could not follow the stack further.')] : [])];
	}

	show() {
		const rows = [];
		let of = 0;
		for (const [number, trace] of state.model.traces.entries()) {
			const scope = scopeOf(state, trace);
			of += trace.samples.time.length;
			if (scope) for (const i of samplesIn(trace, scope)) rows.push(number * PROCESS_STEP + i);
		}
		this.table.empty = of ? `None of the ${showCount(of)} samples of the trace are in this range, thread and callback.` : emptySentence(state, 'cpu', 0);
		this.fill(rows);
	}
}
