// SPDX-License-Identifier: Apache-2.0
// The detail of a selected item of a track: what it is, when, its fields, and the callback around it.

import { showDuration, showName } from '../toolkit/show.js';
import { timeText } from './detail.js';
import { element } from './dom.js';
import { selectCall, state } from './state.js';
import { tellItem, timeOfItem } from './track.js';

export function showItem(box) {
	const { item, model } = state, { track, i } = item, [start, end] = timeOfItem(item);
	const facts = i >= 0 ? track.facts?.(i) ?? [] : [], call = i >= 0 ? track.call(i) : null;
	const pairs = [['began', timeText(start)], end > start ? ['ended', timeText(end)] : null, end > start ? ['took', showDuration(end - start)] : null].filter(Boolean);
	box.replaceChildren(element('div', { class: 'head' }, element('h2', {}, track.title)),
		element('div', { class: 'title' }, element('span', { class: 'code' }, i >= 0 ? track.label(i) : track.title)),
		element('p', { class: 'quiet' }, tellItem(model, item, state.clock)),
		element('dl', { class: 'facts' }, ...[...pairs, ...facts].flatMap(([name, text]) => [element('dt', { title: showName(name) }, showName(name)), element('dd', { class: 'code', title: text }, text)])),
		...(call ? [element('p', { class: 'quiet' }, 'In ', element('button', { class: 'link code', onclick: () => selectCall(call.lane, call.row) }, model.label(call.lane, call.row).name), ` on ${model.laneName(call.lane)}`)] : []),
		element('p', { class: 'quiet small' }, track.plain));
}
