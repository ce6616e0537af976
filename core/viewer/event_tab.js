// SPDX-License-Identifier: Apache-2.0
// All events of the range, one by one, with their fields; names can be hidden, and each says how many there are.

import { EventList, LISTED, eventSources, eventFields, isTimeless } from '../toolkit/event_list.js';
import { NS_OF_UNIT, showCount, showDuration, showName, showSize } from '../toolkit/show.js';
import { framesOfAddress } from '../toolkit/stacks.js';
import { callName, clockText, threadName } from './call_lists.js';
import { element } from './dom.js';
import { rangeOf, scopeOf } from './scope.js';
import { SortableTable } from './sortable.js';
import { selectCall, state } from './state.js';

const VALUES_SHOWN = 400;

/** A value of a field, as text. */
function valueText(value, unit, max = 80) {
	if (value === undefined || value === null) return '–';
	if (typeof value === 'number' && NS_OF_UNIT.has(unit)) return showDuration(value * NS_OF_UNIT.get(unit));
	if (typeof value === 'number' && unit === 'bytes') return showSize(value);
	if (value instanceof Map) return showName([...value].map(([key, v]) => `${key} ${v}`).join(', '), max);
	if (ArrayBuffer.isView(value)) return `${value.length} bytes`;
	if (Array.isArray(value)) return showName(value.map((part) => (Array.isArray(part) ? part.join(' ') : String(part))).join(', '), max);
	return showName(String(value), max);
}

function isStack(name, value) {
	return Array.isArray(value) && /callchain|stack/.test(name);
}

function workerOf({ source, row }, fields) {
	if (source.worker) return source.worker.id;
	if (source.kind === 'wake') return source.trace.wakes.by[row];
	return Number(fields.find(([name]) => name === 'worker_id')?.[1] ?? -1);
}

function threadOf(event) {
	const fields = eventFields(event), tid = Number(fields.find(([name]) => name === 'tid')?.[1] ?? -1);
	return threadName(event.source.trace, workerOf(event, fields), tid);
}

function taskName(trace, id) {
	const location = trace.tasks.get(id)?.location;
	return location ? state.model.callbackAt(trace, location).name : `task ${id}`;
}

/** What an event says, in one line. */
function lineOf(event) {
	const { source: { trace, kind, worker }, row } = event;
	if (kind === 'poll') return `${callName({ lane: state.model.lanes.find((l) => l.worker === worker), row })} for ${showDuration(worker.polls.dur[row])}`;
	if (kind === 'park') return `nothing to do for ${showDuration(worker.parks.end[row] - worker.parks.start[row])}`;
	if (kind === 'wake') return `${trace.wakes.waker[row] ? `${taskName(trace, trace.wakes.waker[row])} woke ` : ''}${taskName(trace, trace.wakes.woken[row])}${trace.wakes.waker[row] ? '' : ' is ready'}`;
	return eventFields(event).filter(([name, value]) => !isStack(name, value) && value !== undefined).map(([name, value, unit]) => `${showName(name, 60)} ${valueText(value, unit, 60)}`).join(', ');
}

export class EventTab {
	constructor(patchPanel) {
		this.patchPanel = patchPanel;
		this.names = element('div', { class: 'names', role: 'group', 'aria-label': 'Names of events' });
		this.filter = element('input', { type: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter names of events', autocomplete: 'off', spellcheck: 'false' });
		this.filter.addEventListener('input', () => this.patchPanel({ hidden: this.filter.value.trim() ? `?${this.filter.value.trim()}` : '' }));
		this.filter.addEventListener('keydown', (event) => {
			if (event.key !== 'Escape') return;
			event.stopPropagation();
			this.patchPanel({ hidden: '' });
			this.filter.value = '';
		});
		this.share = element('span', { class: 'small', role: 'status' });
		this.pane = element('section', { class: 'stack-pane', 'aria-label': 'Fields', tabindex: '0' });
		this.table = new SortableTable({ label: 'Events', onFocus: (event) => this.pane.replaceChildren(...this.beside(event)), onEnter: (event) => this.go(event),
			empty: 'No event of these names is in this range, thread and callback.',
			columns: [
				{ key: 'time', title: 'at', class: 'faint', cell: (event) => this.timeText(event) },
				{ key: 'name', title: 'event', class: 'code', cell: (event) => showName(event.source.name, 60) },
				{ key: 'thread', title: 'on', class: 'faint', cell: (event) => threadOf(event) || '–' },
				{ key: 'line', title: 'what it says', class: 'wide', cell: lineOf },
			] });
		this.box = element('div', { class: 'event-tab' }, element('div', { class: 'tools' }, this.names, element('span', { class: 'space' }), this.share, this.filter),
			element('div', { class: 'list-tab' }, this.table.box, this.pane));
	}

	timeText(event) {
		const { source: { trace }, time } = event;
		return isTimeless(event) ? '–' : clockText(trace, time - trace.shift);
	}

	/** A call is gone to; of anything else, the call it came in. */
	go(event) {
		const { source: { trace, kind, worker }, row } = event;
		const call = kind === 'poll' ? { lane: state.model.lanes.find((l) => l.worker === worker), row } : state.model.callOfWorker(trace, workerOf(event, eventFields(event)), event.time - trace.shift);
		if (call) selectCall(call.lane, call.row, true);
	}

	beside(event) {
		const { trace } = event.source, fields = eventFields(event), rows = [];
		for (const [name, value, unit] of fields) {
			if (isStack(name, value)) rows.push(element('tr', {}, element('td', { class: 'faint' }, showName(name)), element('td', {}, ...value.slice(0, VALUES_SHOWN).flatMap((address) => framesOfAddress(trace, address))
				.map((frame) => element('div', { class: 'code', title: showName(frame.name, 2000) }, showName(frame.name))))));
			else rows.push(element('tr', {}, element('td', { class: 'faint' }, showName(name)), element('td', { class: 'value' }, valueText(value, unit, VALUES_SHOWN))));
		}
		return [element('h2', {}, showName(event.source.name), element('span', {}, this.timeText(event))), element('table', { class: 'fields' }, element('tbody', {}, ...rows))];
	}

	/** Names that are not shown: those of a list, or all that a text is not in. */
	isHidden(name) {
		const { hidden } = state.panel;
		if (hidden.startsWith('?')) return !name.toLowerCase().includes(hidden.slice(1).toLowerCase());
		return hidden.split(',').includes(name);
	}

	toggleName(name, all) {
		const hidden = all.filter((other) => (other === name ? !this.isHidden(name) : this.isHidden(other)));
		this.patchPanel({ hidden: hidden.join(',') });
	}

	show() {
		const sources = state.model.traces.flatMap((trace) => {
			const scope = scopeOf(state, trace, rangeOf(state));
			return scope ? eventSources(trace, scope, !state.range) : [];
		});
		const counts = new Map();
		for (const { name, from, to } of sources) counts.set(name, (counts.get(name) ?? 0) + to - from);
		const all = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)), focused = this.names.contains(document.activeElement) ? document.activeElement.dataset.name : null;
		this.names.replaceChildren(...all.map((name) => element('button', { class: 'small', 'data-name': name, 'aria-pressed': String(!this.isHidden(name)), title: Object.values(LISTED).includes(name) ? false : showName(name),
			onclick: () => this.toggleName(name, all) }, showName(name, 40), element('span', {}, showCount(counts.get(name))))));
		if (focused) [...this.names.children].find((button) => button.dataset.name === focused)?.focus();
		if (document.activeElement !== this.filter) this.filter.value = state.panel.hidden.startsWith('?') ? state.panel.hidden.slice(1) : '';
		const shown = sources.filter(({ name }) => !this.isHidden(name)), total = sources.reduce((sum, { from, to }) => sum + to - from, 0);
		const list = new EventList(shown);
		this.share.textContent = `${showCount(list.length)} of ${showCount(total)} events`;
		this.table.setRows(list);
		this.pane.hidden = !list.length;
		this.pane.replaceChildren(...(list.length ? this.beside(list.at(this.table.focused)) : []));
	}
}
