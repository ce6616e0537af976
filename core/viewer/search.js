// SPDX-License-Identifier: Apache-2.0
// The search box, its list of results by kind, and the marks of what was found in lanes and minimap.

import { showCount } from '../toolkit/show.js';
import { byId, element } from './dom.js';
import { eachFound, findAll, foundCalls, nearestNames } from './find.js';
import { listen, state, update } from './state.js';
import { colours } from './theme.js';

const KIND_SHOWN = 8, SEARCH_AFTER_MS = 120;
let chosen = [], marked = 0, searchTimer = 0;
let wholeKind = ''; // of which all that was found is listed
let foundMarks = null; // {model, query, found, columns, n}

function choose(i) {
	const match = chosen[i];
	if (!match) return;
	if (match.kind) {
		wholeKind = match.kind;
		renderResults();
		return;
	}
	if (match.query !== undefined) {
		byId('search').value = match.query;
		update({ query: match.query });
		renderResults();
		return;
	}
	closeResults();
	match.go();
	byId('timeline').focus({ preventScroll: true });
}

function closeResults() {
	byId('results').hidden = true;
	byId('search').setAttribute('aria-expanded', 'false');
}

function optionOf(match, i) {
	return element('li', { id: `result-${i}`, role: 'option', 'aria-selected': i === marked ? 'true' : 'false', onclick: () => choose(i) },
		element('span', { class: 'code' }, match.name), element('span', { class: 'small' }, match.note));
}

function heading(text, note) {
	return element('li', { class: 'small kind', role: 'option', 'aria-disabled': 'true' }, element('span', {}, text), element('span', {}, note));
}

function renderResults() {
	const list = byId('results'), text = byId('search').value.trim(), kinds = text && state.model ? findAll(state.model, text) : [], rows = [];
	chosen = [];
	for (const { kind, results } of kinds) {
		rows.push(heading(kind, showCount(results.length)));
		const shown = kind === wholeKind ? results.length : KIND_SHOWN;
		for (const result of results.slice(0, shown)) rows.push(optionOf(result, chosen.push(result) - 1));
		if (results.length > shown) rows.push(optionOf({ name: `all ${showCount(results.length)} ${kind}`, note: '' }, chosen.push({ kind }) - 1));
	}
	if (text && state.model && !kinds.length) {
		const names = nearestNames(state.model, text);
		rows.push(heading(`Nothing is called that.${names.length ? ' The nearest names:' : ''}`, ''));
		for (const name of names) rows.push(optionOf({ name, note: '' }, chosen.push({ query: name }) - 1));
	}
	marked = Math.min(marked, Math.max(0, chosen.length - 1));
	list.hidden = !text;
	byId('search').setAttribute('aria-expanded', String(!list.hidden));
	list.replaceChildren(...rows);
	markResult();
	if (text) byId('speech').textContent = kinds.map(({ kind, results }) => `${results.length} ${kind}`).join(', ') || 'nothing found';
}

function markResult() {
	for (const option of byId('results').querySelectorAll('[aria-selected]')) {
		const current = option.id === `result-${marked}`;
		option.setAttribute('aria-selected', String(current));
		if (current) option.scrollIntoView({ block: 'nearest' });
	}
	if (chosen.length) byId('search').setAttribute('aria-activedescendant', `result-${marked}`);
	else byId('search').removeAttribute('aria-activedescendant');
}

// ---- marks ----

/** What the query means in this model, and in which of |n| columns of the whole trace it is. */
function marksOf(model, query, n) {
	if (!foundMarks || foundMarks.model !== model || foundMarks.query !== query) foundMarks = { model, query, found: foundCalls(model, query), n: 0 };
	if (foundMarks.n !== n) {
		const columns = new Uint8Array(n), scale = n / (model.last - model.first);
		for (const lane of model.lanes)
			eachFound(foundMarks.found, lane, -Infinity, Infinity, (row) => {
				columns[Math.min(n - 1, Math.max(0, Math.floor((lane.polls.start[row] + lane.shift - model.first) * scale)))] = 1;
			});
		Object.assign(foundMarks, { columns, n });
	}
	return foundMarks;
}

/** Mark what the search has found: a line below the calls in the lanes, and below the minimap. */
export function drawFound(rows, width) {
	const { model, query } = state;
	if (!model || !query) return;
	const { found, columns } = marksOf(model, query, Math.max(1, Math.floor(width / 2))), map = byId('minimap').getContext('2d'), context = byId('mark-canvas').getContext('2d');
	if (!found.sites.size) return;
	const [from, to] = state.view, scale = width / (to - from), { scrollTop } = byId('scroll');
	map.fillStyle = context.fillStyle = colours().accent;
	columns.forEach((marks, x) => marks && map.fillRect(x * 2, 56, 2, 3));
	for (const row of rows) {
		if (row.kind !== 'lane') continue;
		let last = -1;
		eachFound(found, row.lane, from, to, (i) => {
			const start = row.lane.polls.start[i] + row.lane.shift, x = Math.floor((start - from) * scale), end = Math.max(x + 2, (start + row.lane.polls.dur[i] - from) * scale);
			if (end <= last + 1) return;
			context.fillRect(Math.max(0, x), row.top - scrollTop + Math.min(row.height - 3, Math.round(row.height * 0.7)), end - x, 3);
			last = end;
		});
	}
}

/** What is typed now, which the list may not show yet. */
function searchNow() {
	clearTimeout(searchTimer);
	searchTimer = 0;
	update({ query: byId('search').value.trim() });
	renderResults();
}

export function startSearch() {
	const box = byId('search');
	listen((patch) => {
		if ('model' in patch) foundMarks = null;
	});
	box.addEventListener('input', () => {
		marked = 0;
		wholeKind = '';
		clearTimeout(searchTimer);
		searchTimer = setTimeout(searchNow, SEARCH_AFTER_MS);
	});
	box.addEventListener('focus', renderResults);
	box.addEventListener('keydown', (event) => {
		if (searchTimer && /^(ArrowDown|ArrowUp|Enter)$/.test(event.key)) searchNow();
		if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
			marked = Math.max(0, Math.min(chosen.length - 1, marked + (event.key === 'ArrowDown' ? 1 : -1)));
			markResult();
		} else if (event.key === 'Enter') {
			choose(marked);
		} else if (event.key === 'Escape') {
			closeResults();
			byId('timeline').focus({ preventScroll: true });
		} else {
			return;
		}
		event.preventDefault();
	});
	addEventListener('pointerdown', (event) => {
		if (!event.target.closest('.find')) closeResults();
	});
}
