// SPDX-License-Identifier: Apache-2.0
// Callbacks of a range: how often and how long they ran, and where their time went.

import { durationClass, showCount, showDuration, showName } from '../toolkit/show.js';
import { element } from './dom.js';
import { laneName } from './lanes.js';
import { callbacksOf, rangeOf } from './scope.js';
import { runInSlices } from './slices.js';
import { SortableTable } from './sortable.js';
import { selectCall, state } from './state.js';
import { partsBar, partsByCallback } from './time_parts.js';

const LANES_SHOWN = 3;

function lanesText({ lanes }) {
	const names = [...lanes].map((lane) => laneName(state.model, lane));
	return names.length > LANES_SHOWN ? `${names.slice(0, LANES_SHOWN).join(', ')} and ${names.length - LANES_SHOWN} more` : names.join(', ');
}

/** A length, where one of its calls has ended. */
const lengthText = (ns) => (ns >= 0 ? showDuration(ns) : '–');

function longestCallCell(row) {
	if (row.row < 0) return lengthText(row.longest);
	return element('button', { class: 'link', title: 'Go to this call', onclick: () => selectCall(row.lane, row.row, true) },
		element('i', { class: `swatch k${durationClass(row.longest)}` }), showDuration(row.longest));
}

export class CallbackTab {
	constructor(patchPanel) {
		this.table = new SortableTable({ label: 'Callbacks', order: '-total', onOrder: (order) => patchPanel({ order }),
			onEnter: (row) => patchPanel({ callback: row.location }),
			empty: 'No callback ran in this time on these threads.',
			columns: [
				{ key: 'name', title: 'callback', class: 'code', value: (r) => r.name, cell: (r) => r.name },
				{ key: 'place', title: 'place', class: 'code faint', value: (r) => r.source || r.site, cell: (r) => r.source || showName(r.site) },
				{ key: 'loop', title: 'loop', class: 'faint optional', value: lanesText, cell: lanesText },
				{ key: 'n', title: 'calls', number: true, value: (r) => r.n, cell: (r) => showCount(r.n) },
				{ key: 'total', title: 'in sum', hint: 'Time inside of the range', number: true, class: 'strong', value: (r) => r.total, cell: (r) => showDuration(r.total) },
				{ key: 'p50', title: 'p50', hint: 'Half of the calls took no longer', number: true, value: (r) => r.durations.quantile(0.5), cell: (r) => lengthText(r.durations.quantile(0.5)) },
				{ key: 'p99', title: 'p99', hint: '99 % of the calls took no longer', number: true, value: (r) => r.durations.quantile(0.99), cell: (r) => lengthText(r.durations.quantile(0.99)) },
				{ key: 'longest', title: 'longest', number: true, value: (r) => r.longest, cell: longestCallCell },
				{ key: 'parts', title: 'time', class: 'parts-cell', hint: 'Where the time of its calls went: on the CPU, ready, blocked, unknown', cell: (r) => (this.partsOf(r) ? partsBar(this.partsOf(r)) : '…') },
			] });
		this.box = this.table.box;
	}

	show() {
		this.table.orderBy(state.panel.order, '-total');
		this.table.setRows(callbacksOf(state));
		this.findParts();
	}

	partsOf(row) {
		return this.done ? this.parts.get(`${row.trace.number}/${row.key}`) : null;
	}

	/** There may be millions of calls. */
	findParts() {
		const { model, panel } = state, key = [rangeOf(state).join(), panel.thread, panel.callback].join('|');
		if (key === this.key && model === this.model) return;
		Object.assign(this, { key, model, done: false, parts: new Map() });
		const mine = this.parts;
		runInSlices(partsByCallback(state, rangeOf(state), mine), () => mine === this.parts, () => {
			this.done = true;
			this.table.setRows(this.table.rows);
		});
	}
}
