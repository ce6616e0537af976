// SPDX-License-Identifier: Apache-2.0
// The keys: one table, from which the help is made.

import { chainOn } from '../toolkit/chain.js';
import { byId, element } from './dom.js';
import { guideButton, openGuide } from './guide.js';
import { switchFollowing } from './live.js';
import { PANEL_KEYS, closePanel } from './panel.js';
import { openSave } from './save.js';
import { isPanelOpen } from './scope.js';
import { selectCall, selectFinding, selectFire, setView, state, update } from './state.js';
import { selectThing } from './thing.js';
import { framePickedItem, stepItem, stepTrack } from './timeline.js';

const MILLISECOND = 1e6;

function zoomBy(factor) {
	const [from, to] = state.view, at = state.pointer?.time ?? (state.selected ? state.selected.lane.polls.start[state.selected.row] + state.selected.lane.shift : (from + to) / 2);
	const centre = at >= from && at <= to ? at : (from + to) / 2;
	setView(centre - (centre - from) * factor, centre + (to - centre) * factor);
}

function panBy(share) {
	const [from, to] = state.view, by = (to - from) * share;
	setView(from + by, to + by);
}

/** The next call in a direction; without a selection the first one in view. */
function step(direction, least) {
	const { model } = state;
	if (stepItem(direction)) return;
	let { selected } = state;
	if (!selected) {
		const lane = model.lanes.find((l) => l.polls.n);
		if (!lane) return;
		const row = model.neighbour(lane, -1, 1, least);
		if (row >= 0) selectCall(lane, row);
		return;
	}
	const row = model.neighbour(selected.lane, selected.row, direction, least);
	if (row >= 0) selectCall(selected.lane, row);
}

/** The call of another lane that is nearest in time. */
function changeLane(direction) {
	const { model, selected } = state;
	if (stepTrack(direction, !selected || !model.lanes.some((lane) => lane.number > selected.lane.number && lane.polls.n))) return undefined;
	if (!selected) return step(1, 0);
	const time = selected.lane.polls.start[selected.row] + selected.lane.shift;
	for (let i = selected.lane.number + direction; i >= 0 && i < model.lanes.length; i += direction) {
		const { polls, shift } = model.lanes[i];
		if (!polls.n) continue;
		let low = 0, high = polls.n - 1;
		while (low < high) {
			const middle = low + high + 1 >> 1;
			if (polls.start[middle] + shift <= time) low = middle;
			else high = middle - 1;
		}
		return selectCall(model.lanes[i], low);
	}
	return undefined;
}

function frameSelection() {
	if (state.range) return setView(...state.range);
	if (state.selected) return selectCall(state.selected.lane, state.selected.row, true);
	framePickedItem();
	return undefined;
}

function followWake() {
	const wake = state.selected && state.model.wake(state.selected.lane, state.selected.row);
	if (wake?.waker) selectCall(wake.waker.lane, wake.waker.row);
}

function followOn() {
	if (!state.selected) return;
	const { trace, worker } = state.selected.lane, step = chainOn(trace, trace.workers.indexOf(worker), state.selected.row).find(({ call }) => call);
	const lane = step && state.model.lanes.find((l) => l.trace === trace && l.worker === trace.workers[step.call.worker]);
	if (lane) selectCall(lane, step.call.row);
}

function nextFinding(direction) {
	const n = state.model.findings.length;
	if (n) selectFinding(((state.finding < 0 && direction < 0 ? n : state.finding) + direction + n) % n);
}

function nextFire() {
	const n = state.model.fires.length;
	if (n) selectFire((state.fire + 1) % n);
}

function markRange() {
	const at = state.selected ? state.selected.lane.polls.start[state.selected.row] + state.selected.lane.shift : state.pointer?.time;
	if (at === undefined) return;
	if (state.rangeStart === null) update({ rangeStart: at });
	else update({ range: [Math.min(at, state.rangeStart), Math.max(at, state.rangeStart) + 1], rangeStart: null });
}

/** Close one thing, in a fixed order. */
function escape() {
	if (isPanelOpen(state)) closePanel();
	else if (state.rangeStart !== null) update({ rangeStart: null });
	else update({ selected: null, finding: -1, track: null });
}

const KEYS = [
	{ keys: ['n'], does: 'next finding', run: () => nextFinding(1) },
	{ keys: ['p'], does: 'previous finding', run: () => nextFinding(-1) },
	{ keys: ['N'], shown: 'Shift n', does: 'next trigger that fired', run: nextFire },
	{ keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'], shown: '1 … 9', does: 'finding of that number', run: (key) => selectFinding(Number(key) - 1) },
	{ keys: ['ArrowRight'], shown: '→', does: 'next callback, or item of the track', run: () => step(1, 0) },
	{ keys: ['ArrowLeft'], shown: '←', does: 'previous callback, or item of the track', run: () => step(-1, 0) },
	{ keys: ['Ctrl+ArrowRight'], shown: 'Ctrl →', does: 'next callback of 1 ms or more', run: () => step(1, MILLISECOND) },
	{ keys: ['Ctrl+ArrowLeft'], shown: 'Ctrl ←', does: 'previous callback of 1 ms or more', run: () => step(-1, MILLISECOND) },
	{ keys: ['ArrowUp'], shown: '↑', does: 'same time in the lane or track above', run: () => changeLane(-1) },
	{ keys: ['ArrowDown'], shown: '↓', does: 'same time in the lane or track below', run: () => changeLane(1) },
	{ keys: ['+', '='], shown: '+', does: 'zoom in', run: () => zoomBy(1 / 1.2) },
	{ keys: ['-'], does: 'zoom out', run: () => zoomBy(1.2) },
	{ keys: ['Shift+ArrowRight', 'd'], shown: 'Shift →', does: 'move the view right', run: () => panBy(0.2) },
	{ keys: ['Shift+ArrowLeft', 'a'], shown: 'Shift ←', does: 'move the view left', run: () => panBy(-0.2) },
	{ keys: ['PageDown'], does: 'one view further', run: () => panBy(1) },
	{ keys: ['PageUp'], does: 'one view back', run: () => panBy(-1) },
	{ keys: ['f', 'Enter'], does: 'frame the selection', run: frameSelection },
	{ keys: ['0', 'Home'], does: 'the whole trace', run: () => setView(state.model.first, state.model.last) },
	{ keys: ['w'], does: 'to the callback that woke it', run: followWake },
	{ keys: ['W'], shown: 'Shift w', does: 'to the first callback that it woke', run: followOn },
	{ keys: ['T'], shown: 'Shift t', does: 'the task of the callback', run: () => state.selected && selectThing('task', state.selected.lane.trace, state.selected.lane.polls.task[state.selected.row]) },
	{ keys: ['r'], does: 'one end of a range, then the other', run: markRange },
	{ keys: ['l'], does: 'live: follow what is written, or pause', run: switchFollowing },
	{ keys: ['z'], does: 'zoom into the range', run: () => state.range && setView(...state.range) },
	...PANEL_KEYS,
	{ keys: ['/', 'Ctrl+f'], does: 'search', run: () => byId('search').focus() },
	{ keys: ['v'], does: 'about this trace: can it be trusted', run: () => byId('about').click() },
	{ keys: ['s'], does: 'save the range, or what is in view', run: openSave },
	{ keys: ['c'], does: 'clock: since the start, local, UTC', run: () => byId('clock').click() },
	{ keys: ['t'], does: 'light or dark', run: () => byId('theme').click() },
	{ keys: ['Escape'], shown: 'Esc', does: 'close help, range, selection', run: escape },
	{ keys: ['g'], does: 'guide: how to read a trace, by question', run: openGuide },
	{ keys: ['?'], does: 'these keys', run: () => byId('keys').showModal() },
];

/** The table of keys, once. */
export function fillHelp(dialog) {
	dialog.append(element('div', { class: 'head' }, element('h2', {}, 'Keys'), element('span', { class: 'space' }), guideButton(), element('button', { onclick: () => dialog.close() }, 'Close')),
		element('table', {}, element('tbody', {}, ...KEYS.map(({ keys, shown, does }) =>
			element('tr', {}, element('td', {}, element('kbd', {}, shown ?? keys[0])), element('td', {}, does))))),
		element('p', { class: 'quiet small' }, 'Mouse: wheel with Ctrl zooms, drag moves, Shift and drag selects a range, double click frames a callback. Fingers: one moves, two zoom, one in the ruler selects a range.'),
		element('p', { class: 'quiet small' }, 'Flame graph: arrows move between frames, Enter zooms in, Backspace out, Home to the whole. Call tree: right and left open and close, * opens all below, Space shows the frame in the flame graph. Tables: arrows move, Enter goes to the row.'));
}

/** Keys that are typed into something are its own; letters with Ctrl, Alt or Meta are the browser's. */
export function startKeys() {
	addEventListener('keydown', (event) => {
		const typed = event.target.closest?.('input, textarea, select'), onControl = event.target.closest?.('button, summary, a');
		// An open dialog has the keys to itself: the browser closes it with Escape.
		if (!state.model || typed || event.altKey || event.metaKey || document.querySelector('dialog[open]')) return;
		if (onControl && (event.key === 'Enter' || event.key === ' ')) return;
		const wide = event.key.length > 1;
		const name = `${event.ctrlKey ? 'Ctrl+' : ''}${event.shiftKey && wide ? 'Shift+' : ''}${event.key}`;
		const entry = KEYS.find(({ keys }) => keys.includes(name));
		if (!entry) return;
		event.preventDefault();
		entry.run(event.key);
	});
}
