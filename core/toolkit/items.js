// SPDX-License-Identifier: Apache-2.0
// Things that happened in a row of a track, in columns: points and intervals in order of their start, never
// two at one time in a row of intervals.  Thousands are answered for without looking at each.

import { eachAtLeast, greatestOf, pyramidOf } from './index.js';
import { Budget, growTable, lowerBound, newTable } from './table.js';

const ITEMS = { start: Float64Array, end: Float64Array, row: Uint32Array, source: Uint16Array, ref: Uint32Array, kind: Uint16Array };
const UNBOUND = new Budget(Infinity);

/** For addItem(), then finishItems(). */
export function newItems() {
	return newTable(ITEMS);
}

/**
 * An interval [start, end] of |row|.  |source| and |ref| are the caller's, to find again what it is; things
 * of one |kind| look alike.  What has no time is left out.
 */
export function addItem(items, start, end, row, source, ref, kind = 0) {
	if (Number.isNaN(start) || Number.isNaN(end)) return;
	if (items.n === items.size) growTable(items, UNBOUND);
	const i = items.n++;
	items.start[i] = start;
	items.end[i] = end;
	items.row[i] = row;
	items.source[i] = source;
	items.ref[i] = ref;
	items.kind[i] = kind;
}

/** Give each item the first row that is free at its start; how many there are.  Longer ones come first. */
export function packItems(items) {
	const order = new Uint32Array(items.n).map((_, i) => i);
	order.sort((a, b) => items.start[a] - items.start[b] || items.end[b] - items.end[a] || a - b);
	// A tree over the rows: what stands at |k| is the earliest end below it, that of row r at |half| + r.
	let rows = 0, half = 1, ends = new Float64Array(2).fill(-Infinity);
	for (const i of order) {
		if (rows === half && !(ends[1] <= items.start[i])) {
			const wider = new Float64Array(4 * half).fill(-Infinity);
			wider.set(ends.subarray(half), 2 * half);
			half *= 2;
			for (let k = half - 1; k > 0; k--) wider[k] = Math.min(wider[2 * k], wider[2 * k + 1]);
			ends = wider;
		}
		let k = 1;
		while (k < half) k = ends[2 * k] <= items.start[i] ? 2 * k : 2 * k + 1;
		items.row[i] = k - half;
		rows = Math.max(rows, k - half + 1);
		// Of no length it would share its moment with the next one.
		ends[k] = Math.max(items.end[i], items.start[i] + 1);
		for (k >>= 1; k > 0; k >>= 1) ends[k] = Math.min(ends[2 * k], ends[2 * k + 1]);
	}
	return rows;
}

/** In order of row and time, with what questions need: |rows| of them. */
export function finishItems(items, rows) {
	const order = new Uint32Array(items.n).map((_, i) => i), { row, start, end } = items;
	order.sort((a, b) => row[a] - row[b] || start[a] - start[b] || a - b);
	const done = { n: items.n, rows, first: new Uint32Array(rows + 1) };
	for (const name of Object.keys(ITEMS)) done[name] = new ITEMS[name](items.n).map((_, i) => items[name][order[i]]);
	for (let i = 0; i < items.n; i++) done.first[done.row[i] + 1] = i + 1;
	for (let r = 1; r <= rows; r++) done.first[r] = Math.max(done.first[r], done.first[r - 1]);
	done.length = new Float64Array(items.n).map((_, i) => done.end[i] - done.start[i]);
	done.levels = pyramidOf(done.length, items.n);
	done.byTime = new Uint32Array(items.n).map((_, i) => i);
	if (rows > 1) done.byTime.sort((a, b) => done.start[a] - done.start[b] || a - b);
	return done;
}

/** Items [first, last) of a row that touch [from, to). */
function itemsIn(items, row, from, to) {
	const low = items.first[row], high = items.first[row + 1];
	let first = lowerBound(items.start, from, high, low);
	if (first > low && items.end[first - 1] >= from) first--;
	return [first, lowerBound(items.start, to, high, first)];
}

/** How many of all rows begin in [from, to). */
export function countItems(items, from, to) {
	let n = 0;
	for (let row = 0; row < items.rows; row++)
		n += lowerBound(items.start, to, items.first[row + 1], items.first[row]) - lowerBound(items.start, from, items.first[row + 1], items.first[row]);
	return n;
}

/** The longest of the items [first, last) of one row. */
function longestItem(items, first, last) {
	const longest = greatestOf(items.length, items.levels, first, last);
	let found = first;
	if (last - first <= 32 || longest === 0) {
		while (items.length[found] < longest) found++;
		return found;
	}
	found = -1;
	eachAtLeast(items.length, items.levels, longest, first, last, (i) => {
		if (found < 0) found = i;
	});
	return found;
}

/**
 * What a row of |width| pixels shows of [from, to): |each|(item, n) with the longest of the |n| items that
 * begin in each cell of |cell| pixels, in order.
 */
export function eachCell(items, row, from, to, width, cell, each) {
	const [first, last] = itemsIn(items, row, from, to), step = (to - from) / width * cell;
	for (let i = first; i < last;) {
		const edge = from + (Math.floor((items.start[i] - from) / step) + 1) * step;
		let stride = 1;
		while (i + stride < last && items.start[i + stride] < edge) stride *= 2;
		const next = Math.max(i + 1, lowerBound(items.start, edge, Math.min(last, i + stride + 1), i));
		each(next - i === 1 ? i : longestItem(items, i, next), next - i);
		i = next;
	}
}

/** The item of a row at |time|, or the nearest within |slack| ns, of several the longest; -1. */
export function itemAt(items, row, time, slack) {
	const [first, last] = itemsIn(items, row, time, time + 1);
	for (let i = first; i < last; i++) if (items.start[i] <= time && items.end[i] >= time && items.length[i] > 2 * slack) return i;
	const [a, b] = itemsIn(items, row, time - slack, time + slack);
	return a < b ? longestItem(items, a, b) : -1;
}

/** The item after or before (|direction| 1, -1) item |i| in time, over all rows; |i| -1: from |time|; -1: none. */
export function nextItem(items, i, direction, time = -Infinity) {
	const { byTime } = items;
	let low = 0, high = items.n;
	const start = i < 0 ? time : items.start[i];
	while (low < high) {
		const middle = low + high >>> 1;
		if (items.start[byTime[middle]] < start) low = middle + 1;
		else high = middle;
	}
	if (i < 0) return byTime[direction > 0 ? low : low - 1] ?? -1;
	while (byTime[low] !== i) low++;
	return byTime[low + direction] ?? -1;
}
