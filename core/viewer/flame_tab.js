// SPDX-License-Identifier: Apache-2.0
// The flame graph's tab: which kind of stacks, from which end, and what is found in it.

import { weightOf } from '../toolkit/fold.js';
import { PROFILE_KINDS } from '../toolkit/profile.js';
import { showCount, showShare } from '../toolkit/show.js';
import { element } from './dom.js';
import { Flame } from './flame.js';
import { amountOf, emptySentence, foldOf } from './folded.js';
import { state } from './state.js';

const FIND_AFTER_MS = 150;

/** The row of choices over flame graph and call tree: kinds of stacks, the end they begin at, a box to find frames. */
export class StackTools {
	constructor(patchPanel, label, findId) {
		this.kinds = element('div', { class: 'choice', role: 'group', 'aria-label': 'Stacks' }, ...Object.entries(PROFILE_KINDS).map(([kind, { title }]) =>
			element('button', { class: 'small', 'data-kind': kind, onclick: () => patchPanel({ kind, zoom: [] }) }, title)));
		this.invert = element('button', { class: 'small', title: 'From the innermost frame (i)', onclick: () => patchPanel({ inverted: !state.panel.inverted, zoom: [] }) }, 'Inverted');
		this.share = element('span', { class: 'small', role: 'status' });
		this.find = element('input', { type: 'search', id: findId, placeholder: 'Find a frame', 'aria-label': 'Find a frame', autocomplete: 'off', spellcheck: 'false' });
		let timer = 0;
		this.find.addEventListener('input', () => {
			clearTimeout(timer);
			timer = setTimeout(() => patchPanel({ find: this.find.value.trim() }), FIND_AFTER_MS);
		});
		this.find.addEventListener('keydown', (event) => {
			if (event.key !== 'Escape') return;
			event.stopPropagation();
			this.find.value = '';
			patchPanel({ find: '' });
		});
		this.box = element('div', { class: 'tools', 'aria-label': label, role: 'group' }, this.kinds, this.invert, element('span', { class: 'space' }), this.share, this.find);
	}

	show(folded, matches) {
		for (const button of this.kinds.children) button.setAttribute('aria-pressed', String(button.dataset.kind === state.panel.kind));
		this.invert.setAttribute('aria-pressed', String(state.panel.inverted));
		if (document.activeElement !== this.find) this.find.value = state.panel.find;
		const amount = amountOf(folded.unit), whole = weightOf(folded.tree, 0), plural = PROFILE_KINDS[state.panel.kind].of;
		this.share.textContent = matches ? `${amount(matches.weight)}, ${showShare(matches.weight, whole)} under ${showCount(matches.nodes)} frame${matches.nodes === 1 ? '' : 's'}`
			: `${showCount(folded.samples)} of ${showCount(folded.of)} ${plural}`;
	}
}

export class FlameTab {
	constructor(patchPanel) {
		this.tools = new StackTools(patchPanel, 'Flame graph of', 'frame-find');
		this.status = element('p', { class: 'small frame-status' });
		this.flame = new Flame({ label: 'flame', onZoom: (zoom) => patchPanel({ zoom }), onFocus: (node, lines) => {
			this.status.textContent = lines.join(' · ');
		} });
		this.note = element('p', { class: 'quiet', hidden: true });
		this.out = element('button', { class: 'small', title: 'One frame out (Backspace)', onclick: () => this.flame.zoomOut() }, 'Zoom out');
		this.scroll = element('div', { class: 'flame-scroll' }, this.flame.box, this.note);
		this.legend = element('div', { class: 'flame-legend' }, ...[['f-own1', 'the program'], ['f-lib2', 'libraries'], ['f-ker1', 'kernel'], ['found', 'found']]
			.map(([name, text]) => element('span', {}, element('i', { class: name }), text)), this.out, this.status);
		this.box = element('div', { class: 'flame-tab' }, this.tools.box, this.scroll, this.legend);
	}

	show() {
		const { panel } = state, folded = foldOf(state, panel.kind, panel.inverted), empty = folded.tree.n === 1;
		this.note.hidden = !empty;
		this.flame.box.hidden = empty;
		this.out.hidden = empty || !panel.zoom.length;
		this.status.hidden = empty;
		this.note.textContent = empty ? emptySentence(state, panel.kind, folded.of) : '';
		if (!empty) this.flame.show({ tree: folded.tree, names: folded.names, zoom: panel.zoom, find: panel.find, amount: amountOf(folded.unit), inverted: panel.inverted,
			title: panel.inverted ? 'innermost frames of all threads' : 'all stacks' });
		this.tools.show(folded, empty ? null : this.flame.matches);
	}
}
