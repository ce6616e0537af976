// SPDX-License-Identifier: Apache-2.0
// The detail of what is selected: a call, a range of time, or else the trace itself.

import { durationClass, showCount, showDuration, showName, showShare, showTime } from '../toolkit/show.js';
import { binStart, histogramBin, pollsOfTask } from '../toolkit/index.js';
import { framesOf } from '../toolkit/stacks.js';
import { Durations } from '../toolkit/statistics.js';
import { showAbout } from './about.js';
import { element, firstOf, prepareCanvas } from './dom.js';
import { laneName } from './lanes.js';
import { showRangeSummary } from './range_summary.js';
import { selectCall, selectFinding, selectFire, state } from './state.js';
import { colours } from './theme.js';
import { spanOfItem } from './thing.js';
import { chainSection, showThing, taskLink } from './thing_detail.js';
import { showItem } from './track_detail.js';

const REASONS = ['', 'its descriptor', 'its timer', 'a signal', 'its own loop', 'another thread', 'a deferred call', 'the loop library', 'the end of a loop inside it'];
const DETAIL_FRAMES = 24, DETAIL_ROWS = 12, DETAIL_FIRES = 3;

export function detailSection(title, note, ...children) {
	return element('section', { class: 'section' }, element('h2', {}, title, note ? element('span', {}, note) : null), ...children);
}

export function factList(pairs) {
	return element('dl', { class: 'facts' }, ...pairs.filter(([, ...value]) => value.some(Boolean))
		.flatMap(([term, ...value]) => [element('dt', {}, term), element('dd', { title: value.every((v) => typeof v === 'string') ? value.join('') : false }, ...value)]));
}

export function callLink(lane, row, text = state.model.label(lane, row).name) {
	return element('button', { class: 'link code', onclick: () => selectCall(lane, row) }, text);
}

export function timeText(time) {
	const { model } = state;
	return showTime(time - model.first, model.wall(time), state.clock, 6);
}

/** How long all calls of a place took, as the table of callbacks counts them. */
function durationsOf(trace, stats) {
	if (stats.durations) return stats.durations;
	stats.durations = new Durations();
	for (const { polls } of trace.workers)
		for (let row = 0; row < polls.n; row++) if (polls.site[row] === stats.site) stats.durations.add(polls.dur[row]);
	return stats.durations;
}

/** Where among all calls of its callback this one is. */
function histogram(lane, row) {
	const stats = lane.trace.stats.get(lane.polls.site[row]), canvas = element('canvas', { role: 'img' });
	if (!stats || stats.n < 2) return null;
	const durations = durationsOf(lane.trace, stats), [p50, p99] = [0.5, 0.99].map((share) => durations.quantile(share));
	const outer = state.model.innerFunction(lane, row) < 0 ? '' : ` of ${state.model.callback(lane.trace, stats.site).name}`;
	canvas.setAttribute('aria-label', `${showCount(stats.n)} calls, half of them below ${showDuration(p50)}, 99 % below ${showDuration(p99)}`);
	const box = element('div', { class: 'chart' }, canvas, element('div', { class: 'ends' },
		element('span', {}, `${showCount(stats.n)} calls${outer}`), element('span', {}, `p50 ${showDuration(p50)}, p99 ${showDuration(p99)}`)));
	const draw = () => {
		const width = Math.max(120, box.clientWidth - 32), context = prepareCanvas(canvas, width, 44), most = Math.log(1 + Math.max(...stats.bins));
		const here = histogramBin(lane.polls.dur[row]);
		let first = stats.bins.findIndex((n) => n > 0), last = stats.bins.findLastIndex((n) => n > 0);
		first = Math.max(0, Math.min(first, here) - 1);
		last = Math.min(stats.bins.length - 1, Math.max(last, here) + 1);
		const step = width / (last - first + 1);
		for (let i = first; i <= last; i++) {
			if (!stats.bins[i]) continue;
			const height = Math.max(2, Math.log(1 + stats.bins[i]) / most * 28);
			context.fillStyle = colours().classes[durationClass(binStart(i) * 1.01)];
			context.fillRect((i - first) * step, 43 - height, Math.max(1, step - 1), height);
		}
		context.fillStyle = colours()['line-2'];
		context.fillRect(0, 43, width, 1);
		context.strokeStyle = colours().accent;
		context.lineWidth = 2;
		const x = (here - first) * step, text = 'this one';
		context.strokeRect(x, 36, Math.max(6, step - 1), 6);
		context.font = colours().sans;
		context.fillStyle = colours().accent;
		const room = context.measureText(text).width;
		context.fillText(text, Math.max(0, Math.min(width - room, x - room / 2 + step / 2)), 12);
	};
	return { box, draw };
}

const PART_WORDS = { on_cpu: 'on the CPU', ready: 'ready, not running', blocked: 'blocked', waiting: 'waiting for the loop', unknown: 'unknown' };

/**
 * Parts of |whole| ns: they add up, and what is not known is said.  |functions|: in which it was blocked;
 * |words|: other words for some parts.
 */
export function partsSection(parts, whole, functions = [], words = {}) {
	const classes = { on_cpu: 'cpu', ready: 'ready', blocked: 'blocked', waiting: 'wait', unknown: 'unknown' };
	const rows = Object.keys(PART_WORDS).filter((key) => parts[key] !== undefined).map((key) => ({ key: classes[key], ns: parts[key],
		text: key === 'blocked' && functions.length ? `blocked in ${functions.join(', ')}` : words[key] ?? PART_WORDS[key] }));
	return detailSection('Time', `adds up to ${showDuration(whole)}`,
		element('div', { class: 'parts', 'aria-hidden': 'true' }, ...rows.filter((r) => r.ns / whole > 0.001).map((r) => {
			const bar = element('i', { class: `part-${r.key}` });
			bar.style.flexGrow = String(r.ns / whole);
			return bar;
		})),
		element('table', {}, element('tbody', {}, ...rows.map((r) => element('tr', { class: r.ns ? '' : 'none' },
			element('td', {}, element('i', { class: `swatch part-${r.key}` }), r.text), element('td', { class: 'number' }, showDuration(r.ns)),
			element('td', { class: 'number' }, showShare(r.ns, whole)))))));
}

function timeParts(lane, row) {
	const parts = state.model.parts(lane, row);
	return parts && partsSection(parts, lane.polls.dur[row], state.model.blockedIn(lane, row));
}

export function frameRow(frame, hot) {
	return element('div', { class: `frame${frame.known ? '' : ' unnamed'}${hot ? ' hot' : ''}` },
		element('span', { title: showName(frame.name, 2000) }, showName(frame.name)), element('span', { class: 'where' }, frame.inlined ? 'inlined, ' : '', showName(frame.where)));
}

/** The stack that most samples of [from, to) have. */
function stackSection(counts, title = 'Stack') {
	const all = [...counts].filter(([stack]) => stack >= 0).sort((a, b) => b[1] - a[1]);
	if (!all.length) return null;
	const total = all.reduce((sum, [, n]) => sum + n, 0), frames = framesOf(state.selected.lane.trace, all[0][0]);
	const nameless = frames.length > 0 && !frames.some((frame) => frame.known);
	return detailSection(title, `${all[0][1]} of ${total} samples`, ...firstOf(frames, DETAIL_FRAMES, (frame, i) => frameRow(frame, i === 0), 'frames'),
		nameless ? element('p', { class: 'small' }, '`dial9 symbolize` writes the names of functions into the trace.') : null);
}

function insideSection(lane, row) {
	const inside = state.model.inside(lane, row);
	if (!inside.length) return null;
	return detailSection('Called inside', showCount(inside.length), element('table', {}, element('tbody', {}, ...firstOf(inside, DETAIL_ROWS, (call) =>
		element('tr', {}, element('td', { class: 'code', title: showName(call.location, 400) }, call.name), element('td', { class: 'number' }, call.source), element('td', { class: 'number' }, showDuration(call.dur))), 'functions', true))));
}

function waitersSection(lane, row) {
	const waiters = state.model.waiters(lane, row);
	if (!waiters.length) return null;
	const n = waiters.reduce((sum, w) => sum + w.n, 0);
	return detailSection('Who waited', `${showCount(n)} callback${n === 1 ? '' : 's'}`, element('table', {},
		element('thead', {}, element('tr', {}, element('th', {}, 'callback'), ...['n', 'longest', 'in sum'].map((t) => element('th', { class: 'number' }, t)))),
		element('tbody', {}, ...firstOf(waiters, DETAIL_ROWS, (w) => element('tr', {}, element('td', {}, callLink(lane, w.row, w.name)),
			element('td', { class: 'number' }, showCount(w.n)), element('td', { class: 'number' }, showDuration(w.longest)), element('td', { class: 'number' }, showDuration(w.total))), 'callbacks', true))));
}

/** The task's whole life as a strip, with this call in it. */
function taskSection(lane, row) {
	const { trace } = lane, id = lane.polls.task[row], task = trace.tasks.get(id), calls = pollsOfTask(trace, id);
	const canvas = element('canvas', { role: 'img', 'aria-label': `${calls.length} calls of this task` });
	const kind = [task?.name, task?.kind, task?.fd === undefined ? '' : `descriptor ${task.fd}`].filter(Boolean).map((t) => showName(t)).join(', ');
	const box = detailSection(taskLink(trace, id, 'Task'), `${kind ? `${kind}, ` : ''}${showCount(calls.length)} call${calls.length === 1 ? '' : 's'}`, canvas,
		element('div', { class: 'ends small' }, task && !Number.isNaN(task.born) ? `made ${timeText(task.born + trace.shift)}` : 'made before the trace',
			task && !Number.isNaN(task.died) ? `, ended ${timeText(task.died + trace.shift)}` : ', still there at the end'));
	const draw = () => {
		const width = Math.max(120, box.clientWidth - 32), context = prepareCanvas(canvas, width, 24);
		const from = Math.min(task && !Number.isNaN(task.born) ? task.born : trace.start, trace.workers[calls[0][0]].polls.start[calls[0][1]]);
		const to = Math.max(from + 1, task && !Number.isNaN(task.died) ? task.died : trace.end);
		context.fillStyle = colours()['line-2'];
		context.fillRect(0, 12, width, 1);
		for (const [w, r] of calls) {
			const { polls } = trace.workers[w], x = (polls.start[r] - from) / (to - from) * (width - 4);
			context.fillStyle = colours().classes[durationClass(polls.dur[r])];
			context.fillRect(x, 5, Math.max(1.5, polls.dur[r] / (to - from) * width), 14);
		}
		const x = (lane.polls.start[row] - from) / (to - from) * (width - 4);
		context.strokeStyle = colours().accent;
		context.lineWidth = 2;
		context.strokeRect(Math.max(1, x - 2), 3, Math.max(6, lane.polls.dur[row] / (to - from) * width + 3), 18);
	};
	return { box, draw };
}

export function wakeReason(reason) {
	return REASONS[reason] ?? '';
}

function wakeFact(wake) {
	if (!wake) return ['woken by', 'nothing that was recorded'];
	const why = wakeReason(wake.reason);
	if (wake.waker) return ['woken by', callLink(wake.waker.lane, wake.waker.row), why ? `, ${why}` : ''];
	return ['woken by', why || 'the kernel or another thread'];
}

/** Triggers that a call made fire: [[fire, its number]]. */
function firesOfCall(lane, row) {
	return state.model.fires.map((fire, i) => [fire, i]).filter(([{ call }]) => call?.lane === lane && call.row === row);
}

function fireSection(fire) {
	return detailSection(`Trigger ${showName(fire.trigger)} fired`, '', element('div', { class: 'fired' }, factList([['at', fire.at === undefined ? 'not in what is shown' : timeText(fire.at)], ['because', fire.measure ? showName(fire.measure) : 'the program asked for it'],
		['callback', fire.callback && fire.trace && element('span', { class: 'code' }, state.model.callbackAt(fire.trace, fire.callback).name)],
		['trigger', fire.text && element('span', { class: 'code', title: showName(fire.text, 2000) }, showName(fire.text, 400))], ['dump', fire.dump_id && element('span', { class: 'code' }, showName(fire.dump_id))]])));
}

/** "2 of 5", with buttons to the one before and the next one. */
function stepper(what, number, n, select) {
	return element('span', {}, element('button', { class: 'small', 'aria-label': `Previous ${what}`, onclick: () => select(Math.max(0, number - 1)) }, '‹'),
		`${what} ${number + 1} of ${n}`, element('button', { class: 'small', 'aria-label': `Next ${what}`, onclick: () => select(Math.min(n - 1, number + 1)) }, '›'));
}

/** One that no callback in the trace made fire. */
function showFire(panel, number) {
	const { fires } = state.model;
	panel.replaceChildren(element('div', { class: 'head small' }, element('h2', { class: 'small' }, 'Trigger'), stepper('trigger', number, fires.length, selectFire)), fireSection(fires[number]));
}

function showCall(panel, lane, row) {
	const { model } = state, { polls, trace } = lane, inner = model.label(lane, row), outer = model.callback(trace, polls.site[row]);
	const start = polls.start[row] + lane.shift, length = polls.dur[row], wake = model.wake(lane, row), found = state.finding;
	const nested = inner.location !== outer.location, named = found >= 0 && model.findings[found]?.evidence.some((piece) => piece.lane === lane && piece.row === row);
	const charts = [histogram(lane, row), taskSection(lane, row)];
	const fired = firesOfCall(lane, row), place = named ? stepper('finding', found, model.findings.length, selectFinding) : fired.some(([, i]) => i === state.fire) ? stepper('trigger', state.fire, model.fires.length, selectFire) : null;
	panel.replaceChildren(...[
		element('div', { class: 'head small' }, element('h2', { class: 'small' }, 'Callback'), place),
		element('div', { class: 'title' }, element('span', { class: 'code' }, inner.name), element('span', { class: `figure${named ? ' alarm' : ''}` }, showDuration(length))),
		factList([['function', element('span', { class: 'code' }, inner.source)].filter((v) => v !== null && (typeof v === 'string' || inner.source)),
			['called by', nested && outer.name], ['made at', inner.site && element('span', { class: 'code', title: inner.site }, inner.site)],
			['runs on', `${laneName(model, lane)}${lane.worker.tid ? `, thread ${lane.worker.tid}` : ''}`],
			['began', `${timeText(start)}${wake && wake.delay > 0 ? `, ${showDuration(wake.delay)} after its wake` : ''}`], wakeFact(wake),
			['ready', `${polls.ready[row]} callback${polls.ready[row] === 1 ? '' : 's'} in this round`],
			['end', model.openEnded(lane, row) && (lane.worker.unended?.start === polls.start[row] ? 'it had not ended when it was last seen' : 'not recorded: the next event of the thread stands for it')]].filter((pair) => pair.length > 1)),
		...firstOf(fired, DETAIL_FIRES, ([fire]) => fireSection(fire), 'triggers'), charts[0]?.box, timeParts(lane, row), insideSection(lane, row), stackSection(model.stacksIn(lane, polls.start[row], polls.start[row] + length + 1)),
		stackSection(model.stacksIn(lane, polls.start[row], polls.start[row] + length + 1, 1), 'Off the CPU'), waitersSection(lane, row), chainSection(trace, trace.workers.indexOf(lane.worker), row), charts[1].box].filter(Boolean));
	for (const chart of charts) chart?.draw();
}

/** A finding that has no place in time: its sentence and evidence. */
function showFinding(panel, finding) {
	panel.replaceChildren(
		element('div', { class: 'head small' }, element('h2', { class: 'small' }, 'Finding')),
		element('div', { class: 'title' }, element('span', { class: 'strong' }, showName(finding.message, 600))),
		detailSection('Evidence', '', ...finding.evidence.map((piece) => element('p', { class: 'small' }, showName(piece.text, 600)))),
		finding.advice ? detailSection('Next', '', element('p', {}, showName(finding.advice, 600))) : '');
}

export function showDetail(panel) {
	const thing = state.thing ?? spanOfItem(state.item);
	if (state.range && (state.rangeLast || !(state.selected || state.item))) showRangeSummary(panel, state.range);
	else if (thing) showThing(panel, thing);
	else if (state.item) showItem(panel);
	else if (state.selected) showCall(panel, state.selected.lane, state.selected.row);
	else if (state.fire >= 0) showFire(panel, state.fire);
	else if (state.finding >= 0) showFinding(panel, state.model.findings[state.finding]);
	else showAbout(panel);
	panel.scrollTop = 0;
}

/** The call as a sentence, for those who hear the page. */
export function sentenceOf({ lane, row }) {
	const { model } = state, number = model.findings.findIndex((finding) => finding.evidence.some((piece) => piece.lane === lane && piece.row === row));
	return [model.label(lane, row).name, showDuration(lane.polls.dur[row]), laneName(model, lane), `at ${timeText(lane.polls.start[row] + lane.shift)}`,
		number >= 0 ? `finding ${number + 1} of ${model.findings.length}` : '', ...firesOfCall(lane, row).slice(0, DETAIL_FIRES).map(([fire]) => `trigger ${showName(fire.trigger)} fired`)].filter(Boolean).join(', ');
}

/** A trigger that fired, as a sentence. */
export function sentenceOfFire(fire) {
	return `trigger ${showName(fire.trigger)} fired${[fire.at === undefined ? '' : ` at ${timeText(fire.at)}`, fire.lane ? laneName(state.model, fire.lane) : '', state.model.tellFire(fire)].filter(Boolean).join(', ')}`;
}
