// SPDX-License-Identifier: Apache-2.0
// The lanes: what ran when.  Draws the rows and says what is under a point.

import { eachAtLeast, rowsIn } from '../toolkit/index.js';
import { durationClass, fitName, showDuration, showName, showTime } from '../toolkit/show.js';
import { lowerBound } from '../toolkit/table.js';
import { drawFlag, drawHatch, drawTriangle, prepareCanvas } from './dom.js';
import { axisStep, gridColumns, laneColumns, readyColumns, waitColumns } from './lod.js';
import { colours } from './theme.js';
import { drawPicked, drawTrack, drawValues, hitTrack } from './track.js';

const LETTER = 7.23; // of 12 px monospace
const CAP = 16, STRIP = 12, BAR_LEAST = 3;
const WAIT_LEAST = 2; // pixels of waiting for a CPU that are hatched
const DIM = 0.6;
const NEAR = 4;
const MARKS = 5; // for each label of the axis
const FINDING_ROOM = 72; // pixels that the words of a finding take, and what is between
const FLAG = 9; // pixels of a flag's pennant
const FLAG_NAME = 24; // letters of a trigger's name in the axis

export function laneName(model, lane) {
	return model.laneName(lane);
}

/** Where the bars of a lane's row are. */
function barOf(row) {
	if (row.height >= 64) return { top: row.top + CAP, height: row.height - CAP - STRIP - 4, strip: true };
	return { top: row.top + 3, height: row.height - 7, strip: false };
}

/** Marks of the axis: {step, first}, the last one at or before the view.  They begin with the trace, or at midnight on a clock. */
function axisMarks({ model, view: [from, to], clock }, width) {
	const wall = clock === 'rel' ? null : model.wall(model.first), step = axisStep(to - from, width, wall !== null);
	let zero = model.first;
	if (wall !== null) {
		const day = new Date(Number(wall / 1000000n));
		if (clock === 'utc') day.setUTCHours(0, 0, 0, 0);
		else day.setHours(0, 0, 0, 0);
		zero -= Number(wall - BigInt(day.getTime()) * 1000000n);
	}
	return { step, first: zero + Math.floor((from - zero) / step) * step };
}

function drawGrid(context, state, width, height) {
	const [from, to] = state.view, { step, first } = axisMarks(state, width);
	context.fillStyle = colours().line;
	for (let t = first; t < to; t += step)
		context.fillRect(Math.round((t - from) / (to - from) * width), 0, 1, height);
}

function drawLabel(context, state, lane, row, x, width, y, ink) {
	const room = Math.floor((width - 10) / LETTER);
	if (room < 3) return;
	const { name, source, site } = state.model.label(lane, row), place = source || site;
	const whole = place && name.length + 2 + place.length <= room;
	const text = whole ? name : fitName(name, room);
	if (!text) return;
	context.font = colours().mono;
	context.textBaseline = 'middle';
	context.fillStyle = ink;
	context.fillText(text, x + 6, y);
	if (!whole) return;
	const alpha = context.globalAlpha;
	context.globalAlpha = alpha * 0.72;
	context.fillText(place, x + 6 + (name.length + 2) * LETTER, y);
	context.globalAlpha = alpha;
}

function drawLane(context, state, row, width) {
	const { lane } = row, { polls, index } = lane, palette = colours(), bar = barOf(row);
	const [from, to] = state.view.map((t) => t - lane.shift), scale = width / (to - from);
	const { longest, busy } = gridColumns(lane, 'calls', laneColumns, from, to, width);
	const dim = state.selected ? DIM : 1;
	context.globalAlpha = dim;
	drawIdle(context, lane, bar, longest, from, to, width);
	for (let x = 0; x < width;) {
		if (longest[x] < 0) {
			x++;
			continue;
		}
		const kind = durationClass(longest[x]);
		let end = x + 1;
		while (end < width && longest[end] >= 0 && durationClass(longest[end]) === kind) end++;
		context.fillStyle = palette.classes[kind];
		context.fillRect(x, bar.top, end - x, bar.height);
		x = end;
	}
	context.globalAlpha = 1;
	// Calls that are wide enough get their true edges, with a gap behind, and their names.
	const [first, last] = rowsIn(polls, from, to), chosen = state.selected?.lane === lane ? state.selected.row : -1;
	const drawn = [];
	eachAtLeast(polls.dur, index.levels, BAR_LEAST / scale, first, last, (r) => drawn.push(r));
	if (chosen >= first && chosen < last && !drawn.includes(chosen)) drawn.push(chosen);
	for (const r of drawn) drawCall(context, state, row, bar, r, (polls.start[r] - from) * scale, polls.dur[r] * scale, width, r === chosen ? 1 : dim);
	drawOutside(context, state, lane, bar, from, to, width, dim);
	drawWaits(context, lane, bar, from, to, width);
	drawBlocking(context, state, lane, bar, from, to, width, dim);
	if (!bar.strip) return;
	drawSamples(context, state, lane, bar, from, to, width);
	const strip = row.top + row.height - 6;
	context.fillStyle = palette['text-3'];
	for (let x = 0; x < width; x += 4) {
		let sum = 0;
		for (let k = x; k < x + 4 && k < width; k++) sum += busy[k];
		if (sum > 0.08) context.fillRect(x, strip - Math.max(1, Math.round(sum / 4 * 6)), 4, Math.max(1, Math.round(sum / 4 * 6)));
	}
}

function drawCall(context, state, row, bar, r, at, size, width, alpha) {
	const { lane } = row, palette = colours(), kind = durationClass(lane.polls.dur[r]);
	const x = Math.max(-2, at), end = Math.min(width + 2, at + size), w = Math.max(1, end - x - (size >= BAR_LEAST ? 1 : 0));
	context.fillStyle = palette.bg;
	context.fillRect(x, bar.top, w + 1, bar.height);
	context.globalAlpha = alpha;
	context.fillStyle = palette.classes[kind];
	context.fillRect(x, bar.top, w, bar.height);
	const parts = w > 24 ? state.model.parts(lane, r) : null, known = parts ? state.model.blockingIn(lane, r) : [];
	let middle = bar.top + bar.height / 2;
	if (parts && parts.blocked + parts.ready > 0.02 * lane.polls.dur[r] && bar.height >= 28) {
		// Where the calls that blocked are known, drawBlocking() hatches them in their places.
		const share = (known.length ? 0 : parts.blocked + parts.ready) / lane.polls.dur[r];
		if (share) {
			context.globalAlpha = alpha * 0.62;
			drawHatch(context, at + size * (1 - share), bar.top + bar.height - 11, Math.min(width, at + size) - (at + size * (1 - share)) - 1, 11, palette.ink[kind]);
		}
		middle = bar.top + (bar.height - 10) / 2;
	}
	context.globalAlpha = alpha === 1 ? 1 : 0.9;
	drawLabel(context, state, lane, r, x, w, middle, palette.ink[kind]);
	context.globalAlpha = 1;
	if (!state.model.openEnded(lane, r)) return;
	context.strokeStyle = palette['text-2'];
	context.setLineDash([3, 2]);
	context.beginPath();
	context.moveTo(x + w - 0.5, bar.top);
	context.lineTo(x + w - 0.5, bar.top + bar.height);
	context.stroke();
	context.setLineDash([]);
}

/** A thin line where the loop waits for events: where there is nothing at all, nothing is known of it. */
function drawIdle(context, lane, bar, longest, from, to, width) {
	const { waiting } = gridColumns(lane, 'idle', waitColumns, from, to, width), middle = Math.round(bar.top + bar.height / 2);
	context.fillStyle = colours()['text-3'];
	for (let x = 0; x < width; x++) {
		const first = x;
		while (x < width && waiting[x] && longest[x] < 0) x++;
		if (x > first) context.fillRect(first, middle, x - first, 1);
	}
}

/** Hatched: the loop had work and waited for a CPU, right before it ran on. */
function drawWaits(context, lane, bar, from, to, width) {
	const { parks } = lane.worker, scale = width / (to - from);
	const first = Math.max(0, lowerBound(parks.end, from, parks.n)), last = lowerBound(parks.start, to, parks.n, Math.min(first, parks.n));
	eachAtLeast(parks.wait, lane.waits, Math.max(1, WAIT_LEAST / scale), first, last, (i) => {
		const w = parks.wait[i] * scale;
		drawHatch(context, (parks.end[i] - from) * scale - w, bar.top, w, bar.height, colours()['text-3']);
	});
}

/** What a lane says of times outside of its rounds. */
export const OUTSIDE = { between: 'between rounds', stopped: 'process stopped' };

/** Work between rounds: low and grey, as it is no callback's.  Stops: an outline over whatever they interrupted. */
function drawOutside(context, state, lane, bar, from, to, width, dim) {
	const { n, start, dur, kind, longest } = state.model.outside(lane), scale = width / (to - from), palette = colours();
	for (let i = lowerBound(start, from - longest, n); i < n && start[i] < to; i++) {
		const x = (start[i] - from) * scale, w = dur[i] * scale;
		if (w < 1 || x + w < 0) continue;
		const a = Math.max(-2, x), b = Math.min(width + 2, x + w), stopped = kind[i] === 'stopped', height = stopped ? bar.height : Math.ceil(bar.height / 2);
		context.globalAlpha = dim * (stopped ? 0.7 : 0.4);
		context.fillStyle = stopped ? palette.bg : palette['text-3'];
		context.fillRect(a, bar.top + bar.height - height, Math.max(1, b - a - 1), height);
		context.globalAlpha = dim;
		if (stopped) {
			drawHatch(context, a, bar.top, b - a - 1, bar.height, palette['text-3']);
			context.strokeStyle = palette['text-2'];
			context.lineWidth = 1;
			context.strokeRect(Math.round(a) + 0.5, bar.top + 0.5, Math.max(1, b - a - 2), bar.height - 1);
		}
		context.font = palette.sans;
		const room = context.measureText(OUTSIDE[kind[i]]).width;
		if (room + 12 > b - a || height < 10) continue;
		const left = Math.max(0, a) + 6, middle = bar.top + bar.height - height / 2;
		if (stopped) {
			context.fillStyle = palette.bg;
			context.fillRect(left - 3, middle - 8, room + 6, 16);
		}
		context.fillStyle = palette.text;
		context.textBaseline = 'middle';
		context.fillText(OUTSIDE[kind[i]], left, middle);
	}
	context.globalAlpha = 1;
}

/** Calls that blocked: hatched inside of the callback, in outline where the lane shows none. */
function drawBlocking(context, state, lane, bar, from, to, width, dim) {
	const calls = state.model.blocking(lane), scale = width / (to - from), palette = colours();
	let i = lowerBound(calls.start, from, calls.n);
	while (i > 0 && calls.start[i - 1] + calls.longest > from) i--;
	for (; i < calls.n && calls.start[i] < to; i++) {
		const x = (calls.start[i] - from) * scale, w = calls.dur[i] * scale;
		if (w < BAR_LEAST || x + w < 0) continue;
		const a = Math.max(-2, x), b = Math.min(width + 2, x + w);
		context.globalAlpha = dim;
		if (calls.inside[i] && bar.height >= 28) {
			context.globalAlpha = dim * 0.62;
			drawHatch(context, a, bar.top + bar.height - 11, b - a - 1, 11, palette.ink[durationClass(calls.around[i])]);
		} else {
			context.strokeStyle = palette['text-3'];
			context.lineWidth = 1;
			context.strokeRect(Math.round(a) + 0.5, bar.top + 0.5, Math.max(1, b - a - 1), bar.height - 1);
		}
	}
	context.globalAlpha = 1;
}

/** Under the bars a tick for each sample: full of one on the CPU, short of one that left it. */
function drawSamples(context, state, lane, bar, from, to, width) {
	const sampled = state.model.samplesOf(lane);
	if (!sampled.n) return;
	const palette = colours(), step = (to - from) / width;
	for (const [source, height] of [[0, 3], [1, 1]]) {
		const times = sampled.times[source];
		context.fillStyle = source ? palette['text-3'] : palette['text-2'];
		for (let i = lowerBound(times, from), x = 0; i < times.length && times[i] < to; i = lowerBound(times, from + (x + 1) * step, times.length, i)) {
			x = Math.floor((times[i] - from) / step);
			context.fillRect(x, bar.top + bar.height + 1, 1, height);
			if (times[i] >= from + (x + 1) * step) i++;
		}
	}
}

/** The longest callback of all lanes of a group that is folded. */
function drawFolded(context, state, row, width) {
	const column = 2, n = Math.ceil(width / column), longest = new Float64Array(n).fill(-1), [from, to] = state.view;
	for (const lane of state.model.lanes.filter((l) => row.group.lanes.includes(l) || row.group.key === `p${l.trace.number}`))
		gridColumns(lane, 'folded', laneColumns, from - lane.shift, to - lane.shift, n).longest.forEach((v, x) => {
			if (v > longest[x]) longest[x] = v;
		});
	longest.forEach((v, x) => {
		if (v < 0) return;
		context.fillStyle = colours().classes[durationClass(v)];
		context.fillRect(x * column, row.top + 5, column, 14);
	});
}

function drawQueue(context, state, row, width) {
	const { lane } = row, [from, to] = state.view.map((t) => t - lane.shift), { most } = gridColumns(lane, 'ready', readyColumns, from, to, width);
	const palette = colours(), base = row.top + row.height - 4, height = row.height - 12;
	context.beginPath();
	let y = base, peak = -1;
	context.moveTo(0, base);
	for (let x = 0; x < width; x++) {
		if (most[x] < 0) continue;
		context.lineTo(x, y);
		y = Math.round(base - most[x] / lane.peak * height) + 0.5;
		context.lineTo(x, y);
		if (most[x] > (peak < 0 ? 0 : most[peak])) peak = x;
	}
	context.lineTo(width, y);
	context.strokeStyle = palette['text-2'];
	context.lineWidth = 1.25;
	context.stroke();
	context.lineTo(width, base);
	context.closePath();
	context.globalAlpha = 0.18;
	context.fillStyle = palette['text-2'];
	context.fill();
	context.globalAlpha = 1;
	if (peak < 0 || most[peak] < lane.peak / 2) return;
	context.font = palette.sans;
	context.textBaseline = 'middle';
	const text = `${most[peak]} ready`, at = base - most[peak] / lane.peak * height, room = context.measureText(text).width;
	context.fillStyle = palette.text;
	context.beginPath();
	context.arc(peak, at, 2.5, 0, 7);
	context.fill();
	context.fillText(text, peak + 8 + room > width ? peak - 8 - room : peak + 8, Math.max(at, row.top + 8));
}

/** Rows of which some is in the |height| pixels from |top| on. */
function inSight(rows, top, height) {
	const first = rows.findIndex((row) => row.top + row.height > top);
	if (first < 0) return [];
	const behind = rows.findIndex((row, i) => i > first && row.top >= top + height);
	return rows.slice(first, behind < 0 ? rows.length : behind);
}

function boxOf(state, row, width) {
	return { top: row.top, height: row.height, width, from: state.view[0], to: state.view[1] };
}

/** The rows in sight from |top| on, without what follows the pointer. */
export function drawRows(canvas, state, rows, width, height, top) {
	const context = prepareCanvas(canvas, width, height);
	drawGrid(context, state, width, height);
	context.translate(0, -top);
	const seen = inSight(rows, top, height);
	seen.forEach((row, i) => {
		if (row.kind === 'lane') drawLane(context, state, row, width);
		else if (row.kind === 'queue') drawQueue(context, state, row, width);
		else if (row.kind === 'track') drawTrack(context, boxOf(state, row, width), row.track, row.open);
		else if (row.kind === 'group' && row.folded) drawFolded(context, state, row, width);
		context.fillStyle = colours().line;
		if (seen[i + 1]?.kind !== 'queue') context.fillRect(0, row.top + row.height - 1, width, 1);
	});
	drawFindings(context, state, seen, width);
	drawFires(context, state, seen, width);
	context.translate(0, top);
	drawRange(context, state, width, height);
}

/** A cap and a triangle above each call that a finding names; words where there is room. */
function drawFindings(context, state, rows, width) {
	const [from, to] = state.view, palette = colours();
	let free = -Infinity, row0 = null;
	const flags = firesInView(state, width), places = state.model.findings.filter((finding) => finding.severity !== 'info').flatMap((finding) => finding.evidence.filter((piece) => piece.lane && piece.row >= 0)
		.map((piece) => ({ ...piece, first: piece === finding.first })));
	for (const place of places.sort((a, b) => a.lane.number - b.lane.number || a.at - b.at)) {
		const row = rows.find((r) => r.kind === 'lane' && r.lane === place.lane), { polls } = place.lane;
		if (!row) continue;
		const a = (polls.start[place.row] + place.lane.shift - from) / (to - from) * width, b = a + polls.dur[place.row] / (to - from) * width;
		if (b < -8 || a > width + 8) continue;
		if (row !== row0) free = -Infinity;
		row0 = row;
		const bar = barOf(row), x = Math.max(a, 4);
		context.fillStyle = palette.alarm;
		context.fillRect(a, bar.top - 3, Math.max(2, b - a - 1), 2);
		if (x < free || !bar.strip) continue;
		drawTriangle(context, x, row.top + 3, palette.alarm);
		free = x + 10;
		context.font = `600 ${palette.sans}`;
		context.textBaseline = 'middle';
		const text = showDuration(place.length), room = context.measureText(text).width;
		const next = places.filter((p) => p.lane === place.lane).map((p) => (polls.start[p.row] + p.lane.shift - from) / (to - from) * width).find((p) => p > a + 1) ?? Infinity;
		const flag = flags.find((one) => one.fire.lane === place.lane && one.x > a + 1)?.x ?? Infinity;
		if (x + 12 + room > Math.min(width, next - 8, flag - 8)) continue;
		context.fillStyle = palette.alarm;
		context.fillText(text, x + 8, row.top + 6.5);
		free = x + 16 + room;
	}
}

/** Where triggers that fired are: [{fire, number, x}]. */
function firesInView({ model, view: [from, to] }, width) {
	return model.fires.map((fire, number) => ({ fire, number, x: Math.round((fire.at - from) / (to - from) * width) })).filter(({ x }) => x > -FLAG && x <= width);
}

/** A flag in the lane that a trigger is about, with its value and threshold where there is room before it; a line through all of one that is about none. */
function drawFires(context, state, rows, width) {
	const [from, to] = state.view, palette = colours();
	for (const { fire, x } of firesInView(state, width)) {
		const row = rows.find((r) => r.kind === 'lane' && r.lane === fire.lane), last = rows.at(-1);
		if (!fire.lane && last) {
			context.fillStyle = palette['text-2'];
			for (let y = rows[0].top; y < last.top + last.height; y += 6) context.fillRect(x, y, 1, 3);
		}
		if (!row) continue;
		drawFlag(context, x, row.top + 1, row.top + row.height - 1, palette.text);
		context.font = `600 ${palette.sans}`;
		context.textBaseline = 'middle';
		// The words of a finding stand at the beginning of the call.
		const text = [showName(fire.trigger, FLAG_NAME), fire.measure ? showName(fire.measure) : ''].filter(Boolean).join(': '), room = context.measureText(text).width, begin = Math.max(0, (fire.at - fire.length - from) / (to - from) * width);
		if (!barOf(row).strip || x - begin < room + FINDING_ROOM) continue;
		context.fillStyle = palette.text;
		context.fillText(text, x - room - 5, row.top + 6.5);
	}
}

/** The number of the trigger whose flag is at a point of the rows, or -1. */
function hitFire(state, row, x, y, width) {
	const hit = firesInView(state, width).find(({ fire, x: at }) => fire.lane === row.lane && x >= at - NEAR && x <= at + FLAG && y < row.top + CAP);
	return hit ? hit.number : -1;
}

function drawRange(context, state, width, height) {
	if (!state.range) return;
	const [from, to] = state.view, [a, b] = state.range.map((t) => (t - from) / (to - from) * width), palette = colours();
	context.globalAlpha = 0.62;
	context.fillStyle = palette.bg;
	context.fillRect(0, 0, a, height);
	context.fillRect(b, 0, width - b, height);
	context.globalAlpha = 1;
	context.fillStyle = palette.accent;
	context.fillRect(Math.round(a) - 1, 0, 1, height);
	context.fillRect(Math.round(b), 0, 1, height);
}

/** The selection's outline, the arrow of its wake, and the crosshair with the values under it. */
export function drawMarks(canvas, state, rows, width, height, top) {
	const context = prepareCanvas(canvas, width, height), palette = colours(), [from, to] = state.view;
	const xOf = (t) => (t - from) / (to - from) * width;
	context.translate(0, -top);
	const box = state.selected && rows.find((r) => r.kind === 'lane' && r.lane === state.selected.lane);
	if (box) {
		const { lane, row } = state.selected, bar = barOf(box);
		const a = xOf(lane.polls.start[row] + lane.shift), w = Math.max(2, lane.polls.dur[row] / (to - from) * width);
		context.strokeStyle = palette.accent;
		context.lineWidth = 2;
		context.strokeRect(Math.max(-3, a - 1), bar.top - 1, Math.min(width + 3, a + w) - Math.max(-3, a - 1) + 1, bar.height + 2);
		const wake = state.model.wake(lane, row);
		if (wake?.waker && rows.some((r) => r.kind === 'lane' && r.lane === wake.waker.lane)) drawArrow(context, state, rows, wake, xOf, bar, width);
	}
	const picked = state.item && rows.find((r) => r.track?.id === state.item.track.id);
	if (picked) drawPicked(context, boxOf(state, picked, width), picked.track, picked.open, state.item);
	if (!state.pointer) return;
	context.globalAlpha = 0.7;
	context.fillStyle = palette['text-3'];
	context.fillRect(Math.round(xOf(state.pointer.time)), top, 1, height);
	context.globalAlpha = 1;
	for (const row of inSight(rows, top, height)) if (row.kind === 'track') drawValues(context, boxOf(state, row, width), row.track, row.open, state.pointer.time);
}

function drawArrow(context, state, rows, wake, xOf, bar, width) {
	const palette = colours(), { lane, row } = state.selected, box = rows.find((r) => r.kind === 'lane' && r.lane === wake.waker.lane);
	const from = barOf(box), same = wake.waker.lane === lane, sx = xOf(wake.at), ex = xOf(lane.polls.start[row] + lane.shift) + 3;
	const sy = same ? from.top + from.height : from.top < bar.top ? from.top + from.height : from.top;
	const ey = same ? sy : from.top < bar.top ? bar.top - 2 : bar.top + bar.height + 2;
	const bend = same ? sy + 16 : (sy + ey) / 2;
	context.strokeStyle = context.fillStyle = palette.accent;
	context.lineWidth = 1.5;
	context.beginPath();
	context.moveTo(sx, sy);
	context.bezierCurveTo(sx, bend, ex, bend, ex, ey);
	context.stroke();
	context.beginPath();
	context.arc(sx, sy, 3, 0, 7);
	context.fill();
	const text = `woke ${state.model.label(lane, row).name}, ${showDuration(wake.delay)} before it ran`;
	context.font = palette.sans;
	const room = context.measureText(text).width, x = sx - room - 10 < 4 ? Math.min(sx + 10, width - room - 6) : sx - room - 10;
	context.globalAlpha = 0.94;
	context.fillStyle = palette.bg;
	context.fillRect(x - 4, bend - 8, room + 8, 16);
	context.globalAlpha = 1;
	context.fillStyle = palette.accent;
	context.textBaseline = 'middle';
	context.fillText(text, x, bend + 0.5);
}

/** The flags in the axis, with the names of the triggers as far as they do not meet: [{x, text, at, from, to}], from |from| to |to| there is no room for others. */
function layFires(context, state, width) {
	let free = -Infinity;
	return firesInView(state, width).map(({ fire, x }) => {
		const text = showName(fire.trigger, FLAG_NAME), room = context.measureText(text).width, right = x + FLAG + 3, at = right + room > width ? x - room - 4 : right;
		if (Math.min(x, at) < free) return { x, text: '', at, from: x, to: x + FLAG };
		free = Math.max(x + FLAG, at + room) + 8;
		return { x, text, at, from: Math.min(x, at) - 4, to: free };
	});
}

/** The axis of times. */
export function drawRuler(canvas, state, width, height) {
	const context = prepareCanvas(canvas, width, height), palette = colours(), [from, to] = state.view, { step, first } = axisMarks(state, width);
	const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / 1e9) - 1e-9)));
	const textOf = (t, more = 0) => showTime(t - state.model.first, state.model.wall(t), state.clock, Math.min(9, digits + more));
	context.font = palette.sans;
	context.textBaseline = 'middle';
	const fires = layFires(context, state, width);
	const pointerX = state.pointer ? (state.pointer.time - from) / (to - from) * width : -1000;
	const rangeX = state.range ? ((state.range[0] + state.range[1]) / 2 - from) / (to - from) * width : -1000;
	for (let i = 0, t = first; t < to; t = first + ++i * step / MARKS) {
		const x = Math.round((t - from) / (to - from) * width), big = i % MARKS === 0;
		context.fillStyle = big ? palette['line-2'] : palette.line;
		context.fillRect(x, height - (big ? 10 : 5), 1, big ? 10 : 5);
		if (!big || x < 0 || Math.abs(pointerX - x - 24) < 76 || Math.abs(rangeX - x - 24) < 60 || x > width - 60 || fires.some((fire) => x + 64 > fire.from && x < fire.to)) continue;
		context.fillStyle = palette['text-2'];
		context.fillText(textOf(t), x + 5, height / 2 - 1);
	}
	for (const { x, text, at } of fires) {
		drawFlag(context, x, 0, height, palette.text, 9);
		context.fillText(text, at, height / 2 - 1);
	}
	if (state.range) {
		const [a, b] = state.range.map((t) => (t - from) / (to - from) * width);
		context.globalAlpha = 0.16;
		context.fillStyle = palette.accent;
		context.fillRect(a, 0, b - a, height);
		context.globalAlpha = 1;
		context.textAlign = 'center';
		context.fillText(showDuration(state.range[1] - state.range[0]), (a + b) / 2, height / 2);
		context.textAlign = 'left';
	}
	if (pointerX < 0 || pointerX > width) return;
	const text = textOf(state.pointer.time, 2), room = context.measureText(text).width, x = Math.min(Math.max(pointerX, room / 2 + 8), width - room / 2 - 8);
	context.fillStyle = palette.raised;
	context.fillRect(x - room / 2 - 6, 3, room + 12, height - 6);
	context.fillStyle = palette.text;
	context.textAlign = 'center';
	context.fillText(text, x, height / 2);
	context.textAlign = 'left';
}

/** What is at a point of the rows: {lane, row, time} with row -1 where no call is near, {item} of a track, {fire} of a flag, or null. */
export function hitLane(state, rows, x, y, width) {
	const box = rows.find((row) => y >= row.top && y < row.top + row.height);
	if (box?.kind === 'track') {
		const item = hitTrack(boxOf(state, box, width), box.track, box.open, x, y);
		return item && { item };
	}
	if (box?.kind !== 'lane') return null;
	const fire = hitFire(state, box, x, y, width);
	if (fire >= 0) return { fire };
	const { lane } = box, { polls, index } = lane, [from, to] = state.view, scale = (to - from) / width;
	const time = from + x * scale - lane.shift;
	const [first, last] = rowsIn(polls, time - NEAR * scale, time + NEAR * scale);
	// The one under the pointer, else the longest of those that are near.
	let best = -1;
	for (let row = first; row < last && row < first + 4096; row++) {
		if (polls.start[row] <= time && time <= polls.start[row] + polls.dur[row] && polls.dur[row] >= scale * BAR_LEAST) return { lane, row, time };
		if (best < 0 || polls.dur[row] > polls.dur[best]) best = row;
	}
	if (last - first > 4096) eachAtLeast(polls.dur, index.levels, polls.dur[best] + 1, first, last, (row) => {
		if (polls.dur[row] > polls.dur[best]) best = row;
	});
	return { lane, row: best, time };
}
