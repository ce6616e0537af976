// SPDX-License-Identifier: Apache-2.0
// The minimap: the longest callback in each column of the whole trace, findings, triggers that fired, and what is in view.

import { durationClass } from '../toolkit/show.js';
import { drawFlag, drawTriangle, prepareCanvas } from './dom.js';
import { laneColumns } from './lod.js';
import { colours } from './theme.js';

const EDGE = 5;
const COLUMN = 2;
let mapColumns = null;

/** The longest call of all lanes in each of |n| columns; computed once for a model and a size. */
function mapColumnsOf(model, n) {
	if (mapColumns?.model === model && mapColumns.n === n) return mapColumns.longest;
	const longest = new Float64Array(n).fill(-1);
	for (const lane of model.lanes) {
		const columns = laneColumns(lane, model.first - lane.shift, model.last - lane.shift, n);
		for (let x = 0; x < n; x++) longest[x] = Math.max(longest[x], columns.longest[x]);
	}
	mapColumns = { model, n, longest };
	return longest;
}

export function drawMinimap(canvas, state, width, height) {
	const context = prepareCanvas(canvas, width, height), palette = colours(), { model } = state;
	const longest = mapColumnsOf(model, Math.max(1, Math.floor(width / COLUMN))), base = height - 4, room = height - 20;
	const xOf = (t) => (t - model.first) / (model.last - model.first) * width;
	for (let i = 0; i < longest.length; i++) {
		if (longest[i] < 0) continue;
		const kind = durationClass(longest[i]), part = Math.min(1, Math.max(0, (Math.log10(Math.max(longest[i], 1)) - 2) / 7));
		const bar = Math.max(2, Math.round(part * room));
		context.fillStyle = palette.classes[kind];
		context.fillRect(i * COLUMN, base - bar, kind > 4 ? 2 : 1.5, bar);
	}
	context.fillStyle = palette['line-2'];
	context.fillRect(0, base, width, 1);
	// Triangles: the first place of each finding; small ticks: the others.
	for (const finding of model.findings) {
		if (finding.severity === 'info') continue;
		for (const piece of finding.evidence) {
			if (piece.at === undefined) continue;
			context.fillStyle = palette.alarm;
			context.fillRect(Math.round(xOf(piece.at)), 2, 1, 3);
		}
		if (finding.first) drawTriangle(context, Math.round(xOf(finding.first.at)), 2, palette.alarm);
	}
	// Flags below them: triggers that fired.
	for (const { at } of model.fires) if (at !== undefined) drawFlag(context, Math.round(xOf(at)), 0, base, palette.text, 13);
	const a = xOf(state.view[0]), b = Math.max(xOf(state.view[1]), a + 2);
	context.globalAlpha = 0.55;
	context.fillStyle = palette.bg;
	context.fillRect(0, 10, a, height - 14);
	context.fillRect(b, 10, width - b, height - 14);
	context.globalAlpha = 1;
	context.strokeStyle = palette.accent;
	context.lineWidth = 1.5;
	context.strokeRect(Math.max(0.75, a - 1), 9.5, Math.min(width - 1, b + 1) - Math.max(0.75, a - 1), height - 13);
	context.fillStyle = palette.accent;
	context.fillRect(Math.max(0, a - 2.5), height / 2 - 4, 3, 12);
	context.fillRect(Math.min(width - 3, b - 0.5), height / 2 - 4, 3, 12);
}

/** What a press at |x| takes hold of: 'from' or 'to', 'frame', or 'new'. */
export function gripAt(state, x, width) {
	const { model } = state, xOf = (t) => (t - model.first) / (model.last - model.first) * width;
	const a = xOf(state.view[0]), b = xOf(state.view[1]);
	if (Math.abs(x - a) <= EDGE) return 'from';
	if (Math.abs(x - b) <= EDGE) return 'to';
	return x > a && x < b ? 'frame' : 'new';
}
