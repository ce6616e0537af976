// SPDX-License-Identifier: Apache-2.0
// The page of many recordings: services, a heat map of their segments, and what the chosen ones hold.

import { showCount, showDuration, showName, showSize } from '../toolkit/show.js';
import { Archive, areHours, columnsOf, fillCells, NO_SERVICE, segmentsIn, spanOfRows } from './browse_data.js';
import { fillBrowseHelp, startBrowseKeys } from './browse_keys.js';
import { cellUnder, drawMap, layoutMap, METRICS, metricsOf, showMoment } from './browse_map.js';
import { compareUrl, HOUR_MS, LOOKS, lookRange, OPEN_BYTES_MAX, placeFacts, placeSum, rangeUrl, showDumps, showLook, showNotice } from './browse_place.js';
import { showCallbacks, showSegments, showSpans, showStacks } from './browse_tables.js';
import { byId, element } from './dom.js';
import { startTheme, switchTheme } from './theme.js';

const REFRESH_MS = 1000, LISTING_MS = 250, IDLE_REFRESH_MS = 5000, SAID_AFTER_MS = 300;
const PAGE_BYTES = 256 * 2 ** 20, OPEN_MAX = 1000;
const DATE_MAX = 864e13; // ms before and after 1970 that a Date can be
export const TABS = { segments: ['Segments', showSegments], callbacks: ['Callbacks', showCallbacks], flame: ['Flame graph', showStacks], spans: ['Spans', showSpans] };

const ORDER_ITEM = /^(segments|callbacks|spans)~(\w+)~(up|down)$/;

function firstOrders() {
	return { segments: { key: 'longest_ns', down: true }, callbacks: { key: 'total_ns', down: true }, spans: { key: 'total_ns', down: true } };
}

/**
 * window: {from, to, processes} that is chosen, or null; cursor: {row, column}; span: [from, to] that the map shows, or
 * null for all; left: names of segments that the reader has taken out; orders: of the rows of tables; look: {hours, end} of a
 * bucket, and kept: the window that the next one is compared with.
 */
export const browse = { archive: new Archive(), name: '', service: null, metric: 'longest', tab: 'segments', clock: 'local', span: null, window: null,
	cursor: { row: 0, column: 0 }, anchor: null, left: new Set(), orders: firstOrders(), rows: [], columns: null, layout: null,
	look: { hours: 24, end: null }, kept: null };

let drawn = false, said = 0, touched = false, firstRead = true, refreshTimer = 0;

// ---- what is chosen ----

/** The window in cells of the map: {left, right, top, bottom}, or null. */
function selectionOf() {
	const { window, columns, rows } = browse;
	if (!window) return null;
	const inside = rows.map((row, i) => (window.processes.includes(row.process) ? i : -1)).filter((i) => i >= 0);
	if (!inside.length) return null;
	const column = (ms) => Math.floor((ms - columns.from) / columns.length);
	return { left: Math.max(0, column(window.from)), right: Math.min(columns.n - 1, column(window.to - 1e-3)), top: inside[0], bottom: inside.at(-1) };
}

/** Recordings that are chosen: all where there is no window. */
function chosenRows() {
	return browse.window ? browse.rows.filter((row) => browse.window.processes.includes(row.process)) : browse.rows;
}

export function segmentsInWindow() {
	const [from, to] = browse.window ? [browse.window.from, browse.window.to] : [-Infinity, Infinity];
	return segmentsIn(chosenRows(), from, to);
}

/** The query of what the server adds up. */
export function scopeQuery() {
	const query = new URLSearchParams();
	for (const row of chosenRows()) query.append('process', row.process);
	if (browse.window) {
		query.set('from_ms', String(browse.window.from));
		query.set('to_ms', String(browse.window.to));
	}
	return query;
}

/** The page of |segments|; |place| is a fragment of the viewer's. */
export function viewerUrl(segments, place = '') {
	return `?${segments.map(({ path }) => `trace=segment/${path}`).join('&')}${place ? `#${place}` : ''}`;
}

/** Choose the cells from |a| to |b|. */
function chooseCells(a, b) {
	const { columns, rows } = browse, left = Math.min(a.column, b.column), right = Math.max(a.column, b.column);
	const top = Math.min(a.row, b.row), bottom = Math.max(a.row, b.row);
	browse.window = { from: columns.from + left * columns.length, to: columns.from + (right + 1) * columns.length,
		processes: rows.slice(top, bottom + 1).map((row) => row.process) };
	browse.left.clear();
	touched = true;
	browseChanged();
}

export function clearWindow() {
	browse.window = null;
	browse.anchor = null;
	browse.left.clear();
	touched = true;
	browseChanged();
}

/** The window of the worst call of the service, of what is read. */
function chooseWorst() {
	let worst = null;
	browse.rows.forEach((row, k) => row.cells.forEach((cell, i) => {
		if (!worst || Boolean(cell.finding) > Boolean(worst.cell.finding) || (Boolean(cell.finding) === Boolean(worst.cell.finding) && cell.longest > worst.cell.longest))
			worst = { cell, row: k, column: i };
	}));
	if (!worst) return;
	browse.cursor = { row: worst.row, column: worst.column };
	browse.anchor = { ...browse.cursor };
	chooseCells(worst, worst);
	touched = false;
}

export function chooseService(name) {
	browse.service = name;
	browse.span = browse.window = browse.anchor = null;
	layOut();
	chooseWorst();
	touched = true;
	browseChanged();
}

export function zoomToWindow(whole) {
	browse.span = !whole && browse.window ? [browse.window.from, browse.window.to] : null;
	layOut();
	browseChanged();
}

/** Move the cursor; |choosing| stretches the window from where the last one began. */
export function moveCursor(rows, columns, choosing) {
	const { cursor } = browse, before = { ...cursor };
	cursor.row = Math.min(Math.max(0, cursor.row + rows), browse.rows.length - 1);
	cursor.column = Math.min(Math.max(0, cursor.column + columns), browse.columns.n - 1);
	browse.anchor = choosing ? browse.anchor ?? before : null;
	if (choosing) chooseCells(browse.anchor, cursor);
	else browseChanged();
}

export function openChosen() {
	const link = byId('open-chosen');
	if (link.getAttribute('href')) link.click();
}

// ---- the URL ----

function readPair(text) {
	const [from, to] = text.split('~').map(Number);
	return from >= -DATE_MAX && to <= DATE_MAX && to > from ? [from, to] : null;
}

function takeFragment() {
	const items = new URLSearchParams(location.hash.slice(1));
	browse.service = items.get('svc');
	browse.metric = Object.hasOwn(METRICS, items.get('m') ?? '') ? items.get('m') : 'longest';
	browse.tab = Object.hasOwn(TABS, items.get('t') ?? '') ? items.get('t') : 'segments';
	browse.clock = items.get('c') === 'utc' ? 'utc' : 'local';
	browse.span = readPair(items.get('z') ?? '');
	const pair = readPair(items.get('w') ?? '');
	browse.window = pair && { from: pair[0], to: pair[1], processes: items.getAll('p') };
	browse.left = new Set(items.getAll('x'));
	browse.look = { hours: Object.hasOwn(LOOKS, items.get('h') ?? '') ? Number(items.get('h')) : 24, end: /^\d{12,14}$/.test(items.get('e') ?? '') ? Number(items.get('e')) : null };
	browse.orders = firstOrders();
	for (const item of items.getAll('o')) {
		const [, table, key, way] = ORDER_ITEM.exec(item) ?? [];
		if (table) browse.orders[table] = { key, down: way === 'down' };
	}
	touched = browse.service !== null;
}

function keepFragment() {
	const items = new URLSearchParams(), { window } = browse;
	if (browse.service !== null && browse.service !== NO_SERVICE) items.set('svc', browse.service);
	if (browse.metric !== 'longest') items.set('m', browse.metric);
	if (browse.tab !== 'segments') items.set('t', browse.tab);
	if (browse.clock !== 'local') items.set('c', browse.clock);
	if (browse.look.hours !== 24) items.set('h', String(browse.look.hours));
	if (browse.look.end) items.set('e', String(browse.look.end));
	if (browse.span) items.set('z', browse.span.join('~'));
	if (window) {
		items.set('w', `${window.from}~${window.to}`);
		for (const process of window.processes) items.append('p', process);
	}
	for (const name of browse.left) items.append('x', name);
	for (const [table, { key, down }] of Object.entries(firstOrders())) {
		const now = browse.orders[table];
		if (now.key !== key || now.down !== down) items.append('o', `${table}~${now.key}~${now.down ? 'down' : 'up'}`);
	}
	const hash = `#${items}`;
	if (hash !== location.hash) history.replaceState(null, '', hash);
}

// ---- panels ----

function serviceItem(service) {
	const { name, hosts, processes, findings, longest, last } = service, wrong = findings > 0;
	const places = hosts.size > 1 ? `${hosts.size} hosts` : `${processes.size} recording${processes.size === 1 ? '' : 's'}`;
	return element('li', {}, element('button', { class: 'service', 'aria-current': browse.service === name ? 'true' : false, onclick: () => chooseService(name) },
		element('b', {}, showName(name, 60)),
		element('span', { class: `figure${wrong ? ' alarm' : ''}` }, wrong ? element('i', { class: 'triangle', 'aria-hidden': 'true' }) : null, longest ? showDuration(longest) : '–'),
		element('span', { class: 'small' }, `${places}${wrong ? `, ${findings} finding${findings === 1 ? '' : 's'}` : ''}`),
		element('span', { class: 'small' }, last ? showMoment(last, 60000, browse.clock) : '')));
}

function showServices() {
	const services = browse.archive.services();
	byId('service-count').textContent = String(services.length);
	byId('services').replaceChildren(...services.map(serviceItem));
	const { place } = browse.archive;
	if (place) {
		showNotice(place);
		showDumps(place, browse.clock);
		showLook(byId('look'), browse.look, browse.clock, changeLook);
	}
	byId('everything').hidden = Boolean(place);
	const hosts = new Set(browse.archive.known.map((segment) => segment.host)).size;
	const recordings = new Set(browse.archive.known.map((segment) => segment.process)).size;
	const facts = [`${services.length} service${services.length === 1 ? '' : 's'}`, `${hosts} host${hosts === 1 ? '' : 's'}`, `${recordings} recordings`, showName(browse.name, 60)];
	byId('facts').replaceChildren(...facts.flatMap((fact, i) => (i ? [element('i', {}, '·'), fact] : [fact])));
}

function showStorage() {
	const all = [...browse.archive.segments.values()], bytes = all.reduce((sum, segment) => sum + segment.bytes, 0);
	const failed = all.filter((segment) => segment.state === 'failed').length, open = all.filter((segment) => segment.active).length;
	const cut = browse.archive.known.filter((segment) => segment.damaged || (segment.truncated && !segment.active)).length;
	const rows = [['place', showName(browse.name, 60)], ['kept', `${all.length} segments, ${showSize(bytes)}`], ['read', `${all.length - browse.archive.reading - failed} of ${all.length}`]];
	if (browse.archive.place) {
		const { words } = placeSum(browse.archive.known);
		rows.splice(0, 3, ...placeFacts(browse.archive.place), ['kept', words], ['read', `${all.filter((segment) => segment.state === 'known').length} of ${all.length}`]);
	}
	if (open) rows.push(['open', `${open} still being written`]);
	if (cut) rows.push(['cut', `${cut} damaged or partial`]);
	if (failed) rows.push(['failed', `${failed} cannot be read`]);
	byId('storage').replaceChildren(...rows.flatMap(([term, value]) => [element('dt', {}, term), element('dd', { class: term === 'failed' ? 'alarm' : '' }, value)]));
}

function showMetrics() {
	const { place } = browse.archive;
	if (!metricsOf(place).includes(browse.metric)) browse.metric = 'longest';
	byId('metrics').replaceChildren(...metricsOf(place).map((key) => [key, METRICS[key]]).map(([key, { name }]) => element('button', { 'aria-pressed': String(key === browse.metric), onclick: () => {
		browse.metric = key;
		browseChanged();
	} }, name)));
	const steps = METRICS[browse.metric].steps.map((step, i) => element('span', {}, element('i', { class: `k${i + 2}` }), step));
	byId('legend').replaceChildren(element('span', {}, METRICS[browse.metric].words), ...steps, element('span', { class: 'bar' }),
		element('span', {}, element('i', { class: 'empty' }), 'nothing stored'), ...(place ? [element('span', {}, element('i', { class: 'k0' }), 'not read')] : []), element('span', { class: 'opt' }, element('i', { class: 'torn' }), 'damaged or partial'),
		element('span', {}, element('i', { class: 'triangle' }), 'finding'), element('span', { class: 'space' }),
		element('span', { class: 'opt' }, browse.columns ? `one cell is ${lengthInWords(browse.columns.length)} of one recording` : ''));
}

function lengthInWords(ms) {
	const [n, unit] = ms >= 36e5 ? [ms / 36e5, 'hour'] : ms >= 6e4 ? [ms / 6e4, 'minute'] : ms >= 1000 ? [ms / 1000, 'second'] : [ms, 'ms'];
	return `${n}\u2009${unit}${n === 1 || unit === 'ms' ? '' : 's'}`;
}

function showTabs() {
	byId('tabs').replaceChildren(...Object.entries(TABS).map(([key, [name]]) => element('button', { role: 'tab', id: `tab-${key}`, 'aria-selected': String(key === browse.tab),
		'aria-controls': 'below', onclick: () => {
			browse.tab = key;
			browseChanged();
			byId(`tab-${key}`).focus();
		} }, name)));
	byId('below').setAttribute('aria-label', TABS[browse.tab][0]);
}

/** Of a bucket: the server lists and fetches it when it is opened. */
function showFarChosen(inside) {
	const { window, kept } = browse, link = byId('open-chosen'), { bytes, hosts, words } = placeSum(inside), much = bytes > OPEN_BYTES_MAX, compare = much ? null : compareUrl(window, kept);
	byId('chosen').textContent = `${words}${bytes > PAGE_BYTES ? `; a page shows the newest ${showSize(PAGE_BYTES)}` : ''}${kept ? '; A is kept' : ''}`;
	link.textContent = much ? `At most ${showSize(OPEN_BYTES_MAX)}` : window ? `Open ${hosts} host${hosts === 1 ? '' : 's'}` : 'Choose what to open';
	if (window && inside.length && !much) link.href = rangeUrl(window.processes, window.from, window.to);
	else link.removeAttribute('href');
	byId('keep').hidden = !window;
	byId('compare-chosen').hidden = !compare;
	if (compare) byId('compare-chosen').href = compare;
}

/** What is chosen, and the link to it. */
function showChosen() {
	const inside = segmentsInWindow(), chosen = inside.filter((segment) => !browse.left.has(segment.name));
	const bytes = chosen.reduce((sum, segment) => sum + segment.bytes, 0), { window, columns } = browse, rows = chosenRows();
	const link = byId('open-chosen'), many = chosen.length > OPEN_MAX;
	const names = rows.length ? rows.length > 1 ? `${showName(rows[0].label, 30)} to ${showName(rows.at(-1).label, 30)}` : showName(rows[0].label, 40) : '';
	byId('window').textContent = window ? `${showMoment(window.from, columns.length, browse.clock)} to ${showMoment(window.to, columns.length, browse.clock)}, ${names}` : 'Everything';
	if (browse.archive.place) {
		showFarChosen(inside);
		return;
	}
	byId('chosen').textContent = `${inside.length} segment${inside.length === 1 ? '' : 's'}, ${showSize(bytes)}${chosen.length < inside.length ? `, ${chosen.length} chosen` : ''}`
		+ `${bytes > PAGE_BYTES ? `; a page shows the newest ${showSize(PAGE_BYTES)}` : ''}`;
	link.textContent = many ? `At most ${showCount(OPEN_MAX)} segments` : `Open ${chosen.length} segment${chosen.length === 1 ? '' : 's'}`;
	if (chosen.length && !many) link.href = viewerUrl(chosen);
	else link.removeAttribute('href');
}

/** The cell under the cursor in words. */
function sentenceOfCell({ row, column }) {
	const { rows, columns, metric, clock } = browse, of = rows[row], cell = of?.cells[column];
	if (!of) return 'Nothing stored';
	const when = `${showName(of.label, 40)}, ${showMoment(columns.from + column * columns.length, columns.length, clock)} to ${showMoment(columns.from + (column + 1) * columns.length, columns.length, clock)}`;
	if (!cell) return `${when}: nothing stored`;
	const finding = cell.finding ? `; ${showName(cell.finding.message, 160)}` : '';
	return `${when}: ${METRICS[metric].tell(cell)}${cell.cut ? ', damaged or partial' : ''}${cell.open ? ', still being written' : ''}${finding}`;
}

function sayCell() {
	const text = sentenceOfCell(browse.cursor);
	byId('cell').setAttribute('aria-label', text);
	byId('under').textContent = text;
	clearTimeout(said);
	said = setTimeout(() => {
		byId('speech').textContent = text;
	}, SAID_AFTER_MS);
}

// ---- drawing ----

/** Rows, columns and cells of the service. */
function layOut() {
	browse.rows = browse.archive.recordings(browse.service);
	const [from, to] = browse.span ?? spanOfRows(browse.rows);
	browse.columns = columnsOf(from, to, undefined, areHours(browse.rows) && !browse.span ? HOUR_MS : 0);
	fillCells(browse.rows, browse.columns);
	browse.cursor.row = Math.min(browse.cursor.row, Math.max(0, browse.rows.length - 1));
	browse.cursor.column = Math.min(browse.cursor.column, browse.columns.n - 1);
}

function drawBrowse() {
	drawn = false;
	if (!browse.columns) return;
	const box = byId('map');
	browse.layout = layoutMap(Math.max(200, box.clientWidth - 32), browse.rows, browse.columns, innerHeight > 860);
	drawMap(byId('map-canvas'), browse.layout, { ...browse, selection: selectionOf(), cursor: document.activeElement === box ? browse.cursor : null });
}

function redrawBrowse() {
	if (drawn) return;
	drawn = true;
	requestAnimationFrame(drawBrowse);
}

/** Something was chosen: all panels and the URL follow. */
export function browseChanged() {
	showServices();
	showStorage();
	showMetrics();
	showTabs();
	if (browse.columns) {
		const [from, to] = [browse.columns.from, browse.columns.from + browse.columns.n * browse.columns.length];
		byId('service').textContent = showName(browse.service ?? '', 60);
		byId('shown').textContent = browse.archive.place && !browse.rows.length ? wordsOfNothing(browse.archive) : `${browse.rows.length} recording${browse.rows.length === 1 ? '' : 's'}, ${showMoment(from, browse.columns.length, browse.clock, true)} to ${showMoment(to, browse.columns.length, browse.clock)}`;
		showChosen();
		sayCell();
		TABS[browse.tab][1](byId('below'));
	}
	byId('clock').textContent = browse.clock === 'utc' ? 'UTC' : 'local';
	const { reading, segments } = browse.archive;
	byId('read').textContent = reading ? `reading: ${segments.size - reading} of ${segments.size} segments known` : `${segments.size} of ${segments.size} segments known`;
	keepFragment();
	redrawBrowse();
}

// ---- following the server ----

/** Show what the archive has of the service that was chosen; of the first one where none was, or where it is gone. */
function settleService() {
	const { archive } = browse, names = archive.services().map((service) => service.name);
	if (touched && !archive.reading && !archive.listing && !names.includes(browse.service)) {
		browse.span = browse.window = null;
		touched = false;
	}
	if (!touched) browse.service = names[0] ?? null;
	layOut();
	if (!touched && browse.rows.length) chooseWorst();
	else browseChanged();
}

/** A bucket is called by its name before anything of it is listed. */
async function learnName() {
	const { place } = browse.archive;
	browse.name = place ? place.name : (await (await fetch('api/segments')).json()).name;
	document.title = `${browse.name} - dial9`;
}

/** Why there is no row. */
function wordsOfNothing({ listing, place }) {
	return listing ? 'Listing …' : place.error ? 'Not known: the store does not answer' : 'Nothing is stored in this time';
}

async function refreshBrowse() {
	const { archive } = browse;
	let changed = false;
	archive.range = lookRange(browse.look);
	try {
		changed = await archive.refresh();
		if (!browse.name) await learnName();
		byId('message').hidden = true;
	} catch (error) {
		byId('message').replaceChildren(element('p', { class: 'strong' }, 'The server does not answer.'), element('p', {}, showName(error.message, 300)),
			element('p', { class: 'small' }, 'Start `dial9 serve DIR` again, and open the address that it prints.'));
		byId('message').hidden = false;
	}
	if (changed || firstRead) {
		settleService();
		firstRead = false;
	}
	if (!archive.reading && !archive.listing) document.body.dataset.ready = 'true';
	refreshIn(archive.listing ? LISTING_MS : archive.reading ? REFRESH_MS : IDLE_REFRESH_MS);
}

function refreshIn(ms) {
	clearTimeout(refreshTimer);
	refreshTimer = setTimeout(refreshBrowse, ms);
}

/** The server has begun to read something that was asked for. */
export function refreshSoon() {
	refreshIn(LISTING_MS);
}

/** Look at another time of a bucket. */
function changeLook(look) {
	browse.look = look;
	browse.span = browse.window = null;
	touched = browse.service !== null;
	keepFragment();
	firstRead = true;
	refreshBrowse();
}

// ---- the mouse ----

function startMouse() {
	const box = byId('map'), canvas = byId('map-canvas'), tooltip = byId('tooltip');
	let from = null;
	const at = (event) => {
		const frame = canvas.getBoundingClientRect();
		return browse.layout && cellUnder(browse.layout, browse.rows, browse.columns, event.clientX - frame.left, event.clientY - frame.top);
	};
	box.addEventListener('pointerdown', (event) => {
		from = at(event);
		if (!from) return;
		box.setPointerCapture(event.pointerId);
		browse.cursor = { ...from };
		browse.anchor = event.shiftKey ? browse.anchor ?? from : from;
		chooseCells(browse.anchor, from);
	});
	box.addEventListener('pointermove', (event) => {
		const cell = at(event);
		if (from && cell) {
			browse.cursor = { ...cell };
			chooseCells(browse.anchor, cell);
		}
		tooltip.hidden = !cell || Boolean(from);
		if (!cell) return;
		tooltip.textContent = sentenceOfCell(cell);
		tooltip.style.left = `${Math.min(event.clientX + 14, innerWidth - tooltip.offsetWidth - 8)}px`;
		tooltip.style.top = `${event.clientY + 18}px`;
	});
	box.addEventListener('pointerup', () => {
		from = null;
	});
	box.addEventListener('pointerleave', () => {
		tooltip.hidden = true;
	});
	box.addEventListener('dblclick', openChosen);
	box.addEventListener('focus', redrawBrowse);
	box.addEventListener('blur', redrawBrowse);
}

export function switchBrowseClock() {
	browse.clock = browse.clock === 'utc' ? 'local' : 'utc';
	browseChanged();
}

async function startBrowse() {
	startTheme(redrawBrowse);
	takeFragment();
	byId('theme').addEventListener('click', () => switchTheme(redrawBrowse));
	byId('clock').addEventListener('click', switchBrowseClock);
	byId('help').addEventListener('click', () => byId('keys').showModal());
	fillBrowseHelp(byId('keys'));
	byId('keep').addEventListener('click', () => {
		browse.kept = browse.window;
		browseChanged();
	});
	startBrowseKeys();
	startMouse();
	new ResizeObserver(redrawBrowse).observe(byId('map'));
	addEventListener('hashchange', () => {
		takeFragment();
		settleService();
	});
	refreshBrowse();
}

startBrowse();
