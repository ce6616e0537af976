// SPDX-License-Identifier: Apache-2.0
// Level of detail: what a lane shows in each column of pixels, exact at every zoom.

import { SUM_EVERY, greatestOf, rowsIn } from '../toolkit/index.js';
import { lowerBound, lowerBoundNear } from '../toolkit/table.js';

const SAME_STEP = 1e-9; // views that are moved about differ by so much in their length

/**
 * Of |width| columns over [from, to) of a lane's own times: the longest call that touches each, in ns (-1:
 * none), and the share of it that was inside of calls.
 */
export function laneColumns(lane, from, to, width) {
	const { polls, index } = lane, longest = new Float64Array(width).fill(-1), busy = new Float32Array(width);
	const step = (to - from) / width;
	let [row] = rowsIn(polls, from, to);
	for (let x = 0; x < width; x++) {
		const a = from + x * step, b = a + step;
		const end = lowerBoundNear(polls.start, b, polls.n, row), before = row > 0 && polls.start[row - 1] + polls.dur[row - 1] > a ? row - 1 : row;
		if (end > before) {
			longest[x] = greatestOf(polls.dur, index.levels, before, end);
			busy[x] = Math.min(1, busyOfRows(lane, before, end, a, b) / step);
		}
		row = Math.max(row, end);
	}
	return { longest, busy };
}

/** Time of rows [first, last) inside [a, b), which they all touch. */
function busyOfRows(lane, first, last, a, b) {
	const { polls, index } = lane;
	let sum = 0;
	if (last - first > 4 * SUM_EVERY) {
		const low = Math.ceil(first / SUM_EVERY), high = Math.floor(last / SUM_EVERY);
		for (let i = first; i < low * SUM_EVERY; i++) sum += polls.dur[i];
		for (let i = high * SUM_EVERY; i < last; i++) sum += polls.dur[i];
		sum += index.sums[high] - index.sums[low];
	} else {
		for (let i = first; i < last; i++) sum += polls.dur[i];
	}
	sum -= Math.max(0, a - polls.start[first]);
	return sum - Math.max(0, polls.start[last - 1] + polls.dur[last - 1] - b);
}

/** The most ready callbacks in each column; -1: no call began there. */
export function readyColumns(lane, from, to, width) {
	const { polls, ready } = lane, most = new Float64Array(width).fill(-1), step = (to - from) / width;
	let row = lowerBound(polls.start, from, polls.n);
	for (let x = 0; x < width && row < polls.n; x++) {
		const end = lowerBoundNear(polls.start, from + (x + 1) * step, polls.n, row);
		if (end > row) most[x] = greatestOf(polls.ready, ready, row, end);
		row = end;
	}
	return { most };
}

/** In which columns the loop waits for events, for however short. */
export function waitColumns(lane, from, to, width) {
	const { parks } = lane.worker, waiting = new Uint8Array(width), step = (to - from) / width;
	for (let x = 0, i = lowerBound(parks.end, from, parks.n); x < width; x++) {
		const a = from + x * step;
		i = lowerBoundNear(parks.end, a, parks.n, i);
		while (i < parks.n && parks.end[i] <= a) i++;
		if (i === parks.n) break;
		waiting[x] = Number(parks.start[i] < a + step);
	}
	return { waiting };
}

/**
 * What |compute|(lane, from, to, width) says of columns that lie at whole multiples of their own width: moving the
 * view then costs only those that come into sight, and the picture does not shimmer.  Kept with the lane by |name|.
 */
export function gridColumns(lane, name, compute, from, to, width) {
	const grids = lane.grids ??= new Map(), old = grids.get(name), asked = (to - from) / width;
	const same = old && old.width === width && Math.abs(old.step / asked - 1) < SAME_STEP, step = same ? old.step : asked;
	const first = Math.floor(from / step), moved = same ? first - old.first : width;
	if (moved === 0) return old.columns;
	const columnsOf = (a, n) => compute(lane, a * step, (a + n) * step, n);
	let columns;
	if (Math.abs(moved) >= width) {
		columns = columnsOf(first, width);
	} else {
		const fresh = moved > 0 ? columnsOf(old.first + width, moved) : columnsOf(first, -moved);
		columns = Object.fromEntries(Object.entries(old.columns).map(([key, values]) => {
			const made = values.slice();
			if (moved > 0) made.copyWithin(0, moved);
			else made.copyWithin(-moved, 0, width + moved);
			made.set(fresh[key], moved > 0 ? width - moved : 0);
			return [key, made];
		}));
	}
	grids.set(name, { step, width, first, columns });
	return columns;
}

const LABEL_ROOM = 84; // pixels between labels of the axis
const CLOCK_STEPS = [2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400]; // seconds

/** Least step of the axis that leaves room for labels: 1, 2 or 5 times a power of ten; |onClock|: round in minutes and hours. */
export function axisStep(length, width, onClock) {
	const least = length / Math.max(1, width / LABEL_ROOM), power = 10 ** Math.floor(Math.log10(least));
	const seconds = onClock && least > 1e9 ? CLOCK_STEPS.find((step) => step * 1e9 >= least) : 0;
	return seconds ? seconds * 1e9 : [1, 2, 5, 10].map((k) => k * power).find((step) => step >= least);
}
