// SPDX-License-Identifier: Apache-2.0
// Two sides beside each other: callbacks, waits and stacks.

import { COMPARE_RULES, callbackKey, compareSteps, lengthOf } from '../toolkit/compare.js';
import { functionsOf } from '../toolkit/fold.js';
import { PROFILE_KINDS } from '../toolkit/profile.js';
import { showCount, showDuration, showName, showShare } from '../toolkit/show.js';
import { foldSides, nameOfProcess, setOther, sidesOf } from './compare_sides.js';
import { element } from './dom.js';
import { Flame } from './flame.js';
import { StackTools } from './flame_tab.js';
import { amountOf } from './folded.js';
import { loadFiles } from './load.js';
import { runInSlices } from './slices.js';
import { SortableTable } from './sortable.js';
import { state } from './state.js';
import { textOfInterval } from './url.js';

const VIEWS = { callbacks: 'Callbacks', waits: 'Waits', stacks: 'Stacks' };
const VERDICTS = { slower: 'slower', faster: 'faster', same: 'no change', small: 'too small to matter', 'too few': 'too few runs' };
const MATCHED_LEAST = 0.5, MATCHED_WELL = 0.9; // shares of the time in callbacks that are on both sides
const SCALE = 2; // the plot of an interval goes from a half to the double

function rateText(n) {
	return n >= 100 ? showCount(n) : n.toPrecision(n >= 10 ? 3 : 2);
}

/** The change that decides, or else of the mean. */
function changeOf(values) {
	return values[values.by ?? 'mean'];
}

function verdictText(row, which) {
	if (row.kind === 'new') return 'new in B';
	if (row.kind === 'gone') return 'gone in B';
	const values = row[which];
	if (!values) return 'no wakes';
	return `${VERDICTS[values.verdict]}${row.kind === 'renamed' ? ', renamed?' : ''}`;
}

/** The interval around 1, with the band that does not count. */
function plotOf(values) {
	const place = (ratio) => `${Math.max(0, Math.min(100, 50 + 50 * Math.log(ratio) / Math.log(SCALE)))}%`, { ratio, low, high } = changeOf(values);
	if (![ratio, low, high].every(Number.isFinite)) return '';
	const band = element('i', { class: 'band' }), line = element('i', { class: 'line' }), dot = element('i', { class: `dot ${values.few ? 'few' : values.verdict}` });
	band.style.left = place(1 / COMPARE_RULES.ratio);
	band.style.right = `calc(100% - ${place(COMPARE_RULES.ratio)})`;
	line.style.left = place(low);
	line.style.right = `calc(100% - ${place(high)})`;
	dot.style.left = place(ratio);
	return element('span', { class: 'interval', 'aria-hidden': 'true' }, band, line, dot);
}

function ratioText(values) {
	const { ratio, low, high } = changeOf(values);
	return Number.isFinite(ratio) ? `×${ratio.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]` : '–';
}

function comparedColumns(which) {
	const pair = (key, title, read, show, more = '') => [['a', 0, 'A'], ['b', 1, 'B']].map(([side, i, letter]) => ({ key: `${key}${side}`, title: `${title} ${letter}`, number: true, class: `${i ? '' : 'faint '}${more}`,
		value: (r) => read(r, side, i), cell: (r) => (r[side] && read(r, side, i) !== undefined ? show(read(r, side, i), r) : '–') }));
	const bracket = (values, text) => (values?.p99.bracketed ? `(${text})` : text);
	return [
		{ key: 'name', title: 'callback', class: 'code', value: (r) => r.name, cell: (r) => showName(r.name) },
		{ key: 'place', title: 'place', class: 'code faint optional', value: (r) => r.place, cell: (r) => showName(r.place) },
		...pair('runs', 'per s', (r, side, i) => r.runs[i], rateText, 'second'),
		...pair('p50', 'p50', (r, side) => r[which]?.p50[side], showDuration),
		...pair('p99', 'p99', (r, side) => r[which]?.p99[side], (ns, r) => bracket(r[which], showDuration(ns))),
		...(which === 'calls' ? pair('sum', 'time per s', (r, side, i) => r.perSecond[i], showDuration, 'optional') : []),
		{ key: 'plot', title: '½ … ×1 … 2', class: 'plot', hint: '95 % interval of B over A; the grey band is below 10 %', cell: (r) => (r[which] ? plotOf(r[which]) : '') },
		{ key: 'ratio', title: 'B over A', number: true, value: (r) => (r[which] ? Math.abs(Math.log(changeOf(r[which]).ratio)) : 0), cell: (r) => (r[which] ? ratioText(r[which]) : '–') },
		{ key: 'verdict', title: 'verdict', class: 'verdict', value: (r) => verdictText(r, which), cell: (r) => element('span', { class: r[which]?.verdict === 'slower' ? 'slower' : r[which]?.verdict === 'faster' ? 'faster' : false,
			title: r[which] && !r[which].few ? `a call of B is longer than one of A with a chance of ${showShare(r[which].superiority, 1)}` : false }, verdictText(r, which)) },
	];
}

/** Figures of one side for the head of the comparison. */
function factsOfSide(side) {
	let calls = 0, busy = 0;
	for (const trace of side.traces)
		for (const worker of trace.workers) {
			if (side.keep && !side.keep(trace, worker)) continue;
			for (const [from, to] of side.intervals) {
				const { polls } = worker;
				for (let row = 0; row < polls.n; row++) {
					const start = polls.start[row] + trace.shift;
					if (start < from || start >= to) continue;
					calls++;
					busy += polls.dur[row];
				}
			}
		}
	const lost = side.traces.reduce((sum, trace) => sum + trace.lost, 0), events = side.traces.reduce((sum, trace) => sum + trace.events, 0);
	return { calls, busy, lost, events, length: lengthOf(side), host: side.traces[0]?.metadata.get('host') ?? '', hz: side.traces[0]?.metadata.get('cpu.sample_hz') ?? '' };
}

/** What makes the comparison doubtful. */
function doubts(a, b, compared) {
	const told = [], lost = [a, b].filter((facts) => facts.lost > facts.events / 100).length;
	if (lost) told.push('more than 1 % of the events were lost');
	if (a.hz !== b.hz) told.push('samples were taken at another rate');
	if (compared.matched < MATCHED_WELL) told.push(`callbacks that are on both sides have ${showShare(compared.matched, 1)} of the time`);
	if (Math.min(a.length / compared.blocks[0], b.length / compared.blocks[1]) < 1e9) told.push(`blocks are shorter than a second (${showDuration(Math.min(a.length / compared.blocks[0], b.length / compared.blocks[1]))}): drift may look like change`);
	return told;
}

/** What is asked for; a range alone asks for the rest. */
function comparedWith() {
	return state.panel.compare || (state.range ? 'rest' : '');
}

export class CompareTab {
	constructor(patchPanel) {
		this.patchPanel = patchPanel;
		this.file = element('input', { type: 'file', multiple: true, hidden: true, 'aria-label': 'Files of the other trace' });
		this.file.addEventListener('change', () => this.openFiles(this.file.files));
		this.choices = element('div', { class: 'choice', role: 'group', 'aria-label': 'Compare with' });
		this.views = element('div', { class: 'choice', role: 'group', 'aria-label': 'What is compared' }, ...Object.entries(VIEWS).map(([view, title]) =>
			element('button', { class: 'small', 'data-view': view, onclick: () => patchPanel({ view, zoom: [] }) }, title)));
		this.swap = element('button', { class: 'small', onclick: () => patchPanel({ compare: comparedWith().startsWith('!') ? comparedWith().slice(1) : `!${comparedWith()}` }) }, 'Swap A and B');
		this.status = element('p', { class: 'small conclusion', role: 'status' });
		this.head = element('div', { class: 'sides' });
		const options = { order: '', onEnter: (row) => this.openCallback(row), empty: 'No callback ran on either side.' };
		this.tables = { callbacks: new SortableTable({ ...options, label: 'Callbacks of both sides', columns: comparedColumns('calls') }),
			waits: new SortableTable({ ...options, label: 'Waits of both sides: from the wake to the call', columns: comparedColumns('waits') }) };
		this.tools = new StackTools(patchPanel, 'Stacks of', 'compare-find');
		this.flame = new Flame({ label: 'difference', onZoom: (zoom) => patchPanel({ zoom }) });
		this.changed = new SortableTable({ label: 'Functions whose share changed', empty: 'There are no such samples on one of the sides.', columns: [
			{ key: 'name', title: 'function', class: 'code', cell: (r) => showName(r.name) },
			{ key: 'a', title: 'A', number: true, class: 'faint', cell: (r) => showShare(r.total[0], 1) },
			{ key: 'b', title: 'B', number: true, cell: (r) => showShare(r.total[1], 1) },
			{ key: 'change', title: 'points', number: true, class: 'strong', cell: (r) => (!r.total[0] ? 'new' : !r.total[1] ? 'gone' : `${Math.abs(r.change) < 0.0005 ? '' : r.change > 0 ? '+' : '−'}${Math.abs(r.change * 100).toFixed(1)}`) },
		] });
		this.stacks = element('div', { class: 'stack-tab' }, this.tools.box, element('div', { class: 'stack-sides' }, element('div', { class: 'flame-scroll' }, this.flame.box), this.changed.box));
		this.content = element('div', { class: 'compare-content' });
		this.box = element('div', { class: 'compare-tab' }, element('div', { class: 'tools' }, this.choices, this.swap, element('span', { class: 'space' }), this.views, this.file), this.head, this.content);
		this.box.addEventListener('drop', (event) => {
			event.preventDefault();
			event.stopPropagation();
			document.body.classList.remove('drop');
			this.openFiles(event.dataTransfer.files);
		});
		this.running = 0;
	}

	async openFiles(files) {
		if (!files.length) return;
		this.status.textContent = 'Reading the other trace';
		this.head.replaceChildren(this.status);
		try {
			const { model, reported } = await loadFiles(files, (text) => {
				this.status.textContent = `Reading the other trace: ${text}`;
			}, true);
			// It names the callbacks of both sides.
			this.status.textContent = 'Asking what its functions are called';
			await reported;
			setOther(model, files[0].name);
			this.patchPanel({ open: true, tab: 'compare', compare: `file:${files[0].name}` });
		} catch (error) {
			this.status.textContent = `It cannot be read: ${showName(error.message, 300)}`;
		}
	}

	openCallback(row) {
		const entry = row.b ?? row.a, side = row.b ? this.sides.b : this.sides.a;
		this.patchPanel({ callback: side.model.callback(entry.trace, entry.site).location, view: 'stacks', zoom: [] });
	}

	showChoices() {
		const { model, range } = state, what = comparedWith().replace('!', ''), set = (compare) => this.patchPanel({ compare });
		const button = (text, compare, on) => element('button', { class: 'small', 'aria-pressed': String(on), onclick: () => set(compare) }, text);
		const mark = range ? textOfInterval(model, range) : '', focused = this.choices.contains(document.activeElement) ? document.activeElement.textContent : null;
		this.choices.replaceChildren(...[
			button('with the rest', 'rest', what === 'rest'),
			range ? button('with another range', mark, /^m\d/.test(what)) : null,
			...model.traces.slice(1).map((trace) => button(`${nameOfProcess(model.main)} with ${nameOfProcess(trace)}`, `p0~p${trace.number}`, what === `p0~p${trace.number}`)),
			element('button', { class: 'small', 'aria-pressed': String(what.startsWith('file:')), onclick: () => this.file.click() }, 'with another trace…')].filter(Boolean));
		if (focused) [...this.choices.children].find((b) => b.textContent === focused)?.focus();
		for (const view of this.views.children) view.setAttribute('aria-pressed', String(view.dataset.view === this.view));
	}

	get view() {
		return Object.hasOwn(VIEWS, state.panel.view) ? state.panel.view : 'callbacks';
	}

	show() {
		const found = sidesOf(state, comparedWith());
		this.showChoices();
		this.views.hidden = this.swap.hidden = Boolean(found.ask);
		if (found.ask) {
			this.running++;
			this.key = '';
			this.head.replaceChildren();
			this.content.replaceChildren(element('p', { class: 'quiet', role: 'status' }, found.ask));
			return;
		}
		const key = [comparedWith(), state.panel.thread, found.a.intervals.join(), found.b.intervals.join()].join('|'), same = key === this.key && this.sides?.b.model === found.b.model && this.sides.a.model === found.a.model;
		this.sides = found;
		this.key = key;
		if (same && this.compared) this.showCompared();
		else if (!same) this.compare();
	}

	compare() {
		const run = ++this.running;
		this.compared = null;
		this.content.replaceChildren(element('p', { class: 'quiet' }, 'Comparing'));
		this.head.replaceChildren();
		runInSlices(compareSteps(this.sides.a, this.sides.b), () => run === this.running, (compared) => {
			this.compared = compared;
			this.facts = [factsOfSide(this.sides.a), factsOfSide(this.sides.b)];
			this.showCompared();
		});
	}

	showHead() {
		const { compared, facts, sides } = this, told = doubts(...facts, compared), judged = compared.rows.filter((row) => row.calls && !row.calls.few).length;
		const names = compared.rows.filter((row) => row.calls?.verdict === 'slower' || row.waits?.verdict === 'slower').map((row) => showName(row.name));
		this.status.replaceChildren(element('b', {}, compared.slower ? `${compared.slower} slower in B: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}` : compared.matched < MATCHED_LEAST ? 'Too few callbacks are on both sides to say what is slower in B' : 'Nothing is slower in B'),
			`${compared.faster ? `, ${compared.faster} faster` : ''}; ${judged} of ${compared.rows.length} callbacks have enough runs.`, told.length ? ` Doubtful: ${told.join('; ')}.` : '');
		const row = (letter, side, f) => element('tr', {}, element('td', {}, element('b', {}, letter), ` ${side.label}`), ...[showDuration(f.length), showCount(f.calls), rateText(f.calls / f.length * 1e9),
			showShare(f.busy, f.length), showCount(f.lost)].map((text) => element('td', { class: 'number' }, text)));
		this.head.replaceChildren(element('table', { class: 'side-facts' }, element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, 'sides'), ...['length', 'callbacks', 'per second', 'busy', 'lost'].map((text) => element('th', { class: 'number', scope: 'col' }, text)))),
			element('tbody', {}, row('A', sides.a, facts[0]), row('B', sides.b, facts[1]))), this.status);
	}

	showCompared() {
		this.showHead();
		if (this.view === 'stacks') {
			this.content.replaceChildren(this.stacks);
			this.showStacks();
			return;
		}
		const table = this.tables[this.view];
		this.content.replaceChildren(table.box);
		table.setRows(this.compared.rows.filter((row) => this.view === 'callbacks' || row.waits));
	}

	/** The key by which the callback is matched that the panel is about, or none. */
	callbackKey() {
		const { callback } = state.panel;
		for (const side of callback ? [this.sides.b, this.sides.a] : [])
			for (const trace of side.traces) {
				const site = trace.strings.indexOf(callback);
				if (site >= 0) return callbackKey(side.nameOf(trace, site));
			}
		return '';
	}

	showStacks() {
		const { panel } = state, folded = foldSides(this.sides, panel.kind, this.callbackKey(), panel.inverted), { tree, names, a, b } = folded, amount = amountOf(folded.unit);
		const empty = !a.samples || !b.samples, changes = empty ? [] : functionsOf(tree).map((row) => ({ ...row, name: names.list[row.frame].name, change: row.total[1] - row.total[0] }));
		changes.sort((x, y) => Math.abs(y.change) - Math.abs(x.change));
		this.flame.box.hidden = empty;
		this.changed.setRows(changes);
		this.tools.show({ tree, unit: folded.unit, samples: a.samples + b.samples, of: 0 }, null);
		this.tools.share.textContent = `A ${showCount(a.samples)}, B ${showCount(b.samples)} ${PROFILE_KINDS[panel.kind].of}; blue: less in B, red: more, in points of its whole`;
		if (!empty) this.flame.show({ tree, names, zoom: panel.zoom, find: panel.find, amount, title: panel.callback ? `stacks of ${showName(this.callbackKey().split(' @ ')[0])}` : 'all stacks', inverted: panel.inverted,
			difference: (node) => tree.total[1][node] - tree.total[0][node],
			sides: [{ name: 'A', amount: (share) => amountOf(a.unit)(Math.round(share * a.sum)) }, { name: 'B', amount: (share) => amountOf(b.unit)(Math.round(share * b.sum)) }] });
	}
}

/** What the panel is compared with if nobody has said it yet. */
export function defaultCompare() {
	return comparedWith() || (state.model.traces.length > 1 ? 'p0~p1' : '');
}
