// SPDX-License-Identifier: Apache-2.0
// The search box: callbacks by name, place or location, most time first; a number finds a task.

import { pollsOfTask } from '../toolkit/index.js';
import { showCount, showDuration } from '../toolkit/show.js';
import { byId, element } from './dom.js';
import { selectCall, state, update } from './state.js';

const SHOWN = 20;
let matches = [], marked = 0;

function findMatches(text) {
	const found = state.model.search(text);
	if (!/^\d+$/.test(text)) return found;
	for (const trace of state.model.traces) {
		const calls = pollsOfTask(trace, Number(text));
		if (!calls.length) continue;
		const lane = state.model.lanes.find((l) => l.trace === trace && l.worker === trace.workers[calls[0][0]]);
		found.unshift({ name: `task ${text}`, source: '', site: '', n: calls.length, longest: 0, lane, row: calls[0][1] });
	}
	return found;
}

function choose(i) {
	const match = matches[i];
	if (!match) return;
	close();
	selectCall(match.lane, match.row, true);
	byId('timeline').focus({ preventScroll: true });
}

function close() {
	byId('results').hidden = true;
	byId('search').setAttribute('aria-expanded', 'false');
}

function render() {
	const list = byId('results'), text = byId('search').value.trim();
	matches = text && state.model ? findMatches(text) : [];
	marked = Math.min(marked, Math.max(0, matches.length - 1));
	list.hidden = !text;
	byId('search').setAttribute('aria-expanded', String(!list.hidden));
	if (matches.length) byId('search').setAttribute('aria-activedescendant', `result-${marked}`);
	else byId('search').removeAttribute('aria-activedescendant');
	list.replaceChildren(...matches.slice(0, SHOWN).map((match, i) => element('li', { id: `result-${i}`, role: 'option', 'aria-selected': i === marked ? 'true' : 'false', onclick: () => choose(i) },
		element('span', { class: 'code' }, match.name), element('span', { class: 'small' }, `${showCount(match.n)} calls${match.longest ? `, longest ${showDuration(match.longest)}` : ''}`))));
	if (!text) return;
	if (!matches.length) list.append(element('li', { role: 'option', 'aria-disabled': 'true' }, 'No callback has that in its name or place.'));
	if (matches.length > SHOWN) list.append(element('li', { class: 'small', role: 'option', 'aria-disabled': 'true' }, `and ${matches.length - SHOWN} more`));
	byId('speech').textContent = `${matches.length} callbacks`;
}

export function startSearch() {
	const box = byId('search');
	box.addEventListener('input', () => {
		marked = 0;
		update({ query: box.value.trim() });
		render();
	});
	box.addEventListener('focus', render);
	box.addEventListener('keydown', (event) => {
		if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
			marked = Math.max(0, Math.min(matches.length - 1, marked + (event.key === 'ArrowDown' ? 1 : -1)));
			render();
		} else if (event.key === 'Enter') {
			choose(marked);
		} else if (event.key === 'Escape') {
			close();
			byId('timeline').focus({ preventScroll: true });
		} else {
			return;
		}
		event.preventDefault();
	});
	addEventListener('pointerdown', (event) => {
		if (!event.target.closest('.find')) close();
	});
}
