// SPDX-License-Identifier: Apache-2.0
// Functions of all stacks: what each took itself, and with all that it called.

import { functionsOf, weightOf } from '../toolkit/fold.js';
import { showCount, showName, showShare } from '../toolkit/show.js';
import { shareBar } from './call_tree.js';
import { element } from './dom.js';
import { FRAME_KINDS } from './flame.js';
import { StackTools } from './flame_tab.js';
import { amountOf, emptySentence, foldOf } from './folded.js';
import { SortableTable } from './sortable.js';
import { state } from './state.js';

export class FunctionTab {
	constructor(patchPanel) {
		this.tools = new StackTools(patchPanel, 'Functions of', 'function-find');
		this.tools.invert.hidden = true;
		this.table = new SortableTable({ label: 'Functions', order: '-own', onOrder: (order) => patchPanel({ order }),
			onEnter: (row) => patchPanel({ tab: 'flame', find: row.info.name, zoom: [] }),
			columns: [
				{ key: 'name', title: 'function', class: 'code', value: (r) => r.info.name, cell: (r) => showName(r.info.name) },
				{ key: 'where', title: 'place', class: 'code faint', value: (r) => r.info.where, cell: (r) => showName(r.info.where) },
				{ key: 'kind', title: 'of', class: 'faint optional', value: (r) => r.info.kind, cell: (r) => FRAME_KINDS[r.info.kind] },
				{ key: 'own', title: 'itself', number: true, class: 'strong', value: (r) => r.own[0], cell: (r) => (r.own[0] ? this.amount(r.own[0]) : '–') },
				{ key: 'ownshare', title: 'share', number: true, class: 'faint', cell: (r) => showShare(r.own[0], this.whole) },
				{ key: 'ownbar', title: '', class: 'bar-cell optional', cell: (r) => shareBar(r.own[0] / this.whole) },
				{ key: 'total', title: 'in sum', hint: 'With all that it called', number: true, value: (r) => r.total[0], cell: (r) => this.amount(r.total[0]) },
				{ key: 'totalshare', title: 'share', number: true, class: 'faint', cell: (r) => showShare(r.total[0], this.whole) },
			] });
		this.box = element('div', { class: 'table-tab' }, this.tools.box, this.table.box);
	}

	show() {
		const { panel } = state, folded = foldOf(state, panel.kind, false), text = panel.find.toLowerCase();
		this.amount = amountOf(folded.unit);
		this.whole = weightOf(folded.tree, 0);
		if (this.tree !== folded.tree) this.functions = functionsOf(folded.tree).map((row) => ({ ...row, info: folded.names.list[row.frame] }));
		this.tree = folded.tree;
		const rows = text ? this.functions.filter((row) => row.info.name.toLowerCase().includes(text)) : this.functions;
		this.table.orderBy(panel.order, '-own');
		this.table.empty = text && folded.samples ? `No function has “${showName(panel.find)}” in its name.` : emptySentence(state, panel.kind, folded.of);
		this.table.setRows(rows);
		this.tools.show(folded, null);
		if (text) this.tools.share.textContent = `${showCount(rows.length)} of ${showCount(this.functions.length)} functions`;
	}
}
