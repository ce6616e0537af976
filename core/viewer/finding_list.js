// SPDX-License-Identifier: Apache-2.0
// What fired, then the findings, worst first: what, how much, who suffered, why, and what to do.

import { showDuration, showName, showSize } from '../toolkit/show.js';
import { timeText } from './detail.js';
import { byId, element, firstOf } from './dom.js';
import { laneName } from './lanes.js';
import { selectFinding, selectFire, state } from './state.js';

// Checks that are told by a figure, and where it came from; the others begin with their words.
const TITLES = { 'nothing-recorded': 'nothing recorded', 'incomplete-data': 'incomplete', 'degraded-hooks': 'not all was seen', 'short-of-cpu': 'machine busy',
	'cpu-contention': 'machine busy', 'sample-setup': 'no samples' };

/** What the card of a finding shows largest. */
export function figureOfFinding(finding) {
	if (TITLES[finding.check]) return TITLES[finding.check];
	return finding.figure ? showName(finding.figure) : finding.check.replaceAll('-', ' ');
}

/** The sentence without the name that stands before it, which is shown as what it is. */
export function sentenceOfFinding(finding) {
	if (!finding.name || !finding.brief) return [showName(finding.message, 400)];
	return [element('span', { class: 'code strong' }, showName(finding.name)), ` ${showName(finding.brief, 400)}`];
}

function pairs(finding) {
	const rows = [];
	const add = (label, ...value) => rows.push(element('span', {}, label), element('span', {}, ...value));
	if (finding.time) add('Time', showName(finding.time, 300));
	const where = finding.blocked ?? finding.on_cpu;
	if (where) add('In', showName(where, 300));
	if (finding.gain?.text) add('Gain', showName(finding.gain.text, 300));
	if (finding.advice) add('Next', showName(finding.advice, 400));
	return rows.length ? element('span', { class: 'pairs' }, ...rows) : null;
}

function item(finding, number) {
	const mild = finding.severity === 'info', lane = finding.first?.lane;
	return element('li', {}, element('button', { class: 'finding', 'aria-current': state.finding === number ? 'true' : false, 'data-finding': number,
		onclick: () => selectFinding(number) },
	element('span', { class: 'top' },
		element('span', { class: `figure${mild ? ' mild' : ''}` }, element('i', { class: 'triangle', 'aria-hidden': 'true' }), figureOfFinding(finding)),
		element('span', { class: 'where' }, lane ? laneName(state.model, lane) : finding.about === 'machine' ? 'machine' : '')),
	element('span', { class: 'said' }, ...sentenceOfFinding(finding)),
	...(finding.effects ?? []).map((effect) => element('span', { class: 'small' }, showName(effect.effect || effect.message, 300))),
	pairs(finding)));
}

const FIRES_SHOWN = 3;

function fireCard(fire, number) {
	const { model } = state, callback = fire.callback && fire.trace ? model.callbackAt(fire.trace, fire.callback).name : '';
	return element('button', { class: 'finding fire', 'aria-current': state.fire === number ? 'true' : false, 'data-fire': number, onclick: () => selectFire(number) },
		element('span', { class: 'top' }, element('span', { class: 'figure' }, element('i', { class: 'flag', 'aria-hidden': 'true' }), `Trigger ${showName(fire.trigger, 60)}`), element('span', { class: 'where' }, fire.lane ? laneName(model, fire.lane) : '')),
		element('span', { class: 'said' }, fire.at === undefined ? 'fired outside of what is shown' : 'fired at ', fire.at === undefined ? '' : element('span', { 'data-at': fire.at }, timeText(fire.at)), fire.measure ? `: ${showName(fire.measure)}` : '', callback ? ', in ' : '', callback ? element('span', { class: 'code strong' }, callback) : ''));
}

/** The triggers that made the recorder keep this, or nothing. */
function firedSection({ fires }) {
	byId('legend-fired').hidden = !fires.length;
	if (!fires.length) return [];
	return [element('div', { class: 'head' }, element('h2', {}, 'What fired', element('span', { class: 'count' }, String(fires.length)))), element('div', { class: 'fires' }, ...firstOf(fires, FIRES_SHOWN, fireCard, 'triggers that fired'))];
}

/** The longest call of all lanes: {lane, row} or null. */
function longestCall(model) {
	let best = null;
	for (const trace of model.traces)
		for (const stats of trace.stats.values()) {
			const lane = model.lanes.find((l) => l.trace === trace && l.worker === trace.workers[stats.at[0]]);
			if (lane && (!best || stats.longest > best.lane.polls.dur[best.row])) best = { lane, row: stats.at[1] };
		}
	return best;
}

function innocent(model) {
	const longest = longestCall(model);
	if (!longest) return 'There is no callback of an event loop in this trace: was a loop attached?  `dial9 doctor` tells what can be recorded.';
	return `Nothing ${model.fires.length ? 'else ' : ''}stands out: the longest callback was ${model.label(longest.lane, longest.row).name}, ${showDuration(longest.lane.polls.dur[longest.row])}.`;
}

/** Fill the panel. */
export function showFindings(panel) {
	const { model } = state, n = model.findings.length;
	const children = [...firedSection(model), element('div', { class: 'head' }, element('h2', {}, 'What went wrong', element('span', { class: 'count' }, model.reportState === 'there' ? String(n) : '')))];
	if (model.reportState === 'coming') children.push(element('p', { class: 'quiet', role: 'status' }, 'Looking for what went wrong …'));
	if (model.reportState === 'none') children.push(element('p', { class: 'quiet' }, '`dial9 report FILE` tells what is wrong: this page has no `dial9` that it could ask.'));
	if (model.reportState === 'failed') children.push(element('p', { class: 'quiet alarm' }, `Nothing was looked for.  dial9 report: ${showName(model.why, 300)}`));
	if (model.reportState === 'there' && model.source.cut) children.push(element('p', { class: 'quiet' }, `${n ? 'This was' : 'Nothing: this was'} cut out of a longer trace, whose findings here are those with evidence in this part.`));
	else if (model.reportState === 'there' && !n) children.push(element('p', { class: 'quiet' }, innocent(model)));
	children.push(element('ul', { class: 'list' }, ...model.findings.map(item)));
	const data = dataSection(model);
	if (data) children.push(data);
	panel.replaceChildren(...children);
}

/** Whether this can be trusted: segments that end early, and what was lost. */
function dataSection(model) {
	const rows = model.traces.flatMap((trace) => trace.segments.filter((segment) => segment.error || (segment.cut && !model.source.live))
		.map((segment) => element('p', { class: 'small' }, `${showName(segment.name)}: ${segment.unread ?? `${segment.error ? showName(segment.error) : `ends inside a frame at byte ${segment.offset}`}; everything before it is shown`}`)));
	if (model.source.shown < model.source.segments)
		rows.push(element('p', { class: 'small' }, `The newest ${model.source.shown} of ${model.source.segments} segments are shown; a page ${model.source.live ? 'that follows ' : ''}holds ${showSize(model.source.room)}.`));
	return rows.length ? element('div', { class: 'section' }, element('h2', {}, 'Data'), ...rows) : null;
}

/** The times in it, on another clock. */
export function showFiredTimes(panel) {
	for (const time of panel.querySelectorAll('[data-at]')) time.textContent = timeText(Number(time.dataset.at));
}

const HEAD_HEIGHT = 36; // stays above the list

/** Mark the selected one, and bring it into sight. */
export function markFinding(panel) {
	for (const button of panel.querySelectorAll('.finding')) {
		const current = button.dataset.fire === undefined ? Number(button.dataset.finding) === state.finding : Number(button.dataset.fire) === state.fire;
		if (current) button.setAttribute('aria-current', 'true');
		else button.removeAttribute('aria-current');
		// In a narrow window the page scrolls, and it stays where it is.
		const { top, bottom } = button.getBoundingClientRect(), box = panel.getBoundingClientRect();
		if (current) panel.scrollTop += top < box.top + HEAD_HEIGHT ? top - box.top - HEAD_HEIGHT : Math.max(0, Math.min(bottom - box.bottom, top - box.top - HEAD_HEIGHT));
	}
}
