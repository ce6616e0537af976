// SPDX-License-Identifier: Apache-2.0
// The keys of the page of many recordings: one table, from which the help is made.

import { browse, browseChanged, chooseService, clearWindow, moveCursor, openChosen, switchBrowseClock, TABS, zoomToWindow } from './browse.js';
import { metricsOf } from './browse_map.js';
import { byId, element } from './dom.js';
import { guideButton, openGuide } from './guide.js';

function windowStepOf(names, now, by) {
	return names[(names.indexOf(now) + by + names.length) % names.length];
}

function changeService(by) {
	const names = browse.archive.services().map((service) => service.name);
	if (names.length) chooseService(windowStepOf(names, browse.service, by));
}

function changeMetric() {
	browse.metric = windowStepOf(metricsOf(browse.archive.place), browse.metric, 1);
	browseChanged();
}

function changeTab() {
	browse.tab = windowStepOf(Object.keys(TABS), browse.tab, 1);
	browseChanged();
}

const FAR = 1e6;
const BROWSE_KEYS = [
	{ keys: ['ArrowRight'], shown: '→', does: 'next cell', run: () => moveCursor(0, 1, false) },
	{ keys: ['ArrowLeft'], shown: '←', does: 'previous cell', run: () => moveCursor(0, -1, false) },
	{ keys: ['ArrowUp'], shown: '↑', does: 'recording above', run: () => moveCursor(-1, 0, false) },
	{ keys: ['ArrowDown'], shown: '↓', does: 'recording below', run: () => moveCursor(1, 0, false) },
	{ keys: ['Shift+ArrowRight'], shown: 'Shift →', does: 'choose a later cell too', run: () => moveCursor(0, 1, true) },
	{ keys: ['Shift+ArrowLeft'], shown: 'Shift ←', does: 'choose an earlier cell too', run: () => moveCursor(0, -1, true) },
	{ keys: ['Shift+ArrowUp'], shown: 'Shift ↑', does: 'choose the recording above too', run: () => moveCursor(-1, 0, true) },
	{ keys: ['Shift+ArrowDown'], shown: 'Shift ↓', does: 'choose the recording below too', run: () => moveCursor(1, 0, true) },
	{ keys: ['Home'], does: 'first cell', run: () => moveCursor(0, -FAR, false) },
	{ keys: ['End'], does: 'last cell', run: () => moveCursor(0, FAR, false) },
	{ keys: [' '], shown: 'Space', does: 'choose this cell', run: () => moveCursor(0, 0, true) },
	{ keys: ['Enter'], does: 'open what is chosen', run: openChosen },
	{ keys: ['n'], does: 'next service', run: () => changeService(1) },
	{ keys: ['p'], does: 'previous service', run: () => changeService(-1) },
	{ keys: ['m'], does: 'what a cell shows', run: changeMetric },
	{ keys: ['v'], does: 'segments, callbacks, flame graph, spans', run: changeTab },
	{ keys: ['z'], does: 'zoom into what is chosen', run: () => zoomToWindow(false) },
	{ keys: ['0'], does: 'all of the time', run: () => zoomToWindow(true) },
	{ keys: ['c'], does: 'clock: local, UTC', run: switchBrowseClock },
	{ keys: ['t'], does: 'light or dark', run: () => byId('theme').click() },
	{ keys: ['Escape'], shown: 'Esc', does: 'close help, choose nothing', run: clearWindow },
	{ keys: ['g'], does: 'guide: how to read a trace, by question', run: openGuide },
	{ keys: ['?'], does: 'these keys', run: () => byId('keys').showModal() },
];

/** The table of keys, once. */
export function fillBrowseHelp(dialog) {
	dialog.append(element('div', { class: 'head' }, element('h2', {}, 'Keys'), element('span', { class: 'space' }), guideButton(), element('button', { onclick: () => dialog.close() }, 'Close')),
		element('table', {}, element('tbody', {}, ...BROWSE_KEYS.map(({ keys, shown, does }) =>
			element('tr', {}, element('td', {}, element('kbd', {}, shown ?? keys[0])), element('td', {}, does))))),
		element('p', { class: 'quiet small' }, 'Mouse: drag over cells chooses a window, double click opens it.'));
}

/** Arrows belong to the map while it has the focus; the table and lists scroll by theirs. */
export function startBrowseKeys() {
	addEventListener('keydown', (event) => {
		const onControl = event.target.closest?.('button, a, input, summary'), onMap = event.target.closest?.('#map');
		// An open dialog has the keys to itself: the browser closes it with Escape.
		if (!browse.columns || event.altKey || event.metaKey || event.ctrlKey || document.querySelector('dialog[open]')) return;
		if (onControl && (event.key === 'Enter' || event.key === ' ')) return;
		const wide = event.key.length > 1, name = `${event.shiftKey && wide ? 'Shift+' : ''}${event.key}`;
		const entry = BROWSE_KEYS.find(({ keys }) => keys.includes(name));
		if (!entry || (/Arrow|Home|End|^ $/.test(event.key) && !onMap)) return;
		event.preventDefault();
		entry.run();
	});
}
