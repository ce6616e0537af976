// SPDX-License-Identifier: Apache-2.0
// What the chosen segments hold: the segments themselves, their callbacks together, and their stacks together.

import { durationClass, showCount, showDuration, showName, showShare, showSize } from '../toolkit/show.js';
import { browse, browseChanged, refreshSoon, scopeQuery, segmentsInWindow, viewerUrl } from './browse.js';
import { showMoment } from './browse_map.js';
import { bytesOf, rangeUrl } from './browse_place.js';
import { element, firstOf } from './dom.js';

const BROWSE_ROWS = 300;
const ASK_AFTER_MS = 150;

let asked = { url: '', answer: null, version: -1 };
let askTimer = 0;

function compareBy({ key, down }) {
	const sign = down ? -1 : 1;
	return (a, b) => {
		const [x, y] = [a[key] ?? '', b[key] ?? ''];
		return sign * (typeof x === 'string' || typeof y === 'string' ? String(x).localeCompare(String(y), 'en', { numeric: true }) : x - y);
	};
}

/** A heading that sorts |table|. */
function sortHead(name, key, table, numeric = true) {
	const order = browse.orders[table], now = order.key === key;
	return element('th', { class: numeric ? 'number' : '', scope: 'col', 'aria-sort': now ? (order.down ? 'descending' : 'ascending') : 'none' },
		element('button', { class: 'sort', onclick: () => {
			browse.orders[table] = { key, down: now ? !order.down : key !== 'process' && key !== 'name' && key !== 'source' };
			browseChanged();
		} }, `${name}${now ? (order.down ? ' ↓' : ' ↑') : ''}`));
}

function longestCell(ns) {
	return element('td', { class: 'number' }, ns ? element('i', { class: `swatch k${durationClass(ns)}` }) : null, ns ? showDuration(ns) : '–');
}

// ---- segments ----

function stateOf(segment) {
	const [finding] = segment.findings ?? [];
	if (segment.lie) return element('td', { class: 'wide alarm' }, `not what its name says: ${showName(segment.lie, 200)}`);
	if (segment.state === 'failed') return element('td', { class: 'wide alarm' }, `cannot be read: ${showName(segment.why ?? '', 200)}`);
	if (segment.process === undefined) return element('td', { class: 'wide faint' }, 'being read …');
	if (segment.damaged) return element('td', { class: 'wide' }, `damaged: ${showName(segment.message ?? '', 200)}`);
	if (finding) {
		const said = finding.brief ? [element('span', { class: 'code' }, showName(finding.name)), ` ${showName(finding.brief)}`] : [showName(finding.message, 200)];
		return element('td', { class: 'wide' }, element('i', { class: 'triangle', 'aria-hidden': 'true' }), ...said);
	}
	if (segment.kind === 'hour') return element('td', { class: segment.missing ? 'wide' : 'wide faint' }, `an hour of ${showCount(segment.segments)} segment${segment.segments === 1 ? '' : 's'}${segment.missing ? `, ${showCount(segment.missing)} missing` : ''}`);
	if (segment.state === 'listed') return element('td', { class: 'wide faint' }, 'not read');
	if (segment.active) return element('td', { class: 'wide' }, 'still being written');
	return segment.truncated ? element('td', { class: 'wide' }, 'not closed properly') : element('td', { class: 'wide faint' }, 'none');
}

/** Of a bucket: an hour or a segment, with the way to it. */
function farRow(segment, labels) {
	const read = segment.bins !== undefined, length = (segment.to_ms - segment.from_ms) * 1e6, isHour = segment.kind === 'hour';
	const url = isHour ? rangeUrl([segment.process], segment.from_ms, segment.to_ms) : viewerUrl([segment]);
	return element('tr', {}, element('td', {}, element('a', { href: url, 'aria-label': `Open ${showName(segment.name)}` }, 'open')), element('td', { class: 'label', title: showName(segment.name) }, labels.get(segment.process) ?? ''),
		element('td', {}, showMoment(segment.from_ms, isHour ? 6e4 : 1000, browse.clock)), element('td', { class: 'number' }, isHour ? '1 h' : read ? showDuration(length) : ''),
		element('td', { class: 'number' }, read ? showCount(segment.events) : ''), element('td', { class: 'number' }, showSize(bytesOf(segment))),
		element('td', { class: 'number' }, read ? showShare(segment.busy_ns, length * Math.max(1, segment.loops)) : ''), longestCell(segment.longest_ns), stateOf(segment));
}

function segmentRow(segment, labels) {
	if (browse.archive.place) return farRow(segment, labels);
	const known = segment.process !== undefined, length = (segment.to_ms - segment.from_ms) * 1e6, ticked = !browse.left.has(segment.name);
	const tick = element('input', { type: 'checkbox', 'aria-label': `Open ${showName(segment.name)}`, disabled: !known });
	tick.checked = known && ticked;
	tick.addEventListener('change', () => {
		if (tick.checked) browse.left.delete(segment.name);
		else browse.left.add(segment.name);
		browseChanged();
	});
	return element('tr', { class: known && ticked ? 'ticked' : '' }, element('td', {}, tick), element('td', { class: 'label', title: showName(segment.name) }, known ? labels.get(segment.process) : showName(segment.name, 40)),
		element('td', {}, known ? showMoment(segment.from_ms, 1000, browse.clock) : ''), element('td', { class: 'number' }, known ? showDuration(length) : ''),
		element('td', { class: 'number' }, known ? showCount(segment.events) : ''), element('td', { class: 'number' }, showSize(segment.bytes)),
		element('td', { class: 'number' }, known ? showShare(segment.busy_ns, length * Math.max(1, segment.loops)) : ''), longestCell(segment.longest_ns), stateOf(segment));
}

export function showSegments(panel) {
	const labels = new Map(browse.rows.map((row) => [row.process, showName(row.label, 40)]));
	const head = (name, key, numeric) => sortHead(name, key, 'segments', numeric);
	const known = segmentsInWindow().sort(compareBy(browse.orders.segments)), unplaced = browse.window ? [] : browse.archive.unplaced;
	const all = [...known, ...unplaced];
	panel.replaceChildren(element('table', { class: 'sorted' }, element('caption', { class: 'hidden-text' }, 'Segments that are chosen'),
		element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, element('span', { class: 'hidden-text' }, 'open')), head('host', 'process', false), head('began', 'from_ms', false), element('th', { class: 'number', scope: 'col' }, 'length'),
			head('events', 'events'), head('size', 'bytes'), head('busy', 'busy_ns'), head('longest', 'longest_ns'), element('th', { scope: 'col' }, 'finding'))),
		element('tbody', {}, ...firstOf(all, BROWSE_ROWS, (segment) => segmentRow(segment, labels), 'segments', true))));
}

// ---- what the server adds up ----

/** "412 of 500 segments", and why not all. */
function coverageLine({ segments, read, waiting, failed, left_out: leftOut, not_fetched: notFetched = 0 }) {
	const why = [notFetched ? `${notFetched} not fetched: choose less` : '', waiting ? `${waiting} not read yet` : '', failed ? `${failed} cannot be read` : '', leftOut ? `${leftOut} not kept: the server's memory for them is used up` : ''].filter(Boolean);
	return element('p', { class: `coverage${read < segments ? ' partial' : ''}` }, `${read} of ${segments} ${browse.archive.place ? 'hours and ' : ''}segments${why.length ? `: ${why.join(', ')}` : ''}`);
}

/** Ask |kind| about what is chosen, and call |take|(answer) now with what is known and again when it comes. */
function askServer(kind, panel, take) {
	const url = `api/${kind}?${scopeQuery()}`;
	if (asked.url === url && asked.answer) take(asked.answer);
	else panel.replaceChildren(element('p', { class: 'quiet', role: 'status' }, 'Adding up …'));
	if (asked.url === url && asked.version === browse.archive.version) return;
	asked = { url, answer: asked.url === url ? asked.answer : null, version: browse.archive.version };
	clearTimeout(askTimer);
	askTimer = setTimeout(async () => {
		try {
			const response = await fetch(url), answer = response.ok ? await response.json() : null;
			if (asked.url !== url) return;
			if (!answer) throw new Error(`the server answers ${response.status}`);
			asked.answer = answer;
			take(answer);
			if (answer.coverage.waiting && browse.archive.place) refreshSoon();
		} catch (error) {
			panel.replaceChildren(element('p', { class: 'quiet alarm', role: 'status' }, showName(error.message, 300)));
		}
	}, ASK_AFTER_MS);
}

/** Where the longest call of a callback is: its segment in the viewer, with the call selected. */
function placeUrl(callback) {
	const known = browse.archive.segments.get(callback.segment), segment = known?.kind === 'hour' ? null : known, around = BigInt(Math.max(1000, Math.round(callback.longest_ns * 5)));
	if (!segment && !browse.archive.place) return null;
	const from = BigInt(callback.at_ns) - (around - BigInt(callback.longest_ns)) / 2n;
	return viewerUrl([segment ?? { path: encodeURIComponent(callback.segment) }], `v=m${from > 0n ? from : 0n}~${around}&s=poll:${callback.worker}@${callback.at_ns}`);
}

function callbackRow(callback, whole, named) {
	const url = placeUrl(callback), longest = showDuration(callback.longest_ns);
	return element('tr', {}, element('td', { class: 'label code' }, showName(callback.name || '(no name)')), named ? element('td', { class: 'label faint code' }, showName(callback.source ?? '')) : null,
		element('td', { class: 'number' }, showCount(callback.calls)), element('td', { class: 'number' }, showDuration(callback.total_ns)), element('td', { class: 'number' }, showShare(callback.total_ns, whole)),
		element('td', { class: 'number' }, showDuration(callback.p50_ns)), element('td', { class: 'number' }, showDuration(callback.p99_ns)),
		element('td', { class: 'number' }, element('i', { class: `swatch k${durationClass(callback.longest_ns)}` }), url ? element('a', { href: url, title: `${showName(callback.segment)}: open this call` }, longest) : longest),
		element('td', { class: 'number' }, String(callback.segments)));
}

/** The table |kind| of |list|, of which |more_ns| is left out. */
function sumsTable(kind, list, moreNs, words) {
	const whole = list.reduce((sum, callback) => sum + callback.total_ns, 0) + moreNs, named = kind === 'callbacks';
	const head = (name, key, numeric) => sortHead(name, key, kind, numeric);
	const rows = [...list].sort(compareBy(browse.orders[kind]));
	return element('table', { class: 'sorted' }, element('caption', { class: 'hidden-text' }, `${words} of the chosen segments`),
		element('thead', {}, element('tr', {}, head(named ? 'callback' : 'span', 'name', false), named ? head('source', 'source', false) : null, head(named ? 'calls' : 'passes', 'calls'), head('time', 'total_ns'), element('th', { class: 'number', scope: 'col' }, 'share'),
			head('p50', 'p50_ns'), head('p99', 'p99_ns'), head('longest', 'longest_ns'), head('segments', 'segments'))),
		element('tbody', {}, ...firstOf(rows, BROWSE_ROWS, (callback) => callbackRow(callback, whole, named), kind, true)));
}

function fillCallbacks(panel, answer) {
	panel.replaceChildren(coverageLine(answer.coverage), sumsTable('callbacks', answer.callbacks, answer.left_out_ns, 'Callbacks'),
		...(answer.left_out_calls ? [element('p', { class: 'quiet small' }, `${showCount(answer.left_out_calls)} calls of rare callbacks took ${showDuration(answer.left_out_ns)} more.`)] : []));
}

export function showCallbacks(panel) {
	askServer('callbacks', panel, (answer) => {
		if (browse.tab === 'callbacks') fillCallbacks(panel, answer);
	});
}

export function showSpans(panel) {
	askServer('spans', panel, (answer) => {
		if (browse.tab !== 'spans') return;
		panel.replaceChildren(coverageLine(answer.coverage), answer.spans.length ? sumsTable('spans', answer.spans, 0, 'Spans') : element('p', { class: 'quiet' }, 'No span is told of in these segments.'));
	});
}

// ---- stacks ----

/** Nodes as objects: {name, kind, total, own, children}, most samples first; the root's name is empty. */
function treeOf(flat) {
	const nodes = [{ name: '', kind: 0, total: 0, own: 0, children: [] }];
	for (let i = 0; i + 3 < flat.length; i += 4) {
		const node = { name: flat[i + 3], kind: flat[i + 1], own: flat[i + 2], total: flat[i + 2], children: [], parent: nodes[flat[i]] ?? nodes[0] };
		nodes.push(node);
		node.parent.children.push(node);
	}
	for (let i = nodes.length - 1; i > 0; i--) nodes[i].parent.total += nodes[i].total;
	for (const node of nodes) node.children.sort((a, b) => b.total - a.total);
	return nodes[0];
}

/** A frame with those that it called, opened while it has most of the samples. */
function frameItem(node, whole, opened) {
	const share = element('span', { class: 'share' }, showShare(node.total, whole)), name = element('span', { class: 'code' }, showName(node.name));
	const bar = element('span', { class: 'measure', 'aria-hidden': 'true' });
	bar.style.setProperty('--part', `${100 * node.total / whole}%`);
	if (!node.children.length) return element('li', {}, element('span', { class: 'leaf' }, share, bar, name));
	const details = element('details', {}, element('summary', {}, share, bar, name));
	const fill = () => {
		if (details.open && details.childElementCount === 1) details.append(element('ul', {}, ...node.children.map((child) => frameItem(child, whole, child.total > whole / 4))));
	};
	details.addEventListener('toggle', fill);
	details.open = opened;
	fill();
	return element('li', {}, details);
}

function fillStacks(panel, answer) {
	const root = treeOf(answer.nodes);
	if (!root.total) {
		panel.replaceChildren(coverageLine(answer.coverage), element('p', { class: 'quiet' }, 'No stack was sampled in these segments: `dial9 record` samples unless DIAL9_CPU=off, or the kernel forbids it (`dial9 doctor`).'));
		return;
	}
	panel.replaceChildren(coverageLine(answer.coverage), element('p', { class: 'quiet small' }, `${showCount(root.total)} samples on the CPU; each frame with those that it called.`),
		element('ul', { class: 'tree' }, ...root.children.map((node) => frameItem(node, root.total, node.total > root.total / 4))));
}

export function showStacks(panel) {
	askServer('stacks', panel, (answer) => {
		if (browse.tab === 'flame') fillStacks(panel, answer);
	});
}
