// SPDX-License-Identifier: Apache-2.0
// The rows of the timeline from top to bottom, and the column of names beside them.

import { showName, showShare } from '../toolkit/show.js';
import { element } from './dom.js';
import { STRIP_HEIGHT, trackLabels } from './track.js';
import { SPAN_FLOORS, arrangeTracks } from './tracks.js';
import { fieldsToChart } from './track_charts.js';

const QUEUE_HEIGHT = 44, QUEUE_LEAST = 4, GROUP_HEIGHT = 24, CHOOSER_HEIGHT = 32;
const GROUP_LEAST = 4; // loops of one name before they can be folded
const DRAG_SLOP = 4;

/** Lanes in groups: [{key, title, note, lanes}]; without title where there is nothing to tell apart. */
function groupsOf(model) {
	const groups = [], several = model.traces.length > 1;
	for (const trace of model.traces) {
		const lanes = model.lanes.filter((lane) => lane.trace === trace), names = new Map();
		for (const lane of lanes) names.set(lane.worker.group ?? '', [...(names.get(lane.worker.group ?? '') ?? []), lane]);
		const large = [...names].filter(([, members]) => members.length >= GROUP_LEAST);
		if (several) groups.push({ key: `p${trace.number}`, title: showName(trace.metadata.get('service') || trace.folder || `process ${trace.number + 1}`), note: model.clockNote(trace), lanes: large.length ? [] : lanes });
		if (!large.length && several) continue;
		for (const [name, members] of names) {
			const heading = members.length >= GROUP_LEAST;
			groups.push({ key: `g${trace.number}.${name}`, title: heading ? showName(name || 'loops') : null, note: heading ? `${members.length} loops` : '', lanes: members, inside: several ? `p${trace.number}` : null });
		}
	}
	return groups;
}

/** Rows: {kind, top, height, ...}, of kind group, lane, queue, track or chooser. */
export function layoutRows(model, choices) {
	const groups = groupsOf(model).filter((group) => !choices.folded.includes(group.inside)), rows = [];
	const folded = (group) => choices.folded.includes(group.key);
	const n = groups.reduce((sum, group) => sum + (folded(group) ? 0 : group.lanes.length), 0);
	const height = n > 30 ? 16 : n > 12 ? 32 : 64;
	let top = 0;
	const add = (row) => {
		rows.push({ ...row, top });
		top += row.height;
	};
	for (const group of groups) {
		if (group.title !== null) add({ kind: 'group', group, folded: folded(group), height: GROUP_HEIGHT });
		if (folded(group)) continue;
		for (const lane of group.lanes) {
			add({ kind: 'lane', lane, height });
			if (height === 64 && lane.peak >= QUEUE_LEAST) add({ kind: 'queue', lane, height: QUEUE_HEIGHT });
		}
	}
	for (const { track, open } of arrangeTracks(model, choices)) add({ kind: 'track', track, open, height: open ? track.height : STRIP_HEIGHT });
	if (fieldsToChart(model).length) add({ kind: 'chooser', height: CHOOSER_HEIGHT });
	return rows;
}

/** A press shows what filled this loop alone; keys choose it in the panel, so that lanes are no stops on the way of Tab. */
function laneLabel(model, row, actions) {
	const { lane } = row, whole = lane.trace.end - lane.trace.start, title = `Only this loop: its callbacks, and who wakes it${lane.worker.tid ? ` (thread ${lane.worker.tid})` : ''}`;
	const box = element('button', { class: `lane${row.height < 64 ? ' tight' : ''}`, 'data-lane': `${lane.trace.number}.${lane.worker.id}`, tabindex: '-1', title, onclick: () => actions.lane(lane) });
	box.append(element('span', { class: 'name' }, showName(lane.worker.name)));
	if (row.height === 64) box.append(element('span', { class: 'share' }, `${showShare(lane.busy, whole)} busy`));
	return box;
}

function groupLabel(row, actions) {
	const { group, folded } = row;
	return element('div', { class: 'lane group' }, element('button', { class: 'caret', 'aria-expanded': String(!folded), 'data-group': group.key, title: [group.title, group.note].filter(Boolean).join(', '), onclick: () => actions.fold(group.key) },
		element('i', { class: 'arrow', 'aria-hidden': 'true' }), element('b', {}, group.title), group.note ? element('span', { class: 'note' }, group.note) : null));
}

function trackLabel(row, choices, actions) {
	const { track, open } = row, box = element('div', { class: `lane track${open ? ' open' : ''}` });
	const caret = element('button', { class: 'caret', 'aria-expanded': String(open), 'aria-describedby': 'track-keys', 'data-track': track.id, title: track.plain, onclick: () => actions.toggle(track.id, !open) },
		element('i', { class: 'arrow', 'aria-hidden': 'true' }), element('span', { class: 'name' }, track.title));
	box.append(caret);
	caret.addEventListener('focus', () => actions.focus(track.id));
	caret.addEventListener('keydown', (event) => {
		const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
		if (!by || !event.shiftKey) return;
		event.preventDefault();
		event.stopPropagation();
		actions.move(track.id, by);
	});
	box.append(grip(box, row, actions));
	if (!open) return box;
	if (!track.headed) box.append(element('span', { class: `share${track.loud ? ' alarm' : ''}` }, track.figure));
	if (track.id === 'spans') {
		const select = element('select', { 'aria-label': 'Show only the slow spans of each name' }, ...SPAN_FLOORS.map((floor) =>
			element('option', { value: String(floor), selected: floor === choices.floor }, floor ? `slowest ${100 - floor}\u2009%` : 'all spans')));
		select.addEventListener('change', () => actions.floor(Number(select.value)));
		box.append(select);
	}
	if (track.id.startsWith('field:')) box.append(element('button', { class: 'remove', 'aria-label': `Remove the chart of ${track.title}`, title: 'Remove this chart', onclick: () => actions.remove(track.id) }, '×'));
	for (const label of trackLabels(track)) {
		const line = element('span', { class: 'row-name', title: label.text }, label.text);
		line.style.top = `${label.top}px`;
		box.append(line);
	}
	return box;
}

/** What a mouse takes hold of to move a track; keys do it on the caret. */
function grip(box, row, actions) {
	const handle = element('i', { class: 'grip', 'aria-hidden': 'true', title: 'Drag to move' });
	handle.addEventListener('pointerdown', (event) => {
		if (event.button !== 0) return;
		event.preventDefault();
		handle.setPointerCapture(event.pointerId);
		const first = event.clientY;
		box.classList.add('held');
		const move = (next) => {
			box.style.translate = `0 ${next.clientY - first}px`;
		};
		const end = (next) => {
			handle.removeEventListener('pointermove', move);
			handle.removeEventListener('pointerup', end);
			handle.removeEventListener('pointercancel', end);
			box.classList.remove('held');
			box.style.translate = '';
			if (next.type === 'pointerup' && Math.abs(next.clientY - first) > DRAG_SLOP) actions.drop(row.track.id, row.top + next.clientY - first);
		};
		handle.addEventListener('pointermove', move);
		handle.addEventListener('pointerup', end);
		handle.addEventListener('pointercancel', end);
	});
	return handle;
}

function chooser(model, actions) {
	const select = element('select', { 'aria-label': 'Chart a field of an event' }, element('option', { value: '' }, 'chart a field …')), groups = new Map();
	const fields = fieldsToChart(model).flatMap((field) => ['gauge', 'counter'].map((kind) => ({ ...field, kind })));
	fields.forEach(({ event, field, kind, unit }, i) => {
		if (!groups.has(event)) groups.set(event, element('optgroup', { label: showName(event) }));
		groups.get(event).append(element('option', { value: String(i) }, `${showName(field)}${unit ? `, ${showName(unit, 16)}` : ''}${kind === 'counter' ? ', growth' : ''}`));
	});
	select.append(...groups.values());
	select.addEventListener('change', () => {
		if (select.value !== '') actions.chart(fields[Number(select.value)]);
	});
	return element('div', { class: 'lane chooser' }, select);
}

/** Fill |gutter| anew; what had the focus keeps it. */
export function fillGutter(gutter, model, rows, choices, actions) {
	const { track, group } = document.activeElement?.dataset ?? {};
	gutter.replaceChildren(...rows.map((row) => {
		let box;
		if (row.kind === 'lane') box = laneLabel(model, row, actions);
		else if (row.kind === 'queue') box = element('div', { class: 'lane queue' }, element('span', { class: 'name' }, 'queue'), element('span', { class: 'share' }, `peak ${row.lane.peak}`));
		else if (row.kind === 'group') box = groupLabel(row, actions);
		else if (row.kind === 'track') box = trackLabel(row, choices, actions);
		else box = chooser(model, actions);
		box.style.height = `${row.height}px`;
		return box;
	}));
	const kept = [...gutter.querySelectorAll('[data-track], [data-group]')].find(({ dataset }) => (track && dataset.track === track) || (group && dataset.group === group));
	kept?.focus({ preventScroll: true });
}
