// SPDX-License-Identifier: Apache-2.0
// The detail of a task, with its life, waits and wakes, and of a span, with its fields, time and calls.

import { chainBack, chainOn, lifeOf } from '../toolkit/chain.js';
import { placeOfField } from '../toolkit/known.js';
import { NS_OF_UNIT, durationClass, showCount, showDuration, showName, showShare } from '../toolkit/show.js';
import { nameOfSpan, spanOf } from '../toolkit/spans.js';
import { framesOfAddress } from '../toolkit/stacks.js';
import { partsOfSpan } from '../toolkit/time.js';
import { fieldReader, knownReader, pollAt } from '../toolkit/trace.js';
import { callLink, detailSection, factList, frameRow, partsSection, timeText, wakeReason } from './detail.js';
import { copyButton, element, firstOf, prepareCanvas } from './dom.js';
import { setView, state, update } from './state.js';
import { colours } from './theme.js';
import { selectThing, taskTitle, timeOfThing } from './thing.js';

const STAYS_SHOWN = 24, GAPS_SHOWN = 5, CALLS_SHOWN = 8, GAP_FRAMES = 8;
const SPAN_OWN = /^(worker_id|span_id|span_name|span_instance_id|parent_span_instance_id|tid|start_timestamp_ns|first_enter_timestamp_ns|active_ns|unbalanced_enters|attributes)$/;

function laneOf(trace, worker) {
	return state.model.lanes.find((lane) => lane.trace === trace && lane.worker === trace.workers[worker]) ?? null;
}

function linkOf(trace, call, text) {
	const lane = call && laneOf(trace, call.worker ?? call[0]);
	return lane ? callLink(lane, call.row ?? call[1], text) : text ?? '';
}

export function taskLink(trace, id, text = `task ${id}`) {
	return element('button', { class: 'link', onclick: () => selectThing('task', trace, id) }, text);
}

function copyNamed(text) {
	return copyButton(text, { 'aria-label': `Copy ${showName(text)}` });
}

/** A line from birth to death with a bar for each call. */
function lifeStrip(trace, thing, calls) {
	const canvas = element('canvas', { role: 'img', 'aria-label': `${showCount(calls.length)} calls of this task` }), [from, to] = timeOfThing(thing);
	const box = element('div', { class: 'chart' }, canvas, element('div', { class: 'ends' }, element('span', {}, timeText(from)), element('span', {}, timeText(to))));
	return { box, draw() {
		const width = Math.max(120, box.clientWidth - 32), context = prepareCanvas(canvas, width, 24), whole = Math.max(1, to - from);
		context.fillStyle = colours()['line-2'];
		context.fillRect(0, 12, width, 1);
		for (const [worker, row] of calls) {
			const { polls } = trace.workers[worker];
			context.fillStyle = colours().classes[durationClass(polls.dur[row])];
			context.fillRect((polls.start[row] + trace.shift - from) / whole * (width - 2), 5, Math.max(1.5, polls.dur[row] / whole * width), 14);
		}
	} };
}

function gapRows(trace, { from, to, stack }) {
	const frames = (stack ?? []).flatMap((address) => framesOfAddress(trace, address));
	const show = element('button', { class: 'link', onclick: () => {
		setView(from + trace.shift - (to - from) * 0.1, to + trace.shift + (to - from) * 0.1);
	} }, timeText(from + trace.shift));
	return [element('div', { class: 'gap' }, show, element('span', {}, showDuration(to - from))),
		...firstOf(frames, GAP_FRAMES, (frame, i) => frameRow(frame, i === 0), 'frames')];
}

function waitSection(trace, gaps) {
	if (!gaps.length) return null;
	const total = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0), asked = /^on/.test(trace.metadata.get('source.task_dumps') ?? '');
	return detailSection('Idle between calls', `${showDuration(total)} in ${showCount(gaps.length)}`, ...firstOf(gaps, GAPS_SHOWN, (gap) => gapRows(trace, gap), 'waits'),
		asked || gaps.some((gap) => gap.stack) ? null : element('p', { class: 'small' }, 'What armed it is recorded by `dial9 record --task-dumps`.'));
}

/** What led to a call and what it led to. */
export function chainSection(trace, worker, row) {
	const back = chainBack(trace, worker, row), on = chainOn(trace, worker, row);
	if (!back.length && !on.length) return null;
	const nameOf = (call) => {
		const lane = laneOf(trace, call.worker);
		return lane ? state.model.label(lane, call.row).name : '';
	};
	return detailSection('Wake chain', `${back.length} back, ${on.length} on`, element('ol', { class: 'chain' },
		...back.toReversed().map((step) => element('li', {}, step.waker ? linkOf(trace, step.waker, nameOf(step.waker)) : wakeReason(step.reason) || 'not recorded', element('span', {}, `${showDuration(step.delay)} before`))),
		element('li', { class: 'here' }, 'this call'),
		...on.map((step) => element('li', {}, step.call ? linkOf(trace, step.call, nameOf(step.call)) : taskLink(trace, step.task), element('span', {}, step.call ? `ran ${showDuration(step.delay)} later` : 'never ran')))));
}

function callsSection(trace, calls) {
	const longest = [...calls].sort((a, b) => trace.workers[b[0]].polls.dur[b[1]] - trace.workers[a[0]].polls.dur[a[1]]);
	return detailSection('Longest calls', `of ${showCount(calls.length)}`, element('table', {}, element('tbody', {}, ...firstOf(longest, CALLS_SHOWN, (call) => {
		const { polls } = trace.workers[call[0]];
		return element('tr', {}, element('td', {}, linkOf(trace, call, timeText(polls.start[call[1]] + trace.shift))), element('td', { class: 'number' }, showDuration(polls.dur[call[1]])));
	}, 'calls', true))));
}

function showTask(panel, thing) {
	const { trace, id } = thing, { model } = state, task = trace.tasks.get(id), life = lifeOf(trace, id), place = task?.location ? model.callbackAt(trace, task.location) : null;
	const strip = life.calls.length ? lifeStrip(trace, thing, life.calls) : null, hex = `0x${BigInt(id).toString(16)}`, [from, to] = timeOfThing(thing);
	panel.replaceChildren(...[element('div', { class: 'head small' }, element('h2', { class: 'small' }, 'Task'), copyNamed(String(id))),
		element('div', { class: 'title' }, element('span', { class: 'code' }, taskTitle(model, trace, id)), element('span', { class: 'figure' }, showDuration(to - from))),
		factList([['id', `${id}, ${hex}`], ['kind', task?.kind && showName(task.kind)], ['descriptor', task?.fd !== undefined && String(task.fd)],
			['callback', place && (place.source || place.name)], ['made at', place?.site], ['born', task && !Number.isNaN(task.born) ? timeText(task.born + trace.shift) : 'before the trace'],
			['died', task && !Number.isNaN(task.died) ? timeText(task.died + trace.shift) : 'lives at the end'],
			['ran', life.calls.length ? `${showCount(life.calls.length)} calls, ${showDuration(life.total)}, ${showShare(life.total, to - from)} of its life` : 'never'],
			['seen', task?.uninstrumented && 'its calls are not all recorded']]),
		strip?.box, life.longest && chainSection(trace, ...life.longest), waitSection(trace, life.gaps), life.calls.length ? callsSection(trace, life.calls) : null].filter(Boolean));
	strip?.draw();
}

/** Fields of the events of a span, the newest value of each, with the unit that its schema tells. */
function fieldsOfSpan(trace, life) {
	const fields = new Map(), id = trace.lives.ids[life], from = trace.lives.start[life], to = trace.lives.end[life];
	for (const table of trace.tables) {
		if (!/^Span(Enter|Exit|Close)/.test(table.name) || !table.rows.n || !table.fields.some((field) => field.name === 'span_id')) continue;
		const read = knownReader(trace, table, 'span_id');
		for (let row = 0; row < table.rows.n; row++) {
			if (read(row) !== id || table.rows.time[row] < from || table.rows.time[row] > to) continue;
			table.fields.forEach((field, i) => {
				const value = fieldReader(trace, table, field.name)(row), unit = table.annotations.find(([number, key]) => number === i && key === 'unit')?.[2];
				if (field.name === 'attributes' && placeOfField(table.name, table.fields, 'attributes') === i) for (const [key, text] of value ?? []) fields.set(key, { name: key, text: String(text), unit: fields.get(key)?.unit });
				else if (value !== undefined && !SPAN_OWN.test(field.name)) fields.set(field.name, { name: field.name, text: String(value), unit: unit ?? fields.get(field.name)?.unit });
			});
		}
	}
	return [...fields.values()];
}

function spanValueText({ text, unit }) {
	if (NS_OF_UNIT.has(unit) && Number.isFinite(Number(text))) return showDuration(Number(text) * NS_OF_UNIT.get(unit));
	return unit ? `${showName(text, 300)} ${showName(unit, 20)}` : showName(text, 300);
}

function fieldSection(trace, id) {
	const fields = fieldsOfSpan(trace, id);
	if (!fields.length) return null;
	return detailSection('Fields', showCount(fields.length), element('table', { class: 'wrap' }, element('tbody', {}, ...fields.map((field) =>
		element('tr', {}, element('td', { class: 'code' }, showName(field.name)), element('td', { class: 'code', title: showName(field.text, 2000) }, spanValueText(field)), element('td', { class: 'number' }, copyNamed(field.text)))))));
}

/** Where threads were inside of it, and whose calls these were. */
function staySection(trace, span) {
	const rows = firstOf(span.stays, STAYS_SHOWN, (stay) => {
		const worker = trace.workers.findIndex((w) => w.id === stay.worker), row = worker < 0 ? -1 : pollAt(trace.workers[worker].polls, stay.start);
		const lane = row < 0 ? null : laneOf(trace, worker);
		return element('tr', {}, element('td', {}, lane ? callLink(lane, row) : `worker ${stay.worker}`), element('td', {}, lane ? taskLink(trace, lane.polls.task[row]) : ''),
			element('td', { class: 'number' }, showDuration(stay.end - stay.start)));
	}, 'times', true);
	return rows.length ? detailSection('Inside of it', `${showCount(span.stays.length)} time${span.stays.length === 1 ? '' : 's'}`, element('table', {}, element('tbody', {}, ...rows))) : null;
}

function showSpan(panel, { trace, id }) {
	const span = spanOf(trace, id), length = span.end - span.start, own = BigInt(trace.lives.ids[id]).toString(16);
	panel.replaceChildren(...[element('div', { class: 'head small' }, element('h2', { class: 'small' }, 'Span'), copyNamed(own)),
		element('div', { class: 'title' }, element('span', { class: 'code' }, showName(nameOfSpan(trace, id))), element('span', { class: 'figure' }, showDuration(length))),
		factList([['id', own], ['began', timeText(span.start + trace.shift)], ['ended', timeText(span.end + trace.shift)],
			['inside', `${showDuration(span.stays.reduce((sum, stay) => sum + stay.end - stay.start, 0))}, ${showShare(span.stays.reduce((sum, stay) => sum + stay.end - stay.start, 0), length)}`]]),
		element('p', { class: 'quiet' }, element('button', { class: 'boxed', onclick: () => update({ range: [span.start + trace.shift, span.end + trace.shift] }) }, 'What ran meanwhile')),
		partsSection(partsOfSpan(trace, span), length), fieldSection(trace, id), staySection(trace, span)].filter(Boolean));
}

export function showThing(panel, thing) {
	if (thing.kind === 'task') showTask(panel, thing);
	else showSpan(panel, thing);
}
