// SPDX-License-Identifier: Apache-2.0
// The range in figures, beside the lanes: how busy the loops were, and how it differs from the rest of the trace.

import { showCount, showDuration, showShare } from '../toolkit/show.js';
import { Durations } from '../toolkit/statistics.js';
import { detailSection, partsSection, timeText } from './detail.js';
import { element, firstOf } from './dom.js';
import { sentenceOfFinding } from './finding_list.js';
import { laneName } from './lanes.js';
import { eachCallOf, lanesOf } from './scope.js';
import { state } from './state.js';
import { partsOfLanes } from './time_parts.js';

const LOOPS_SHOWN = 12;

/** Calls of [from, to): their durations, and the time of each lane in which one was open. */
export function sumCalls([from, to]) {
	const durations = new Durations(), busy = new Map();
	for (const lane of lanesOf(state)) {
		const open = [];
		eachCallOf(state, lane, [from, to], ({ start, end, ns }) => {
			durations.add(ns);
			open.push([Math.max(start + lane.shift, from), Math.min(end + lane.shift, to)]);
		});
		let time = 0, until = -Infinity;
		// A call is open while a loop runs inside of it, which has calls of its own.
		for (const [start, end] of open.sort((a, b) => a[0] - b[0])) {
			time += Math.max(0, end - Math.max(start, until));
			until = Math.max(until, end);
		}
		if (open.length) busy.set(lane, time);
	}
	return { durations, busy };
}

function loopRows(busy, length) {
	return firstOf([...busy].sort((a, b) => b[1] - a[1]), LOOPS_SHOWN, ([lane, time]) => {
		const bar = element('i', { class: 'bar' });
		bar.style.width = `${Math.min(100, time / length * 100)}%`;
		return element('tr', {}, element('td', {}, laneName(state.model, lane)), element('td', { class: 'wide' }, bar), element('td', { class: 'number' }, showShare(time, length)));
	}, 'loops', true);
}

function restRows(inside, rest, length, restLength) {
	const rate = (d, time) => (time > 0 ? showCount(d.n / time * 1e9) : '–');
	const rows = [['callbacks per second', rate(inside.durations, length), rate(rest, restLength)],
		['longest callback', showDuration(inside.durations.max), showDuration(rest.max)],
		['p50', showDuration(inside.durations.quantile(0.5)), showDuration(rest.quantile(0.5))],
		['p99', showDuration(inside.durations.quantile(0.99)), showDuration(rest.quantile(0.99))]];
	return rows.map(([what, here, there]) => element('tr', {}, element('td', {}, what), element('td', { class: 'number' }, here), element('td', { class: 'number faint' }, there)));
}

/** Findings that lie in the range, each with its place. */
function findingRows([from, to]) {
	return state.model.findings.map((finding, i) => ({ finding, i })).filter(({ finding: { first } }) => first && first.at < to && first.at + first.length >= from)
		.map(({ finding, i }) => element('p', { class: 'small' }, element('i', { class: 'triangle' }), ` ${i + 1}. `, ...sentenceOfFinding(finding)));
}

export function showRangeSummary(panel, range) {
	const { model } = state, [from, to] = range, inside = sumCalls(range), rest = new Durations();
	// Calls that reach into the range are not of the rest.
	for (const lane of lanesOf(state))
		eachCallOf(state, lane, [model.first, model.last + 1], ({ start, end, ns }) => {
			if (start + lane.shift >= to || end + lane.shift <= from) rest.add(ns);
		});
	const parts = partsOfLanes(lanesOf(state), range), findings = findingRows(range), loops = loopRows(inside.busy, to - from);
	panel.replaceChildren(...[
		element('div', { class: 'head small' }, element('h2', { class: 'small' }, 'Range')),
		element('div', { class: 'title' }, element('span', { class: 'strong' }, `${timeText(from)} to ${timeText(to)}`), element('span', { class: 'figure' }, showDuration(to - from))),
		findings.length ? detailSection('Findings', `${findings.length}`, ...findings) : null,
		parts.total > 0 ? partsSection(parts, parts.total, [], { waiting: 'idle, waiting' }) : null,
		loops.length ? detailSection('Loops', 'busy', element('table', { class: 'loops' }, element('tbody', {}, ...loops))) : null,
		detailSection('Against the rest', showDuration(model.last - model.first - (to - from)), element('table', {}, element('tbody', {}, ...restRows(inside, rest, to - from, model.last - model.first - (to - from)))))].filter(Boolean));
}
