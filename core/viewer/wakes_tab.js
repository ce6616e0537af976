// SPDX-License-Identifier: Apache-2.0
// Who makes the calls of a range run: which callback, thread or event of the kernel, how often, and how long it takes.

import { showCount, showDuration, showShare } from '../toolkit/show.js';
import { wakesBySender } from '../toolkit/wakes.js';
import { wakeReason } from './detail.js';
import { element } from './dom.js';
import { laneName } from './lanes.js';
import { rangeOf, scopeOf } from './scope.js';
import { runInSlices } from './slices.js';
import { SortableTable } from './sortable.js';
import { selectCall, state } from './state.js';

/** Rows of all processes; yields now and then. */
function* wakesOf({ model }, scopes) {
	const rows = [];
	for (const [trace, scope] of scopes) {
		const laneOf = (worker) => model.lanes.find((lane) => lane.trace === trace && lane.worker === trace.workers[worker]);
		for (const sum of yield* wakesBySender(trace, scope)) {
			const known = sum.sender >= 0 ? model.callback(trace, sum.sender) : null, reason = wakeReason(sum.reason);
			rows.push({ ...sum, by: known?.name || reason || (sum.reason < 0 ? 'not recorded' : 'the kernel or another thread'), code: Boolean(known), place: known?.source || known?.site || '',
				from: [...sum.workers].map((worker) => laneName(model, laneOf(worker))).join(', '), how: known ? reason : '', name: model.callback(trace, sum.woken).name, lane: laneOf(sum.longest.worker) });
		}
	}
	return rows;
}

export class WakesTab {
	constructor(patchPanel) {
		const wait = (q) => (row) => row.delays.quantile(q), whole = () => this.table.rows.reduce((sum, row) => sum + row.n, 0);
		this.table = new SortableTable({ label: 'Wakes', order: '-n', onOrder: (order) => patchPanel({ order }), onEnter: (row) => selectCall(row.lane, row.longest.row, true),
			empty: 'No callback ran in this time on these threads.',
			columns: [
				{ key: 'by', title: 'woken by', class: 'strong', value: (r) => r.by, cell: (r) => element('span', { class: r.code ? 'code' : false, title: r.place || false }, r.by) },
				{ key: 'from', title: 'on', class: 'faint', hint: 'Where the callback ran that woke it', value: (r) => r.from, cell: (r) => r.from || '–' },
				{ key: 'how', title: 'by', class: 'faint optional', value: (r) => r.how, cell: (r) => r.how || '–' },
				{ key: 'name', title: 'makes run', class: 'code', value: (r) => r.name, cell: (r) => r.name },
				{ key: 'n', title: 'calls', number: true, class: 'strong', value: (r) => r.n, cell: (r) => showCount(r.n) },
				{ key: 'share', title: 'share', number: true, class: 'faint', cell: (r) => showShare(r.n, whole()) },
				{ key: 'asleep', title: 'ended a sleep', number: true, hint: 'Calls with which the thread began to run after it had waited for something to do', value: (r) => r.asleep, cell: (r) => showCount(r.asleep) },
				{ key: 'p50', title: 'wait p50', number: true, hint: 'From the wake to the call: half took no longer', value: wait(0.5), cell: (r) => showDuration(wait(0.5)(r)) },
				{ key: 'p99', title: 'wait p99', number: true, hint: 'From the wake to the call: 99 % took no longer', value: wait(0.99), cell: (r) => showDuration(wait(0.99)(r)) },
				{ key: 'longest', title: 'longest wait', number: true, value: (r) => r.longest.delay, cell: (r) => (r.longest.delay < 0 ? '–'
					: element('button', { class: 'link', title: 'Go to this call', onclick: () => selectCall(r.lane, r.longest.row, true) }, showDuration(r.longest.delay))) },
			] });
		this.box = this.table.box;
	}

	show() {
		const { model, panel } = state, key = [rangeOf(state).join(), panel.thread, panel.callback].join('|'), scopes = model.traces.map((trace) => [trace, scopeOf(state, trace)]).filter(([, scope]) => scope);
		this.table.orderBy(panel.order, '-n');
		if (key === this.key && model === this.model) {
			this.table.setRows(this.table.rows);
			return;
		}
		Object.assign(this, { key, model });
		runInSlices(wakesOf(state, scopes), () => key === this.key && model === this.model, (rows) => this.table.setRows(rows));
	}
}
