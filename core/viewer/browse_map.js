// SPDX-License-Identifier: Apache-2.0
// The heat map: recordings by time, each cell in the colour of the longest callback in it, or of what else is asked for.

import { durationClass, fitName, showDuration, showName, showShare, showSize } from '../toolkit/show.js';
import { busyShare } from './browse_data.js';
import { drawHatch, drawTriangle, prepareCanvas } from './dom.js';
import { colours } from './theme.js';

const MAP_TOP = 34, MAP_LEFT = 104, MAP_BOTTOM = 8;
const TICK_EVERY_PX = 90;

const NOT_READ = 0; // the class of what only a key tells

/** The class of |cell| by |limits|, 2 and more; of what is not read yet another. */
function classBy(limits, value, known) {
	return known ? limits.filter((limit) => value >= limit).length + 2 : NOT_READ;
}

/** What a cell can show: a class of 0 to 6, and in words; |far|: only of a bucket. */
export const METRICS = {
	longest: { name: 'longest callback', words: 'Longest callback', classOf: (cell) => (cell.unread && !cell.longest ? NOT_READ : Math.max(2, durationClass(cell.longest))),
		tell: (cell) => (cell.longest ? `longest callback ${showDuration(cell.longest)}` : cell.unread ? 'not read' : 'no callback'), steps: ['< 100 µs', '100 µs', '1 ms', '10', '≥ 100 ms'] },
	busy: { name: 'busy', words: 'Time in callbacks', classOf: (cell) => classBy([0.05, 0.25, 0.5, 0.8], busyShare(cell), !cell.unread),
		tell: (cell) => (cell.unread ? 'not read' : `${showShare(busyShare(cell), 1)} busy`), steps: ['< 5 %', '5 %', '25 %', '50 %', '≥ 80 %'] },
	lost: { name: 'lost', words: 'Events lost', classOf: (cell) => classBy([1, 100, 1e4, 1e6], cell.lost, cell.lost || !cell.unread),
		tell: (cell) => (cell.lost ? `${cell.lost} events lost` : cell.unread ? 'not read' : 'nothing lost'), steps: ['none', '1', '100', '10 k', '≥ 1 M'] },
	bytes: { name: 'bytes', far: true, words: 'Stored', classOf: (cell) => classBy([2 ** 16, 2 ** 20, 2 ** 24, 2 ** 28], cell.bytes, true), tell: (cell) => `${showSize(Math.round(cell.bytes))} stored`,
		steps: ['< 64 KiB', '64 KiB', '1 MiB', '16', '≥ 256 MiB'] },
	missing: { name: 'missing', far: true, words: 'Segments missing', classOf: (cell) => classBy([1, 2, 10, 30], cell.missing, true),
		tell: (cell) => (cell.missing ? `${cell.missing} segments missing` : 'nothing missing'), steps: ['none', '1', '2', '10', '≥ 30'] },
};

/** Those that can be shown: of a bucket all. */
export function metricsOf(place) {
	return Object.keys(METRICS).filter((key) => place || !METRICS[key].far);
}

/** Where everything is, for |width| px and |rows| recordings: {left, top, cell, row, height}. */
export function layoutMap(width, rows, columns, tall) {
	const row = rows.length > 24 ? 16 : tall ? 24 : 18;
	return { left: MAP_LEFT, top: MAP_TOP, row, cell: Math.max(1, (width - MAP_LEFT) / columns.n), height: MAP_TOP + Math.max(1, rows.length) * row + MAP_BOTTOM, width };
}

/** {row, column} under a point of the canvas; null: none. */
export function cellUnder(layout, rows, columns, x, y) {
	const column = Math.floor((x - layout.left) / layout.cell), row = Math.floor((y - layout.top) / layout.row);
	return column >= 0 && column < columns.n && row >= 0 && row < rows.length ? { row, column } : null;
}

/** "10:04", or with seconds where cells are shorter than a minute. */
export function showMoment(ms, length, clock, withDate = false) {
	const date = new Date(ms), utc = clock === 'utc';
	const part = (name, size = 2) => String(utc ? date[`getUTC${name}`]() : date[`get${name}`]()).padStart(size, '0');
	const day = withDate || length >= 864e5 ? `${part('Date')} ${date.toLocaleString('en', { month: 'short', timeZone: utc ? 'UTC' : undefined })} ` : '';
	const seconds = length < 60000 ? `:${part('Seconds')}${length < 1000 ? `.${part('Milliseconds', 3)}` : ''}` : '';
	return `${day}${part('Hours')}:${part('Minutes')}${seconds}`;
}

function drawTimes(context, layout, columns, clock, palette) {
	const every = Math.max(1, Math.ceil(TICK_EVERY_PX / layout.cell));
	context.font = palette.sans;
	context.textBaseline = 'middle';
	for (let i = 0; i < columns.n; i += every) {
		const x = Math.round(layout.left + i * layout.cell);
		context.fillStyle = palette['text-2'];
		if (x + 48 < layout.width || i === 0) context.fillText(showMoment(columns.from + i * columns.length, columns.length, clock), x, layout.top - 13);
		context.fillStyle = palette['line-2'];
		context.fillRect(x, layout.top - 5, 1, 4);
	}
}

function drawCell(context, cell, x, y, width, height, metric, palette) {
	if (!cell) {
		context.strokeStyle = palette['line-2'];
		context.lineWidth = 1;
		context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), height - 1);
		return;
	}
	context.fillStyle = palette.classes[metric.classOf(cell)];
	context.fillRect(x, y, width, height);
	if (cell.cut) drawHatch(context, x, y, width, height, palette.bg, 4);
	if (cell.finding) drawTriangle(context, x + width / 2, y + height / 2 - 3, palette.bg, Math.min(4, width / 2));
}

/** Draw all of it.  |view|: {rows, columns, metric, selection, cursor, clock}. */
export function drawMap(canvas, layout, view) {
	const palette = colours(), context = prepareCanvas(canvas, layout.width, layout.height), { rows, columns, selection } = view;
	drawTimes(context, layout, columns, view.clock, palette);
	const isIn = (row, column) => !selection || (row >= selection.top && row <= selection.bottom && column >= selection.left && column <= selection.right);
	rows.forEach((row, k) => {
		const y = layout.top + k * layout.row;
		context.fillStyle = selection && k >= selection.top && k <= selection.bottom ? palette.text : palette['text-2'];
		context.font = palette.sans;
		context.fillText(fitName(showName(row.label, 40), 14) || `${showName(row.label, 13)}…`, 0, y + layout.row / 2);
		for (let i = 0; i < columns.n; i++) {
			const x = Math.round(layout.left + i * layout.cell), width = Math.max(1, Math.round(layout.left + (i + 1) * layout.cell) - x - 1);
			context.globalAlpha = isIn(k, i) ? 1 : 0.6;
			drawCell(context, row.cells[i], x, y, width, layout.row - 1, METRICS[view.metric], palette);
		}
		context.globalAlpha = 1;
	});
	for (let i = 0; i < columns.n; i++)
		if (rows.some((row) => row.cells[i]?.finding)) drawTriangle(context, layout.left + (i + 0.5) * layout.cell, 4, palette.alarm);
	if (selection) outline(context, layout, selection, palette.accent, 2);
	if (view.cursor) outline(context, layout, { left: view.cursor.column, right: view.cursor.column, top: view.cursor.row, bottom: view.cursor.row }, palette.text, 1);
}

function outline(context, layout, { left, right, top, bottom }, colour, width) {
	const x = Math.round(layout.left + left * layout.cell) - width / 2, y = layout.top + top * layout.row - width / 2;
	context.strokeStyle = colour;
	context.lineWidth = width;
	context.strokeRect(x, y, Math.round(layout.left + (right + 1) * layout.cell) - x - 1 + width / 2, (bottom - top + 1) * layout.row - 1 + width);
}
