// SPDX-License-Identifier: Apache-2.0
// What the page of many recordings shows of a bucket beside its map: the time that is looked at, what is wrong with the store or
// left out, dumps, and the addresses of what is far away, which the server fetches when they are opened.

import { showCount, showName, showSize } from '../toolkit/show.js';
import { showMoment } from './browse_map.js';
import { byId, element } from './dom.js';

export const HOUR_MS = 36e5;
const DUMPS_SHOWN = 20;
/** Hours that can be looked at, in words. */
export const LOOKS = { 1: '1 h', 6: '6 h', 24: '24 h', 168: '7 d' };
export const OPEN_BYTES_MAX = 2 ** 30;

/** [from, to] in ms of what |look| = {hours, end} means; without an end: until now. */
export function lookRange({ hours, end }) {
	const to = end ?? Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
	return [to - hours * HOUR_MS, to];
}

/** |look| so many of its lengths later; what would be the future is now. */
export function moveLook(look, by) {
	const [, to] = lookRange(look), end = to + by * look.hours * HOUR_MS;
	return { ...look, end: end > Date.now() ? null : end };
}

/** The controls of the time; |change|(look) is called with what is chosen. */
export function showLook(box, look, clock, change) {
	const [from, to] = lookRange(look), focused = box.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent : null;
	const button = (words, next, options = {}) => element('button', { onclick: () => change(next), ...options }, words);
	box.replaceChildren(button('←', moveLook(look, -1), { 'aria-label': 'earlier' }),
		...Object.entries(LOOKS).map(([hours, words]) => button(words, { ...look, hours: Number(hours) }, { 'aria-pressed': String(Number(hours) === look.hours) })),
		button('→', moveLook(look, 1), { 'aria-label': 'later', disabled: look.end === null }),
		element('span', { class: 'quiet-text' }, `${showMoment(from, HOUR_MS, clock, true)} to ${look.end === null ? 'now' : showMoment(to, HOUR_MS, clock, true)}`));
	box.hidden = false;
	if (focused) [...box.querySelectorAll('button')].find((b) => (b.getAttribute('aria-label') ?? b.textContent) === focused)?.focus();
}

/** What is not as it should be, in sentences. */
function troubles(place) {
	const told = [];
	if (place.error) told.push(element('span', { class: 'alarm' }, `The store: ${showName(place.error, 400)}. What was fetched before can still be opened.`));
	if (place.sampled) told.push('Of hours without a summary that have more segments than three lists hold, one minute in ten is shown.');
	if (place.truncated) told.push('Not everything is listed: choose less time, or a prefix.');
	if (place.strange) told.push(`${showCount(place.strange)} keys are of no form that dial9 writes, and left out.`);
	return told;
}

export function showNotice(place) {
	const box = byId('notice'), told = troubles(place), key = JSON.stringify([place.error, place.sampled, place.truncated, place.strange]);
	if (box.dataset.key === key) return;
	box.dataset.key = key;
	box.replaceChildren(...told.map((sentence) => element('p', {}, sentence)));
	box.hidden = told.length === 0;
}

/** The newest dumps; |clock| as everywhere. */
export function showDumps(place, clock) {
	const dumps = [...place.dumps].sort((a, b) => b.modified_ms - a.modified_ms);
	byId('dump-section').hidden = !dumps.length;
	byId('dumps').replaceChildren(...dumps.slice(0, DUMPS_SHOWN).map(({ id, modified_ms: at }) => element('li', {}, element('a', { href: `?dump=${encodeURIComponent(id)}` },
		`${showMoment(at, 6e4, clock, true)} `, element('span', { class: 'code' }, showName(id, 26))))));
	byId('dump-count').textContent = dumps.length > DUMPS_SHOWN ? `${DUMPS_SHOWN} of ${dumps.length}` : String(dumps.length);
}

/** The rows of the panel about the place. */
export function placeFacts(place) {
	return [['bucket', showName(`${place.url}${place.prefix ? `/${place.prefix}` : ''}`, 80)], ['asked', `${showCount(place.lists)} list${place.lists === 1 ? '' : 's'}, ${showCount(place.gets)} object${place.gets === 1 ? '' : 's'}`]];
}

function rangeQuery(processes, from, to) {
	const query = new URLSearchParams(processes.map((process) => ['process', process]));
	query.set('from_ms', String(from));
	query.set('to_ms', String(to));
	return query;
}

/** The address of what |processes| stored in [from, to). */
export function rangeUrl(processes, from, to) {
	return `?${rangeQuery(processes, from, to)}`;
}

function wallOf(from, to) {
	return `w${Math.round(from)}~${Math.round(to - from)}`;
}

/**
 * Where |window| = {from, to, processes} is compared with |kept|, another one; without one, its two recordings with each other; null:
 * it is neither.
 */
export function compareUrl(window, kept) {
	if (!window) return null;
	const { from, to, processes } = window, same = kept && kept.processes.join('\n') === processes.join('\n') && (kept.from !== from || kept.to !== to);
	if (same) {
		const query = rangeQuery(processes, from, to);
		query.set('from2_ms', String(kept.from));
		query.set('to2_ms', String(kept.to));
		return `?${query}#r=${wallOf(from, to)}&p=compare&cmp=${wallOf(kept.from, kept.to)}`;
	}
	return processes.length === 2 ? `${rangeUrl(processes, from, to)}#p=compare&cmp=p0~p1` : null;
}

/** What is chosen in words: "2 hosts, 61 segments, 54.0 MiB". */
export function placeSum(chosen) {
	const segments = chosen.reduce((sum, segment) => sum + (segment.segments ?? 1), 0), bytes = chosen.reduce((sum, segment) => sum + bytesOf(segment), 0);
	const hosts = new Set(chosen.map((segment) => segment.process)).size;
	return { bytes, hosts, words: `${hosts} host${hosts === 1 ? '' : 's'}, ${showCount(segments)} segment${segments === 1 ? '' : 's'}, ${showSize(bytes)}` };
}

/** What an hour holds: as its summary says, where that was read. */
export function bytesOf(segment) {
	return segment.stored_bytes ?? segment.bytes;
}
