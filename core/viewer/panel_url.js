// SPDX-License-Identifier: Apache-2.0
// The panel's part of the URL: p=tab, ph=height, th=thread, cb=callback, fg=kind:frame/frame, fq=found text,
// o=order of a table, en=names of events that are hidden, cmp=what it is compared with, cv=what of it is shown.

import { PROFILE_KINDS } from '../toolkit/profile.js';
import { CLOSED_PANEL } from './scope.js';

export const PANEL_TABS = { callbacks: 'Callbacks', flame: 'Flame graph', tree: 'Call tree', functions: 'Functions', wakes: 'Wakes', blocking: 'Blocking calls', samples: 'Samples',
	events: 'Events', compare: 'Compare' };
const TEXTS = { th: 'thread', cb: 'callback', fq: 'find', o: 'order', en: 'hidden', cmp: 'compare', cv: 'view' };
const INVERTED = '-inverted';

const encodeItem = (text) => encodeURIComponent(text).replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%40', '@').replaceAll('%20', '+');
const decodeItem = (text) => decodeURIComponent(text.replaceAll('+', '%20'));

export function writePanel({ panel = CLOSED_PANEL, range }) {
	const items = [];
	if (!panel.open && !range) return items;
	items.push(`p=${panel.tab}`);
	if (panel.height) items.push(`ph=${Math.round(panel.height)}`);
	for (const [key, name] of Object.entries(TEXTS)) if (panel[name]) items.push(`${key}=${encodeItem(panel[name])}`);
	if (panel.kind !== CLOSED_PANEL.kind || panel.inverted || panel.zoom.length)
		items.push(`fg=${panel.kind}${panel.inverted ? INVERTED : ''}${panel.zoom.length ? `:${panel.zoom.map(encodeItem).join('/')}` : ''}`);
	return items;
}

/** What |key|=|value| says of the panel: a patch of it, null if it makes no sense, undefined if it is of others. */
export function readPanelItem(key, value) {
	try {
		if (key === 'p') return Object.hasOwn(PANEL_TABS, value) ? { open: true, tab: value } : null;
		if (key === 'ph') return /^\d{2,4}$/.test(value) ? { height: Number(value) } : null;
		if (Object.hasOwn(TEXTS, key)) return { [TEXTS[key]]: decodeItem(value) };
		if (key !== 'fg') return undefined;
		const at = value.indexOf(':'), word = at < 0 ? value : value.slice(0, at), inverted = word.endsWith(INVERTED), kind = inverted ? word.slice(0, -INVERTED.length) : word;
		if (!Object.hasOwn(PROFILE_KINDS, kind)) return null;
		return { kind, inverted, zoom: at < 0 ? [] : value.slice(at + 1).split('/').map(decodeItem) };
	} catch {
		return null;
	}
}
