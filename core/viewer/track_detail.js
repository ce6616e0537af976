// SPDX-License-Identifier: Apache-2.0
// The detail of a selected item of a track: what it is, when, its fields, and the callback around it.

import { showDuration, showName } from '../toolkit/show.js';
import { timeText } from './detail.js';
import { element } from './dom.js';
import { selectCall, state, update } from './state.js';
import { tellItem, timeOfItem } from './track.js';

/** The functions of the whole trace, by how much of it each has. */
function showStacksOf(kind) {
	update({ panel: { ...state.panel, open: true, tab: 'functions', kind, zoom: [], order: '' } });
}

export function showItem(box) {
	const { item, model } = state, { track, i } = item, [start, end] = timeOfItem(item);
	const facts = i >= 0 ? track.facts?.(i) ?? [] : [], call = i >= 0 ? track.call(i) : null;
	const pairs = [[i >= 0 ? 'began' : 'at', timeText(start)], end > start ? ['ended', timeText(end)] : null, end > start ? ['took', showDuration(end - start)] : null].filter(Boolean);
	box.replaceChildren(element('div', { class: 'head' }, element('h2', {}, track.title)),
		...(i >= 0 ? [element('div', { class: 'title' }, element('span', { class: 'code' }, track.label(i)))] : []),
		element('p', { class: 'quiet' }, tellItem(model, item, state.clock)),
		element('dl', { class: 'facts' }, ...[...pairs, ...facts].flatMap(([name, text]) => [element('dt', { title: showName(name) }, showName(name)), element('dd', { class: 'code', title: text }, text)])),
		...(call ? [element('p', { class: 'quiet' }, 'In ', element('button', { class: 'link code', onclick: () => selectCall(call.lane, call.row) }, model.label(call.lane, call.row).name), ` on ${model.laneName(call.lane)}`)] : []),
		...(track.profile ? [element('p', { class: 'quiet' }, element('button', { class: 'boxed', onclick: () => showStacksOf(track.profile) }, 'What holds it'))] : []),
		element('p', { class: 'quiet small' }, track.plain));
}
