// SPDX-License-Identifier: Apache-2.0
// Can this trace be trusted: what was lost and what that does to the figures, what was recorded and how to
// record the rest, clocks, segments, and all that the trace says of itself.

import { showCount, showDuration, showName, showSize, showTime } from '../toolkit/show.js';
import { capabilitiesOf, clockOf, lossesOf, namesOf } from '../toolkit/trust.js';
import { detailSection } from './detail.js';
import { copyButton, element, firstOf } from './dom.js';
import { setView, state, update } from './state.js';

const PROCESSES_SHOWN = 8;
const CAPABILITY_WORDS = { on: 'on', partly: 'in part', off: 'off', '': 'not told' };

function aboutRow(name, ...values) {
	return element('tr', {}, element('td', { title: name }, name), ...values.map((value) => element('td', { class: 'number' }, value)));
}

/** A command to type, with a button that copies it. */
export function commandLine(text) {
	const shown = element('span', { class: 'code' }, text);
	return element('div', { class: 'command' }, shown, copyButton(text, {}, () => getSelection().selectAllChildren(shown)));
}

/** Whether the figures hold, worst first: [{text, effect, show}]. */
export function doubtsOf(model) {
	const doubts = [];
	for (const trace of model.traces) {
		for (const { cause, events, from, to } of lossesOf(trace))
			doubts.push({ kind: 'lost', n: events, text: `${showCount(events)} events were lost: ${showName(cause)}`, effect: 'Counts and sums are lower bounds, and a callback may stand as shorter or longer than it was.',
				show: from <= to ? [from + trace.shift, to + trace.shift] : null });
		for (const segment of trace.segments) {
			if (segment.full) doubts.push({ kind: 'memory', text: `${showName(segment.name)} is shown up to byte ${segment.offset} only: ${showName(segment.error)}`, effect: 'What comes later is not on the page. `dial9 report` reads all of it; give the page fewer segments, or a saved range.' });
			else if (segment.error) doubts.push({ kind: 'damaged', text: `${showName(segment.name)} is damaged at byte ${segment.offset}: ${showName(segment.error)}`, effect: 'Everything before it is shown; what follows in that segment is not.' });
			else if (segment.unread) doubts.push({ kind: 'unread', text: `${showName(segment.name)} was ${segment.unread}`, effect: 'Nothing in it can be read, and no figure has any of it.' });
			else if (segment.cut) doubts.push({ kind: 'cut', mild: true, text: `${showName(segment.name)} ends in the middle of a frame, at byte ${segment.offset}`, effect: 'Everything before it is shown. That is as it should be of a program that still runs or was killed.' });
		}
	}
	if (model.source.shown < model.source.segments)
		doubts.push({ kind: 'memory', mild: true, text: `The newest ${model.source.shown} of ${model.source.segments} segments are shown`, effect: 'A page holds 256 MiB of segments. `dial9 report` reads all of them.' });
	return doubts;
}

function trustSection(model) {
	const doubts = doubtsOf(model), cut = model.main.metadata.has('cut.from_ns');
	if (cut) doubts.push({ mild: true, text: 'This is a range that was cut out of a longer trace', effect: 'What led to it and what followed is not here.' });
	if (!doubts.length) return detailSection('Can it be trusted', '', element('p', {}, 'Nothing was lost, and no segment is damaged.'));
	return detailSection('Can it be trusted', '', ...doubts.flatMap(({ text, effect, mild, show }) => [
		element('p', { class: mild ? '' : 'alarm' }, mild ? null : element('i', { class: 'triangle', 'aria-hidden': 'true' }), mild ? '' : ' ', `${text}.`),
		element('p', { class: 'small' }, effect, show ? ' ' : null, show ? element('button', { class: 'link', onclick: () => {
			setView(...show);
			update({ range: show, selected: null });
		} }, 'Show when') : null)]));
}

function recordedSection(trace) {
	const rows = capabilitiesOf(trace);
	if (rows.every((row) => row.state === '')) return detailSection('What was recorded', '', element('p', { class: 'small' }, 'The trace does not say what its recorder could see.'));
	return detailSection('What was recorded', '', element('table', { class: 'wrap' }, element('tbody', {}, ...rows.flatMap(({ name, state: how, why, option }) => [
		element('tr', { class: how === 'on' ? '' : 'none' }, element('td', {}, name), element('td', { class: 'number whole' }, CAPABILITY_WORDS[how])),
		why || (option && how !== 'on') ? element('tr', { class: 'none' }, element('td', { colspan: '2', class: 'note' }, why ? `${showName(why, 300)}${option ? ': ' : ''}` : '', option ? element('span', { class: 'code' }, `dial9 record ${option}`) : '')) : null]).filter(Boolean))));
}

function namesSection(trace) {
	const { all, unnamed } = namesOf(trace), [segment] = trace.segments;
	if (!all) return detailSection('Stacks', '', element('p', { class: 'small' }, 'There are no stacks in it: nothing says which function took the time.'), commandLine('dial9 record --cpu 99 -- PROGRAM'));
	if (!unnamed) return null;
	return detailSection('Names of functions', '', element('p', { class: 'small' }, `${showCount(unnamed)} of ${showCount(all)} addresses in stacks have no name. On the machine where it was recorded this finds them:`),
		commandLine(`dial9 symbolize ${quoteForShell(segment?.name ?? 'TRACE')}`));
}

/** As a shell takes it; names that a terminal should not get stay out. */
function quoteForShell(name) {
	return /^[\w./@%+=:,-]+$/.test(name) ? name : `'${showName(name).replaceAll("'", "'\\''")}'`;
}

function clockSection(model) {
	const rows = model.traces.map((trace) => {
		const { anchors, drift } = clockOf(trace);
		const apart = trace === model.main || trace.wallOffset === null || model.main.wallOffset === null ? '' : `, ${showDuration(Math.abs(Number(trace.wallOffset - model.main.wallOffset)))} apart from the first`;
		return aboutRow(model.traces.length > 1 ? showName(trace.metadata.get('service') || trace.folder || `process ${trace.number + 1}`) : 'wall clock',
			anchors ? `${anchors} reading${anchors === 1 ? '' : 's'}, astray by ${showDuration(drift)}${apart}` : 'none: times are since the start');
	});
	return detailSection('Clocks', '', element('table', { class: 'wrap' }, element('tbody', {}, ...rows)));
}

function segmentSection(model) {
	const segments = model.traces.flatMap((trace) => trace.segments);
	return element('details', { class: 'section' }, element('summary', {}, `Segments (${segments.length})`), element('table', { class: 'wrap' }, element('tbody', {},
		...segments.map((segment) => aboutRow(showName(segment.name), `${showCount(segment.events)} events`, segment.error ? 'damaged' : segment.unread ? 'nothing can be read' : segment.cut ? 'end missing' : 'whole')))));
}

function metadataSection(trace, several) {
	const entries = [...trace.metadata].sort(([a], [b]) => (a < b ? -1 : 1));
	if (!entries.length) return null;
	return element('details', { class: 'section' }, element('summary', {}, `What ${several ? showName(trace.metadata.get('service') || trace.folder) : 'the trace'} says of itself`),
		element('table', { class: 'wrap' }, element('tbody', {}, ...entries.map(([key, value]) =>
			element('tr', {}, element('td', { class: 'code', title: showName(key) }, showName(key)), element('td', { class: 'code', title: showName(value, 2000) }, showName(value, 400)))))));
}

function processFacts(model) {
	const { metadata } = model.main, bytes = model.traces.flatMap((trace) => trace.sources ?? []).reduce((sum, source) => sum + source.bytes, 0), wall = model.wall(model.first);
	const day = wall === null ? '' : new Date(Number(wall / 1000000n)).toISOString().slice(0, 10);
	const facts = [['program', metadata.get('program')], ['service', metadata.get('service')], ['host', [metadata.get('host'), metadata.get('system.kernel')].filter(Boolean).join(', ')],
		['process', metadata.get('pid')], ['began', wall === null ? '' : `${day} ${showTime(0, wall, 'utc', 3)} UTC`], ['length', showDuration(model.last - model.first)],
		['files', bytes ? `${model.source.shown} of ${model.source.segments}, ${showSize(bytes)}` : `${model.source.shown} of ${model.source.segments}`]];
	return element('dl', { class: 'facts' }, ...facts.filter(([, value]) => value).flatMap(([name, value]) => [element('dt', {}, name), element('dd', { title: showName(value, 400) }, showName(value, 400))]));
}

export function showAbout(panel) {
	const { model } = state, several = model.traces.length > 1;
	panel.replaceChildren(...[element('div', { class: 'head small' }, element('h2', { class: 'small' }, 'About this trace')), processFacts(model), trustSection(model),
		...firstOf(model.traces, PROCESSES_SHOWN, (trace) => [recordedSection(trace), namesSection(trace)].filter(Boolean), 'processes'), clockSection(model), segmentSection(model),
		...model.traces.map((trace) => metadataSection(trace, several))].filter(Boolean));
}
