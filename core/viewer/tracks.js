// SPDX-License-Identifier: Apache-2.0
// Which tracks there are, in which order, and which are open: as the trace has it, changed by the reader.
//
// The reader's choices are plain data: {order: [ids], open: {id: bool}, folded: [groups], floor, fields:
// [{event, field, kind}]}.  The URL has them all; order and open are also kept by the browser.

import { chartTracks, chosenTrack } from './track_charts.js';
import { eventsTrack, helpersTrack, logTrack, lossTrack, spansTrack, timersTrack } from './track_items.js';

const TRACKS_KEY = 'dial9.tracks';
export const SPAN_FLOORS = [0, 50, 90, 95, 99];
const USUAL = ['timers', 'cpu', 'queue', 'spans', 'events', 'helpers', 'tasks', 'memory', 'descriptors', 'accept', 'usage'];

export const NO_CHOICES = Object.freeze({ order: [], open: {}, folded: [], floor: 0, fields: [] });

const fieldId = ({ event, field, kind }) => `field:${event}:${field}:${kind}`;

/** All tracks of a model; what was made once is kept with it. */
export function allTracks(model, choices) {
	const made = model.tracksMade ??= { base: [timersTrack(model), eventsTrack(model), helpersTrack(model), ...chartTracks(model), logTrack(model), lossTrack(model)].filter(Boolean), more: new Map() };
	const once = (key, make) => {
		if (!made.more.has(key)) made.more.set(key, make());
		return made.more.get(key);
	};
	const chosen = choices.fields.map((field) => once(fieldId(field), () => chosenTrack(model, field)));
	const spans = once(`spans ${choices.floor}`, () => spansTrack(model, choices.floor));
	return [...made.base, spans, ...chosen].filter(Boolean);
}

function rankOf(id) {
	const usual = USUAL.indexOf(id);
	return usual >= 0 ? usual : id === 'loss' ? 1000 : id === 'log' ? 999 : 100;
}

/** [{track, open}] from top to bottom. */
export function arrangeTracks(model, choices) {
	const tracks = allTracks(model, choices).sort((a, b) => rankOf(a.id) - rankOf(b.id));
	const placed = choices.order.map((id) => tracks.find((track) => track.id === id)).filter(Boolean);
	return [...placed, ...tracks.filter((track) => !placed.includes(track))].map((track) => ({ track, open: choices.open[track.id] ?? track.opens }));
}

export function findTrack(model, choices, id) {
	return allTracks(model, choices).find((track) => track.id === id) ?? null;
}

// ---- choices ----

export function toggleTrack(choices, id, open) {
	return { ...choices, open: { ...choices.open, [id]: open } };
}

/** Put track |id| |by| places further down. */
export function moveTrack(model, choices, id, by) {
	const order = arrangeTracks(model, choices).map(({ track }) => track.id), from = order.indexOf(id), to = Math.max(0, Math.min(order.length - 1, from + by));
	if (from < 0 || to === from) return choices;
	order.splice(from, 1);
	order.splice(to, 0, id);
	return { ...choices, order };
}

export function foldGroup(choices, key) {
	const folded = choices.folded.includes(key) ? choices.folded.filter((other) => other !== key) : [...choices.folded, key];
	return { ...choices, folded };
}

export function addField(choices, field) {
	return choices.fields.some((other) => fieldId(other) === fieldId(field)) ? choices : { ...choices, fields: [...choices.fields, field] };
}

export function removeField(choices, id) {
	return { ...choices, fields: choices.fields.filter((field) => fieldId(field) !== id) };
}

// ---- kept by the browser ----

function plainChoices(value) {
	const texts = (list) => (Array.isArray(list) ? list.filter((text) => typeof text === 'string') : []);
	const open = Object.entries(value?.open ?? {}).filter(([, is]) => typeof is === 'boolean');
	return { ...NO_CHOICES, order: texts(value?.order), open: Object.fromEntries(open) };
}

export function storedChoices() {
	try {
		return plainChoices(JSON.parse(localStorage.getItem(TRACKS_KEY)));
	} catch {
		return NO_CHOICES;
	}
}

export function storeChoices({ order, open }) {
	try {
		localStorage.setItem(TRACKS_KEY, JSON.stringify({ order, open }));
	} catch {
		// They last as long as the page.
	}
}

// ---- the URL ----

const splitItems = (value) => value.split(',').map(decodeURIComponent);
const joinItems = (texts) => texts.map(encodeURIComponent).join(',');

/** Items of the URL's fragment. */
export function writeChoices(choices) {
	const { order, open, folded, floor, fields } = choices, items = [];
	if (order.length) items.push(`to=${joinItems(order)}`);
	if (Object.keys(open).length) items.push(`tr=${Object.entries(open).map(([id, is]) => encodeURIComponent(id) + (is ? '+' : '-')).join(',')}`);
	if (folded.length) items.push(`h=${joinItems(folded)}`);
	if (floor) items.push(`sp=${floor}`);
	for (const { event, field, kind } of fields) items.push(`fc=${joinItems([event, field, kind])}`);
	return items;
}

/** |choices| with one item of the URL in them; null: it is none of ours or makes no sense. */
export function readChoice(choices, key, value) {
	try {
		switch (key) {
		case 'to': return { ...choices, order: splitItems(value) };
		case 'h': return { ...choices, folded: splitItems(value) };
		case 'tr': {
			const open = splitItems(value).map((text) => /^(.+)([+-])$/.exec(text));
			return open.includes(null) ? null : { ...choices, open: Object.fromEntries(open.map(([, id, sign]) => [id, sign === '+'])) };
		}
		case 'sp': return SPAN_FLOORS.includes(Number(value)) ? { ...choices, floor: Number(value) } : null;
		case 'fc': {
			const [event, field, kind, more] = splitItems(value);
			return kind && more === undefined ? addField(choices, { event, field, kind }) : null;
		}
		default: return null;
		}
	} catch {
		return null;
	}
}

export function isChoice(key) {
	return ['to', 'h', 'tr', 'sp', 'fc'].includes(key);
}

/** The selected item as text for the URL. */
export function writeItem({ track, i }) {
	return i >= 0 && track.key ? `${track.prefix}:${encodeURIComponent(track.key(i))}` : null;
}

/** The item that such a text names, or null. */
export function readItem(model, choices, text) {
	const colon = text.indexOf(':'), prefix = text.slice(0, colon);
	let key;
	try {
		key = decodeURIComponent(text.slice(colon + 1));
	} catch {
		return null;
	}
	for (const track of allTracks(model, choices)) {
		if (!track.items || track.prefix !== prefix) continue;
		for (let i = 0; i < track.items.n; i++) if (track.key(i) === key) return { track, i, time: track.items.start[i] };
	}
	return null;
}
