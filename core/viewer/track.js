// SPDX-License-Identifier: Apache-2.0
// One track under the lanes: bands of lines over time, rows of things that happened, or both.
//
// A track is {id, title, plain, bands, items, ...}: see makeTrack().  A closed one is a strip of 24 pixels
// with its line or ticks and one figure; an open one shows everything.

import { countItems, eachCell, itemAt, nextItem } from '../toolkit/items.js';
import { showDuration, showTime, fitName } from '../toolkit/show.js';
import { drawHatch, drawTriangle } from './dom.js';
import { colours } from './theme.js';

export const STRIP_HEIGHT = 24;
const HEAD = 24, FOOT = 8;
const CELL = 6; // pixels that share one item
const ITEMS_MAX = 240; // pixels for all rows of items
const GLYPH = 7.23; // of 12 px monospace
const HIT_SLACK = 4;
const NAMED_ROW = 16;

/**
 * A track of |parts|:
 *   id, title, plain   its name in the URL, on the page, and one sentence that says what it is
 *   figure             the one figure of the closed track; |loud|: it is worth an alarm
 *   opens              it has something to say: open unless the reader closed it
 *   bands              [{name, height, lines: [{name, columns(from, to, width), at(time), text(time)}], high,
 *                      stacked, guides: [{value, name}], times: sorted times of change}]
 *   profile            the kind of stacks that say what makes it up: see PROFILE_KINDS
 *   least              its height when it is open, at least
 *   items              see finishItems(), with |rowNames| or none, |rowHeight|, label(i), tone(i), tell(i): a
 *                      sentence, call(i): {lane, row} or null, key(i) and find(key) for the URL, |prefix| there
 */
export function makeTrack(parts) {
	const track = { bands: [], items: null, rowNames: null, rowHeight: 24, least: 2 * HEAD, figure: '', loud: false, opens: false, label: () => '', tone: () => 0, call: () => null, ...parts };
	const rows = track.items?.rows ?? 0, named = track.rowNames !== null && rows * NAMED_ROW <= ITEMS_MAX;
	track.rowSize = named ? NAMED_ROW : Math.min(track.rowHeight, ITEMS_MAX / Math.max(1, rows));
	track.headed = named || track.bands.length > 1 || track.bands.some((band) => band.name);
	const top = track.headed ? HEAD : FOOT;
	let y = top;
	for (const band of track.bands) {
		band.top = y;
		y += band.height;
	}
	track.itemsTop = y;
	track.height = Math.max(track.least, Math.ceil(y + rows * track.rowSize + FOOT));
	return track;
}

/** Names beside the rows of an open track: [{text, top, height}]. */
export function trackLabels(track) {
	const labels = track.bands.filter((band) => band.name).map((band) => ({ text: band.name, top: band.top, height: band.height }));
	if (track.rowNames && track.rowSize === NAMED_ROW)
		track.rowNames.forEach((text, row) => labels.push({ text, top: track.itemsTop + row * NAMED_ROW, height: NAMED_ROW }));
	return labels;
}

// ---- drawing ----

/** A line in [top, top + height): steps, the area under it, and its extremes where columns hold many values. */
function drawLine(context, box, columns, top, height, low, high, tone, filled) {
	const { least, most } = columns, scale = height / (high - low || 1), yOf = (v) => Math.round(top + height - (v - low) * scale) + 0.5;
	context.fillStyle = context.strokeStyle = tone;
	context.lineWidth = 1.25;
	context.beginPath();
	let before = NaN;
	for (let x = 0; x < box.width; x++) {
		const v = most[x];
		if (Number.isNaN(v)) {
			before = NaN;
			continue;
		}
		const y = yOf(v);
		if (Number.isNaN(before)) context.moveTo(x, y);
		else context.lineTo(x, y);
		if (least[x] < v) context.lineTo(x, yOf(least[x]));
		context.lineTo(x + 1, yOf(least[x]));
		before = v;
	}
	context.stroke();
	if (!filled) return;
	context.globalAlpha = 0.18;
	for (let x = 0; x < box.width; x++) if (most[x] > low) context.fillRect(x, yOf(most[x]), 1, Math.max(0, top + height - yOf(most[x])));
	context.globalAlpha = 1;
}

function sumColumns(a, b) {
	return { least: a.least.map((v, x) => v + b.least[x]), most: a.most.map((v, x) => v + b.most[x]) };
}

function drawBand(context, box, band, top, height, strip) {
	const palette = colours();
	const { low = 0, high } = band;
	let below = null;
	band.lines.forEach((line, i) => {
		let columns = line.columns(box.from, box.to, Math.max(1, Math.round(box.width)));
		if (band.stacked && below) columns = sumColumns(columns, below);
		below = columns;
		const tone = strip ? palette['text-3'] : band.lines.length === 1 ? palette['text-2'] : palette.tones[i % palette.tones.length];
		drawLine(context, box, columns, top, height, low, high, tone, !strip && (band.stacked || band.lines.length === 1));
	});
	if (strip) return;
	let taken = null; // where the words of the guide before are
	for (const guide of band.guides ?? []) {
		if (guide.value > high) continue;
		const y = Math.round(top + height - (guide.value - low) / (high - low || 1) * height) + 0.5;
		context.strokeStyle = palette['text-3'];
		context.setLineDash([4, 3]);
		context.beginPath();
		context.moveTo(0, y);
		context.lineTo(box.width, y);
		context.stroke();
		context.setLineDash([]);
		const x = taken && Math.abs(taken.y - y) < 16 ? taken.x : box.width - 8;
		taken = { y, x: x - tag(context, guide.name, x, y, box.width, 'right') - 12 };
	}
}

/** Words on a canvas, readable above lines. */
function tag(context, text, x, y, width, align = 'left', ink = 'text-2') {
	const palette = colours();
	context.font = palette.sans;
	context.textBaseline = 'middle';
	const room = context.measureText(text).width, left = align === 'right' ? x - room : Math.min(x, width - room - 4);
	context.globalAlpha = 0.88;
	context.fillStyle = palette.bg;
	context.fillRect(left - 4, y - 8, room + 8, 16);
	context.globalAlpha = 1;
	context.fillStyle = palette[ink];
	context.fillText(text, left, y + 0.5);
	return room;
}

/** Bars where there is room for them, ticks else; the longest of those that share a cell stands for them. */
function drawItemRow(context, box, track, row, top, height, strip) {
	const { items } = track, { from, to, width } = box, palette = colours(), scale = width / (to - from);
	eachCell(items, row, from, to, width, strip ? 2 : CELL / 2, (i, n) => {
		const a = Math.max(-2, (items.start[i] - from) * scale), b = Math.min(width + 2, (items.end[i] - from) * scale), w = b - a;
		const tone = track.alarmed?.(i) ? palette.alarm : palette.tones[track.tone(i) % palette.tones.length];
		context.fillStyle = tone;
		if (strip || w < 3) {
			// Density: several of them are a broader tick.
			const high = Math.min(height - 2, strip ? 8 : 12);
			context.fillRect(Math.round(a), top + (height - high) / 2, n > 3 ? 2 : 1, Math.max(1, high));
			return;
		}
		drawItemBar(context, track, i, a, w, top, height, tone);
	});
}

function drawItemBar(context, track, i, a, w, top, height, tone) {
	const palette = colours(), room = Math.floor((w - 10) / GLYPH), high = Math.max(1, height - (height > 6 ? 4 : 1));
	if (track.arrows) {
		const y = Math.round(top + height / 2) + 0.5;
		context.strokeStyle = tone;
		context.lineWidth = 1.25;
		context.beginPath();
		context.moveTo(a + 0.5, y - Math.min(6, high / 2));
		context.lineTo(a + 0.5, y + Math.min(6, high / 2));
		context.moveTo(a, y);
		context.lineTo(a + w, y);
		context.moveTo(a + w - 4, y - 3);
		context.lineTo(a + w, y);
		context.lineTo(a + w - 4, y + 3);
		context.stroke();
	} else {
		// Rows of a few pixels have no room for an edge: together they would be a wall.
		context.globalAlpha = height > 6 ? 0.22 : 0.5;
		context.fillRect(a, top, Math.max(1, w - 1), high);
		context.globalAlpha = 1;
		if (height > 6) context.fillRect(a, top + high - 2, Math.max(1, w - 1), 2);
		if (track.hatched) drawHatch(context, a, top, w - 1, high, tone);
	}
	if (room < 3 || height < 14) return;
	const text = fitName(track.label(i, room), room);
	if (!text) return;
	context.font = palette.mono;
	context.textBaseline = 'middle';
	if (track.arrows || track.hatched) {
		tag(context, text, a + 12, top + (track.arrows ? height : high) / 2, Infinity, 'left', track.alarmed?.(i) ? 'alarm' : 'text-2');
		return;
	}
	context.fillStyle = palette.text;
	context.fillText(text, a + 6, top + high / 2);
}

/** Draw |track| in |box|: {top, height, width, from, to}. */
export function drawTrack(context, box, track, open) {
	const { items } = track;
	context.save();
	context.beginPath();
	context.rect(0, box.top, box.width, box.height);
	context.clip();
	if (open) {
		for (const band of track.bands) drawBand(context, box, band, box.top + band.top + 2, band.height - 6, false);
		for (let row = 0; items && row < items.rows; row++)
			drawItemRow(context, box, track, row, box.top + track.itemsTop + row * track.rowSize, track.rowSize, false);
	} else {
		if (track.bands.length) drawBand(context, box, track.bands[0], box.top + 5, 14, true);
		else for (let row = 0; items && row < Math.min(items.rows, 64); row++) drawItemRow(context, box, track, row, box.top, STRIP_HEIGHT, true);
	}
	const figure = (items && !open && countItems(items, box.from, box.to) === 0 && items.n ? 'none in view' : track.figure);
	if (figure && (!open || track.headed)) tag(context, figure, box.width - 8, box.top + 12, box.width, 'right', track.loud ? 'alarm' : 'text-2');
	context.restore();
}

/** Values at |time|, written beside the crosshair. */
export function drawValues(context, box, track, open, time) {
	const x = (time - box.from) / (box.to - box.from) * box.width + 6;
	if (!open) {
		const text = track.bands.length ? bandText(track.bands[0], time) : '';
		if (text) tag(context, text, x, box.top + 12, box.width, 'left', 'text');
		return;
	}
	for (const band of track.bands) {
		const text = bandText(band, time);
		if (text) tag(context, text, x, box.top + band.top + 10, box.width, 'left', 'text');
	}
}

function bandText(band, time) {
	const told = band.lines.map((line) => ({ line, text: line.text(time) })).filter(({ text }) => text);
	if (band.lines.length === 1) return told[0]?.text ?? '';
	const most = told.map((entry) => ({ ...entry, value: entry.line.at(time) })).sort((a, b) => b.value - a.value);
	return most.slice(0, 3).map(({ line, text }) => `${line.name} ${text}`).join(', ') + (most.length > 3 ? `, ${most.length - 3} more` : '');
}

/** The outline of the selected item. */
export function drawPicked(context, box, track, open, item) {
	const palette = colours(), { items } = track, scale = box.width / (box.to - box.from);
	context.strokeStyle = palette.accent;
	context.lineWidth = 2;
	const x = ((item.i >= 0 ? items.start[item.i] : item.time) - box.from) * scale;
	if (item.i < 0) {
		context.strokeRect(x, box.top + 2, 1, box.height - 5);
		return;
	}
	const w = Math.max(3, (items.end[item.i] - items.start[item.i]) * scale);
	const top = open ? box.top + track.itemsTop + items.row[item.i] * track.rowSize : box.top + 4, high = open ? track.rowSize : 16;
	const left = Math.max(-3, x - 1), right = Math.min(box.width + 3, x + w + 1);
	if (right > left) context.strokeRect(left, top - 1, right - left, Math.max(4, high - 2));
	if (open && track.alarmed?.(item.i)) drawTriangle(context, Math.max(4, x), top - 2, palette.alarm);
}

// ---- pointing and walking ----

/** What of a track is at a point of |box|: {track, i, time} with i -1 for a value of a line; null: nothing. */
export function hitTrack(box, track, open, x, y) {
	const { items } = track, scale = (box.to - box.from) / box.width, time = box.from + x * scale;
	if (items?.n) {
		const row = Math.floor((y - box.top - track.itemsTop) / track.rowSize);
		const rows = !open ? [...Array(Math.min(items.rows, 64)).keys()] : row >= 0 && row < items.rows ? [row] : [];
		for (const r of rows) {
			const i = itemAt(items, r, time, HIT_SLACK * scale);
			if (i >= 0) return { track, i, time: items.start[i] };
		}
	}
	const at = changeAt(track, time);
	return at === null ? null : { track, i: -1, time: at };
}

/** Since when the values at |time| hold. */
function changeAt(track, time) {
	let found = -Infinity;
	for (const band of track.bands) for (const line of band.lines) found = Math.max(found, line.since(time));
	return Number.isFinite(found) ? found : null;
}

/** The item or change of a line after or before |item|; without one the first from |time| on; null at the end. */
export function stepInTrack(track, item, direction, time) {
	if (track.items?.n) {
		const i = nextItem(track.items, item && item.i >= 0 ? item.i : -1, direction, time);
		return i < 0 ? null : { track, i, time: track.items.start[i] };
	}
	let found = direction > 0 ? Infinity : -Infinity;
	const now = item ? item.time : time;
	for (const band of track.bands)
		for (const line of band.lines) {
			const next = line.next(now, direction);
			found = direction > 0 ? Math.min(found, next) : Math.max(found, next);
		}
	return Number.isFinite(found) ? { track, i: -1, time: found } : null;
}

/** When an item is: [start, end] on the axis. */
export function timeOfItem(item) {
	return item.i < 0 ? [item.time, item.time] : [item.track.items.start[item.i], item.track.items.end[item.i]];
}

/** The sentence that says what |item| is; |clock| as in showTime(). */
export function tellItem(model, item, clock) {
	const { track } = item, [start, end] = timeOfItem(item), at = showTime(start - model.first, model.wall(start), clock, 6);
	if (item.i >= 0) return `${track.tell(item.i)}${end - start >= 1 && !track.arrows ? `, ${showDuration(end - start)}` : ''}, at ${at}`;
	const values = track.bands.map((band) => [band.name, bandText(band, start) || 'not known'].filter(Boolean).join(' ')).join('; ');
	return `${track.title}: ${values}, at ${at}`;
}
