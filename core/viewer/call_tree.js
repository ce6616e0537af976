// SPDX-License-Identifier: Apache-2.0
// The call tree: the frames of the flame graph as rows that open and close, from either end.

import { childrenOf, matchesOf, nodeAt, pathOf, weightOf } from '../toolkit/fold.js';
import { showName, showShare } from '../toolkit/show.js';
import { element } from './dom.js';
import { StackTools } from './flame_tab.js';
import { amountOf, emptySentence, foldOf } from './folded.js';
import { SortableTable } from './sortable.js';
import { state } from './state.js';

const OPEN_SHARE = 0.05, OPEN_MOST = 200, INDENT = 12;

/** A bar as long as a share of the whole. */
export function shareBar(share) {
	const bar = element('i', { class: 'share-bar', 'aria-hidden': 'true' });
	bar.style.width = `${Math.max(0, Math.min(100, share * 100))}%`;
	return bar;
}

export class TreeTab {
	constructor(patchPanel) {
		this.patchPanel = patchPanel;
		this.tools = new StackTools(patchPanel, 'Call tree of', 'tree-find');
		this.opened = new Set();
		this.table = new SortableTable({ label: 'Call tree', role: 'treegrid', onKey: (event, node) => this.key(event, node), onEnter: (node) => this.toggle(node),
			attributesOf: (node) => this.attributes(node), isMarked: (node) => this.found?.(this.folded.tree.frame[node]),
			columns: [
				{ key: 'frame', title: 'frame', class: 'code tree-frame', cell: (node) => this.frameCell(node) },
				{ key: 'total', title: 'in sum', hint: 'With all that it called', number: true, cell: (node) => this.amount(this.folded.tree.total[0][node]) },
				{ key: 'own', title: 'itself', number: true, class: 'faint', cell: (node) => this.ownText(node) },
				{ key: 'share', title: 'share', number: true, class: 'faint', cell: (node) => showShare(this.folded.tree.total[0][node], weightOf(this.folded.tree, 0)) },
				{ key: 'bar', title: '', class: 'bar-cell optional', cell: (node) => shareBar(this.folded.tree.total[0][node] / weightOf(this.folded.tree, 0)) },
				{ key: 'where', title: 'place', class: 'code faint optional', cell: (node) => (node ? showName(this.info(node).where) : '') },
			] });
		this.box = element('div', { class: 'table-tab' }, this.tools.box, this.table.box);
	}

	info(node) {
		return this.folded.names.list[this.folded.tree.frame[node]];
	}

	ownText(node) {
		const { tree } = this.folded;
		// From the inside only the first row of each is its own time.
		const own = !state.panel.inverted ? tree.own[0][node] : tree.depth[node] === 1 ? tree.total[0][node] : 0;
		return own ? this.amount(own) : '–';
	}

	frameCell(node) {
		const { tree } = this.folded, has = tree.end[node] > node + 1, frame = node ? this.info(node) : null;
		const cell = element('span', { class: frame && frame.kind !== 'own' ? 'other' : false, title: frame ? showName(frame.name, 2000) : false },
			element('i', { class: 'twist', 'aria-hidden': 'true' }, has ? (this.opened.has(node) ? '▾' : '▸') : ''), frame ? showName(frame.name) : 'all stacks');
		cell.style.paddingLeft = `${Math.min(40, tree.depth[node]) * INDENT}px`;
		return cell;
	}

	attributes(node) {
		const { tree } = this.folded;
		return { 'aria-level': String(tree.depth[node] + 1), 'aria-expanded': tree.end[node] > node + 1 ? String(this.opened.has(node)) : false };
	}

	/** Rows in sight: a node, and if it is open what is below it. */
	rows() {
		const { tree } = this.folded, rows = [], left = [0];
		while (left.length) {
			const node = left.pop();
			rows.push(node);
			if (this.opened.has(node)) left.push(...childrenOf(tree, node).reverse());
		}
		return rows;
	}

	/** Open what matters, from the top, and the ways to what is found. */
	openFirst() {
		const { tree } = this.folded, least = weightOf(tree, 0) * OPEN_SHARE, left = [0];
		this.opened = new Set();
		while (left.length && this.opened.size < OPEN_MOST) {
			const node = left.shift();
			this.opened.add(node);
			left.push(...childrenOf(tree, node).filter((child) => tree.end[child] > child + 1 && weightOf(tree, child) >= least));
		}
		this.openTo(nodeAt(tree, this.folded.names, state.panel.zoom));
	}

	openTo(node) {
		for (let i = node; i >= 0; i = this.folded.tree.parent[i]) this.opened.add(i);
	}

	openFound() {
		const { tree } = this.folded;
		for (let node = 1, n = 0; node < tree.n && n < OPEN_MOST; node++) {
			if (!this.found(tree.frame[node])) continue;
			this.openTo(tree.parent[node]);
			n++;
		}
	}

	toggle(node) {
		if (this.folded.tree.end[node] === node + 1) return;
		if (!this.opened.delete(node)) this.opened.add(node);
		this.table.setRows(this.rows());
		this.table.focus(this.table.focused);
	}

	key(event, node) {
		const { tree } = this.folded, has = tree.end[node] > node + 1, open = this.opened.has(node);
		if (event.key === 'ArrowRight') {
			if (has && !open) this.toggle(node);
			else if (has) this.table.focus(this.table.focused + 1);
		} else if (event.key === 'ArrowLeft') {
			if (has && open) this.toggle(node);
			else if (node) this.table.focus(this.table.shown.indexOf(tree.parent[node]));
		} else if (event.key === '*') {
			for (let i = node; i < tree.end[node]; i++) if (tree.end[i] > i + 1) this.opened.add(i);
			this.table.setRows(this.rows());
			this.table.focus(this.table.focused);
		} else if (event.key === ' ') {
			// The same frame in the flame graph.
			this.patchPanel({ tab: 'flame', zoom: pathOf(tree, node).map((frame) => this.folded.names.list[frame].key) });
		} else {
			return false;
		}
		return true;
	}

	show() {
		const { panel } = state, folded = foldOf(state, panel.kind, panel.inverted), empty = folded.tree.n === 1, text = panel.find.toLowerCase();
		const other = this.folded?.tree !== folded.tree;
		this.folded = folded;
		this.amount = amountOf(folded.unit);
		const found = text ? (frame) => folded.names.list[frame].name.toLowerCase().includes(text) : null, asked = text !== this.text;
		Object.assign(this, { found, text });
		if (other) this.openFirst();
		if (found && (other || asked)) this.openFound();
		this.table.empty = emptySentence(state, panel.kind, folded.of);
		this.table.setRows(empty ? [] : this.rows());
		this.tools.show(folded, found && !empty ? matchesOf(folded.tree, found) : null);
	}
}
