// SPDX-License-Identifier: Apache-2.0
// The panel under the lanes: what filled the range, or the whole trace, in tabs.

import { samplesIn } from '../toolkit/profile.js';
import { showCount, showDuration, showName, showTime } from '../toolkit/show.js';
import { byId, element } from './dom.js';
import { BlockingTab, SampleTab } from './call_lists.js';
import { TreeTab } from './call_tree.js';
import { CallbackTab } from './callback_table.js';
import { CompareTab, defaultCompare } from './compare_tab.js';
import { EventTab } from './event_tab.js';
import { FlameTab } from './flame_tab.js';
import { FunctionTab } from './function_table.js';
import { PANEL_TABS } from './panel_url.js';
import { openSave } from './save.js';
import { CLOSED_PANEL, eachRunOf, isPanelOpen, rangeOf, scopeOf, threadsOf } from './scope.js';
import { listen, setView, state, update } from './state.js';
import { WakesTab } from './wakes_tab.js';

const LEAST_HEIGHT = 120, STEP = 24, AFTER_MS = 60;

const tabs = {};
let shownTab = null, shownModel = null, timer = 0, made = false;

export function patchPanel(patch) {
	update({ panel: { ...state.panel, ...patch } });
}

/** Open the panel on the whole trace, or on |patch|. */
function openPanel(patch = {}) {
	patchPanel({ open: true, ...patch });
}

export function closePanel() {
	const focused = byId('panel').contains(document.activeElement);
	update({ range: null, rangeStart: null, panel: { ...state.panel, open: false, callback: '', thread: '', compare: '' } });
	if (focused) byId('timeline').focus({ preventScroll: true });
}

/** The name of the callback that the panel is about. */
function callbackName() {
	for (const trace of state.model.traces) {
		const site = trace.strings.indexOf(state.panel.callback);
		if (site >= 0) return state.model.callback(trace, site).name;
	}
	return showName(state.panel.callback);
}

function showHead() {
	const { model, range, panel } = state, [from, to] = rangeOf(state), digits = to - from < 1e6 ? 6 : 3;
	const time = (t) => showTime(t - model.first, model.wall(t), state.clock, digits);
	let calls = 0, all = 0, inside = 0;
	eachRunOf(state, [from, to], () => calls++);
	for (const trace of model.traces) {
		all += trace.samples.time.length;
		const scope = scopeOf(state, trace);
		if (scope) inside += samplesIn(trace, scope).length;
	}
	byId('panel-title').textContent = range ? `${showDuration(to - from)} selected` : `whole trace, ${showDuration(to - from)}`;
	byId('panel-facts').replaceChildren(...[range ? `${time(from)} to ${time(to)}` : '', `${showCount(calls)} call${calls === 1 ? '' : 's'}`,
		`${showCount(inside)} sample${inside === 1 ? '' : 's'} of ${showCount(all)}`].filter(Boolean).map((text) => element('span', {}, text)));
	byId('panel-callback').hidden = !panel.callback;
	byId('panel-callback').textContent = panel.callback ? `only ${callbackName()} ✕` : '';
	byId('panel-zoom').hidden = byId('panel-save').hidden = !range;
	fillThreads();
}

function fillThreads() {
	const select = byId('panel-thread'), threads = threadsOf(state.model);
	if (select.dataset.n !== String(threads.length))
		select.replaceChildren(element('option', { value: '' }, 'All threads'), ...threads.map((t) => element('option', { value: t.key }, t.name)));
	select.dataset.n = String(threads.length);
	select.value = state.panel.thread;
}

/** In a narrow window the tabs scroll. */
function scrollToTab(button) {
	const list = button.parentElement, box = list.getBoundingClientRect(), { left, right } = button.getBoundingClientRect();
	if (right > box.right) list.scrollLeft += right - box.right + 8;
	else if (left < box.left) list.scrollLeft -= box.left - left + 8;
}

function showPanelTabs() {
	for (const button of byId('panel-tabs').children) {
		const on = button.dataset.tab === state.panel.tab;
		button.setAttribute('aria-selected', String(on));
		button.tabIndex = on ? 0 : -1;
		if (on) scrollToTab(button);
	}
	const tab = tabs[state.panel.tab] ?? tabs.callbacks;
	if (shownTab !== tab) byId('panel-body').replaceChildren(tab.box);
	shownTab = tab;
	byId('panel-body').setAttribute('aria-labelledby', `tab-${state.panel.tab}`);
	tab.show();
}

function renderPanel() {
	timer = 0;
	const open = Boolean(state.model) && isPanelOpen(state);
	byId('panel').hidden = !open;
	document.body.classList.toggle('with-panel', open);
	if (!open) {
		shownTab = null;
		return;
	}
	setHeight(state.panel.height);
	showHead();
	showPanelTabs();
}

function heightOf() {
	return byId('panel').getBoundingClientRect().height;
}

function setHeight(height) {
	const most = Math.max(LEAST_HEIGHT, innerHeight - 200), panel = byId('panel');
	panel.style.height = height ? `${Math.min(most, Math.max(LEAST_HEIGHT, height))}px` : '';
	byId('panel-grip').setAttribute('aria-valuemax', String(most));
	byId('panel-grip').setAttribute('aria-valuenow', String(Math.round(heightOf())));
}

function startGrip() {
	const grip = byId('panel-grip');
	grip.addEventListener('pointerdown', (event) => {
		const start = event.clientY, before = heightOf();
		grip.setPointerCapture(event.pointerId);
		const move = (next) => setHeight(before + start - next.clientY);
		const end = () => {
			grip.removeEventListener('pointermove', move);
			grip.removeEventListener('pointerup', end);
			patchPanel({ height: Math.round(heightOf()) });
		};
		grip.addEventListener('pointermove', move);
		grip.addEventListener('pointerup', end);
		event.preventDefault();
	});
	grip.addEventListener('keydown', (event) => {
		if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
		event.preventDefault();
		event.stopPropagation();
		setHeight(heightOf() + (event.key === 'ArrowUp' ? STEP : -STEP));
		patchPanel({ height: Math.round(heightOf()) });
	});
}

function chooseTab(tab) {
	openPanel({ tab, ...(tab === 'compare' ? { compare: defaultCompare() } : {}) });
}

/** The next tab, or the one before. */
function stepTab(step, focus) {
	const names = Object.keys(tabs), next = names[(names.indexOf(state.panel.tab) + step + names.length) % names.length];
	chooseTab(next);
	if (focus) byId(`tab-${next}`).focus();
}

function build() {
	Object.assign(tabs, { callbacks: new CallbackTab(patchPanel), flame: new FlameTab(patchPanel), tree: new TreeTab(patchPanel), functions: new FunctionTab(patchPanel),
		wakes: new WakesTab(patchPanel), blocking: new BlockingTab(patchPanel), samples: new SampleTab(patchPanel), events: new EventTab(patchPanel), compare: new CompareTab(patchPanel) });
	const list = element('div', { class: 'tabs', role: 'tablist', id: 'panel-tabs', 'aria-label': 'What filled this time' },
		...Object.keys(tabs).map((name) => element('button', { role: 'tab', id: `tab-${name}`, 'data-tab': name, 'aria-controls': 'panel-body', onclick: () => chooseTab(name) }, PANEL_TABS[name])));
	list.addEventListener('keydown', (event) => {
		const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		if (!step) return;
		event.preventDefault();
		event.stopPropagation();
		stepTab(step, true);
	});
	const thread = element('select', { id: 'panel-thread', 'aria-label': 'Threads' });
	thread.addEventListener('change', () => patchPanel({ thread: thread.value }));
	byId('panel').replaceChildren(
		element('div', { id: 'panel-grip', class: 'grip', role: 'separator', tabindex: '0', 'aria-orientation': 'horizontal', 'aria-label': 'Height of the panel', 'aria-valuemin': String(LEAST_HEIGHT) }),
		element('div', { class: 'panel-head' }, element('h2', { id: 'panel-title' }), element('div', { class: 'panel-facts', id: 'panel-facts' }),
			element('button', { id: 'panel-callback', class: 'small link', title: 'All callbacks', onclick: () => patchPanel({ callback: '' }) }), element('span', { class: 'space' }), thread,
			element('button', { id: 'panel-zoom', class: 'small', onclick: () => setView(...state.range) }, 'Zoom in', element('kbd', {}, 'z')),
			element('button', { id: 'panel-save', class: 'small', onclick: openSave }, 'Save this range'),
			element('button', { class: 'small', 'aria-label': 'Close the panel', onclick: closePanel }, '✕')),
		list, element('div', { id: 'panel-body', class: 'panel-body', role: 'tabpanel' }));
	startGrip();
	made = true;
}

export function togglePanel() {
	if (isPanelOpen(state)) closePanel();
	else openPanel();
}

export function openCompare() {
	chooseTab('compare');
}

/** Only the loop of |lane|, or all threads again. */
export function chooseLane(lane) {
	const { key } = threadsOf(state.model).find((thread) => thread.lane === lane);
	openPanel({ thread: state.panel.thread === key ? '' : key });
}

/** Keys of the panel, for the one table of keys. */
export const PANEL_KEYS = [
	{ keys: ['o'], does: 'panel: what filled the range, or the whole trace', run: togglePanel },
	{ keys: [']'], does: 'panel: next tab', run: () => isPanelOpen(state) && stepTab(1, false) },
	{ keys: ['['], does: 'panel: tab before', run: () => isPanelOpen(state) && stepTab(-1, false) },
	{ keys: ['x'], does: 'panel: compare', run: openCompare },
	{ keys: ['i'], does: 'flame graph and call tree: from the other end', run: () => isPanelOpen(state) && patchPanel({ inverted: !state.panel.inverted, zoom: [] }) },
	{ keys: ['Ctrl+/'], does: 'panel: find a frame or a function', run: () => byId('panel-body').querySelector('input[type="search"]')?.focus() },
];

export function startPanel() {
	listen((patch) => {
		if (state.model !== shownModel) {
			shownModel = state.model;
			state.panel = { ...CLOSED_PANEL, height: state.panel.height };
		}
		if (!state.model || !['range', 'panel', 'clock', 'selected', 'view'].some((key) => key in patch)) return;
		// The view alone changes nothing in it.
		if (Object.keys(patch).length === 1 && 'view' in patch) return;
		if (!made) build();
		// While a range is being dragged its contents follow a little later.
		clearTimeout(timer);
		if (!isPanelOpen(state) || 'panel' in patch) renderPanel();
		else timer = setTimeout(renderPanel, AFTER_MS);
	});
}
