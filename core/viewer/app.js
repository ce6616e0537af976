// SPDX-License-Identifier: Apache-2.0
// The page: starts everything, draws what has changed once per frame, keeps the URL.

import { showCount, showDuration, showName, showTime } from '../toolkit/show.js';
import { byId, element } from './dom.js';
import { isEmbedded, loadEmbedded } from './embedded.js';
import { sentenceOfFire, showDetail } from './detail.js';
import { markFinding, showFindings, showFiredTimes } from './finding_list.js';
import { startInput } from './input.js';
import { showEmpty } from './empty.js';
import { fillHelp, startKeys } from './keys.js';
import { drawRuler } from './lanes.js';
import { endFollowing, loadLive, switchFollowing, tellLive } from './live.js';
import { loadFiles, loadServed } from './load.js';
import { hideMessage, showFailure, showProgress } from './loading.js';
import { drawMinimap } from './minimap.js';
import { openSave } from './save.js';
import { fileOfFragment, hashOfFiles, keepPlace, placeOfFile } from './places.js';
import { openCompare, patchPanel, startPanel, togglePanel } from './panel.js';
import { CLOSED_PANEL, isPanelOpen } from './scope.js';
import { drawFound, startSearch } from './search.js';
import { clampView, listen, selectFinding, selectFire, setView, state, update } from './state.js';
import { sentenceOfThing } from './thing.js';
import { startTheme, switchTheme } from './theme.js';
import { bringIntoSight, drawTimeline, drawTimelineMarks, layTimeline, tellSelection, timelineRows } from './timeline.js';
import { storedChoices } from './tracks.js';
import { intervalOfQuery, readFragment, writeFragment } from './url.js';

const CLOCKS = { rel: 'relative', local: 'local', utc: 'UTC' };
const URL_EVERY_MS = 250, SPEECH_AFTER_MS = 300;

let drawWanted = false, urlTimer = 0, speechTimer = 0;
let keptItems = [];
let restoring = false; // the URL has led here, or will
let opening = false; // the page has led here: that is the same place as no fragment
let pushWanted = false;
let shownFile = ''; // the hash of the reader's own file that is shown
let awaited = ''; // the address's fragment, where it is about a file that is not open yet

function draw() {
	drawWanted = false;
	const { model } = state;
	if (!model) return;
	const width = Math.max(1, byId('lanes').clientWidth);
	drawMinimap(byId('minimap'), state, width, 59);
	drawRuler(byId('ruler'), state, width, 27);
	drawTimeline();
	drawFound(timelineRows(), width);
	const [from, to] = state.view, whole = model.last - model.first;
	byId('length').textContent = `${showDuration(to - from)} in view`;
	byId('in-view').textContent = `${showDuration(to - from)} of ${showDuration(whole)}, from ${showTime(from - model.first, model.wall(from), state.clock, 3)}`;
}

function redraw() {
	if (drawWanted) return;
	drawWanted = true;
	requestAnimationFrame(draw);
}

/** Only what follows the pointer. */
function redrawPointer() {
	drawRuler(byId('ruler'), state, Math.max(1, byId('lanes').clientWidth), 27);
	drawTimelineMarks();
	drawFound(timelineRows(), Math.max(1, byId('lanes').clientWidth));
}

// ---- the URL ----

/** Selecting and jumping make an entry of the history, moving about replaces it. */
function keepUrl(push) {
	if (restoring) return;
	pushWanted ||= push && !opening;
	clearTimeout(urlTimer);
	urlTimer = setTimeout(() => {
		const text = writeFragment(state, keptItems), fragment = text && `#${text}`;
		if (shownFile) keepPlace(shownFile, fragment);
		if (fragment !== location.hash) history[pushWanted ? 'pushState' : 'replaceState'](null, '', fragment || location.pathname + location.search);
		pushWanted = false;
	}, URL_EVERY_MS);
}

/** Take over what the URL says; whether it says anything. */
function restoreUrl() {
	const { patch, kept, wrong } = readFragment(state.model, location.hash.slice(1));
	keptItems = kept;
	if (wrong.length) byId('loaded').textContent = `not in this trace: ${showName(wrong.join(', '))}`;
	if (!Object.keys(patch).length) return false;
	if (patch.view) patch.view = clampView(state.model, ...patch.view);
	if (patch.finding >= state.model.findings.length) delete patch.finding;
	if (patch.fire >= state.model.fires.length) delete patch.fire;
	restoring = true;
	// What it does not say is as at the start.
	update({ selected: null, range: null, finding: -1, clock: 'rel', query: '', panel: CLOSED_PANEL, ...patch });
	restoring = false;
	byId('search').value = state.query;
	// One that a report links to.
	if ('fire' in patch && !patch.view) selectFire(patch.fire);
	return true;
}

// ---- what is said ----

function speak(text) {
	clearTimeout(speechTimer);
	speechTimer = setTimeout(() => {
		byId('speech').textContent = text;
	}, SPEECH_AFTER_MS);
}

function showHeader() {
	const { model } = state, facts = byId('facts'), events = model.traces.reduce((sum, trace) => sum + trace.events, 0);
	const lost = model.traces.reduce((sum, trace) => sum + trace.lost, 0), damaged = model.traces.some((trace) => trace.segments.some((segment) => segment.error));
	const unread = model.traces.some((trace) => trace.segments.some((segment) => segment.unread));
	const killed = (model.report?.trace.processes ?? []).filter((process) => process.killed).length;
	const full = model.traces.some((trace) => trace.segments.some((segment) => segment.full)), cut = !model.source.live && model.traces.some((trace) => trace.segments.some((segment) => segment.cut));
	const doubt = lost ? `${showCount(lost)} events lost` : full ? 'not all of it fits' : damaged ? 'damaged' : unread ? 'parts missing' : '';
	const parts = [doubt && element('button', { class: 'link alarm', title: 'What it does to the figures', onclick: openAbout }, doubt),
		showDuration(model.last - model.first), `${model.lanes.length} loop${model.lanes.length === 1 ? '' : 's'}`, `${showCount(events)} events`, doubt ? null : cut ? 'its end is missing' : 'nothing lost',
		killed && `${model.traces.length > 1 ? `${killed} processes ` : ''}killed or left by _exit()`];
	facts.replaceChildren(...parts.filter(Boolean).flatMap((part, i) => (i ? [element('i', {}, '·'), part] : [part])));
	byId('service').textContent = model.title;
	document.title = `${model.title} - dial9`;
	const { source } = model;
	if (source.live) byId('loaded').textContent = tellLive(model);
	else byId('loaded').textContent = source.segments > 1 ? `${source.shown} of ${source.segments} segments` : '';
	byId('clock').textContent = CLOCKS[state.clock];
}

/** Nothing selected: the detail is about the trace. */
function openAbout() {
	update({ selected: null, range: null, finding: -1 });
	byId('detail').focus({ preventScroll: true });
}

function showSelected() {
	const text = tellSelection() || (state.fire >= 0 ? sentenceOfFire(state.model.fires[state.fire]) : state.thing ? sentenceOfThing(state.thing) : state.range ? `${showDuration(state.range[1] - state.range[0])} selected` : 'Nothing selected');
	byId('selected').textContent = text;
	byId('item').setAttribute('aria-label', text);
	byId('clear').hidden = !state.selected && !state.range && !state.item && !state.thing && state.fire < 0;
	speak(text);
}

function showLegend() {
	const classes = ['< 1 µs', '1 µs', '10', '100 µs', '1 ms', '10', '≥ 100 ms'].map((text, i) => element('span', {}, element('i', { class: `k${i}` }), text));
	byId('legend').append(element('span', {}, 'Callback ran for'), ...classes, element('span', { class: 'bar' }),
		element('span', {}, element('i', { class: 'part-blocked' }), 'kernel made it wait'), element('span', {}, element('i', { class: 'idle' }), 'waiting for events'), element('span', {}, element('i', { class: 'cut' }), 'end not recorded'),
		element('span', {}, element('i', { class: 'ticks' }), 'sample'), element('span', {}, element('i', { class: 'triangle' }), 'finding'), element('span', { id: 'legend-fired', hidden: true }, element('i', { class: 'flag' }), 'trigger fired'));
}

function changed(patch) {
	if (!state.model) return;
	const keys = Object.keys(patch);
	// The detail is of what was chosen last.
	if (patch.range || patch.selected) state.rangeLast = Boolean(patch.range);
	if (keys.length === 1 && keys[0] === 'pointer') {
		redrawPointer();
		return;
	}
	if ('tracks' in patch) layTimeline();
	if ('selected' in patch || 'item' in patch || 'thing' in patch || 'range' in patch || 'clock' in patch || 'finding' in patch || 'fire' in patch) {
		showDetail(byId('detail'));
		showSelected();
		bringIntoSight();
	}
	if ('finding' in patch || 'fire' in patch) markFinding(byId('findings'));
	if ('clock' in patch) showFiredTimes(byId('findings'));
	if ('clock' in patch || 'following' in patch) showHeader();
	keepUrl('selected' in patch || 'item' in patch || 'thing' in patch || 'range' in patch || 'panel' in patch);
	redraw();
}

// ---- loading ----

/** What the query names, else the first trigger that fired, for which all this was kept, else the worst finding, or the whole trace where there is none. */
function openFirst() {
	const asked = intervalOfQuery(state.model, location.search);
	if (asked) {
		setView(...asked);
		return;
	}
	// Those of each process are in the order of their times.
	const { fires } = state.model, fired = fires.reduce((first, { at }, i) => (at < (fires[first]?.at ?? Infinity) ? i : first), -1);
	if (fired >= 0) {
		selectFire(fired);
		return;
	}
	const worst = state.model.findings.findIndex((finding) => finding.first && finding.severity !== 'info');
	if (worst >= 0) selectFinding(worst, false);
	else setView(state.model.first, state.model.last);
}

function takeModel(model) {
	// Of the trace before it.
	clearTimeout(urlTimer);
	state.model = model;
	state.tracks = storedChoices();
	layTimeline();
	// Where the URL leads is known once there are findings, which may take long: it stays until then.
	restoring = true;
	update({ view: clampView(model, model.first, model.last), selected: null, finding: -1, range: null, pointer: null });
	restoring = false;
	showHeader();
	showEmpty(byId('empty'), model);
	showFindings(byId('findings'));
	showDetail(byId('detail'));
	hideMessage();
	redraw();
}

/** A newer state of what is being written, at the same place of the page; what has the focus keeps it. */
function takeNewer(model) {
	state.model = model;
	layTimeline();
	showHeader();
	showEmpty(byId('empty'), model);
	for (const [id, show] of [['findings', showFindings], ['detail', showDetail]])
		if (!byId(id).contains(document.activeElement)) show(byId(id));
}

/** What is being written opens at its end, unless the URL names a place. */
function openLive(follow) {
	follow(takeNewer, () => {
		showFindings(byId('findings'));
		redraw();
	});
	restoreUrl();
	document.body.dataset.ready = 'true';
}

/** Once there are findings: the place that the URL names, if it was of this trace, else the first that the page leads to. */
function openPlace(model, fromUrl) {
	if (state.model !== model) return;
	showHeader();
	showFindings(byId('findings'));
	layTimeline();
	opening = true;
	if (!fromUrl || !restoreUrl()) openFirst();
	opening = false;
	document.body.dataset.ready = 'true';
}

/** A file of the reader's opens where it was left, or where the address that they followed leads. */
async function openFiles(files) {
	if (!files.length) return;
	showProgress('', 0);
	// What is read for it would take the worker away.
	if (state.following) switchFollowing();
	try {
		const hash = await hashOfFiles(files), { model, reported } = await loadFiles(files, showProgress), fragment = fileOfFragment(awaited) === hash ? awaited : placeOfFile(hash);
		if (state.model?.source.live) endFollowing();
		takeModel(model);
		shownFile = hash;
		keptItems = [`file=${hash}`];
		if (fragment) history.replaceState(null, '', fragment);
		await reported;
		openPlace(model, Boolean(fragment));
	} catch (error) {
		showFailure(error);
	}
}

function startOpening() {
	byId('open').addEventListener('click', () => byId('picker').click());
	byId('picker').addEventListener('change', () => {
		const files = [...byId('picker').files];
		// So that the same one can be picked again.
		byId('picker').value = '';
		openFiles(files);
	});
	addEventListener('dragover', (event) => {
		event.preventDefault();
		document.body.classList.add('drop');
	});
	addEventListener('dragleave', () => document.body.classList.remove('drop'));
	addEventListener('drop', (event) => {
		event.preventDefault();
		document.body.classList.remove('drop');
		openFiles(event.dataTransfer.files);
	});
}

/** In other colours: also what is drawn once, in the detail and in the panel. */
function repaint() {
	redraw();
	if (!state.model) return;
	showDetail(byId('detail'));
	if (isPanelOpen(state)) patchPanel({});
}

function startButtons() {
	byId('theme').addEventListener('click', () => switchTheme(repaint));
	byId('clock').addEventListener('click', () => {
		const names = Object.keys(CLOCKS);
		update({ clock: names[(names.indexOf(state.clock) + 1) % names.length] });
	});
	byId('help').addEventListener('click', () => byId('keys').showModal());
	byId('profile').addEventListener('click', () => state.model && togglePanel());
	byId('compare').addEventListener('click', () => state.model && openCompare());
	byId('about').addEventListener('click', openAbout);
	byId('save').addEventListener('click', openSave);
	byId('follow').addEventListener('click', switchFollowing);
	byId('clear').addEventListener('click', () => update({ selected: null, range: null, finding: -1 }));
}

async function start() {
	startTheme(repaint);
	listen(changed);
	showLegend();
	fillHelp(byId('keys'));
	startKeys();
	startInput(timelineRows);
	startSearch();
	startPanel();
	startButtons();
	startOpening();
	new ResizeObserver(redraw).observe(byId('scroll'));
	byId('scroll').addEventListener('scroll', redraw, { passive: true });
	addEventListener('popstate', () => state.model && restoreUrl());
	showProgress('', 0);
	try {
		const { model, reported, follow } = await (isEmbedded() ? loadEmbedded : loadServed)(showProgress, loadLive);
		takeModel(model);
		if (follow) {
			openLive(follow);
			return;
		}
		await reported;
		awaited = fileOfFragment(location.hash) ? location.hash : '';
		openPlace(model, !awaited);
		if (awaited) byId('loaded').textContent = 'The address is about a file of yours: open it to go there';
	} catch (error) {
		showFailure(error);
	}
}

start();
